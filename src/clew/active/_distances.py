"""Means of rows, and squared distances between rows and points, for dense and sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class Nearest:
    """Squared distance of every row to its nearest marked row, whatever the order in which rows were marked."""

    def __init__(self, n_rows: int) -> None:
        self._measured = np.zeros(n_rows, dtype=bool)
        self._nearest = np.full(n_rows, np.inf)
        # For each measured row: the row, the rows to which it became the nearest, and their distances before.
        self._history: list[tuple[int, IntArray, FloatArray]] = []

    def distances(self, X: Any, marked: npt.NDArray[np.bool_]) -> FloatArray:
        """Update the running minima: add newly marked rows, and remove rows that are no longer marked."""
        n_removed = int((self._measured & ~marked).sum())
        while n_removed:
            row, nearer, before = self._history.pop()
            self._nearest[nearer], self._measured[row] = before, False
            n_removed -= not marked[row]
        for row in np.flatnonzero(marked & ~self._measured).tolist():
            # One row at a time: rounding depends on the block size, and ties would then depend on the order of marks.
            distances = distances_to(X, row)
            nearer = np.flatnonzero(distances < self._nearest)
            self._history.append((row, nearer, self._nearest[nearer]))
            self._nearest[nearer], self._measured[row] = distances[nearer], True
        return self._nearest


def mean_row(X: Any, rows: IntArray) -> FloatArray:
    """The mean of some rows."""
    return np.asarray(X[rows].mean(axis=0), dtype=np.float64).ravel()


def squared_distances(X: Any, rows: IntArray | None, points: FloatArray) -> FloatArray:
    """Squared distances between rows of X (None: all) and points."""
    chosen = X if rows is None else X[rows]
    if sparse.issparse(chosen):
        norms = np.asarray(chosen.multiply(chosen).sum(axis=1), dtype=np.float64).reshape(-1, 1)
    else:
        norms = np.einsum("ij,ij->i", chosen, chosen, dtype=np.float64)[:, None]
    inner = np.asarray(chosen @ points.T, dtype=np.float64)
    return np.maximum(norms - 2 * inner + np.einsum("ij,ij->i", points, points), 0.0)


def dense_row(X: Any, row: int) -> FloatArray:
    """Return a row as a dense matrix of shape (1, n_features)."""
    one = X[[row]]
    return np.asarray(one.toarray() if sparse.issparse(one) else one, dtype=np.float64)


def distances_to(X: Any, row: int) -> FloatArray:
    """Squared distance of every row to one row."""
    return squared_distances(X, None, dense_row(X, row))[:, 0]
