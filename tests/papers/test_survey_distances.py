"""Truong and Battiti 2013, section 3.3, and Xing et al. 2003: what they say of learned distances."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from clew import Constraints, MahalanobisLearner
from clew.datasets import load_iris, load_wine
from clew.evaluation import adjusted_rand_score
from tests.helpers import benchmark_data


def rows_of(name):
    if name == "ionosphere":
        return benchmark_data().load(name)
    found = {"iris": load_iris, "wine": load_wine}[name]()
    return found.X, found.y


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["full", "diagonal"])
@pytest.mark.parametrize("name", ["wine", "iris", "ionosphere"])
def test_a_learned_distance_improves_k_means(name, metric):
    """Xing 2003, Figure 6: k-means with the learned metric against k-means; twenty draws of 50 pairs."""
    X, y = rows_of(name)
    gains = []
    for seed in range(20):
        known = Constraints.sample(y, 50, random_state=seed)
        learned = MahalanobisLearner(metric=metric).fit_transform(X, constraints=known)
        plain, after = (
            adjusted_rand_score(y, KMeans(len(np.unique(y)), n_init=3, random_state=seed).fit_predict(rows))
            for rows in (X, learned)
        )
        gains.append(after - plain)
    assert np.mean(gains) > 0.03
