"""Describe in a sentence how two records compare: "name differs by one letter, phone is equal"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
    """Say how each column of two records compares, most similar first. `levels` are the levels of agreement."""
    said = [
        (level, _words(field, level, *field.codes[[first, second]].tolist()))
        for field, level in zip(fields, levels, strict=True)
    ]
    # Columns with a missing cell come last. Columns at the same level keep the order of the table.
    return ", ".join(text for _, text in sorted(said, key=lambda one: -one[0]))


def _words(field: Field, level: int, one: int, two: int) -> str:
    if level == MISSING:
        return f"{field.name} is missing"
    if level == EQUAL:
        return f"{field.name} is equal"
    texts = [field.texts[one], field.texts[two]]
    similarity = spelling_similarities(texts, np.array([0]), np.array([1]))[0][0]
    n_edits = round((1 - float(similarity)) * max(map(len, texts)))
    if n_edits in _NUMBERS and level >= SIMILAR:
        return f"{field.name} differs by {_NUMBERS[n_edits]}"
    return f"{field.name} is {'close' if level == CLOSE else 'similar' if level == SIMILAR else 'different'}"
