"""Work beside the answering: threads for the session's calls, fits that nobody waits for, questions drawn ahead."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from clew.exceptions import ClewError, StorageError
from clew.session import Question, Session
from clew.web._errands import Errands

P = ParamSpec("P")
T = TypeVar("T")

_LOGGER = logging.getLogger("clew.web")
_QUICK_THREADS = 2
_SLOW_THREADS = 4
# Calls recorded together at most: the first of them waits for the last.
_MOST_TOGETHER = 64
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
    writer : Writer
    errands : Errands
    closing : bool
        Whether the server is going down: streams end.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.fits, self.ahead = Fits(session), Ahead(session)
        self.writer = Writer(session, self.ahead.forget)
        self.errands = Errands()
        self.open()

    def open(self) -> None:
        """Have threads; they start with the first call."""
        self.closing = False
        self.writer.open()
        self.errands.open()
        self._quick = ThreadPoolExecutor(_QUICK_THREADS, thread_name_prefix="clew-quick")
        self._slow = ThreadPoolExecutor(_SLOW_THREADS, thread_name_prefix="clew-slow")
        self._fitting = ThreadPoolExecutor(1, thread_name_prefix="clew-fits")

    async def quick(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A call that takes milliseconds, in a thread."""
        return await _in(self._quick, partial(call, *args, **kwargs))

    async def slow(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A call that may take seconds, in a thread that answers never wait for."""
        return await _in(self._slow, partial(call, *args, **kwargs))

    async def fresh(self) -> None:
        """Wait for clusters with everything said so far; whoever waits takes no thread from others."""
        await _in(self._fitting, self.fits.fresh)

    async def write(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A short call that writes, recorded together with those of others; safe once this returns."""
        return await asyncio.wrap_future(self.writer.submit(partial(call, *args, **kwargs)))

    def draw_ahead(self, annotator: str) -> None:
        """Have the next question of a person ready before it is asked for."""
        self.writer.submit(partial(self.ahead.fill, annotator))

    async def run(self) -> None:
        """Keep up with other processes and with what was said, until cancelled."""
        await self.slow(self._prepare)
        while True:
            await _in(self._fitting, self._beat)
            await asyncio.sleep(_BEAT)

    def _prepare(self) -> None:
        """Find the first question before anybody has opened the page: a strategy may look at all rows for it."""
        with contextlib.suppress(ClewError):  # whoever asks is told why
            self.session.progress()

    def _beat(self) -> None:
        try:
            self.session.refresh()
        except ClewError:
            return  # whoever asks or answers next is told why
        self.fits.keep_up()

    def close(self) -> None:
        """Finish what is under way."""
        self.closing = True
        self.errands.close()
        self.writer.close()
        for pool in (self._quick, self._slow, self._fitting):
            pool.shutdown(wait=True, cancel_futures=True)


async def _in(pool: ThreadPoolExecutor, call: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(pool, call)


class Writer:
    """One thread for the short writing calls of all people, which records those that wait together.

    A visit to the disk takes longer than all the rest of an answer; twenty people who answer at once share one.
    """

    def __init__(self, session: Session, on_failure: Callable[[], None]) -> None:
        self._session, self._on_failure = session, on_failure
        self._thread: threading.Thread | None = None
        self._turn = threading.Lock()
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()

    def open(self) -> None:
        """Take calls; the thread starts with the first."""
        self._calls = SimpleQueue()
        self._thread = None

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Have a call made; the future is done once it is recorded."""
        future: Future[T] = Future()
        self._calls.put((call, future))
        with self._turn:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, args=(self._calls,), name="clew-writer", daemon=True)
                self._thread.start()
        return future

    def close(self) -> None:
        """Finish the calls that were submitted."""
        self._calls.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self, calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]) -> None:
        while (first := calls.get()) is not None:
            batch = [first]
            while len(batch) < _MOST_TOGETHER and not calls.empty():
                following = calls.get()
                if following is None:
                    calls.put(None)
                    break
                batch.append(following)
            self._record([one for one in batch if one[1].set_running_or_notify_cancel()])

    def _record(self, batch: list[tuple[Callable[[], Any], Future[Any]]]) -> None:
        outcomes: list[tuple[Future[Any], Any, Exception | None]] = []
        try:
            with self._session.together():
                for call, future in batch:
                    outcomes.append((future, *_outcome(call)))
        except Exception as error:  # nothing was recorded, and nobody is told otherwise
            self._on_failure()
            for _, future in batch:
                future.set_exception(error)
            return
        for future, value, problem in outcomes:
            if problem is None:
                future.set_result(value)
            else:
                future.set_exception(problem)


def _outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a call gives, or why it refuses; a database that fails ends the whole transaction."""
    try:
        return call(), None
    except StorageError:
        raise
    except ClewError as error:
        return None, error


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
        except Exception:
            _LOGGER.exception("A fit failed")

    def _fit(self) -> None:
        start, version = time.monotonic(), self._session.version
        self.running = True
        try:
            adopted = False
            while not adopted:
                plan = self._session.plan_fit()
                version = plan.version
                adopted = self._session.adopt(plan.run())
        except Exception as error:
            is_ours = isinstance(error, ClewError)
            self.problem = str(error) if is_ours else "This is a bug in clew; the terminal of the server shows more."
            self._failed = version
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
        except StorageError:
            raise
        except ClewError:
            return  # told when the question is asked for
        if question is None:
            return
        with self._lock:
            self._ready[annotator] = question
            if len(self._ready) > _MOST_PEOPLE:
                self._ready.popitem(last=False)

    def forget(self) -> None:
        """Drop what was drawn: it was not recorded, and its numbers will be given to other questions."""
        with self._lock:
            self._ready.clear()

    def _pop(self, annotator: str) -> Question | None:
        with self._lock:
            question = self._ready.pop(annotator, None)
        is_theirs = question is not None and question.expires > time.time() and self._session.worth_asking(question)
        return question if is_theirs else None

    def _own(self, annotator: str, n: int, holding: list[int]) -> list[Question]:
        now, held = time.time(), set(holding)
        own = [one for one in self._session.pending() if one.annotator == annotator and one.id not in held]
        return [one for one in own if one.expires > now and self._session.worth_asking(one)][:n]
