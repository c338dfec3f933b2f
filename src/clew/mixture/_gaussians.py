"""Gaussian components: their densities, and parameter estimates from weighted rows, for four kinds of covariance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from clew.exceptions import DataError
from clew.solvers.inference import IMPOSSIBLE

FloatArray = npt.NDArray[np.float64]

# Number of rows per block, chosen so that a block stays in the cache.
_BLOCK_ROWS = 4096
# Number of values per block of differences between rows and means.
_BLOCK_VALUES = 2**18
# Added to the row count of each component, as in scikit-learn, so that an empty one causes no division by zero.
_NO_ROWS = 10 * np.finfo(np.float64).eps
# A component with fewer expected rows than this keeps its mean and covariance.
_DEAD = 1e-8


class Gaussians(NamedTuple):
    """Means and covariances of the components.

    The shape of `covariances` depends on the kind: (k, d, d) for "full", (d, d) for "tied", (k, d) for "diag" and (k,)
    for "spherical". Densities are computed from `factors`: inverse Cholesky factors for "full" and "tied", and inverse
    standard deviations for the others.
    """

    kind: str
    means: FloatArray
    covariances: FloatArray
    factors: FloatArray

    def log_densities(self, X: FloatArray) -> FloatArray:
        """Log-density of each row in each component."""
        n_rows, n_columns = X.shape
        n_components = len(self.means)
        distances = np.empty((n_rows, n_components))
        if self.kind in ("full", "tied"):
            for one, mean in enumerate(self.means):
                factor = self.factors[one] if self.kind == "full" else self.factors
                scaled = X @ factor
                scaled -= mean @ factor
                np.einsum("ij,ij->i", scaled, scaled, out=distances[:, one])
        else:
            factors = self.factors if self.kind == "diag" else np.repeat(self.factors[:, None], n_columns, axis=1)
            precisions = factors**2
            # Expanding the squares loses precision if rows and means share a large offset, so both are centred first.
            center = self.means.mean(axis=0)
            means = self.means - center
            linear, constant = (-2 * means * precisions).T, (means**2 * precisions).sum(axis=1)
            for start in range(0, n_rows, _BLOCK_ROWS):
                rows, block = X[start : start + _BLOCK_ROWS] - center, distances[start : start + _BLOCK_ROWS]
                np.matmul(rows, linear, out=block)
                np.multiply(rows, rows, out=rows)
                block += rows @ precisions.T
                block += constant
        distances *= -0.5
        distances += self._half_log_det() - 0.5 * n_columns * np.log(2 * np.pi)
        return distances

    def left_out_log_densities(self, X: FloatArray, shares: FloatArray) -> FloatArray:
        r"""Log-density of each row in each component, where the component is estimated without that row.

        The components were estimated from `shares`. Let N be the sum of a component's shares, and :math:`\delta` the
        difference between a row of share r and the mean. Without the row, this difference is :math:`a \delta` with
        :math:`a = N / (N - r)`, and the covariance is :math:`a (\Sigma - c \, \delta \delta^T)` with
        :math:`c = r / (N - r)`. The result is exact except for the effect of `reg_covar`.
        """
        n_columns, counts = X.shape[1], shares.sum(axis=0)
        found = np.empty(shares.shape)
        n_block = max(1, _BLOCK_VALUES // self.means.size)
        for start in range(0, len(X), n_block):
            block = slice(start, start + n_block)
            its_shares = shares[block]
            rest = np.maximum(counts - its_shares, _DEAD)
            is_estimated = rest > _DEAD
            a, c = np.where(is_estimated, counts / rest, 1), its_shares / rest
            scaled = self._scaled(X[block])
            if self.kind == "tied":
                distances, log_det, is_left = _without_row_tied(scaled, its_shares, counts, a, c)
            else:
                # Leaving out a row is a rank-one change of a "full" covariance, and lowers each variance otherwise.
                squares = scaled**2
                if self.kind == "full":
                    squares = squares.sum(axis=2, keepdims=True)
                elif self.kind == "spherical":
                    squares = np.broadcast_to(squares.mean(axis=2, keepdims=True), squares.shape)
                left = 1 - c[:, :, None] * squares
                is_left = (left > 0).all(axis=2)
                left = np.where(left > 0, left, 1)
                distances = a * (squares / left).sum(axis=2)
                log_det = n_columns * np.log(a) + np.log(left).sum(axis=2)
            values = self._half_log_det() - 0.5 * (n_columns * np.log(2 * np.pi) + log_det + distances)
            found[block] = np.where(is_left & is_estimated, values, IMPOSSIBLE)
        return np.maximum(found, IMPOSSIBLE)

    def _scaled(self, X: FloatArray) -> FloatArray:
        """Difference between each row and each mean in units of the component's covariance; shape (n, k, d)."""
        gaps = X[:, None, :] - self.means
        if self.kind == "full":
            return np.asarray(np.einsum("nkd,kde->nke", gaps, self.factors, optimize=True))
        if self.kind == "tied":
            return gaps @ self.factors
        return gaps * (self.factors if self.kind == "diag" else self.factors[:, None])

    def _half_log_det(self) -> FloatArray:
        """Half of the log-determinant of each component's inverse covariance."""
        n_columns = self.means.shape[1]
        if self.kind in ("full", "tied"):
            return np.asarray(np.log(np.diagonal(self.factors, axis1=-2, axis2=-1)).sum(axis=-1))
        if self.kind == "diag":
            return np.asarray(np.log(self.factors).sum(axis=1))
        return np.asarray(n_columns * np.log(self.factors))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of means and covariances."""
        n_components, n_columns = self.means.shape
        of_covariances = {
            "full": n_components * n_columns * (n_columns + 1) // 2,
            "tied": n_columns * (n_columns + 1) // 2,
            "diag": n_components * n_columns,
            "spherical": n_components,
        }
        return of_covariances[self.kind] + n_components * n_columns


def _without_row_tied(
    scaled: FloatArray, shares: FloatArray, counts: FloatArray, a: FloatArray, c: FloatArray
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Squared distances and change of the log-determinant if a row is left out, for the covariance that all share.

    Leaving out a row is a change of rank one per component, so each row needs the solution of a k x k system. The
    third result is False for rows without which the covariance is singular.
    """
    identity = np.eye(len(counts))
    total = counts.sum()
    grown = total / np.maximum(total - shares.sum(axis=1, keepdims=True), _DEAD)
    dots = scaled @ scaled.transpose(0, 2, 1)
    weights = np.sqrt(counts * c / total)[:, :, None]
    left = identity - weights * dots * weights.transpose(0, 2, 1)
    signs, log_left = np.linalg.slogdet(left)
    is_left = signs > 0
    left[~is_left] = identity
    inner = weights * dots
    distances = np.einsum("ijj->ij", dots) + (inner * np.linalg.solve(left, inner)).sum(axis=1)
    return distances * a**2 / grown, scaled.shape[2] * np.log(grown) + log_left[:, None], is_left[:, None]


def with_factors(kind: str, means: FloatArray, covariances: FloatArray) -> Gaussians:
    """Build components from means and covariances; raise if a covariance is singular."""
    if kind in ("diag", "spherical"):
        if not (covariances > 0).all():
            _refuse_singular(kind, int(np.argwhere(covariances <= 0)[0][0]))
        return Gaussians(kind, means, covariances, 1 / np.sqrt(covariances))
    identity = np.eye(means.shape[1])
    stack = covariances if kind == "full" else covariances[None]
    factors = np.empty_like(stack)
    for one, covariance in enumerate(stack):
        try:
            factors[one] = solve_triangular(np.linalg.cholesky(covariance), identity, lower=True).T
        except np.linalg.LinAlgError:
            _refuse_singular(kind, one)
    return Gaussians(kind, means, covariances, factors if kind == "full" else factors[0])


def _refuse_singular(kind: str, component: int) -> None:
    remedies = {
        "diag": "Raise reg_covar, lower n_clusters, or use covariance_type='spherical'.",
        "spherical": "Raise reg_covar, or lower n_clusters.",
    }
    remedy = "Raise reg_covar, lower n_clusters, or use covariance_type='diag' or 'spherical'."
    raise DataError(
        f"The covariance of component {component} is singular: its rows do not vary in some direction. "
        f"{remedies.get(kind, remedy)}"
    )


def estimate(X: FloatArray, shares: FloatArray, kind: str, reg_covar: float, before: Gaussians | None) -> Gaussians:
    """Estimate components by maximum likelihood from rows and their shares, and add `reg_covar` to the variances.

    A component without rows keeps its parameters from `before`.
    """
    counts = shares.sum(axis=0) + _NO_ROWS
    means = shares.T @ X / counts[:, None]
    if kind == "full":
        covariances = np.empty((len(counts), X.shape[1], X.shape[1]))
        for one in range(len(counts)):
            rows = X - means[one]
            covariances[one] = (shares[:, one, None] * rows).T @ rows / counts[one]
            covariances[one].flat[:: X.shape[1] + 1] += reg_covar
    elif kind == "tied":
        # The means were computed from `shares`, so the scatter within components is the total minus that of the means.
        covariances = (shares.sum(axis=1) * X.T) @ X - (counts * means.T) @ means
        covariances /= counts.sum()
        covariances.flat[:: X.shape[1] + 1] += reg_covar
    else:
        squares = np.zeros(means.shape)
        for start in range(0, len(X), _BLOCK_ROWS):
            rows = X[start : start + _BLOCK_ROWS]
            squares += shares[start : start + _BLOCK_ROWS].T @ (rows * rows)
        covariances = np.maximum(squares / counts[:, None] - means**2, 0) + reg_covar
        if kind == "spherical":
            covariances = covariances.mean(axis=1)
    if before is not None:
        dead = counts < _DEAD
        means[dead] = before.means[dead]
        if kind != "tied":
            covariances[dead] = before.covariances[dead]
    return with_factors(kind, means, covariances)
