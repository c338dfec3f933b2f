"""ConstrainedDensity against its definition in plain loops, and its kernel against every order of joins."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, HDBSCAN, OPTICS

from clew import ConstrainedDensity, Constraints
from clew.density._constrained_density import constrained_density, joined_regions
from clew.evaluation import same_partition
from tests.helpers import random_knowledge
from tests.reference.constrained_density import regions, split


def as_sets(labels):
    return sorted(sorted(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels[labels >= 0]))


def test_regions_match_reference(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(2, 14))
        base = rng.integers(-1, 3, size=n)
        known = random_knowledge(rng, n)
        closed = known.closure()
        found = joined_regions(base, closed)[closed.component_of]
        expected, _ = regions(base.tolist(), known)
        assert as_sets(found) == sorted(sorted(rows) for rows in expected)


def test_parts_match_reference(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        n = int(rng.integers(4, 13))
        X = rng.normal(size=n)
        base = rng.integers(-1, 2, size=n)
        known = random_knowledge(rng, n)
        found = constrained_density(X[:, None], base, known.closure(), n, "euclidean")
        expected = split(X.tolist(), base.tolist(), known, n)
        assert as_sets(found.clusters) == sorted(sorted(rows) for rows in expected)


@pytest.mark.parametrize("clusterer", [HDBSCAN(copy=True), OPTICS(min_samples=5), DBSCAN(eps=0.5)])
def test_without_constraints_the_labels_are_those_of_the_clusterer(clusterer, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 2)) + 6 * rng.integers(2, size=(150, 1))
    expected = clusterer.fit_predict(X)
    assert ConstrainedDensity(clusterer).fit(X).labels_.tolist() == expected.tolist()


def test_knowledge_that_the_clusterer_satisfies_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 2)) + 8 * rng.integers(2, size=(120, 1))
    plain = ConstrainedDensity().fit(X).labels_
    known = Constraints.sample(np.where(plain < 0, -1, plain), 30, random_state=seed)
    model = ConstrainedDensity().fit(X, constraints=known)
    assert same_partition(model.labels_, plain)
