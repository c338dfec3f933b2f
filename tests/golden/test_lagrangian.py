"""The ascent finds the top of the exact dual, and its bounds enclose the best clustering that keeps everything."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from clew.audit import impact
from clew.solvers.lagrangian import SLACK
from tests.reference import lagrangian as reference

# Steps end at a thousandth of a price; a handful of prices adds up to a few thousandths of the total.
CLOSE = 0.01


def instance(rng, n_rows=6, k=2):
    X = rng.integers(-9, 10, (n_rows, 2)).astype(float)
    pairs = [tuple(rng.choice(n_rows, 2, replace=False).tolist()) for _ in range(4)]
    split = int(rng.integers(0, 5))
    return X, k, pairs[:split], pairs[split:]


@pytest.mark.parametrize("model", ["kmeans", "kmedoids"])
@pytest.mark.parametrize("case", range(12))
def test_bounds_meet_the_exact_dual(model, case, seed):
    X, k, must, cannot = instance(np.random.default_rng([seed, case]))
    distances = cdist(X, X)

    def cost(labels):
        return reference.kmeans_cost(X, labels) if model == "kmeans" else reference.kmedoids_cost(distances, labels)

    best = reference.best_cost(cost, len(X), k, must, cannot)
    found = impact(X, {"must_link": must, "cannot_link": cannot}, k, model)
    top = reference.exact_dual(cost, found.labels, k, must, cannot, SLACK)
    assert found.converged
    assert found.upper_bound >= best * (1 - 1e-12)
    assert np.isfinite(found.upper_bound) == np.isfinite(best)
    # The inner minimum is a local one, so the bound may come out too high. Too low it is only where the solver and the
    # reference, which go by nearest centres and by shared rows, differ on which clusters are the same.
    assert found.lower_bound >= 0.95 * top


@pytest.mark.parametrize("model", ["kmeans", "kmedoids"])
def test_a_single_broken_pair_costs_what_keeping_it_costs(model):
    # Two groups of three; one must-link across: f(kept) - f(free) is its price when moving one row keeps it.
    X = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]])
    distances = cdist(X, X)

    def cost(labels):
        return reference.kmeans_cost(X, labels) if model == "kmeans" else reference.kmedoids_cost(distances, labels)

    price = reference.best_cost(cost, 6, 2, [(2, 3)], []) - cost(np.array([0, 0, 0, 1, 1, 1]))
    found = impact(X, {"must_link": [(2, 3)]}, 2, model)
    np.testing.assert_allclose(-found.must_link_score, price, rtol=CLOSE)
    np.testing.assert_allclose(
        found.lower_bound, reference.exact_dual(cost, found.labels, 2, [(2, 3)], [], SLACK), rtol=CLOSE
    )
