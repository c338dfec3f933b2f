"""Server-sent events: whoever listens hears of new answers and new clusters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from clew.web._views import Status, plain, status
from clew.web._worker import Worker

# Seconds between looks, and between signs of life that keep proxies from closing a quiet stream.
_LOOK = 0.25
_SIGN_OF_LIFE = 15.0


class Latest:
    """Progress, worked out once for all who listen."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._turn = asyncio.Lock()
        self._key: tuple[Any, ...] | None = None
        self._status: Status | None = None

    def key(self) -> tuple[Any, ...]:
        """What has to change for listeners to hear of it."""
        fits = self._worker.fits
        return self._worker.session.version, fits.count, fits.running, fits.problem

    async def status(self) -> Status:
        """The status as it is now."""
        async with self._turn:
            key = self.key()
            if self._status is None or key != self._key:
                self._status, self._key = await self._worker.slow(status, self._worker), key
            return self._status


async def stream(worker: Worker, latest: Latest) -> AsyncIterator[str]:
    """``progress`` after every change, ``clusters`` after every fit, both at once at the start; ``errands`` when a
    review or a map that was waited for is there."""
    told: tuple[Any, ...] | None = None
    n_fits, n_errands, quiet = -1, worker.errands.done, 0.0
    while not worker.closing:
        if worker.errands.done != n_errands:
            n_errands = worker.errands.done
            yield _event("errands", {"done": n_errands}, worker.session.version)
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
