"""Checks on the arrays that make up `Constraints`: what is wrong, where, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.exceptions import ConstraintError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def freeze(value: Any) -> None:
    """Make an array, or the arrays of a sparse matrix, read-only."""
    for array in (value.data, value.indices, value.indptr) if sparse.issparse(value) else (value,):
        array.flags.writeable = False


def dense(groups: IntArray) -> IntArray:
    """Groups renumbered 0, 1, …; -1 stays. Keys made of them cannot overflow, whatever numbers people use."""
    numbers = np.full(len(groups), -1, dtype=np.int64)
    grouped = groups >= 0
    numbers[grouped] = np.unique(groups[grouped], return_inverse=True)[1]
    return numbers


def as_integers(values: Any, name: str) -> IntArray:
    """Whole numbers as int64; anything else is refused with its place."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ConstraintError(f"{name} is ragged: its rows have different lengths. Give all the same.") from None
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype == bool or array.dtype.kind not in "iuf":
        odd = [item for item in array.ravel().tolist() if not isinstance(item, int) or isinstance(item, bool)]
        first = odd[0] if odd else array.ravel().tolist()[0]
        raise ConstraintError(
            f"{name} holds {first!r}: expected whole numbers. Translate ids to row positions, or pass ids= "
            "to Constraints.of."
        )
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.int64)  # NaN, infinity and what needs more than 64 bits become numbers that differ
    if array.dtype.kind in "fu" and not np.array_equal(whole, array):
        place = np.argwhere(whole != array)[0]
        raise ConstraintError(f"{name}{place.tolist()} is {array[tuple(place)]}: expected whole numbers.")
    return whole


def as_rows_together(values: Any, name: str, width: int) -> IntArray:
    """Pairs (width 2) or triplets (width 3) of distinct rows, still unchecked against the number of rows."""
    if values is None:
        values = ()
    if isinstance(values, set | frozenset):
        values = sorted(values)
    elif not hasattr(values, "__len__"):
        if not hasattr(values, "__iter__"):
            raise ConstraintError(f"{name} is {values!r}: expected a list of {width} row numbers each.")
        values = list(values)
    array = as_integers(values, name)
    if array.size == 0:
        return np.empty((0, width), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != width:
        raise ConstraintError(f"{name} has shape {array.shape}: expected (n, {width}), {width} row numbers each.")
    if (array < 0).any():
        place = np.flatnonzero((array < 0).any(axis=1))[0]
        raise ConstraintError(
            f"{name}[{place}] names row {array[place].min()}: row positions start at 0. Count from the first row."
        )
    ordered = np.sort(array, axis=1)
    same = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if same.any():
        place = np.flatnonzero(same)[0]
        row = ordered[place, :-1][ordered[place, 1:] == ordered[place, :-1]][0]
        raise ConstraintError(f"{name}[{place}] names row {row} twice. Remove it.")
    return np.ascontiguousarray(array)


def as_confidence(values: Any, name: str, n_pairs: int) -> FloatArray:
    """One confidence in (0, 1] per pair; None and a single number mean the same for all."""
    if values is None:
        return np.ones(n_pairs)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError):
        raise ConstraintError(f"{name} holds {values!r}: expected numbers in (0, 1].") from None
    if array.ndim == 0:
        array = np.full(n_pairs, float(array))
    if array.shape != (n_pairs,):
        raise ConstraintError(f"{name} has shape {array.shape}, but there are {n_pairs} pairs. Give one per pair.")
    wrong = ~((array > 0) & (array <= 1))
    if wrong.any():
        place = np.flatnonzero(wrong)[0]
        raise ConstraintError(
            f"{name}[{place}] is {array[place]:g}: a confidence lies in (0, 1]. Leave out pairs nobody believes."
        )
    return array.copy()


def as_labels(values: Any) -> IntArray | None:
    """A class per row, -1 unknown."""
    if values is None:
        return None
    array = as_integers(values, "labels")
    if array.ndim != 1:
        raise ConstraintError(f"labels has shape {array.shape}: expected one class per row.")
    if (array < -1).any():
        place = np.flatnonzero(array < -1)[0]
        raise ConstraintError(f"labels[{place}] is {array[place]}: classes are 0 or above, -1 means unknown.")
    return array.copy()


def as_groups(values: Any, name: str) -> IntArray | None:
    """A group per row, -1 free; several columns when rows are grouped in several ways."""
    if values is None:
        return None
    array = as_integers(values, name)
    if array.ndim not in (1, 2):
        raise ConstraintError(f"{name} has shape {array.shape}: expected one group per row (or several columns).")
    if (array < -1).any():
        place = np.argwhere(array < -1)[0]
        raise ConstraintError(f"{name}{place.tolist()} is {array[tuple(place)]}: groups are 0 or above, -1 means free.")
    return array.copy()


def as_soft_groups(values: Any) -> sparse.csr_array | None:
    """Rows x groups of strengths in [0, 1], each row summing to at most 1 (the rest is "none of them")."""
    if values is None:
        return None
    try:
        matrix = sparse.csr_array(values, dtype=np.float64, copy=True)
    except (ValueError, TypeError):
        matrix = None
    if matrix is None or matrix.ndim != 2:
        raise ConstraintError("soft_groups: expected a rows x groups matrix of strengths in [0, 1].")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    wrong = ~((matrix.data >= 0) & (matrix.data <= 1))
    if wrong.any():
        place = np.flatnonzero(wrong)[0]
        row = np.searchsorted(matrix.indptr, place, side="right") - 1
        raise ConstraintError(
            f"soft_groups[{row}, {matrix.indices[place]}] is {matrix.data[place]:g}: a strength lies in [0, 1]."
        )
    totals = np.asarray(matrix.sum(axis=1)).ravel()
    if (totals > 1 + 1e-9).any():  # strengths are typed in decimals, whose sums carry rounding
        row = int(totals.argmax())
        raise ConstraintError(
            f"soft_groups: the strengths of row {row} sum to {totals[row]:g}; they may sum to at most 1. Scale them."
        )
    return matrix


def group_columns(groups: IntArray | None) -> list[IntArray]:
    """The columns of must_groups or cannot_groups, whichever shape they came in."""
    if groups is None:
        return []
    return [groups] if groups.ndim == 1 else list(np.ascontiguousarray(groups.T))


def links_within(groups: IntArray) -> IntArray:
    """Pairs that join the rows of each group to one another: one fewer than rows, not all of them."""
    rows = np.flatnonzero(groups >= 0)
    rows = rows[np.argsort(groups[rows], kind="stable")]
    together = groups[rows[1:]] == groups[rows[:-1]]
    return np.column_stack([rows[:-1], rows[1:]])[together]


def as_ids(values: Any) -> npt.NDArray[Any] | None:
    """One name per row."""
    if values is None:
        return None
    array = np.array(values)
    if array.ndim != 1:
        raise ConstraintError(f"ids has shape {array.shape}: expected a list with one id per row.")
    return array
