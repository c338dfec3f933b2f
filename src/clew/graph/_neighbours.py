"""The graph of nearest neighbours: exact for small data, found within cells for large data."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from clew.partitional import SeededKMeans

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Up to this many rows all distances are compared; beyond, those to rows of the nearest cells.
_EXACT_ROWS = 20_000
# Cells hold about this many rows each, and a row looks into this many: the search is linear in the rows.
_ROWS_PER_CELL, _CELLS_SEEN = 400, 4
# Centres of cells are learnt from a sample of this size.
_SAMPLE = 20_000


def neighbour_graph(X: FloatArray, n_neighbors: int, seed: int) -> sparse.csr_array:
    r"""Symmetric weights between neighbours, near 1 for the closest.

    The weight of rows i and j, one of which is among the nearest of the other, is
    :math:`\exp(-d_{ij}^2 / (s_i s_j))` with :math:`s_i` the distance of row i to its farthest neighbour.
    """
    n_rows = len(X)
    n_neighbors = min(n_neighbors, n_rows - 1)
    if n_neighbors == 0:
        return sparse.csr_array((n_rows, n_rows))
    distances, others = nearest(X, n_neighbors, seed)
    scale = distances[:, -1] + np.finfo(np.float64).tiny ** 0.25  # rows with equal neighbours only: all weights are 1
    weights = np.exp(-(distances**2) / (scale[:, None] * scale[others]))
    rows = np.repeat(np.arange(n_rows), n_neighbors)
    graph = sparse.csr_array((weights.ravel(), (rows, others.ravel())), shape=(n_rows, n_rows))
    return sparse.csr_array(graph.maximum(graph.T))


def nearest(X: FloatArray, n_neighbors: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Distances to the nearest other rows, and which they are, nearest first."""
    if len(X) <= _EXACT_ROWS:
        distances, others = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
        return distances, others.astype(np.int64)
    return _nearest_in_cells(X, n_neighbors, seed)


def _nearest_in_cells(X: FloatArray, n_neighbors: int, seed: int) -> tuple[FloatArray, IntArray]:
    """Search the rows of the nearest cells of a k-means partition only."""
    sample = np.random.default_rng(seed).choice(len(X), _SAMPLE, replace=False)
    n_cells = len(X) // _ROWS_PER_CELL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rough cells do
        cells = SeededKMeans(n_cells, n_init=1, max_iter=10, tol=1.0, random_state=seed).fit(X[sample])
    cell_of = cells.predict(X)
    finder = NearestNeighbors(n_neighbors=min(_CELLS_SEEN, n_cells)).fit(cells.cluster_centers_)
    seen = finder.kneighbors(cells.cluster_centers_, return_distance=False)
    rows_of = [np.flatnonzero(cell_of == cell) for cell in range(n_cells)]
    distances = np.empty((len(X), n_neighbors))
    others = np.empty((len(X), n_neighbors), dtype=np.int64)
    for cell, rows in enumerate(rows_of):
        if not len(rows):
            continue
        pool = np.concatenate([rows_of[one] for one in seen[cell]])
        if len(pool) <= n_neighbors:  # a lonely cell: compare with everybody
            pool = np.arange(len(X))
        found, places = (
            NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(X[pool]).kneighbors(X[rows])
        )
        other = pool[places]
        own = other == rows[:, None]
        own[~own.any(axis=1), -1] = True  # copies crowded the row itself out: drop the last
        distances[rows] = found[~own].reshape(len(rows), n_neighbors)
        others[rows] = other[~own].reshape(len(rows), n_neighbors)
    return distances, others
