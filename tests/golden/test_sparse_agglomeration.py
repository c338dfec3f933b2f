"""Merges over a neighbour graph, and between centroids within a bound, equal plain loops and the full matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from clew import ConstrainedAgglomerative
from clew.hierarchical import _agglomeration, _sparse_agglomeration
from clew.kernels import sparse_linkage as compiled
from tests.golden.test_agglomerative import as_sets, random_distances
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import agglomerative as reference
from tests.reference import interpreted_kernel

KERNELS = [pytest.param(compiled, id="compiled"), pytest.param(interpreted_kernel("sparse_linkage"), id="interpreted")]


def random_graph(rng, n):
    """Some distances of random pairs, each stored one way or both ways."""
    distances = np.triu(random_distances(rng, n) * (rng.random((n, n)) < rng.choice([0.2, 0.5, 1.0])), 1)
    edges = {(int(i), int(j)): int(distances[i, j]) for i, j in zip(*np.nonzero(distances), strict=True)}
    ways = rng.integers(1, 4, size=(n, n))
    return edges, sparse.csr_array(np.where(ways & 1, distances, 0) + np.where(ways & 2, distances, 0).T)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("linkage", ["single", "complete", "average"])
def test_a_neighbour_graph_matches_reference(linkage, kernels, seed, monkeypatch):
    monkeypatch.setattr(_sparse_agglomeration, "kernels", kernels)
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(60 if kernels is compiled else 15):
        n = int(rng.integers(2, 11))
        edges, graph = random_graph(rng, n)
        known = random_knowledge(rng, n)
        try:
            levels, heights = reference.agglomerate(edges, known, linkage, n, measure=reference.over_edges)
        except reference.TieError:
            continue
        model = ConstrainedAgglomerative(linkage=linkage, metric="precomputed").fit(graph, constraints=known)
        assert (model.k_max_, model.k_min_) == (len(levels[0]), len(levels[-1]))
        for level in levels:
            assert as_sets(model.cut(len(level))) == set(level)
        found = model.linkage_[n - model.k_max_ : n - model.k_min_, 2]
        np.testing.assert_allclose(found, np.array(heights, dtype=float), rtol=1e-9)
        compared += 1
    assert compared > 5


@pytest.mark.parametrize("kernels", KERNELS)
def test_centroids_within_a_bound_match_the_full_matrix(kernels, seed, monkeypatch):
    monkeypatch.setattr(_sparse_agglomeration, "kernels", kernels)
    rng = np.random.default_rng(seed)
    for turn in range(30 if kernels is compiled else 8):
        n = int(rng.integers(2, 60))
        X = whole_numbers(rng, n) + rng.random((n, 2))
        closed = random_knowledge(rng, n, n_classes=4).closure()
        gamma = float(rng.choice([0.0, 10.0, 40.0, 1e6]))
        expected = _agglomeration.Level.of_components(pdist(X), "centroid", closed).merged(gamma)
        found, n_computed = _sparse_agglomeration.merges_within(X if turn % 2 else sparse.csr_array(X), closed, gamma)
        assert found.pairs.tolist() == expected.pairs.tolist()
        np.testing.assert_allclose(found.heights, expected.heights, rtol=1e-9, atol=1e-9)
        assert n_computed <= 4 * n**2


def test_the_triangle_inequality_spares_most_distances(seed):
    X = np.random.default_rng(seed).normal(size=(1000, 2)) * 100
    closed = random_knowledge(np.random.default_rng(seed), 1000, n_classes=500).closure()
    _, n_computed = _sparse_agglomeration.merges_within(X, closed, 5.0)
    assert n_computed < 0.1 * 1000 * 999 / 2
