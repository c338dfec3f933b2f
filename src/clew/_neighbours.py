"""Nearest neighbours of rows, exact for small data and approximate for large data; shared neighbours and density.

This is the only search for nearest rows by Euclidean distance. With the extra ``[ann]``, approximate neighbours come
from the graph index of usearch (HNSW, Malkov and Yashunin 2020, `malkov2020`), else from the cells of a Voronoi
partition.
"""

from __future__ import annotations

from importlib.util import find_spec
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
# Edges per row of the graph index, and the lengths of its candidate lists while it is built and searched. With 21,000
# rows of 16 to 64 columns, these values find 90 to 100 % of ten neighbours (`python -m benchmarks neighbours`).
_GRAPH_DEGREE, _GRAPH_BUILD, _GRAPH_SEARCH = 16, 128, 64
# Number of rows whose distances to their neighbours are computed at once.
_DISTANCE_ROWS = 20_000
# Number of edges whose shared neighbours are counted at once.
_EDGES_AT_ONCE = 200_000


def nearest_neighbours(X: Any, n_neighbors: int) -> tuple[FloatArray, IntArray]:
    """Distances and rows of the nearest neighbours of each row, without the row itself. Needs n_neighbors < n_rows."""
    n_rows, n_columns = X.shape
    if n_rows <= _EXACT_ROWS or (n_columns <= _TREE_COLUMNS and not sparse.issparse(X)):
        return NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
    return approximate_neighbours(X, n_neighbors)


def approximate_neighbours(X: Any, n_neighbors: int) -> tuple[FloatArray, IntArray]:
    """Most of the nearest neighbours of each row, nearest first, in less than quadratic time.

    The result depends on X and on whether usearch is installed, and not on a seed or on the number of threads.
    """
    if not sparse.issparse(X) and find_spec("usearch") is not None:
        neighbours = _neighbours_by_graph(X, n_neighbors)
        if neighbours is not None:
            return _sorted_by_distance(X, neighbours)
    return _neighbours_by_cells(X, n_neighbors)


def _neighbours_by_graph(X: Any, n_neighbors: int) -> IntArray | None:
    """Approximate nearest neighbours by usearch's graph index, or None if a search finds too few rows.

    The index holds each distinct row once, because its graph falls apart where many rows are equal.
    """
    # The index holds 32-bit numbers, so the rows are centred and scaled first.
    X = np.asarray(X)
    centre = X.mean(axis=0)
    scale = max(float(np.abs(X - centre).max()), np.finfo(np.float64).tiny)
    rows = np.ascontiguousarray((X - centre) / scale, dtype=np.float32) + np.float32(0)  # no negative zeros
    as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, place, counts = np.unique(as_bytes, return_index=True, return_inverse=True, return_counts=True)
    keys = _search_graph(rows[first], min(n_neighbors + 1, len(first)))
    if keys is None:
        return None
    keys = _with_repeats(keys, place, counts, n_neighbors + 1)[place]
    # The row itself is sorted last and dropped. If repeated rows displaced it, the farthest one is dropped.
    others_first = np.argsort(keys == np.arange(len(rows))[:, None], axis=1, kind="stable")[:, :n_neighbors]
    return np.take_along_axis(keys, others_first, axis=1)


def _search_graph(rows: npt.NDArray[np.float32], n_found: int) -> IntArray | None:
    """The `n_found` nearest rows of each row, itself included, or None if a search finds fewer."""
    from usearch.index import Index

    if len(rows) == 1:
        return np.zeros((1, 1), dtype=np.int64)
    index = Index(
        ndim=rows.shape[1],
        metric="l2sq",
        dtype="f32",
        connectivity=_GRAPH_DEGREE,
        expansion_add=_GRAPH_BUILD,
        expansion_search=max(_GRAPH_SEARCH, 2 * n_found),
    )
    try:
        # One thread: the graph depends on the order in which rows are added.
        index.add(np.arange(len(rows)), rows, threads=1)
        found = index.search(rows, n_found, threads=1)
    except RuntimeError as error:
        if "terminated" in str(error):  # this is what usearch makes of Ctrl-C
            raise KeyboardInterrupt from None
        raise
    return None if (np.asarray(found.counts) < n_found).any() else np.asarray(found.keys).astype(np.int64)


def _with_repeats(keys: IntArray, place: IntArray, counts: IntArray, n_wanted: int) -> IntArray:
    """Replace the neighbours of each distinct row by the rows that are equal to them, `n_wanted` in all.

    For example, rows 0 and 1 are equal, so ``place = [0, 0, 1]`` and ``counts = [2, 1]``. With the neighbours
    ``keys = [[0, 1], [1, 0]]``, the two wanted rows of each distinct row are ``[[0, 1], [2, 0]]``.
    """
    by_value = np.argsort(place, kind="stable")
    starts = np.cumsum(counts) - counts
    ends = np.cumsum(counts[keys], axis=1)
    wanted = np.empty((len(keys), n_wanted), dtype=np.int64)
    for slot in range(n_wanted):
        which = (ends <= slot).sum(axis=1)[:, None]
        key = np.take_along_axis(keys, which, axis=1)[:, 0]
        before = np.take_along_axis(ends, which, axis=1)[:, 0] - counts[key]
        wanted[:, slot] = by_value[starts[key] + slot - before]
    return wanted


def _sorted_by_distance(X: Any, neighbours: IntArray) -> tuple[FloatArray, IntArray]:
    """Exact distances of each row to its neighbours, and the neighbours, nearest first."""
    X = np.asarray(X)
    distances = np.empty(neighbours.shape)
    for start in range(0, len(X), _DISTANCE_ROWS):
        some = slice(start, start + _DISTANCE_ROWS)
        for place, others in enumerate(neighbours[some].T):
            apart = (X[some] - X[others]).astype(np.float64, copy=False)
            distances[some, place] = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    order = np.lexsort((neighbours, distances), axis=1)
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(neighbours, order, axis=1)


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
