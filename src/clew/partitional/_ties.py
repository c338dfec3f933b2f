"""Prices between units, in the arrays that the compiled assignment reads.

A *set* of units is a component or a cannot-group. A *profile* is a list of sets with a price for each: a unit with this
profile pays the price once for every other unit of the set that is in its cluster. A negative price attracts. Units of
one component share a profile. A *partner* is a single unit with a price of its own. Sets are never expanded to pairs,
so memory stays linear: a set with more units than clusters keeps a count per cluster, and a smaller set is read unit by
unit. Only sets of up to four units are written out for the kernel as partners of each other.

An example of five rows: rows 0 and 1 are must-linked, row 2 is cannot-linked to row 1, and rows 2 and 3 are
cannot-linked with confidence 0.5. Row 4 is free. ``priced_ties(constraints, 2.0, entailed=True)`` gives

    rows            0  1  2  3          unit u is row rows[u]
    profile_of      0  0  1  2          rows 0 and 1 are one component and share profile 0
    members         0 1 | 2 | 3         the units of sets 0, 1 and 2: here the components ({0, 1}, {2}, {3})
    profile 0       set 0 at -1, set 1 at +1      together with the own component, apart from row 2
    profile 1       set 0 at +1                   row 2 is apart from rows 0 (entailed) and 1 (given)
    profile 2       nothing
    partners        2 - 3 at 0.5        the doubtful pair is priced on its own
    constant        1                   one must-link, broken until its rows are together
    penalty         2                   the unit of all these prices

With labels 0 0 0 0 the must-link gains 1, both cannot-links to row 2 and the doubtful pair cost 1 + 1 + 0.5, and the
price is 2 (1 - 1 + 2.5) = 5. The kernel stores the lists of profiles, members and partners one after the other, with
the start of each in `profile_ptr`, `member_ptr` and `partner_ptr`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.constraints import Closure, Constraints
from clew.constraints._arrays import dense, distinct_pairs, group_columns, links_within
from clew.kernels.ties import assign_tied, move_blocks, price_ties
from clew.partitional._geometry import FloatArray, IntArray, Labels, Problem
from clew.partitional._units import Units
from clew.solvers.coloring import compress, running

_NONE = np.empty(0, dtype=np.int64)
# Sets of up to this many units are written out as partners.
_MOST_LISTED = 4


@dataclass(frozen=True)
class Ties:
    """Which units and sets each unit pays for, and the prices. The module's docstring shows an example of five rows."""

    pinned: Labels
    profile_of: IntArray
    profile_ptr: IntArray
    profile_set: IntArray
    profile_price: FloatArray
    partner_ptr: IntArray
    partners: IntArray
    partner_price: FloatArray
    member_ptr: IntArray
    members: IntArray
    group_ptr: IntArray
    groups: IntArray
    own_set: IntArray  # the set that consists of the units of a profile, -1 if there is none
    constant: float = 0.0  # price of the must-links if no two rows are together
    penalty: float = 1.0  # unit of all prices; certain pairs cost whole multiples of it, so that sums are exact

    @classmethod
    def build(
        cls,
        n_units: int,
        *,
        pinned: Labels | None = None,
        membership: tuple[IntArray, IntArray] = (_NONE, _NONE),
        profile_of: IntArray | None = None,
        profiles: tuple[IntArray, IntArray, FloatArray] = (_NONE, _NONE, np.empty(0)),
        pairs: tuple[IntArray, FloatArray] = (np.empty((0, 2), dtype=np.int64), np.empty(0)),
        profiles_are_sets: bool = False,
        constant: float = 0.0,
    ) -> Ties:
        """Build the arrays from memberships (unit, set), profiles (profile, set, price) and priced single pairs.

        With `profiles_are_sets`, set p consists of the units of profile p.
        """
        unit, group = membership
        n_sets = int(group.max(initial=-1)) + 1
        member_ptr, members = compress(group, unit, n_sets)
        group_ptr, groups = compress(unit, group, n_units)
        profile, heeded, price = profiles
        profile_of = np.zeros(n_units, dtype=np.int64) if profile_of is None else profile_of
        n_profiles = max(int(profile.max(initial=-1)), int(profile_of.max(initial=-1))) + 1
        profile_ptr, order = compress(profile, np.arange(len(profile)), n_profiles)
        rows, prices = pairs
        ends, others = np.concatenate([rows[:, 0], rows[:, 1]]), np.concatenate([rows[:, 1], rows[:, 0]])
        partner_ptr, partner_order = compress(ends, np.arange(len(ends)), n_units)
        return cls(
            np.full(n_units, -1, dtype=np.int32) if pinned is None else pinned,
            profile_of,
            profile_ptr,
            np.ascontiguousarray(heeded[order]),
            np.ascontiguousarray(price[order]),
            partner_ptr,
            np.ascontiguousarray(others[partner_order]),
            np.ascontiguousarray(np.concatenate([prices, prices])[partner_order]),
            member_ptr,
            members,
            group_ptr,
            groups,
            np.where(profiles_are_sets, np.arange(n_profiles), -1),
            constant,
        )

    def product(self, amounts: FloatArray) -> FloatArray:
        """Multiply the matrix of prices between units, in units of `penalty`, by `amounts` (units, columns)."""
        n_units, n_sets, n_profiles = len(self.profile_of), len(self.member_ptr) - 1, len(self.own_set)
        inside = sparse.csr_array((np.ones(len(self.members)), self.members, self.member_ptr), shape=(n_sets, n_units))
        profiles = sparse.csr_array(
            (self.profile_price, self.profile_set, self.profile_ptr), shape=(n_profiles, n_sets)
        )
        partners = sparse.csr_array((self.partner_price, self.partners, self.partner_ptr), shape=(n_units, n_units))
        found = (profiles @ (inside @ amounts))[self.profile_of] + partners @ amounts
        # A unit does not pay for itself, but the sets of its own profile count it in its cluster.
        group = np.repeat(np.arange(n_sets), np.diff(self.member_ptr))
        own = np.asarray(profiles[self.profile_of[self.members], group]).ravel() if len(group) else np.empty(0)
        itself = np.bincount(self.members, own, minlength=n_units)
        return np.asarray(found - itself[:, None] * amounts)


class TiedAssignment:
    """The state of one run: labels of units and the counts of large sets, which the kernel keeps up to date."""

    def __init__(self, ties: Ties, n_clusters: int) -> None:
        large = np.diff(ties.member_ptr) > n_clusters
        self.pinned = ties.pinned
        self._ties = ties
        self._table_of = np.where(large, np.cumsum(large) - 1, -1)
        rest = (ties.member_ptr, ties.members, ties.group_ptr, ties.groups, self._table_of)
        sum_of, pulled, self._pushes = _divided(ties, large)
        profile_of, (partner_ptr, partners, partner_price) = _listed(ties, large, sum_of, pulled)
        # Units are visited in random order, so the arrays are kept small enough for the caches.
        self._units, self._arrays = (
            (*map(_short, (profile_of, *pulled[:2], pulled[2] * unit, partner_ptr, partners, partner_price * unit,
                           *rest, sum_of, *self._pushes)), unit)
            for unit in (1.0, ties.penalty)
        )  # fmt: skip
        self._tables = np.zeros((int(large.sum()), n_clusters), dtype=np.int64)
        self._sums = np.zeros((int(sum_of.max(initial=-1)) + 1, n_clusters))
        self._prices = np.empty(n_clusters)

    def clear(self) -> None:
        """Load the labelling in which no unit is assigned."""
        self._tables[:] = 0
        self._sums[:] = 0

    def load(self, labels: Labels) -> None:
        """Load a labelling: count the large sets, and add up their prices for each profile."""
        self.clear()
        ties, table_of = self._ties, self._table_of
        group = np.repeat(np.arange(len(ties.member_ptr) - 1), np.diff(ties.member_ptr))
        label = labels[ties.members]
        counted = (table_of[group] >= 0) & (label >= 0)
        np.add.at(self._tables, (table_of[group[counted]], label[counted]), 1)
        if len(self._sums):
            push_ptr, push_to, push_price = self._pushes
            shape = (len(table_of), len(self._prices))
            placed = label >= 0
            counts = sparse.csr_array((np.ones(int(placed.sum())), (group[placed], label[placed])), shape=shape)
            listeners = sparse.csr_array((push_price, push_to, push_ptr), shape=(len(table_of), len(self._sums)))
            self._sums[:] = (listeners.T @ counts).toarray()

    def sweep(
        self,
        problem: Problem,
        units: Units,
        centers: FloatArray,
        order: IntArray | None,
        labels: Labels,
        places: FloatArray | None = None,
    ) -> float:
        """Visit all units once; return their weighted score, infinite if a unit had no allowed cluster.

        Without an `order`, units are visited by their numbers. `places` is the marginal cost of one more unit in each
        cluster. It is added to the score of each unit.
        """
        total = 0.0
        for chosen, costs in units.costs(problem, centers, order):
            total += assign_tied(
                np.ascontiguousarray(chosen),
                costs if places is None else costs + places,
                self._ties.pinned,
                *self._arrays,
                self._tables,
                self._sums,
                labels,
                self._prices,
            )
            if total == np.inf:
                break
        return total

    def move_blocks(
        self,
        problem: Problem,
        blocks: Units,
        members: tuple[IntArray, IntArray],
        centers: FloatArray,
        order: IntArray,
        labels: Labels,
        places: FloatArray | None = None,
    ) -> float:
        """Visit blocks once and move each as a whole; return the change of score. `members` holds their units as CSR.

        `places` is as in `sweep`; a block pays it for each of its units.
        """
        counts = np.diff(members[0])
        return sum(
            move_blocks(
                np.ascontiguousarray(chosen),
                costs if places is None else costs + counts[chosen, None] * places,
                *members,
                *self._arrays,
                self._tables,
                self._sums,
                labels,
                self._prices,
            )
            for chosen, costs in blocks.costs(problem, centers, order)
        )

    def marginal_prices(self, labels: Labels) -> FloatArray:
        """Price of each unit's ties in every cluster if all other units stay: an array (units, clusters)."""
        at = np.zeros((len(labels), len(self._prices)))
        at[np.arange(len(labels)), labels] = 1
        return self._ties.penalty * self._ties.product(at)

    def price(self, labels: Labels) -> float:
        """The price of the pairs that a labelling breaks."""
        broken = self._ties.constant + price_ties(*self._units, self._tables, self._sums, labels, self._prices) / 2
        return self._ties.penalty * max(broken, 0.0)  # confidences may leave rounding errors


def _short(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Integers in 32 bits, and other arrays as they are."""
    return array.astype(np.int32) if array.dtype == np.int64 else array


def _listed(
    ties: Ties,
    large: npt.NDArray[np.bool_],
    sum_of: IntArray,
    pulled: tuple[IntArray, IntArray, FloatArray],
) -> tuple[IntArray, tuple[IntArray, IntArray, FloatArray]]:
    """Write small sets out as partners; return the profile of each unit (-1: none) and the partners with their prices.

    Most components are pairs. Looking up the few units of such a set through its profile would read six arrays in
    random order, and a list of partners takes two. All sets of the profile must be small, so that memory stays linear.
    """
    profile_ptr, profile_set, profile_price = pulled
    sizes, n_entries = np.diff(ties.member_ptr), np.diff(profile_ptr)
    short = (sizes <= _MOST_LISTED) & ~large
    n_long = np.bincount(np.repeat(np.arange(len(n_entries)), n_entries)[~short[profile_set]], minlength=len(n_entries))
    units = np.flatnonzero(((n_long == 0) & (sum_of < 0))[ties.profile_of])
    profile = ties.profile_of[units]
    entries = np.repeat(profile_ptr[profile], n_entries[profile]) + running(n_entries[profile])
    sets = profile_set[entries]
    ends = np.repeat(np.repeat(units, n_entries[profile]), sizes[sets])
    others = ties.members[np.repeat(ties.member_ptr[sets], sizes[sets]) + running(sizes[sets])]
    prices = np.repeat(profile_price[entries], sizes[sets])
    is_other = others != ends
    given = np.repeat(np.arange(len(ties.profile_of)), np.diff(ties.partner_ptr))
    ends, others = np.concatenate([ends[is_other], given]), np.concatenate([others[is_other], ties.partners])
    prices = np.concatenate([prices[is_other], ties.partner_price])
    partner_ptr, order = compress(ends, np.arange(len(ends)), len(ties.profile_of))
    profile_of = ties.profile_of.copy()
    profile_of[units] = -1
    return profile_of, (partner_ptr, others[order], prices[order])


def _divided(
    ties: Ties, large: npt.NDArray[np.bool_]
) -> tuple[IntArray, tuple[IntArray, IntArray, FloatArray], tuple[IntArray, IntArray, FloatArray]]:
    """Find profiles with a running sum, profile entries to look up at each visit, and entries that update the sums.

    A large component may be cannot-linked to very many others. Looking up all of them for each of its rows would take
    rows times components. Instead, its profile keeps the sum of their prices, and every unit that moves updates it.
    """
    n_profiles, n_sets = len(ties.own_set), len(large)
    profile = np.repeat(np.arange(n_profiles), np.diff(ties.profile_ptr))
    own = ties.own_set[profile]
    pushed = (own >= 0) & (ties.profile_set < n_profiles) & (ties.profile_set != own)
    pushed[pushed] = large[own[pushed]]
    keeps = np.zeros(n_profiles, dtype=bool)
    keeps[profile[pushed]] = True
    sum_of = np.where(keeps, np.cumsum(keeps) - 1, -1)
    push_ptr, order = compress(ties.profile_set[pushed], np.flatnonzero(pushed), n_sets)
    pull_ptr = np.concatenate([[0], np.cumsum(np.bincount(profile[~pushed], minlength=n_profiles))])
    return (
        sum_of,
        (pull_ptr, ties.profile_set[~pushed], ties.profile_price[~pushed]),
        (push_ptr, sum_of[profile[order]], ties.profile_price[order]),
    )


def component_units(problem: Problem, closed: Closure, chosen: npt.NDArray[np.bool_]) -> tuple[Units, IntArray]:
    """Contract the chosen components to units; also return the unit of each component (-1: not chosen)."""
    unit_of_component = np.where(chosen, np.cumsum(chosen) - 1, -1)
    unit_of_row = unit_of_component[closed.component_of]
    rows = np.flatnonzero(unit_of_row >= 0)
    return Units.contract(problem, rows, unit_of_row[rows], int(chosen.sum())), unit_of_component


def hard_ties(closed: Closure, unit_of_component: IntArray, pinned: Labels) -> Ties:
    """Ties between cannot-linked components, with infinite prices."""
    graph = closed.graph
    source = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
    once = source < graph.edges
    pairs = unit_of_component[np.column_stack([source[once], graph.edges[once]])]
    clique_of = np.repeat(np.arange(len(graph.member_ptr) - 1), np.diff(graph.member_ptr))
    units = unit_of_component[graph.members]
    return Ties.build(
        len(pinned),
        pinned=pinned,
        membership=(units, clique_of),
        profile_of=np.arange(len(pinned)),
        profiles=(units, clique_of, np.full(len(units), np.inf)),
        pairs=(pairs, np.full(len(pairs), np.inf)),
    )


def priced_ties(constraints: Constraints, penalty: float, *, entailed: bool) -> tuple[IntArray, Ties]:
    """The rows in constraints, and the prices between them.

    With `entailed`, certain pairs (confidence 1) are priced together with all pairs that they entail. Less certain
    pairs are priced on their own, at `penalty` times their confidence. Without it, only given pairs are priced.
    """
    rows, ties = _entailed_ties(constraints) if entailed else _given_ties(constraints)
    return rows, replace(ties, penalty=penalty)


def _entailed_ties(constraints: Constraints) -> tuple[IntArray, Ties]:
    certain = constraints.at_least(1.0)
    closed = certain.closure()
    graph = closed.graph
    pairs, prices = lone_pairs(constraints, closed)
    row_is_unit = ((closed.sizes > 1) | closed.tied)[closed.component_of]
    row_is_unit[pairs] = True
    rows = np.flatnonzero(row_is_unit)
    unit_of_row = np.cumsum(row_is_unit) - 1

    # Sets: the components that rows here are in, then the cliques; a clique holds the rows of its components.
    named = np.zeros(closed.n_components, dtype=bool)
    named[closed.component_of[rows]] = True
    set_of = np.cumsum(named) - 1
    own_set = set_of[closed.component_of[rows]]
    clique_of = np.repeat(np.arange(len(graph.member_ptr) - 1), np.diff(graph.member_ptr))
    clique_set = clique_of + int(named.sum())
    row_ptr, rows_by_component = closed.rows
    repeats = closed.sizes[graph.members]
    places = np.repeat(row_ptr[graph.members], repeats) + running(repeats)
    units = np.concatenate([np.arange(len(rows)), unit_of_row[rows_by_component[places]]])
    sets = np.concatenate([own_set, np.repeat(clique_set, repeats)])

    # A clique also counts the unit's own component; the component's own entry subtracts it.
    n_cliques = np.diff(graph.clique_ptr)
    joined = np.flatnonzero(closed.sizes > 1)
    source = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
    profiles = (
        np.concatenate([set_of[joined], set_of[source], set_of[graph.members]]),
        np.concatenate([set_of[joined], set_of[graph.edges], clique_set]),
        np.concatenate([-1.0 - n_cliques[joined], np.ones(len(source)), np.ones(len(clique_of))]),
    )
    constant = float((closed.sizes * (closed.sizes - 1) // 2).sum()) - float(np.minimum(prices, 0).sum())
    ties = Ties.build(
        len(rows),
        membership=(units, sets),
        profile_of=own_set,
        profiles=profiles,
        pairs=(unit_of_row[pairs], prices),
        profiles_are_sets=True,
        constant=constant,
    )
    return rows, ties


def _given_ties(constraints: Constraints) -> tuple[IntArray, Ties]:
    """Price each given pair once, at its highest confidence; groups and classes are priced by counts.

    A pair that a group or the classes also state is priced there only.
    """
    kinds = (
        (constraints.must_link, constraints.must_link_confidence, -1.0),
        (constraints.cannot_link, constraints.cannot_link_confidence, 1.0),
    )
    once = [
        _once(*_not_stated(pairs, confidence, constraints, together=price < 0)) for pairs, confidence, price in kinds
    ]
    pairs = np.concatenate([rows for rows, _ in once])
    prices = np.concatenate([sure * price for (_, sure), (_, _, price) in zip(once, kinds, strict=True)])
    columns: list[tuple[IntArray, float]] = []
    for groups, price in ((constraints.must_groups, -1.0), (constraints.cannot_groups, 1.0)):
        columns += [(column, price) for column in group_columns(groups)]
    if constraints.labels is not None:
        # Two labelled rows: apart costs one if the classes agree, together costs one if they differ.
        columns += [(constraints.labels, -2.0), (np.minimum(constraints.labels, 0), 1.0)]
    row_is_unit = np.zeros(constraints.n_rows, dtype=bool)
    row_is_unit[pairs] = True
    for column, _ in columns:
        row_is_unit[column >= 0] = True
    rows = np.flatnonzero(row_is_unit)
    unit_of_row = np.cumsum(row_is_unit) - 1
    units, sets, entry_prices = [_NONE], [_NONE], [np.empty(0)]
    constant, n_sets = -float(np.minimum(prices, 0).sum()), 0
    for column, price in columns:
        grouped = np.flatnonzero(column >= 0)
        values, numbers, sizes = np.unique(column[grouped], return_inverse=True, return_counts=True)
        units.append(unit_of_row[grouped])
        sets.append(numbers + n_sets)
        entry_prices.append(np.full(len(grouped), price))
        n_sets += len(values)
        if price < 0:
            constant += float((sizes * (sizes - 1) // 2).sum())
    unit, group, price_of = np.concatenate(units), np.concatenate(sets), np.concatenate(entry_prices)
    ties = Ties.build(
        len(rows),
        membership=(unit, group),
        profile_of=np.arange(len(rows)),
        profiles=(unit, group, price_of),
        pairs=(unit_of_row[pairs], prices),
        constant=constant,
    )
    return rows, ties


def _not_stated(
    pairs: IntArray, confidence: FloatArray, constraints: Constraints, *, together: bool
) -> tuple[IntArray, FloatArray]:
    """The pairs that neither groups nor classes put together (or keep apart)."""
    stated = np.zeros(len(pairs), dtype=bool)
    for column in group_columns(constraints.must_groups if together else constraints.cannot_groups):
        first, second = column[pairs].T
        stated |= (first >= 0) & (first == second)
    if constraints.labels is not None:
        first, second = constraints.labels[pairs].T
        stated |= (first >= 0) & (second >= 0) & ((first == second) == together)
    return pairs[~stated], confidence[~stated]


def lone_pairs(constraints: Constraints, closed: Closure) -> tuple[IntArray, FloatArray]:
    """Pairs that are not priced through the closure: uncertain pairs, and pairs that contradict the closure."""
    must, must_sure = _once(constraints.must_link, constraints.must_link_confidence)
    ends = closed.component_of[must]
    new = ends[:, 0] != ends[:, 1]
    must, must_sure = must[new], must_sure[new]
    cannot, cannot_sure = _once(constraints.cannot_link, constraints.cannot_link_confidence)
    ends = closed.component_of[cannot]
    new = ~are_apart(closed, ends[:, 0], ends[:, 1])
    cannot, cannot_sure = cannot[new], cannot_sure[new]
    against = [cannot]
    for column in group_columns(constraints.cannot_groups):
        key = np.where(column >= 0, dense(column) * closed.n_components + closed.component_of, -1)
        against.append(links_within(key))
    if constraints.labels is not None:
        links = links_within(np.where(constraints.labels >= 0, closed.component_of, -1))
        against.append(links[constraints.labels[links[:, 0]] != constraints.labels[links[:, 1]]])
    cannot_sure = np.concatenate([cannot_sure, np.ones(sum(map(len, against[1:])))])
    return np.concatenate([must, *against]), np.concatenate([-must_sure, cannot_sure])


def are_apart(closed: Closure, first: IntArray, second: IntArray) -> npt.NDArray[np.bool_]:
    """Whether two components are cannot-linked, by an edge or by a clique."""
    graph, n = closed.graph, closed.n_components
    source = np.repeat(np.arange(n), np.diff(graph.edge_ptr))
    by_edge = np.isin(first * n + second, source * n + graph.edges)
    return by_edge | graph.share_a_clique(first, second)


def _once(pairs: IntArray, confidence: FloatArray) -> tuple[IntArray, FloatArray]:
    """Distinct pairs, regardless of direction, each with its highest confidence."""
    stated = distinct_pairs(pairs, confidence)
    return stated.pairs, confidence[stated.best]
