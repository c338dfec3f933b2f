"""Words around numbers."""

from __future__ import annotations


def counted(n: int, one: str, many: str | None = None) -> str:
    """Give a count with its noun: 1 row, 2 rows, 1,797 rows."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"
