"""Files of constraints, read: csv, tsv, jsonl, parquet."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from clew._tables import delimiter_of, require_pyarrow, unguarded
from clew.constraints._records import Records
from clew.exceptions import FileError

_Table = tuple[Mapping[str, Sequence[Any]], Callable[[int], str]]
FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")


def read_records(path: str | os.PathLike[str]) -> Records:
    """Read a file of answers, whatever its format; errors name the file and the line."""
    path = Path(path)
    reader = {".csv": _read_csv, ".tsv": _read_csv, ".jsonl": _read_jsonl, ".parquet": _read_parquet}
    if path.suffix.lower() not in reader:
        raise FileError(
            f"{path.name}: cannot read {path.suffix or 'a file without an ending'!r}. Use {', '.join(FORMATS)}."
        )
    try:
        path.open("rb").close()  # one sentence for a missing file, whatever the reader of its format would say
        columns, where = reader[path.suffix.lower()](path)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}. Check the path.") from None
    except UnicodeDecodeError as error:
        line = _first_line_not_utf8(path)
        raise FileError(f"{path.name} line {line}: not UTF-8. Save the file as UTF-8.") from error
    return Records(columns, where, FileError, path.name)


def _first_line_not_utf8(path: Path) -> int:
    content = path.read_bytes()
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return content.count(b"\n", 0, error.start) + 1
    return 1


def _read_csv(path: Path) -> _Table:
    with open(path, newline="", encoding="utf-8-sig") as file:
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


def _read_jsonl(path: Path) -> _Table:
    objects, lines = [], []
    with open(path, encoding="utf-8-sig") as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                value = json.loads(text)
            except json.JSONDecodeError as error:
                raise FileError(f"{path.name} line {number}: not JSON ({error.msg}).") from None
            if not isinstance(value, dict):
                raise FileError(f"{path.name} line {number}: expected one JSON object a line.")
            objects.append(value)
            lines.append(number)
    names = dict.fromkeys(name for value in objects for name in value) if objects else ["id_1", "id_2", "answer"]
    columns = {name: [value.get(name) for value in objects] for name in names}
    return columns, lambda place: f"{path.name} line {lines[place]}"


def _read_parquet(path: Path) -> _Table:
    parquet = require_pyarrow().parquet
    try:
        table = parquet.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise FileError(f"{path.name}: not readable as parquet ({error}).") from None
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return columns, lambda place: f"{path.name} row {place}"
