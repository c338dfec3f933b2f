"""The file of `clew cluster --unlike`: known clusters, in the format of the labels file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew._base import NOISE
from clew._tables import unguarded
from clew.datasets import Table, as_table
from clew.exceptions import DataError, ParameterError

# Columns of a labels file that do not hold clusters.
_OTHER_COLUMNS = ("probability", "name")


def known_clusters(path: Path, table: Table, ids: NDArray[Any] | None, id_column: str | None) -> NDArray[np.int64]:
    """Return the known cluster of each row of the table as a number. The number -1 is noise, a row in no cluster.

    The file has a column of ids (or of row numbers, ``row``) and the column ``cluster``, as `clew cluster` and
    `clew export labels` write it. Rows may be in any order, and every row of the table must have a cluster.
    """
    file = as_table(path)
    key = next((name for name in (id_column, "id" if id_column else "row") if name in file.values), None)
    if key is None and id_column is not None:
        raise ParameterError(
            f'{path} has no column "{id_column}" to find the rows by. It has {", ".join(file.columns)}.'
        )
    if key is None and (shared := [name for name in file.columns if name in table.values and name != "cluster"]):
        raise ParameterError(f'{path} names its rows in the column "{shared[0]}": add --id {shared[0]}.')
    column = _cluster_column(path, file, key)
    cells = as_table(path, text=[name for name in (key, column) if name])
    words = [unguarded(_word(value)) for value in cells.column(column).tolist()]
    rows = None if key is None else [unguarded(_word(value)) for value in cells.column(key).tolist()]
    wanted = [str(row) for row in range(table.n_rows)] if ids is None else [_word(value) for value in ids.tolist()]
    if rows is None:
        if file.n_rows != table.n_rows:
            raise DataError(
                f"{path} has {file.n_rows} rows, but {table.source} has {table.n_rows}. Give one cluster per row."
            )
        found = words
    else:
        found = _matched(path, table, dict(zip(rows, words, strict=True)), wanted, len(rows))
    missing = next((row for row, word in zip(wanted, found, strict=True) if not word), None)
    if missing is not None:
        raise DataError(f'{path}: row {missing} has an empty cell in the column "{column}". Fill it in; -1 is noise.')
    clusters, codes = np.unique(found, return_inverse=True)
    noise = np.isin(clusters, ["-1", NOISE])
    if (~noise).sum() < 2:
        raise DataError(
            f"{path}: all rows are in one cluster, so every clustering is unlike it. Give a file with two or "
            "more clusters, or leave out --unlike."
        )
    return np.where(noise[codes], -1, codes)


def _cluster_column(path: Path, file: Table, key: str | None) -> str:
    """The column ``cluster``, or the only column except the ids."""
    if "cluster" in file.values and key != "cluster":
        return "cluster"
    others = [name for name in file.columns if name != key and name not in _OTHER_COLUMNS]
    if len(others) != 1:
        raise ParameterError(
            f'{path} has no column "cluster". It has {", ".join(file.columns)}. Rename the column of clusters.'
        )
    return others[0]


def _matched(path: Path, table: Table, known: dict[str, str], wanted: list[str], n_rows: int) -> list[str]:
    """The cluster of each row, found by its id."""
    if len(known) != n_rows:
        raise DataError(f"{path} names {n_rows - len(known)} rows twice. Give one cluster per row.")
    missing = [row for row in wanted if row not in known]
    if missing:
        raise DataError(
            f"{path} has no cluster for {len(missing)} of {table.n_rows} rows of {table.source}, such as {missing[0]}. "
            "Give one cluster per row."
        )
    if len(known) > len(wanted):
        other = next(row for row in known if row not in set(wanted))
        raise DataError(
            f"{path} has {len(known)} rows, but {table.source} has {table.n_rows}: it has no row {other}. Give the "
            "clusters of this table."
        )
    return [known[row] for row in wanted]


def _word(value: Any) -> str:
    """A cell as text; whole numbers have no decimal point."""
    if isinstance(value, float):
        value = "" if value != value else int(value) if value.is_integer() else value
    return str(value).strip()
