"""Constrained k-medoids against loops over all medoids and all labellings. Whole numbers add up exactly."""

from __future__ import annotations

import numpy as np
import pytest

from clew import ConstrainedKMedoids
from clew.medoids._search import MedoidTies, SwapDescent
from clew.solvers.coloring import CliqueGraph, color
from tests.reference import kmedoids as reference

NONE = np.empty(0, dtype=np.int64)


def ties_of(n_units, pairs, k):
    graph = CliqueGraph.build(n_units, np.array(pairs, dtype=np.int64).reshape(-1, 2), NONE, NONE)
    found = color(graph, k)
    return None if found.colors is None else MedoidTies.of(graph, found.colors)


def draw(rng, n_rows):
    """Asymmetric whole numbers, and pairs of a hidden labelling."""
    distances = rng.integers(0, 20, size=(n_rows, n_rows)).astype(float)
    hidden = rng.integers(3, size=n_rows)
    pairs = [tuple(rng.choice(n_rows, 2, replace=False).tolist()) for _ in range(rng.integers(0, 6))]
    must = [pair for pair in pairs if hidden[pair[0]] == hidden[pair[1]]]
    return distances, must, [pair for pair in pairs if pair not in must]


@pytest.mark.parametrize("case", range(8))
@pytest.mark.parametrize("solver", ["vns", "exact"])
def test_the_optimum_is_found_on_any_matrix(solver, case, seed):
    rng = np.random.default_rng([seed, case])
    distances, must, cannot = draw(rng, 6)
    model = ConstrainedKMedoids(3, metric="precomputed", solver=solver, max_iter=30, random_state=0)
    model.fit(distances, constraints={"must_link": must, "cannot_link": cannot})
    assert model.inertia_ == reference.lowest_cost(distances, 3, must, cannot)
    medoid_of = model.medoid_indices_[np.searchsorted(model.cluster_labels_, model.labels_)]
    assert model.inertia_ == distances[np.arange(6), medoid_of].sum()
    if solver == "exact":
        assert (model.lower_bound_, model.gap_) == (model.inertia_, 0.0)


@pytest.mark.parametrize("case", range(4))
@pytest.mark.parametrize("limits", [{"size_max": 2}, {"size_min": 2, "size_max": 3}])
def test_the_optimum_within_size_limits_is_found(limits, case, seed):
    rng = np.random.default_rng([seed, case])
    distances, must, _ = draw(rng, 6)
    expected = reference.lowest_cost(distances, 2 if "size_min" in limits else 3, must[:1], **limits)
    model = ConstrainedKMedoids(2 if "size_min" in limits else 3, metric="precomputed", solver="exact", **limits)
    model.set_params(max_iter=30, random_state=0).fit(distances, constraints={"must_link": must[:1]})
    assert model.inertia_ == model.lower_bound_ == expected


@pytest.mark.parametrize("case", range(5))
def test_swaps_without_constraints_are_those_of_fasterpam(case, seed):
    rng = np.random.default_rng([seed, case])
    costs = rng.integers(0, 30, size=(12, 9)).astype(float)
    start = rng.choice(12, 3, replace=False)
    for dtype in (np.float64, np.float32):
        found = SwapDescent(costs.astype(dtype), 3, ties_of(9, [], 3))(start, np.arange(12))
        medoids, total = reference.fastest_swaps(costs.tolist(), start.tolist())
        assert (sorted(found.medoids.tolist()), found.cost) == (sorted(medoids), total)


@pytest.mark.parametrize("case", range(10))
def test_parts_with_conflicts_get_their_cheapest_labels(case, seed):
    rng = np.random.default_rng([seed, case])
    costs = rng.integers(0, 10, size=(3, 6)).astype(float)
    pairs = [tuple(rng.choice(6, 2, replace=False).tolist()) for _ in range(6)]
    ties = ties_of(6, pairs, 3)
    if ties is None:
        return
    found = SwapDescent(costs, 3, ties)(np.arange(3), np.arange(3))
    assert found.cost == reference.cheapest_labels(costs.T.tolist(), pairs)
    assert all(found.labels[i] != found.labels[j] for i, j in pairs)
    assert found.cost == costs[found.medoids[found.labels], np.arange(6)].sum()
