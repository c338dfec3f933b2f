"""Search for medoids: swap until no swap helps, then a variable neighbourhood search around the best solution.

Randel, Aloise, Mladenović and Hansen 2018 (`randel2018`), thesis sections 4.4 and 4.5; swaps as in Schubert and
Rousseeuw 2021 (`schubert2021`). A *unit* is a row, or several must-linked rows that move together. `costs[j, i]` is the
cost of unit i with candidate j as its medoid: the sum over its rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from clew.kernels.swap import nearest_two, separate, swap_changes, swap_eagerly
from clew.solvers.coloring import CliqueGraph, compress
from clew.solvers.packing import ROUND_SWEEPS, Packing

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]
Costs = npt.NDArray[Any]

# Costs that differ by no more than this share are equal up to rounding.
ROUNDING = 1e-12
# Limits per connected part of the cannot-link graph: sweeps of thesis Algorithm 3, and nodes of the exact search.
_SWEEPS, _NODES = 10, 2_000
# With size limits, at most this many of the most promising swaps are tried in one descent.
_SIZED_SWAPS = 20


class MedoidClusters(NamedTuple):
    """A solution: the candidate in each slot, the slot of each unit, and the cost. A slot is a cluster's number."""

    medoids: IntArray
    labels: Labels
    cost: float


class SearchProgress(NamedTuple):
    """The state of a search: number of the start, shakes so far, lowest cost, and medoids replaced by this shake."""

    start: int
    n_iter: int
    inertia: float
    n_shaken: int


class MedoidTies(NamedTuple):
    """Cannot-links between units, in the form of `kernels.swap`.

    For five units with the cannot-links 0-3 and 3-4, the tied units are ``tied=[0, 3, 4]`` in one connected part,
    ``part_ptr=[0, 3]``. The cannot-links, as positions in `tied`, are ``edge_ptr=[0, 1, 3, 4]`` and
    ``edges=[1, 0, 2, 1]``. A `witness` is a labelling that violates none of them, such as ``[0, 1, 0]``.
    """

    tied: IntArray
    part_ptr: IntArray
    edge_ptr: IntArray
    edges: IntArray
    witness: Labels

    @classmethod
    def none(cls) -> MedoidTies:
        """No cannot-links."""
        nothing, start = np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
        return cls(nothing, start, start, nothing, nothing.astype(np.int32))

    @classmethod
    def of(cls, graph: CliqueGraph, witness: Labels) -> MedoidTies:
        """Read the cannot-links of `graph`; `witness` has a slot for each unit."""
        pairs = graph.pairs()
        both = np.concatenate([pairs, pairs[:, ::-1]])
        links = sparse.csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(graph.n_vertices,) * 2)
        n_parts, part_of = connected_components(links, directed=False)
        # Order the units so that neighbours are close to each other, and the exact search meets conflicts early.
        order = reverse_cuthill_mckee(links, symmetric_mode=True) if len(pairs) else np.empty(0, dtype=np.int64)
        order = order[np.diff(links.indptr)[order] > 0]
        tied = order[np.argsort(part_of[order], kind="stable")].astype(np.int64)
        place = np.full(graph.n_vertices, -1)
        place[tied] = np.arange(len(tied))
        edge_ptr, edges = compress(place[both[:, 0]], place[both[:, 1]], len(tied))
        sizes = np.bincount(part_of[tied], minlength=n_parts)
        part_ptr = np.append(0, np.cumsum(sizes[sizes > 0])).astype(np.int64)
        return cls(tied, part_ptr, edge_ptr, edges, witness[tied])


class Descent(Protocol):
    """A local search that changes a solution until no further change lowers the cost."""

    n_clusters: int
    costs: Costs

    def __call__(self, medoids: IntArray, order: IntArray) -> MedoidClusters:
        """Search from these medoids; candidates are tried in `order`."""


class SwapDescent:
    """Descent by swaps under cannot-links: makes the first swap that lowers the cost, until none does."""

    def __init__(self, costs: Costs, n_clusters: int, ties: MedoidTies) -> None:
        self.costs, self.n_clusters, self._ties = costs, n_clusters, ties
        n_units, n_tied, k = costs.shape[1], len(ties.tied), n_clusters
        self._near, self._second = np.empty(n_units, dtype=np.int32), np.empty(n_units, dtype=np.int32)
        self._near_cost, self._second_cost = np.empty(n_units, dtype=costs.dtype), np.empty(n_units, dtype=costs.dtype)
        self._removal, self._change = np.empty(k), np.empty(k)
        self._buffers = (
            np.empty(n_tied + len(ties.part_ptr)), np.empty(n_tied + 1), np.empty(n_tied + 1, dtype=np.int32)
        )  # fmt: skip

    def __call__(self, medoids: IntArray, order: IntArray) -> MedoidClusters:
        """Swap, starting from these medoids; candidates are tried in `order`."""
        if self.n_clusters == 1:
            totals = self.costs.sum(axis=1, dtype=np.float64)
            best = int(totals.argmin())
            return MedoidClusters(np.array([best]), np.zeros(self.costs.shape[1], dtype=np.int32), float(totals[best]))
        ties, medoids, n_tied = self._ties, medoids.astype(np.int64), len(self._ties.tied)
        nearest = (self._near, self._second, self._near_cost, self._second_cost, self._removal)
        apart = (ties.part_ptr, ties.edge_ptr, ties.edges, ties.witness, _SWEEPS, _NODES, *self._buffers)
        tied_costs = np.ascontiguousarray(self.costs[np.ix_(medoids, ties.tied)].T, dtype=np.float64)
        is_medoid = np.zeros(len(self.costs), dtype=np.uint8)
        is_medoid[medoids] = 1
        tied_labels = np.empty(n_tied, dtype=np.int32)
        totals = np.array([nearest_two(self.costs, medoids, *nearest), separate(tied_costs, *apart, tied_labels)])
        swap_eagerly(
            self.costs, order, medoids, is_medoid, *nearest, self._change, ties.tied, tied_costs, *apart,
            np.empty(n_tied, dtype=np.int32), np.empty(n_tied), tied_labels, ROUNDING, totals,
        )  # fmt: skip
        labels = self._near.copy()
        labels[ties.tied] = tied_labels
        return MedoidClusters(medoids, labels, float(totals.sum()))


class SizedDescent:
    """Descent under size limits and cannot-links: alternates between best labels and best medoids, then tries swaps."""

    def __init__(self, costs: Costs, packing: Packing) -> None:
        self.costs, self.n_clusters, self._packing = costs, packing.n_clusters, packing
        self._labels: Labels | None = None  # a labelling within the limits, the start for later ones
        self._prices: FloatArray | None = None

    def __call__(self, medoids: IntArray, order: IntArray) -> MedoidClusters:
        """Alternate and swap, starting from these medoids. The most promising swaps come first; `order` is ignored."""
        found = self._alternated(medoids)
        swaps = self._swaps(found)
        while (
            better := next((one for one in map(self._alternated, swaps) if self._pays(one, found)), None)
        ) is not None:
            found = better
            swaps = self._swaps(found)
        return found

    @staticmethod
    def _pays(new: MedoidClusters, old: MedoidClusters) -> bool:
        return new.cost < old.cost - ROUNDING * abs(old.cost)

    def _assigned(self, medoids: IntArray) -> MedoidClusters:
        costs = np.ascontiguousarray(self.costs[medoids].T, dtype=np.float64)
        if self._packing.is_flow:
            labels, self._prices = self._packing.flow(costs, self._prices)
        else:
            if self._labels is None:
                self._labels = self._packing.start(costs)
            labels = self._packing.improve(costs, self._labels, ROUND_SWEEPS)
        return MedoidClusters(medoids, labels, float(costs[np.arange(len(labels)), labels].sum()))

    def _alternated(self, medoids: IntArray) -> MedoidClusters:
        found = self._assigned(medoids)
        while True:
            choose = sparse.csr_array(
                (np.ones(len(found.labels)), (np.arange(len(found.labels)), found.labels)),
                shape=(len(found.labels), self.n_clusters),
            )
            _, best = linear_sum_assignment((self.costs @ choose).T)
            self._labels = found.labels
            new = self._assigned(best)
            if not self._pays(new, found):
                return found
            found = new

    def _swaps(self, found: MedoidClusters) -> list[IntArray]:
        """Medoids after swaps whose lower bound is below the present cost, in order of this bound."""
        if self.n_clusters == 1:
            return []
        n_units, k = self.costs.shape[1], self.n_clusters
        near, second = np.empty(n_units, dtype=np.int32), np.empty(n_units, dtype=np.int32)
        near_cost, second_cost = np.empty(n_units, self.costs.dtype), np.empty(n_units, self.costs.dtype)
        removal, changes = np.empty(k), np.empty((len(self.costs), k))
        total = nearest_two(self.costs, found.medoids, near, second, near_cost, second_cost, removal)
        swap_changes(self.costs, near, near_cost, second_cost, removal, changes)
        changes[found.medoids] = np.inf
        low = np.flatnonzero(total + changes.ravel() < found.cost)
        low = low[np.argsort(changes.ravel()[low], kind="stable")][:_SIZED_SWAPS]
        swapped = []
        for candidate, slot in zip(*np.divmod(low, k), strict=True):
            medoids = found.medoids.copy()
            medoids[slot] = candidate
            swapped.append(medoids)
        return swapped


@dataclass(frozen=True)
class Limits:
    """Limits of a search: number of shakes, seconds, and the largest number of medoids that one shake replaces."""

    max_iter: int
    max_shake: int
    time_limit: float | None = None
    callback: Callable[[SearchProgress], Any] | None = None


class SearchResult(NamedTuple):
    """The best solution of several starts, the cost after each improvement, and the total number of shakes."""

    found: MedoidClusters
    history: list[float]
    n_iter: int


def search_medoids(
    descent: Callable[[], Descent],
    starts: list[tuple[IntArray, np.random.Generator]],
    limits: Limits,
    n_threads: int = 1,
) -> SearchResult:
    """Search from several starts, each with its own descent and random numbers; return the best solution."""

    def run(place: int) -> SearchResult:
        medoids, rng = starts[place]
        return shake_medoids(descent(), medoids, rng, limits, place)

    if n_threads == 1 or len(starts) == 1:
        results = [run(place) for place in range(len(starts))]
    else:
        with ThreadPoolExecutor(min(n_threads, len(starts))) as pool:
            results = list(pool.map(run, range(len(starts))))
    best = min(results, key=lambda result: result.found.cost)
    return best._replace(n_iter=sum(result.n_iter for result in results))


def shake_medoids(
    descent: Descent, medoids: IntArray, rng: np.random.Generator, limits: Limits, start: int = 0
) -> SearchResult:
    """Variable neighbourhood search (thesis Algorithm 4): replace v medoids at random, descend, keep improvements.

    v grows by one after each failure. It returns to one after an improvement, and after a failure at its largest value.
    """
    ends = None if limits.time_limit is None else time.monotonic() + limits.time_limit
    n_candidates, k = len(descent.costs), descent.n_clusters
    # With a fixed order of candidates, descents would end in the same few local optima.
    best = descent(medoids, rng.permutation(n_candidates))
    history = [best.cost]
    most = min(limits.max_shake, k, n_candidates - k)
    n_shaken, n_iter = 1, 0
    while n_iter < limits.max_iter and most > 0 and k > 1 and (ends is None or time.monotonic() < ends):
        n_iter += 1
        shaken = best.medoids.copy()
        others = np.delete(np.arange(n_candidates), shaken)
        shaken[rng.choice(k, n_shaken, replace=False)] = rng.choice(others, n_shaken, replace=False)
        found = descent(shaken, rng.permutation(n_candidates))
        if found.cost < best.cost - ROUNDING * abs(best.cost):
            best, n_shaken = found, 1
            history.append(best.cost)
        else:
            n_shaken = n_shaken % most + 1
        if limits.callback is not None and limits.callback(SearchProgress(start, n_iter, best.cost, n_shaken)) is False:
            break
    return SearchResult(best, history, n_iter)


def draw_medoids(costs: Costs, unit_of: IntArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """Draw different candidates as k-means++ does, in proportion to the cost to the nearest one drawn so far.

    `unit_of` is the unit of each candidate.
    """
    medoids = [int(rng.integers(len(costs)))]
    nearest = costs[medoids[0]].astype(np.float64)
    while len(medoids) < n_clusters:
        chances = nearest[unit_of]
        chances[medoids] = 0.0
        if not chances.any():  # every candidate is at distance 0 from a medoid
            chances = np.ones(len(costs))
            chances[medoids] = 0.0
        medoids.append(int(rng.choice(len(costs), p=chances / chances.sum())))
        np.minimum(nearest, costs[medoids[-1]], out=nearest)
    return np.array(medoids)


def plain_medoids(
    distances: FloatArray, candidates: IntArray, n_clusters: int, rng: np.random.Generator, *, n_init: int
) -> IntArray:
    """Find medoids without constraints, as columns of `distances`: the best of several starts with swaps.

    `candidates` is the row of each column.
    """
    n_rows = len(distances)
    costs = unit_costs(distances, np.arange(n_rows), n_rows)
    starts = [(draw_medoids(costs, candidates, n_clusters, rng), rng) for _ in range(n_init)]
    found = search_medoids(lambda: SwapDescent(costs, n_clusters, MedoidTies.none()), starts, Limits(0, 1)).found
    return found.medoids


def unit_costs(distances: Costs, component_of: IntArray, n_components: int) -> Costs:
    """Cost of each unit (column) with each candidate (row): `distances` summed by component (thesis Eq. 4.14).

    `distances` holds the distances from all rows to all candidates. Without must-links, a symmetric matrix is returned
    unchanged.
    """
    if n_components == len(component_of):
        return distances if _is_symmetric(distances) else np.ascontiguousarray(distances.T)
    rows = np.arange(len(component_of))
    whole = sparse.csr_array(
        (np.ones(len(rows), distances.dtype), (component_of, rows)), shape=(n_components, len(rows))
    )
    return np.ascontiguousarray((whole @ distances).T)


def _is_symmetric(matrix: Costs, block: int = 512) -> bool:
    if matrix.shape[0] != matrix.shape[1] or not matrix.flags.c_contiguous:
        return False
    places = range(0, len(matrix), block)
    return all(
        np.array_equal(matrix[a : a + block, b : b + block], matrix[b : b + block, a : a + block].T)
        for a in places
        for b in places
        if b >= a
    )
