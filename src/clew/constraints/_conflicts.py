"""Contradictions, each with the shortest chain of must-links that proves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clew._words import chained
from clew.constraints._arrays import IntArray, dense, group_columns, links_within
from clew.kernels.chain import find_chain
from clew.solvers.coloring import compress

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints


@dataclass(frozen=True)
class Contradiction:
    """A contradiction: two rows that one constraint separates and a chain of must-links joins.

    Attributes
    ----------
    rows : tuple of two ints
        The separated rows.
    kind : {"cannot_link", "cannot_groups", "labels"}
        The kind of constraint that separates them.
    position : int or None
        Position of the cannot-link among the cannot-links; None for the other kinds.
    chain : tuple of ints
        Path from the first row to the second. Consecutive rows are must-linked, or share a must-group or a class.
    names : tuple
        The chain in the user's ids, or in row numbers without ids.
    joined_by : str
        The kinds of constraints that the chain may use.
    """

    rows: tuple[int, int]
    kind: str
    position: int | None
    chain: tuple[int, ...]
    names: tuple[Any, ...]
    joined_by: str = "must_link joins"

    @property
    def source(self) -> str:
        """The constraint that separates the rows: ``"cannot_link[3]"``, ``"cannot_groups"`` or ``"labels"``."""
        return self.kind if self.position is None else f"{self.kind}[{self.position}]"

    def __str__(self) -> str:
        verb = "separates" if self.kind == "cannot_link" else "separate"
        return (
            f"{self.source} {verb} rows {self.names[0]} and {self.names[-1]}; {self.joined_by} them "
            f"({chained(self.names)}). "
            "Remove one, or use a soft method."
        )

    def __repr__(self) -> str:
        return f"<Contradiction: {self}>"  # of limited length, unlike the chain


def find_conflicts(constraints: Constraints, limit: int | None = None) -> list[Contradiction]:
    """Find at most `limit` contradictions in a set of constraints."""
    closed = constraints.closure()
    if not closed.contradictory:
        return []
    search = ChainSearch(constraints)
    kinds = [("must_link", len(constraints.must_link) > 0), ("must_groups", constraints.must_groups is not None),
             ("labels", constraints.labels is not None)]  # fmt: skip
    there = [name for name, used in kinds if used]
    joined_by = f"{there[0]} joins" if there == ["must_link"] else f"{' and '.join(there)} join"
    found: list[Contradiction] = []
    for first, second, kind, position in _apart_in_one_component(constraints, closed.component_of):
        if limit is not None and len(found) == limit:
            break
        chain = search.chain(first, second)
        names = tuple(constraints.describe_row(row) for row in chain)
        found.append(Contradiction((first, second), kind, position, chain, names, joined_by))
    return found


def innermost(constraints: Constraints, conflict: Contradiction) -> Contradiction:
    """The shortest contradiction between rows of one chain, so that each of its rows is needed.

    For the chain 0-1-2-3 that contradicts the cannot-link (0, 3), it is 1-2-3 if (1, 3) is also cannot-linked.
    """
    chain = np.array(conflict.chain)
    place = np.full(constraints.n_rows, -1)
    place[chain] = np.arange(len(chain))
    separated = place[constraints.cannot_link]
    numbers = np.flatnonzero((separated >= 0).all(axis=1))
    found: list[tuple[IntArray, str, int | None]]
    found = [(separated[number], "cannot_link", number) for number in numbers.tolist()]
    for column in group_columns(constraints.cannot_groups):
        found += [(pair, "cannot_groups", None) for pair in links_within(column[chain])]
    if constraints.labels is not None:
        classes = constraints.labels[chain]
        known = links_within(np.where(classes >= 0, 0, -1))
        found += [(pair, "labels", None) for pair in known[classes[known[:, 0]] != classes[known[:, 1]]]]
    ends, kind, position = min(found, key=lambda one: int(abs(one[0][0] - one[0][1])))
    low, high = sorted(ends.tolist())
    rows, names = conflict.chain[low : high + 1], conflict.names[low : high + 1]
    return replace(conflict, rows=(rows[0], rows[-1]), kind=kind, position=position, chain=rows, names=names)


def _apart_in_one_component(
    constraints: Constraints, component_of: IntArray
) -> Iterator[tuple[int, int, str, int | None]]:
    pairs = component_of[constraints.cannot_link]
    for place in np.flatnonzero(pairs[:, 0] == pairs[:, 1]):
        first, second = constraints.cannot_link[place].tolist()
        yield first, second, "cannot_link", int(place)
    for column in group_columns(constraints.cannot_groups):
        # Rows that share a group and a component, each paired with the next one.
        key = np.where(column >= 0, dense(column) * (component_of.max(initial=0) + 1) + component_of, -1)
        for first, second in links_within(key).tolist():
            yield first, second, "cannot_groups", None
    if constraints.labels is not None:
        links = links_within(np.where(constraints.labels >= 0, component_of, -1))
        for first, second in links[constraints.labels[links[:, 0]] != constraints.labels[links[:, 1]]].tolist():
            yield first, second, "labels", None


class ChainSearch:
    """Shortest-path search in the graph of must-links, must-groups and classes."""

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
        """The shortest chain from the first row to the second, which must be in one component."""
        seen = np.zeros(self._n_hubs, dtype=np.int8)
        n_seen = find_chain(
            *self._partners, *self._hubs, *self._members, second, first, self._previous, seen, self._queue
        )
        chain = [first]
        while chain[-1] != second:
            chain.append(int(self._previous[chain[-1]]))
        self._previous[self._queue[:n_seen]] = -1
        return tuple(chain)
