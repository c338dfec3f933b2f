"""Merge clusters without a full distance matrix: along a neighbour graph, or between centroids within a bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from clew.constraints import Closure
from clew.constraints._arrays import distinct_pairs
from clew.exceptions import DataError
from clew.hierarchical._agglomeration import LINKAGES, FloatArray, IntArray, Merges
from clew.kernels import sparse_linkage as kernels

# Number of pivots for the triangle inequality. Each is the centre farthest from the earlier ones.
_PIVOTS = 4
# Tolerance for rounding errors of distances to pivots, as a share of the largest squared distance.
_ROUNDING = 1e-12


def graph_merges(graph: Any, linkage: str, closed: Closure) -> Merges:
    """Merge along the edges of a sparse matrix of distances; only edges count for the distance of two clusters."""
    ends, values, counts = _component_edges(*_edges(graph), linkage, closed)
    n_edges, n = len(ends), closed.n_components
    pairs, heights = np.empty((max(n - 1, 0), 2), dtype=np.int64), np.empty(max(n - 1, 0))
    found = kernels.merge_edges(
        ends,
        values,
        counts,
        LINKAGES.index(linkage),
        *closed.graph,
        *_forest(n),
        np.full(n, -1),
        np.full(n, -1),
        np.empty(2 * n_edges, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
        np.full(n, -1),
        np.empty(2 * n_edges, dtype=np.int64),
        np.empty(2 * n_edges),
        pairs,
        heights,
    )
    return Merges(closed.first_row[pairs[:found]], heights[:found])


def merges_within(X: Any, closed: Closure, gamma: float) -> tuple[Merges, int]:
    """Merge the closest centroids while they are at most `gamma` apart. Also return how many distances it computed."""
    n = closed.n_components
    member = sparse.csr_array((np.ones(X.shape[0]), (closed.component_of, np.arange(X.shape[0]))))
    centers = np.ascontiguousarray(_dense(member @ X) / closed.sizes[:, None], dtype=np.float64)
    pivots = _pivots(centers)
    to_pivots = cdist(centers, pivots)
    pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    n_computed = np.array([n * len(pivots)])
    found = kernels.merge_centroids(
        centers,
        closed.sizes.astype(np.float64),
        pivots,
        to_pivots,
        gamma**2,
        _ROUNDING * float(to_pivots.max()) ** 2,
        *closed.graph,
        *_forest(n),
        np.arange(n),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        n_computed,
        pairs,
        heights,
    )
    return Merges(closed.first_row[pairs[:found]], np.sqrt(heights[:found])), int(n_computed[0])


def _forest(n: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Arrays in which each component is its own cluster: parents, next components, last components, and marks."""
    return np.arange(n), np.full(n, -1), np.arange(n), np.full(n, -1)


def _edges(graph: Any) -> tuple[IntArray, FloatArray]:
    """Distinct edges of a sparse matrix, lower row first. Raises if the two directions have different distances."""
    stored = sparse.coo_array(graph)
    low, high = np.minimum(stored.row, stored.col), np.maximum(stored.row, stored.col)
    order = np.lexsort((high, low))
    order = order[low[order] < high[order]]
    ends = np.column_stack([low[order], high[order]]).astype(np.int64)
    values = stored.data[order].astype(np.float64)
    again = np.flatnonzero((ends[1:] == ends[:-1]).all(axis=1))
    differs = again[~np.isclose(values[again], values[again + 1], rtol=1e-5)]
    if len(differs):
        (one, other), first, second = ends[differs[0]], values[differs[0]], values[differs[0] + 1]
        raise DataError(
            f"The distance between rows {one} and {other} is {first:g} one way and {second:g} the other way. "
            "Give one distance per pair of neighbours."
        )
    once = np.setdiff1d(np.arange(len(ends)), again + 1)
    return ends[once], values[once]


def _component_edges(
    ends: IntArray, values: FloatArray, linkage: str, closed: Closure
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Edges between components: distinct pairs, with the lowest, highest or mean distance and the number of edges."""
    ends = closed.component_of[ends]
    apart = ends[:, 0] != ends[:, 1]
    pairs, _, place = distinct_pairs(ends[apart])
    counts = np.bincount(place, minlength=len(pairs))
    if linkage == "average":
        joined = np.bincount(place, values[apart], minlength=len(pairs)) / counts
    else:
        joined = np.full(len(pairs), np.inf if linkage == "single" else -np.inf)
        (np.minimum if linkage == "single" else np.maximum).at(joined, place, values[apart])
    return pairs, joined, counts.astype(np.float64)


def _pivots(centers: FloatArray) -> FloatArray:
    """Choose some of the centres as pivots, each the farthest from the ones before it."""
    chosen = [0]
    to_chosen = cdist(centers, centers[:1])[:, 0]
    while len(chosen) < min(_PIVOTS, len(centers)):
        chosen.append(int(to_chosen.argmax()))
        to_chosen = np.minimum(to_chosen, cdist(centers, centers[chosen[-1:]])[:, 0])
    return np.ascontiguousarray(centers[chosen])


def _dense(matrix: Any) -> Any:
    return matrix.toarray() if sparse.issparse(matrix) else matrix
