"""Argilla: records with two ids among their fields or metadata, and the responses to a label question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from clew.constraints._records import answer_kind
from clew.constraints.formats._document import Document, Found, name_of, time_of


def matches(document: Document) -> bool:
    """Whether the document is a list of records with fields and responses."""
    return document.has_columns("fields", "responses")


def read(document: Document, found: Found) -> None:
    """Read one answer per submitted response. A discarded response is "unsure". Suggestions are skipped."""
    for place, record in document.rows():
        answered = False
        for response in _responses(record.get("responses") or {}):
            status = str(response.get("status") or "submitted").rpartition(".")[2].lower()
            if status not in ("submitted", "discarded"):
                continue
            word = "unsure" if status == "discarded" else response.get("value")
            if not isinstance(word, str) or answer_kind(word) is None:
                if response["only"]:
                    document.answer_of(place, word)
                continue  # the answer to another question of the same record
            answered = True
            found.add(
                place,
                document.pair_of_ids(place, record, record.get("fields"), record.get("metadata")),
                document.answer_of(place, word),
                annotator=name_of(response.get("user_id")),
                time=time_of(response.get("inserted_at") or record.get("inserted_at")),
            )
        found.n_open += not answered


def _responses(given: Any) -> Iterator[dict[str, Any]]:
    """Read responses in both shapes: a list of values per question, or a dict of values per user."""
    if isinstance(given, Mapping):
        for responses in given.values():
            for response in responses:
                yield {**response, "only": len(given) == 1}
        return
    for response in given:
        values = response.get("values") or {"": {}}
        for value in values.values():
            yield {**response, "value": value.get("value"), "only": len(values) == 1}
