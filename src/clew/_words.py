"""Words around numbers, and addresses that may be shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Names in a list, and at each end of a chain, before the rest is counted.
_MOST_LISTED, _MOST_AT_AN_END = 12, 4


def counted(n: int, one: str, many: str | None = None) -> str:
    """Give a count with its noun: 1 row, 2 rows, 1,797 rows."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(words: Sequence[str], conjunction: str) -> str:
    """Give words as a list in a sentence.

    Examples
    --------
    >>> listed(["2", "3", "4"], "and")
    '2, 3 and 4'
    """
    *others, last = words
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def listed_rows(names: Sequence[Any], most: int = _MOST_LISTED) -> str:
    """Give the names of rows as a list; of more than `most` rows the first and the number of the others.

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
    """Give the names of a chain; of a long one the two ends and the number of all.

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
    """Give the address of a database without its password, and any other text as it is.

    Examples
    --------
    >>> without_password("postgresql://ada:secret@host/answers")
    'postgresql://ada@host/answers'
    """
    scheme, mark, rest = place.partition("://")
    person, at, host = rest.rpartition("@")
    return f"{scheme}{mark}{person.partition(':')[0]}{at}{host}"
