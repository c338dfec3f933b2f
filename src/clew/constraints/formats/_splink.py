"""splink: a table of clerical labels, `unique_id_l, unique_id_r, clerical_match_score`, perhaps with sources."""

from __future__ import annotations

from typing import Any

from clew.constraints._records import key_of
from clew.constraints.formats._document import Document, Found

# Separator with which splink joins a source and an id that is unique only within the source.
JOINED = "-__-"


def matches(document: Document) -> bool:
    """Whether the document is a table of splink labels."""
    return document.has_columns("unique_id_l", "unique_id_r", "clerical_match_score")


def read(document: Document, found: Found) -> None:
    """Read the scores: 1 is a certain match, 0 a certain non-match, 0.5 is unsure. Other scores give a confidence."""
    rows = list(document.rows())
    named = [(row.get("source_dataset_l"), row["unique_id_l"]) for _, row in rows]
    named += [(row.get("source_dataset_r"), row["unique_id_r"]) for _, row in rows]
    id_of = _ids(named, document.known)
    for place, row in rows:
        score = _score(document, place, row["clerical_match_score"])
        answer = "unsure" if score == 0.5 else "same" if score > 0.5 else "different"
        left = id_of(row.get("source_dataset_l"), row["unique_id_l"])
        right = id_of(row.get("source_dataset_r"), row["unique_id_r"])
        found.add(place, (left, right), answer, confidence=max(score, 1 - score))


def _score(document: Document, place: str, value: Any) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = -1.0
    if not 0 <= score <= 1:
        raise document.error(f"{place}: clerical_match_score is {value!r}; expected 0 to 1.")
    return score


def _ids(named: list[tuple[Any, Any]], known: frozenset[str] | None) -> Any:
    """Choose the row ids: the id alone if it is unique or known, else source and id."""
    sources: dict[str, set[str]] = {}
    for source, value in named:
        sources.setdefault(key_of(value), set()).add(key_of(source))
    if known is None:
        alone = all(len(of_id) == 1 for of_id in sources.values())
    else:
        alone = any(value in known for value in sources)
    return lambda source, value: value if alone or not key_of(source) else f"{key_of(source)}{JOINED}{key_of(value)}"
