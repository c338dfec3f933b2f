"""The flow within size limits equals brute force on tiny inputs and HiGHS beyond; prices prove it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from clew.solvers.transport import transport
from tests.reference.transport import cheapest


def draw(rng, most_rows, most_clusters):
    """Costs in small integers, and limits that hold them."""
    n_rows, k = int(rng.integers(1, most_rows + 1)), int(rng.integers(1, most_clusters + 1))
    lower = rng.multinomial(rng.integers(0, n_rows + 1), np.full(k, 1 / k))
    upper = lower + rng.integers(0, n_rows + 1, k)
    upper[rng.integers(k)] += max(0, n_rows - upper.sum())
    return rng.integers(0, 7, (n_rows, k)).astype(float), lower.astype(np.int64), upper.astype(np.int64)


def assert_optimal(costs, lower, upper, found):
    """Complementary slackness: a proof that no assignment within the limits costs less."""
    sizes = np.bincount(found.labels, minlength=len(lower))
    assert (lower <= sizes).all() and (sizes <= upper).all()
    reduced = costs + found.prices
    assert (reduced[np.arange(len(costs)), found.labels] == reduced.min(axis=1)).all()
    assert (sizes[found.prices > 0] == upper[found.prices > 0]).all()
    assert (sizes[found.prices < 0] == lower[found.prices < 0]).all()


@pytest.mark.parametrize("case", range(100))
def test_equals_brute_force(case, seed):
    rng = np.random.default_rng([seed, case])
    costs, lower, upper = draw(rng, 6, 3)
    found = transport(costs, lower, upper)
    assert found.cost == cheapest(costs.tolist(), lower.tolist(), upper.tolist())
    assert_optimal(costs, lower, upper, found)


@pytest.mark.parametrize("case", range(40))
def test_prices_to_start_from_change_the_work_and_not_the_cost(case, seed):
    rng = np.random.default_rng([seed, case])
    costs, lower, upper = draw(rng, 60, 6)
    found = transport(costs, lower, upper)
    again = transport(costs, lower, upper, rng.integers(-5, 6, costs.shape[1]).astype(float))
    assert again.cost == found.cost
    assert_optimal(costs, lower, upper, again)
    assert transport(costs, lower, upper, found.prices).cost == found.cost


def test_lists_of_cheapest_rows_that_overflow_are_read_anew(seed):
    rng = np.random.default_rng(seed)
    costs = np.column_stack([np.zeros(1000), rng.integers(1, 500, (1000, 3))]).astype(float)
    lower, upper = np.full(4, 250), np.full(4, 250)
    found = transport(costs, lower, upper)
    n_rows, k = costs.shape
    one_each = sparse.kron(sparse.eye(n_rows), np.ones((1, k)))
    sizes = sparse.kron(np.ones((1, n_rows)), sparse.eye(k))
    best = linprog(costs.ravel(), A_eq=sparse.vstack([one_each, sizes]), b_eq=np.r_[np.ones(n_rows), upper])
    assert found.cost == pytest.approx(best.fun, rel=1e-9)  # HiGHS works to a tolerance
    assert_optimal(costs, lower, upper, found)


@pytest.mark.parametrize("case", range(5))
def test_equals_the_flow_of_or_tools(case, seed):
    flows = pytest.importorskip("ortools.graph.python.min_cost_flow", reason="OR-Tools is not installed")
    costs, lower, upper = draw(np.random.default_rng([seed, case]), 200, 8)
    n_rows, k = costs.shape
    flow, sink = flows.SimpleMinCostFlow(), n_rows + k
    for row, cluster in np.ndindex(n_rows, k):
        flow.add_arc_with_capacity_and_unit_cost(row, n_rows + cluster, 1, int(costs[row, cluster]))
    for cluster in range(k):  # the least rows of a cluster are its demand, the others go on to the sink
        flow.add_arc_with_capacity_and_unit_cost(n_rows + cluster, sink, int(upper[cluster] - lower[cluster]), 0)
        flow.set_node_supply(n_rows + cluster, -int(lower[cluster]))
    for row in range(n_rows):
        flow.set_node_supply(row, 1)
    flow.set_node_supply(sink, int(lower.sum()) - n_rows)
    assert flow.solve() == flow.OPTIMAL
    assert transport(costs, lower, upper).cost == flow.optimal_cost()


def test_many_clusters_have_shorter_lists(seed):
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 50, (400, 190)).astype(float)
    lower, upper = np.ones(190, dtype=np.int64), np.full(190, 3)
    assert_optimal(costs, lower, upper, transport(costs, lower, upper))


def test_limits_that_cannot_hold_the_rows_are_refused():
    with pytest.raises(ValueError, match="from 0 to 4 cannot hold 5 rows"):
        transport(np.zeros((5, 2)), np.zeros(2, dtype=np.int64), np.full(2, 2))
