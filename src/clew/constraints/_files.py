"""Read files of constraints: clew's own csv, tsv, jsonl and parquet, and files of other tools."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from clew._frames import as_frame
from clew._tables import (
    InputFile,
    delimiter_of,
    encoding_of,
    read_json_lines,
    reading_arrays,
    require_pyarrow,
    unguarded,
)
from clew.constraints._records import AnswerTable, key_of
from clew.constraints.formats import read_document, recognised
from clew.constraints.formats._document import Document
from clew.exceptions import ConstraintError, FileError

_Content = tuple[Any, Callable[[int], str]]
FORMATS = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt", ".npz")


def read_records(
    source: Any,
    *,
    format: str | None = None,
    table: Mapping[Any, Mapping[str, Any]] | None = None,
    id_columns: str | Sequence[str] = (),
    known: Iterable[Any] | None = None,
) -> AnswerTable:
    """Read a file, or a frame, of answers of any known tool. Errors name the file and the line."""
    columns = (id_columns,) if isinstance(id_columns, str) else tuple(id_columns)
    keys = None if known is None else frozenset(map(key_of, known))
    frame = None if isinstance(source, str | os.PathLike) else as_frame(source, ConstraintError)
    if frame is not None:
        return records_of_document(document_of_frame(frame, table, columns, keys), format)
    path = InputFile.of(source)
    reader = _READERS.get(path.suffix)
    if reader is None:
        raise FileError(
            f"{path.name}: cannot read {path.suffix or 'a file without an ending'!r}. Use {', '.join(FORMATS)}."
        )
    try:
        path.path.open("rb").close()  # the same message for a missing file in every format
        content, where = reader(path)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}. Check the path.") from None
    except RecursionError:
        raise FileError(f"{path.name}: its JSON is nested too deeply to be answers.") from None
    except UnicodeDecodeError as error:
        line = _first_line_not_utf8(path)
        raise FileError(f"{path.name} line {line}: not UTF-8. Save the file as UTF-8.") from error
    return records_of_document(Document(path.name, content, where, FileError, table, columns, keys), format)


def document_of_frame(
    frame: nw.DataFrame[Any], table: Any = None, id_columns: tuple[str, ...] = (), known: frozenset[Any] | None = None
) -> Document:
    """The cells of a frame, in the same form as the cells of a file."""
    content = {str(name): _cells(frame.get_column(name)) for name in frame.columns}
    return Document("The frame", content, constraints_row, ConstraintError, table, id_columns, known)


def constraints_row(place: int) -> str:
    """The name, in messages, of a row of constraints that were not read from a file."""
    return f"constraints row {place}"


def _cells(column: nw.Series[Any]) -> list[Any]:
    missing = column.is_null().to_list()
    return [None if gone else value for value, gone in zip(column.to_list(), missing, strict=True)]


def records_of_document(document: Document, format: str | None = None) -> AnswerTable:
    """Read the answers in a document of another tool, or in clew's own columns."""
    tool = recognised(document, format)
    if tool is not None:
        return read_document(document, tool)
    content = document.content
    if isinstance(content, list):
        names = dict.fromkeys(name for _, row in document.rows() for name in row) or ["id_1", "id_2", "answer"]
        content = {name: [row.get(name) for row in content] for name in names}
    elif not document.is_table:
        raise document.error(
            f"{document.name}: cannot tell which tool wrote it; it has {', '.join(list(content)[:5])}, … "
            "Name it: format='...'."
        )
    return AnswerTable(content, document.where, document.error, document.name)


def _first_line_not_utf8(path: InputFile) -> int:
    content = path.path.read_bytes()
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return 1


def _read_csv(path: InputFile) -> _Content:
    with open(path, newline="", encoding=encoding_of(path)) as file:
        first = file.readline()
        reader = csv.reader(chain([first], file), delimiter=delimiter_of(path, first))
        try:
            header = [name.strip() for name in next(reader, [])]
            rows, lines = [], []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise FileError(
                        f"{path.name} line {reader.line_num}: {len(row)} cells, but the header has {len(header)}."
                    )
                rows.append([unguarded(cell) for cell in row])
                lines.append(reader.line_num)
        except csv.Error as error:
            raise FileError(f"{path.name} line {reader.line_num}: {error}.") from None
    if not header:
        raise FileError(f"{path.name} is empty. Expected a header: id_1,id_2,answer[,confidence].")
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    return dict(zip(header, cells, strict=True)), lambda place: f"{path.name} line {lines[place]}"


def _read_jsonl(path: InputFile) -> _Content:
    objects, lines = read_json_lines(path)
    return objects, lambda place: f"{path.name} line {lines[place]}"


def _read_json(path: InputFile) -> _Content:
    try:
        value = json.loads(path.path.read_text(encoding=encoding_of(path)))
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object per line: JSON Lines with the wrong ending
            return _read_jsonl(path)
        raise FileError(f"{path.name} line {error.lineno}: not JSON ({error.msg}).") from None
    except ValueError:  # Python refuses integers of more than 4,300 digits
        raise FileError(f"{path.name}: a number has too many digits to be read.") from None
    if not isinstance(value, list | dict):
        raise FileError(f"{path.name}: expected a list of objects, or one object; found {type(value).__name__}.")
    return value, lambda place: f"{path.name}, object {place}"


def _read_text(path: InputFile) -> _Content:
    """Read a file of COP-Kmeans: two row numbers and 1 or -1 per line, separated by spaces."""
    rows, lines = [], []
    with open(path, encoding=encoding_of(path)) as file:
        for number, text in enumerate(file, start=1):
            cells = text.split()
            if not cells or cells[0].startswith("#"):
                continue
            if len(cells) != 3:
                raise FileError(f"{path.name} line {number}: {len(cells)} words; expected two rows and 1 or -1.")
            rows.append(cells)
            lines.append(number)
    cells_of = list(zip(*rows, strict=True)) if rows else [()] * 3
    columns = dict(zip(("id_1", "id_2", "answer"), cells_of, strict=True))
    return columns, lambda place: f"{path.name} line {lines[place]}"


def _read_pairs(path: InputFile) -> _Content:
    """Read a file of metric-learn: an array of row pairs, and an array of 1 and -1."""
    with reading_arrays(path) as file, np.load(file, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    pairs, answers = arrays.get("pairs"), arrays.get("y", arrays.get("y_pairs"))
    if pairs is None or answers is None or pairs.ndim != 2 or pairs.shape[1] != 2 or answers.shape != pairs.shape[:1]:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
        raise FileError(f'{path.name} holds {shapes}; expected "pairs" (n, 2) and "y" (n,) with 1 and -1.')
    columns = {"id_1": pairs[:, 0].tolist(), "id_2": pairs[:, 1].tolist(), "answer": answers.tolist()}
    return columns, lambda place: f"{path.name}, pair {place}"


def _read_parquet(path: InputFile) -> _Content:
    parquet = require_pyarrow().parquet
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise FileError(f"{path.name}: not readable as parquet ({error}).") from None
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return columns, lambda place: f"{path.name} row {place}"


_READERS: dict[str, Callable[[InputFile], _Content]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".parquet": _read_parquet,
    ".txt": _read_text,
    ".cons": _read_text,
    ".constraints": _read_text,
    ".npz": _read_pairs,
}
