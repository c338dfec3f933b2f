"""Incremental closure of constraints: components and cannot-links between them, updated with each answer.

The closure of the prior constraints is computed once. Each answer then joins or separates two components. Looking up a
pair takes constant time. Adding an answer takes time linear in the smaller of the two components. A journal records
every change, so that the latest answers can be taken back in the time that adding them took.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer
from clew.active._journal import Journal
from clew.constraints import Closure

IntArray = npt.NDArray[np.int64]


class _Merged(NamedTuple):
    """A merge of component `two` into component `one`, with the entries that were new to `one`."""

    one: int
    two: int
    n_rows: int  # of `one`, before
    rows: list[int]
    edges: set[int]
    new_edges: set[int]
    cliques: set[int]
    new_cliques: set[int]


class Knowledge:
    """Closure of prior constraints and answers: components, and the pairs of components known to be apart.

    Attributes
    ----------
    journal : Journal
        Changes by answers. Rewind it to take the latest answers back.
    """

    def __init__(self, prior: Closure) -> None:
        self._prior, self.journal = prior, Journal()
        self._parent: dict[int, int] = {}  # only components that answers touched
        self._rows: dict[int, list[int]] = {}
        self._root_of_row: dict[int, int] = {}  # only rows of components that answers have touched at some time
        self._apart: dict[int, set[int]] = {}
        self._cliques: dict[int, set[int]] = {}
        self._roots: IntArray | None = None
        graph = prior.graph
        self._has_edges, self._has_cliques = len(graph.edges) > 0, len(graph.cliques) > 0
        self._is_prior_empty = prior.n_components == len(prior.component_of) and not (
            self._has_edges or self._has_cliques
        )
        # Bound once, because the journal keeps one of them for each answer.
        self._untouched, self._unseparated = self._rows.__delitem__, self._unseparate
        # The last `n_decided`, None if unknown; how often the journal had been rewound; whether it was read since.
        self._decided: tuple[int | None, int, bool] = None, 0, False

    def _root(self, component: int) -> int:
        while (parent := self._parent.get(component, component)) != component:
            component = parent
        return component

    def component(self, row: int) -> int:
        """Number of a row's component, valid until the next answer."""
        root = self._root_of_row.get(row)
        return int(self._prior.component_of[row]) if root is None else root

    def components(self, rows: IntArray | None = None) -> IntArray:
        """Numbers of the components of some rows, or of all rows."""
        of_rows = self._prior.component_of if rows is None else self._prior.component_of[rows]
        return self._all_roots()[of_rows]

    def rows(self, row: int) -> IntArray:
        """All rows of a row's component, the row included."""
        root = self.component(row)
        if root in self._rows:
            return np.array(self._rows[root], dtype=np.int64)
        return self._prior_rows(root)

    def size(self, row: int) -> int:
        """Number of rows in a row's component, the row included."""
        root = self.component(row)
        return len(self._rows[root]) if root in self._rows else len(self._prior_rows(root))

    def _prior_rows(self, component: int) -> IntArray:
        pointers, rows = self._prior.rows
        return rows[pointers[component] : pointers[component + 1]]

    def relation(self, first: int, second: int) -> Answer | None:
        """SAME or DIFFERENT if the closure decides the pair, else None."""
        one, two = self.component(first), self.component(second)
        if one == two:
            return SAME
        return DIFFERENT if self._known_apart(one, two) else None

    def undecided(self, row: int, others: Iterable[int]) -> Iterator[int]:
        """Those of some other rows whose relation to a row is undecided, in the same order."""
        component, root = self.component, self.component(row)
        edges, has_cliques = self._edges(root), self._has_cliques
        for other in others:
            one = component(other)
            if one != root and one not in edges and not (has_cliques and self._share_clique(root, one)):
                yield other

    def is_apart(self, row: int, others: Iterable[int]) -> bool:
        """Whether a row is known to differ from each of some other rows."""
        component, root = self.component, self.component(row)
        edges, has_cliques = self._edges(root), self._has_cliques
        for other in others:
            one = component(other)
            if one == root or (one not in edges and not (has_cliques and self._share_clique(root, one))):
                return False
        return True

    def _known_apart(self, one: int, two: int) -> bool:
        return two in self._edges(one) or (self._has_cliques and self._share_clique(one, two))

    def _share_clique(self, one: int, two: int) -> bool:
        return not self._clique_ids(one).isdisjoint(self._clique_ids(two))

    def _edges(self, root: int) -> set[int]:
        found = self._apart.get(root)
        if found is None and not self._has_edges:
            found = self._apart[root] = set()
        elif found is None:
            graph = self._prior.graph
            neighbours = graph.edges[graph.edge_ptr[root] : graph.edge_ptr[root + 1]]
            found = self._apart[root] = {self._root(other) for other in neighbours.tolist()}
        return found

    def _clique_ids(self, root: int) -> set[int]:
        found = self._cliques.get(root)
        if found is None and not self._has_cliques:
            found = self._cliques[root] = set()
        elif found is None:
            graph = self._prior.graph
            found = set(graph.cliques[graph.clique_ptr[root] : graph.clique_ptr[root + 1]].tolist())
            self._cliques[root] = found
        return found

    def apart(self, row: int) -> list[int]:
        """One row of each component known to be apart from a row's component, in row order."""
        return sorted(self._prior.first_row[list(self._apart_from(self.component(row)))].tolist())

    def related_rows(self) -> IntArray:
        """Rows known to be together with another row or apart from one, in row order."""
        graph = self._prior.graph
        is_related = (self._prior.sizes > 1) | (np.diff(graph.edge_ptr) > 0) | (np.diff(graph.clique_ptr) > 0)
        found = is_related[self._prior.component_of]
        for rows in self._rows.values():
            found[rows] = True
        return np.flatnonzero(found)

    def open_rows(self, row: int) -> IntArray:
        """All rows whose relation to a row is undecided, in time linear in the number of rows."""
        root, roots = self.component(row), self._all_roots()
        closed = np.zeros(self._prior.n_components, dtype=bool)
        closed[[root, *self._edges(root)]] = True
        closed[roots[self._in_cliques_of(root)]] = True
        return np.flatnonzero(~closed[self.components()])

    def _in_cliques_of(self, root: int) -> IntArray:
        """Prior components that share a cannot-link clique with a component, possibly repeated."""
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
        """Whether pairs, taken together, contradict each other or the closure. The closure stays as it is."""
        said = list(said)
        if len(said) == 1:
            (rows, answer), *_ = said
            return answer is not UNSURE and self.relation(*rows) not in (None, answer)
        parent: dict[int, int] = {}

        def root(component: int) -> int:
            while (above := parent.get(component, component)) != component:
                parent[component] = component = parent.get(above, above)  # path halving, because stars make long paths
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
        """Whether any two of these components are known to be apart."""
        cliques = [clique for component in components for clique in self._clique_ids(component)]
        joined = set(components)
        return len(set(cliques)) < len(cliques) or any(
            not self._edges(component).isdisjoint(joined) for component in components
        )

    def add(self, first: int, second: int, answer: Answer) -> bool:
        """Add an answer to the closure. Returns False and changes nothing if the answer contradicts the closure."""
        one, two = self.component(first), self.component(second)
        if one == two if answer is DIFFERENT else one != two and self._known_apart(one, two):
            return False
        n_before, n_rewound, is_read = self._decided
        n_decided = None
        if n_before is not None and is_read and n_rewound == self.journal.n_rewound and self._is_prior_empty:
            # If the number is read after each answer, it is updated here. Otherwise it is counted when it is needed.
            n_decided = n_before + self.n_decided_by(first, second, answer)
        self._join_or_separate(one, two, answer)
        self._decided = n_decided, n_rewound, False
        return True

    def _join_or_separate(self, one: int, two: int, answer: Answer) -> None:
        for root in (one, two):
            if root not in self._rows:
                rows = self._rows[root] = self._prior_rows(root).tolist()
                self._root_of_row.update(dict.fromkeys(rows, root))
                self.journal.note(self._untouched, root)
        if answer is SAME and one != two:
            self._merge(one, two)
        elif answer is DIFFERENT and two not in self._edges(one):
            self._edges(one).add(two)
            self._edges(two).add(one)
            self.journal.note(self._unseparated, one, two)

    def _unseparate(self, one: int, two: int) -> None:
        self._apart[one].discard(two)
        self._apart[two].discard(one)

    def _merge(self, one: int, two: int) -> None:
        if len(self._rows[one]) + len(self._edges(one)) < len(self._rows[two]) + len(self._edges(two)):
            one, two = two, one
        edges, cliques = self._edges(two) - self._edges(one), self._clique_ids(two) - self._clique_ids(one)
        merged = _Merged(
            one, two, len(self._rows[one]), self._rows[two], self._edges(two), edges, self._clique_ids(two), cliques
        )
        for other in merged.edges:
            others = self._edges(other)
            others.discard(two)
            others.add(one)
        self._edges(one).update(edges)
        self._clique_ids(one).update(cliques)
        self._rows[one] += merged.rows
        del self._apart[two], self._cliques[two], self._rows[two]
        self._parent[two] = one
        self._root_of_row.update(dict.fromkeys(merged.rows, one))
        self._roots = None
        self.journal.note(self._unmerge, merged)

    def _unmerge(self, merged: _Merged) -> None:
        one, two = merged.one, merged.two
        del self._parent[two], self._rows[one][merged.n_rows :]
        self._rows[two], self._apart[two], self._cliques[two] = merged.rows, merged.edges, merged.cliques
        self._root_of_row.update(dict.fromkeys(merged.rows, two))
        self._apart[one] -= merged.new_edges
        self._cliques[one] -= merged.new_cliques
        for other in merged.edges:
            self._apart[other].add(two)
            if other in merged.new_edges:
                self._apart[other].discard(one)
        self._roots = None

    def n_decided_by(self, first: int, second: int, answer: Answer, *, among_answered: bool = False) -> int:
        """Number of pairs that an answer would decide, its own pair included; 0 if the pair is already decided.

        With `among_answered`, pairs with a component without answers are not counted. Otherwise, the first answer
        "same" about a record counts its pairs with all records of the other one's source.
        """
        if self.relation(first, second) is not None:
            return 0
        one, two = self.component(first), self.component(second)
        n_one, n_two = len(self.rows(first)), len(self.rows(second))
        if answer is DIFFERENT:
            return n_one * n_two
        only_one, only_two = self._apart_from(one), self._apart_from(two)
        if among_answered:
            only_one, only_two = only_one & self._rows.keys(), only_two & self._rows.keys()
        new = n_two * self._n_rows_in(only_one - only_two) + n_one * self._n_rows_in(only_two - only_one)
        return n_one * n_two + new

    def _apart_from(self, root: int) -> set[int]:
        """All components known to be apart from a component."""
        in_cliques = {self._root(one) for one in self._in_cliques_of(root).tolist()}
        return (self._edges(root) | in_cliques) - {root}

    def _n_rows_in(self, roots: set[int]) -> int:
        return sum(len(self._rows[root]) if root in self._rows else len(self._prior_rows(root)) for root in roots)

    def n_decided(self) -> int:
        """Number of pairs of rows decided by answers and prior constraints, among components with answers."""
        found, n_rewound, _ = self._decided
        if found is None or n_rewound != self.journal.n_rewound:
            found = self._count_decided()
        self._decided = found, self.journal.n_rewound, True
        return found

    def _count_decided(self) -> int:
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
