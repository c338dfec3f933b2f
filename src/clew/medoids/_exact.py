"""Prove optimality: a Lagrangian bound rules out candidates, and a mixed-integer program searches the rest.

Thesis section 4.3, Eq. 4.6 to 4.13, with the stronger x_i + x_j <= y for cannot-links; HiGHS through SciPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from clew.medoids._search import Costs, FloatArray, IntArray, MedoidClusters
from clew.solvers.packing import Packing

Mask = npt.NDArray[np.bool_]

# Number of rounds of the subgradient ascent, and of rounds without gain after which the steps are halved.
_ROUNDS, _PATIENCE = 1_000, 20
# Improvements by less than this share are not searched for, because the tolerance of HiGHS is of this size.
_TOLERANCE = 1e-8
_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2  # statuses of scipy.optimize.milp


class ProvenMedoids(NamedTuple):
    """The best solution, and a lower bound on the cost of every solution. Cost and bound are equal at the optimum."""

    found: MedoidClusters
    bound: float


def prove(
    costs: Costs,
    pairs: IntArray,
    found: MedoidClusters,
    packing: Packing | None = None,
    time_limit: float | None = None,
) -> ProvenMedoids:
    """Prove that a solution is optimal, or find a better one.

    Parameters
    ----------
    costs : ndarray of shape (n_candidates, n_units)
    pairs : ndarray of shape (n_pairs, 2)
        Pairs of units that must be in different clusters.
    found : MedoidClusters
        A good solution. The better it is, the smaller the mixed-integer program.
    packing : Packing, optional
        Limits on the sizes of clusters.
    time_limit : float, optional
        Limit in seconds for the mixed-integer program.
    """
    costs = costs.astype(np.float64, copy=False)
    relaxed = lagrangian(costs, pairs, len(found.medoids), found.cost)
    target = found.cost - _TOLERANCE * abs(found.cost)
    if relaxed.bound >= target:
        return ProvenMedoids(found, found.cost)
    may_be_medoid, may_be_used = relaxed.left(target)
    if not may_be_used.any(axis=0).all():
        return ProvenMedoids(found, found.cost)
    better, bound = _solve(costs, pairs, len(found.medoids), may_be_medoid, may_be_used, packing, time_limit)
    if better is not None and better.cost < target:
        found = better
    return ProvenMedoids(found, min(max(bound, relaxed.bound), found.cost) if bound < target else found.cost)


@dataclass(frozen=True)
class Relaxation:
    """The Lagrangian relaxation at the best multipliers found.

    There is a multiplier for "each unit is assigned once", and one for each cannot-link at each candidate.

    Attributes
    ----------
    bound : float
        Lower bound on the cost of every solution.
    reduced : ndarray of shape (n_candidates, n_units)
        Cost of each assignment minus its multipliers.
    gains : ndarray of shape (n_candidates,)
        Contribution of each candidate to the bound if it is a medoid.
    n_clusters : int
    """

    bound: float
    reduced: FloatArray
    gains: FloatArray
    n_clusters: int

    def left(self, target: float) -> tuple[Mask, Mask]:
        """Masks of the candidates and assignments that a solution with a cost below `target` may contain."""
        last = np.partition(self.gains, self.n_clusters - 1)[self.n_clusters - 1]
        as_medoid = self.bound + np.maximum(self.gains - last, 0.0)
        used = as_medoid[:, None] + np.maximum(self.reduced, 0.0)
        return as_medoid < target, used < target


def lagrangian(costs: FloatArray, pairs: IntArray, n_clusters: int, upper: float) -> Relaxation:
    """Raise the Lagrangian bound by subgradient steps; `upper` is the cost of a known solution."""
    n_candidates, n_units = costs.shape
    first, second = pairs.T
    incidence = sparse.csr_array(
        (np.ones(2 * len(pairs)), (np.tile(np.arange(len(pairs)), 2), pairs.T.ravel())), shape=(len(pairs), n_units)
    )
    multipliers = np.partition(costs, min(n_clusters, n_candidates - 1), axis=0)[min(n_clusters, n_candidates - 1)]
    prices = np.zeros((n_candidates, len(pairs)))
    best = Relaxation(-np.inf, costs, np.zeros(n_candidates), n_clusters)
    scale, since = 2.0, 0
    for _ in range(_ROUNDS):
        reduced = costs - multipliers
        if len(pairs):
            reduced += prices @ incidence
        gains = np.minimum(reduced, 0.0).sum(axis=1) - prices.sum(axis=1)
        chosen = np.argpartition(gains, n_clusters - 1)[:n_clusters]
        bound = float(multipliers.sum() + gains[chosen].sum())
        since += 1
        if bound > best.bound:
            if bound > best.bound + _TOLERANCE * abs(upper):
                since = 0
            best = Relaxation(bound, reduced, gains, n_clusters)
        if upper - best.bound <= _TOLERANCE * abs(upper) or scale < 1e-3:
            break
        if since >= _PATIENCE:
            scale, since = scale / 2, 0
        used = reduced[chosen] < 0
        slope = 1.0 - used.sum(axis=0)
        broken = used[:, first].astype(np.float64) + used[:, second] - 1.0
        # A multiplier of 0 cannot fall further, so its slope is ignored.
        broken[(prices[chosen] == 0) & (broken < 0)] = 0.0
        norm = float((slope**2).sum() + (broken**2).sum())
        if norm == 0:
            break
        step = scale * (upper - bound) / norm
        multipliers = multipliers + step * slope
        prices[chosen] = np.maximum(prices[chosen] + step * broken, 0.0)
    return best


def _solve(
    costs: FloatArray,
    pairs: IntArray,
    n_clusters: int,
    may_be_medoid: Mask,
    may_be_used: Mask,
    packing: Packing | None,
    time_limit: float | None,
) -> tuple[MedoidClusters | None, float]:
    """Find the cheapest solution among the remaining medoids and assignments, and the lower bound from HiGHS."""
    model = _Model(costs, n_clusters, np.flatnonzero(may_be_medoid), may_be_used)
    model.differ(pairs)
    if packing is not None:
        model.keep_sizes(packing)
    options = {} if time_limit is None else {"time_limit": time_limit}
    result = milp(
        model.objective,
        constraints=model.constraints(),
        bounds=Bounds(0, 1),
        integrality=model.integrality,
        options={"mip_rel_gap": 0.0, **options},
    )
    if result.status == _INFEASIBLE:
        return None, np.inf
    bound = -np.inf if result.mip_dual_bound is None else float(result.mip_dual_bound)
    return (None if result.x is None else model.read(result.x)), bound


class _Model:
    """The mixed-integer program. Its variables choose medoids, assignments of units, and slots of the medoids."""

    def __init__(self, costs: FloatArray, n_clusters: int, candidates: IntArray, may_be_used: Mask) -> None:
        self._costs, self._n_clusters, self._candidates = costs, n_clusters, candidates
        self._at, self._unit = np.nonzero(may_be_used[candidates])
        self._n_medoid, self._n_used, self._n_slot = len(candidates), len(self._at), 0
        self._rows: list[Any] = []
        self._limits: list[tuple[FloatArray, FloatArray]] = []
        self.integrality = np.concatenate([np.ones(self._n_medoid), np.zeros(self._n_used)])
        n_units, used = costs.shape[1], self._used(np.arange(self._n_used))
        self._add(n_units, [(self._unit, used, 1.0)], 1.0, 1.0)
        self._add(
            self._n_used, [(np.arange(self._n_used), used, 1.0), (np.arange(self._n_used), self._at, -1.0)], -1, 0
        )
        self._add(1, [(np.zeros(self._n_medoid, dtype=int), np.arange(self._n_medoid), 1.0)], n_clusters, n_clusters)

    def _used(self, place: IntArray) -> IntArray:
        return self._n_medoid + place

    @property
    def objective(self) -> FloatArray:
        """Cost of each variable."""
        used = self._costs[self._candidates[self._at], self._unit]
        return np.concatenate([np.zeros(self._n_medoid), used, np.zeros(self._n_slot)])

    def _add(self, n_rows: int, entries: list[tuple[Any, Any, Any]], low: Any, high: Any) -> None:
        rows, columns = (np.concatenate([entry[side] for entry in entries]) for side in (0, 1))
        values = np.concatenate([np.broadcast_to(entry[2], len(entry[0])) for entry in entries]).astype(np.float64)
        self._rows.append((rows, columns, values, n_rows))
        self._limits.append((np.broadcast_to(low, n_rows), np.broadcast_to(high, n_rows)))

    def constraints(self) -> list[LinearConstraint]:
        """All linear constraints, in SciPy's form."""
        width = self._n_medoid + self._n_used + self._n_slot
        return [
            LinearConstraint(sparse.csr_array((values, (rows, columns)), shape=(n_rows, width)), *limits)
            for (rows, columns, values, n_rows), limits in zip(self._rows, self._limits, strict=True)
        ]

    def differ(self, pairs: IntArray) -> None:
        """Assign at most one unit of each pair to a candidate; make the assignments of these units integer."""
        if not len(pairs):
            return
        place = np.full((self._n_medoid, self._costs.shape[1]), -1)
        place[self._at, self._unit] = np.arange(self._n_used)
        first, second = place[:, pairs[:, 0]], place[:, pairs[:, 1]]
        at, pair = np.nonzero((first >= 0) & (second >= 0))
        if len(at):
            rows = np.arange(len(at))
            both = [(rows, self._used(one[at, pair]), 1.0) for one in (first, second)]
            self._add(len(at), [*both, (rows, at, -1.0)], -1, 0)
        self.integrality[self._used(np.flatnonzero(np.isin(self._unit, pairs)))] = 1

    def keep_sizes(self, packing: Packing) -> None:
        """Keep sizes within their limits and give each medoid a slot; make all assignments integer."""
        k, n = self._n_clusters, self._n_medoid
        self.integrality[self._used(np.arange(self._n_used))] = 1
        self._n_slot = n * k
        self.integrality = np.concatenate([self.integrality, np.ones(self._n_slot)])
        at, slot = np.divmod(np.arange(n * k), k)
        variable = n + self._n_used + np.arange(n * k)
        self._add(n, [(at, variable, 1.0), (np.arange(n), np.arange(n), -1.0)], 0, 0)
        self._add(k, [(slot, variable, 1.0)], 1, 1)
        load = (self._at, self._used(np.arange(self._n_used)), packing.sizes[self._unit])
        total = float(packing.sizes.sum())
        self._add(n, [load, (at, variable, -np.minimum(packing.upper, total)[slot])], -np.inf, 0)
        self._add(n, [load, (at, variable, -packing.lower[slot])], 0, np.inf)
        pinned = np.flatnonzero(packing.fixed[self._unit] >= 0)
        if len(pinned):  # a unit of a known class goes to the medoid in the slot of that class
            rows = np.arange(len(pinned))
            own = n + self._n_used + self._at[pinned] * k + packing.fixed[self._unit[pinned]]
            self._add(len(pinned), [(rows, self._used(pinned), 1.0), (rows, own, -1.0)], -1, 0)

    def read(self, values: FloatArray) -> MedoidClusters:
        """Turn values of the variables into a solution."""
        if self._n_slot:
            slots = values[self._n_medoid + self._n_used :].reshape(self._n_medoid, -1)
            medoids = self._candidates[slots.argmax(axis=0)]
        else:
            medoids = self._candidates[np.argsort(-values[: self._n_medoid], kind="stable")[: self._n_clusters]]
        slot_of = np.full(len(self._costs), -1, dtype=np.int32)
        slot_of[medoids] = np.arange(len(medoids))
        # A unit without constraints may be split between medoids of equal cost.
        labels = self._costs[medoids].argmin(axis=0).astype(np.int32)
        span = slice(self._n_medoid, self._n_medoid + self._n_used)
        used = np.flatnonzero((values[span] > 0.5) & (self.integrality[span] == 1))
        labels[self._unit[used]] = slot_of[self._candidates[self._at[used]]]
        cost = float(self._costs[medoids[labels], np.arange(len(labels))].sum())
        return MedoidClusters(medoids, labels, cost)
