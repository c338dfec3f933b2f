"""The EM algorithm shared by all mixtures. The constraints determine the E-step (`MixtureKnowledge`)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from clew.mixture._gaussians import Gaussians, estimate

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Number of rows per block of the E-step, chosen so that a block stays in the cache.
_BLOCK_ROWS = 4096
# A drop of the log-likelihood by less than this share is a rounding error.
_ROUNDING = 1e-12


class Expectation(NamedTuple):
    """Result of an E-step.

    Attributes
    ----------
    shares : ndarray of shape (n_rows, n_components)
        Posterior probability of each component for each row, given all rows and constraints.
    log_likelihood : float
    counts : ndarray of shape (n_components,)
        Expected number of independent draws of each component, for the M-step of the weights.
    weighted : ndarray of shape (n_rows, n_components)
        `shares` times the weight of each row; the same array if all weights are 1.
    """

    shares: FloatArray
    log_likelihood: float
    counts: FloatArray
    weighted: FloatArray


class MixtureKnowledge(Protocol):
    """Constraints, expressed as a prior over the components of all rows."""

    n_exact: int
    n_loopy: int

    def expect(self, log_densities: FloatArray, log_weights: FloatArray) -> Expectation:
        """The E-step; `log_densities` may be overwritten."""

    def log_weights(self, counts: FloatArray, before: FloatArray) -> FloatArray:
        """The M-step of the mixing weights."""


class Mixture(NamedTuple):
    """Result of `expectation_maximization`."""

    gaussians: Gaussians
    log_weights: FloatArray
    expectation: Expectation
    history: list[float]
    n_iter: int
    converged: bool
    change: float

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of the rows and the constraints."""
        return self.expectation.log_likelihood

    def left_out_log_likelihood(self, X: FloatArray, knowledge: MixtureKnowledge) -> float:
        """Log-likelihood in which each row is scored by components that were estimated without it.

        A component that adapts to a few rows makes them likely, but not if they are left out. So starts with such
        components are not preferred.
        """
        log_densities = self.gaussians.left_out_log_densities(X, self.expectation.weighted)
        return knowledge.expect(log_densities, self.log_weights).log_likelihood


def expectation_maximization(
    X: FloatArray,
    knowledge: MixtureKnowledge,
    shares: FloatArray,
    kind: str,
    *,
    reg_covar: float,
    max_iter: int,
    tol: float,
) -> Mixture:
    """Run EM from initial shares until the mean log-likelihood of a row rises by at most `tol`.

    `reg_covar` and approximate inference can make the log-likelihood fall. Then EM stops and keeps the previous round.
    """
    counts = shares.sum(axis=0)
    gaussians = estimate(X, shares, kind, reg_covar, None)
    log_weights = _log(counts / counts.sum())
    now = knowledge.expect(gaussians.log_densities(X), log_weights)
    history = [now.log_likelihood]
    change = np.inf
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        n_iter += 1
        new_gaussians = estimate(X, now.weighted, kind, reg_covar, gaussians)
        new_weights = knowledge.log_weights(now.counts, log_weights)
        new = knowledge.expect(new_gaussians.log_densities(X), new_weights)
        change = (new.log_likelihood - now.log_likelihood) / len(X)
        if new.log_likelihood < now.log_likelihood - _ROUNDING * abs(now.log_likelihood):
            converged = True
            break
        gaussians, log_weights, now = new_gaussians, new_weights, new
        history.append(now.log_likelihood)
        converged = change <= tol
    return Mixture(gaussians, log_weights, now, history, n_iter, converged, float(change))


def normalise_rows(log_scores: FloatArray, log_weights: FloatArray) -> float:
    """Turn log-scores of rows into posterior probabilities, in place; return the sum of the rows' log-likelihoods."""
    total = 0.0
    for start in range(0, len(log_scores), _BLOCK_ROWS):
        block = log_scores[start : start + _BLOCK_ROWS]
        block += log_weights
        largest = block.max(axis=1, keepdims=True)
        block -= largest
        np.exp(block, out=block)
        sums = block.sum(axis=1, keepdims=True)
        block /= sums
        total += float(largest.sum()) + float(np.log(sums).sum())
    return total


def log_sum(values: FloatArray) -> float:
    """Logarithm of the sum of exponentials."""
    largest = float(values.max())
    return largest + float(np.log(np.exp(values - largest).sum()))


def _log(weights: FloatArray) -> FloatArray:
    return np.log(np.maximum(weights, np.finfo(np.float64).tiny))
