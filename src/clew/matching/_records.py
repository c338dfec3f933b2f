"""Records: the columns of a table as plain texts, numbers and dates, each distinct value once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.datasets._columns import NAMES_ROWS, NO_VALUE, ONE_VALUE, is_id_name
from clew.datasets._read import Table
from clew.datasets._written import NO_VALUES, written_dates, written_numbers
from clew.exceptions import DataError, ParameterError
from clew.matching._texts import plain

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# A column is also compared as numbers or dates if at least this share of its cells can be read that way.
_LEAST_READABLE = 0.9


@dataclass(frozen=True)
class Field:
    """A column of records.

    For example, the cells "Ann", "", "ANN" and "Bob" give ``texts = ["ann", "bob"]`` and ``codes = [0, -1, 0, 1]``.

    Attributes
    ----------
    name : str
    kind : str
        "text", "number" or "date". Every column is compared as text; numbers and dates also by their difference.
    texts : list of str
        The distinct values, sorted: lower case, without accents and punctuation. Equal dates
        have the same text, whatever their format.
    codes : ndarray of shape (n_rows,)
        Index into `texts` of each row's value, -1 if it is missing.
    numbers : ndarray of shape (n_rows,)
        Numbers, or dates in days; NaN if missing. Empty for texts.
    """

    name: str
    kind: str
    texts: list[str]
    codes: IntArray
    numbers: FloatArray

    @property
    def counts(self) -> IntArray:
        """How many rows have each value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts)).astype(np.int64)


def fields_of(table: Table, names: Sequence[str] | None, kinds: dict[str, str] | None = None) -> list[Field]:
    """Select the columns of a table to compare: the named ones, or else all but ids and columns with one value.

    `kinds` gives the kind of each column; without it, the kind is inferred from the cells.
    """
    fields: list[Field] = []
    left_out: list[str] = []
    for name in table.features if names is None else names:
        values = table.column(name)
        if values.ndim != 1:
            raise DataError(
                f'Column "{name}" of {table.source} holds vectors. Leave it out, or pass the vectors alone as X.'
            )
        field = _field(name, values, None if kinds is None else kinds[name])
        why_not = None if names is not None else _why_left_out(field)
        if why_not is None:
            fields.append(field)
        else:
            left_out.append(f'"{name}" ({why_not})')
    if not fields:
        raise _nothing_to_compare(table, left_out)
    return fields


def compared_fields(table: Table, names: Sequence[str] | None) -> list[Field]:
    """The columns of a table to compare, see `fields_of`. Raises if all of their cells are missing."""
    fields = fields_of(table, names)
    if not any(field.texts for field in fields):
        raise _nothing_to_compare(table, [f'"{field.name}" ({NO_VALUE})' for field in fields])
    return fields


def _nothing_to_compare(table: Table, left_out: list[str]) -> DataError:
    reasons = ", ".join(left_out) or "no column is named"
    return DataError(
        f"{table.source} has no column to compare: {reasons}. Use at least one column in which rows differ."
    )


def _why_left_out(field: Field) -> str | None:
    """Why a column is not compared unless it is named; None if it is compared."""
    if len(field.texts) < 2:
        return ONE_VALUE if field.texts else NO_VALUE
    return NAMES_ROWS if is_id_name(field.name) and len(field.texts) == len(field.codes) else None


def _field(name: str, values: npt.NDArray[Any], kind: str | None) -> Field:
    cells = as_cells(values).tolist()
    if kind is None or kind != "text":
        kind, numbers = _as_numbers(cells, kind)
    else:
        numbers = np.empty(0)
    distinct: dict[str, str] = {cell: plain(cell) or cell for cell in set(cells) if cell}
    if kind == "date":
        distinct |= {cell: plain(text) for cell, text in _iso(cells, numbers).items()}
    texts = sorted(set(distinct.values()))
    number_of = {text: place for place, text in enumerate(texts)}
    number_of_cell = {cell: number_of[text] for cell, text in distinct.items()} | {"": -1}
    codes = np.fromiter((number_of_cell[cell] for cell in cells), dtype=np.int64, count=len(cells))
    return Field(name, kind, texts, codes, numbers)


def as_cells(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert a column to texts; a missing value, also "-" or "unknown", becomes ""."""
    if values.dtype.kind in "iu":
        cells = [str(value) for value in values.tolist()]
    elif values.dtype.kind == "f":
        cells = ["" if value != value else f"{value:.12g}" for value in values.tolist()]
    else:
        stripped = [str(value).strip() for value in values.tolist()]
        cells = ["" if cell.lower() in NO_VALUES else cell for cell in stripped]
    return np.array(cells, dtype=object)


def _as_numbers(cells: list[str], kind: str | None) -> tuple[str, FloatArray]:
    """Read cells as dates or numbers, if nearly all of them can be read that way."""
    for name, read in (("date", written_dates), ("number", written_numbers)):
        if kind not in (None, name):
            continue
        written = read(cells)
        if written is not None and (kind == name or written.share >= _LEAST_READABLE):
            return name, np.asarray(written.values, dtype=np.float64)
    return ("text", np.empty(0)) if kind is None else (kind, np.full(len(cells), np.nan))


def _iso(cells: list[str], seconds: FloatArray) -> dict[str, str]:
    """Cells that are dates in one format, such as 1948-04-15 for 15.04.1948."""
    moment_of = {cell: moment for cell, moment in zip(cells, seconds.tolist(), strict=True) if moment == moment}
    moments = np.array(list(moment_of.values())).astype("datetime64[s]")
    days = moments.astype("datetime64[D]")
    texts = np.where(moments == days, np.datetime_as_string(days), np.datetime_as_string(moments))
    return dict(zip(moment_of, texts.tolist(), strict=True))


def check_columns(table: Table, names: Sequence[str] | None, parameter: str) -> None:
    """Raise if a named column is not in the table, or if a name is given twice."""
    for name in names or ():
        table.column(name)
    if names is not None and len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ParameterError(f'{parameter} names column "{twice}" twice. Name each column once.')
