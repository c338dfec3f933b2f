"""Progress of a fit, with an estimate of the time that is left."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

_logger = logging.getLogger(__name__)


class DeepProgress(NamedTuple):
    """Progress of a fit, which `callback` gets after each round."""

    stage: str  # "pre-training", "clustering" or "filtering"
    n_iter: int
    max_iter: int
    objective: float  # the reconstruction error while pre-training
    changed: float  # share of the rows that changed their cluster in the last round
    seconds: float  # since the stage began
    seconds_left: float  # until max_iter, at the mean speed so far; clustering and filtering may stop earlier


class Reporter:
    """Reports each round to the log and the callback, with an estimate of the remaining time."""

    def __init__(self, stage: str, max_iter: int, callback: Callable[[DeepProgress], Any] | None) -> None:
        self._stage, self._max_iter, self._callback, self._started = stage, max_iter, callback, time.monotonic()

    def __call__(self, n_iter: int, objective: float, changed: float) -> Any:
        seconds = time.monotonic() - self._started
        left = seconds / n_iter * (self._max_iter - n_iter)
        now = DeepProgress(self._stage, n_iter, self._max_iter, objective, changed, seconds, left)
        extra = {
            "stage": self._stage, "round": n_iter, "max_iter": self._max_iter, "objective": objective,
            "seconds_left": left,
        }  # fmt: skip
        _logger.debug("%s, round %d: objective %g, %.0f s left", self._stage, n_iter, objective, left, extra=extra)
        return None if self._callback is None else self._callback(now)
