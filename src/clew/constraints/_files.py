"""Files of constraints: csv, tsv, jsonl, parquet."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from clew.constraints._records import Records
from clew.exceptions import FileError, MissingExtraError

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
        columns, where = reader[path.suffix.lower()](path)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}. Check the path.") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{path.name}: byte {error.start} is not UTF-8. Save the file as UTF-8.") from None
    return Records(columns, where, FileError, path.name)


def write_records(path: str | os.PathLike[str], columns: dict[str, list[Any]]) -> None:
    """Write a table; the file appears whole or not at all."""
    path = Path(path)
    writer = {".csv": _write_csv, ".tsv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
    if path.suffix.lower() not in writer:
        raise FileError(
            f"{path.name}: cannot write {path.suffix or 'a file without an ending'!r}. Use {', '.join(FORMATS)}."
        )
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        os.close(handle)
    except OSError as error:
        raise FileError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from None
    try:
        writer[path.suffix.lower()](Path(temporary), columns, path.suffix.lower())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise FileError(f"{path}: cannot be written ({error.strerror}). Choose another place.") from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _read_csv(path: Path) -> _Table:
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
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
                rows.append(row)
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
    parquet = _pyarrow("parquet")
    try:
        table = parquet.read_table(path)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise FileError(f"{path.name}: not readable as parquet ({error}).") from None
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return columns, lambda place: f"{path.name} row {place}"


def _write_csv(path: Path, columns: dict[str, list[Any]], suffix: str) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        _flush(file)


def _write_jsonl(path: Path, columns: dict[str, list[Any]], suffix: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for row in zip(*columns.values(), strict=True):
            record = {name: value for name, value in zip(columns, row, strict=True) if value is not None}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        _flush(file)


def _write_parquet(path: Path, columns: dict[str, list[Any]], suffix: str) -> None:
    parquet = _pyarrow("parquet")
    parquet.write_table(_pyarrow("lib").Table.from_pydict(columns), path)


def _flush(file: IO[str]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _pyarrow(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"pyarrow.{module}")
    except ImportError:
        raise MissingExtraError("Parquet files need pyarrow: pip install 'clew[io]'") from None
