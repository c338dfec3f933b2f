"""zingg: whole records. Records with the same `z_cluster` were shown together, and `z_isMatch` is the answer."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, pairwise
from typing import Any

from clew.constraints._records import key_of
from clew.constraints.formats._document import Document, Found
from clew.constraints.formats._matching import RowFinder

_ANSWERS = {"1": "same", "0": "different", "2": "unsure"}
_OPEN = ("-1", "")


def matches(document: Document) -> bool:
    """Whether the document is a table of zingg."""
    return document.has_columns("z_cluster", "z_isMatch")


def read(document: Document, found: Found) -> None:
    """Read each group as pairs: all pairs if its records differ, a chain if they are the same."""
    groups: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for place, row in document.rows():
        groups.setdefault(key_of(row["z_cluster"]), []).append((place, row))
    rows_of = RowFinder(document, ignored_prefix="z_")
    for cluster, members in groups.items():
        place = members[0][0]
        flags = {key_of(row["z_isMatch"]) for _, row in members}
        if flags <= set(_OPEN):
            found.n_open += 1
            continue
        flag = flags.pop()
        if flags or flag not in _ANSWERS:
            told = ", ".join(sorted({flag, *flags}))
            raise document.error(
                f"{place}: z_cluster {cluster} has z_isMatch {told}; expected 1, 0, 2 or -1, one per group."
            )
        if len(members) == 1:
            raise document.error(f"{place}: z_cluster {cluster} has one record; a pair has two.")
        chosen = pairwise(members) if flag == "1" else combinations(members, 2)
        for (where, first), (_, second) in chosen:
            ids = rows_of.pair(where, first, second, found)
            if ids is not None:
                found.add(where, ids, _ANSWERS[flag])
