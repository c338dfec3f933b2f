"""Criteria of k-means, of k-medoids and of fixed clusters, with extra charges for some rows.

A *solution* is a set of centres. Its *free* rows go to their nearest centre. The *tied* rows, which are in constraints,
are assigned by the caller, who adds charges to their costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist

from clew.kernels.assign import add_rows, assign_nearest

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

# Rows per block, so that scores stay in the second-level cache.
_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class CenterCosts:
    """Centres, the costs of rows with these centres, and the sums from which the next centres are computed.

    Attributes
    ----------
    centers : ndarray
        Means (n_clusters, n_features), or positions of the medoids among the candidates (n_clusters,).
    costs : ndarray of shape (n_tied, n_clusters)
        Cost of each tied row with each centre.
    free_cost : float
        Cost of the free rows, each with its nearest centre.
    free_sums : ndarray of shape (n_clusters, n_columns)
        Sum over the free rows of each cluster: of the rows, or of their distances to the candidates.
    free_counts : ndarray of shape (n_clusters,)
    """

    centers: npt.NDArray[Any]
    costs: FloatArray
    free_cost: float
    free_sums: FloatArray
    free_counts: FloatArray


class Criterion(Protocol):
    """Interface of a clustering criterion for the dual ascent."""

    n_clusters: int

    def at(self, centers: npt.NDArray[Any]) -> CenterCosts:
        """The solution with these centres."""

    def descend(self, solution: CenterCosts, tied_labels: Labels) -> CenterCosts:
        """The solution with the best centres for the free rows of `solution` and the labelled tied rows."""

    def between(self, first: CenterCosts, second: CenterCosts) -> FloatArray:
        """Distances from the centres of one solution to the centres of another."""


def sums_by_label(values: Any, labels: npt.NDArray[Any], n_clusters: int) -> tuple[FloatArray, FloatArray]:
    """Sum of the rows of `values`, dense or sparse, and number of rows, for each label."""
    if sparse.issparse(values):
        rows = np.arange(len(labels))
        choose = sparse.csr_array((np.ones(len(labels)), (labels, rows)), shape=(n_clusters, len(labels)))
        counts = np.bincount(labels, minlength=n_clusters).astype(np.float64)
        return np.asarray((choose @ values).toarray(), dtype=np.float64), counts
    sums, counts = np.zeros((n_clusters, values.shape[1])), np.zeros(n_clusters)
    add_rows(values, np.ones(len(labels)), np.ascontiguousarray(labels, dtype=np.int32), sums, counts)
    return sums, counts


class SquaredDistances:
    """The k-means criterion: squared Euclidean distances to the mean.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features), float64
        Dense rows should be centred, because distances are computed from products.
    tied : ndarray
        The rows that are assigned by the caller, ascending.
    n_clusters : int
    anchors : CSR matrix of shape (n_anchors, n_tied), optional
        The tied rows of each anchor, a point that represents several rows. Anchors are numbered after the tied rows.
        The cost of an anchor in a cluster is the cost of all its rows there, minus their cost in the best cluster.
    """

    def __init__(self, X: Any, tied: IntArray, n_clusters: int, anchors: sparse.csr_array | None = None) -> None:
        self.n_clusters, self._anchors = n_clusters, anchors
        free = np.ones(X.shape[0], dtype=bool)
        free[tied] = False
        self._tied, self._free = X[tied], X[np.flatnonzero(free)]
        self._tied_norms, self._free_norm = _square_norms(self._tied), float(_square_norms(self._free).sum())

    def at(self, centers: FloatArray) -> CenterCosts:
        """The solution with these centres."""
        directions = np.ascontiguousarray(-2 * centers.T)
        offsets = np.einsum("ij,ij->i", centers, centers)
        costs = np.maximum(np.asarray(self._tied @ directions) + offsets + self._tied_norms[:, None], 0.0)
        costs = _with_anchors(costs, self._anchors)
        n_free, n_columns = self._free.shape
        sums, counts, totals = np.zeros((self.n_clusters, n_columns)), np.zeros(self.n_clusters), np.zeros(2)
        labels, errors = np.zeros(n_free, dtype=np.int32), np.zeros_like(sums)
        everyone, no_weights = np.ones(min(n_free, _BLOCK_ROWS), dtype=np.uint8), np.empty(0)
        is_sparse = sparse.issparse(self._free)
        for start in range(0, n_free, _BLOCK_ROWS):
            rows = self._free[start : start + _BLOCK_ROWS]
            scores = np.ascontiguousarray(rows @ directions)
            values = np.empty((0, 0)) if is_sparse else rows
            assign_nearest(
                values,
                scores,
                offsets,
                no_weights,
                everyone[: len(scores)],
                True,
                labels[start : start + _BLOCK_ROWS],
                sums,
                errors,
                counts,
                totals,
            )
        sums += errors
        if is_sparse:
            sums, _ = sums_by_label(self._free, labels, self.n_clusters)
        return CenterCosts(centers, costs, float(totals[0]) + self._free_norm, sums, counts)

    def descend(self, solution: CenterCosts, tied_labels: Labels) -> CenterCosts:
        """The solution with new centres: the means of the free rows of `solution` and of the labelled tied rows."""
        tied_labels = tied_labels[: self._tied.shape[0]]
        sums, counts = sums_by_label(self._tied, tied_labels, self.n_clusters)
        sums, counts = sums + solution.free_sums, counts + solution.free_counts
        centers = solution.centers.copy()
        filled = counts > 0
        centers[filled] = sums[filled] / counts[filled, None]
        return solution if np.array_equal(centers, solution.centers) else self.at(centers)

    def between(self, first: CenterCosts, second: CenterCosts) -> FloatArray:
        """Squared distances from the centres of one solution to the centres of another."""
        return np.asarray(cdist(first.centers, second.centers, "sqeuclidean"))


def _with_anchors(costs: FloatArray, anchors: sparse.csr_array | None) -> FloatArray:
    costs = np.ascontiguousarray(costs)  # indexing columns gives a Fortran-ordered copy
    if anchors is None:
        return costs
    whole = anchors @ costs
    return np.concatenate([costs, whole - whole.min(axis=1, keepdims=True)])


def _square_norms(X: Any) -> FloatArray:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X)


class MedoidDistances:
    """The k-medoids criterion: distances to the medoid of the cluster.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_candidates), float64
        Distances from every row to every candidate.
    candidates : ndarray of shape (n_candidates,)
        The rows that may be medoids.
    tied : ndarray
        The rows that are assigned by the caller, ascending.
    n_clusters : int
    anchors : CSR matrix of shape (n_anchors, n_tied), optional
        As in `SquaredDistances`.
    """

    def __init__(
        self,
        distances: FloatArray,
        candidates: IntArray,
        tied: IntArray,
        n_clusters: int,
        anchors: sparse.csr_array | None = None,
    ) -> None:
        self.n_clusters, self._anchors = n_clusters, anchors
        self._among_candidates = distances if len(candidates) == len(distances) else distances[candidates]
        free = np.ones(len(distances), dtype=bool)
        free[tied] = False
        self._tied, self._free = distances[tied], distances[np.flatnonzero(free)]

    def at(self, centers: IntArray) -> CenterCosts:
        """The solution with these medoids, as positions among the candidates."""
        choices = self._free[:, centers]
        labels = choices.argmin(axis=1)
        cost = float(choices[np.arange(len(labels)), labels].sum())
        sums, counts = sums_by_label(self._free, labels, self.n_clusters)
        return CenterCosts(centers, _with_anchors(self._tied[:, centers], self._anchors), cost, sums, counts)

    def descend(self, solution: CenterCosts, tied_labels: Labels) -> CenterCosts:
        """The solution with the best medoids for the free rows of `solution` and the labelled tied rows."""
        tied_labels = tied_labels[: len(self._tied)]
        sums, counts = sums_by_label(self._tied, tied_labels, self.n_clusters)
        sums, counts = sums + solution.free_sums, counts + solution.free_counts
        centers = np.where(counts > 0, sums.argmin(axis=1), solution.centers)
        return solution if np.array_equal(centers, solution.centers) else self.at(centers)

    def between(self, first: CenterCosts, second: CenterCosts) -> FloatArray:
        """Distances from the medoids of one solution to the medoids of another."""
        return self._among_candidates[np.ix_(first.centers, second.centers)]


class FixedCosts:
    """Fixed clusters, such as the components of a fitted mixture: each row has a cost in each cluster.

    Parameters
    ----------
    costs : ndarray of shape (n_samples, n_clusters), float64
    tied : ndarray
        The rows that are assigned by the caller, ascending.
    anchors : CSR matrix of shape (n_anchors, n_tied), optional
        As in `SquaredDistances`.
    """

    def __init__(self, costs: FloatArray, tied: IntArray, anchors: sparse.csr_array | None = None) -> None:
        self.n_clusters = costs.shape[1]
        free = np.ones(len(costs), dtype=bool)
        free[tied] = False
        self._tied, self._free_cost = _with_anchors(costs[tied], anchors), float(costs[free].min(axis=1).sum())

    def at(self, centers: IntArray) -> CenterCosts:
        """The only solution; `centers` are the numbers of the clusters."""
        nothing = np.zeros((self.n_clusters, 0))
        return CenterCosts(centers, self._tied, self._free_cost, nothing, np.zeros(self.n_clusters))

    def descend(self, solution: CenterCosts, tied_labels: Labels) -> CenterCosts:
        """The same solution."""
        return solution

    def between(self, first: CenterCosts, second: CenterCosts) -> FloatArray:
        """0 from a cluster to itself, 1 to all others."""
        return 1.0 - np.eye(self.n_clusters)
