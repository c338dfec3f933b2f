"""Nearest neighbours of rows, exact for small data and approximate for large data; shared neighbours and density."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# With more rows (and more columns than a search tree can handle), exact search takes minutes, so only rows of the
# nearest cells are compared.
_EXACT_ROWS, _TREE_COLUMNS = 20_000, 6
_CELL_ROWS, _CELLS_SEARCHED, _BLOCK_ROWS, _MOST_COMPARED = 500, 12, 1_000, 16_000
# Number of edges whose shared neighbours are counted at once.
_EDGES_AT_ONCE = 200_000


def nearest_neighbours(X: Any, n_neighbors: int) -> tuple[FloatArray, IntArray]:
    """Distances and rows of the nearest neighbours of each row, without the row itself. Needs n_neighbors < n_rows."""
    n_rows, n_columns = X.shape
    if n_rows <= _EXACT_ROWS or (n_columns <= _TREE_COLUMNS and not sparse.issparse(X)):
        return NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
    return _neighbours_by_cells(X, n_neighbors)


def _neighbours_by_cells(X: Any, n_neighbors: int) -> tuple[FloatArray, IntArray]:
    """Approximate nearest neighbours: search only the nearest cells of a Voronoi partition around random rows.

    The random rows have a fixed seed, so that the graph depends on X alone.
    """
    n_rows = X.shape[0]
    seeds = np.random.default_rng(0).choice(n_rows, size=max(n_rows // _CELL_ROWS, 1), replace=False)
    cell_of = pairwise_distances_argmin(X, X[seeds])
    n_cells = len(seeds)
    by_cell = np.argsort(cell_of, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(cell_of, minlength=n_cells))])
    nearest_cells = NearestNeighbors(n_neighbors=n_cells).fit(X[seeds]).kneighbors(X[seeds], return_distance=False)
    distances = np.empty((n_rows, n_neighbors))
    neighbours = np.empty((n_rows, n_neighbors), dtype=np.int64)
    for cell in range(n_cells):
        own = by_cell[ends[cell] : ends[cell + 1]]
        others = nearest_cells[cell][nearest_cells[cell] != cell]
        rows_so_far = len(own) + np.cumsum(ends[others + 1] - ends[others])
        n_searched = max(_CELLS_SEARCHED, int(np.searchsorted(rows_so_far, n_neighbors + 1)) + 1)
        around = np.concatenate([by_cell[ends[one] : ends[one + 1]] for one in others[:n_searched]])
        for start in range(0, len(own), _BLOCK_ROWS):
            block = own[start : start + _BLOCK_ROWS]
            # Repeated rows can fill one cell, so a block is compared with itself and a limited number of other rows.
            rest = np.concatenate([own[:start], own[start + _BLOCK_ROWS :], around])
            pool = np.concatenate([block, rest[: max(_MOST_COMPARED, n_neighbors)]])
            far, places = (
                NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(X[pool]).kneighbors(X[block])
            )
            found = pool[places]
            # The row itself is sorted last and dropped. If repeated rows displaced it, the farthest one is dropped.
            others_first = np.argsort(found == block[:, None], axis=1, kind="stable")[:, :n_neighbors]
            distances[block] = np.take_along_axis(far, others_first, axis=1)
            neighbours[block] = np.take_along_axis(found, others_first, axis=1)
    return distances, neighbours


def shared_neighbours(neighbours: IntArray) -> IntArray:
    """Number of shared neighbours of each row with each of its neighbours (Eq. 1)."""
    n_rows, k = neighbours.shape
    ends = np.arange(0, n_rows * k + 1, k)
    sets = sparse.csr_array((np.ones(n_rows * k, dtype=np.int64), np.sort(neighbours).ravel(), ends), (n_rows, n_rows))
    omega = np.empty(n_rows * k, dtype=np.int64)
    for start in range(0, n_rows * k, _EDGES_AT_ONCE):
        edges = np.arange(start, min(start + _EDGES_AT_ONCE, n_rows * k))
        omega[edges] = sets[edges // k].multiply(sets[neighbours.ravel()[edges]]).sum(axis=1)
    return omega.reshape(n_rows, k)


def local_density(X: Any, n_neighbors: int) -> FloatArray:
    """Local density score: the mean number of neighbours that a row shares with its neighbours."""
    n_neighbors = min(n_neighbors, X.shape[0] - 1)
    if n_neighbors < 1:
        return np.zeros(X.shape[0])
    return density_of(shared_neighbours(nearest_neighbours(X, n_neighbors)[1]))


def density_of(shared: IntArray) -> FloatArray:
    """Local density score of each row, from the result of `shared_neighbours`."""
    return shared.sum(axis=1) / shared.shape[1]
