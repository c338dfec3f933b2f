"""Find the cheapest statements to drop so that the others hold with k clusters (thesis 7.2).

Each contradiction, and each proof that k clusters are not enough, is a set of statements of which at least one must be
dropped. Mixed-integer programming finds the cheapest statements that hit all these sets. The sets are generated as
needed: drop statements, look for another set among the remaining ones, and choose again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from clew._words import counted
from clew.constraints._arrays import FloatArray, IntArray, dense, distinct_pairs, group_columns, links_within
from clew.constraints._closure import component_numbers, must_links
from clew.constraints._conflicts import ChainSearch, Contradiction
from clew.constraints._feasibility import check_number, proof_sentences
from clew.constraints._statements import Statement, Statements
from clew.exceptions import ContradictoryConstraintsError, InfeasibleConstraintsError, WorkLimitError
from clew.solvers.coloring import CliqueGraph, color, cores
from clew.solvers.covering import Cover, CoveringProblem

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints

BoolArray = npt.NDArray[np.bool_]

# Largest number of rounds, of entries of the covering problems of all rounds, and of rounds without a better bound.
# Then the best repair so far is returned.
_ROUNDS, _ENTRIES, _STALLED = 200, 400_000, 10
# Number of rounds before annealing looks for a good repair. Most parts need fewer rounds.
_EASY_ROUNDS = 8
# Largest number of contradictions, and of proofs that k clusters are not enough, that one round adds as requirements.
_MOST_CONFLICTS, _PROOFS = 300, 10
# Work limit of one feasibility check, and of one check while a proof is shrunk or a statement is added back.
_CHECK_WORK, _SMALL_WORK = 2_000_000, 200_000
# Annealing of a labelling: number of starts, smallest and largest number of sweeps of each, entries of the rows x
# clusters tables of all sweeps, and number of members of a cannot-group that repel each member.
_STARTS, _SWEEPS, _LABELLING_ENTRIES, _NEAR_MEMBERS = 2, (100, 1500), 100_000_000, 3
# Largest number of attempts to leave out an edge of a proof.
_MOST_EDGES = 80
# Largest number of attempts to add a statement of a heuristic repair back, most expensive first.
_MOST_ADDED_BACK = 100
_CLOSE = 1e-7


@dataclass(frozen=True)
class Repair:
    """The result of `Constraints.repair`.

    Attributes
    ----------
    constraints : Constraints
        The remaining constraints. They are consistent and feasible with `n_clusters` clusters.
    n_clusters : int
    dropped : tuple of Statement
        The statements to drop. Adding any one of them back makes the rest infeasible.
    cost : float
        Sum of their prices.
    lower_bound : float
        No repair costs less.
    exact : bool
        Whether the repair is proved to be the cheapest: `cost` equals `lower_bound`.
    """

    constraints: Constraints
    n_clusters: int
    dropped: tuple[Statement, ...]
    cost: float
    lower_bound: float
    exact: bool

    @property
    def message(self) -> str:
        """The result in a sentence or two."""
        if not self.dropped:
            return f"Nothing to drop: everything holds in {counted(self.n_clusters, 'cluster')}."
        told = f"Drop {counted(len(self.dropped), 'statement')} at a price of {self.cost:.4g}"
        told += f", and the rest holds in {counted(self.n_clusters, 'cluster')}."
        proved = f"A repair costs at least {self.lower_bound:.4g}."
        return f"{told} No repair is cheaper." if self.exact else f"{told} It may not be the cheapest. {proved}"

    def __str__(self) -> str:
        return self.message

    def table(self) -> list[dict[str, Any]]:
        """One dict for each dropped statement, ready for a data frame: kind, index, rows, group, price, sentence."""
        return [
            {
                "kind": one.kind,
                "index": one.index,
                "rows": one.rows,
                "group": one.group,
                "price": one.price,
                "sentence": str(one),
            }
            for one in self.dropped
        ]


def repair(constraints: Constraints, n_clusters: int, price: Any = None) -> Repair:
    """Find the cheapest statements to drop so that the others hold with `n_clusters` clusters."""
    check_number(n_clusters, "repair")
    n_clusters = int(n_clusters)
    statements = Statements(constraints)
    prices = statements.prices(price)
    items = _Items(statements, prices)
    dropped = np.zeros(items.n_items, dtype=bool)
    lower_bound, exact = 0.0, True
    for rows, numbers in _suspect_parts(constraints, items, n_clusters):
        part = _Part(constraints, items, rows, numbers, n_clusters)
        found, bound, proved = part.repair()
        dropped[numbers[found]] = True
        lower_bound += bound
        exact &= proved
    gone = dropped[items.item_of]
    cost = float(sum(prices[gone].tolist()))
    return Repair(
        statements.without(gone),
        n_clusters,
        tuple(statements.describe(number, prices[number]) for number in np.flatnonzero(gone).tolist()),
        cost,
        cost if exact else min(lower_bound, cost),
        exact,
    )


class _Items:
    """Items that are dropped or kept as a whole: a pair with all its repetitions, a label, or a membership in a group.

    For must_link=[(0, 1), (1, 0), (1, 2)] of price 1 each there are two items with the prices 2 and 1.
    """

    def __init__(self, statements: Statements, prices: FloatArray) -> None:
        given = statements.constraints
        must, cannot = distinct_pairs(given.must_link), distinct_pairs(given.cannot_link)
        n_must, n_cannot = len(must.pairs), len(cannot.pairs)
        n_others = sum(statements.counts[2:])
        self.n_items = n_must + n_cannot + n_others
        self.item_of = np.concatenate(
            [must.pair_of, cannot.pair_of + n_must, np.arange(n_others) + n_must + n_cannot]
        ).astype(np.int64)
        self.price = np.zeros(self.n_items)
        np.add.at(self.price, self.item_of, prices)
        others = statements.index[statements.counts[0] + statements.counts[1] :]
        self.kind = np.concatenate(
            [np.zeros(n_must, np.int64), np.ones(n_cannot, np.int64), statements.kind[len(prices) - n_others :]]
        )
        self.column = np.concatenate(
            [np.zeros(n_must + n_cannot, np.int64), statements.column[len(prices) - n_others :]]
        )
        single = np.column_stack([others, others])
        self.rows = np.concatenate([must.pairs, cannot.pairs, single]).astype(np.int64)


def _suspect_parts(constraints: Constraints, items: _Items, n_clusters: int) -> list[tuple[IntArray, IntArray]]:
    """Rows and items of each connected part that may be infeasible. All other parts are feasible with `n_clusters`."""
    closed = constraints.closure()
    links = [*must_links(constraints), constraints.cannot_link]
    links += [links_within(column) for column in group_columns(constraints.cannot_groups)]
    if constraints.labels is not None:
        links.append(links_within(np.where(constraints.labels >= 0, 0, -1)))
    part_of, n_parts = component_numbers(constraints.n_rows, *links)
    suspect = np.zeros(n_parts, dtype=bool)
    if closed.contradictory:
        suspect[[part_of[conflict.rows[0]] for conflict in constraints.conflicts()]] = True
    for vertices in cores(closed.graph, n_clusters):
        suspect[part_of[closed.first_row[vertices[0]]]] = True
    rows_of = {int(part): np.flatnonzero(part_of == part) for part in np.flatnonzero(suspect)}
    item_part = part_of[items.rows[:, 0]]
    return [(rows, np.flatnonzero(item_part == part)) for part, rows in rows_of.items()]


class _Part:
    """The statements about one connected part of the rows. Rows and items are numbered within the part."""

    def __init__(
        self, constraints: Constraints, items: _Items, rows: IntArray, numbers: IntArray, n_clusters: int
    ) -> None:
        self._make = type(constraints)
        self._n_clusters = n_clusters
        self._n_rows = len(rows)
        place = np.full(constraints.n_rows, -1)
        place[rows] = np.arange(len(rows))
        self._kind, self._column = items.kind[numbers], items.column[numbers]
        self._rows, self._price = place[items.rows[numbers]], items.price[numbers]
        self._labels = None if constraints.labels is None else dense(constraints.labels[rows])
        self._groups = {
            3: [dense(column[rows]) for column in group_columns(constraints.must_groups)],
            4: [dense(column[rows]) for column in group_columns(constraints.cannot_groups)],
        }
        self._names = [constraints.describe_row(row) for row in rows.tolist()]
        self._item = {
            (kind, column, *pair): number
            for number, (kind, column, pair) in enumerate(
                zip(self._kind.tolist(), self._column.tolist(), self._rows.tolist(), strict=True)
            )
        }

    def repair(self) -> tuple[BoolArray, float, bool]:
        """Items to drop, a lower bound on the price of every repair, and whether these items are proved optimal."""
        droppable = np.isfinite(self._price)
        n_classes = 0 if self._labels is None else int(self._labels.max(initial=-1)) + 1
        problem = CoveringProblem(np.append(np.where(droppable, self._price, 0.0), np.zeros(n_classes)))
        problem.covers += self._covers_of_groups()
        best, lowest, bound = None, np.inf, 0.0
        proved, entries, n_stalled = False, 0, 0
        for round_ in range(_ROUNDS):
            cover = problem.solve()
            n_stalled = 0 if cover.bound > bound + _CLOSE else n_stalled + 1
            bound = max(bound, self._rounded(cover.bound))
            sets, dropped = self._separate(cover.chosen[: len(self._price)] & droppable)
            entries += sum(len(one.items) for one in problem.covers)
            is_last = not sets or entries > _ENTRIES or n_stalled > _STALLED
            if dropped is None and (round_ == _EASY_ROUNDS or (is_last and round_ < _EASY_ROUNDS)):
                dropped = self._by_labelling(droppable)
            if dropped is not None and (cost := float(self._price[dropped].sum())) < lowest:
                best, lowest = dropped, cost
            proved = lowest <= bound + _CLOSE * max(1.0, bound)
            if proved or is_last:
                break
            problem.covers += [Cover.any_of(one) for one in sets]
        if best is None:
            raise WorkLimitError(
                f"No repair for n_clusters={self._n_clusters} was found that keeps all statements with an infinite "
                "price. Lower some of these prices, or raise n_clusters."
            )
        return self._added_back(best, proved), bound, proved

    def _rounded(self, bound: float) -> float:
        """Round a bound up to a multiple of the price, if all prices are equal."""
        price = self._price[np.isfinite(self._price)]
        unit = float(price[0]) if len(price) and price[0] > 0 and (price == price[0]).all() else 0.0
        return float(np.ceil(bound / unit - _CLOSE) * unit) if unit else bound

    def _covers_of_groups(self) -> list[Cover]:
        """Groups and classes that alone need more than k clusters: all but k of their statements must be dropped."""
        covers = []
        for number, column in enumerate(self._groups[4]):
            members = np.flatnonzero((self._kind == 4) & (self._column == number))
            for group in np.unique(column[column >= 0]):
                inside = members[column[self._rows[members, 0]] == group]
                free = inside[np.isfinite(self._price[inside])]
                if len(free) == len(inside) > self._n_clusters:
                    covers.append(Cover.any_of(inside, len(inside) - self._n_clusters))
        if self._labels is not None:
            of_label = np.flatnonzero(self._kind == 2)
            classes = np.unique(self._labels[self._labels >= 0])
            if len(classes) > self._n_clusters and np.isfinite(self._price[of_label]).all():
                # The additional items mean that a class loses all its labels.
                emptied = len(self._price) + classes
                covers.append(Cover.any_of(emptied, len(classes) - self._n_clusters))
                own = len(self._price) + self._labels[self._rows[of_label, 0]]
                covers += [
                    Cover(np.array(pair), np.array([1.0, -1.0]), 0.0)
                    for pair in zip(of_label.tolist(), own.tolist(), strict=True)
                ]
        return covers

    def _without(self, dropped: BoolArray) -> Constraints:
        kept = ~dropped
        labels = self._labels
        if labels is not None:
            labels = labels.copy()
            labels[self._rows[dropped & (self._kind == 2), 0]] = -1
        groups = []
        for kind in (3, 4):
            columns = [column.copy() for column in self._groups[kind]]
            for number, column in enumerate(columns):
                column[self._rows[dropped & (self._kind == kind) & (self._column == number), 0]] = -1
            groups.append(np.column_stack(columns) if columns else None)
        return self._make(
            self._rows[kept & (self._kind == 0)],
            self._rows[kept & (self._kind == 1)],
            labels=labels,
            must_groups=groups[0],
            cannot_groups=groups[1],
            n_samples=self._n_rows,
        )

    def _separate(self, dropped: BoolArray) -> tuple[list[IntArray], BoolArray | None]:
        """Find sets of remaining statements that cannot all hold, and a repair if the search reaches one.

        Contradictions are listed first. If there are none, statements of each proof are dropped greedily, so that
        several proofs are found.
        """
        dropped = dropped.copy()
        sets: list[IntArray] = []
        for _ in range(_PROOFS):
            rest = self._without(dropped)
            search = _Reasons(self, rest)
            new = [self._droppable(search.of_conflict(one), one) for one in rest.conflicts(limit=_MOST_CONFLICTS)]
            if not new:
                closed = rest.closure()
                found = color(closed.graph, self._n_clusters, work_limit=_CHECK_WORK)
                if found.status == "feasible":
                    return sets, dropped
                if found.proof is None:
                    return sets, None
                new = [self._droppable(search.of_proof(found.proof), (rest, closed, found))]
            sets += new
            _drop_from_each(new, self._price, dropped)
        return sets, None

    def _droppable(self, items: set[int], why: Any) -> IntArray:
        found = np.array(sorted(items), dtype=np.int64)
        found = found[np.isfinite(self._price[found])]
        if len(found):
            return found
        if isinstance(why, Contradiction):
            chain = [self._names[row] for row in why.chain]
            joined = "-".join(map(str, chain))
            raise ContradictoryConstraintsError(
                f"No repair is allowed: {why.kind} separates rows {chain[0]} and {chain[-1]}, "
                f"which are joined ({joined}), and all these statements have an infinite price. Lower one."
            )
        rest, closed, proof = why
        _, sentence = proof_sentences(
            rest._replace(ids=np.array(self._names, dtype=object)), closed, proof, self._n_clusters
        )
        raise InfeasibleConstraintsError(
            f"No repair is allowed: all statements about these rows have an infinite price. {sentence}"
        )

    def _by_labelling(self, droppable: BoolArray) -> BoolArray | None:
        """Items that a good labelling violates; None if some of them must not be dropped.

        Labels are drawn in proportion to exp(attraction / temperature), for a third of the rows at a time, while the
        temperature falls. The attraction of a cluster is the price of the must-links to it minus the price of the
        cannot-links to it. Groups and classes are extra rows.
        """
        weight = np.where(droppable, self._price, self._price[droppable].sum() + 1)
        pull = self._attraction(weight)
        n = pull.shape[0]
        k = min(self._n_clusters, n)
        n_sweeps = int(np.clip(_LABELLING_ENTRIES // (n * k * _STARTS), *_SWEEPS))
        rng = np.random.default_rng(0)
        hottest = float(weight.max(initial=1.0)) if droppable.all() else float(weight[droppable].max(initial=1.0))
        best, lowest = None, np.inf
        for _ in range(_STARTS):
            together = np.zeros((n, k))
            labels = rng.integers(0, k, n)
            for heat in np.geomspace(hottest, hottest / 50, n_sweeps):
                together[:] = 0
                together[np.arange(n), labels] = 1
                scores = pull @ together + rng.gumbel(size=(n, k)) * heat
                moving = rng.random(n) < 1 / 3
                labels[moving] = scores[moving].argmax(axis=1)
            violated = self._violated(labels, weight)
            cost = weight[violated].sum()
            if cost < lowest:
                best, lowest = violated, cost
        return best if best is not None and droppable[best].all() else None

    def _attraction(self, weight: FloatArray) -> sparse.csr_array:
        """Signed prices between rows, must-groups and classes, the latter numbered after the rows."""
        first, second, value = [], [], []
        n = self._n_rows

        def add(one: IntArray, two: IntArray, price: FloatArray) -> None:
            first.append(one)
            second.append(two)
            value.append(price)

        for kind, sign in ((0, 1.0), (1, -1.0)):
            own = self._kind == kind
            add(self._rows[own, 0], self._rows[own, 1], sign * weight[own])
        for number, column in enumerate(self._groups[3]):
            own = (self._kind == 3) & (self._column == number)
            add(self._rows[own, 0], n + column[self._rows[own, 0]], weight[own])
            n += int(column.max(initial=-1)) + 1
        for number, column in enumerate(self._groups[4]):
            own = np.flatnonzero((self._kind == 4) & (self._column == number))
            for shift in range(1, _NEAR_MEMBERS + 1):
                ordered = own[np.argsort(column[self._rows[own, 0]], kind="stable")]
                one, two = ordered[:-shift], ordered[shift:]
                shared = column[self._rows[one, 0]] == column[self._rows[two, 0]]
                one, two = one[shared], two[shared]
                add(self._rows[one, 0], self._rows[two, 0], -np.minimum(weight[one], weight[two]))
        if self._labels is not None:
            own = self._kind == 2
            add(self._rows[own, 0], n + self._labels[self._rows[own, 0]], weight[own])
            classes = np.arange(int(self._labels.max(initial=-1)) + 1)
            one, two = np.triu_indices(len(classes), 1)
            add(n + one, n + two, np.full(len(one), -float(weight[own].sum())))
            n += len(classes)
        pairs = np.concatenate(first), np.concatenate(second)
        upper = sparse.coo_array((np.concatenate(value), pairs), shape=(n, n))
        return sparse.csr_array(upper + upper.T)

    def _violated(self, labels: IntArray, weight: FloatArray) -> BoolArray:
        """Items to drop so that a labelling satisfies the others."""
        k = int(labels.max(initial=0)) + 1
        of_rows = labels[self._rows]
        differ = of_rows[:, 0] != of_rows[:, 1]
        violated = ((self._kind == 0) & differ) | ((self._kind == 1) & ~differ)
        for number, column in enumerate(self._groups[3]):
            own = np.flatnonzero((self._kind == 3) & (self._column == number))
            groups = column[self._rows[own, 0]]
            mass = np.zeros((int(column.max(initial=-1)) + 1, k))
            np.add.at(mass, (groups, of_rows[own, 0]), weight[own])
            violated[own] = of_rows[own, 0] != mass.argmax(axis=1)[groups] if len(own) else False
        for number, column in enumerate(self._groups[4]):
            own = np.flatnonzero((self._kind == 4) & (self._column == number))
            own = own[np.argsort(-weight[own], kind="stable")]
            _, kept = np.unique(column[self._rows[own, 0]] * k + of_rows[own, 0], return_index=True)
            violated[np.delete(own, kept)] = True
        if self._labels is not None:
            own = np.flatnonzero(self._kind == 2)
            classes = self._labels[self._rows[own, 0]]
            mass = np.zeros((int(self._labels.max(initial=-1)) + 1, k))
            np.add.at(mass, (classes, of_rows[own, 0]), weight[own])
            cluster_of = np.full(len(mass), -1)
            matched = linear_sum_assignment(mass, maximize=True)
            cluster_of[matched[0]] = matched[1]
            violated[own] = cluster_of[classes] != of_rows[own, 0]
        return violated

    def _added_back(self, dropped: BoolArray, proved: bool) -> BoolArray:
        """Add back items that need not be dropped: in a proved repair items of price 0, otherwise any item."""
        dropped = dropped.copy()
        order = np.flatnonzero(dropped & ((self._price == 0) | (not proved)))
        for item in order[np.argsort(-self._price[order], kind="stable")][:_MOST_ADDED_BACK]:
            dropped[item] = False
            rest = self._without(dropped)
            dropped[item] = not rest.check(self._n_clusters, work_limit=_SMALL_WORK)
        return dropped


def _drop_from_each(sets: list[IntArray], price: FloatArray, dropped: BoolArray) -> None:
    """Hit all sets greedily: repeatedly choose the item that hits most open sets relative to its price."""
    waiting = [one for one in sets if not dropped[one].any()]
    while waiting:
        count = np.zeros(len(price))
        for one in waiting:
            count[one] += 1
        best = int((count / np.maximum(price, 1e-12)).argmax())
        dropped[best] = True
        waiting = [one for one in waiting if best not in one]


class _Reasons:
    """Finds the items that cause conflicts and proofs among the remaining statements of a part."""

    def __init__(self, part: _Part, rest: Constraints) -> None:
        self._part, self._rest = part, rest

    @cached_property
    def _chains(self) -> ChainSearch:
        return ChainSearch(self._rest)

    def of_conflict(self, conflict: Contradiction) -> set[int]:
        return self._along(conflict.chain) | self._between(*conflict.rows, conflict.kind)

    def of_proof(self, components: IntArray) -> set[int]:
        """Statements that separate the components of a proof, and the chains that join their rows."""
        reasons = self._edges(components)
        reasons = self._fewer(reasons, components)
        items: set[int] = set()
        ends: dict[int, set[int]] = {}
        component_of = self._rest.closure().component_of
        for one, two, kind in reasons.values():
            items |= self._between(one, two, kind)
            for row in (one, two):
                ends.setdefault(int(component_of[row]), set()).add(row)
        for rows in ends.values():
            first, *others = sorted(rows)
            for row in others:
                items |= self._along(self._chains.chain(first, row))
        return items

    def _edges(self, components: IntArray) -> dict[tuple[int, int], tuple[int, int, str]]:
        """Two rows and the kind of statement that separates them, for each pair of components of a proof."""
        component_of = self._rest.closure().component_of
        inside = np.zeros(component_of.max(initial=0) + 1, dtype=bool)
        inside[components] = True
        found: dict[tuple[int, int], tuple[int, int, str]] = {}

        def add(one: int, two: int, kind: str) -> None:
            low, high = sorted((int(component_of[one]), int(component_of[two])))
            if low != high:
                found.setdefault((low, high), (one, two, kind))

        for one, two in self._rest.cannot_link[inside[component_of[self._rest.cannot_link]].all(axis=1)].tolist():
            add(one, two, "cannot_link")
        cliques = [(column, "cannot_groups") for column in group_columns(self._rest.cannot_groups)]
        if self._rest.labels is not None:
            cliques.append((np.where(self._rest.labels >= 0, 0, -1), "labels"))
        for column, kind in cliques:
            rows = np.flatnonzero((column >= 0) & inside[component_of])
            rows = rows[np.unique(column[rows] * len(inside) + component_of[rows], return_index=True)[1]]
            for group in np.unique(column[rows]):
                members = rows[column[rows] == group].tolist()
                for place, one in enumerate(members):
                    for two in members[place + 1 :]:
                        add(one, two, kind)
        return found

    def _fewer(
        self, reasons: dict[tuple[int, int], tuple[int, int, str]], components: IntArray
    ) -> dict[tuple[int, int], tuple[int, int, str]]:
        """Leave out edges as long as the components still cannot be coloured."""
        n, k = len(components), self._part._n_clusters
        if len(reasons) > _MOST_EDGES or len(reasons) == k * (k + 1) // 2:
            return reasons
        place = {int(component): number for number, component in enumerate(components)}
        none = np.empty(0, dtype=np.int64)
        kept = dict(reasons)
        for edge in reasons:
            fewer = [other for other in kept if other != edge]
            pairs = np.array([[place[one], place[two]] for one, two in fewer], dtype=np.int64).reshape(-1, 2)
            if color(CliqueGraph.build(n, pairs, none, none), k, work_limit=_SMALL_WORK).status == "infeasible":
                del kept[edge]
        return kept

    def _along(self, chain: tuple[int, ...]) -> set[int]:
        items: set[int] = set()
        for one, two in pairwise(chain):
            items |= self._joining(one, two)
        return items

    def _joining(self, one: int, two: int) -> set[int]:
        """The items that join two neighbours in a chain."""
        part, rest = self._part, self._rest
        pair = part._item.get((0, 0, min(one, two), max(one, two)))
        if pair is not None and self._must[pair]:
            return {pair}
        for number, column in enumerate(group_columns(rest.must_groups)):
            if column[one] == column[two] >= 0:
                return {part._item[3, number, row, row] for row in (one, two)}
        return {part._item[2, 0, row, row] for row in (one, two)}

    @cached_property
    def _must(self) -> BoolArray:
        """Which items are remaining must-links."""
        kept = np.zeros(len(self._part._price), dtype=bool)
        kept[[self._part._item[0, 0, *pair] for pair in self._rest.must_link.tolist()]] = True
        return kept

    def _between(self, one: int, two: int, kind: str) -> set[int]:
        """The items that separate two rows."""
        part = self._part
        if kind == "cannot_link":
            return {part._item[1, 0, min(one, two), max(one, two)]}
        if kind == "labels":
            return {part._item[2, 0, row, row] for row in (one, two)}
        for number, column in enumerate(group_columns(self._rest.cannot_groups)):
            if column[one] == column[two] >= 0:
                return {part._item[4, number, row, row] for row in (one, two)}
        raise AssertionError(f"rows {one} and {two} share no cannot-group")
