"""SeededKMeans and ConstrainedKMeans against plain loops, where every cluster has a seed and nothing is random."""

from __future__ import annotations

import numpy as np
import pytest

from clew import ConstrainedKMeans, SeededKMeans
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import constrained_kmeans, kmeans, seeded_kmeans

# Means of whole numbers up to a few hundred: rounding stays in the last digits.
ROUNDING = 1e-9
METHODS = [
    pytest.param(SeededKMeans, seeded_kmeans.seeded_kmeans, id="seeded"),
    pytest.param(ConstrainedKMeans, constrained_kmeans.constrained_kmeans, id="constrained"),
]


def assert_same_fit(model, labels, centers, history):
    assert model.labels_.tolist() == labels
    np.testing.assert_allclose(model.cluster_centers_, np.array(centers, dtype=float), atol=ROUNDING)
    np.testing.assert_allclose(model.objective_history_, np.array(history, dtype=float), rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("cls, reference", METHODS)
def test_matches_reference_on_random_knowledge(cls, reference, seed):
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(150):
        n, n_clusters = int(rng.integers(4, 13)), int(rng.integers(1, 4))
        X = whole_numbers(rng, n)
        constraints = random_knowledge(rng, n, n_classes=n_clusters)
        try:
            expected = reference(kmeans.exact(X), constraints, n_clusters)
        except kmeans.TieError:
            continue
        if expected is None:
            continue
        assert_same_fit(cls(n_clusters, n_init=1, tol=0).fit(X, constraints=constraints), *expected)
        compared += 1
    assert compared > 20


def test_plain_lloyd_matches_reference_with_weights(seed):
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(100):
        n, n_clusters = int(rng.integers(4, 13)), int(rng.integers(1, 4))
        X = whole_numbers(rng, n)
        init = X[rng.choice(n, n_clusters, replace=False)]
        weights = rng.integers(1, 4, size=n)
        try:
            expected = kmeans.lloyd(kmeans.exact(X), kmeans.exact(init), weights.tolist())
        except kmeans.TieError:
            continue
        assert_same_fit(SeededKMeans(n_clusters, init=init, tol=0).fit(X, sample_weight=weights), *expected)
        compared += 1
    assert compared > 40
