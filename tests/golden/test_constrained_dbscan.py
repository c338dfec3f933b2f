"""ConstrainedDBSCAN against the algorithm in plain loops, and against scikit-learn's DBSCAN."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import DBSCAN
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph

from clew import ConstrainedDBSCAN, Constraints
from clew.density._constrained_dbscan import constrained_dbscan as fast
from clew.density._constrained_dbscan import neighbourhoods
from tests.helpers import random_knowledge
from tests.reference.constrained_dbscan import constrained_dbscan


def line(rng, n):
    """Rows at whole numbers, so that distances are exact."""
    return rng.integers(0, 25, size=(n, 1)).astype(float)


def test_matches_reference_on_random_knowledge(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(5, 16))
        X = line(rng, n)
        known = random_knowledge(rng, n)
        eps, min_samples = float(rng.integers(1, 5)), int(rng.integers(1, 6))
        distances = np.abs(X - X.T)
        found = fast(neighbourhoods(X, eps, "euclidean"), min_samples, known.closure())
        assert found.clusters.tolist() == constrained_dbscan(distances.tolist(), known, eps, min_samples)


def test_matches_reference_on_every_pair_of_links_among_five_rows():
    X = np.arange(5.0)[:, None]
    distances = np.abs(X - X.T).tolist()
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    for must in pairs:
        for cannot in pairs:
            if must == cannot:
                continue
            known = Constraints([must], [cannot], n_samples=5)
            for min_samples in (2, 3):
                found = fast(neighbourhoods(X, 1.0, "euclidean"), min_samples, known.closure())
                assert found.clusters.tolist() == constrained_dbscan(distances, known, 1.0, min_samples)


@pytest.mark.parametrize("min_samples", [1, 4, 9])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_without_constraints_the_labels_are_those_of_dbscan(seed, metric, min_samples):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 2)) + 3 * rng.integers(2, size=(300, 1))
    for eps in (0.02, 0.2, 0.5):
        plain = DBSCAN(eps=eps, min_samples=min_samples, metric=metric).fit(X)
        model = ConstrainedDBSCAN(eps, min_samples=min_samples, metric=metric).fit(X)
        assert model.labels_.tolist() == plain.labels_.tolist()
        assert model.core_sample_indices_.tolist() == plain.core_sample_indices_.tolist()
        np.testing.assert_array_equal(model.components_, plain.components_)


@pytest.mark.parametrize("graph", ["distances", "radius", "nearest", "diagonal"])
def test_distances_and_neighbour_graphs_are_taken_as_dbscan_takes_them(seed, graph):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 2))
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    given = {
        "distances": distances,
        "radius": radius_neighbors_graph(X, 0.5, mode="distance"),
        "nearest": kneighbors_graph(X, 8, mode="distance"),
        "diagonal": kneighbors_graph(X, 8, mode="distance", include_self=True),
    }[graph]
    plain = DBSCAN(eps=0.3, min_samples=5, metric="precomputed").fit(given.copy())
    model = ConstrainedDBSCAN(0.3, min_samples=5, metric="precomputed").fit(given)
    assert model.labels_.tolist() == plain.labels_.tolist()
    assert model.core_sample_indices_.tolist() == plain.core_sample_indices_.tolist()
    assert not hasattr(model, "components_")


def test_rows_distances_and_their_graph_give_one_answer_under_constraints(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 2))
    known = Constraints.sample((X[:, 0] > 0).astype(int), 40, balance=0.5, random_state=seed)
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    graph = radius_neighbors_graph(X, 0.4, mode="distance")
    rows = ConstrainedDBSCAN(0.3).fit(X, constraints=known)
    for square in (distances, graph, sparse.coo_matrix(graph)):
        model = ConstrainedDBSCAN(0.3, metric="precomputed").fit(square, constraints=known)
        assert model.labels_.tolist() == rows.labels_.tolist()
    sparse_rows = ConstrainedDBSCAN(0.3).fit(sparse.csr_array(X), constraints=known)
    assert sparse_rows.labels_.tolist() == rows.labels_.tolist()
