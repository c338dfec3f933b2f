"""Columns of files that are read by the batch: which are used, how they are scaled, and whether ids differ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clew._tables import require_pyarrow
from clew.cli._reading import Reading, column_names
from clew.datasets import StoredRows, Table, parquet_files
from clew.datasets._columns import NAMES_ROWS, ONE_VALUE, is_id_name
from clew.datasets._encode import Encoding, scaling_words
from clew.datasets._stored import BATCH_ROWS, is_vector
from clew.exceptions import ClewError, DataError, FileError, ParameterError


class Columns(NamedTuple):
    """The columns of a file.

    `used` are the names of the columns to read, None for all of a .npy file, and `widths` are the numbers in each.
    `vectors` and `flags` are the columns of vectors and of truth values, and `naming` those that name the rows.
    """

    used: list[str] | None
    widths: list[int]
    all: list[str]
    vectors: set[str]
    flags: set[str]
    naming: set[str]


def columns_of(path: Path, reading: Reading) -> Columns:
    """Decide which columns are used, by the rules for tables in memory."""
    id_column = reading.id_column
    if path.suffix == ".npy":
        if id_column is not None:
            Table(str(path), {"X": None}, (), 0).column(id_column)  # raises unless the column exists
        return Columns(None, [], [], set(), set(), set())
    pyarrow = require_pyarrow()
    types = pyarrow.types
    first = parquet_files(path)[0]
    with _readable(first):
        schema = pyarrow.parquet.read_schema(first)
    names = list(schema.names)
    table = Table(str(path), dict.fromkeys(names), (), 0)
    kinds = {name: schema.field(name).type for name in names}
    vectors = {name for name, kind in kinds.items() if is_vector(kind)}
    numbers = {name for name, kind in kinds.items() if types.is_integer(kind) or types.is_floating(kind)}
    flags = {name for name, kind in kinds.items() if types.is_boolean(kind)}
    if id_column is not None:
        table.column(id_column)
        if id_column in vectors:
            raise DataError(f'Column "{id_column}" of {path} holds vectors; ids are one value per row.')
    naming = set() if id_column is None else {id_column}
    if reading.columns is not None:
        used = column_names(reading.columns)
        for name in used:
            table.column(name)
            if used.count(name) > 1:
                raise ParameterError(f'Column "{name}" is named twice. Name each column once.')
    else:
        for name in names:
            if is_id_name(name) and name in numbers - naming and _all_differ(path, name):
                naming.add(name)
        used = [name for name in names if name not in naming]
        if not used:
            raise DataError(
                f"{path}: no column is left to cluster by: all of {', '.join(names)} name the rows. Name columns to "
                "use (--columns a,b,c)."
            )
    return Columns(used, _widths(path, used, vectors), names, vectors, flags, naming)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise `FileError` if Arrow cannot read the file."""
    try:
        yield
    except (OSError, ValueError) as error:
        if isinstance(error, ClewError):
            raise
        raise FileError(f"Cannot read {path}: {str(error).rstrip('. ')}.") from error


def _all_differ(path: Path, name: str) -> bool:
    """Whether the numbers in a column all differ. They are in memory meanwhile, eight bytes per row."""
    parts = []
    for values in batches_of(path, name):
        if values.dtype.kind == "f" and np.isnan(values).any():
            return False
        if len(np.unique(values)) < len(values):
            return False
        parts.append(values)
    together = np.concatenate(parts)
    together.sort()
    return not (together[1:] == together[:-1]).any()


def _widths(path: Path, used: list[str], vectors: set[str]) -> list[int]:
    """Numbers of columns that the columns become: for vectors, the length of the first one."""
    widths = []
    for name in used:
        first = next((one[0] for one in batches_of(path, name, 1) if len(one)), None) if name in vectors else None
        widths.append(1 if first is None else len(first))
    return widths


def batches_of(path: Path, name: str, n_rows: int = BATCH_ROWS) -> Iterator[NDArray[Any]]:
    """The values of a column, by the batch."""
    pyarrow = require_pyarrow()
    for one in parquet_files(path):
        with _readable(one), pyarrow.parquet.ParquetFile(one, pre_buffer=False, buffer_size=1 << 20) as file:
            if name not in file.schema_arrow.names:
                raise ParameterError(f'{one} has no column "{name}". It has {", ".join(file.schema_arrow.names)}.')
            for batch in file.iter_batches(n_rows, columns=[name], use_threads=False):
                yield batch.column(0).to_numpy(zero_copy_only=False)


def check_ids(path: Path, name: str) -> None:
    """Raise if an id is missing, names two rows, or has another type. Eight bytes per row are in memory meanwhile."""
    parts: list[NDArray[np.int64]] = []
    first, kinds = 0, set()
    for ids in batches_of(path, name):
        if ids.dtype.kind in "iu":
            parts.append(ids.astype(np.int64))
        else:
            values = ids.tolist()
            missing = next((row for row, one in enumerate(values) if one is None or one == "" or one != one), None)
            if missing is not None:
                raise DataError(f'Column "{name}" of {path} has no id in row {first + missing}. Fill it in.')
            parts.append(np.fromiter(map(hash, values), np.int64, len(values)))
        if len(ids):
            kinds.add(str(ids.dtype) if ids.dtype.kind != "O" else type(ids[0]).__name__)
        if len(kinds) > 1:
            raise DataError(
                f'Column "{name}" of {path} changes its type in row {first}: {" and ".join(sorted(kinds))}. Write ids '
                "with one type."
            )
        first += len(ids)
    keys = np.concatenate(parts)
    del parts
    keys.sort()
    again = set(keys[1:][keys[1:] == keys[:-1]].tolist())
    if not again:
        return
    # Different ids may have one hash, so the ids themselves are compared.
    found: dict[Any, int] = {}
    row = 0
    for ids in batches_of(path, name):
        is_key = ids.dtype.kind in "iu"
        for value in ids.tolist():
            if (_wrapped(value) if is_key else hash(value)) in again and found.setdefault(value, row) != row:
                raise DataError(
                    f'Column "{name}" of {path} names two rows "{value}" (rows {found[value]} and {row}). Ids must '
                    "differ: choose another column."
                )
            row += 1


def _wrapped(value: int) -> int:
    """A whole number as it is stored in 64 bits with a sign."""
    return value if value < 2**63 else value - 2**64


def prepared(rows: StoredRows, columns: Columns, how: str) -> tuple[StoredRows, list[Encoding]]:
    """Scale and weigh the columns as for tables in memory, and describe them; a matrix is used as it is by default."""
    if how == "robust":
        raise ParameterError("--scale robust needs all rows in memory. Use standard, minmax or none, or --no-stream.")
    is_matrix = columns.used is None or columns.vectors.issuperset(columns.used)
    if how in ("auto", "none") and is_matrix:
        return rows, []
    measured = _measured(rows)
    shift, width = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
    if how == "minmax":
        shift, width = measured.lowest.copy(), measured.highest - measured.lowest
    # Truth values are two categories, which count as if they were standardised, whatever is done to numbers.
    standard = _places_of(columns, columns.flags, rows.shape[1])
    if how == "standard":
        standard[:] = True
    elif how == "auto":
        standard |= ~_places_of(columns, columns.vectors, rows.shape[1])
    shift[standard], width[standard] = measured.mean[standard], np.sqrt(measured.variance[standard])
    width = np.where(width > 0, width, 1)
    variance = measured.variance / width**2
    told = [] if is_matrix else _weigh(columns, measured, how, width, variance)
    shift, width = shift.astype(rows.dtype), width.astype(rows.dtype)
    return rows.prepared(lambda block: np.divide(np.subtract(block, shift, out=block), width, out=block)), told


def _places_of(columns: Columns, names: set[str], n_columns: int) -> NDArray[np.bool_]:
    """Which numbers of a row belong to these columns."""
    if columns.used is None:
        return np.zeros(n_columns, dtype=bool)
    return np.repeat([name in names for name in columns.used], columns.widths)


class _Measured(NamedTuple):
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]


def _measured(rows: StoredRows) -> _Measured:
    """Range, mean and variance of each column, in one pass."""
    lowest, highest = np.full(rows.shape[1], np.inf), np.full(rows.shape[1], -np.inf)
    total, squares = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    first = rows.read(0, 1)[0].astype(np.float64)
    for start in range(0, len(rows), BATCH_ROWS):
        block = rows.read(start, min(start + BATCH_ROWS, len(rows))).astype(np.float64) - first
        lowest, highest = np.minimum(lowest, block.min(axis=0)), np.maximum(highest, block.max(axis=0))
        total += block.sum(axis=0)
        squares += (block**2).sum(axis=0)
    mean = total / len(rows)
    variance = np.maximum(squares / len(rows) - mean**2, 0)
    return _Measured(first + lowest, first + highest, first + mean, np.where(highest > lowest, variance, 0))


def _weigh(
    columns: Columns, measured: _Measured, how: str, width: NDArray[np.float64], variance: NDArray[np.float64]
) -> list[Encoding]:
    """Give each vector beside other columns the weight of one of them, in `width`; describe all columns."""
    used = columns.used or []
    ends = np.cumsum(columns.widths)
    places = {name: slice(end - n, end) for name, n, end in zip(used, columns.widths, ends.tolist(), strict=True)}
    constant = {
        name
        for name, place in places.items()
        if name not in columns.vectors and (measured.lowest[place] == measured.highest[place]).all()
    }
    spreads = {name: float(variance[place].sum()) for name, place in places.items() if name not in constant}
    if not spreads:
        raise DataError(f"No column is left to cluster by: each of {', '.join(used)} has one value only.")
    if len(spreads) > 1:
        for name in columns.vectors & spreads.keys():
            if spreads[name] > 0:
                width[places[name]] *= np.sqrt(spreads[name])
                spreads[name] = 1.0
    total = sum(spreads.values()) or 1.0
    told = []
    for name in columns.all:
        if name in constant:
            told.append(Encoding(name, "left out", 0, 0.0, ONE_VALUE))
        elif name in spreads:
            n = places[name].stop - places[name].start
            kind, words = "number", scaling_words(how)
            if name in columns.vectors:
                kind = "vector"
                words = f"{n} numbers, {'as it is' if how in ('auto', 'none') else f'{how} scale'}"
            elif name in columns.flags:
                kind, words = "category", "2 categories"
            told.append(Encoding(name, kind, n, spreads[name] / total, words))
        else:
            why = NAMES_ROWS if name in columns.naming else "not among the columns to use"
            told.append(Encoding(name, "left out", 0, 0.0, why))
    return told
