"""Truong and Battiti 2013, section 3.2.1: the survey on agglomeration under constraints (Algorithms 3 to 6)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, squareform

from clew import ConstrainedAgglomerative, Constraints, SpaceLevelAgglomerative
from clew.exceptions import MoreClustersWarning
from clew.hierarchical._agglomeration import LINKAGES
from clew.hierarchical._space_level_agglomerative import space_level


@pytest.mark.parametrize("kind", LINKAGES)
def test_k_max_is_the_components_and_the_free_rows_and_k_min_has_no_mergeable_pair(kind, seed):
    """Algorithm 4: k_max = r + |X_1|, and merges go on while there is a pair of mergeable clusters."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 4, 40)
    known = Constraints.sample(y, 30, balance=0.5, random_state=seed)
    model = ConstrainedAgglomerative(linkage=kind).fit(X, constraints=known)
    linked = np.unique(known.must_link)
    n_components = len(np.unique(known.closure().component_of[linked]))
    assert model.k_max_ == n_components + len(X) - len(linked)
    last = model.cut(model.k_min_)
    for one in range(model.k_min_):
        for other in range(one + 1, model.k_min_):
            merged = np.where(last == other, one, last)
            assert len(known.violations(merged)[1]) > 0


@pytest.mark.filterwarnings("ignore::clew.exceptions.MoreClustersWarning")
def test_a_desired_number_of_clusters_is_not_always_achieved():
    """Rows 0 and 2 and rows 1 and 3 could be two clusters. The closest rows are 1 and 2, after which all is blocked."""
    X = [[0.0], [4.0], [5.0], [9.0]]
    known = {"cannot_link": [(0, 1), (3, 2), (0, 3)]}
    assert ConstrainedAgglomerative(2).fit(X, constraints=known).k_min_ == 3
    with pytest.warns(MoreClustersWarning, match="stopped at 3 clusters, above n_clusters=2"):
        ConstrainedAgglomerative(2).fit(X, constraints=known)
    assert len(ConstrainedAgglomerative(2, on_dead_end="color").fit(X, constraints=known).cluster_labels_) == 2


def test_distances_beyond_gamma_are_skipped_and_clusters_beyond_it_not_merged(seed):
    """Section 3.2.1: |D(a,b) - D(a,c)| > gamma implies D(b,c) > gamma, so pruning changes no merge."""
    X = np.random.default_rng(seed).normal(size=(60, 2)) * 3
    whole = ConstrainedAgglomerative(linkage="centroid", metric="precomputed", gamma=2.0).fit(cdist(X, X))
    pruned = ConstrainedAgglomerative(linkage="centroid", gamma=2.0).fit(X)
    np.testing.assert_allclose(pruned.linkage_, whole.linkage_, rtol=1e-7)
    centers = np.array([X[pruned.labels_ == label].mean(axis=0) for label in pruned.cluster_labels_])
    assert (cdist(centers, centers)[np.triu_indices(len(centers), 1)] > 2.0).all()


def test_shortest_paths_restore_the_triangle_inequality_after_must_links(seed):
    """Algorithm 6, steps 2 and 3: must-linked rows are at distance 0, and the distances are a metric again."""
    X = np.random.default_rng(seed).normal(size=(25, 2))
    known = Constraints([(0, 1), (2, 3), (3, 4)], n_samples=25)
    level = space_level(squareform(cdist(X, X), checks=False), known.closure())
    D = squareform(level.distances)[np.ix_(level.alive, level.alive)]
    assert (D[:, :, None] <= D[:, None, :] + D.T[None, :, :] + 1e-12).all()
    assert len(level.alive) == 22


def test_complete_linkage_spreads_a_cannot_link_to_the_rows_merged_with_it():
    """If a cannot-link separates a and b, then merging a and c keeps c away from b."""
    X = [[0.0], [1.0], [2.5]]  # a, c, b
    model = SpaceLevelAgglomerative(2).fit(X, constraints={"cannot_link": [(0, 2)]})
    assert model.labels_.tolist() == [0, 0, 1]
    assert model.k_min_ == 2


def test_a_cannot_link_at_the_longest_distance_plus_one_gives_the_same_levels(seed):
    """Algorithm 6, step 4, and complete linkage: the first merges are those with an infinite distance."""
    X = np.random.default_rng(seed).normal(size=(30, 2))
    D = cdist(X, X)
    cannot = [(0, 5), (7, 9), (12, 20)]
    imposed = D.copy()
    for one, other in cannot:
        imposed[one, other] = imposed[other, one] = D.max() + 1
    expected = linkage(squareform(imposed, checks=False), "complete")
    model = SpaceLevelAgglomerative().fit(X, constraints={"cannot_link": cannot})
    n_allowed = 30 - model.k_min_
    assert model.k_min_ > 1
    np.testing.assert_allclose(model.linkage_[:n_allowed, 2], expected[:n_allowed, 2])
    assert (expected[n_allowed:, 2] == D.max() + 1).all()
