"""DistBoost: triplets alone, contradictions, routing, and clusterers that take its distances."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline

from clew import ConstrainedAgglomerative, ConstrainedKMedoids, Constraints, DistBoost
from clew.evaluation import adjusted_rand_score, same_partition

# Two flat groups, one above the other; k-means splits them at the middle of their width.
RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
X = np.column_stack([RNG.uniform(0, 20, size=60), 3 * Y + RNG.normal(scale=0.3, size=60)])
KNOWN = Constraints.sample(Y, 30, balance=0.5, random_state=0)


@pytest.mark.parametrize(
    "clusterer",
    [
        ConstrainedKMedoids(2, metric="precomputed", random_state=0),
        ConstrainedAgglomerative(2, metric="precomputed", linkage="average"),
    ],
)
def test_medoids_and_agglomeration_take_its_distances(clusterer):
    assert not same_partition(KMeans(2, n_init=3, random_state=0).fit_predict(X), Y)
    distances = DistBoost(2, random_state=0).fit(X, constraints=KNOWN).pairwise(X)
    assert same_partition(clusterer.fit(distances).labels_, Y)


def test_new_rows_have_distances_to_old_ones():
    model = DistBoost(2, random_state=0).fit(X, constraints=KNOWN)
    low, high = X[Y == 0], X[Y == 1]
    new = [[10.0, 3.0]]
    assert model.pairwise(new, low).min() > model.pairwise(new, high).max()


def test_constraints_are_routed_through_a_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        learner = DistBoost(2, random_state=0).set_fit_request(constraints=True)
        chain = make_pipeline(learner, KMeans(2, n_init=3, random_state=0))
        assert same_partition(chain.fit(X, constraints=KNOWN).predict(X), Y)


def test_triplets_lead_to_mixtures_that_agree_with_them():
    """Of two mixtures that fit the rows equally, the one that agrees with the triplets gets the weight."""
    corners = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 8, axis=0)
    rows = corners + np.random.default_rng(1).normal(scale=0.1, size=(32, 2))
    for near, far in ((16, 8), (8, 16)):  # the other side is nearer than the other height, and the other way round
        known = Constraints(triplets=[(a, a + near, a + far) for a in range(8)], n_samples=32)
        distances = DistBoost(2, unlabelled_share=0.5, random_state=0).fit(rows, constraints=known).pairwise(rows)
        assert np.diagonal(distances, near)[:8].mean() < 0.1
        assert np.diagonal(distances, far)[:8].mean() > 0.9


def test_contradictory_pairs_are_repaired_for_the_mixtures_and_all_count():
    wrong = KNOWN | Constraints(cannot_link=KNOWN.must_link[:1], n_samples=60)
    model = DistBoost(2, random_state=0).fit(X, constraints=wrong)
    labels = KMeans(2, n_init=3, random_state=0).fit_predict(model.transform(X))
    assert adjusted_rand_score(Y, labels) > 0.9
