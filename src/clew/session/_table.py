"""The user's rows: referenced, not copied, with a fingerprint that tells what has changed.

A row is known by its id and keeps its number (its *ordinal*) for ever. Rows come from the table the project refers to,
and from tables that were added later, which the log holds.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.constraints import key_of
from clew.datasets import Encoded, Table, as_table, encode
from clew.exceptions import DataError, FileError, NotFoundError, ParameterError

IntArray = npt.NDArray[np.int64]
HashArray = npt.NDArray[np.uint64]

_MOST_NAMED = 5
# Lists of so many numbers may be curves; their neighbours are alike from this autocorrelation on, over so many rows.
_LEAST_CURVE, _MOST_CURVE = 5, 4096
_ALIKE, _CURVES_SEEN = 0.3, 200


@dataclass(frozen=True)
class Changes:
    """What differs between the data now and the data the project knows; false when nothing does.

    Attributes
    ----------
    added : list
        Ids in the data that the project does not know: `Session.add_rows` takes them in.
    missing : list
        Ids the project knows that the data lacks. Their answers are kept; they are out of every fit until they return.
    changed : list
        Ids whose values differ.
    new_columns, lost_columns : list of str
    """

    added: list[Any] = field(default_factory=list)
    missing: list[Any] = field(default_factory=list)
    changed: list[Any] = field(default_factory=list)
    new_columns: list[str] = field(default_factory=list)
    lost_columns: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return any((self.added, self.missing, self.changed, self.new_columns, self.lost_columns))

    def __str__(self) -> str:
        parts = [
            _counted(self.added, "row is new", "rows are new"),
            _counted(self.missing, "row is missing", "rows are missing"),
            _counted(self.changed, "row has other values", "rows have other values"),
            _counted(self.new_columns, "column is new", "columns are new"),
            _counted(self.lost_columns, "column is gone", "columns are gone"),
        ]
        told = [part for part in parts if part]
        return f"The data has changed: {'; '.join(told)}." if told else "The data is as it was."


def _counted(things: Sequence[Any], one: str, many: str) -> str:
    if not things:
        return ""
    named = ", ".join(map(str, things[:_MOST_NAMED])) + (", ..." if len(things) > _MOST_NAMED else "")
    return f"{len(things)} {one if len(things) == 1 else many} ({named})"


# -- tables in ---------------------------------------------------------------------------------------------------------


def table_of(data: Any, id_column: str | None = None) -> Table:
    """A table from a path, a frame, an array or records; ids are kept as they are written."""
    return as_table(data, text=[] if id_column is None else [id_column])


def ids_of(table: Table, id_column: str | None) -> list[Any]:
    """The user's names of the rows; their numbers where no column names them."""
    if id_column is None:
        return list(range(table.n_rows))
    return [_plain(value) for value in table.ids(id_column).tolist()]


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def packed_table(table: Table) -> bytes:
    """A table as bytes (npz, no pickle), for data that is in no file."""
    stored: dict[str, Any] = {"features": np.array(table.features, dtype=str)}
    for name, column in table.values.items():
        if sparse.issparse(column):
            matrix = column.tocsr()
            stored |= {f"sparse.data {name}": matrix.data, f"sparse.indices {name}": matrix.indices}
            stored |= {f"sparse.indptr {name}": matrix.indptr, f"sparse.shape {name}": np.array(matrix.shape)}
        elif column.dtype == object:
            stored[f"text {name}"] = np.frombuffer(json.dumps(column.tolist(), default=str).encode(), dtype=np.uint8)
        else:
            stored[f"column {name}"] = column
    stream = io.BytesIO()
    np.savez_compressed(stream, **stored)
    return stream.getvalue()


def unpacked_table(body: bytes) -> Table:
    """The table that `packed_table` packed."""
    with np.load(io.BytesIO(body), allow_pickle=False) as stored:
        values: dict[str, Any] = {}
        for key in stored.files:
            kind, _, name = key.partition(" ")
            if kind == "text":
                values[name] = np.array(json.loads(stored[key].tobytes()), dtype=object)
            elif kind == "column":
                values[name] = stored[key]
            elif kind == "sparse.data":
                parts = (stored[key], stored[f"sparse.indices {name}"], stored[f"sparse.indptr {name}"])
                values[name] = sparse.csr_matrix(parts, shape=stored[f"sparse.shape {name}"])
        features = tuple(stored["features"].tolist())
    return Table("the stored data", values, features, int(next(iter(values.values())).shape[0]))


# -- fingerprints ------------------------------------------------------------------------------------------------------


def row_hashes(table: Table, columns: Iterable[str]) -> HashArray:
    """A hash of each row over some columns; the same on every machine, whatever the order of rows."""
    total = np.zeros(table.n_rows, dtype=np.uint64)
    for name in columns:
        seed = np.uint64(_text_hash(name))
        with np.errstate(over="ignore"):
            total = _mixed(total * np.uint64(0x9E3779B97F4A7C15) + seed + _column_hashes(table.values[name]))
    return total


def _column_hashes(column: Any) -> HashArray:
    if sparse.issparse(column):
        matrix = column.tocsr().sorted_indices()
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        cells = _mixed(_number_bits(matrix.data) + matrix.indices.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93))
        total = np.zeros(matrix.shape[0], dtype=np.uint64)
        np.add.at(total, rows, cells)
        return total
    if column.dtype == object:
        found = {value: _text_hash(value) for value in set(column.tolist())}
        return np.array([found[value] for value in column.tolist()], dtype=np.uint64)
    cells = _number_bits(column.reshape(len(column), -1))
    total = np.zeros(len(column), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for place in range(cells.shape[1]):
            total = _mixed(total * np.uint64(0x9E3779B97F4A7C15) + cells[:, place])
    return total


def _number_bits(values: npt.NDArray[Any]) -> HashArray:
    numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # -0.0 and 0.0 are one number
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    return numbers.view(np.uint64)


def _mixed(bits: HashArray) -> HashArray:
    """The finaliser of splitmix64: every bit depends on every other."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))


def _text_hash(text: Any) -> int:
    return int.from_bytes(hashlib.blake2b(str(text).encode(), digest_size=8).digest(), "little")


def packed_rows(ids: Sequence[Any], hashes: HashArray, table: Table | None) -> bytes:
    """Ids and fingerprints of rows, and the rows themselves where no file holds them."""
    stored: dict[str, Any] = {"ids": np.frombuffer(json.dumps(list(ids)).encode(), dtype=np.uint8), "hashes": hashes}
    if table is not None:
        stored["table"] = np.frombuffer(packed_table(table), dtype=np.uint8)
    stream = io.BytesIO()
    np.savez_compressed(stream, **stored)
    return stream.getvalue()


def unpacked_rows(body: bytes) -> tuple[list[Any], HashArray, Table | None]:
    """What `packed_rows` packed."""
    with np.load(io.BytesIO(body), allow_pickle=False) as stored:
        table = unpacked_table(stored["table"].tobytes()) if "table" in stored.files else None
        return json.loads(stored["ids"].tobytes()), stored["hashes"], table


# -- rows of a project -------------------------------------------------------------------------------------------------


class Rows:
    """All rows of a project: their ids, where their values are, and the matrix to cluster.

    Attributes
    ----------
    ids : list
        By ordinal.
    present : ndarray of ints
        Ordinals of the rows that have values now, ascending; position p of `X` is row ``present[p]``.
    position : ndarray of ints
        By ordinal, -1 where a row is missing.
    encoded : Encoded
        The values of the present rows, and what became of each column.
    X : ndarray
    changes : Changes
    """

    def __init__(self, settings: dict[str, Any], base: Table, known: Sequence[bytes]) -> None:
        id_column, columns = settings["id_column"], settings["table_columns"]
        self.ids: list[Any] = []
        self.ordinal: dict[str, int] = {}
        base_row = {key_of(name): row for row, name in enumerate(ids_of(base, id_column))}
        shared = [name for name in columns if name in base.values]
        base_hashes = row_hashes(base, shared) if len(shared) == len(columns) else None
        parts, sources, rows, missing, changed = [base], [], [], [], []
        for body in known:
            ids, hashes, table = unpacked_rows(body)
            stored = table is not None and body is not known[0]
            if stored and table is not None:
                parts.append(table)
            for place, name in enumerate(ids):
                key = key_of(name)
                self.ordinal[key] = len(self.ids)
                self.ids.append(name)
                row = place if stored else base_row.get(key, -1)
                sources.append((len(parts) - 1 if stored else 0) if row >= 0 else -1)
                rows.append(row)
                if row < 0:
                    missing.append(name)
                elif not stored and base_hashes is not None and base_hashes[row] != hashes[place]:
                    changed.append(name)
        new = [name for name in ids_of(base, id_column) if key_of(name) not in self.ordinal]
        self.changes = Changes(
            new, missing, changed,
            [name for name in base.values if name not in columns], [name for name in columns if name not in shared],
        )  # fmt: skip
        source, row_of = np.array(sources, dtype=np.int64), np.array(rows, dtype=np.int64)
        self.present = np.flatnonzero(source >= 0)
        if not len(self.present):
            raise DataError(f"{base.source} holds none of the rows of this project. Check the file and its id column.")
        self.position = np.full(len(self.ids), -1, dtype=np.int64)
        self.position[self.present] = np.arange(len(self.present))
        table = _joined(parts, shared, source[self.present], row_of[self.present])
        self.encoded = encoded(table, settings)
        self.X = self.encoded.X

    def find(self, name: Any) -> int:
        """The ordinal of a row from the user's id."""
        key = key_of(name)
        if key not in self.ordinal:
            raise NotFoundError(f"There is no row {name!r}. Rows are named by their ids, such as {self.ids[0]!r}.")
        return self.ordinal[key]

    def find_present(self, name: Any) -> int:
        """The position in X of a row from the user's id."""
        position = int(self.position[self.find(name)])
        if position < 0:
            raise ParameterError(f"Row {name!r} is missing from the data now; nothing can be said about it.")
        return position

    def names(self, positions: Iterable[int]) -> list[Any]:
        """The user's ids of positions in X."""
        return [self.ids[self.present[position]] for position in positions]

    @property
    def records(self) -> Mapping[Any, Mapping[str, Any]]:
        """The user's rows by their ids, for answers about whole records."""
        return self.encoded.table.rows(np.array(self.names(range(len(self.present))), dtype=object))

    def values(self, name: Any) -> dict[str, Any]:
        """The user's values of a row; of columns of vectors, curves are shown and other lists of numbers left out."""
        position = self.find_present(name)
        values, curves = self.encoded.values, self._curves
        return {
            column: values[column][position] if column in values else curves[column][position].tolist()
            for column in self.encoded.table.values
            if column in values or column in curves
        }

    @cached_property
    def _curves(self) -> dict[str, npt.NDArray[Any]]:
        return {
            name: column
            for name, column in self.encoded.table.values.items()
            if name not in self.encoded.values and is_curve(column)
        }


def is_curve(column: Any) -> bool:
    """Whether vectors are worth looking at as curves: numbers next to each other are alike, unlike in embeddings."""
    if sparse.issparse(column) or column.ndim != 2 or not _LEAST_CURVE <= column.shape[1] <= _MOST_CURVE:
        return False
    some = np.asarray(column[:: max(1, len(column) // _CURVES_SEEN)], dtype=np.float64)
    centred = some - some.mean(axis=1, keepdims=True)
    squares = (centred**2).sum()
    return bool(squares > 0 and (centred[:, 1:] * centred[:, :-1]).sum() > _ALIKE * squares)


def _joined(parts: list[Table], columns: list[str], source: IntArray, row_of: IntArray) -> Table:
    """Rows from several tables as one, in the order asked for."""
    values: dict[str, Any] = {}
    for name in columns:
        pieces = [part.values[name] for part in parts]
        starts = np.cumsum([0, *(piece.shape[0] for piece in pieces[:-1])])
        if any(sparse.issparse(piece) for piece in pieces):
            whole: Any = sparse.vstack(pieces, format="csr")
        else:
            is_text = any(piece.dtype == object for piece in pieces)
            whole = np.concatenate([_as_text(piece) if is_text else piece for piece in pieces])
        values[name] = whole[starts[source] + row_of]
    features = tuple(name for name in parts[0].features if name in values)
    return Table(parts[0].source, values, features, len(source))


def _as_text(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if column.dtype == object:
        return column
    return np.array(["" if value != value else str(_plain(value)) for value in column.tolist()], dtype=object)


def like(table: Table, columns: Sequence[str]) -> Table:
    """A table to be added, with the columns of the project in their order."""
    lost = next((name for name in columns if name not in table.values), None)
    if lost is not None:
        raise DataError(f"{table.source} lacks the column {lost!r} of the project. It has {', '.join(table.values)}.")
    return Table(table.source, {name: table.values[name] for name in columns}, tuple(columns), table.n_rows)


def encoded(table: Table, settings: dict[str, Any]) -> Encoded:
    """The vectors to cluster by: the one place that decides how columns become numbers."""
    return encode(
        table,
        id_column=settings["id_column"],
        columns=settings["columns"],
        scale=settings["scale"],
        text=settings["text"],
        random_state=settings["random_state"],
    )


def reference(data: Any, folder: Path | None) -> dict[str, Any] | None:
    """How to find a data file again: its path as such, and from the project's folder."""
    if not isinstance(data, str | os.PathLike):
        return None
    path = Path(data).resolve()
    relative = None if folder is None else os.path.relpath(path, folder)
    return {"path": str(path), "relative": relative}


def referenced(where: dict[str, Any], folder: Path | None) -> Path:
    """The data file a project refers to: beside the project if it moved with it, else where it was."""
    if folder is not None and where["relative"] is not None and (folder / where["relative"]).exists():
        return folder / where["relative"]
    path = Path(where["path"])
    if not path.exists():
        raise FileError(f"The data {path} is gone. Say where it is now: Session.open(project, data=...).")
    return path
