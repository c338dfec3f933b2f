"""Rows with priced pairs in clusters whose sizes have limits.

The sizes are hard and the pairs are priced, so the cost of a row depends on the clusters of its partners. Each round
fixes these prices at the present labels. Then a minimum-cost flow assigns all rows. Its dual variables are the marginal
cost of one more row in each cluster.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from clew.constraints import Constraints
from clew.exceptions import InfeasibleConstraintsError, WorkLimitError
from clew.partitional._geometry import FloatArray, IntArray, Labels, Problem
from clew.partitional._lloyd import Policy
from clew.partitional._sizes import SizedPolicy, SizeLimits, pack, unit_costs
from clew.partitional._ties import TiedAssignment, Ties, component_units
from clew.partitional._units import Units
from clew.solvers.coloring import compress
from clew.solvers.packing import WORK_LIMIT, PackingError

# Largest number of passes over the rows in pairs in one round.
_PASSES = 3


class _Candidate(NamedTuple):
    """A labelling of all rows within the limits, its score and the price of the pairs it breaks."""

    labels: Labels
    score: float
    price: float

    @property
    def total(self) -> float:
        return self.score + self.price


class SizedPricedPolicy(Policy):
    """Assign all rows within the limits, at a low sum of their distances and the prices of broken pairs.

    A round starts from the present labels, and an exact flow assigns the rows without pairs. Then rows in pairs move
    one at a time, and components move as blocks. Each pays the marginal cost of its new cluster. The flow assigns the
    other rows again. A labelling is only kept if it costs less.
    """

    def __init__(
        self,
        problem: Problem,
        constraints: Constraints,
        rows: IntArray,
        ties: Ties,
        limits: SizeLimits,
        seeds: IntArray,
        rng: np.random.Generator,
    ) -> None:
        n_rows, n_clusters = problem.n_rows, len(limits.lower)
        nothing = Constraints(n_samples=n_rows)
        nowhere = np.full(n_rows, -1, dtype=np.int64)
        self._packing = pack(nothing, nothing.closure(), limits, nowhere, WORK_LIMIT, problem.row_weights)
        self._tied = Units.contract(problem, rows, np.arange(len(rows)), len(rows))
        self._state = TiedAssignment(ties, n_clusters)
        self._constraints, self._limits, self._seeds, self._rng = constraints, limits, seeds, rng
        closed = constraints.closure()
        self._blocks, _ = component_units(problem, closed, closed.sizes > 1)
        places = np.searchsorted(rows, self._blocks.rows)
        self._members = compress(self._blocks.unit_of, places, len(self._blocks))
        self._flow_prices: FloatArray | None = None

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        costs = unit_costs(problem, units, centers)
        best = self._start(problem, centers, costs) if labels[0] < 0 else self._settled(costs, labels)
        for _ in range(_PASSES if len(self._tied) else 0):
            linear = self._linear(costs, best.labels)
            together, places = self._packing.flow(linear, self._flow_prices)
            self._flow_prices = places
            moved = self._moved(problem, centers, best.labels, places)
            found = min(self._settled(costs, moved), self._valued(costs, together), key=lambda one: one.total)
            if found.total >= best.total:
                break
            best = found
        labels[:] = best.labels
        return best.score, best.price

    def _start(self, problem: Problem, centers: FloatArray, costs: FloatArray) -> _Candidate:
        """The cheaper of two labellings: one that ignores pairs, and one that breaks no certain pair."""
        plain, self._flow_prices = self._packing.flow(costs, None)
        found = [self._valued(costs, plain)]
        certain = self._constraints.at_least(1.0)
        closed = certain.closure()
        if found[0].price > 0 and not closed.contradictory:
            seeds = self._seeds[self._constraints.closure().component_of[closed.first_row]]
            pins = np.where(closed.labels >= 0, seeds, -1)
            with contextlib.suppress(InfeasibleConstraintsError, WorkLimitError):
                policy, blocks = SizedPolicy.of(problem, certain, closed, self._limits, pins, WORK_LIMIT)
                by_block = np.full(len(blocks), -1, dtype=np.int32)
                policy.assign(problem, blocks, centers, by_block)
                found.append(self._valued(costs, by_block[closed.component_of]))
        return min(found, key=lambda one: one.total)

    def _moved(self, problem: Problem, centers: FloatArray, labels: Labels, places: FloatArray) -> Labels:
        """Move every row in pairs, and every block, to its cheapest cluster. `places` is the marginal cost of each."""
        moved = labels[self._tied.rows]
        self._state.load(moved)
        order = self._rng.permutation(len(self._tied))
        self._state.sweep(problem, self._tied, centers, order, moved, places)
        order = self._rng.permutation(len(self._blocks))
        self._state.move_blocks(problem, self._blocks, self._members, centers, order, moved, places)
        labels = labels.copy()
        labels[self._tied.rows] = moved
        return labels

    def _settled(self, costs: FloatArray, labels: Labels) -> _Candidate:
        """Keep the labels of rows in pairs, if the limits allow it, and assign the other rows at the lowest cost."""
        fixed = np.full(len(labels), -1, dtype=np.int32)
        fixed[self._tied.rows] = labels[self._tied.rows]
        try:
            settled, _ = replace(self._packing, fixed=fixed).flow(costs, self._flow_prices)
        except PackingError:  # too many rows in one cluster, so the cheapest of them move
            settled, _ = self._packing.flow(self._linear(costs, labels), self._flow_prices)
        return self._valued(costs, settled)

    def _linear(self, costs: FloatArray, labels: Labels) -> FloatArray:
        """The costs of all rows in each cluster, with the prices of pairs if all partners stay where they are."""
        linear = costs.copy()
        linear[self._tied.rows] += self._state.marginal_prices(labels[self._tied.rows])
        return linear

    def _valued(self, costs: FloatArray, labels: Labels) -> _Candidate:
        tied = labels[self._tied.rows]
        self._state.load(tied)
        return _Candidate(labels, float(costs[np.arange(len(labels)), labels].sum()), self._state.price(tied))
