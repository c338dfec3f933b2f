"""Gaussian components: their densities, and parameter estimates from weighted rows, for four kinds of covariance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from clew.exceptions import DataError

FloatArray = npt.NDArray[np.float64]

# Number of rows per block, chosen so that a block stays in the cache.
_BLOCK_ROWS = 4096
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
            diagonals = np.diagonal(self.factors, axis1=-2, axis2=-1)
            half_log_det = np.log(diagonals).sum(axis=-1)
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
            half_log_det = np.log(factors).sum(axis=1)
        distances *= -0.5
        distances += half_log_det - 0.5 * n_columns * np.log(2 * np.pi)
        return distances

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


def with_factors(kind: str, means: FloatArray, covariances: FloatArray) -> Gaussians:
    """Build components from means and covariances; raise if a covariance is singular."""
    if kind in ("diag", "spherical"):
        if not (covariances > 0).all():
            _refuse_singular(int(np.argwhere(covariances <= 0)[0][0]))
        return Gaussians(kind, means, covariances, 1 / np.sqrt(covariances))
    identity = np.eye(means.shape[1])
    stack = covariances if kind == "full" else covariances[None]
    factors = np.empty_like(stack)
    for one, covariance in enumerate(stack):
        try:
            factors[one] = solve_triangular(np.linalg.cholesky(covariance), identity, lower=True).T
        except np.linalg.LinAlgError:
            _refuse_singular(one)
    return Gaussians(kind, means, covariances, factors if kind == "full" else factors[0])


def _refuse_singular(component: int) -> None:
    raise DataError(
        f"The covariance of component {component} is singular: its rows do not vary in some direction. "
        "Raise reg_covar, lower n_clusters, or use covariance_type='diag' or 'spherical'."
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
