"""Answers that may be wrong: EM estimates the error rate, the wrong answers and the pair model together.

An answer about a pair is right with probability 1 - e. The error rate e is estimated, as in Raykar et al. 2010
(`raykar2010`), from how well the pair model predicts each answer from all the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from clew.matching._fellegi_sunter import MOST_LOG_ODDS
from clew.matching._pair_model import ANSWER_WEIGHT, Answers, PairModel

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Prior of the error rate: one wrong answer in twenty. The rate is clipped to the last two values.
_PRIOR_ERRORS, _PRIOR_ANSWERS = 1.0, 20.0
_LEAST_RATE, _MOST_RATE = 0.005, 0.3
# Largest number of rounds of EM, and the change of a probability below which it stops.
_ROUNDS, _TOL = 6, 0.02
# Answers may be overruled once this many of them are expected to be wrong.
MANY_ERRORS = 2.0


class NoisyFit(NamedTuple):
    """Result of `fit_noisy`.

    Attributes
    ----------
    coefficients, covariance : ndarray
        Coefficients of the pair model and their covariance, as in `PairModel.posterior`.
    left_out : ndarray of shape (n_answers,)
        Log-odds that the two rows of each answered pair match, from all other answers.
    log_odds : ndarray of shape (n_answers,)
        The same from all answers, its own one included.
    right : ndarray of shape (n_answers,)
        Probability that each answer is right.
    rate : float
        Estimated share of wrong answers.
    """

    coefficients: FloatArray
    covariance: FloatArray
    left_out: FloatArray
    log_odds: FloatArray
    right: FloatArray
    rate: float

    @property
    def n_wrong(self) -> float:
        """Expected number of wrong answers."""
        return float((1 - self.right).sum())


def fit_noisy(model: PairModel, places: IntArray, signs: IntArray, certain: Answers, rate: float) -> NoisyFit:
    """Fit the pair model to answers that may be wrong, and to pairs that are certain.

    `places` are the candidates that were asked about, and `signs` are 1 for "same" and -1 for "different". Several
    people may have answered about the same candidate. `rate` is the initial error rate, 0 if it is unknown.
    """
    features = model.candidates.features
    rows = np.concatenate([features[places], features[certain.places]])
    weights = np.concatenate([np.full(len(places), ANSWER_WEIGHT), certain.weights])
    asked = features[places].astype(np.float64)
    rate = _bounded(rate or _PRIOR_ERRORS / _PRIOR_ANSWERS)
    right, coefficients = np.ones(len(places)), np.zeros(features.shape[1])
    for _ in range(_ROUNDS):
        same = np.where(signs > 0, right, 1 - right)
        coefficients, covariance = model.posterior(rows, np.concatenate([same, certain.same]), weights, coefficients)
        left_out = _left_out(asked @ coefficients, covariance, asked, same)
        before, right = right, expit(left_out * signs + np.log((1 - rate) / rate))
        rate = _bounded((float(np.sum(1 - right)) + _PRIOR_ERRORS) / (len(right) + _PRIOR_ANSWERS))
        if np.abs(right - before).max(initial=0) < _TOL:
            break
    _, pair = np.unique(places, return_inverse=True)
    votes = np.bincount(pair, signs, minlength=1)[pair]
    log_odds = np.clip(left_out + votes * np.log((1 - rate) / rate), -MOST_LOG_ODDS, MOST_LOG_ODDS)
    return NoisyFit(coefficients, covariance, left_out, log_odds, right, rate)


def _bounded(rate: float) -> float:
    return min(max(rate, _LEAST_RATE), _MOST_RATE)


def _left_out(log_odds: FloatArray, covariance: FloatArray, rows: FloatArray, same: FloatArray) -> FloatArray:
    """Log-odds of each pair without its own answer: one Newton step from the fit with all answers."""
    probability = expit(log_odds)
    variance = np.einsum("ij,jk,ik->i", rows, covariance, rows, optimize=True)
    leverage = np.minimum(ANSWER_WEIGHT * probability * (1 - probability) * variance, 0.99)
    moved = log_odds + ANSWER_WEIGHT * (probability - same) * variance / (1 - leverage)
    return np.clip(moved, -MOST_LOG_ODDS, MOST_LOG_ODDS)
