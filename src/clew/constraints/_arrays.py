"""Validation of the arrays that make up `Constraints`."""

from __future__ import annotations

from typing import Any, NamedTuple

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


class DistinctPairs(NamedTuple):
    """Distinct unordered pairs.

    For the statements (4, 1), (2, 3), (1, 4): ``pairs=[[1, 4], [2, 3]]``, ``best=[0, 1]``, ``pair_of=[0, 1, 0]``.

    Attributes
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        In ascending order, the lower row first.
    best : ndarray of shape (n_pairs,)
        Position of the statement with the highest confidence. The first one wins ties.
    pair_of : ndarray of shape (n_statements,)
        Position in `pairs` of the pair that each statement names.
    """

    pairs: IntArray
    best: IntArray
    pair_of: IntArray


def distinct_pairs(pairs: IntArray, confidence: FloatArray | None = None) -> DistinctPairs:
    """Drop repeated pairs."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    keys = low * (high.max(initial=0) + 1) + high
    order = np.argsort(keys, kind="stable") if confidence is None else np.lexsort((-confidence, keys))
    is_first = np.append(True, np.diff(keys[order]) != 0)[: len(order)]
    pair_of = np.empty(len(pairs), dtype=np.int64)
    pair_of[order] = np.cumsum(is_first) - 1
    best = order[is_first]
    return DistinctPairs(np.column_stack([low[best], high[best]]), best, pair_of)


def dense(groups: IntArray) -> IntArray:
    """Renumber groups as 0, 1, …, so that products of the numbers cannot overflow. -1 stays."""
    numbers = np.full(len(groups), -1, dtype=np.int64)
    grouped = groups >= 0
    numbers[grouped] = np.unique(groups[grouped], return_inverse=True)[1]
    return numbers


# What to do about values that are not whole numbers: about rows, and about classes and groups.
_OF_ROWS = "Translate ids to row positions, or pass ids= to Constraints.of."
_OF_GROUPS = "Give whole numbers, or names as texts."


def as_integers(values: Any, name: str, remedy: str = _OF_ROWS) -> IntArray:
    """Convert whole numbers to int64. Raises for any other value, with the `remedy`."""
    array = filled(values, name)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype == bool or array.dtype.kind not in "iuf":
        items = array.ravel().tolist()
        odd = [item for item in items if not isinstance(item, int) or isinstance(item, bool)]
        _refuse_beyond([] if odd else items, name)
        first = odd[0] if odd else items[0]
        raise ConstraintError(f"{name} holds {first!r}: expected whole numbers. {remedy}")
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.int64)  # NaN, infinity and numbers beyond 64 bits change here
    if array.dtype.kind in "fu" and not np.array_equal(whole, array):
        _refuse_beyond(array[np.abs(array) >= 2.0**63].tolist(), name)
        place = np.argwhere(whole != array)[0]
        raise ConstraintError(f"{name}{place.tolist()} is {array[tuple(place)]}: expected whole numbers.")
    return whole


def _refuse_beyond(numbers: list[Any], name: str) -> None:
    beyond = [number for number in numbers if not -(2**63) <= number < 2**63 and abs(number) != np.inf]
    if beyond:
        raise ConstraintError(
            f"{name} holds {beyond[0]}, which is beyond 64 bits. Rows, classes and groups are numbers below 2**63."
        )


def as_rows_together(values: Any, name: str, width: int) -> IntArray:
    """Validate pairs (width 2) or triplets (width 3) of distinct rows, but not against the number of rows."""
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
    """Validate confidences: one in (0, 1] per pair. None or a single number applies to all pairs."""
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
            f"{name}[{place}] is {array[place]:g}: a confidence lies in (0, 1]. Correct it, or leave the pair out."
        )
    return array.copy()


def named_classes(values: Any) -> tuple[Any, npt.NDArray[Any] | None]:
    """Convert labels to numbers, with the class names if labels are texts. -1, NaN, None and "" mean unknown.

    For example ["red", None, "blue"] becomes [1, -1, 0] with the names ["blue", "red"].
    """
    return _numbered(filled(values, "labels"))


def _numbered(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    if array.ndim != 1 or array.dtype.kind not in "OUSTf":
        return array, None
    cells = array.tolist()
    unknown = np.array([_is_unknown(cell) for cell in cells], dtype=bool)
    if not any(isinstance(cell, str | bytes) for cell, gone in zip(cells, unknown, strict=True) if not gone):
        return np.array([-1 if gone else cell for cell, gone in zip(cells, unknown, strict=True)]), None
    words = [cell.decode() if isinstance(cell, bytes) else str(cell) for cell in cells]
    names, codes = np.unique([word for word, gone in zip(words, unknown, strict=True) if not gone], return_inverse=True)
    labels = np.full(len(cells), -1, dtype=np.int64)
    labels[~unknown] = codes
    return labels, names.astype(object)


def _is_unknown(cell: Any) -> bool:
    if isinstance(cell, str | bytes):
        return cell in ("", "-1", b"", b"-1")
    if cell is None:
        return True
    try:
        return bool(cell != cell or cell == -1)
    except TypeError:  # pandas' NA is neither equal nor different
        return True


def filled(values: Any, name: str) -> npt.NDArray[Any]:
    """Convert values to an array. Masked entries of a masked array become None."""
    try:
        if np.ma.isMaskedArray(values):
            cells = values.data.astype(object)
            cells[np.ma.getmaskarray(values)] = None
            return np.asarray(cells)
        array = np.asarray(values)
        # If some values are texts, NumPy converts numbers and None to texts, and None and "None" would be equal.
        return array if array.dtype.kind not in "US" else np.array(values, dtype=object)
    except ValueError:
        raise ConstraintError(f"{name} is ragged: its rows have different lengths. Make them equal.") from None


def as_class_names(values: Any, labels: IntArray | None) -> npt.NDArray[Any] | None:
    """Validate class names: one per class number, all different."""
    if values is None:
        return None
    names = np.array([str(name) for name in values], dtype=object)
    if labels is None or labels.max(initial=-1) >= len(names) or len(set(names.tolist())) < len(names):
        raise ConstraintError(f"classes has {len(names)} names: expected a different one for each class in labels.")
    return names


def as_labels(values: Any) -> IntArray | None:
    """Validate labels: one class per row, -1 for unknown."""
    if values is None:
        return None
    array = as_integers(values, "labels", _OF_GROUPS)
    if array.ndim != 1:
        raise ConstraintError(f"labels has shape {array.shape}: expected one class per row.")
    if (array < -1).any():
        place = np.flatnonzero(array < -1)[0]
        raise ConstraintError(f"labels[{place}] is {array[place]}: classes are 0 or above, -1 means unknown.")
    return array.copy()


def as_groups(values: Any, name: str) -> IntArray | None:
    """Validate groups: one group per row, a number or a name, in one or several columns. Names are numbered.

    -1, NaN, None and "" mean none.
    """
    if values is None:
        return None
    array = filled(values, name)
    if array.ndim == 2:
        array = np.column_stack([_numbered(column)[0] for column in array.T]) if array.shape[1] else array
    array = as_integers(_numbered(array)[0], name, _OF_GROUPS)
    if array.ndim not in (1, 2):
        raise ConstraintError(f"{name} has shape {array.shape}: expected one group per row (or several columns).")
    if (array < -1).any():
        place = np.argwhere(array < -1)[0]
        raise ConstraintError(f"{name}{place.tolist()} is {array[tuple(place)]}: groups are 0 or above, -1 means free.")
    return array.copy()


def as_soft_groups(values: Any) -> sparse.csr_array | None:
    """Validate soft groups: strengths in [0, 1], rows x groups. Each row sums to at most 1 (the rest is "none")."""
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
    if (totals > 1 + 1e-9).any():  # sums of decimal fractions have rounding errors
        row = int(totals.argmax())
        raise ConstraintError(
            f"soft_groups: the strengths of row {row} sum to {totals[row]:g}; they may sum to at most 1. Scale them."
        )
    return matrix


def group_columns(groups: IntArray | None) -> list[IntArray]:
    """Columns of must_groups or cannot_groups, from a 1-D or 2-D array."""
    if groups is None:
        return []
    return [groups] if groups.ndim == 1 else list(np.ascontiguousarray(groups.T))


def nothing_together(column: str, value: str = "") -> str:
    """The message about a column of sources or cannot-groups in which all rows have the same value."""
    shown = f', "{value}"' if value else ""
    return (
        f"{column} has only one value{shown}, so no two rows can be together. Choose a column that says which list "
        "each row comes from, or leave it out."
    )


def links_within(groups: IntArray) -> IntArray:
    """Pairs that chain the rows of each group: m - 1 pairs for a group of m rows."""
    rows = np.flatnonzero(groups >= 0)
    rows = rows[np.argsort(groups[rows], kind="stable")]
    together = groups[rows[1:]] == groups[rows[:-1]]
    return np.column_stack([rows[:-1], rows[1:]])[together]


def as_ids(values: Any) -> npt.NDArray[Any] | None:
    """Validate row ids: one per row."""
    if values is None:
        return None
    array = np.array(values)
    if array.ndim != 1:
        raise ConstraintError(f"ids has shape {array.shape}: expected a list with one id per row.")
    return array
