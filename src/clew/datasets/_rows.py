"""Rows of a table as Python values, converted one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class Rows(Mapping[Any, dict[str, Any]]):
    """Mapping from ids to rows. Rows are dicts of Python values, which are made on access.

    Numbers that are whole in the entire column are ints, a missing value is None, columns of vectors are left out.
    """

    def __init__(self, columns: Mapping[str, Any], ids: NDArray[Any]) -> None:
        self._arrays = columns
        self._ids = ids

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        """The values of each column."""
        return {
            name: _python_values(column)
            for name, column in self._arrays.items()
            if not sparse.issparse(column) and column.ndim == 1
        }

    @cached_property
    def _row_of(self) -> dict[Any, int]:
        return {name: row for row, name in enumerate(self._ids.tolist())}

    def __getitem__(self, name: Any) -> dict[str, Any]:
        row = self._row_of[name]
        return {column: values[row] for column, values in self.columns.items()}

    def __iter__(self) -> Iterator[Any]:
        return iter(self._row_of)

    def __len__(self) -> int:
        return len(self._ids)


def _python_values(column: NDArray[Any]) -> list[Any]:
    if column.dtype.kind == "f":
        known = column[~np.isnan(column)]
        whole = bool((np.abs(known) < 2**53).all() and (known == np.floor(known)).all())
        return [None if value != value else int(value) if whole else value for value in column.tolist()]
    return [None if value == "" else value for value in column.tolist()]
