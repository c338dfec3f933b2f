"""Server-sent events: tell clients of new answers and new clusters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from clew.web._views import Status, plain, status
from clew.web._worker import Worker

# Seconds between checks for news, and between keep-alive comments, without which proxies close a quiet stream.
_LOOK = 0.25
_SIGN_OF_LIFE = 15.0
# Largest number of streams. Each checks for news several times a second.
MOST_STREAMS = 500


class Latest:
    """The latest progress, computed once for all streams."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._turn = asyncio.Lock()
        self._key: tuple[Any, ...] | None = None
        self._status: Status | None = None
        self.n_streams = 0

    def key(self) -> tuple[Any, ...]:
        """A value that changes whenever there is something to tell."""
        fits = self._worker.fits
        return self._worker.session.version, fits.count, fits.running, fits.progress, fits.problem

    async def status(self) -> Status:
        """The current status."""
        async with self._turn:
            key = self.key()
            if self._status is None or key != self._key:
                self._status, self._key = await self._worker.slow(status, self._worker), key
            return self._status


async def stream(worker: Worker, latest: Latest) -> AsyncIterator[str]:
    """Server-sent events: ``progress`` after every change, and ``clusters`` after every fit.

    Both are also sent at the start. ``jobs`` is sent when a background job, a review or a map, is done.
    """
    latest.n_streams += 1
    try:
        async for event in _news(worker, latest):
            yield event
    finally:
        latest.n_streams -= 1


async def _news(worker: Worker, latest: Latest) -> AsyncIterator[str]:
    told: tuple[Any, ...] | None = None
    n_fits, n_jobs, quiet = -1, worker.jobs.done, 0.0
    while not worker.closing:
        if worker.jobs.done != n_jobs:
            n_jobs = worker.jobs.done
            yield _event("jobs", {"done": n_jobs}, worker.session.version)
        key = latest.key()
        if key != told:
            told, quiet = key, 0.0
            now = await latest.status()
            yield _event("progress", plain(now), now.version)
            if worker.fits.count != n_fits:
                n_fits = worker.fits.count
                yield _event("clusters", {"fit": n_fits, "version": now.version}, now.version)
        elif quiet >= _SIGN_OF_LIFE:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(_LOOK)
        quiet += _LOOK


def _event(kind: str, data: Any, number: int) -> str:
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"
