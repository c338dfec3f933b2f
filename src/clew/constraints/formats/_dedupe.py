"""dedupe: training JSON, `{"match": [...], "distinct": [...]}`, each entry two whole records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.constraints.formats._document import Document, Found, is_list
from clew.constraints.formats._matching import RowFinder

_ANSWERS = {"match": "same", "distinct": "different", "unsure": "unsure"}


def matches(document: Document) -> bool:
    """Whether the document has lists of record pairs under "match" and "distinct"."""
    content = document.content
    if not isinstance(content, Mapping) or not content or not set(content) <= set(_ANSWERS):
        return False
    first = next((pairs[0] for pairs in content.values() if is_list(pairs) and len(pairs)), None)
    return _is_pair_of_records(decoded(first))


def read(document: Document, found: Found) -> None:
    """Read each pair of records as an answer about the two rows that match them."""
    rows_of = RowFinder(document)
    for word, pairs in document.content.items():
        for number, encoded in enumerate(pairs):
            place = f"{document.name}, {word}[{number}]"
            pair = decoded(encoded)
            if not _is_pair_of_records(pair):
                raise document.error(f"{place}: expected two records, found {str(pair)[:80]}.")
            ids = rows_of.pair(place, pair[0], pair[1], found)
            if ids is not None:
                found.add(place, ids, _ANSWERS[word])


def decoded(value: Any) -> Any:
    """Decode tuples and frozen sets, which dedupe writes as objects with a class name."""
    if isinstance(value, Mapping):
        if set(value) == {"__class__", "__value__"} and is_list(value["__value__"]):
            return tuple(decoded(part) for part in value["__value__"])
        return {name: decoded(part) for name, part in value.items()}
    return tuple(decoded(part) for part in value) if isinstance(value, list | tuple) else value


def _is_pair_of_records(pair: Any) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(record, Mapping) for record in pair)
