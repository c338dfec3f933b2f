"""Truong and Battiti 2013, section 3.3, and Xing et al. 2003: statements about learned distances."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from clew import ConstrainedAgglomerative, Constraints, COPKMeans, DistBoost, MahalanobisLearner
from clew.datasets import load_iris, load_wine
from clew.evaluation import adjusted_rand_score
from tests.helpers import benchmark_data


def rows_of(name):
    if name == "ionosphere":
        return benchmark_data().load(name)
    found = {"iris": load_iris, "wine": load_wine}[name]()
    return found.X, found.y


LEARNERS = {
    "full": lambda k: MahalanobisLearner(),
    "diagonal": lambda k: MahalanobisLearner(metric="diagonal"),
    "boosted": lambda k: DistBoost(k, random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", ["wine", "iris", "ionosphere"])
def test_a_learned_distance_improves_k_means(name, learner):
    """Xing 2003, Figure 6: k-means with the learned metric against k-means; twenty draws of 50 pairs."""
    X, y = rows_of(name)
    gains = []
    for seed in range(20):
        known = Constraints.sample(y, 50, random_state=seed)
        learned = LEARNERS[learner](len(np.unique(y))).fit_transform(X, constraints=known)
        plain, after = (
            adjusted_rand_score(y, KMeans(len(np.unique(y)), n_init=3, random_state=seed).fit_predict(rows))
            for rows in (X, learned)
        )
        gains.append(after - plain)
    assert np.mean(gains) > 0.03


def test_dist_boost_beats_the_mahalanobis_distance_and_cop_kmeans():
    """Section 3.3; `python -m benchmarks distance-methods` compares more methods on more tables."""
    X, y = rows_of("wine")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = {"boosted": [], "Mahalanobis": [], "COP": []}
    for seed in range(3):
        known = Constraints.sample(y, 50, random_state=seed)
        distances = DistBoost(3, random_state=seed).fit(X, constraints=known).pairwise(X)
        tree = ConstrainedAgglomerative(3, metric="precomputed", linkage="average").fit(distances)
        learned = MahalanobisLearner().fit_transform(X, constraints=known)
        plain = KMeans(3, n_init=3, random_state=seed)
        scores["boosted"].append(adjusted_rand_score(y, tree.labels_))
        scores["Mahalanobis"].append(adjusted_rand_score(y, plain.fit_predict(learned)))
        scores["COP"].append(adjusted_rand_score(y, COPKMeans(3, random_state=seed).fit(X, constraints=known).labels_))
    assert np.mean(scores["boosted"]) > max(np.mean(scores["Mahalanobis"]), np.mean(scores["COP"]))


def test_a_full_matrix_of_a_hundred_columns_is_learned_from_five_thousand_pairs(seed):
    """In seconds: the number of steps is bounded, and a step is O(m d^2 + d^3)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(5, size=2000)
    X = rng.normal(size=(5, 100))[y] + rng.normal(size=(2000, 100))
    known = Constraints.sample(y, 5000, random_state=seed)
    model = MahalanobisLearner().fit(X, constraints=known)
    assert model.n_iter_ < 200
    assert np.linalg.eigvalsh(model.metric_matrix_)[0] > -1e-9
