"""cognitivefactory's interactive clustering: the constraints file of its interface, and its manager object."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from clew.constraints.formats._document import Document, Found, time_of

_ANSWERS = {"MUST_LINK": "same", "CANNOT_LINK": "different"}


def matches(document: Document) -> bool:
    """Whether the document is an object that maps names to constraints."""
    content = document.content
    return (
        isinstance(content, Mapping)
        and bool(content)
        and all(isinstance(value, Mapping) and "constraint_type" in value for value in content.values())
    )


def read(document: Document, found: Found) -> None:
    """Read the constraints. Constraints of deleted texts and constraints without an answer count as open."""
    for name, constraint in document.content.items():
        place = f"{document.name}, constraint {name!r}"
        kind = constraint["constraint_type"]
        if kind is None or constraint.get("is_hidden"):
            found.n_open += 1
            continue
        if kind not in _ANSWERS:
            raise document.error(f"{place}: constraint_type is {kind!r}; expected MUST_LINK or CANNOT_LINK.")
        found.add(
            place,
            document.pair_of_ids(place, constraint.get("data"), constraint),
            _ANSWERS[kind],
            time=time_of(constraint.get("date_of_update")),
            comment=constraint.get("comment") or None,
        )


def is_manager(given: Any) -> bool:
    """Whether an object has the methods of a cognitivefactory constraints manager."""
    return hasattr(given, "get_list_of_managed_data_IDs") and hasattr(given, "get_added_constraint")


def read_manager(manager: Any, document: Document, found: Found) -> None:
    """Read the constraints that were added. Constraints that the manager inferred follow from these."""
    ids = list(manager.get_list_of_managed_data_IDs())
    for first, second in combinations(ids, 2):
        added = manager.get_added_constraint(first, second)
        if added is not None:
            kind, value = added
            found.add(f"constraint ({first}, {second})", (first, second), _ANSWERS[kind], confidence=value)
