"""Format counts, lists of rows and addresses for messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Largest number of names in a list, and at each end of a chain; the rest is only counted.
_MOST_LISTED, _MOST_AT_AN_END = 12, 4


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: 1 row, 2 rows, 1,797 rows."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def name_key(name: str) -> str:
    """The key of a person: names that differ only in case, or in spaces at the ends, are one person."""
    return name.strip().casefold()


def listed(words: Sequence[str], conjunction: str) -> str:
    """Join words for a sentence: "a, b and c".

    Examples
    --------
    >>> listed(["2", "3", "4"], "and")
    '2, 3 and 4'
    """
    *others, last = words
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def listed_rows(names: Sequence[Any], most: int = _MOST_LISTED) -> str:
    """Join the names of rows. Of more than `most` rows, only the first are named and the others are counted.

    Examples
    --------
    >>> listed_rows([0, 3, 8])
    '0, 3 and 8'
    >>> listed_rows(range(100))
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 88 more'
    """
    rest = len(names) - most
    return listed([*map(str, names[:most]), *([f"{rest:,} more"] if rest > 0 else [])], "and")


def chained(names: Sequence[Any]) -> str:
    """Join the names of a chain. Of a long chain, only the two ends are named, with the number of rows.

    Examples
    --------
    >>> chained([4, 7, 9])
    '4-7-9'
    >>> chained(range(100_000))
    '0-1-2-3-…-99996-99997-99998-99999, a chain of 100,000 rows'
    """
    if len(names) <= _MOST_LISTED:
        return "-".join(map(str, names))
    ends = [*map(str, names[:_MOST_AT_AN_END]), "…", *map(str, names[-_MOST_AT_AN_END:])]
    return f"{'-'.join(ends)}, a chain of {len(names):,} rows"


def without_password(place: str) -> str:
    """Remove the password from the address of a database; other texts are returned unchanged.

    Examples
    --------
    >>> without_password("postgresql://ada:secret@host/answers")
    'postgresql://ada@host/answers'
    """
    scheme, mark, rest = place.partition("://")
    person, at, host = rest.rpartition("@")
    return f"{scheme}{mark}{person.partition(':')[0]}{at}{host}"
