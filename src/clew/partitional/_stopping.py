"""When the rounds of k-means end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from clew.partitional._geometry import FloatArray, Labels, Problem

# Progress below this share of the total scatter of the data is a rounding error.
_ROUNDING = 4 * np.finfo(np.float64).eps
# If the objective may rise, the rounds end after this many without a new minimum.
_PATIENCE = 20


class Round(NamedTuple):
    """The state after an assignment: the labels, and the centres for which they were assigned."""

    problem: Problem
    labels: Labels
    centers: FloatArray
    price: float


class StoppingRule:
    """Ends the rounds when no label changes, the centres move less than `tol`, or `max_iter` rounds are over.

    If the objective may rise (`monotone` is False), the rounds also end after 20 of them without a new minimum, and the
    round with the lowest objective is returned.
    """

    def __init__(self, problem: Problem, tol: float, max_iter: int, *, monotone: bool) -> None:
        self.history: list[float] = []
        self.n_iter, self.shift, self.converged = 0, np.inf, False
        self._limit, self._max_iter, self.monotone = tol * problem.variance, max_iter, monotone
        self._moved_little = False
        self._lowest: tuple[float, int, Round] | None = None

    def state(self) -> dict[str, FloatArray]:
        """Everything that later rounds depend on, for a checkpoint of a monotone run."""
        return {
            "history": np.array(self.history),
            "rule": np.array([self.n_iter, self.shift, self._moved_little], dtype=np.float64),
        }

    def restore(self, history: FloatArray, rule: FloatArray) -> None:
        """Continue from the result of `state`."""
        self.history = history.tolist()
        self.n_iter, self.shift, self._moved_little = int(rule[0]), float(rule[1]), bool(rule[2])

    def moved(self, shift: float) -> None:
        """Record the squared shift of the centres."""
        self.shift = shift
        self.n_iter += 1
        # Linked rows may still move while the centres stand still, so a shift of 0 does not end the rounds.
        self._moved_little = 0 < shift <= self._limit

    def ends(self, now: Round, objective: float, scale: float, *, changed: bool, emptied: bool) -> Round | None:
        """Record a round; if it is the last one, return the round to keep.

        `changed` says whether a label changed and `emptied` whether a cluster has just lost its last row. Such a
        cluster restarts before the rounds may end.
        """
        self.history.append(objective)
        stable = not changed and self._has_settled(now)
        if self.monotone:
            # Centres that differ only by rounding may exchange rows forever, so the rounds also end without progress.
            self._moved_little = self._moved_little or self._has_stalled(scale)
        elif self._lowest is None or objective < self._lowest[0] - _ROUNDING * scale:
            self._lowest = objective, len(self.history), now._replace(labels=now.labels.copy())
        elif not stable and len(self.history) >= self._lowest[1] + _PATIENCE:
            _, self.n_iter, best = self._lowest
            del self.history[self.n_iter :]
            self.converged = True
            return best
        if not stable and self.n_iter < self._max_iter and (emptied or not self._moved_little):
            return None
        # As in scikit-learn, the last round, which changes nothing, counts, unless the centres had stopped before it.
        self.n_iter = min(self.n_iter + (stable and self.shift > self._limit), self._max_iter)
        self.converged = stable or self._moved_little
        return now

    def _has_settled(self, now: Round) -> bool:
        """Whether the centres have stopped. Broken pairs may still pull them after the last row has moved."""
        return self.monotone or self.shift <= max(self._limit, _ROUNDING * now.problem.variance)

    def _has_stalled(self, scale: float) -> bool:
        return len(self.history) > 1 and bool(self.history[-2] - self.history[-1] <= _ROUNDING * scale)
