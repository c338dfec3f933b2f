"""Encode labels as codes, and build the sparse contingency table of two labellings.

Only non-empty cells are stored, at most one per row. Memory is thus linear for any number of clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clew.exceptions import DataError

Integers = npt.NDArray[np.int64]

# Largest counting table, in multiples of the input size. Up to here counting is faster than sorting.
_TABLE_PER_VALUE = 2


class Distinct(NamedTuple):
    """Distinct values in ascending order, the position of each input among them, and their counts."""

    values: Integers
    codes: Integers
    counts: Integers


def distinct(values: Integers) -> Distinct:
    """Number the distinct integers from 0, in rising order."""
    if values.size:
        low = int(values.min())
        span = int(values.max()) - low + 1
        if span <= _TABLE_PER_VALUE * values.size:
            shifted = values - low
            counts = np.bincount(shifted, minlength=span)
            present = np.flatnonzero(counts)
            code_of = np.empty(span, dtype=np.int64)
            code_of[present] = np.arange(present.size)
            return Distinct(present + low, code_of[shifted], counts[present])
    return Distinct(*np.unique(values, return_inverse=True, return_counts=True))


def pairs_in(sizes: Integers) -> int:
    """Count the pairs inside sets of these sizes."""
    return int(sizes @ (sizes - 1)) // 2


def label_array(labels: Any, name: str) -> npt.NDArray[Any]:
    """Validate labels and return a numeric array, or an object array in which 1 and "1" differ."""
    try:
        array = np.asarray(labels)
        if array.dtype.kind not in "biuf":
            array = np.array(labels if isinstance(labels, list | tuple) else array, dtype=object)
    except ValueError as error:
        raise DataError(f"{name} is ragged: expected one label per row (1-D).") from error
    if array.ndim != 1:
        raise DataError(f"{name} has shape {array.shape}: expected one label per row (1-D).")
    if not array.size:
        raise DataError(f"{name} is empty: expected at least one row.")
    return array


def encode_clusters(labels: npt.NDArray[Any], name: str) -> Integers:
    """Codes 0, 1, … of a checked label array. Each noise row (-1) has a code of its own."""
    codes = encode(labels, name)
    is_noise = np.asarray(labels == -1, dtype=bool)
    if not is_noise.any():
        return codes
    return distinct(np.where(is_noise, codes.size + np.arange(codes.size), codes)).codes


def encode(labels: npt.NDArray[Any], name: str) -> Integers:
    """Encode a validated label array as codes 0, 1, …; equal labels get equal codes."""
    if labels.dtype.kind in "biu":
        # Unsigned 64-bit numbers may wrap here. The mapping is one to one, so different labels stay different.
        return distinct(labels.astype(np.int64, copy=False)).codes
    if labels.dtype.kind == "O":
        return _encode_objects(labels, name)
    missing = np.flatnonzero(labels != labels)
    if missing.size:
        raise _missing_label(name, int(missing[0]), labels[missing[0]])
    return np.unique(labels, return_inverse=True)[1]


def _encode_objects(labels: npt.NDArray[Any], name: str) -> Integers:
    code_of: dict[Any, int] = {}
    codes = np.empty(labels.size, dtype=np.int64)
    for row, value in enumerate(labels):
        try:
            codes[row] = code_of.setdefault(value, len(code_of))
        except TypeError as error:
            raise DataError(
                f"{name}[{row}] is {value!r}, which cannot be hashed: use a number, a string or a tuple."
            ) from error
        if _is_missing(value):
            raise _missing_label(name, row, value)
    return codes


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


def _missing_label(name: str, row: int, value: Any) -> DataError:
    return DataError(f"{name}[{row}] is {value}: every row needs a label. Leave out the rows without one.")


def encode_scored(labels_true: Any, labels_pred: Any) -> tuple[Integers, Integers]:
    """Check and encode classes and clusters. -1 is an ordinary class, but noise in clusters."""
    true, pred = _label_arrays(labels_true, labels_pred, "labels_true", "labels_pred")
    return encode(true, "labels_true"), encode_clusters(pred, "labels_pred")


def encode_partitions(labels_a: Any, labels_b: Any, name_a: str, name_b: str) -> tuple[Integers, Integers]:
    """Check and encode two clusterings of the same rows; -1 is noise in both."""
    array_a, array_b = _label_arrays(labels_a, labels_b, name_a, name_b)
    return encode_clusters(array_a, name_a), encode_clusters(array_b, name_b)


def _label_arrays(labels_a: Any, labels_b: Any, name_a: str, name_b: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    array_a, array_b = label_array(labels_a, name_a), label_array(labels_b, name_b)
    if array_a.size != array_b.size:
        raise DataError(
            f"{name_a} has {array_a.size} labels and {name_b} {array_b.size}: expected one per row in both."
        )
    return array_a, array_b


@dataclass(frozen=True)
class Contingency:
    """Sparse contingency table: number of rows in each pair of a true and a predicted cluster, without empty cells."""

    n_rows: int
    cell_true: Integers
    cell_pred: Integers
    cell_sizes: Integers
    true_sizes: Integers
    pred_sizes: Integers

    @classmethod
    def of(cls, true_of: Integers, pred_of: Integers) -> Contingency:
        """Count two encoded labellings."""
        true_sizes, pred_sizes = np.bincount(true_of), np.bincount(pred_of)
        cells = distinct(true_of * pred_sizes.size + pred_of)
        cell_true, cell_pred = np.divmod(cells.values, pred_sizes.size)
        return cls(true_of.size, cell_true, cell_pred, cells.counts, true_sizes, pred_sizes)

    @property
    def is_same_partition(self) -> bool:
        """Whether every cluster of one labelling is exactly one cluster of the other."""
        return self.cell_sizes.size == self.true_sizes.size == self.pred_sizes.size

    @property
    def pair_counts(self) -> PairCounts:
        """Count the pairs of rows that each labelling puts together."""
        return PairCounts(
            both=pairs_in(self.cell_sizes),
            true=pairs_in(self.true_sizes),
            pred=pairs_in(self.pred_sizes),
            total=self.n_rows * (self.n_rows - 1) // 2,
        )


class PairCounts(NamedTuple):
    """Number of pairs put together by both labellings, by the true one, and by the predicted one; and of all pairs."""

    both: int
    true: int
    pred: int
    total: int

    @property
    def agreeing(self) -> int:
        """Number of pairs that both labellings put together or both separate."""
        return self.total - self.true - self.pred + 2 * self.both
