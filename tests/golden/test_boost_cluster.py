"""BoostCluster against plain loops, and the bound of its paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.cluster import AgglomerativeClustering
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from clew import BoostCluster, Constraints
from clew.evaluation import same_partition
from clew.exceptions import ConstraintError, DataError, ParameterError
from tests.reference import boost_cluster as reference


def halves(rows):
    """Above or below the mean in the first direction, and above or below it in the last."""
    rows = np.asarray(rows)
    return (2 * (rows[:, 0] > 0.1) + (rows[:, -1] > 0.05)).tolist()


class Halves(BaseEstimator):
    def fit_predict(self, X, y=None):
        return np.array(halves(X))


def some_rows(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=16)
    y[:4] = [0, 0, 1, 1]
    X = rng.normal(size=(16, 4)) + rng.normal(size=(3, 4))[y]
    drawn = Constraints.sample(y, 16, balance=0.5, random_state=int(seed))
    known = Constraints(
        np.sort(drawn.must_link, axis=1), np.sort(drawn.cannot_link, axis=1),
        must_link_confidence=rng.choice([0.5, 1.0], len(drawn.must_link)),
        cannot_link_confidence=rng.choice([0.5, 1.0], len(drawn.cannot_link)), n_samples=16,
    )  # fmt: skip
    return X, known


@pytest.mark.parametrize("draw", range(20))
def test_rounds_are_those_of_the_plain_loops(draw, seed):
    X, known = some_rows(100 * seed + draw)
    model = BoostCluster(clusterer=Halves(), max_iter=6).fit(X, constraints=known)
    labels, history, weights = reference.boost_cluster(
        X.tolist(), [tuple(pair) for pair in known.must_link.tolist()], known.must_link_confidence.tolist(),
        [tuple(pair) for pair in known.cannot_link.tolist()], known.cannot_link_confidence.tolist(), halves, 6,
    )  # fmt: skip
    np.testing.assert_allclose(model.objective_history_, history, atol=1e-9)
    np.testing.assert_allclose(model.round_weights_, weights, atol=1e-9)
    assert model.labels_.tolist() == (halves(X - X.mean(axis=0)) if labels is None else labels)


@given(seed=st.integers(0, 2**16))
def test_the_objective_falls_as_the_bound_says(seed):
    """A round of weight w multiplies L by (a e^-w + 1 - a)(b e^w + 1 - b), below 1 at the best w > 0."""
    X, known = some_rows(seed)
    model = BoostCluster(3, random_state=0, max_iter=8).fit(X, constraints=known)
    assert (model.round_weights_ > 0).all()
    assert (np.diff(model.objective_history_) < 0).all()
    assert len(model.objective_history_) == len(model.round_weights_) + 1
    assert np.allclose(model.components_ @ model.components_.T, np.eye(len(model.components_)))


def test_any_clusterer_or_pipeline_learns_from_constraints():
    """Single linkage follows the wide column, unless answers say that the second one matters."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = np.column_stack([np.where(np.arange(80) < 40, -8.0, 8.0) + rng.normal(size=80), 4 * y + rng.normal(0, 0.4, 80)])
    known = Constraints.sample(y, 40, balance=0.5, random_state=1)
    single = AgglomerativeClustering(2, linkage="single")
    assert not same_partition(single.fit_predict(X), y)
    for clusterer in (None, single, make_pipeline(StandardScaler(), single)):
        assert same_partition(BoostCluster(2, clusterer=clusterer, random_state=0).fit(X, constraints=known).labels_, y)


def test_wrong_input_is_refused():
    X = [[0.0], [0.0], [1.0]]
    with pytest.raises(
        ConstraintError, match="holds must-links but no cannot-links, and BoostCluster learns from both"
    ):
        BoostCluster(2).fit(X, constraints={"must_link": [(0, 1)]})
    with pytest.raises(DataError, match="cannot-linked rows are equal in X"):
        BoostCluster(2).fit(X, constraints={"cannot_link": [(0, 1)], "must_link": [(0, 2)]})
    with pytest.raises(ParameterError, match="clusterer=3 in BoostCluster: expected None or an estimator"):
        BoostCluster(2, clusterer=3).fit(X)
