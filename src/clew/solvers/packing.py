"""The cheapest assignment of blocks to clusters with size limits, where some blocks must be in different clusters.

A block is a row or several rows that move together. With blocks of several sizes, or with conflicts, the problem is a
generalised assignment problem with conflicts, which is NP-hard. Three steps share the work:

1. `Packing.start` finds a labelling within the limits, or proves that there is none: rounding and repair first, then a
   mixed-integer program over the large blocks and the conflicts (HiGHS through SciPy).
2. `Packing.improve` exchanges blocks between two clusters at a time until no exchange lowers the cost.
3. `Packing.prove` gives a lower bound. Lagrangian prices of the sizes bound the cost of every labelling, and reduced
   costs show which blocks can still move in a better one. A mixed-integer program decides about these blocks.

Limits count work, never seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse.csgraph import connected_components

from clew.solvers.coloring import CliqueGraph, color
from clew.solvers.transport import transport

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

# Largest product of nodes and variables of one proof by HiGHS, and smallest limit on nodes. A node takes longer with
# more variables. The search for an initial labelling may take this many times more, because without it there is no
# result.
WORK_LIMIT, _LEAST_NODES, _START_FACTOR = 5_000, 10, 100
# Tolerance for comparisons of sums of weights, as a share of the total.
ROUNDING = 1e-9
# Largest number of variables of one proof: if most blocks have one size, and if sizes are weights (HiGHS takes longer).
_CORE_VARIABLES, _WEIGHT_VARIABLES = 2000, 300
# A problem with at most this many variables, and with most blocks of one size, is not split into two cores.
_ONE_CORE_VARIABLES = 5000
# Largest number of variables of the search for an initial labelling, and of a search with variables for every block.
_START_VARIABLES, _WHOLE_VARIABLES = 8000, 2000
# Largest number of cores that are solved one after the other, each with the better labelling of the previous one.
_CORES = 2
# Largest number of sweeps over all pairs of clusters, in one round and for the last labelling.
ROUND_SWEEPS, _LAST_SWEEPS = 2, 20
# Number of candidates that are tried one by one after a prefix of an exchange.
_TAIL = 256
# Largest number of copies of rows that represent their weights in the flow that finds prices.
_COPIES = 200_000
# HiGHS accepts solutions that violate a limit by 1e-6, so sizes are scaled to this total first.
_SCALED_TOTAL = 1e5
_MOST_NODES = 2**31 - 1  # HiGHS counts nodes in 32 bits
_INFEASIBLE = 2  # status of scipy.optimize.milp


class PackingError(Exception):
    """No labelling keeps the limits (`proven`), or none was found within the work limit."""

    def __init__(self, *, proven: bool) -> None:
        super().__init__("proven" if proven else "work limit")
        self.proven = proven


class Proof(NamedTuple):
    """A labelling and a lower bound on the cost of every labelling within the limits."""

    labels: Labels
    cost: float
    bound: float


@dataclass(frozen=True)
class Packing:
    """Blocks with sizes, limits on the sizes of clusters, and blocks that must differ.

    `sizes[b]` is the size of block b, `lower` and `upper` are the limits of the clusters, the edges and
    cliques of `graph` are blocks that must differ, and `fixed[b]` is the cluster of a block that cannot move (else -1).
    Of five rows, let rows 0 and 1 be must-linked and row 2 cannot-linked to them, with at most three rows in each of
    two clusters: ``sizes=[2, 1, 1, 1]``, ``lower=[0, 0]``, ``upper=[3, 3]``, and `graph` has the edge 0-1.
    """

    sizes: FloatArray
    lower: FloatArray
    upper: FloatArray
    graph: CliqueGraph
    fixed: Labels
    work_limit: int = WORK_LIMIT

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.lower)

    @cached_property
    def is_flow(self) -> bool:
        """Whether blocks are single rows without conflicts, so that a flow finds the cheapest labelling."""
        return not len(self.edges) and bool((self.sizes == 1).all())

    @cached_property
    def edges(self) -> IntArray:
        """Pairs of blocks that must differ, of which at least one may move."""
        pairs = self.graph.pairs()
        return pairs[(self.fixed[pairs] < 0).any(axis=1)] if len(pairs) else pairs.reshape(0, 2)

    @cached_property
    def open(self) -> Mask:
        """Which clusters each block may go to: not to clusters of fixed blocks that it must differ from."""
        allowed = np.ones((len(self.sizes), self.n_clusters), dtype=bool)
        pinned = np.flatnonzero(self.fixed >= 0)
        for one, other in (self.edges.T, self.edges[:, ::-1].T):
            at = self.fixed[one] >= 0
            allowed[other[at], self.fixed[one[at]]] = False
        allowed[pinned] = False
        allowed[pinned, self.fixed[pinned]] = True
        return allowed

    @cached_property
    def free_edges(self) -> IntArray:
        """Pairs of blocks that must differ and may both move."""
        return self.edges[(self.fixed[self.edges] < 0).all(axis=1)]

    def loads(self, labels: Labels) -> FloatArray:
        """Size of each cluster."""
        return np.bincount(labels, weights=self.sizes, minlength=self.n_clusters).astype(np.float64)

    def violation(self, labels: Labels) -> float:
        """Sum over the clusters of the amount by which their sizes violate the limits."""
        loads = self.loads(labels)
        return float(np.maximum(np.maximum(self.lower - loads, loads - self.upper), 0).sum())

    def flow(self, costs: FloatArray, prices: FloatArray | None) -> tuple[Labels, FloatArray]:
        """The cheapest labelling if `is_flow`, and the prices of the clusters, from which the next flow starts."""
        labels = self.fixed.copy()
        loose = np.flatnonzero(labels < 0)
        taken = np.bincount(labels[labels >= 0], minlength=self.n_clusters)
        lower = np.maximum(np.ceil(self.lower).astype(np.int64) - taken, 0)
        upper = np.minimum(np.floor(self.upper), len(labels)).astype(np.int64) - taken
        if (upper < 0).any() or not lower.sum() <= len(loose) <= upper.sum():
            raise PackingError(proven=True)
        found = transport(costs if len(loose) == len(labels) else costs[loose], lower, upper, prices)
        labels[loose] = found.labels
        return labels, found.prices

    def start(self, costs: FloatArray) -> Labels:
        """A labelling within the limits, near the cheapest one.

        Raises
        ------
        PackingError
            There is none (`proven`), or none was found.
        """
        reduced = costs + self.sizes[:, None] * self._prices(costs)
        labels = self._rounded(reduced)
        if labels is not None and self._repaired(reduced, labels):
            return labels
        return self._searched(reduced)

    def improve(self, costs: FloatArray, labels: Labels, n_sweeps: int = _LAST_SWEEPS) -> Labels:
        """Exchange blocks between two clusters at a time while that lowers the cost; `labels` keep the limits."""
        labels = labels.copy()
        loads = self.loads(labels)
        threshold = -1e-12 * (float(np.abs(costs).max(initial=0)) or 1.0)
        pairs = list(combinations(range(self.n_clusters), 2))
        rows_of = [np.flatnonzero(labels == cluster) for cluster in range(self.n_clusters)]
        changed_at, checked_at = np.zeros(self.n_clusters, dtype=np.int64), dict.fromkeys(pairs, -1)
        clock = 0
        for _ in range(n_sweeps):
            before = clock
            for a, b in pairs:
                if checked_at[a, b] >= max(changed_at[a], changed_at[b]):
                    continue
                checked_at[a, b] = clock
                window = (
                    max(loads[a] - self.upper[a], self.lower[b] - loads[b]),
                    min(loads[a] - self.lower[a], self.upper[b] - loads[b]),
                )
                if self._exchange(costs, labels, rows_of, (a, b), (min(window[0], 0), max(window[1], 0)), threshold):
                    clock += 1
                    changed_at[[a, b]] = checked_at[a, b] = clock
                    loads[[a, b]] = [self.sizes[rows_of[one]].sum() for one in (a, b)]
            if clock == before:
                break
        return labels

    def prove(self, costs: FloatArray, labels: Labels) -> Proof:
        """A lower bound on the cost of all labellings within the limits, and perhaps a cheaper labelling."""
        base = costs.min(axis=1)
        costs = costs - base[:, None]
        prices = self._prices(costs)
        reduced = np.where(self.open, costs + self.sizes[:, None] * prices, np.inf)
        lowest = reduced.min(axis=1)
        extra = self._conflict_costs(reduced, lowest)
        bound = float(lowest.sum() + extra.sum()) - float(np.maximum(prices * self.lower, prices * self.upper).sum())
        # Lower bound on the extra cost, above the bound, of labellings that put a block into a cluster.
        group_extra = self._group_total(extra)
        above = np.maximum(reduced - lowest[:, None] - group_extra[:, None], 0)
        cost = float(costs[np.arange(len(labels)), labels].sum())
        rounding = 1e-12 * (1 + abs(cost) + float(np.abs(base).sum()))
        best, proven = cost, bound
        for _ in range(_CORES):
            gap = best - bound
            if best - proven <= max(rounding, 1e-9 * abs(best)):
                break
            limit = _threshold(above, gap, self._n_variables)
            core = above <= limit
            core[np.arange(len(labels)), labels] = True
            found, core_bound = self._solved(costs, core & self.open, labels)
            proven = max(proven, min(core_bound, best, bound + limit if limit < gap else np.inf))
            if found is not None:
                found = self.improve(costs, found)
                new = float(costs[np.arange(len(labels)), found].sum())
                if new < best - rounding:
                    labels, best = found, new
                    continue
            break
        shift = float(base.sum())
        return Proof(labels, best + shift, min(proven, best) + shift)

    def _prices(self, costs: FloatArray) -> FloatArray:
        """Marginal price of one unit of size in each cluster if blocks could be split and conflicts are left out.

        Blocks become copies in proportion to their sizes, each with its share of the cost, in a flow.
        """
        loose = np.flatnonzero((self.fixed < 0) & (self.sizes > 0))
        sizes = self.sizes[loose]
        if not len(loose):
            return np.zeros(self.n_clusters)
        unit = 1.0
        if (sizes != np.round(sizes)).any() or sizes.sum() > max(_COPIES, 2 * len(sizes)):
            unit = max(float(sizes.sum()) / max(_COPIES, 2 * len(sizes)), float(sizes.min()))
        copies = np.maximum(np.round(sizes / unit), 1).astype(np.int64)
        taken = np.zeros(self.n_clusters)
        pinned = self.fixed >= 0
        np.add.at(taken, self.fixed[pinned], self.sizes[pinned])
        scale = copies.sum() / sizes.sum()
        lower = np.floor(np.maximum(self.lower - taken, 0) * scale + ROUNDING).astype(np.int64)
        upper = np.ceil(np.minimum(np.maximum(self.upper - taken, 0), sizes.sum()) * scale - ROUNDING).astype(np.int64)
        upper = np.maximum(upper, lower)
        if not lower.sum() <= copies.sum() <= upper.sum():
            return np.zeros(self.n_clusters)
        shares = np.where(self.open[loose], costs[loose], np.abs(costs).max() * 4 + 1) / copies[:, None]
        found = transport(np.ascontiguousarray(np.repeat(shares, copies, axis=0)), lower, upper)
        return found.prices * scale

    def _rounded(self, reduced: FloatArray) -> Labels | None:
        """Put each block into its cheapest cluster, as far as conflicts allow; raise if they cannot be satisfied."""
        if not len(self.edges):
            return np.where(self.fixed >= 0, self.fixed, reduced.argmin(axis=1)).astype(np.int32)
        preference = np.argsort(reduced, axis=1, kind="stable").astype(np.int32)
        found = color(self.graph, self.n_clusters, fixed=self.fixed, preference=preference)
        return found.colors

    def _repaired(self, costs: FloatArray, labels: Labels) -> bool:
        """Exchange blocks until all sizes are within their limits. Writes `labels`; returns whether it succeeded."""
        rows_of = [np.flatnonzero(labels == cluster) for cluster in range(self.n_clusters)]
        violation = self.violation(labels)
        while violation > 0:
            loads = self.loads(labels)
            surplus = np.maximum(loads - self.upper, 0) - np.maximum(self.lower - loads, 0)
            # Clusters that violate a limit first, each with the clusters that can take most from it or give most to it.
            from_order = np.argsort(-np.abs(surplus), kind="stable")
            improved = False
            for a in from_order[surplus[from_order] != 0]:
                room = self.upper - loads if surplus[a] > 0 else loads - self.lower
                for b in np.argsort(-room, kind="stable"):
                    if b == a or room[b] <= 0:
                        continue
                    low = max(loads[a] - self.upper[a], self.lower[b] - loads[b])
                    high = min(loads[a] - self.lower[a], self.upper[b] - loads[b])
                    if low > high:  # the other cluster cannot take all: move as much as it can take
                        low, high = (high / 2, high) if surplus[a] > 0 else (low, low / 2)
                    before = labels.copy(), rows_of[a], rows_of[b]
                    if self._exchange(costs, labels, rows_of, (int(a), int(b)), (low, high), np.inf):
                        now = self.violation(labels)
                        if now < violation - ROUNDING * self.sizes.sum():
                            violation, improved = now, True
                            break
                        labels[:], rows_of[a], rows_of[b] = before
                if improved:
                    break
            if not improved:
                return False
        return True

    def _exchange(
        self,
        costs: FloatArray,
        labels: Labels,
        rows_of: list[IntArray],
        pair: tuple[int, int],
        window: tuple[float, float],
        threshold: float,
    ) -> bool:
        """Exchange blocks of two clusters so that the size moved is in the window, at a change of cost below threshold.

        Blocks that must differ change places together: a connected component of conflicts between the two clusters
        moves as a whole (a Kempe chain). Writes `labels` and `rows_of`; returns whether anything moved.
        """
        a, b = pair
        blocks = np.concatenate([rows_of[a], rows_of[b]])
        if not len(blocks):
            return False
        n_first = len(rows_of[a])
        change = np.empty(len(blocks))
        change[:n_first] = costs[rows_of[a], b] - costs[rows_of[a], a]
        change[n_first:] = costs[rows_of[b], a] - costs[rows_of[b], b]
        moved = self.sizes[blocks].copy()
        moved[n_first:] *= -1
        target = np.where(np.arange(len(blocks)) < n_first, b, a)
        change[~self.open[blocks, target]] = np.inf
        if threshold <= 0 and float(np.minimum(change, 0).sum()) >= threshold:
            return False
        chain = self._chains(labels, blocks, a, b)
        if chain is not None:
            change = np.bincount(chain, weights=change).astype(np.float64)
            moved = np.bincount(chain, weights=moved).astype(np.float64)
        chosen = _cheapest_subset(change, moved, *window)
        if chosen is None or not chosen.any() or float(change[chosen].sum()) >= threshold:
            return False
        moves = chosen if chain is None else chosen[chain]
        labels[blocks[moves]] = target[moves]
        rows_of[a] = np.sort(blocks[np.where(target == b, ~moves, moves)])
        rows_of[b] = np.sort(blocks[np.where(target == b, moves, ~moves)])
        return True

    def _chains(self, labels: Labels, blocks: IntArray, a: int, b: int) -> IntArray | None:
        """The chain of each block: blocks joined by conflicts between the two clusters. None if there are none."""
        if not len(self.free_edges):
            return None
        ends = labels[self.free_edges]
        between = ((ends[:, 0] == a) & (ends[:, 1] == b)) | ((ends[:, 0] == b) & (ends[:, 1] == a))
        if not between.any():
            return None
        place = np.full(len(labels), -1, dtype=np.int64)
        place[blocks] = np.arange(len(blocks))
        one, other = place[self.free_edges[between]].T
        joined = sparse.coo_array((np.ones(len(one)), (one, other)), shape=(len(blocks), len(blocks)))
        return np.asarray(connected_components(joined, directed=False)[1], dtype=np.int64)

    def _searched(self, costs: FloatArray) -> Labels:
        """A labelling within the limits by a mixed-integer program, in which small free blocks are divisible."""
        n_blocks, k = costs.shape
        if not self.open.any(axis=1).all():
            raise PackingError(proven=True)
        chosen = np.ones(n_blocks, dtype=bool)
        if n_blocks * k > _WHOLE_VARIABLES:
            chosen[:] = False
            chosen[self.edges] = True
            rest = np.argsort(-np.where(chosen | (self.fixed >= 0), -1, self.sizes), kind="stable")
            room = max(_START_VARIABLES // k - int(chosen.sum()), 0)
            large = rest[:room]
            chosen[large[self.sizes[large] > self.sizes[self.fixed < 0].min(initial=np.inf)]] = True
        chosen |= self.fixed >= 0
        allowed = np.where(chosen[:, None], self.open, False)
        scale = _SCALED_TOTAL / max(float(self.sizes.sum()), 1e-300)
        program = _Program(self, costs, allowed, scale)
        rest_total = float(self.sizes[~chosen].sum())
        result = program.solve(rest_total * scale, _START_FACTOR * self.work_limit)
        if result.status == _INFEASIBLE:
            raise PackingError(proven=True)
        if result.x is None:
            raise PackingError(proven=False)
        labels = program.labels(result.x, np.where(chosen, 0, -1).astype(np.int32))
        if (~chosen).any():
            part = Packing(
                self.sizes, self.lower, self.upper, self.graph, np.where(chosen, labels, -1).astype(np.int32),
                self.work_limit,
            )  # fmt: skip
            if (self.sizes[~chosen] == 1).all():
                labels = part._filled(costs)
            else:
                prices = part._prices(costs)
                labels = part._rounded_rest(costs + self.sizes[:, None] * prices)
                if not part._repaired(costs, labels):
                    raise PackingError(proven=False)
        if self.violation(labels) > 0:  # HiGHS works to a tolerance
            raise PackingError(proven=False)
        return labels

    def _rounded_rest(self, reduced: FloatArray) -> Labels:
        return np.where(self.fixed >= 0, self.fixed, np.where(self.open, reduced, np.inf).argmin(axis=1)).astype(
            np.int32
        )

    def _filled(self, costs: FloatArray) -> Labels:
        """The cheapest labelling of single rows if all other blocks are fixed."""
        labels = self.fixed.copy()
        loose = np.flatnonzero(labels < 0)
        pinned = labels >= 0
        taken = np.zeros(self.n_clusters)
        np.add.at(taken, labels[pinned], self.sizes[pinned])
        lower = np.ceil(np.maximum(self.lower - taken, 0) - ROUNDING).astype(np.int64)
        upper = np.floor(np.minimum(self.upper - taken, len(loose)) + ROUNDING).astype(np.int64)
        if (upper < lower).any() or not lower.sum() <= len(loose) <= upper.sum():
            raise PackingError(proven=False)
        labels[loose] = transport(np.ascontiguousarray(costs[loose]), lower, upper).labels
        return labels

    @property
    def _n_variables(self) -> int:
        loose = self.sizes[self.fixed < 0]
        most_alike = len(loose) == 0 or int(np.count_nonzero(loose == np.median(loose))) * 2 > len(loose)
        if most_alike and len(loose) * self.n_clusters <= _ONE_CORE_VARIABLES:
            return _ONE_CORE_VARIABLES
        return _CORE_VARIABLES if most_alike else _WEIGHT_VARIABLES

    def _conflict_costs(self, reduced: FloatArray, lowest: FloatArray) -> FloatArray:
        """Lower bound on the cost of conflicts in disjoint groups of blocks, noted at the first block of each group."""
        extra = np.zeros(len(lowest))
        nearest = reduced.argmin(axis=1)
        for group in self._groups:
            if len(np.unique(nearest[group])) < len(group):
                costs = np.where(np.isfinite(reduced[group]), reduced[group], 1e100)
                rows, clusters = linear_sum_assignment(costs)
                extra[group[0]] = float(costs[rows, clusters].sum() - lowest[group].sum())
        return np.minimum(extra, 1e50)

    @cached_property
    def _groups(self) -> list[IntArray]:
        """Disjoint groups of blocks that must all differ: cliques, then single conflicts."""
        taken = np.zeros(len(self.sizes), dtype=bool)
        groups: list[IntArray] = []
        graph = self.graph
        cliques = [graph.members[low:high] for low, high in zip(graph.member_ptr, graph.member_ptr[1:], strict=False)]
        for clique in [*sorted(cliques, key=len, reverse=True), *self.free_edges]:
            members = clique[~taken[clique] & (self.fixed[clique] < 0)]
            if len(members) > 1:
                taken[members] = True
                groups.append(members)
        return groups

    def _group_total(self, extra: FloatArray) -> FloatArray:
        """For each block, a lower bound on the cost of the conflicts in its group."""
        total = np.zeros(len(extra))
        for group in self._groups:
            total[group] = extra[group[0]]
        return total

    def _solved(self, costs: FloatArray, allowed: Mask, labels: Labels) -> tuple[Labels | None, float]:
        """The cheapest labelling in which blocks only go to allowed clusters, if one was found, and a lower bound."""
        scale = _SCALED_TOTAL / max(float(self.sizes.sum()), 1e-300)
        program = _Program(self, costs, allowed, scale)
        result = program.solve(None, self.work_limit)
        bound = getattr(result, "mip_dual_bound", None)
        bound = -np.inf if bound is None or not np.isfinite(bound) else float(bound) + program.constant
        if result.x is None:
            return None, bound
        found = program.labels(result.x, labels)
        return (found if self.violation(found) == 0 else None), bound


class _Program:
    """The mixed-integer program over the clusters that blocks may go to; blocks with one cluster are constants."""

    def __init__(self, packing: Packing, costs: FloatArray, allowed: Mask, scale: float) -> None:
        n_options = allowed.sum(axis=1)
        self._only = np.where(n_options == 1, allowed.argmax(axis=1), -1)
        allowed = allowed.copy()
        for one, other in (packing.edges.T, packing.edges[:, ::-1].T):
            at = self._only[one] >= 0
            loose = at & (n_options[other] > 1)
            allowed[other[loose], self._only[one[loose]]] = False
        self.block, self.cluster = np.nonzero(np.where((n_options > 1)[:, None], allowed, False))
        alone = np.flatnonzero(self._only >= 0)
        self.constant = float(costs[alone, self._only[alone]].sum())
        self._costs = costs[self.block, self.cluster]
        k, n = packing.n_clusters, len(self.block)
        taken = np.bincount(self._only[alone], weights=packing.sizes[alone], minlength=k)
        column = np.arange(n)
        self._loads = sparse.csr_array((packing.sizes[self.block] * scale, (self.cluster, column)), shape=(k, n))
        self._limits = (packing.lower - taken) * scale, (packing.upper - taken) * scale
        blocks, place = np.unique(self.block, return_inverse=True)
        several = np.flatnonzero(n_options > 1)
        one, other = self._only[packing.edges].T
        # Two blocks that must differ have the same single option, or conflicts leave a block no cluster.
        self._impossible = bool(((one >= 0) & (one == other)).any()) or len(blocks) < len(several)
        self._one_each = sparse.csr_array((np.ones(n), (place, column)), shape=(len(blocks), n))
        self._apart = self._conflict_rows(packing, allowed)
        self._k = k

    def _conflict_rows(self, packing: Packing, allowed: Mask) -> Any:
        variable = np.full(allowed.shape, -1, dtype=np.int64)
        variable[self.block, self.cluster] = np.arange(len(self.block))
        graph = packing.graph
        edge_source = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
        once = edge_source < graph.edges
        groups = [np.column_stack([edge_source, graph.edges])[once].ravel(), graph.members]
        lengths = [np.full(int(once.sum()), 2, dtype=np.int64), np.diff(graph.member_ptr)]
        members, sizes = np.concatenate(groups), np.concatenate(lengths)
        of_group = np.repeat(np.arange(len(sizes)), sizes)
        entries = variable[members]  # (members, k)
        row = of_group[:, None] * allowed.shape[1] + np.arange(allowed.shape[1])
        real = entries >= 0
        _, inverse, counts = np.unique(row[real], return_inverse=True, return_counts=True)
        kept = counts[inverse] > 1
        row_place = np.cumsum(counts > 1) - 1
        shape = (int((counts > 1).sum()), len(self.block))
        places = row_place[inverse[kept]], entries[real][kept]
        return sparse.csr_array((np.ones(len(places[0])), places), shape=shape)

    def solve(self, divisible: float | None, work_limit: int) -> Any:
        """Run HiGHS; `divisible` is a size that may be spread over the clusters in any way."""
        n, k = len(self.block), self._k
        if self._impossible:
            return _Result(_INFEASIBLE, None, None)
        n_spread = 0 if divisible is None or divisible == 0 else k
        low, high = self._limits
        if n + n_spread == 0:
            fits = bool((low <= ROUNDING * _SCALED_TOTAL).all() and (high >= -ROUNDING * _SCALED_TOTAL).all())
            return _Result(0 if fits else _INFEASIBLE, np.empty(0) if fits else None, 0.0 if fits else None)
        pad = sparse.csr_array
        loads = sparse.hstack([self._loads, sparse.eye_array(k)]) if n_spread else self._loads
        one_each = sparse.hstack([self._one_each, pad((self._one_each.shape[0], n_spread))])
        constraints = [LinearConstraint(loads, low, high)]
        if one_each.shape[0]:
            constraints.append(LinearConstraint(one_each, 1, 1))
        if self._apart.shape[0]:
            apart = sparse.hstack([self._apart, pad((self._apart.shape[0], n_spread))])
            constraints.append(LinearConstraint(apart, -np.inf, 1))
        if n_spread:
            total = np.concatenate([np.zeros(n), np.ones(k)])[None, :]
            constraints.append(LinearConstraint(total, divisible, divisible))
        n_nodes = min(max(_LEAST_NODES, work_limit // (n + n_spread)), _MOST_NODES)
        return milp(
            np.concatenate([self._costs, np.zeros(n_spread)]),
            integrality=np.concatenate([np.ones(n), np.zeros(n_spread)]),
            bounds=Bounds(0, np.concatenate([np.ones(n), np.full(n_spread, np.inf)])),
            constraints=constraints,
            options={"node_limit": n_nodes, "mip_rel_gap": 1e-9},
        )

    def labels(self, values: FloatArray, default: Labels) -> Labels:
        """The labelling of a solution; blocks that are neither variables nor constants keep `default`."""
        labels = np.where(self._only >= 0, self._only, default).astype(np.int32)
        taken = np.flatnonzero(values[: len(self.block)] > 0.5)
        labels[self.block[taken]] = self.cluster[taken]
        return labels


class _Result(NamedTuple):
    status: int
    x: FloatArray | None
    mip_dual_bound: float | None


def _threshold(above: FloatArray, gap: float, n_variables: int) -> float:
    """The extra cost up to which a cluster is an option of a block, so that there are about `n_variables` variables."""
    candidates = above[(above <= gap) & np.isfinite(above)]
    place = n_variables + len(above) - 1  # each block has one option at 0, which needs no variable
    return gap if len(candidates) <= place + 1 else float(np.partition(candidates, place)[place])


def _cheapest_subset(change: FloatArray, moved: FloatArray, low: float, high: float) -> Mask | None:
    """A subset of items of low total `change` whose total `moved` is from `low` to `high`; None if none was found.

    First all items with a gain are chosen. Then items are added or removed, cheapest per size first, until the total is
    in the window.
    """
    chosen = change < 0
    total = float(moved[chosen].sum())
    if low <= total <= high:
        return chosen
    sign = 1.0
    if total < low:
        sign, low, high, total = -1.0, -high, -low, -total
    gain = np.where(chosen, 1.0, -1.0) * moved * sign  # decrease of the total if the item is flipped
    items = np.flatnonzero((gain > 0) & np.isfinite(change))
    price, gain = np.abs(change[items]), gain[items]
    order = np.argsort(price / gain, kind="stable")
    items, price, gain = items[order], price[order], gain[order]
    need, most = total - high, total - low
    reached = np.cumsum(gain)
    first = int(np.searchsorted(reached, need))  # the first prefix that reaches the window
    if first == len(items) and (not len(items) or reached[-1] < need):
        return None
    turned = np.zeros(len(items), dtype=bool)
    turned[:first] = True
    done = float(reached[first - 1]) if first else 0.0
    left = np.flatnonzero((gain[first:] >= need - done) & (gain[first:] <= most - done))
    if len(left):
        last = first + int(left[price[first:][left].argmin()])
        turned[last] = True
        done += float(gain[last])
    else:
        for place in range(first, min(first + _TAIL, len(items))):
            if done + gain[place] <= most:
                turned[place] = True
                done += float(gain[place])
                if done >= need:
                    break
        if done < need and not _exchange_one(turned, gain, need, most):
            return None
        done = float(gain[turned].sum())
    taken = np.flatnonzero(turned)[-_TAIL:]
    for place in taken[np.argsort(-price[taken], kind="stable")]:  # drop items that turn out not to be needed
        if done - gain[place] >= need:
            turned[place] = False
            done -= float(gain[place])
    chosen = chosen.copy()
    chosen[items[turned]] ^= True
    return chosen


def _exchange_one(turned: Mask, gain: FloatArray, need: float, most: float) -> bool:
    """Replace one flipped item by another so that the total is in the window. Writes `turned`."""
    done = float(gain[turned].sum())
    inside, outside = np.flatnonzero(turned)[-_TAIL:], np.flatnonzero(~turned)[:_TAIL]
    totals = done - gain[inside][:, None] + gain[outside][None, :]
    fits = np.argwhere((totals >= need) & (totals <= most))
    if not len(fits):
        return False
    turned[inside[fits[0][0]]] = False
    turned[outside[fits[0][1]]] = True
    return True
