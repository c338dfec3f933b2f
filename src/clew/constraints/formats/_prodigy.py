"""Prodigy: JSONL of tasks with two ids, answered accept, reject or ignore, or with one of several options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.constraints._records import answer_kind
from clew.constraints.formats._document import ANSWER_OF_KIND, Document, Found, name_of, time_of

_OPPOSITE = {"same": "different", "different": "same", "unsure": "unsure"}


def matches(document: Document) -> bool:
    """Whether the document has answered tasks: Prodigy's hashes, or its words for answers."""
    if document.has_columns("_task_hash", "answer"):
        return True
    first = next(iter(document.rows()), ("", {}))[1] if document.has_columns("answer") else {}
    return first.get("answer") in ("accept", "reject", "ignore")


def read(document: Document, found: Found) -> None:
    """Read the tasks. "accept" confirms the label or option of the task, or "same" if it has none."""
    for place, task in document.rows():
        found.add(
            place,
            document.pair_of_ids(place, task, task.get("meta")),
            _answer(document, place, task),
            annotator=name_of(task.get("_annotator_id") or task.get("_session_id")),
            time=time_of(task.get("_timestamp")),
            comment=task.get("comment"),
        )


def _answer(document: Document, place: str, task: Mapping[str, Any]) -> str:
    answer = task.get("answer")
    if answer == "ignore":
        return "unsure"
    if answer not in ("accept", "reject"):
        raise document.error(f"{place}: answer is {answer!r}; expected accept, reject or ignore.")
    options = task.get("accept")
    if options:
        if len(options) != 1:
            raise document.error(f"{place}: expected one accepted option, found {', '.join(map(str, options))}.")
        claimed = document.answer_of(place, _text_of_option(task, options[0]))
    else:
        claimed = ANSWER_OF_KIND.get(answer_kind(task.get("label")) or "must", "same")
    return claimed if answer == "accept" else _OPPOSITE[claimed]


def _text_of_option(task: Mapping[str, Any], chosen: Any) -> Any:
    if answer_kind(chosen) is not None and isinstance(chosen, str):
        return chosen
    return next((option.get("text") for option in task.get("options", []) if option.get("id") == chosen), chosen)
