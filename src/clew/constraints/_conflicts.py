"""Contradictions, each with the shortest chain of must-links that proves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clew.constraints._arrays import IntArray, dense, group_columns, links_within
from clew.kernels.chain import find_chain
from clew.solvers.coloring import compress

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints


@dataclass(frozen=True)
class Conflict:
    """Two rows that are kept apart by one statement and joined by a chain of others.

    Attributes
    ----------
    rows : tuple of two ints
        The rows kept apart.
    source : str
        What keeps them apart: ``"cannot_link[3]"``, ``"cannot_groups"`` or ``"labels"``.
    chain : tuple of ints
        Rows from the first to the second; neighbours in it are must-linked (or share a must-group or a class).
    names : tuple
        The chain in the user's ids, or row numbers where there are none.
    joined_by : str
        What the links of the chain may come from.
    """

    rows: tuple[int, int]
    source: str
    chain: tuple[int, ...]
    names: tuple[Any, ...]
    joined_by: str = "must_link joins"

    def __str__(self) -> str:
        verb = "separates" if self.source.startswith("cannot_link") else "separate"
        chain = "-".join(str(name) for name in self.names)
        return (
            f"{self.source} {verb} rows {self.names[0]} and {self.names[-1]}; {self.joined_by} them ({chain}). "
            "Remove one, or use a soft method."
        )


def find_conflicts(constraints: Constraints, limit: int | None = None) -> list[Conflict]:
    """The contradictions in a set of constraints, at most `limit` of them."""
    closed = constraints.closure()
    if not closed.contradictory:
        return []
    search = _ChainSearch(constraints)
    kinds = [("must_link", len(constraints.must_link) > 0), ("must_groups", constraints.must_groups is not None),
             ("labels", constraints.labels is not None)]  # fmt: skip
    there = [name for name, used in kinds if used]
    joined_by = f"{there[0]} joins" if there == ["must_link"] else f"{' and '.join(there)} join"
    found: list[Conflict] = []
    for first, second, source in _apart_in_one_component(constraints, closed.component_of):
        if limit is not None and len(found) == limit:
            break
        chain = search.chain(first, second)
        names = tuple(constraints.describe_row(row) for row in chain)
        found.append(Conflict((first, second), source, chain, names, joined_by))
    return found


def _apart_in_one_component(constraints: Constraints, component_of: IntArray) -> Iterator[tuple[int, int, str]]:
    pairs = component_of[constraints.cannot_link]
    for place in np.flatnonzero(pairs[:, 0] == pairs[:, 1]):
        first, second = constraints.cannot_link[place].tolist()
        yield first, second, f"cannot_link[{place}]"
    for column in group_columns(constraints.cannot_groups):
        # Rows that share group and component, each with the next one: as many as say it all.
        key = np.where(column >= 0, dense(column) * (component_of.max(initial=0) + 1) + component_of, -1)
        for first, second in links_within(key).tolist():
            yield first, second, "cannot_groups"
    if constraints.labels is not None:
        links = links_within(np.where(constraints.labels >= 0, component_of, -1))
        for first, second in links[constraints.labels[links[:, 0]] != constraints.labels[links[:, 1]]].tolist():
            yield first, second, "labels"


class _ChainSearch:
    """Must-links, must-groups and classes as one graph, searched from row to row."""

    def __init__(self, constraints: Constraints) -> None:
        n_rows = constraints.n_rows
        pairs = constraints.must_link
        self._partners = compress(
            np.concatenate([pairs[:, 0], pairs[:, 1]]), np.concatenate([pairs[:, 1], pairs[:, 0]]), n_rows
        )
        columns = group_columns(constraints.must_groups)
        if constraints.labels is not None:
            columns.append(constraints.labels)
        rows, hubs = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        self._n_hubs = 0
        for column in columns:
            grouped = np.flatnonzero(column >= 0)
            values, numbers = np.unique(column[grouped], return_inverse=True)
            rows.append(grouped)
            hubs.append(numbers + self._n_hubs)
            self._n_hubs += len(values)
        row, hub = np.concatenate(rows), np.concatenate(hubs)
        self._hubs = compress(row, hub, n_rows)
        self._members = compress(hub, row, self._n_hubs)
        self._previous = np.full(n_rows, -1, dtype=np.int64)
        self._queue = np.empty(n_rows, dtype=np.int64)

    def chain(self, first: int, second: int) -> tuple[int, ...]:
        seen = np.zeros(self._n_hubs, dtype=np.int8)
        n_seen = find_chain(
            *self._partners, *self._hubs, *self._members, second, first, self._previous, seen, self._queue
        )
        chain = [first]
        while chain[-1] != second:
            chain.append(int(self._previous[chain[-1]]))
        self._previous[self._queue[:n_seen]] = -1
        return tuple(chain)
