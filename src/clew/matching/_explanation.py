"""Describe in a sentence how two records compare: "phone is equal; name differs by one letter"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clew._words import listed
from clew.matching._comparison import CLOSE, EQUAL, MISSING, SIMILAR, compare_cells
from clew.matching._records import Field
from clew.matching._texts import spelling_similarities

_NUMBERS = {1: "one letter", 2: "two letters", 3: "three letters"}


def explanation(fields: list[Field], first: int, second: int, probability: float) -> str:
    """Say how each column of two records compares, and how likely the records are the same."""
    pair = np.array([[first, second]], dtype=np.int64)
    levels = [int(compare_cells(field, len(field.codes), pair)[1][0]) for field in fields]
    return with_probability(comparison(fields, levels, first, second), probability)


def with_probability(words: str, probability: float) -> str:
    """Add the probability of a match to the words that compare two records; vectors have no words."""
    return f"{words}{'; ' if words else ''}the same with probability {probability:.2f}"


def comparison(fields: Sequence[Field], levels: Sequence[int], first: int, second: int) -> str:
    """Say how the columns of two records compare, most similar first. `levels` are the levels of agreement.

    Columns that compare in the same way are named together: "city and phone are equal; name differs by one letter".
    """
    said: dict[tuple[int, str], list[str]] = {}
    for field, level in zip(fields, levels, strict=True):
        found = _how(field, level, *field.codes[[first, second]].tolist())
        said.setdefault((level, found), []).append(field.name)
    # Columns with a missing cell come last. Columns at the same level keep the order of the table.
    ordered = sorted(said.items(), key=lambda one: -one[0][0])
    return "; ".join(_clause(names, found) for (_, found), names in ordered)


def _clause(names: list[str], found: str) -> str:
    """A clause about columns that compare in the same way."""
    is_one = len(names) == 1
    verb = ("differs" if is_one else "differ") if found.startswith("by ") else "is" if is_one else "are"
    return f"{names[0] if is_one else listed(names, 'and')} {verb} {found}"


def _how(field: Field, level: int, one: int, two: int) -> str:
    """How two cells compare: "equal", "by one letter", "close", "similar", "different" or "missing"."""
    if level in (MISSING, EQUAL):
        return "missing" if level == MISSING else "equal"
    texts = [field.texts[one], field.texts[two]]
    similarity = spelling_similarities(texts, np.array([0]), np.array([1]))[0][0]
    n_edits = round((1 - float(similarity)) * max(map(len, texts)))
    if n_edits in _NUMBERS and level >= SIMILAR:
        return f"by {_NUMBERS[n_edits]}"
    return "close" if level == CLOSE else "similar" if level == SIMILAR else "different"
