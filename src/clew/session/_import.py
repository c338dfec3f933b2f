"""Answers from elsewhere: files and records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.active import Answer
from clew.constraints import read_records
from clew.exceptions import FileError, ParameterError


@dataclass(frozen=True)
class Imported:
    """One answer as it was found."""

    left: Any
    right: Any
    answer: str
    confidence: float = 1.0
    annotator: str | None = None
    time: str | None = None
    seconds: float | None = None
    comment: str | None = None


def answers_in(given: Any) -> tuple[list[Imported], str]:
    """The answers of a file or of records, and where they are from."""
    if isinstance(given, str | os.PathLike):
        records = read_records(given)
        names = {name: records.column(name)[0] for name in ("id_1", "id_2", "answer")}
        n_records = len(records.columns[names["answer"]])
        lines = [
            {
                key: records.columns[names.get(key, key)][place]
                for key in _KEYS
                if names.get(key, key) in records.columns
            }
            for place in range(n_records)
        ]
        found = []
        for place, line in enumerate(lines):
            try:
                found.append(_imported(line))
            except ParameterError as error:
                raise FileError(f"{records.where(place)}: {error}") from None
        return found, Path(given).name
    if isinstance(given, Iterable):
        return [_imported(one) for one in given], "records"
    raise ParameterError(f"Expected a file or records to import, got {type(given).__name__}.")


_KEYS = ("id_1", "id_2", "answer", "confidence", "annotator", "time", "seconds", "comment")


def _imported(record: Any) -> Imported:
    if isinstance(record, tuple | list) and len(record) == 3:
        record = dict(zip(("id_1", "id_2", "answer"), record, strict=True))
    if not isinstance(record, Mapping) or not {"id_1", "id_2", "answer"} <= set(record):
        raise ParameterError(f"{record!r}: expected id_1, id_2 and answer.")
    answer = Answer.of(record["answer"]).value
    return Imported(
        record["id_1"], record["id_2"], answer, _number(record, "confidence", 1.0), _text(record, "annotator"),
        _text(record, "time"), _number(record, "seconds", None), _text(record, "comment"),
    )  # fmt: skip


def _text(record: Mapping[str, Any], name: str) -> str | None:
    value = record.get(name)
    return None if value is None or value == "" or value != value else str(value)


def _number(record: Mapping[str, Any], name: str, default: float | None) -> Any:
    text = _text(record, name)
    try:
        return default if text is None else float(text)
    except ValueError:
        raise ParameterError(f"{name}={text!r} is no number.") from None
