"""What follows from answers, kept up to date answer by answer.

The closure of the prior constraints is computed once; answers join and separate its components on top. Looking up what
is known about a pair is constant time, adding an answer costs the smaller side of a merge.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
import numpy.typing as npt

from clew.active._answers import DIFFERENT, SAME, Answer
from clew.constraints import Closure

IntArray = npt.NDArray[np.int64]


class Knowledge:
    """Components of rows known to be together, and which of them are known to be apart."""

    def __init__(self, prior: Closure) -> None:
        self._prior = prior
        self._parent: dict[int, int] = {}  # only components that answers touched
        self._rows: dict[int, list[int]] = {}
        self._apart: dict[int, set[int]] = {}
        self._cliques: dict[int, set[int]] = {}
        self._roots: IntArray | None = None

    def _root(self, component: int) -> int:
        while (parent := self._parent.get(component, component)) != component:
            component = parent
        return component

    def component(self, row: int) -> int:
        """A number for the component of a row, valid until the next answer."""
        return self._root(int(self._prior.component_of[row]))

    def components(self, rows: IntArray | None = None) -> IntArray:
        """The same for many rows at once, for all unless given."""
        of_rows = self._prior.component_of if rows is None else self._prior.component_of[rows]
        return self._all_roots()[of_rows]

    def rows(self, row: int) -> IntArray:
        """All rows known to be together with a row, itself included."""
        root = self.component(row)
        if root in self._rows:
            return np.array(self._rows[root], dtype=np.int64)
        return self._prior_rows(root)

    def size(self, row: int) -> int:
        """How many rows are known to be together with a row, itself included."""
        root = self.component(row)
        return len(self._rows[root]) if root in self._rows else len(self._prior_rows(root))

    def _prior_rows(self, component: int) -> IntArray:
        pointers, rows = self._prior.rows
        return rows[pointers[component] : pointers[component + 1]]

    def relation(self, first: int, second: int) -> Answer | None:
        """SAME, DIFFERENT, or None when nothing is known."""
        one, two = self.component(first), self.component(second)
        if one == two:
            return SAME
        return DIFFERENT if self._known_apart(one, two) else None

    def _known_apart(self, one: int, two: int) -> bool:
        mine, theirs = self._edges(one), self._edges(two)
        if two in mine if len(mine) < len(theirs) else one in theirs:
            return True
        return not self._clique_ids(one).isdisjoint(self._clique_ids(two))

    def _edges(self, root: int) -> set[int]:
        if root not in self._apart:
            graph = self._prior.graph
            neighbours = graph.edges[graph.edge_ptr[root] : graph.edge_ptr[root + 1]]
            self._apart[root] = {self._root(int(other)) for other in neighbours}
        return self._apart[root]

    def _clique_ids(self, root: int) -> set[int]:
        if root not in self._cliques:
            graph = self._prior.graph
            self._cliques[root] = set(graph.cliques[graph.clique_ptr[root] : graph.clique_ptr[root + 1]].tolist())
        return self._cliques[root]

    def apart(self, row: int) -> list[int]:
        """A row of every component known to be apart from that of a row, in row order."""
        return sorted(self._prior.first_row[list(self._apart_from(self.component(row)))].tolist())

    def open_rows(self, row: int) -> IntArray:
        """All rows about which nothing is known with respect to a row, in time linear in the rows."""
        root, roots = self.component(row), self._all_roots()
        closed = np.zeros(self._prior.n_components, dtype=bool)
        closed[[root, *self._edges(root)]] = True
        closed[roots[self._in_cliques_of(root)]] = True
        return np.flatnonzero(~closed[self.components()])

    def _in_cliques_of(self, root: int) -> IntArray:
        """Components of the prior that share a clique with one, possibly with repeats."""
        graph = self._prior.graph
        parts = [graph.members[graph.member_ptr[one] : graph.member_ptr[one + 1]] for one in self._clique_ids(root)]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def _all_roots(self) -> IntArray:
        if self._roots is None:
            self._roots = np.arange(self._prior.n_components)
            for component in self._parent:
                self._roots[component] = self._root(component)
        return self._roots

    def contradicts(self, said: Iterable[tuple[tuple[int, int], Answer]]) -> bool:
        """Whether pairs, taken together, contradict each other or what is known; changes nothing."""
        parent: dict[int, int] = {}

        def root(component: int) -> int:
            while (above := parent.get(component, component)) != component:
                component = above
            return component

        apart = []
        for (first, second), answer in said:
            one, two = self.component(first), self.component(second)
            if answer is SAME:
                parent[root(one)] = root(two)
            elif answer is DIFFERENT:
                apart.append((one, two))
        joined: dict[int, list[int]] = {}
        for component in {*parent, *parent.values()}:
            joined.setdefault(root(component), []).append(component)
        return any(root(one) == root(two) for one, two in apart) or any(map(self._holds_apart, joined.values()))

    def _holds_apart(self, components: list[int]) -> bool:
        """Whether some of these components are known to be apart."""
        cliques = [clique for component in components for clique in self._clique_ids(component)]
        return len(set(cliques)) < len(cliques) or any(
            not self._edges(component).isdisjoint(components) for component in components
        )

    def add(self, first: int, second: int, answer: Answer) -> bool:
        """Take an answer in; False, and nothing changed, if it contradicts what is known."""
        known = self.relation(first, second)
        if known is not None and known is not answer:
            return False
        one, two = self.component(first), self.component(second)
        for root in (one, two):
            if root not in self._rows:
                self._rows[root] = self._prior_rows(root).tolist()
        if known is None and answer is DIFFERENT:
            self._edges(one).add(two)
            self._edges(two).add(one)
        elif known is None:
            self._merge(one, two)
        return True

    def _merge(self, one: int, two: int) -> None:
        if len(self._rows[one]) + len(self._edges(one)) < len(self._rows[two]) + len(self._edges(two)):
            one, two = two, one
        for other in self._edges(two):
            others = self._edges(other)
            others.discard(two)
            others.add(one)
        self._edges(one).update(self._edges(two))
        self._clique_ids(one).update(self._clique_ids(two))
        self._rows[one] += self._rows[two]
        del self._apart[two], self._cliques[two], self._rows[two]
        self._parent[two] = one
        self._roots = None

    def n_decided_by(self, first: int, second: int, answer: Answer) -> int:
        """How many pairs an answer would decide, itself included; 0 if it is decided already."""
        if self.relation(first, second) is not None:
            return 0
        one, two = self.component(first), self.component(second)
        n_one, n_two = len(self.rows(first)), len(self.rows(second))
        if answer is DIFFERENT:
            return n_one * n_two
        only_one, only_two = self._apart_from(one), self._apart_from(two)
        new = n_two * self._n_rows_in(only_one - only_two) + n_one * self._n_rows_in(only_two - only_one)
        return n_one * n_two + new

    def _apart_from(self, root: int) -> set[int]:
        """All components known to be apart from one."""
        in_cliques = {self._root(one) for one in self._in_cliques_of(root).tolist()}
        return (self._edges(root) | in_cliques) - {root}

    def _n_rows_in(self, roots: set[int]) -> int:
        return sum(len(self._rows[root]) if root in self._rows else len(self._prior_rows(root)) for root in roots)

    def n_decided(self) -> int:
        """Pairs of rows that answers and prior knowledge decide, among the components that answers touched."""
        sizes = {root: len(rows) for root, rows in self._rows.items()}
        in_clique: dict[int, list[int]] = {}
        for root in sizes:
            for clique in self._clique_ids(root):
                in_clique.setdefault(clique, []).append(root)
        apart = {(root, other) for root in sizes for other in self._edges(root) if root < other and other in sizes}
        for roots in in_clique.values():
            apart.update(combinations(sorted(roots), 2))
        together = sum(size * (size - 1) // 2 for size in sizes.values())
        return together + sum(sizes[one] * sizes[two] for one, two in apart)
