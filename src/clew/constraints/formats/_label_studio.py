"""Label Studio: JSON and JSON-MIN exports of a task with two ids and a Choices question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.constraints._records import answer_kind
from clew.constraints.formats._document import Document, Found, name_of, time_of


def matches(document: Document) -> bool:
    """Whether the document is a JSON or JSON-MIN export of Label Studio."""
    full = document.has_columns("data", "annotations") or document.has_columns("data", "completions")
    return full or document.has_columns("annotation_id", "lead_time")


def read(document: Document, found: Found) -> None:
    """Read one answer per annotation. A skipped task is "unsure". Predictions are skipped."""
    for place, task in document.rows():
        if "data" not in task:
            _read_min(document, found, place, task)
            continue
        annotations = task.get("annotations", task.get("completions")) or []
        found.n_open += not annotations
        for annotation in annotations:
            ids = document.pair_of_ids(place, task["data"])
            found.add(
                place,
                ids,
                _answer(document, place, annotation),
                annotator=name_of(annotation.get("completed_by")),
                time=time_of(annotation.get("created_at")),
                seconds=annotation.get("lead_time"),
                comment=_comment(annotation),
            )


def _answer(document: Document, place: str, annotation: Mapping[str, Any]) -> str:
    if annotation.get("was_cancelled"):
        return "unsure"
    words = [
        word
        for result in annotation.get("result") or []
        if result.get("type") == "choices"
        for word in result["value"]["choices"]
    ]
    if len(words) != 1:
        told = ", ".join(map(str, words)) or "none"
        raise document.error(f"{place}: expected one choice (same, different or unsure), found {told}.")
    return document.answer_of(place, words[0])


def _comment(annotation: Mapping[str, Any]) -> str | None:
    texts = [
        text
        for result in annotation.get("result") or []
        if result.get("type") == "textarea"
        for text in _listed(result["value"]["text"])
    ]
    return "\n".join(texts) or None


def _read_min(document: Document, found: Found, place: str, task: Mapping[str, Any]) -> None:
    own = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", *document.id_columns}
    chosen = {
        name: words[0]
        for name, value in task.items()
        if name not in own and len(words := _listed(value)) == 1 and _is_answer(words[0])
    }
    if len(chosen) != 1:
        told = ", ".join(chosen) or "none of its fields"
        raise document.error(f"{place}: expected one field that says same, different or unsure, found {told}.")
    found.add(
        place,
        document.pair_of_ids(place, task),
        document.answer_of(place, next(iter(chosen.values()))),
        annotator=name_of(task.get("annotator")),
        time=time_of(task.get("created_at")),
        seconds=task.get("lead_time"),
    )


def _listed(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        value = value.get("choices", [])
    return list(value) if isinstance(value, list) else [value]


def _is_answer(value: Any) -> bool:
    # Numbers are not accepted as answers here, because another field of the task may be 0 or 1.
    return isinstance(value, str) and answer_kind(value) is not None and not value.strip().lstrip("+-").isdecimal()
