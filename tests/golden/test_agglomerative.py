"""The tree of ConstrainedAgglomerative equals plain loops that compute every distance from its definition."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from clew import ConstrainedAgglomerative
from clew.hierarchical import _agglomeration
from clew.kernels import linkage as compiled
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import agglomerative as reference
from tests.reference import interpreted_kernel

KERNELS = [pytest.param(compiled, id="compiled"), pytest.param(interpreted_kernel("linkage"), id="interpreted")]
BY_ROWS = ("ward", "centroid")


def as_sets(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def random_distances(rng, n):
    """Whole numbers that are hardly ever equal; they need not keep the triangle inequality."""
    distances = np.triu(rng.integers(1, 10**6, size=(n, n)), 1)
    return distances + distances.T


def problem(rng, linkage):
    """Data for the reference and for the estimator, in whole numbers, and constraints."""
    n = int(rng.integers(2, 11))
    known = random_knowledge(rng, n)
    if linkage in BY_ROWS:
        X = whole_numbers(rng, n)
        return X.astype(int).tolist(), X, "euclidean", known
    distances = random_distances(rng, n)
    return distances.tolist(), distances.astype(float), "precomputed", known


def assert_same_tree(model, levels, heights, linkage):
    assert (model.k_max_, model.k_min_) == (len(levels[0]), len(levels[-1]))
    for level in levels:
        assert as_sets(model.cut(len(level))) == set(level)
    n = len(model.labels_)
    found = model.linkage_[n - model.k_max_ : n - model.k_min_, 2]
    expected = np.array(heights, dtype=float)
    np.testing.assert_allclose(found, np.sqrt(expected) if linkage in BY_ROWS else expected, rtol=1e-9)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("linkage", reference.LINKAGES)
def test_matches_reference_on_random_knowledge(linkage, kernels, seed, monkeypatch):
    monkeypatch.setattr(_agglomeration, "kernels", kernels)
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(40 if kernels is compiled else 12):
        data, X, metric, known = problem(rng, linkage)
        try:
            levels, heights = reference.agglomerate(data, known, linkage, len(X))
        except reference.TieError:
            continue
        model = ConstrainedAgglomerative(linkage=linkage, metric=metric).fit(X, constraints=known)
        assert_same_tree(model, levels, heights, linkage)
        compared += 1
    assert compared > 5


@pytest.mark.parametrize("linkage", reference.LINKAGES)
def test_after_a_dead_end_the_closest_merges_are_those_that_leave_a_colouring(linkage, seed):
    rng = np.random.default_rng([seed, 1])
    dead_ends = 0
    for _ in range(400):
        data, X, metric, known = problem(rng, linkage)
        blocks, cannot = reference.blocks_and_enemies(known, len(X))
        k = int(rng.integers(2, 4))
        if not 4 < len(blocks) < 9 or not cannot or not reference.can_be_colored(blocks, cannot, k):
            continue
        model = ConstrainedAgglomerative(k, linkage=linkage, metric=metric, on_dead_end="color")
        allowed = partial(reference.can_be_colored, cannot=cannot, n_colors=k)
        plain = ConstrainedAgglomerative(linkage=linkage, metric=metric).fit(X, constraints=known)
        if plain.k_min_ <= k:
            continue
        try:
            levels, heights = reference.agglomerate(data, known, linkage, len(X), allowed, until=k)
        except reference.TieError:
            continue
        assert_same_tree(model.fit(X, constraints=known), levels, heights, linkage)
        assert model.k_min_ == k
        dead_ends += 1
        if dead_ends == 5:
            break
    assert dead_ends > 1


def test_chains_and_closest_pairs_give_the_same_tree(seed):
    rng = np.random.default_rng(seed)
    for linkage in ("single", "complete", "average", "ward"):
        n = 60
        known = random_knowledge(rng, n, n_classes=5)
        closed = known.closure()
        distances = pdist(rng.normal(size=(n, 3)))
        chain = _agglomeration.Level.of_components(distances.copy(), linkage, closed)
        merges = chain.merged()
        closest = _agglomeration.Level.of_components(distances.copy(), linkage, closed)
        pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
        found = compiled.merge_closest(
            closest.distances, n, _agglomeration.LINKAGES.index(linkage), np.inf, closest.sizes, closest.alive,
            np.empty(n, dtype=np.int64), np.empty(n), pairs, heights,
        )  # fmt: skip
        tall = np.sqrt(heights[:found]) if linkage == "ward" else heights[:found]
        np.testing.assert_allclose(merges.heights, tall, rtol=1e-9)
        assert {frozenset(pair) for pair in merges.pairs.tolist()} == {
            frozenset(pair) for pair in pairs[:found].tolist()
        }
