"""The user's rows: read from the referenced file, with a hash per row that detects changes.

A row is identified by its id and keeps its number (its *ordinal*) forever. Rows come from the table that the project
refers to, and from tables that were added later and are stored in the log.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.preprocessing import normalize

from clew.constraints import key_of
from clew.datasets import Encoded, Table, as_table, encode
from clew.datasets._encode import aligned
from clew.datasets._read import sources as sources_of
from clew.datasets._text import NO_SHARED_WORDS
from clew.exceptions import DataError, FileError, NotFoundError, ParameterError

IntArray = npt.NDArray[np.int64]
HashArray = npt.NDArray[np.uint64]

_MOST_NAMED = 5
# Largest number allowed in the data. Sums of squares of larger numbers overflow.
_MOST = 1e150
# Vectors are curves if they have 5 to 4,096 numbers and an autocorrelation of at least 0.3, measured on 200 rows.
_LEAST_CURVE, _MOST_CURVE = 5, 4096
_ALIKE, _CURVES_SEEN = 0.3, 200


@dataclass(frozen=True)
class Changes:
    """Differences between the data now and the data that the project has recorded. False if there are none.

    Attributes
    ----------
    added : list
        Ids that are in the data but not yet in the project. `Session.add_rows` adds them.
    missing : list
        Ids that are in the project but not in the data. Their answers are kept, and fits leave them out until they
        return.
    changed : list
        Ids of rows with other values than before.
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
    """Read a table from a path, a frame, an array or records. Ids stay as they are written."""
    return as_table(data, text=[] if id_column is None else [id_column])


def ids_of(table: Table, id_column: str | None) -> list[Any]:
    """Ids of the rows: the values of the id column, or the row positions without one."""
    if id_column is None:
        return list(range(table.n_rows))
    names = [_plain(value) for value in table.ids(id_column).tolist()]
    first_row: dict[str, int] = {}
    for row, name in enumerate(names):
        earlier = first_row.setdefault(key_of(name), row)
        if earlier != row:
            raise DataError(
                f'Column "{id_column}" of {table.source} has the ids {names[earlier]!r} (row {earlier}) and {name!r} '
                f"(row {row}). Ids that differ only in spaces around them, or as 7 and 7.0, are one id. Change one."
            )
    return names


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def packed_table(table: Table) -> bytes:
    """Serialise a table as bytes (npz, no pickle), for data that is not in a file."""
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
    """Read a table that `packed_table` wrote."""
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
    """Hash each row over some columns. The hash is the same on every machine and in any order of rows."""
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
    """Mix the bits with the finaliser of splitmix64, so that every output bit depends on every input bit."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))


def _text_hash(text: Any) -> int:
    return int.from_bytes(hashlib.blake2b(str(text).encode(), digest_size=8).digest(), "little")


def packed_rows(ids: Sequence[Any], hashes: HashArray, table: Table | None) -> bytes:
    """Serialise ids and hashes of rows, and the rows themselves if they are not in a file."""
    stored: dict[str, Any] = {"ids": np.frombuffer(json.dumps(list(ids)).encode(), dtype=np.uint8), "hashes": hashes}
    if table is not None:
        stored["table"] = np.frombuffer(packed_table(table), dtype=np.uint8)
    stream = io.BytesIO()
    np.savez_compressed(stream, **stored)
    return stream.getvalue()


def unpacked_rows(body: bytes) -> tuple[list[Any], HashArray, Table | None]:
    """Read rows that `packed_rows` wrote."""
    with np.load(io.BytesIO(body), allow_pickle=False) as stored:
        table = unpacked_table(stored["table"].tobytes()) if "table" in stored.files else None
        return json.loads(stored["ids"].tobytes()), stored["hashes"], table


# -- rows of a project -------------------------------------------------------------------------------------------------


class ProjectRows:
    """All rows of a project: their ids, their positions in the data, and the matrix to cluster.

    Attributes
    ----------
    ids : list
        Ids by ordinal, including rows whose addition was undone.
    known : set of str
        Keys of the rows that belong to the project, without rows whose addition was undone.
    present : ndarray of ints
        Ordinals of the rows that are in the data now, ascending. Position p of `X` is the row ``present[p]``.
    position : ndarray of ints
        Position in `X` by ordinal, -1 for a missing row. For example, with four rows of which row 1 is missing,
        ``present = [0, 2, 3]`` and ``position = [0, -1, 1, 2]``.
    encoded : Encoded
        The encoded values of the present rows, and a report on each column.
    metric : {"euclidean", "cosine"}
        The metric of the settings. "auto" chooses one from the columns.
    X : ndarray
        Matrix of the present rows, scaled to length one if the metric is cosine. Strategies, fits, typical rows,
        nearest clusters and reviews all use it, so that Euclidean distances rank rows as the metric does.
    changes : Changes
    """

    def __init__(self, settings: dict[str, Any], base: Table, given: Sequence[tuple[bytes, bool]]) -> None:
        id_column, columns = settings["id_column"], settings["table_columns"]
        self._source = settings.get("source")  # projects of earlier versions have none
        self.ids: list[Any] = []
        self.ordinal: dict[str, int] = {}
        self.known: set[str] = set()
        names = ids_of(base, id_column)
        keys = [key_of(name) for name in names]
        base_row = dict(zip(keys, range(len(keys)), strict=True))
        shared = [name for name in columns if name in base.values]
        base_hashes = row_hashes(base, shared) if len(shared) == len(columns) else None
        parts, missing, changed, before = [base], [], [], []
        sources: list[int] = []
        rows: list[int] = []
        for number, (body, counts) in enumerate(given):
            ids, hashes, table = unpacked_rows(body)
            stored = table is not None and number > 0
            if stored and table is not None:
                parts.append(table)
            for place, name in enumerate(ids):
                key = key_of(name)
                ordinal = self.ordinal.setdefault(key, len(self.ids))
                if ordinal == len(self.ids):
                    self.ids.append(name)
                    sources.append(-1)
                    rows.append(-1)
                if not counts:
                    continue
                self.known.add(key)
                row = place if stored else base_row.get(key, -1)
                sources[ordinal], rows[ordinal] = (len(parts) - 1 if stored else 0) if row >= 0 else -1, row
                if row < 0:
                    missing.append(name)
                elif not stored and base_hashes is not None and base_hashes[row] != hashes[place]:
                    changed.append(name)
                    before.append(hashes[place])
        if id_column is None and base_hashes is not None:
            _require_order(base.source, changed, base_hashes, before)
        new = [name for name, key in zip(names, keys, strict=True) if key not in self.known]
        self.changes = Changes(
            new, missing, changed,
            [name for name in base.values if name not in columns], [name for name in columns if name not in shared],
        )  # fmt: skip
        source, row_of = np.array(sources, dtype=np.int64), np.array(rows, dtype=np.int64)
        self.present = np.flatnonzero(source >= 0)
        if not len(self.present):
            raise DataError(f"{base.source} holds none of the rows of this project. Check the file and its id column.")
        if self._source is not None and self._source not in shared:
            raise DataError(
                f'{base.source} has no column "{self._source}" any more. This project keeps rows with the same value '
                "in that column apart. Put the column back, or open the project with another data file."
            )
        self.position = np.full(len(self.ids), -1, dtype=np.int64)
        self.position[self.present] = np.arange(len(self.present))
        table = _joined(parts, shared, source[self.present], row_of[self.present])
        self.encoded = encoded(table, settings)
        self.metric = self.encoded.metric if settings["metric"] == "auto" else str(settings["metric"])
        self.X = normalize(self.encoded.X) if self.metric == "cosine" else self.encoded.X

    def find(self, name: Any) -> int:
        """Ordinal of the row with an id."""
        key = key_of(name)
        if key not in self.known:
            raise NotFoundError(f"There is no row {name!r}. Rows are named by their ids, such as {self.ids[0]!r}.")
        return self.ordinal[key]

    def find_present(self, name: Any) -> int:
        """Position in X of the row with an id."""
        position = int(self.position[self.find(name)])
        if position < 0:
            raise ParameterError(f"Row {name!r} is not in the data now, so answers and corrections cannot name it.")
        return position

    def ordinals(self, names: Iterable[Any]) -> IntArray:
        """Ordinals of rows with known ids, whether they are present or not."""
        return np.array([self.ordinal[key_of(name)] for name in names], dtype=np.int64)

    def positions(self, names: Iterable[Any]) -> list[int]:
        """Positions in X of rows with known ids, -1 for missing rows."""
        return self.position[self.ordinals(names)].tolist()

    def names(self, positions: Iterable[int]) -> list[Any]:
        """Ids of the rows at some positions in X."""
        return [self.ids[self.present[position]] for position in positions]

    @cached_property
    def present_ids(self) -> npt.NDArray[np.object_]:
        """Ids of all rows of X. Nobody changes this array."""
        found = np.empty(len(self.present), dtype=object)
        found[:] = self.ids if len(self.ids) == len(self.present) else [self.ids[row] for row in self.present.tolist()]
        return found

    @property
    def records(self) -> Mapping[Any, Mapping[str, Any]]:
        """The user's rows by id, for files of answers that hold whole records."""
        return self.encoded.table.rows(self.present_ids)

    @cached_property
    def compared(self) -> Table | None:
        """The columns to compare as records. None if rows are numbers, vectors or images: then `X` is compared."""
        kind_of = {
            column.name: "text" if column.how == NO_SHARED_WORDS else column.kind
            for column in self.encoded.columns
            if column.kind != "left out" or column.how == NO_SHARED_WORDS
        }
        kinds = set(kind_of.values())
        if kinds & {"vector", "image"} or not kinds & {"text", "category", "date"}:
            return None
        return self.encoded.table.only(kind_of)

    def describe(self, groups: str | None) -> str:
        """Describe how each column is used: how small groups of records compare it, or else its encoding and weight."""
        if groups != "small" or self.compared is None:
            return self.encoded.describe()
        lines = [("column", "read as", "how")]
        for column in self.encoded.columns:
            differs = "by the difference and " if column.kind in ("number", "date") else ""
            if column.name == self._source:
                lines.append((column.name, column.kind, "it names the sources: one row of each in a group"))
            elif column.name in self.compared.values:
                kind = "text" if column.kind == "left out" else column.kind
                lines.append((column.name, kind, f"compared {differs}as text"))
            else:
                lines.append((column.name, column.kind, column.how))
        return aligned(lines)

    @cached_property
    def sources(self) -> npt.NDArray[np.object_] | None:
        """The source of each row of X, "" if it has none. None if the project has no column of sources."""
        return None if self._source is None else sources_of(self.encoded.table, self._source)

    def matched(self, positions: IntArray) -> Any:
        """The rows at some positions for `MatchClustering`: records if columns are compared, else vectors."""
        if self.compared is None:
            return self.X[positions]
        values = {name: column[positions] for name, column in self.compared.values.items()}
        return replace(self.compared, values=values, n_rows=len(positions))

    def values(self, name: Any) -> dict[str, Any]:
        """Values of a row, as in the user's table. Vectors are shown only if they are curves, not embeddings."""
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


def _require_order(source: str, changed: Sequence[int], now: HashArray, before: Sequence[np.uint64]) -> None:
    """Raise if rows without an id column are in another order than before."""
    place_of = {int(one): name for name, one in zip(changed, before, strict=True)}
    moved = [(place_of[int(now[row])], row) for row in changed if int(now[row]) in place_of]
    if moved:
        old, new = moved[0]
        raise DataError(
            f"The rows of {source} are in another order than before: row {new} was row {old}, and "
            f"{len(moved)} rows moved in total. Without an id column, rows are identified by their position, so "
            "answers would apply to other rows. Restore the order, or create a new project with an id column."
        )


def is_curve(column: Any) -> bool:
    """Whether vectors are curves: neighbouring numbers are correlated, unlike in embeddings."""
    if sparse.issparse(column) or column.ndim != 2 or not _LEAST_CURVE <= column.shape[1] <= _MOST_CURVE:
        return False
    some = np.asarray(column[:: max(1, len(column) // _CURVES_SEEN)], dtype=np.float64)
    centred = some - some.mean(axis=1, keepdims=True)
    squares = (centred**2).sum()
    return bool(squares > 0 and (centred[:, 1:] * centred[:, :-1]).sum() > _ALIKE * squares)


def _joined(parts: list[Table], columns: list[str], source: IntArray, row_of: IntArray) -> Table:
    """Concatenate rows of several tables into one table, in the given order."""
    values: dict[str, Any] = {}
    for name in columns:
        pieces = [part.values[name] for part in parts]
        _require_one_width(name, parts)
        starts = np.cumsum([0, *(piece.shape[0] for piece in pieces[:-1])])
        if any(sparse.issparse(piece) for piece in pieces):
            whole: Any = sparse.vstack(pieces, format="csr")
        else:
            is_text = any(piece.dtype == object for piece in pieces)
            whole = np.concatenate([_as_text(piece) if is_text else piece for piece in pieces])
        values[name] = whole[starts[source] + row_of]
    features = tuple(name for name in parts[0].features if name in values)
    return Table(parts[0].source, values, features, len(source))


def _require_one_width(name: str, parts: list[Table]) -> None:
    """Raise if vectors have another length than the vectors of the project."""
    width = parts[0].values[name].shape[1:]
    other = next((part for part in parts if part.values[name].shape[1:] != width), None)
    if other is not None:
        raise DataError(
            f'Column "{name}" has {_numbers(other.values[name].shape[1:])} per row in {other.source}, but '
            f"{_numbers(width)} in {parts[0].source}. All rows of a project need the same number."
        )


def _numbers(width: tuple[int, ...]) -> str:
    n = width[0] if width else 1
    return f"{n} number" if n == 1 else f"{n} numbers"


def _as_text(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if column.dtype == object:
        return column
    return np.array(["" if value != value else str(_plain(value)) for value in column.tolist()], dtype=object)


def like(table: Table, columns: Sequence[str], project: Table) -> Table:
    """Select the columns of the project, in their order, from a table to be added. Raises if vector lengths differ."""
    lost = next((name for name in columns if name not in table.values), None)
    if lost is not None:
        raise DataError(f"{table.source} lacks the column {lost!r} of the project. It has {', '.join(table.values)}.")
    for name in project.values:
        _require_one_width(name, [replace(project, source="the project"), table])
    return Table(table.source, {name: table.values[name] for name in columns}, tuple(columns), table.n_rows)


def encoded(table: Table, settings: dict[str, Any]) -> Encoded:
    """Encode a table as vectors with the settings of the project."""
    require_moderate(table, settings)
    source = settings.get("source")  # projects of earlier versions have none
    return encode(
        replace(table, features=tuple(name for name in table.features if name != source)),
        id_column=settings["id_column"],
        columns=settings["columns"],
        scale=settings["scale"],
        text=settings["text"],
        mixed_as_text=settings.get("groups") == "small",
        random_state=settings["random_state"],
    )


def require_moderate(table: Table, settings: dict[str, Any]) -> None:
    """Raise if a number is so large that its square overflows."""
    for name in settings["columns"] or table.features:
        column = table.values.get(name)
        if name == settings["id_column"] or column is None or column.dtype.kind != "f":
            continue
        cells = column.data if sparse.issparse(column) else column
        large = np.abs(cells) > min(_MOST, float(np.finfo(cells.dtype).max))
        if large.any():
            raise DataError(
                f'Column "{name}" of {table.source} holds {cells[large].flat[0]:g}: its square is too large for '
                f"float64 numbers. Correct the value, or leave the column out."
            )


def reference(data: Any, folder: Path | None) -> dict[str, Any] | None:
    """Paths by which a data file is found again: absolute, and relative to the project's folder."""
    if not isinstance(data, str | os.PathLike):
        return None
    path = Path(data).resolve()
    relative = None if folder is None else os.path.relpath(path, folder)
    return {"path": str(path), "relative": relative}


def referenced(where: dict[str, Any], folder: Path | None) -> Path:
    """Path of the data file of a project: relative to the project's folder if it is there, else absolute."""
    if folder is not None and where["relative"] is not None and (folder / where["relative"]).exists():
        return folder / where["relative"]
    path = Path(where["path"])
    if not path.exists():
        raise FileError(f"The data {path} is gone. Say where it is now: Session.open(project, data=...).")
    return path
