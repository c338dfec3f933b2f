"""The Lagrangian dual of constrained clustering, by subgradient ascent: prices of constraints.

Randel, Aloise, Blanchard and Hertz 2021 (`randel2021`), thesis Eq. 5.10, 5.11 and 5.17, Algorithm 5. A *statement* is a
constraint, with one multiplier per cluster. The multipliers charge rows extra in some clusters. The cheapest clustering
under the charges gives a lower bound and a subgradient. At the maximum, the multipliers are the prices of the
statements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from clew.kernels.disjoint_set import merge_pairs, number_components
from clew.kernels.multipliers import assign_charged, charge_rows, step_multipliers
from clew.solvers.coloring import CliqueGraph, color
from clew.solvers.criteria import CenterCosts, Criterion, FloatArray, IntArray, Labels

# The relaxation of Eq. 5.3' to 5.4'', in ]0, 1[. Above 1/2 a chain of correct statements never shares the price of a
# wrong one at its end, because raising both by t changes the bound by t (1 - 2 slack).
SLACK = 0.75
# Factor by which the steps shrink in each round.
_SHRINK = 0.965
# Smallest step. Prices are then exact to about a thousandth of a typical price.
_SMALLEST_STEP = 1e-3
# The bound has converged if, with steps this small, it gains less than the second value, as a share of the charges, in
# as many rounds as the third value.
_FLAT_STEP, _FLAT, _FLAT_ROUNDS = 0.02, 1e-5, 30
# Bounds that differ by no more than this share are equal up to rounding.
_ROUNDING = 1e-12
# Number of alternations of assignment and centres in one round. The next round continues from there.
_DESCENTS = 3
# Number of earlier solutions that each round tries again.
_POOL = 8
# Rounds between searches for a labelling that satisfies all statements, and the work limit of a search.
_FEASIBLE_EVERY, _FEASIBLE_WORK = 25, 2_000_000


class Statements(NamedTuple):
    """Constraints on tied rows, by position: pairs that belong together, and sets whose rows all differ.

    `most_pull` and `most_price` bound the multipliers: infinite for hard statements, else the cost of breaking them.
    """

    n_tied: int
    together: IntArray
    most_pull: FloatArray
    set_ptr: IntArray
    members: IntArray
    most_price: FloatArray


@dataclass(frozen=True)
class Dual:
    """The best multipliers found.

    Attributes
    ----------
    pulls : ndarray of shape (n_pairs, n_clusters)
        Signed multiplier of each pair that belongs together: its size is the thesis's −(λ + γ), one of which is 0.
    prices : ndarray of shape (n_sets, n_clusters)
        Multiplier −η >= 0 of each set that belongs apart.
    lower_bound : float
        The dual at these multipliers. The inner minimum is a local one, so it may exceed the true dual a little.
    upper_bound : float
        Cost of the best labelling found that satisfies all statements; infinite if none was found.
    labels : ndarray of shape (n_tied,)
        Clusters of the tied rows under the charges.
    history : ndarray of shape (n_rounds, 2)
        Bound of each round and the best so far.
    converged : bool
        Whether the bound was flat (or tight) before the limit of rounds.
    """

    pulls: FloatArray
    prices: FloatArray
    lower_bound: float
    upper_bound: float
    labels: Labels
    history: FloatArray
    converged: bool


class _Pool:
    """Earlier solutions, each of which may be the cheapest under new charges.

    The pool always has the unconstrained solution, and the most recent cheapest solutions. Multipliers belong to
    numbered clusters, so a solution is only used if its cluster numbers match those of the first solution.
    """

    def __init__(self, criterion: Criterion, start: CenterCosts) -> None:
        self.criterion, self._start, self._recent = criterion, start, list[CenterCosts]()

    def _keeps_identity(self, solution: CenterCosts) -> bool:
        distances = self.criterion.between(self._start, solution)
        rows, columns = linear_sum_assignment(distances)
        return float(np.trace(distances)) <= float(distances[rows, columns].sum()) * (1 + 1e-12)

    @property
    def latest(self) -> CenterCosts:
        """The most recent cheapest solution."""
        return self._recent[0] if self._recent else self._start

    def add(self, solution: CenterCosts) -> None:
        """Add a solution as the most recent one."""
        if solution is not self._start and self._keeps_identity(solution):
            self._recent = [solution, *(each for each in self._recent if each is not solution)][:_POOL]

    def cheapest(self, charges: FloatArray, labels: Labels) -> float:
        """Cost of the cheapest clustering found under `charges`. Writes the clusters of the tied rows."""
        solutions = [*self._recent, self._start]
        totals = [each.free_cost + assign_charged(each.costs, charges, labels) for each in solutions]
        solution, total = solutions[int(np.argmin(totals))], min(totals)
        assign_charged(solution.costs, charges, labels)
        trial = np.empty_like(labels)
        for _ in range(_DESCENTS):
            lower = self.criterion.descend(solution, labels)
            value = lower.free_cost + assign_charged(lower.costs, charges, trial)
            if lower is solution or value >= total or not self._keeps_identity(lower):
                break
            solution, total = lower, value
            labels[:] = trial
        self.add(solution)
        return total


def dual_ascent(
    criterion: Criterion,
    centers: npt.NDArray[Any],
    statements: Statements,
    *,
    max_iter: int,
    slack: float = SLACK,
) -> Dual:
    """Raise the multipliers until the bound has converged, and return the best multipliers.

    Parameters
    ----------
    criterion : Criterion
    centers : ndarray
        Centres of the best unconstrained solution.
    statements : Statements
    max_iter : int
        Largest number of rounds.
    slack : float
        The thesis's epsilon.
    """
    start, k = criterion.at(centers), criterion.n_clusters
    pool = _Pool(criterion, start)
    pull_steps, price_steps = _steps(statements, start.costs)
    pulls, prices = np.zeros((len(statements.together), k)), np.zeros((len(statements.most_price), k))
    charges, labels = np.zeros((statements.n_tied, k)), np.zeros(statements.n_tied, dtype=np.int32)
    feasible = _FeasibleLabels(statements, k)
    best = (-np.inf, pulls.copy(), prices.copy(), labels.copy())
    upper, history, factor, converged = np.inf, [], 1.0, False
    for turn in range(max_iter):
        charge_rows(statements.together, pulls, statements.set_ptr, statements.members, prices, charges)
        bound = pool.cheapest(charges, labels)
        bound -= slack * float(np.abs(pulls).sum()) + (1.0 + slack) * float(prices.sum())
        if bound > best[0]:
            best = (bound, pulls.copy(), prices.copy(), labels.copy())
        if turn % _FEASIBLE_EVERY == 0:
            upper = min(upper, feasible.cost(pool))
        history.append((bound, best[0]))
        at_stake = float(np.abs(charges).sum())
        tight = upper - best[0] <= _ROUNDING * abs(best[0])
        if tight or _is_flat(history, factor, at_stake):
            converged = True
            break
        step_multipliers(
            statements.together,
            pull_steps,
            statements.most_pull,
            statements.set_ptr,
            statements.members,
            price_steps,
            statements.most_price,
            labels,
            factor,
            slack,
            pulls,
            prices,
        )
        factor *= _SHRINK
    return Dual(best[1], best[2], best[0], upper, best[3], np.array(history).reshape(-1, 2), converged)


def _is_flat(history: list[tuple[float, float]], factor: float, at_stake: float) -> bool:
    if factor < _SMALLEST_STEP:
        return True
    if len(history) <= _FLAT_ROUNDS or factor > _FLAT_STEP:
        return False
    return history[-1][1] - history[-1 - _FLAT_ROUNDS][1] <= _FLAT * at_stake


def _steps(statements: Statements, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """First step of each statement: the cost of satisfying it alone, with fixed centres.

    If this cost is 0, and for sets, it is the mean cost of moving one of their rows to the second-best cluster.
    """
    lowest = np.sort(costs, axis=1)
    moves = lowest[:, min(1, costs.shape[1] - 1)] - lowest[:, 0]
    usual = float(np.median(moves[moves > 0])) if (moves > 0).any() else float(lowest[:, 0].max(initial=0.0)) or 1.0
    moves = np.where(moves > 0, moves, usual)
    first, second = statements.together.T
    forced = (costs[first] + costs[second]).min(axis=1) - lowest[first, 0] - lowest[second, 0]
    pull_steps = np.where(forced > 0, forced, (moves[first] + moves[second]) / 2)
    sizes = np.diff(statements.set_ptr)
    sums = np.zeros(len(sizes))
    np.add.at(sums, np.repeat(np.arange(len(sizes)), sizes), moves[statements.members])
    return pull_steps, sums / np.maximum(sizes, 1)


class _FeasibleLabels:
    """Labellings that satisfy every statement (thesis Algorithm 6, with components as units)."""

    def __init__(self, statements: Statements, n_clusters: int) -> None:
        parent = np.arange(statements.n_tied)
        merge_pairs(parent, statements.together)
        self._component_of = np.empty(statements.n_tied, dtype=np.int64)
        self._n_components = number_components(parent, self._component_of)
        set_of = np.repeat(np.arange(len(statements.set_ptr) - 1), np.diff(statements.set_ptr))
        member = self._component_of[statements.members]
        keys = set_of * max(self._n_components, 1) + member
        self._graph: CliqueGraph | None = None
        if len(np.unique(keys)) == len(keys):  # otherwise a component would have to differ from itself
            none = np.empty((0, 2), dtype=np.int64)
            self._graph = CliqueGraph.build(self._n_components, none, set_of, member)
        self._n_clusters = n_clusters

    def cost(self, pool: _Pool) -> float:
        """Cost of such a labelling near the latest solution, infinite if none is found. Adds it to the pool."""
        solution, lowest = pool.latest, np.inf
        for _ in range(_DESCENTS):
            labels = self._near(solution)
            if labels is None:
                return lowest
            better = pool.criterion.descend(solution, labels)
            cost = better.free_cost + float(better.costs[np.arange(len(labels)), labels].sum())
            if cost >= lowest:
                break
            solution, lowest = better, cost
            pool.add(solution)
        return lowest

    def _near(self, solution: CenterCosts) -> Labels | None:
        """A labelling that satisfies all statements and puts components into cheap clusters where possible."""
        if self._graph is None:
            return None
        costs = np.zeros((self._n_components, self._n_clusters))
        np.add.at(costs, self._component_of, solution.costs)
        wishes = np.argsort(costs, axis=1, kind="stable").astype(np.int32)
        found = color(self._graph, self._n_clusters, preference=wishes, work_limit=_FEASIBLE_WORK)
        if found.colors is None:
            self._graph = None  # the next attempt would fail, too
            return None
        return found.colors[self._component_of].astype(np.int32)
