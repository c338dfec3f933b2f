"""Distances between all rows, by a named metric, a function or a given matrix."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.metrics.pairwise import cosine_distances, euclidean_distances, paired_cosine_distances

from clew._validation import check_matrix, check_square, refuse_negative
from clew.exceptions import DataError, ParameterError
from clew.kernels.edit_distance import edit_distances

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

VECTOR_METRICS = ("euclidean", "manhattan", "chebyshev", "mahalanobis", "cosine")
METRICS = (*VECTOR_METRICS, "edit", "precomputed")
_SCIPY_NAMES = {"manhattan": "cityblock", "chebyshev": "chebyshev", "mahalanobis": "mahalanobis"}
# Largest number of distances in memory (256 MB). With more than 5,700 rows, only a sample of rows can be medoids.
MOST_DISTANCES = 32_000_000
# Number of rows whose distances to all later rows are computed at once.
_ROWS_AT_ONCE = 256


def distance_matrix(
    X: Any, metric: Any, rng: np.random.Generator | None = None, *, segments: int | None = None
) -> tuple[FloatArray, IntArray]:
    """Distances from all rows to all rows, or to a sample if there are too many; also the rows of the sample.

    Parameters
    ----------
    X : array-like, sparse matrix, sequence of sequences (``metric="edit"``) or square matrix (``"precomputed"``)
    metric : str, callable or square array
        One of `METRICS`, a function of two rows, or the distances themselves.
    rng : Generator, optional
        Random generator of the sample. Without it all rows are used.
    segments : int, optional
        Split the columns into this many segments and add up their distances, as for time series.
    """
    X, metric = check_metric(X, metric)
    if metric in ("precomputed", "edit"):
        matrix = X if metric == "precomputed" else _edit(X)
        return matrix, np.arange(len(matrix))
    chosen = np.arange(X.shape[0])
    if rng is not None and X.shape[0] ** 2 > MOST_DISTANCES:
        chosen = np.sort(rng.choice(X.shape[0], size=max(1, MOST_DISTANCES // X.shape[0]), replace=False))
    if segments is None:
        return refuse_negative(_between(X, chosen, metric), "dissimilarity", chosen), chosen
    n_columns = X.shape[1]
    if not isinstance(segments, int | np.integer) or isinstance(segments, bool) or not 1 <= segments <= n_columns:
        raise ParameterError(f"segments={segments!r}: expected an integer from 1 to the {n_columns} columns of X.")
    ends = np.linspace(0, n_columns, int(segments) + 1).round().astype(int)
    parts = [_between(X[:, a:b], chosen, metric) for a, b in itertools.pairwise(ends)]
    return refuse_negative(np.sum(parts, axis=0), "dissimilarity", chosen), chosen


def condensed_distances(X: Any, metric: str) -> FloatArray:
    """Distances between all pairs of checked rows, in SciPy's condensed form; a new array of double precision.

    Parameters
    ----------
    X : array or sparse matrix, or square matrix of distances (``metric="precomputed"``)
    metric : str
        One of `VECTOR_METRICS`, or "precomputed".
    """
    if metric == "precomputed":
        return np.array(squareform(X, checks=False), dtype=np.float64)
    if metric == "cosine" or (metric == "euclidean" and sparse.issparse(X)):
        return _condensed_by_blocks(X, metric)
    rows = X.toarray() if sparse.issparse(X) else X
    options = {"VI": _inverse_covariance(rows)} if metric == "mahalanobis" else {}
    return np.asarray(pdist(rows, _SCIPY_NAMES.get(metric, metric), **options))


def _condensed_by_blocks(X: Any, metric: str) -> FloatArray:
    n_rows = X.shape[0]
    found = np.empty(n_rows * (n_rows - 1) // 2)
    for start in range(0, n_rows, _ROWS_AT_ONCE):
        rest = X[start:]
        block = _between(rest, np.arange(min(_ROWS_AT_ONCE, n_rows - start)), metric)
        for place, distances in enumerate(np.ascontiguousarray(block.T)):
            row = start + place
            first = row * (2 * n_rows - row - 1) // 2
            found[first : first + n_rows - row - 1] = distances[place + 1 :]
    return found


def check_metric(X: Any, metric: Any) -> tuple[Any, Any]:
    """Check rows and metric. If `metric` is a matrix, it holds the distances themselves."""
    if not isinstance(metric, str) and not callable(metric) and (hasattr(metric, "__len__") or sparse.issparse(metric)):
        X, metric = metric, "precomputed"
    if not callable(metric) and metric not in METRICS:
        raise ParameterError(f"metric={metric!r}: expected one of {', '.join(METRICS)}, a function or a matrix.")
    if metric == "precomputed":
        return _given(X), metric
    if metric == "edit":
        return X, metric
    return check_matrix(X), numeric(metric) if callable(metric) else metric


def numeric(metric: Callable[[Any, Any], Any]) -> Callable[[Any, Any], float]:
    """Wrap a function so that a result that is not a number raises an error."""

    def measured(one: Any, other: Any) -> float:
        value = metric(one, other)
        if isinstance(value, str) or value is None or np.ndim(value):
            raise DataError(f"The metric function gives {value!r} for two rows: expected a number.")
        return float(value)

    return measured


def pair_distances(X: Any, pairs: IntArray, metric: Any) -> FloatArray:
    """Distance of each of the given pairs of rows. X and metric come from `check_metric`."""
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
    if metric == "mahalanobis":
        rows = X.toarray() if sparse.issparse(X) else X
        return np.asarray(cdist(rows, rows[chosen], "mahalanobis", VI=_inverse_covariance(rows)))
    return distances_between(X, X[chosen], metric)


def distances_between(X: Any, others: Any, metric: Any) -> FloatArray:
    """Distances from rows to other rows, by a function or a named metric that needs no covariance."""
    if metric == "cosine":
        return np.asarray(np.maximum(cosine_distances(X, others), 0.0), dtype=np.float64)
    if metric == "euclidean" and sparse.issparse(X):
        return np.asarray(euclidean_distances(X, others), dtype=np.float64)
    X, others = (rows.toarray() if sparse.issparse(rows) else rows for rows in (X, others))
    return np.asarray(cdist(X, others, numeric(metric) if callable(metric) else _SCIPY_NAMES.get(metric, metric)))


def _inverse_covariance(rows: FloatArray) -> FloatArray:
    """Inverse covariance of the columns, or the pseudo-inverse if columns are linearly dependent."""
    if len(rows) == 1:  # which is 0 away from itself in any
        return np.eye(rows.shape[1])
    return np.asarray(np.linalg.pinv(np.atleast_2d(np.cov(rows, rowvar=False)), hermitian=True))


def _given(distances: Any) -> FloatArray:
    if sparse.issparse(distances):
        raise DataError(
            "The distances are a sparse matrix, in which a missing entry may mean 0 or unknown. Give a dense one."
        )
    try:
        matrix = np.ascontiguousarray(distances, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("The distances hold a value that is not a number. Give a square matrix of numbers.") from None
    check_square(matrix, "dissimilarity")
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
