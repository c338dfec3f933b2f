"""Distances between all rows under a metric that people name, a function, or a matrix of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_distances, euclidean_distances, paired_cosine_distances

from clew._validation import check_matrix
from clew.exceptions import DataError, ParameterError
from clew.kernels.edit_distance import edit_distances

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

VECTOR_METRICS = ("euclidean", "manhattan", "chebyshev", "mahalanobis", "cosine")
METRICS = (*VECTOR_METRICS, "edit", "precomputed")
_SCIPY_NAMES = {"manhattan": "cityblock", "chebyshev": "chebyshev", "mahalanobis": "mahalanobis"}
# Distances kept at most (256 MB); beyond 5,700 rows only a sample of them can be a medoid.
MOST_DISTANCES = 32_000_000
# Distances in single precision differ by this share of the longest in their two directions.
_SINGLE_PRECISION = 1e-5


def distance_matrix(
    X: Any, metric: Any, rng: np.random.Generator | None = None, *, segments: int | None = None
) -> tuple[FloatArray, IntArray]:
    """Distances from all rows to all rows, or to a sample of them when there are too many; and which rows those are.

    Parameters
    ----------
    X : array-like, sparse matrix, sequence of sequences (``metric="edit"``) or square matrix (``"precomputed"``)
    metric : str, callable or square array
        One of `METRICS`; a function of two rows; or the distances themselves.
    rng : Generator, optional
        Draws the sample; without it there is none.
    segments : int, optional
        Cut the columns into so many runs and add up their distances, as for time series.
    """
    X, metric = check_metric(X, metric)
    if metric in ("precomputed", "edit"):
        matrix = X if metric == "precomputed" else _edit(X)
        return matrix, np.arange(len(matrix))
    chosen = np.arange(X.shape[0])
    if rng is not None and X.shape[0] ** 2 > MOST_DISTANCES:
        chosen = np.sort(rng.choice(X.shape[0], size=max(1, MOST_DISTANCES // X.shape[0]), replace=False))
    if segments is None:
        return _refuse_bad(_between(X, chosen, metric), chosen), chosen
    n_columns = X.shape[1]
    if not isinstance(segments, int | np.integer) or isinstance(segments, bool) or not 1 <= segments <= n_columns:
        raise ParameterError(f"segments={segments!r}: expected an integer from 1 to the {n_columns} columns of X.")
    ends = np.linspace(0, n_columns, int(segments) + 1).round().astype(int)
    parts = [_between(X[:, a:b], chosen, metric) for a, b in itertools.pairwise(ends)]
    return _refuse_bad(np.sum(parts, axis=0), chosen), chosen


def check_metric(X: Any, metric: Any) -> tuple[Any, Any]:
    """Rows and their metric, checked; a matrix in the place of a metric is the distances themselves."""
    if not isinstance(metric, str) and not callable(metric) and (hasattr(metric, "__len__") or sparse.issparse(metric)):
        X, metric = metric, "precomputed"
    if not callable(metric) and metric not in METRICS:
        raise ParameterError(f"metric={metric!r}: expected one of {', '.join(METRICS)}, a function or a matrix.")
    if metric == "precomputed":
        return _given(X), metric
    if metric == "edit":
        return X, metric
    return check_matrix(X), _numeric(metric) if callable(metric) else metric


def _numeric(metric: Callable[[Any, Any], Any]) -> Callable[[Any, Any], float]:
    """The same function; what it gives must be a number."""

    def measured(one: Any, other: Any) -> float:
        value = metric(one, other)
        if isinstance(value, str) or value is None or np.ndim(value):
            raise DataError(f"The metric function gives {value!r} for two rows: expected a number.")
        return float(value)

    return measured


def pair_distances(X: Any, pairs: IntArray, metric: Any) -> FloatArray:
    """Distance of each pair of rows, as `check_metric` gave them; nothing is computed for the others."""
    if metric == "precomputed":
        return np.asarray(X[pairs[:, 0], pairs[:, 1]])
    first, second = (X[pairs[:, side]] for side in (0, 1))
    if sparse.issparse(X):
        first, second = first.toarray(), second.toarray()
    if callable(metric):
        return np.array([metric(a, b) for a, b in zip(first, second, strict=True)], dtype=np.float64)
    if metric == "cosine":
        return np.asarray(paired_cosine_distances(first, second), dtype=np.float64)
    signed = first.astype(np.float64) - second
    if metric == "mahalanobis":
        rows = X.toarray() if sparse.issparse(X) else X
        return np.asarray(np.sqrt(np.einsum("ij,jk,ik->i", signed, _inverse_covariance(rows), signed)))
    difference = np.abs(signed)
    if metric == "euclidean":
        return np.asarray(np.sqrt((difference**2).sum(axis=1)))
    return np.asarray(difference.sum(axis=1) if metric == "manhattan" else difference.max(axis=1))


def _between(X: Any, chosen: npt.NDArray[Any], metric: Any) -> FloatArray:
    if metric == "euclidean":
        if sparse.issparse(X):
            return np.asarray(euclidean_distances(X, X[chosen]), dtype=np.float64)
        return np.asarray(cdist(X, X[chosen]))
    if metric == "cosine":
        return np.asarray(np.maximum(cosine_distances(X, X[chosen]), 0.0), dtype=np.float64)
    rows = X.toarray() if sparse.issparse(X) else X
    if metric == "mahalanobis":
        return np.asarray(cdist(rows, rows[chosen], "mahalanobis", VI=_inverse_covariance(rows)))
    return np.asarray(cdist(rows, rows[chosen], metric if callable(metric) else _SCIPY_NAMES[metric]))


def _inverse_covariance(rows: FloatArray) -> FloatArray:
    """Columns that say the same twice have no inverse covariance: the pseudo-inverse leaves them out."""
    if len(rows) == 1:  # which is 0 away from itself in any
        return np.eye(rows.shape[1])
    return np.asarray(np.linalg.pinv(np.atleast_2d(np.cov(rows, rowvar=False)), hermitian=True))


def _given(distances: Any) -> FloatArray:
    if sparse.issparse(distances):
        raise DataError("The distances are a sparse matrix, whose gaps may be 0 or unknown. Give a full one.")
    try:
        matrix = np.ascontiguousarray(distances, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("The distances hold something that is no number. Give a square matrix of numbers.") from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(
            f"The distances have shape {matrix.shape}: expected a square matrix, a row and a column per row."
        )
    matrix = _refuse_bad(matrix, np.arange(len(matrix)))
    gaps = np.abs(matrix - matrix.T)
    row, column = np.unravel_index(gaps.argmax(), gaps.shape) if gaps.size else (0, 0)
    if gaps.size and gaps[row, column] > _SINGLE_PRECISION * matrix.max():
        raise DataError(
            f"The distance between rows {row} and {column} is {matrix[row, column]:g} one way and "
            f"{matrix[column, row]:g} the other. Give a symmetric matrix: of D, perhaps (D + D.T) / 2."
        )
    return matrix


def _refuse_bad(matrix: FloatArray, chosen: IntArray) -> FloatArray:
    """The distances to the chosen rows, if all of them can be added up."""
    bad = ~np.isfinite(matrix) | (matrix < 0)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        value = matrix[row, column]
        what = "NaN" if np.isnan(value) else f"{value:g}"
        raise DataError(
            f"The distance between rows {row} and {chosen[column]} is {what}: expected a finite number >= 0."
        )
    return matrix


def _edit(sequences: Any) -> FloatArray:
    """Insertions, deletions, substitutions and swaps that turn one sequence into another."""
    if hasattr(sequences, "to_list"):  # a column of a frame
        sequences = sequences.to_list()
    if isinstance(sequences, str) or not isinstance(sequences, Sequence | np.ndarray):
        raise DataError("metric='edit' compares sequences: give a list of texts, or of lists of symbols.")
    numbers: dict[Any, int] = {}
    try:
        coded = [[numbers.setdefault(symbol, len(numbers)) for symbol in sequence] for sequence in sequences]
    except TypeError:
        raise DataError("metric='edit' compares sequences: give a list of texts, or of lists of symbols.") from None
    lengths = np.array([len(sequence) for sequence in coded], dtype=np.int64)
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    symbols = np.array([symbol for sequence in coded for symbol in sequence], dtype=np.int64)
    first, second = np.triu_indices(len(coded), 1)
    found = np.empty(len(first))
    size = int(lengths.max(initial=0)) + 2
    edit_distances(
        pointers,
        symbols,
        first.astype(np.int64),
        second.astype(np.int64),
        np.zeros((size, size), dtype=np.int64),
        np.zeros(max(len(numbers), 1), dtype=np.int64),
        found,
    )
    matrix = np.zeros((len(coded), len(coded)))
    matrix[first, second] = found
    return np.asarray(matrix + matrix.T)
