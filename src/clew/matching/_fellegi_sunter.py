"""The probability that two records are the same without any answer: a mixture of matches and others.

Fellegi and Sunter 1969 (`fellegi1969`); estimation by EM as Winkler 1988 (`winkler1988`) has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

from clew.matching._comparison import CLOSE, DIFFERENT, EQUAL, MISSING, SIMILAR

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

N_LEVELS = len((MISSING, DIFFERENT, SIMILAR, CLOSE, EQUAL))
# Columns are not independent, as the model has it: two rows with one street have one city, too. The weight of evidence
# of all columns together is cut to this share.
_DISCOUNT = 0.7
_MAX_ITER, _TOL = 200, 1e-4
# Log-odds of a single pair stay within these.
MOST_LOG_ODDS = 8.0


class Evidence(NamedTuple):
    """Log-odds of a pair: ``intercept`` plus ``weights[c][level]`` for each column c."""

    intercept: float
    weights: list[FloatArray]

    def log_odds(self, levels: IntArray) -> FloatArray:
        """Log-odds of pairs, within bounds."""
        total = np.full(len(levels), self.intercept)
        for column, weights in enumerate(self.weights):
            total += weights[np.minimum(levels[:, column], len(weights) - 1)]
        return np.clip(total, -MOST_LOG_ODDS, MOST_LOG_ODDS)

    def as_matrix(self) -> FloatArray:
        """The numbers as one matrix, for files: a row of the intercept, then a row of weights per column."""
        width = max((len(weights) for weights in self.weights), default=1)
        rows = [np.pad(weights, (0, width - len(weights)), mode="edge") for weights in self.weights]
        return np.array([np.full(width, self.intercept), *rows])

    @classmethod
    def of_matrix(cls, matrix: FloatArray) -> Evidence:
        """The evidence in a matrix that `as_matrix` made."""
        return cls(float(matrix[0, 0]), list(matrix[1:]))


def fellegi_sunter(levels: IntArray, random_levels: IntArray, start: FloatArray, n_pairs: float) -> FloatArray:
    """Probabilities of candidate pairs to be matches, by EM over all pairs of rows.

    The levels of pairs that do not match are those of random pairs of rows. Those of matches, and the number of matches
    among all `n_pairs` pairs, are estimated from the candidates. `start` are first probabilities.
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


def evidence_among(levels: IntArray, probability: FloatArray) -> Evidence:
    """The weights of evidence of candidate pairs with these probabilities of being matches."""
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
    levels: IntArray,
    probability: FloatArray | None,
    smoothing: float,
    around: FloatArray | None = None,
    n_levels: int = N_LEVELS,
) -> FloatArray:
    """Share of each level; `smoothing` further pairs have the shares `around`."""
    n_levels = n_levels if around is None else len(around)
    counts = np.bincount(levels, probability, minlength=n_levels).astype(np.float64)
    prior = np.full(n_levels, 1.0) if around is None else around
    return np.asarray((counts + smoothing * prior) / (counts.sum() + smoothing * prior.sum()))


def _rising(of_matches: FloatArray, of_others: FloatArray) -> FloatArray:
    """Logarithm of the ratio of shares, made to rise with agreement; the first level, a missing cell, is free."""
    weights = np.log(of_matches / of_others)
    if len(weights) > 2:
        weights[1:] = isotonic_regression(weights[1:], sample_weight=(of_matches + of_others)[1:])
    return weights


def two_normals(values: FloatArray) -> FloatArray:
    """Probability of each value to come from the upper one of two normal distributions, by EM.

    The start splits the values where the sum of squares within the two parts is least.
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
        # The upper one is never the likelier one below its rival's mean, however wide it is.
        found = np.where(values < np.average(values, weights=1 - upper + 1e-9), 0.0, expit(parts[0] - parts[1]))
        if np.abs(found - upper).max() < _TOL:
            break
        upper = found
    return np.asarray(upper)
