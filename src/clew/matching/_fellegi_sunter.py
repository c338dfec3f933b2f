"""Estimate the probability that two records match, without any answers: a mixture of matches and non-matches.

Fellegi and Sunter 1969 (`fellegi1969`); estimated by EM as in Winkler 1988 (`winkler1988`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from clew.matching._comparison import CLOSE, DIFFERENT, EQUAL, MISSING, SIMILAR, Levels

FloatArray = npt.NDArray[np.float64]

N_LEVELS = len((MISSING, DIFFERENT, SIMILAR, CLOSE, EQUAL))
# The model assumes that columns are independent, but they are not: two rows with the same street also have the same
# city. The total weight of evidence of all columns is multiplied by this factor.
_DISCOUNT = 0.7
_MAX_ITER, _TOL = 200, 1e-4
# The log-odds of a single pair are clipped to plus or minus this value.
MOST_LOG_ODDS = 8.0


class Evidence(NamedTuple):
    """Log-odds of a pair: ``intercept`` plus ``weights[c][level]`` for each column c."""

    intercept: float
    weights: list[FloatArray]

    def log_odds(self, levels: Levels) -> FloatArray:
        """Log-odds of pairs, clipped to plus or minus `MOST_LOG_ODDS`."""
        total = np.full(len(levels), self.intercept)
        for column, weights in enumerate(self.weights):
            total += weights[np.minimum(levels[:, column], len(weights) - 1)]
        return np.clip(total, -MOST_LOG_ODDS, MOST_LOG_ODDS)

    def as_matrix(self) -> FloatArray:
        """One matrix to save in a file: the first row holds the intercept, then one row of weights per column."""
        width = max((len(weights) for weights in self.weights), default=1)
        rows = [np.pad(weights, (0, width - len(weights)), mode="edge") for weights in self.weights]
        return np.array([np.full(width, self.intercept), *rows])

    @classmethod
    def of_matrix(cls, matrix: FloatArray) -> Evidence:
        """Rebuild the evidence from a matrix made by `as_matrix`."""
        return cls(float(matrix[0, 0]), list(matrix[1:]))


def fellegi_sunter(levels: Levels, random_levels: Levels, start: FloatArray, n_pairs: float) -> FloatArray:
    """Estimate the probability that each candidate pair is a match, by EM over all pairs of rows.

    Non-matches are assumed to agree as often as random pairs of rows do. The levels of agreement of matches, and the
    number of matches among all `n_pairs` pairs, are estimated from the candidates. `start` holds the initial
    probabilities.
    """
    n_columns = levels.shape[1]
    others = [_shares(random_levels[:, column], None, 0.5) for column in range(n_columns)]
    probability = start
    for _ in range(_MAX_ITER):
        share = min((probability.sum() + 1) / n_pairs, 0.5)
        weights = [
            _DISCOUNT * _rising(_shares(levels[:, column], probability, 1.0, others[column]), others[column])
            for column in range(n_columns)
        ]
        found = expit(Evidence(float(np.log(share / (1 - share))), weights).log_odds(levels))
        if np.abs(found - probability).max(initial=0) < _TOL:
            break
        probability = found
    return probability


def evidence_among(levels: Levels, probability: FloatArray) -> Evidence:
    """Weights of evidence, estimated from candidate pairs and their probabilities of being matches."""
    share = (probability.sum() + 1) / (len(probability) + 2)
    weights = []
    for column in range(levels.shape[1]):
        n_levels = int(levels[:, column].max(initial=0)) + 1
        both = _shares(levels[:, column], None, 1e-3, n_levels=n_levels)
        of_matches, of_others = (
            _shares(levels[:, column], some, float(n_levels), both) for some in (probability, 1 - probability)
        )
        weights.append(_rising(of_matches, of_others))
    return Evidence(float(np.log(share / (1 - share))), weights)


def _shares(
    levels: Levels,
    probability: FloatArray | None,
    smoothing: float,
    around: FloatArray | None = None,
    n_levels: int = N_LEVELS,
) -> FloatArray:
    """Share of pairs at each level. For smoothing, `smoothing` extra pairs with the shares `around` are added."""
    n_levels = n_levels if around is None else len(around)
    counts = np.bincount(levels, probability, minlength=n_levels).astype(np.float64)
    prior = np.full(n_levels, 1.0) if around is None else around
    return np.asarray((counts + smoothing * prior) / (counts.sum() + smoothing * prior.sum()))


def _rising(of_matches: FloatArray, of_others: FloatArray) -> FloatArray:
    """Log-ratio of the shares, made to rise with agreement, except at the first level, which is a missing cell."""
    weights = np.log(of_matches / of_others)
    if len(weights) > 2:
        weights[1:] = isotonic_regression(weights[1:], sample_weight=(of_matches + of_others)[1:])
    return weights


def two_normals(values: FloatArray) -> FloatArray:
    """Fit a mixture of two normal distributions by EM; return the probability that each value is from the upper one.

    The initial split minimises the sum of squares within the two parts.
    """
    if not len(values) or np.ptp(values) < 1e-9:
        return np.zeros(len(values))
    ordered = np.sort(values)
    n = np.arange(1, len(values))
    sums = np.cumsum(ordered)
    between = (sums[-1] * n / len(values) - sums[:-1]) ** 2 / (n * (len(values) - n))
    upper = (values > ordered[int(between.argmax())]).astype(np.float64)
    for _ in range(_MAX_ITER):
        parts = []
        for weight in (upper, 1 - upper):
            total = weight.sum() + 1e-9
            mean = (weight * values).sum() / total
            spread = np.sqrt((weight * (values - mean) ** 2).sum() / total + 1e-4 * values.var())
            parts.append(np.log(total) - np.log(spread) - 0.5 * ((values - mean) / spread) ** 2)
        # However wide the upper distribution is, it gets no values below the mean of the lower one.
        found = np.where(values < np.average(values, weights=1 - upper + 1e-9), 0.0, expit(parts[0] - parts[1]))
        if np.abs(found - upper).max() < _TOL:
            break
        upper = found
    return np.asarray(upper)
