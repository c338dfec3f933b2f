"""Write the table of capabilities into methods.md: python docs/methods_table.py.

The table follows from `capabilities` of each method with its default parameters; a test compares the two.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from clew._registry import by_method_name

PAGE = Path(__file__).with_name("methods.md")
BEGIN, END = "<!-- capabilities: written by docs/methods_table.py -->\n", "<!-- end of capabilities -->\n"
_HEADINGS = (
    "method", "groups", "soft groups", "triplets", "sizes", "noise rows", "X is", "`n_clusters`", "new rows", "batches",
)  # fmt: skip
_YES = {True: "yes", False: "no"}


def capabilities_table() -> str:
    """Give the table: one line for each method, by name."""
    rows = [_HEADINGS, ("---",) * len(_HEADINGS)]
    rows += [(f"`{name}`", *_cells(cls)) for name, cls in sorted(by_method_name().items())]
    return "".join(f"| {' | '.join(row)} |\n".replace("| --- ", "|---").replace("--- |", "---|") for row in rows)


def _cells(cls: Any) -> tuple[str, ...]:
    can = cls().capabilities
    return (
        _YES[can.groups], can.soft_groups, can.triplets, can.sizes, _YES[can.noise], _input(can),
        _n_clusters(cls, can), _YES[can.predicts], _YES[can.streams],
    )  # fmt: skip


def _input(can: Any) -> str:
    return can.pairwise or ("counts" if can.counts else "rows, or a table" if can.tables else "rows")


def _n_clusters(cls: Any, can: Any) -> str:
    if not can.needs_n_clusters:
        return "not needed"
    return 'needed, or "auto"' if cls._parameters["n_clusters"].accepts("auto") else "needed"


def main() -> None:
    """Replace the table in the page."""
    page = PAGE.read_text(encoding="utf-8")
    inside = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    PAGE.write_text(inside.sub(lambda _: BEGIN + capabilities_table() + END, page), encoding="utf-8")


if __name__ == "__main__":
    main()
