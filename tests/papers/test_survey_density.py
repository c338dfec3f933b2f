"""Truong and Battiti 2013, section 3.2.4: statements about Constrained-DBSCAN (Algorithms 17 and 18)."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_moons

from clew import ConstrainedDBSCAN, Constraints, PCKMeans
from clew.evaluation import adjusted_rand_score


def test_a_neighbourhood_of_exactly_min_pts_rows_at_exactly_eps_is_dense():
    X = [[0.0], [1.0], [-1.0], [5.0]]
    model = ConstrainedDBSCAN(1.0, min_samples=3).fit(X)
    assert model.core_sample_indices_.tolist() == [0]
    assert model.labels_.tolist() == [0, 0, 0, -1]


def test_a_row_labelled_as_noise_can_be_assigned_to_a_cluster_later():
    """Row 0 is visited first and is not dense; the cluster of row 1 reaches it."""
    X = [[0.0], [1.0], [1.5], [2.0]]
    model = ConstrainedDBSCAN(1.0, min_samples=3).fit(X)
    assert 0 not in model.core_sample_indices_
    assert model.labels_.tolist() == [0, 0, 0, 0]


def test_all_points_that_must_link_with_the_start_are_seeds():
    X = [[0.0], [0.5], [10.0], [10.5], [20.0], [20.5]]
    known = {"must_link": [(0, 2), (2, 4)]}
    assert ConstrainedDBSCAN(1.0, min_samples=2).fit(X, constraints=known).labels_.tolist() == [0] * 6


def test_cannot_links_are_extended_by_the_transitive_closures():
    """Row 4 is must-linked to row 5, which is cannot-linked to row 0: row 4 does not join the cluster of row 0."""
    X = [[0.0], [0.5], [1.0], [1.5], [2.0], [30.0]]
    known = {"must_link": [(4, 5)], "cannot_link": [(0, 5)]}
    labels = ConstrainedDBSCAN(1.0, min_samples=2).fit(X, constraints=known).labels_
    assert labels.tolist() == [0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("seed_of_pairs", range(3))
def test_it_finds_clusters_that_are_not_convex_where_k_means_does_not(seed_of_pairs):
    X, y = make_moons(400, noise=0.05, random_state=seed_of_pairs)
    known = Constraints.sample(y, 50, balance=0.5, random_state=seed_of_pairs)
    dense = adjusted_rand_score(y, ConstrainedDBSCAN(0.2).fit(X, constraints=known).labels_)
    convex = adjusted_rand_score(y, PCKMeans(2, random_state=0).fit(X, constraints=known).labels_)
    assert dense > 0.99 > convex + 0.2


def test_it_follows_the_same_idea_as_dbscan(seed):
    X = np.random.default_rng(seed).normal(size=(200, 3))
    assert ConstrainedDBSCAN(0.7).fit_predict(X).tolist() == DBSCAN(eps=0.7).fit_predict(X).tolist()
