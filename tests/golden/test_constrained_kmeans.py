"""ConstrainedKMeans against plain loops, where every cluster has a seed and nothing is random."""

from __future__ import annotations

import numpy as np

from clew import ConstrainedKMeans
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import constrained_kmeans, kmeans

# Means of whole numbers up to a few hundred: rounding stays in the last digits.
ROUNDING = 1e-9


def test_matches_reference_on_random_knowledge(seed):
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(150):
        n, n_clusters = int(rng.integers(4, 13)), int(rng.integers(1, 4))
        X = whole_numbers(rng, n)
        constraints = random_knowledge(rng, n, n_classes=n_clusters)
        try:
            expected = constrained_kmeans.constrained_kmeans(kmeans.exact(X), constraints, n_clusters)
        except kmeans.TieError:
            continue
        if expected is None:
            continue
        labels, centers, history = expected
        model = ConstrainedKMeans(n_clusters, tol=0).fit(X, constraints=constraints)
        assert model.labels_.tolist() == labels
        np.testing.assert_allclose(model.cluster_centers_, np.array(centers, dtype=float), atol=ROUNDING)
        np.testing.assert_allclose(
            model.objective_history_, np.array(history, dtype=float), rtol=ROUNDING, atol=ROUNDING
        )
        compared += 1
    assert compared > 20
