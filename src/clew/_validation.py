"""Checks at the door: parameters, rows, weights, randomness. What is behind the door trusts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from clew.exceptions import DataError, DataTypeError, ParameterError


@dataclass(frozen=True)
class Allowed:
    """The values a parameter may take, and the words that say so."""

    what: str
    accepts: Callable[[Any], bool]

    def __or__(self, other: Allowed) -> Allowed:
        return Allowed(f"{self.what} or {other.what}", lambda value: self.accepts(value) or other.accepts(value))


def _is_a(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


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
        lambda value: _is_a(Real, value) and np.isfinite(float(value)) and low <= float(value) <= high,
    )


def words(*choices: str) -> Allowed:
    """One of some words."""
    return Allowed(" or ".join(map(repr, choices)), lambda value: isinstance(value, str) and value in choices)


def array_like() -> Allowed:
    """Anything with rows."""
    return Allowed("an array", lambda value: not isinstance(value, str) and hasattr(value, "__len__"))


BOOLEAN = Allowed("True or False", lambda value: isinstance(value, bool | np.bool_))
NONE = Allowed("None", lambda value: value is None)
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
    """Refuse the first parameter of `owner` that is outside its allowed values."""
    for name, values in allowed.items():
        value = getattr(owner, name)
        if not values.accepts(value):
            raise ParameterError(f"{name}={value!r} in {type(owner).__name__}: expected {values.what}.")


def as_generator(random_state: Any) -> np.random.Generator:
    """The generator of random numbers that a `random_state` stands for."""
    if not RANDOM_STATE.accepts(random_state):
        raise ParameterError(f"random_state={random_state!r}: expected {RANDOM_STATE.what}.")
    if random_state is np.random:
        random_state = np.random.mtrand._rand
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)


def check_rows(estimator: Any, X: Any, *, reset: bool, accept_sparse: bool) -> Any:
    """X as a C-contiguous float array or CSR matrix, float32 kept; text and missing values are refused."""
    names = _refuse_text(X)
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


def check_matrix(X: Any) -> Any:
    """X as `check_rows` gives it, for callers that are no estimator."""
    return check_rows(_NoEstimator(), X, reset=True, accept_sparse=True)


class _NoEstimator(BaseEstimator):  # type: ignore[misc]
    """Something for scikit-learn to write feature names on."""


def _reworded(message: str) -> str:
    if message.startswith("could not convert string"):
        return f"X holds text ({message.rpartition(': ')[2]}). Encode it as numbers, or leave the column out."
    return message.replace(f" by {_NoEstimator.__name__}", "")


def _refuse_text(X: Any) -> list[str] | None:
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
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
    if not len(wrong):  # the sum overflowed, the values are fine
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
    """Values whose squares do not fit a float any more: distances would be infinite."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest > np.sqrt(np.finfo(X.dtype).max / max(X.shape[1], 1)) / 4:
        raise DataError(f"X holds {largest:.3g}: its square is too large for {X.dtype} numbers. Scale X.")


def check_weights(sample_weight: Any, n_samples: int) -> npt.NDArray[np.float64]:
    """One weight >= 0 per row; empty when all are 1."""
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
