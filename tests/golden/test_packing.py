"""Blocks, weights and conflicts within size limits: equal to brute force on tiny inputs, and bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest

from clew.solvers.coloring import CliqueGraph
from clew.solvers.packing import Packing, PackingError
from tests.reference.packing import cheapest

NO_EDGES = np.empty((0, 2), dtype=np.int64)
NONE = np.empty(0, dtype=np.int64)


def packing(sizes, lower, upper, edges=NO_EDGES, cliques=(), fixed=None):
    n = len(sizes)
    clique_of = np.concatenate([NONE, *(np.full(len(one), place) for place, one in enumerate(cliques))])
    members = np.concatenate([NONE, *(np.asarray(one, dtype=np.int64) for one in cliques)])
    graph = CliqueGraph.build(n, np.asarray(edges, dtype=np.int64).reshape(-1, 2), clique_of, members)
    pins = np.full(n, -1, dtype=np.int32) if fixed is None else np.asarray(fixed, dtype=np.int32)
    arrays = (np.asarray(one, dtype=np.float64) for one in (sizes, lower, upper))
    return Packing(*arrays, graph, pins)


def draw(rng):
    """A tiny instance, half of them feasible by design; the others may be impossible."""
    n, k = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    sizes = rng.integers(0, 5, n) if rng.random() < 0.5 else rng.integers(1, 3, n)
    hidden = rng.integers(k, size=n)
    loads = np.bincount(hidden, weights=sizes, minlength=k)
    slack = rng.integers(0, 3, (2, k))
    lower, upper = np.maximum(loads - slack[0], 0), loads + slack[1]
    pairs = np.argwhere(np.triu(rng.random((n, n)) < 0.25, 1))
    if rng.random() < 0.5:
        pairs = pairs[hidden[pairs[:, 0]] != hidden[pairs[:, 1]]]
        fixed = np.where(rng.random(n) < 0.2, hidden, -1)
    else:
        upper = np.maximum(upper - rng.integers(0, 2, k), lower)
        fixed = np.where(rng.random(n) < 0.1, rng.integers(k, size=n), -1)
    first, second = fixed[pairs].T  # two rows of one class that must differ are a contradiction, refused before
    pairs = pairs[(first != second) | (first < 0)]
    return rng.integers(0, 9, (n, k)).astype(float), sizes, lower, upper, pairs, fixed


def check(case, seed):
    costs, sizes, lower, upper, pairs, fixed = draw(np.random.default_rng([seed, case]))
    problem = packing(sizes, lower, upper, pairs, fixed=fixed)
    best = cheapest(costs.tolist(), sizes.tolist(), lower.tolist(), upper.tolist(), pairs.tolist(), fixed.tolist())
    if best is None:
        with pytest.raises(PackingError, match="proven"):
            problem.start(costs)
        return False
    labels = problem.start(costs)
    better = problem.improve(costs, labels)
    proof = problem.prove(costs, better)
    for found in (labels, better, proof.labels):
        assert problem.violation(found) == 0
        assert (found[pairs[:, 0]] != found[pairs[:, 1]]).all()
        assert ((fixed < 0) | (found == fixed)).all()
    rows = np.arange(len(sizes))
    assert costs[rows, better].sum() <= costs[rows, labels].sum()
    assert proof.cost == pytest.approx(best, abs=1e-6)
    assert proof.bound == pytest.approx(best, abs=1e-6)  # HiGHS works to a tolerance
    assert proof.bound <= proof.cost
    return True


@pytest.mark.parametrize("block", range(4))
def test_equals_brute_force(block, seed):
    found = [check(case, seed) for case in range(50 * block, 50 * block + 50)]
    assert 0 < sum(found) < 50


@pytest.mark.slow
def test_equals_brute_force_on_ten_thousand_instances(seed):
    found = [check(case, seed) for case in range(1000, 11_000)]
    assert 0 < sum(found) < 10_000
