"""Threads of the server: calls of the session, fits in the background, and questions prepared in advance."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from clew.exceptions import ClewError, StorageError
from clew.session import Question, Session
from clew.session._clustering import FitPlan, FitProgress
from clew.web._jobs import BackgroundJobs

P = ParamSpec("P")
T = TypeVar("T")

_LOGGER = logging.getLogger("clew.web")
_QUICK_THREADS = 2
_SLOW_THREADS = 4
# Largest number of calls in one transaction. The first call waits for the last one.
_MOST_TOGETHER = 64
# Seconds between checks for changes by other processes and for a fit that is due.
_BEAT = 0.5
# Pause after a fit: at least a second, and four times as long as the fit took, so that answers come first.
_LEAST_REST, _REST_SHARE = 1.0, 4.0
# Seconds between two reports of a fit that trains a network.
_REPORT_EVERY = 1.0
# Seconds that running calls have to finish when the server stops.
_PATIENCE = 3.0
# Largest number of people with a prepared question. The least recent is dropped first.
_MOST_PEOPLE = 1000


class Worker:
    """A session and the threads that serve it.

    Attributes
    ----------
    session : Session
    fits : Fits
    ahead : PreparedQuestions
    writer : Writer
    jobs : BackgroundJobs
    visitors : dict
        The first browser of each name since the server started.
    closing : bool
        Whether the server is shutting down, so that streams end.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.visitors: dict[str, str] = {}
        self.fits, self.ahead = Fits(session), PreparedQuestions(session)
        self.writer = Writer(session, self.ahead.forget)
        self.jobs = BackgroundJobs()
        self.open()

    def open(self) -> None:
        """Create the threads; each starts with its first call."""
        self.closing = False
        self.writer.open()
        self.jobs.open()
        self._quick, self._slow = Pool(_QUICK_THREADS, "clew-quick"), Pool(_SLOW_THREADS, "clew-slow")
        self._importing, self._fitting = Pool(1, "clew-imports"), Pool(1, "clew-fits")

    async def quick(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that takes milliseconds in a thread."""
        return await self._quick.run(functools.partial(call, *args, **kwargs))

    async def slow(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that may take seconds in a thread of its own."""
        return await self._slow.run(functools.partial(call, *args, **kwargs))

    async def take_in(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a call that reads a file. Only one runs at a time, to limit memory."""
        return await self._importing.run(functools.partial(call, *args, **kwargs))

    async def fresh(self) -> None:
        """Wait for clusters with all answers so far. Waiting blocks no thread."""
        await self._fitting.run(self.fits.fresh)

    async def write(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a short call that writes, in one transaction with others. It is stored when this returns."""
        return await asyncio.wrap_future(self.writer.submit(functools.partial(call, *args, **kwargs)))

    @functools.cached_property
    def project(self) -> str:
        """The id of the project."""
        return self.session.project_id

    def draw_ahead(self, annotator: str) -> None:
        """Prepare the next question of a person in advance."""
        self.writer.submit(functools.partial(self.ahead.fill, annotator))

    async def run(self) -> None:
        """Follow other processes and new answers until cancelled."""
        await self.slow(self._prepare)
        while True:
            await self._fitting.run(self._beat)
            await asyncio.sleep(_BEAT)

    def _prepare(self) -> None:
        """Prepare the first question before the page is opened, because a strategy may need to look at all rows."""
        with contextlib.suppress(ClewError):  # the next request gets this error
            self.session.progress()

    def _beat(self) -> None:
        try:
            self.session.refresh()
        except ClewError:
            return  # the next request gets this error
        self.fits.keep_up()

    def close(self, seconds: float = _PATIENCE) -> None:
        """Finish running calls. A fit or a question that takes longer than this many seconds is abandoned."""
        deadline = time.monotonic() + seconds
        self.closing = True
        self.jobs.close()
        self.writer.close(deadline)
        for pool in (self._quick, self._slow, self._importing, self._fitting):
            pool.close(deadline)


class Pool:
    """A thread pool that does not delay the end of the process, unlike those of `concurrent.futures`."""

    def __init__(self, n_threads: int, name: str) -> None:
        self._n_threads, self._name = n_threads, name
        self._turn = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._closed = False

    async def run(self, call: Callable[[], T]) -> T:
        """Make a call in one of the threads, and wait for it."""
        future: Future[T] = Future()
        with self._turn:
            if self._closed:
                raise RuntimeError(f"The threads {self._name} have ended.")
            self._calls.put((call, future))
            if len(self._threads) < self._n_threads:
                thread = threading.Thread(target=self._run, name=f"{self._name}_{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        return await asyncio.wrap_future(future)

    def close(self, deadline: float) -> None:
        """Wait for running calls until a time of the monotonic clock. Calls that have not begun are dropped."""
        with self._turn:
            self._closed = True
        while not self._calls.empty():
            waiting = self._calls.get()
            if waiting is not None:
                waiting[1].cancel()
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _run(self) -> None:
        while (waiting := self._calls.get()) is not None:
            call, future = waiting
            if not future.set_running_or_notify_cancel():
                continue
            try:
                value = call()
            except BaseException as error:  # the caller gets this error
                future.set_exception(error)
            else:
                future.set_result(value)
            del waiting, call, future


class Writer:
    """One thread for all short writing calls. Calls that wait at the same time share a transaction.

    Writing to disk takes longer than the rest of an answer, so twenty people who answer at once share one write.
    """

    def __init__(self, session: Session, on_failure: Callable[[], None]) -> None:
        self._session, self._on_failure = session, on_failure
        self._thread: threading.Thread | None = None
        self._turn = threading.Lock()
        self._calls: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()

    def open(self) -> None:
        """Accept calls; the thread starts with the first one."""
        self._calls = SimpleQueue()
        self._thread = None

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Submit a call; its future is done when the call is recorded."""
        future: Future[T] = Future()
        self._calls.put((call, future))
        with self._turn:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, args=(self._calls,), name="clew-writer", daemon=True)
                self._thread.start()
        return future

    def close(self, deadline: float) -> None:
        """Finish the submitted calls, until a time of the monotonic clock."""
        self._calls.put(None)
        if self._thread is not None:
            self._thread.join(max(deadline - time.monotonic(), 0.0))

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
        except Exception as error:  # nothing was recorded, and every caller gets the error
            self._on_failure()
            if len(batch) > 1 and not isinstance(error, StorageError):  # one failing call must not fail the others
                for one in batch:
                    self._record([one])
                return
            for _, future in batch:
                future.set_exception(error)
            return
        for future, value, problem in outcomes:
            if problem is None:
                future.set_result(value)
            else:
                future.set_exception(problem)


def _outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """The result of a call, or its error. An error of the database ends the whole transaction."""
    try:
        return call(), None
    except StorageError:
        raise
    except ClewError as error:
        return None, error


class Fits:
    """Fits in the background, after new answers.

    Attributes
    ----------
    count : int
        Fits so far.
    running : bool
    progress : FitProgress or None
        Progress of the running fit, if it trains a network. It changes at most once a second.
    problem : str or None
        Why the last fit failed.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turn = threading.Lock()
        self._covers, self._failed = -1, -1
        self._rest_until = 0.0
        self.count, self.running = 0, False
        self.progress: FitProgress | None = None
        self._next_report = 0.0
        self.problem: str | None = None

    def fresh(self) -> None:
        """Return clusters with all answers given before this call. People can go on answering meanwhile."""
        wanted = self._session.version
        with self._turn:
            if self._covers < wanted and self._session.is_stale:
                self._fit()

    def keep_up(self) -> None:
        """Fit if there are new answers, the last fit was some time ago, and it did not fail on the same answers."""
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
                adopted = self._session.adopt(plan.run(functools.partial(self._report, plan)))
        except Exception as error:
            is_ours = isinstance(error, ClewError)
            self.problem = str(error) if is_ours else "This is a bug in clew; the terminal of the server shows more."
            self._failed = version
            raise
        finally:
            self.running, self.progress = False, None
            took = time.monotonic() - start
            self._rest_until = start + took + max(_LEAST_REST, _REST_SHARE * took)
        self.problem, self._covers = None, version
        self.count += 1

    def _report(self, plan: FitPlan, now: FitProgress) -> bool:
        """Publish the progress of a fit. Returns False if its result would be refused, so that it need not go on."""
        if time.monotonic() < self._next_report:
            return True
        self._next_report, self.progress = time.monotonic() + _REPORT_EVERY, now
        return not self._session.is_late(plan)


class PreparedQuestions:
    """Questions prepared in advance, one for each active person."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._ready: OrderedDict[str, Question] = OrderedDict()

    def take(self, annotator: str, n: int, holding: list[int] | None) -> list[Question]:
        """Up to n questions for a person.

        `holding` lists the questions on the person's screen. Other open questions of the person come first, so that a
        reloaded page continues where it was. Without `holding` they come last.
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
        """Prepare the next question of a person, unless there is one."""
        with self._lock:
            if annotator in self._ready:
                return
        try:
            question = self._session.ask(annotator)
        except StorageError:
            raise
        except ClewError:
            return  # the error is raised when the question is requested
        if question is None:
            return
        with self._lock:
            self._ready[annotator] = question
            if len(self._ready) > _MOST_PEOPLE:
                self._ready.popitem(last=False)

    def forget(self) -> None:
        """Drop all prepared questions. They were not recorded, and their numbers will be used again."""
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
