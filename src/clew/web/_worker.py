"""Work beside the answering: threads for the session's calls, fits that nobody waits for, questions drawn ahead."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from clew.exceptions import ClewError
from clew.session import Question, Session

P = ParamSpec("P")
T = TypeVar("T")

# A session does one thing at a time, so more threads for short calls would only wait for each other.
_QUICK_THREADS = 2
_SLOW_THREADS = 4
# Seconds between looks at what other processes have written and whether a fit is due.
_BEAT = 0.5
# After a fit its thread rests at least a second, and four times as long as the fit took: answering goes first.
_LEAST_REST, _REST_SHARE = 1.0, 4.0
# People for whom a question is kept ready; the longest absent one is forgotten first.
_MOST_PEOPLE = 1000


class Worker:
    """A session and the threads that serve it.

    Attributes
    ----------
    session : Session
    fits : Fits
    ahead : Ahead
    closing : bool
        Whether the server is going down: streams end.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.fits, self.ahead = Fits(session), Ahead(session)
        self.open()

    def open(self) -> None:
        """Have threads; they start with the first call."""
        self.closing = False
        self._quick = ThreadPoolExecutor(_QUICK_THREADS, thread_name_prefix="clew-quick")
        self._slow = ThreadPoolExecutor(_SLOW_THREADS, thread_name_prefix="clew-slow")

    async def quick(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A call that takes milliseconds, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._quick, partial(call, *args, **kwargs))

    async def slow(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A call that may take seconds, in a thread that answers never wait for."""
        return await asyncio.get_running_loop().run_in_executor(self._slow, partial(call, *args, **kwargs))

    def draw_ahead(self, annotator: str) -> None:
        """Have the next question of a person ready before it is asked for."""
        self._quick.submit(self.ahead.fill, annotator)

    async def run(self) -> None:
        """Keep up with other processes and with what was said, until cancelled."""
        while True:
            await self.slow(self._beat)
            await asyncio.sleep(_BEAT)

    def _beat(self) -> None:
        try:
            self.session.refresh()
        except ClewError:
            return  # whoever asks or answers next is told why
        self.fits.keep_up()

    def close(self) -> None:
        """Finish what is under way."""
        self.closing = True
        for pool in (self._quick, self._slow):
            pool.shutdown(wait=True, cancel_futures=True)


class Fits:
    """Clusters that follow the answers.

    Attributes
    ----------
    count : int
        Fits so far.
    running : bool
    problem : str or None
        Why the last fit failed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = threading.Lock()
        self._covers, self._failed = -1, -1
        self._rest_until = 0.0
        self.count, self.running = 0, False
        self.problem: str | None = None

    def fresh(self) -> None:
        """Clusters with everything said before this call; people go on answering meanwhile."""
        wanted = self._session.version
        with self._turn:
            if self._covers < wanted and self._session.is_stale:
                self._fit()

    def keep_up(self) -> None:
        """Fit if something was said, the last fit is some time ago and it did not fail on the same."""
        if time.monotonic() < self._rest_until or not self._session.is_stale or self._failed == self._session.version:
            return
        try:
            self.fresh()
        except ClewError:
            return  # kept in `problem`

    def _fit(self) -> None:
        start, version = time.monotonic(), self._session.version
        self.running = True
        try:
            adopted = False
            while not adopted:
                plan = self._session.plan_fit()
                version = plan.version
                adopted = self._session.adopt(plan.run())
        except ClewError as error:
            self.problem, self._failed = str(error), version
            raise
        finally:
            self.running = False
            took = time.monotonic() - start
            self._rest_until = start + took + max(_LEAST_REST, _REST_SHARE * took)
        self.problem, self._covers = None, version
        self.count += 1


class Ahead:
    """Questions drawn before they are asked for: one for each person who is at work."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._ready: OrderedDict[str, Question] = OrderedDict()

    def take(self, annotator: str, n: int, holding: list[int] | None) -> list[Question]:
        """Up to n questions for a person.

        With `holding`, the questions a person has on the screen, others that are theirs already come first: a page that
        was loaded anew goes on where it was. Without it they come last, when nothing new is left.
        """
        found = [] if holding is None else self._own(annotator, n, holding)
        ready = self._pop(annotator)
        if ready is not None and len(found) < n and ready.id not in [one.id for one in found]:
            found.append(ready)
        if len(found) < n:
            found += self._session.ask(annotator, n=n - len(found))
        if not found and holding is None:
            found = self._own(annotator, n, [])
        return found

    def fill(self, annotator: str) -> None:
        """Draw the next question of a person, unless one is there."""
        with self._lock:
            if annotator in self._ready:
                return
        try:
            question = self._session.ask(annotator)
        except ClewError:
            return  # told when the question is asked for
        if question is None:
            return
        with self._lock:
            self._ready[annotator] = question
            if len(self._ready) > _MOST_PEOPLE:
                self._ready.popitem(last=False)

    def _pop(self, annotator: str) -> Question | None:
        with self._lock:
            question = self._ready.pop(annotator, None)
        is_theirs = question is not None and question.expires > time.time() and self._session.worth_asking(question)
        return question if is_theirs else None

    def _own(self, annotator: str, n: int, holding: list[int]) -> list[Question]:
        now, held = time.time(), set(holding)
        own = [one for one in self._session.pending() if one.annotator == annotator and one.id not in held]
        return [one for one in own if one.expires > now and self._session.worth_asking(one)][:n]
