"""Golden records: one row for each group of records that are the same thing, by simple rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.datasets._as_table import as_table
from clew.datasets._read import Table
from clew.datasets._written import NO_VALUES
from clew.exceptions import DataError

# Ties go to a value that at least this many records of other groups have: an error is rarely made so often.
_COMMON = 5
# Whole numbers below this are exact as floats.
_EXACT = 2.0**53


def golden_records(data: Any, groups: Any) -> Table:
    """Merge the records of each group into one.

    In each column, the most frequent value that is not missing is chosen. Ties go to a value that at least five records
    of other groups have, then to the longest text, and then to the first row. Cells such as "-" and "unknown" are
    missing. A column in which a group has no value stays empty. Whole numbers are written as integers.

    Parameters
    ----------
    data : table
        A path, a frame, a list of dicts or a `Table`, without columns of vectors.
    groups : array-like of shape (n_rows,)
        The group of each row, such as `MatchClustering.labels_`.

    Returns
    -------
    Table
        A row for each group, in the sorted order of the groups, with the columns of the data.

    Examples
    --------
    >>> from clew.datasets import golden_records
    >>> people = [{"name": "A. Meyer", "city": "Bonn"}, {"name": "Ann Meyer", "city": ""},
    ...           {"name": "Bob", "city": "Rome"}]
    >>> golden = golden_records(people, [0, 0, 1])
    >>> golden.column("name").tolist(), golden.column("city").tolist()
    (['Ann Meyer', 'Bob'], ['Bonn', 'Rome'])
    """
    table = as_table(data)
    _, place = np.unique(np.asarray(groups), return_inverse=True)
    if place.shape != (table.n_rows,):
        raise DataError(f"groups has the shape {place.shape}, but {table.source} has {table.n_rows} rows.")
    vectors = next((name for name, values in table.values.items() if values.ndim != 1), None)
    if vectors is not None:
        raise DataError(
            f'Column "{vectors}" of {table.source} holds vectors, which have no golden value. Leave it out.'
        )
    n_groups = int(place.max(initial=-1)) + 1
    golden = {name: _golden_values(values, place, n_groups) for name, values in table.values.items()}
    return Table(f"golden records of {table.source}", golden, tuple(golden), n_groups)


def _golden_values(values: npt.NDArray[Any], place: npt.NDArray[np.int64], n_groups: int) -> npt.NDArray[Any]:
    """The value of each group in one column; "" or NaN if a group has none."""
    if values.dtype == object:
        texts = np.array([str(value).strip() for value in values.tolist()], dtype=object)
        there = np.array([text.lower() not in NO_VALUES for text in texts.tolist()], dtype=bool)
        golden: npt.NDArray[Any] = np.full(n_groups, "", dtype=object)
    else:
        texts, there = values, ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), dtype=bool)
        golden = np.full(n_groups, np.nan) if values.dtype.kind == "f" else np.zeros(n_groups, values.dtype)
    rows = np.flatnonzero(there)
    distinct, value_of = np.unique(texts[rows], return_inverse=True)
    lengths = np.array([len(str(value)) for value in distinct.tolist()], dtype=np.int64)
    keys, first, counts = np.unique(place[rows] * len(distinct) + value_of, return_index=True, return_counts=True)
    group, value = np.divmod(keys, max(len(distinct), 1))
    is_rare = np.bincount(value_of, minlength=len(distinct))[value] - counts < _COMMON
    order = np.lexsort((first, -lengths[value], is_rare, -counts, group))
    best = order[np.unique(group[order], return_index=True)[1]]
    golden[group[best]] = values[rows[first[best]]]
    return _as_whole(golden)


def _as_whole(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert whole numbers to integers, or to text if some are missing. Other values are not changed."""
    if numbers.dtype.kind != "f":
        return numbers
    missing = np.isnan(numbers)
    known = numbers[~missing]
    if not ((known == np.round(known)) & (np.abs(known) < _EXACT)).all():
        return numbers
    if not missing.any():
        return numbers.astype(np.int64)
    return np.array(["" if value != value else str(int(value)) for value in numbers.tolist()], dtype=object)
