"""From a few rows whose cluster is known to probabilities for all rows.

Least squares in a weighted sum of the ways in which rows are alike: the mean of a Gaussian process, whose evidence says
how much each way is to be trusted (Rasmussen and Williams 2006, `rasmussen2006`, Eq. 2.25 and 2.30).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from clew.graph._landscape import Landscape

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Variance of what a known row says, in units of its likeness with itself, before any answer.
NOISE = 0.1
# How far the logarithms of weights and noise stray from their priors: one standard deviation.
_STRAY, _STRAY_NOISE = 0.7, 1.0
# The evidence of fewer rows than this says nothing; more than this say little more.
_LEAST_EVIDENCE, _MOST_EVIDENCE = 4, 200
_MOST_ROUNDS = 15
# More sources teach nothing new about where clusters are.
_MOST_SOURCES = 600
# Probability, over the number of classes, below which none falls.
_FLOOR = 0.01
# Keeps factorisations away from zero.
_JITTER = 1e-6


class Sources(NamedTuple):
    """Rows whose class is taken to be known, and how doubtful each is: 1 for an ordinary answer."""

    rows: IntArray
    classes: IntArray
    doubt: FloatArray

    def thinned(self, most: int) -> Sources:
        """At most `most` of them, spread evenly over the classes."""
        if len(self.rows) <= most:
            return self
        order = np.lexsort((np.arange(len(self.rows)), self.classes))
        kept = np.sort(order[np.linspace(0, len(order) - 1, most).astype(np.int64)])
        return Sources(self.rows[kept], self.classes[kept], self.doubt[kept])


def joined(first: Sources, second: Sources) -> Sources:
    """Both."""
    return Sources(*(np.concatenate(both) for both in zip(first, second, strict=True)))


class Trust(NamedTuple):
    """How much each way of being alike counts, and the noise of what known rows say."""

    weights: FloatArray
    noise: float

    @property
    def partition(self) -> int:
        """The base partition that is trusted most."""
        return int(self.weights[3:].argmax())


def initial_trust(landscape: Landscape) -> Trust:
    """Before anything is known."""
    return Trust(landscape.prior, NOISE)


def learned_trust(landscape: Landscape, sources: Sources) -> Trust:
    """The weights that explain the known rows best, not far from those before.

    Maximises the evidence of the classes, the common scale profiled out, plus a normal prior on the logarithms.
    """
    sources = sources.thinned(_MOST_EVIDENCE)
    classes, codes = np.unique(sources.classes, return_inverse=True)
    if len(sources.rows) < _LEAST_EVIDENCE or len(classes) < 2:
        return initial_trust(landscape)
    alike = np.concatenate([landscape.ways(sources.rows), np.diag(sources.doubt)[None]])
    targets = np.eye(len(classes))[codes] - 1 / len(classes)
    start = np.log(np.append(landscape.prior, NOISE))
    spread = np.append(np.full(len(start) - 1, _STRAY), _STRAY_NOISE)
    found = minimize(
        _lack_of_evidence,
        np.zeros_like(start),
        args=(alike, targets, start, spread),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-6.0, 6.0)] * len(start),
        options={"maxiter": _MOST_ROUNDS},
    )
    chosen = np.exp(start + spread * found.x)
    return Trust(chosen[:-1], float(chosen[-1]))


def _lack_of_evidence(
    strayed: FloatArray, alike: FloatArray, targets: FloatArray, start: FloatArray, spread: FloatArray
) -> tuple[float, FloatArray]:
    """Minus the logarithm of evidence times prior, and its gradient in units of the prior's spread."""
    weights = np.exp(start + spread * strayed)
    n_rows, n_classes = targets.shape
    covariance = np.tensordot(weights, alike, 1) + _JITTER * np.eye(n_rows)
    try:
        factor = cho_factor(covariance, lower=True)
    except LinAlgError:  # weights far apart: worse than any
        return np.inf, np.zeros_like(strayed)
    inverse = cho_solve(factor, np.eye(n_rows))
    pulled = inverse @ targets
    scale = max(float((targets * pulled).sum()) / (n_rows * n_classes), np.finfo(np.float64).tiny)
    value = 0.5 * n_rows * n_classes * np.log(scale) + n_classes * np.log(np.diag(factor[0])).sum()
    slope = 0.5 * (n_classes * inverse - pulled @ pulled.T / scale)
    gradient = np.einsum("wij,ij->w", alike, slope) * weights * spread
    return float(value + 0.5 * strayed @ strayed), gradient + strayed


def spread(landscape: Landscape, sources: Sources, trust: Trust, n_classes: int) -> FloatArray:
    """Probabilities of all rows for classes 0 to `n_classes` - 1; a class without a source is unlikely all over."""
    sources = sources.thinned(_MOST_SOURCES)
    covariance = _covariance(landscape.likeness(trust.weights, sources.rows), sources.doubt, trust.noise)
    pulled = cho_solve(cho_factor(covariance, lower=True), _targets(sources, n_classes))
    return _probabilities(landscape.drawn(trust.weights, sources.rows, pulled), sources)


def left_out(alike: FloatArray, sources: Sources, noise: float, n_classes: int) -> FloatArray:
    """Probabilities of each source from all the others, given how alike they are (Rasmussen 2006, Eq. 5.12)."""
    targets = _targets(sources, n_classes)
    inverse = np.linalg.inv(_covariance(alike, sources.doubt, noise))
    return _probabilities(targets - (inverse @ targets) / np.diag(inverse)[:, None], sources)


def _targets(sources: Sources, n_classes: int) -> FloatArray:
    """What sources say, as deviations from "any of the classes there are"."""
    targets = np.full((len(sources.rows), n_classes), -1 / len(np.unique(sources.classes)))
    targets[np.arange(len(sources.rows)), sources.classes] += 1
    return targets


def _covariance(alike: FloatArray, doubt: FloatArray, noise: float) -> FloatArray:
    return alike + np.diag(noise * doubt + _JITTER)


def _probabilities(deviations: FloatArray, sources: Sources) -> FloatArray:
    present = np.unique(sources.classes)
    chances = deviations + 1 / len(present)
    n_classes = chances.shape[1]
    chances[:, np.setdiff1d(np.arange(n_classes), present)] = 0.0
    np.maximum(chances, _FLOOR / n_classes, out=chances)
    chances /= chances.sum(axis=1, keepdims=True)
    return chances
