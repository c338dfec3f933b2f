"""Checks of user input: parameters, rows, matrices, weights, randomness. Solvers trust checked values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import validate_data

from clew._frames import as_frame, without_mask
from clew.datasets._as_table import as_table
from clew.datasets._read import Table
from clew.exceptions import DataError, DataTypeError, ParameterError

# Number of decimals to which unit vectors of the same direction agree.
_DIRECTION_DIGITS = 6
# Largest asymmetry of a symmetric matrix in single precision, as a share of its largest entry.
_SINGLE_PRECISION = 1e-5

# Meaning of the entries of a square X: large for dissimilar rows, large for similar rows, above 0 for "together" and
# below 0 for "apart", or inner products.
Pairwise = Literal["dissimilarity", "affinity", "signed graph", "kernel"]
_ENTRY = {"dissimilarity": "distance", "affinity": "affinity", "signed graph": "weight", "kernel": "kernel"}
_ENTRIES = {
    "dissimilarity": "distances", "affinity": "affinities", "signed graph": "weights", "kernel": "kernel's values",
}  # fmt: skip
# Kinds whose entries may be below 0.
_SIGNED = ("signed graph", "kernel")


@dataclass(frozen=True)
class Allowed:
    """The values that a parameter may have, and a description of them.

    `in_shell` says whether a value can be typed in a shell. Functions, estimators and arrays cannot, and None is the
    absence of a value.
    """

    what: str
    accepts: Callable[[Any], bool]
    in_shell: bool = True

    def __or__(self, other: Allowed) -> Allowed:
        return Allowed(
            f"{self.what} or {other.what}",
            lambda value: self.accepts(value) or other.accepts(value),
            self.in_shell or other.in_shell,
        )


def _is_a(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an int beyond the largest float
        return np.inf


def integer(low: int) -> Allowed:
    """Whole numbers from `low` on."""
    return Allowed(
        f"an integer >= {low}",
        lambda value: _is_a(Integral, value) and value >= low,
    )


def below_zero() -> Allowed:
    """Negative whole numbers."""
    return Allowed("a negative integer", lambda value: _is_a(Integral, value) and value < 0)


def number(low: float, high: float = np.inf) -> Allowed:
    """Numbers from `low` to `high`."""
    what = f"a finite number >= {low:g}" if high == np.inf else f"a number from {low:g} to {high:g}"
    return Allowed(
        what,
        lambda value: _is_a(Real, value) and np.isfinite(_as_float(value)) and low <= _as_float(value) <= high,
    )


def above(low: float) -> Allowed:
    """Finite numbers greater than `low`."""
    return Allowed(
        f"a finite number > {low:g}",
        lambda value: _is_a(Real, value) and low < _as_float(value) < np.inf,
    )


def below(low: float, high: float) -> Allowed:
    """Numbers from `low` to below `high`."""
    return Allowed(
        f"a number from {low:g} to below {high:g}",
        lambda value: _is_a(Real, value) and low <= _as_float(value) < high,
    )


def at_most(high: float) -> Allowed:
    """Finite numbers up to `high`."""
    return Allowed(
        f"a finite number <= {high:g}",
        lambda value: _is_a(Real, value) and np.isfinite(_as_float(value)) and _as_float(value) <= high,
    )


def words(*choices: str) -> Allowed:
    """One of the given words."""
    return Allowed(" or ".join(map(repr, choices)), lambda value: isinstance(value, str) and value in choices)


def array_like() -> Allowed:
    """Accept an array, or anything that has rows."""
    return Allowed("an array", lambda value: not isinstance(value, str) and hasattr(value, "__len__"), in_shell=False)


CALLABLE = Allowed("a function", callable, in_shell=False)
ESTIMATOR = Allowed("an estimator with fit_predict", lambda value: hasattr(value, "fit_predict"), in_shell=False)
BOOLEAN = Allowed("True or False", lambda value: isinstance(value, bool | np.bool_))


def texts() -> Allowed:
    """Lists of texts, such as names of columns."""
    return Allowed(
        "a list of str",
        lambda value: isinstance(value, list | tuple) and all(isinstance(one, str) for one in value),
    )


ERROR_RATE = below(0, 0.5)
NONE = Allowed("None", lambda value: value is None, in_shell=False)
RANDOM_STATE = Allowed(
    "an integer >= 0, a numpy Generator or RandomState, or None",
    lambda value: (
        value is None
        or isinstance(value, np.random.Generator | np.random.RandomState)
        or value is np.random
        or (_is_a(Integral, value) and value >= 0)
    ),
)


def check_parameters(owner: Any, allowed: dict[str, Allowed]) -> None:
    """Raise for the first parameter of `owner` that does not have an allowed value."""
    for name, values in allowed.items():
        value = getattr(owner, name)
        if not values.accepts(value):
            raise ParameterError(f"{name}={value!r} in {type(owner).__name__}: expected {values.what}.")


def as_generator(random_state: Any) -> np.random.Generator:
    """Convert a `random_state` to a random number generator."""
    if not RANDOM_STATE.accepts(random_state):
        raise ParameterError(f"random_state={random_state!r}: expected {RANDOM_STATE.what}.")
    if random_state is np.random:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)


def check_rows(estimator: Any, X: Any, *, reset: bool, accept_sparse: bool) -> Any:
    """Convert X to a C-contiguous float array or CSR matrix. float32 is kept; text and missing values are refused."""
    X = without_mask(X)
    if not hasattr(X, "shape") and hasattr(X, "X"):
        raise DataTypeError(f"X is an object of type {type(X).__name__}, not rows. Pass the rows in its attribute X.")
    frame = as_frame(X)
    names = None if frame is None else _refuse_text(frame)
    X = X if frame is None else frame.to_native()
    if sparse.issparse(X) and X.format == "csr" and X.indices.dtype == np.int64 and X.nnz < 2**31 > max(X.shape):
        # scipy picks 64-bit indices more often than it needs them; scikit-learn refuses them
        X = type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accept_sparse else False,
            accept_large_sparse=False,
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
    except TypeError as error:  # numpy's promotion errors are TypeErrors too
        raise DataTypeError(f"X cannot be used: {error}") from error
    except ValueError as error:
        raise DataError(_reworded(str(error))) from error
    _refuse_missing(checked, names)
    _refuse_huge(checked)
    return checked


def check_features(estimator: Any, n_columns: int, names: tuple[str, ...] | None, *, reset: bool) -> None:
    """Set the number and the names of the columns, or with ``reset=False`` refuse others than were fitted."""
    fitted = getattr(estimator, "feature_names_in_", None)
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_features_in_ = n_columns
        if names is not None:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return
    if n_columns != estimator.n_features_in_:
        raise DataError(
            f"X has {n_columns} columns, but {type(estimator).__name__} was fitted on {estimator.n_features_in_}."
        )
    if names is not None and fitted is not None and list(names) != fitted.tolist():
        raise DataError(f"X has the columns {', '.join(names)}, but {', '.join(fitted)} were fitted, in this order.")


def is_table(X: Any) -> bool:
    """Whether X is a table of records: a `Table`, a list of dicts, or a frame with a column that is not numeric."""
    if isinstance(X, Table):
        return True
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(isinstance(row, Mapping) for row in X)
    frame = as_frame(X)
    return frame is not None and not all(dtype.is_numeric() for dtype in frame.schema.values())


def check_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """Convert X to a table of records. With ``reset=False`` it must have the fitted columns."""
    table = as_table(X)
    if not table.n_rows:
        raise DataError("X has 0 rows. Give at least one.")
    if reset:
        estimator.n_features_in_ = len(table.columns)
        estimator.feature_names_in_ = np.array(table.columns, dtype=object)
        return table
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is None:
        raise DataError("X is a table, but the estimator was fitted on an array without column names. Pass an array.")
    for name in fitted.tolist():
        table.column(name)  # an unknown name raises an error that lists the columns
    return table


def check_pairwise(
    estimator: Any, X: Any, kind: Pairwise, *, reset: bool, accept_sparse: bool, asymmetric: bool = False
) -> Any:
    """Check a matrix with a row and a column for each row of the data; entries are >= 0 unless the kind is signed.

    It must be symmetric unless `asymmetric`. With ``reset=False`` the rows are new rows, and the columns are the fitted
    rows.
    """
    if sparse.issparse(X) and kind == "dissimilarity":
        raise DataError(
            "The distances are a sparse matrix, in which a missing entry may mean 0 or unknown. Give a dense one."
        )
    matrix = check_rows(estimator, X, reset=reset, accept_sparse=accept_sparse)
    if reset:
        check_square(matrix, kind, asymmetric=asymmetric)
    elif kind not in _SIGNED:
        refuse_negative(matrix, kind, np.arange(matrix.shape[1]))
    return matrix


def check_neighbour_graph(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check a CSR matrix of distances to neighbours. A missing entry is a row out of reach, a stored 0 an equal row.

    With ``reset=False`` the rows are new rows, and the columns are the fitted rows.
    """
    graph = check_rows(estimator, X, reset=reset, accept_sparse=True)
    if reset:
        _refuse_oblong(graph, "dissimilarity")
    if not graph.has_canonical_format:
        graph = graph.copy()
        graph.sum_duplicates()
    return refuse_negative(graph, "dissimilarity", np.arange(graph.shape[1]))


def check_square(matrix: Any, kind: Pairwise, *, asymmetric: bool = False) -> None:
    """Raise if a matrix is not square, not symmetric (unless allowed), or has entries that its kind does not allow."""
    _refuse_oblong(matrix, kind)
    if kind not in _SIGNED:
        refuse_negative(matrix, kind, np.arange(matrix.shape[0]))
    if not matrix.shape[0] or asymmetric:
        return
    gaps = abs(matrix - matrix.T)
    row, column = np.unravel_index(gaps.argmax(), gaps.shape)
    if gaps[row, column] > _SINGLE_PRECISION * abs(matrix).max():
        raise DataError(
            f"The {_ENTRY[kind]} between rows {row} and {column} is {matrix[row, column]:g} one way and "
            f"{matrix[column, row]:g} the other. Give a symmetric matrix, such as (D + D.T) / 2."
        )


def _refuse_oblong(matrix: Any, kind: Pairwise) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"The {_ENTRIES[kind]} have shape {matrix.shape}: expected a square matrix, rows by rows.")


def refuse_negative(matrix: Any, kind: Pairwise, columns: npt.NDArray[np.int64]) -> Any:
    """Return the matrix if every entry is finite and >= 0. Column j of the matrix is row `columns[j]` of the data."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    bad = ~np.isfinite(values) | (values < 0)
    if bad.any():
        row, column = (int(places[bad.ravel()][0]) for places in _places(matrix))
        value = matrix[row, column]
        what = "NaN" if np.isnan(value) else f"{value:g}"
        raise DataError(
            f"The {_ENTRY[kind]} between rows {row} and {columns[column]} is {what}: expected a finite number >= 0."
        )
    return matrix


def _places(matrix: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Row and column of each stored entry."""
    if sparse.issparse(matrix):
        return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.indices
    return np.divmod(np.arange(matrix.size), matrix.shape[1])


def refuse_negative_counts(X: Any, method: str) -> None:
    """Raise if an entry of X is below 0, for methods that take counts."""
    values = X.data if sparse.issparse(X) else X
    if (values < 0).any():
        row, column = (int(places[(values < 0).ravel()][0]) for places in _places(X))
        raise DataError(
            f"Negative values in data passed to {method}: X[{row}, {column}] is {X[row, column]:g}. It takes counts, "
            "such as scikit-learn's CountVectorizer makes from texts, not scaled or reduced columns."
        )


def check_given(given: Any, n_samples: int) -> npt.NDArray[np.int64]:
    """Number the known clusters in the order in which they appear. Noise (-1) stays -1.

    Labels ``["b", "b", "a"]`` are 0, 0, 1. At least two clusters must be known.
    """
    try:
        labels = np.asarray(given)
        values, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    except (TypeError, ValueError):
        raise DataError("given: expected one label per row, all numbers or all text.") from None
    if labels.shape != (n_samples,):
        raise DataError(f"given has shape {labels.shape}, but X has {n_samples} rows. Give one label per row.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise DataError(f"given[{row}] is {labels[row]}. Give every row a label; -1 is a row in no cluster.")
    is_noise = np.asarray(values == -1) if values.dtype.kind in "iuf" else np.zeros(len(values), dtype=bool)
    clusters = np.flatnonzero(~is_noise)
    if len(clusters) < 2:
        found = f"one cluster ({values[clusters[0]]})" if len(clusters) else "noise only (-1)"
        raise DataError(f"given has {found}: expected two or more. Without known clusters, use a clusterer.")
    numbers = np.full(len(values), -1, dtype=np.int64)
    numbers[clusters[np.argsort(first[clusters])]] = np.arange(len(clusters))
    return np.asarray(numbers[codes.ravel()])


def check_matrix(X: Any) -> Any:
    """Check X like `check_rows`, for callers that are not estimators."""
    return check_rows(_NoEstimator(), X, reset=True, accept_sparse=True)


class _NoEstimator(BaseEstimator):  # type: ignore[misc]
    """An object on which scikit-learn can set feature names."""


def _reworded(message: str) -> str:
    if message.startswith("could not convert string"):
        return f"X holds text ({message.rpartition(': ')[2]}). Encode it as numbers, or leave the column out."
    if "inhomogeneous" in message:
        return (
            "The rows of X have different lengths. Give each row the same columns. For sequences, pass a matrix "
            "(clew.dissimilarity) to a method that takes one."
        )
    if message.startswith("Expected 2D array, got 1D array instead:\narray=[]."):
        return "X has no rows. Give at least one."
    if message.startswith("Expected 2D array, got 1D"):
        return (
            "Expected 2D array, got 1D array instead. Reshape your data: X.reshape(1, -1) is one row, and "
            "X.reshape(-1, 1) is one column."
        )
    if dimensions := re.match(r"Found array with dim (\d+)", message):
        return (
            f"Expected 2D array, got {dimensions[1]}D array instead. If X holds an image or a series for each row, "
            "pass X.reshape(len(X), -1)."
        )
    return message.replace(f" by {_NoEstimator.__name__}", "")


def _refuse_text(frame: nw.DataFrame[Any]) -> list[str]:
    for name, dtype in frame.schema.items():
        if isinstance(dtype, nw.String | nw.Categorical | nw.Enum):
            value = next((value for value in frame[name].to_list() if value is not None), None)
            raise DataError(
                f"Column {name!r} of X holds text ({value!r}). Encode it as numbers, or leave the column out."
            )
    return [str(name) for name in frame.columns]


def _refuse_missing(X: Any, names: list[str] | None) -> None:
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    wrong = np.argwhere(~np.isfinite(values))
    if not len(wrong):  # the sum overflowed, but the values are finite
        return
    place = tuple(wrong[0].tolist())
    value = values[place]
    if sparse.issparse(X):
        row = int(np.searchsorted(X.indptr, place[0], side="right")) - 1
        column = int(X.indices[place[0]])
    else:
        row, column = place
    named = f"{column} ({names[column]!r})" if names else str(column)
    what = "NaN" if np.isnan(value) else "infinity (inf)"
    raise DataError(f"X contains {what} at row {row}, column {named}. Fill it in, or drop the row.")


def _refuse_huge(X: Any) -> None:
    """Raise if squares of values overflow, or their sum over all rows: distances and variances would be infinite."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    n_rows, n_columns = X.shape
    if largest > np.sqrt(np.finfo(X.dtype).max / max(n_columns, 1)) / 4:
        raise DataError(f"X holds {largest:.3g}: its square is too large for {X.dtype} numbers. Scale X.")
    if largest > np.sqrt(np.finfo(np.float64).max / max(n_columns, 1) / max(n_rows, 1)) / 4:
        raise DataError(
            f"X holds {largest:.3g}: the sum of {n_rows} squares is too large for float64 numbers. Scale X."
        )


def check_weights(sample_weight: Any, n_samples: int) -> npt.NDArray[np.float64]:
    """Check weights: one number >= 0 per row. Returns an empty array if all are 1."""
    if sample_weight is None:
        return np.empty(0)
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("sample_weight: expected one number >= 0 per row.") from None
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.shape != (n_samples,):
        raise DataError(
            f"sample_weight has shape {weights.shape}, but X has {n_samples} rows. Give one weight per row."
        )
    wrong = ~((weights >= 0) & np.isfinite(weights))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(f"sample_weight[{row}] is {weights[row]:g}: expected a number >= 0.")
    if not weights.any():
        raise DataError("sample_weight is zero for every row. Give at least one row a weight.")
    return np.empty(0) if (weights == 1).all() else weights


def n_distinct_rows(X: Any, most: int, *, directions: bool) -> int:
    """Number of distinct rows, counted up to `most`. With `directions`, rows of the same direction are equal."""
    rows = X
    if directions:
        norms = row_norms(X)
        scale = 1 / np.where(norms > 0, norms, 1)
        if sparse.issparse(X):
            rows = sparse.csr_array(sparse.diags_array(scale) @ X)
            rows.data = rows.data.round(_DIRECTION_DIGITS)
        else:
            rows = (X * scale[:, None]).round(_DIRECTION_DIGITS)
    n_found = 0
    while n_found < most and rows.shape[0]:
        rows = rows[_differ(rows, rows[[0]])]
        n_found += 1
    return n_found


def _differ(rows: Any, one: Any) -> npt.NDArray[np.bool_]:
    """Which rows differ from this row."""
    if not sparse.issparse(rows):
        return np.asarray((rows != one).any(axis=1))
    dense = one.toarray().ravel()
    row_of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    agree = np.bincount(row_of, (rows.data == dense[rows.indices]) & (rows.data != 0), minlength=rows.shape[0])
    filled = np.bincount(row_of, rows.data != 0, minlength=rows.shape[0])
    return (agree != np.count_nonzero(dense)) | (filled != np.count_nonzero(dense))
