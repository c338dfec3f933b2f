"""The pair model: a logistic regression on features of pairs. Its prior is the mixture, and it learns from answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from clew.constraints import Closure
from clew.matching._candidates import candidate_pairs, closing_pairs
from clew.matching._comparison import CLOSE, Compared, Comparer, Levels, standing, whole_levels
from clew.matching._fellegi_sunter import MOST_LOG_ODDS, Evidence, evidence_among, fellegi_sunter, two_normals
from clew.matching._records import Field

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float32]

# Number of random pairs of rows, which show how often cells agree by chance.
_RANDOM_PAIRS = 20_000
# Number of candidates that represent the mixture in the regression: half of them likely matches, half likely not.
_STAND_INS = 2_000
# Likely matches get at least this share of the stand-ins' total weight, so that rare matches count.
_LEAST_SHARE = 0.1
# Records without any close cell and with a whole-row similarity below this differ, whatever the mixture says.
_UNLIKE = 0.5
# Ridge penalty of each coefficient except the intercept. Features have variance 1.
_RIDGE = 1.0
# Weight of one answer, relative to a stand-in of full weight.
ANSWER_WEIGHT = 2.0
_MAX_ITER, _TOL = 50, 1e-6


class Candidates(NamedTuple):
    """Candidate pairs of rows with everything that does not depend on answers.

    Attributes
    ----------
    pairs : ndarray of shape (n_pairs, 2)
    features : ndarray of shape (n_pairs, n_features + 1)
        Standardised, 0 where missing. The last column is 1.
    log_odds : ndarray of shape (n_pairs,)
        Log-odds of being a match, by the mixture alone.
    levels : ndarray of shape (n_pairs, n_columns)
        Level of agreement of each column, see `Compared`.
    measures : Measures
    """

    pairs: IntArray
    features: Matrix
    log_odds: FloatArray
    levels: Levels
    measures: Measures

    def places_of(self, pairs: IntArray) -> IntArray:
        """Position of each pair among the candidates, -1 for a pair that is no candidate."""
        if not len(self.pairs):
            return np.full(len(pairs), -1, dtype=np.int64)
        n = int(max(self.pairs.max(), pairs.max(initial=0))) + 1
        keys, wanted = self.pairs[:, 0] * n + self.pairs[:, 1], pairs.min(axis=1) * n + pairs.max(axis=1)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, place, -1)


class Measures(NamedTuple):
    """Parameters that turn compared pairs into features: weights of evidence, means and scales."""

    evidence: Evidence
    means: FloatArray
    scales: FloatArray

    def features(self, compared: Compared, log_odds: FloatArray) -> Matrix:
        """Standardised features: the compared features, the log-odds of the mixture, and a constant 1."""
        found = np.ones((len(log_odds), len(self.means) + 1), dtype=np.float32)
        for place, raw in enumerate(_columns(compared, log_odds)):
            found[:, place] = np.nan_to_num((raw.astype(np.float64) - self.means[place]) / self.scales[place])
        return found

    def features_of(self, rows: Comparer, pairs: IntArray) -> Matrix:
        """Standardised features of any pairs."""
        compared = rows.compare(pairs)
        return self.features(compared, self.evidence.log_odds(all_levels(rows, pairs, compared)))


def build_candidates(rows: Comparer, fields: list[Field], keys: list[Field], rng: np.random.Generator) -> Candidates:
    """Find candidate pairs, compare them, and estimate without answers which of them match."""
    pairs = candidate_pairs(rows, fields, keys)
    compared = rows.compare(pairs)
    probability = _first_guess(rows, compared, rng)
    levels = all_levels(rows, pairs, compared)
    evidence = evidence_among(levels, probability)
    log_odds = evidence.log_odds(levels)
    more = closing_pairs(pairs, log_odds > 0, rows.n_fitted)
    if len(more):
        others = rows.compare(more)
        order = np.lexsort(np.concatenate([pairs, more]).T[::-1])
        pairs, compared = np.concatenate([pairs, more])[order], compared.merged(others, order)
        log_odds = evidence.log_odds(all_levels(rows, pairs, compared))
    means, scales = np.array([_mean_and_scale(raw) for raw in _columns(compared, log_odds)]).T.copy()
    measures = Measures(evidence, means, scales)
    return Candidates(pairs, measures.features(compared, log_odds), log_odds, compared.levels, measures)


def _columns(compared: Compared, log_odds: FloatArray) -> list[npt.NDArray[Any]]:
    """The features of the pair model before they are standardised."""
    return [*compared.features, log_odds]


def _mean_and_scale(values: npt.NDArray[Any]) -> tuple[float, float]:
    """Mean and standard deviation of the values that are not missing; a standard deviation of 0 becomes 1."""
    known = values[~np.isnan(values)].astype(np.float64)
    scale = float(known.std()) if len(known) else 0.0
    return float(known.mean()) if len(known) else 0.0, scale if scale > 1e-9 else 1.0


def _first_guess(rows: Comparer, compared: Compared, rng: np.random.Generator) -> FloatArray:
    """Probabilities without answers, by the mixture. It starts from two normal distributions of the similarity.

    The mixture of Fellegi and Sunter needs two columns; with one column, it cannot tell its two classes apart.
    """
    levels, similarity = compared.levels, compared.similarity
    guess = two_normals(similarity)
    if levels.shape[1] > 1 and len(levels):
        n = rows.n_fitted
        by_chance = rng.integers(n, size=(_RANDOM_PAIRS, 2))
        by_chance = by_chance[by_chance[:, 0] != by_chance[:, 1]]
        guess = fellegi_sunter(levels, rows.compare(by_chance).levels, guess, n * (n - 1) / 2)
    if levels.shape[1]:
        guess[(levels < CLOSE).all(axis=1) & (similarity < _UNLIKE)] = 0.0
    guess[similarity > 1 - 1e-9] = 1.0  # equal rows
    return guess


def all_levels(rows: Comparer, pairs: IntArray, compared: Compared) -> Levels:
    """Levels of the columns and of the whole row."""
    smaller_share = standing(compared.similarity, pairs, rows.scores)[0]
    return np.column_stack([compared.levels, whole_levels(compared.similarity, smaller_share)])


@dataclass
class PairModel:
    """A logistic regression on features of pairs, refitted as more answers come in.

    Attributes
    ----------
    candidates : Candidates
    stand_ins : ndarray of ints
        Positions of the candidates that represent the mixture.
    weights : ndarray of floats
        Weights of the stand-ins. Their sum is at most the strength of the prior, counted in answers.
    """

    candidates: Candidates
    stand_ins: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, candidates: Candidates, strength: float) -> PairModel:
        """The model before the first answer. The mixture counts as `strength` answers."""
        log_odds = candidates.log_odds
        chosen, weights = [], []
        n = max(len(log_odds), 1)
        share = max(float((log_odds > 0).sum()) / n, _LEAST_SHARE)
        for some, total in ((log_odds > 0, share), (log_odds <= 0, 1 - share)):
            places = np.flatnonzero(some)
            places = places[np.linspace(0, len(places) - 1, min(len(places), _STAND_INS // 2)).astype(np.int64)]
            chosen.append(places)
            weights.append(np.full(len(places), strength * total / max(len(places), 1)))
        places = np.concatenate(chosen)
        return cls(candidates, places, np.concatenate(weights) * np.abs(np.tanh(log_odds[places] / 2)))

    def fit(
        self, features: Matrix, answers: FloatArray, weights: FloatArray, start: FloatArray | None = None
    ) -> FloatArray:
        """Fit the coefficients to the stand-ins and the answered pairs. An answer is 1 for "same", else 0."""
        rows = np.concatenate([self.candidates.features[self.stand_ins], features]).astype(np.float64)
        same = np.concatenate([self.candidates.log_odds[self.stand_ins] > 0, answers]).astype(np.float64)
        return logistic(rows, same, np.concatenate([self.weights, weights]), start)

    def posterior(
        self, features: Matrix, answers: FloatArray, weights: FloatArray, start: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Fit the coefficients and their covariance, from the curvature of the loss (Laplace approximation)."""
        found = self.fit(features, answers, weights, start)
        rows = np.concatenate([self.candidates.features[self.stand_ins], features]).astype(np.float64)
        probability = expit(rows @ found)
        spread = np.concatenate([self.weights, weights]) * probability * (1 - probability)
        return found, np.linalg.inv((rows * spread[:, None]).T @ rows + np.diag(_penalties(rows.shape[1])))

    def log_odds(self, coefficients: FloatArray) -> FloatArray:
        """Log-odds that each candidate is a match, clipped to plus or minus `MOST_LOG_ODDS`."""
        total = self.candidates.features @ coefficients.astype(np.float32)
        return np.clip(total.astype(np.float64), -MOST_LOG_ODDS, MOST_LOG_ODDS)


def logistic(rows: FloatArray, same: FloatArray, weights: FloatArray, start: FloatArray | None = None) -> FloatArray:
    """Fit a weighted logistic regression with a ridge penalty, by Newton's method with step halving."""
    ridge = _penalties(rows.shape[1])
    found = np.zeros(rows.shape[1]) if start is None else start

    def loss(coefficients: FloatArray) -> float:
        total = rows @ coefficients
        return float(
            (weights * (np.logaddexp(0, total) - same * total)).sum() + 0.5 * coefficients @ (ridge * coefficients)
        )

    cost = loss(found)
    for _ in range(_MAX_ITER):
        probability = expit(rows @ found)
        slope = rows.T @ (weights * (probability - same)) + ridge * found
        curve = (rows * (weights * probability * (1 - probability))[:, None]).T @ rows + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        while (lower := loss(found - step)) > cost:
            step = step / 2
        if cost - lower < _TOL:
            break
        found, cost = found - step, lower
    return found


def _penalties(n: int) -> FloatArray:
    """The ridge penalty of each coefficient; the last one is the intercept."""
    return np.append(np.full(n - 1, _RIDGE), 1e-3)


class Answers(NamedTuple):
    """Positions of the candidates whose answer is known, the answers (1 for "same"), and their weights."""

    places: IntArray
    same: FloatArray
    weights: FloatArray

    def decide(self, log_odds: FloatArray) -> FloatArray:
        """The log-odds of all candidates; if the answer is known, plus or minus the largest value."""
        decided = log_odds.copy()
        decided[self.places] = np.where(self.same > 0, MOST_LOG_ODDS, -MOST_LOG_ODDS)
        return decided


def known_answers(pairs: IntArray, closed: Closure) -> Answers:
    """Candidates that constraints decide. Pairs inside a cannot-group are left out, as they are not a random sample.

    All candidates within a component of n rows together count as at most n - 1 answers. All candidates between two
    components count as one answer.
    """
    one, two = closed.component_of[pairs].T
    low, high = np.minimum(one, two), np.maximum(one, two)
    graph, n = closed.graph, closed.n_components
    edges = np.repeat(np.arange(n), np.diff(graph.edge_ptr)) * n + graph.edges
    inside = np.flatnonzero(low == high)
    apart = np.flatnonzero(np.isin(low * n + high, edges))
    n_inside = np.bincount(low[inside], minlength=n)
    weights = np.minimum((closed.sizes - 1) / np.maximum(n_inside, 1), 1.0)[low[inside]]
    _, place, n_between = np.unique((low * n + high)[apart], return_inverse=True, return_counts=True)
    places = np.concatenate([inside, apart])
    same = np.concatenate([np.ones(len(inside)), np.zeros(len(apart))])
    return Answers(places, same, ANSWER_WEIGHT * np.concatenate([weights, 1 / n_between[place]]))
