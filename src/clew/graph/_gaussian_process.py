"""Class probabilities of all rows from a few labelled rows, by Gaussian-process regression on class indicators.

The covariance is a weighted sum of kernels. The weights maximise the marginal likelihood (Rasmussen and Williams 2006,
`rasmussen2006`, Eq. 2.25 and 2.30).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from clew.graph._kernels import KernelSum, RowFeatures
from clew.partitional._reduction import one_blas_thread

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Prior noise variance of a label, in units of the kernel's diagonal.
NOISE = 0.1
# Standard deviations of the log-normal priors on the kernel weights and on the noise.
_WEIGHT_SPREAD, _NOISE_SPREAD = 0.7, 1.0
# With fewer labelled rows than the first number, the prior weights are kept. Otherwise the weights are fitted to at
# most as many labelled rows as the second number.
_LEAST_EVIDENCE, MOST_EVIDENCE = 4, 200
_ITERATIONS = 15
# At most this many labelled rows enter the regression, whose time is cubic in their number.
MOST_LABELLED = 600
# Lower bound on a class probability, divided by the number of classes.
_FLOOR = 0.01
# Added to the diagonal so that the Cholesky factorisation exists.
_JITTER = 1e-6


class LabelledRows(NamedTuple):
    """Rows with a class, and the noise of each label.

    Example of three rows, the last with a doubtful class: ``rows=[4, 7, 9]``, ``classes=[0, 0, 1]``,
    ``noise=[1, 1, 5]``.
    """

    rows: IntArray
    classes: IntArray
    noise: FloatArray  # factors on the noise variance; 1 for an ordinary label

    def subsample(self, most: int) -> LabelledRows:
        """At most `most` of the rows, spread evenly over the classes."""
        if len(self.rows) <= most:
            return self
        kept = self.places(most)
        return LabelledRows(self.rows[kept], self.classes[kept], self.noise[kept])

    def places(self, most: int) -> IntArray:
        """Positions of at most `most` of the rows, spread evenly over the classes."""
        if len(self.rows) <= most:
            return np.arange(len(self.rows))
        order = np.lexsort((np.arange(len(self.rows)), self.classes))
        return np.sort(order[np.linspace(0, len(order) - 1, most).astype(np.int64)])


def concatenated(first: LabelledRows, second: LabelledRows) -> LabelledRows:
    """Concatenate two sets of labelled rows."""
    return LabelledRows(*(np.concatenate(both) for both in zip(first, second, strict=True)))


class KernelWeights(NamedTuple):
    """Weights of the kernels of a `KernelSum`, and the noise variance of labels."""

    values: FloatArray
    noise: float

    @property
    def partition(self) -> int:
        """The base partition with the largest weight."""
        return int(self.values[3:].argmax())


def prior_weights(kernels: KernelSum) -> KernelWeights:
    """The weights before any row is labelled."""
    return KernelWeights(kernels.prior, NOISE)


def fit_weights(kernels: KernelSum, labelled: LabelledRows) -> KernelWeights:
    """Find the weights that maximise the marginal likelihood of the labels times a log-normal prior.

    The common scale of all weights is profiled out.
    """
    labelled = labelled.subsample(MOST_EVIDENCE)
    classes, codes = np.unique(labelled.classes, return_inverse=True)
    if len(classes) < 2:
        return prior_weights(kernels)
    targets = np.eye(len(classes))[codes] - 1 / len(classes)
    return fit_weights_to(kernels, labelled, targets, prior_weights(kernels))


def fit_weights_to(
    kernels: KernelSum, labelled: LabelledRows, targets: FloatArray, prior: KernelWeights
) -> KernelWeights:
    """Fit the weights to any targets, one row of `targets` per labelled row. With few rows, the prior is kept."""
    if len(labelled.rows) < _LEAST_EVIDENCE:
        return prior
    matrices = np.concatenate([kernels.each(labelled.rows), np.diag(labelled.noise)[None]])
    start = np.log(np.append(prior.values, prior.noise))
    spread = np.append(np.full(len(start) - 1, _WEIGHT_SPREAD), _NOISE_SPREAD)
    with one_blas_thread():
        found = minimize(
            _negative_log_evidence,
            np.zeros_like(start),
            args=(matrices, targets, start, spread),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-6.0, 6.0)] * len(start),
            options={"maxiter": _ITERATIONS},
        )
    chosen = np.exp(start + spread * found.x)
    return KernelWeights(chosen[:-1], float(chosen[-1]))


def _negative_log_evidence(
    offsets: FloatArray, matrices: FloatArray, targets: FloatArray, start: FloatArray, spread: FloatArray
) -> tuple[float, FloatArray]:
    """Negative log of marginal likelihood times prior, and its gradient; offsets are in units of `spread`."""
    weights = np.exp(start + spread * offsets)
    n_rows, n_classes = targets.shape
    covariance = np.tensordot(weights, matrices, 1) + _JITTER * np.eye(n_rows)
    try:
        factor = cho_factor(covariance, lower=True)
    except LinAlgError:  # weights of very different size
        return np.inf, np.zeros_like(offsets)
    inverse = _inverse(factor[0])
    dual = inverse @ targets
    scale = max(float((targets * dual).sum()) / (n_rows * n_classes), np.finfo(np.float64).tiny)
    value = 0.5 * n_rows * n_classes * np.log(scale) + n_classes * np.log(np.diag(factor[0])).sum()
    slope = 0.5 * (n_classes * inverse - dual @ dual.T / scale)
    gradient = matrices.reshape(len(matrices), -1) @ slope.ravel() * weights * spread
    return float(value + 0.5 * offsets @ offsets), gradient + offsets


def _inverse(factor: FloatArray) -> FloatArray:
    """Inverse of a matrix from its lower Cholesky factor, in half the time of a general inverse."""
    lower = np.tril(dpotri(factor, lower=1)[0])
    return lower + np.tril(lower, -1).T


class ClassRegression(NamedTuple):
    """Gaussian-process regression on class indicators, fitted to labelled rows."""

    kernels: KernelSum
    labelled: LabelledRows
    weights: KernelWeights
    dual: FloatArray  # coefficient of each labelled row for each class

    def probabilities(self, at: RowFeatures | None = None) -> FloatArray:
        """Class probabilities of all rows, or of further rows."""
        deviations = self.kernels.product(self.weights.values, self.labelled.rows, self.dual, at)
        return _probabilities(deviations, self.labelled)


def fit_classes(kernels: KernelSum, labelled: LabelledRows, weights: KernelWeights, n_classes: int) -> ClassRegression:
    """Regression on classes 0 to `n_classes` - 1; classes without labelled rows get the lower bound."""
    labelled = labelled.subsample(MOST_LABELLED)
    matrix = covariance(kernels.gram(weights.values, labelled.rows), labelled.noise, weights.noise)
    dual = cho_solve(cho_factor(matrix, lower=True), _targets(labelled, n_classes))
    return ClassRegression(kernels, labelled, weights, dual)


def class_probabilities(
    kernels: KernelSum, labelled: LabelledRows, weights: KernelWeights, n_classes: int
) -> FloatArray:
    """Class probabilities of all rows by `fit_classes`."""
    return fit_classes(kernels, labelled, weights, n_classes).probabilities()


def leave_one_out(gram: FloatArray, labelled: LabelledRows, noise: float, n_classes: int) -> FloatArray:
    """Leave-one-out class probabilities of labelled rows, given their kernel matrix (`rasmussen2006`, Eq. 5.12)."""
    targets = _targets(labelled, n_classes)
    inverse = _inverse(cho_factor(covariance(gram, labelled.noise, noise), lower=True)[0])
    return _probabilities(targets - (inverse @ targets) / np.diag(inverse)[:, None], labelled)


def _targets(labelled: LabelledRows, n_classes: int) -> FloatArray:
    """Class indicators, centred over the classes that have labelled rows."""
    targets = np.full((len(labelled.rows), n_classes), -1 / len(np.unique(labelled.classes)))
    targets[np.arange(len(labelled.rows)), labelled.classes] += 1
    return targets


def covariance(gram: FloatArray, noise_factors: FloatArray, noise: float) -> FloatArray:
    return gram + np.diag(noise * noise_factors + _JITTER)


def _probabilities(deviations: FloatArray, labelled: LabelledRows) -> FloatArray:
    present = np.unique(labelled.classes)
    probabilities = deviations + 1 / len(present)
    n_classes = probabilities.shape[1]
    probabilities[:, np.setdiff1d(np.arange(n_classes), present)] = 0.0
    return normalized(probabilities)


def normalized(scores: FloatArray) -> FloatArray:
    """Turn scores into probabilities, in place: at least the lower bound, and summing to 1 in each row."""
    np.maximum(scores, _FLOOR / scores.shape[1], out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
