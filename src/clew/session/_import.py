"""Read answers from files of any tool or from records."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from clew._frames import as_frame
from clew._tables import InputFile
from clew.active import Answer
from clew.constraints import AnswerRecord, read_answers
from clew.constraints._answers import is_certain
from clew.exceptions import ParameterError

_FIELDS = tuple(one.name for one in fields(AnswerRecord))


def answers_in(given: Any, format: str | None, table: Mapping[Any, Mapping[str, Any]]) -> list[AnswerRecord]:
    """Read answers from a file, a frame, or records: dicts, (id_1, id_2, answer) tuples, or `AnswerRecord`."""
    is_file = isinstance(given, str | os.PathLike)
    if is_file or as_frame(given) is not None:
        name = InputFile.of(given).name if is_file else None
        found = read_answers(given, format=format, table=table)
        return [one if one.source is not None else _record(vars(one) | {"source": name}) for one in found]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise ParameterError(f"Expected a file, a frame or records to import, got {type(given).__name__}.")
    return [_record(one) for one in given]


def _record(one: Any) -> AnswerRecord:
    if isinstance(one, AnswerRecord):
        return one
    if isinstance(one, tuple | list) and len(one) == 3:
        one = dict(zip(_FIELDS, one, strict=False))
    if not isinstance(one, Mapping) or not {"id_1", "id_2", "answer"} <= set(one):
        raise ParameterError(f"{one!r}: expected id_1, id_2 and answer.")
    answer = Answer.of(one["answer"]).value
    values: dict[str, Any] = {"certain": is_certain(answer, one.get("confidence"), one.get("annotator"))}
    values |= {name: one[name] for name in _FIELDS if one.get(name) not in (None, "")}
    return AnswerRecord(**values | {"answer": answer})
