"""CorrelationClustering against all clusterings of a few rows, and its kernels against plain loops."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from clew import Constraints, CorrelationClustering
from clew.graph._signed_graph import signed_graph, triangle_bounds
from clew.solvers.correlation import correlate
from tests.helpers import random_knowledge
from tests.reference.assign import given_pairs
from tests.reference.correlation_clustering import best_cost, cost


def signed(rng, n):
    """Small whole weights, so that sums are exact; some pairs have none."""
    upper = np.triu(rng.integers(-3, 4, size=(n, n)) * (rng.random((n, n)) < rng.choice([0.5, 0.8, 1.0])), 1)
    return (upper + upper.T).astype(float)


@pytest.mark.parametrize("n_graphs", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_exact_parts_equal_brute_force_and_the_search_is_close(seed, n_graphs):
    rng = np.random.default_rng(seed)
    excess = []
    for number in range(n_graphs):
        # Brute force takes three times as long for each further row.
        n = 12 if number % 50 == 0 else int(rng.integers(2, 10))
        X, missing = signed(rng, n), float(rng.choice([0, -1]))
        best = best_cost(X.tolist(), missing)
        exact = CorrelationClustering(missing, random_state=number).fit(X)
        searched = CorrelationClustering(missing, exact_size=0, random_state=number).fit(X)
        assert exact.objective_ == best == cost(exact.labels_.tolist(), X.tolist(), missing)
        assert exact.lower_bound_ == pytest.approx(best, abs=1e-6)
        assert searched.lower_bound_ <= best + 1e-9
        assert searched.objective_ >= best
        excess.append((searched.objective_ - best) / max(best, 1))
    assert np.mean(excess) <= 0.01


def test_constraints_hold_at_the_lowest_cost(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(3, 9))
        X, known, missing = signed(rng, n), random_knowledge(rng, n), float(rng.choice([0, -1]))
        must, cannot = given_pairs(known)
        model = CorrelationClustering(missing, random_state=0).fit(X, constraints=known)
        assert model.objective_ == best_cost(X.tolist(), missing, must, cannot)
        assert model.objective_ == cost(model.labels_.tolist(), X.tolist(), missing)
        assert model.lower_bound_ == pytest.approx(model.objective_, abs=1e-6)
        for start in (1, 3):
            searched = CorrelationClustering(missing, exact_size=0, n_init=start, random_state=0)
            searched.fit(X, constraints=known)
            assert searched.objective_ == cost(searched.labels_.tolist(), X.tolist(), missing)
            assert searched.lower_bound_ <= model.objective_ + 1e-9


def test_no_single_move_or_merge_lowers_the_cost(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        n = 25
        X, missing = signed(rng, n), float(rng.choice([0, -1]))
        model = CorrelationClustering(missing, exact_size=0, n_init=1, random_state=0).fit(X)
        labels, found = model.labels_, model.objective_
        for row in range(n):
            for cluster in range(labels.max() + 2):
                moved = labels.copy()
                moved[row] = cluster
                assert cost(moved.tolist(), X.tolist(), missing) >= found
        for first, second in combinations(range(labels.max() + 1), 2):
            assert cost(np.where(labels == second, first, labels).tolist(), X.tolist(), missing) >= found


def test_triangles_bound_the_linear_relaxation_which_bounds_the_optimum(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        n = 8
        X = signed(rng, n)
        packed = triangle_bounds(signed_graph(X, Constraints(n_samples=n).closure(), 0.0)).sum()
        apart = np.zeros((n, n), dtype=bool)
        relaxed, whole = (correlate(X, apart, exact=exact) for exact in (False, True))
        assert packed <= relaxed.bound + 1e-6
        assert relaxed.bound <= whole.bound + 1e-6
        assert whole.bound == pytest.approx(best_cost(X.tolist()), abs=1e-6)
        assert cost(whole.labels.tolist(), X.tolist()) == pytest.approx(whole.bound, abs=1e-6)


@pytest.mark.parametrize("size", [2, 5, 40])
def test_cliques_larger_and_smaller_than_clusters_are_kept(size, seed):
    rng = np.random.default_rng(seed)
    n = 60
    X = np.abs(signed(rng, n)) + 1
    known = Constraints(cannot_groups=rng.integers(n // size + 1, size=n))
    model = CorrelationClustering(exact_size=0, n_init=3, random_state=0).fit(sparse.csr_array(X), constraints=known)
    for group in np.unique(known.cannot_groups):
        labels = model.labels_[known.cannot_groups == group]
        assert len(np.unique(labels)) == len(labels)
    assert model.lower_bound_ <= model.objective_
