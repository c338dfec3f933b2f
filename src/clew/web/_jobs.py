"""Background jobs in separate processes with low priority, so that they delay neither answers nor shutdown.

`python -m clew.web._jobs` is such a process: it reads a plan, runs it and writes the result.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from clew.exceptions import ClewError

_LOGGER = logging.getLogger("clew.web")
# Lower priority than everything that people wait for.
_NICE = 10
_BUG = "This is a bug in clew; the terminal of the server shows more."


class Plan(Protocol):
    """A job that contains all the data it needs; it is pickled."""

    def run(self) -> Any:
        """Run the job and return its result."""


@dataclass(frozen=True)
class Outcome:
    """Latest result of a background job.

    Attributes
    ----------
    key : int or None
        Key of `value` or `problem`; None before the first job is done.
    value : object or None
        The latest result, perhaps for an earlier key.
    working : bool
        Whether a newer result is being computed.
    problem : str or None
        Why the latest job failed.
    """

    key: int | None = None
    value: Any = None
    working: bool = False
    problem: str | None = None


class BackgroundJobs:
    """Run background jobs one at a time, and keep the latest outcome of each name.

    Attributes
    ----------
    done : int
        Number of finished jobs.
    """

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._outcomes: dict[str, Outcome] = {}
        self._wanted: dict[str, tuple[int, Plan]] = {}
        self._at_work: tuple[str, int] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self.done = 0

    def open(self) -> None:
        """Accept jobs; the thread starts with the first one."""
        self._closed = False

    def look(self, name: str, key: int, plan: Callable[[], Plan]) -> Outcome:
        """Return the latest outcome of a name, and start a job if the outcome is for another key."""
        with self._lock:
            known = self._outcomes.get(name, Outcome())
            if known.key == key or self._closed:
                return known
            if self._at_work == (name, key) or self._wanted.get(name, (None,))[0] == key:
                return replace(known, working=True)
        made = plan()
        with self._lock:
            self._wanted[name] = (key, made)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="clew-jobs", daemon=True)
                self._thread.start()
            self._lock.notify_all()
            return replace(known, working=True)

    def settle(self) -> None:
        """Wait until no job is running."""
        with self._lock:
            self._lock.wait_for(lambda: not self._wanted and self._at_work is None)

    def close(self) -> None:
        """Stop the running job."""
        with self._lock:
            self._closed = True
            self._wanted.clear()
            if self._process is not None:
                self._process.kill()
            self._lock.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            name, key, plan = job
            value, problem = self._sent(plan)
            with self._lock:
                self._at_work = None
                if self._closed:
                    return
                if problem is not None:
                    value = self._outcomes.get(name, Outcome()).value
                self._outcomes[name] = Outcome(key, value, False, problem)
                self.done += 1
                self._lock.notify_all()

    def _next(self) -> tuple[str, int, Plan] | None:
        with self._lock:
            self._lock.wait_for(lambda: self._wanted or self._closed)
            if self._closed:
                return None
            name = next(iter(self._wanted))
            key, plan = self._wanted.pop(name)
            self._at_work = (name, key)
            return name, key, plan

    def _sent(self, plan: Plan) -> tuple[Any, str | None]:
        """Run a plan in a process; return its value, or the reason why there is none."""
        with self._lock:
            if self._closed:
                return None, _BUG
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "clew.web._jobs"],  # -P: do not import modules from the data folder
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        told, errors = self._process.communicate(pickle.dumps(plan))
        status = self._process.returncode
        self._process = None
        if status == 0:
            return pickle.loads(told)
        if not self._closed:
            _LOGGER.error("A background job failed: %s", errors.decode(errors="replace"))
        return None, _BUG


def main() -> None:
    """Read a plan from stdin, run it, and write its value or the error to stdout."""
    with contextlib.suppress(AttributeError, OSError):
        os.nice(_NICE)
    plan = pickle.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # printed text does not mix with the result
        told: tuple[Any, str | None]
        try:
            told = plan.run(), None
        except ClewError as error:
            told = None, str(error)
        pickle.dump(told, output)


if __name__ == "__main__":
    main()
