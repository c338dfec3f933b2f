"""What MahalanobisLearner refuses, and how it works with other estimators."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from clew import Constraints, MahalanobisLearner, PCKMeans
from clew.evaluation import same_partition
from clew.exceptions import ConstraintError, DataError, ParameterError

# Two groups that differ in the second column, and a first column that says nothing and is a hundred times wider.
RNG = np.random.default_rng(5)
Y = np.arange(60) % 2
X = np.column_stack([100 * RNG.normal(size=60), 3 * Y + RNG.normal(0, 0.3, 60), RNG.normal(size=60)])
KNOWN = Constraints.sample(Y, 20, balance=0.5, random_state=0)


@pytest.mark.parametrize("metric", ["full", "diagonal"])
def test_k_means_finds_the_groups_in_the_learned_space(metric):
    model = MahalanobisLearner(metric=metric).fit(X, constraints=KNOWN)
    plain, learned = (KMeans(2, random_state=0, n_init=3).fit_predict(rows) for rows in (X, model.transform(X)))
    assert not same_partition(plain, Y)
    assert same_partition(learned, Y)
    assert model.transform(X).var(axis=0).sum() == pytest.approx(X.var(axis=0).sum())


def test_constraints_are_routed_through_a_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        learner = MahalanobisLearner().set_fit_request(constraints=True)
        clusterer = PCKMeans(2, random_state=0).set_fit_request(constraints=True)
        assert same_partition(make_pipeline(learner, clusterer).fit_predict(X, constraints=KNOWN), Y)


def test_triplets_alone_are_enough():
    same, other = (np.array([np.flatnonzero((Y[row] == Y) == word)[5] for row in range(10)]) for word in (True, False))
    rows = np.setdiff1d(np.arange(10), same)
    known = Constraints(triplets=np.column_stack([rows, same[rows], other[rows]]), n_samples=60)
    learned = MahalanobisLearner().fit(X, constraints=known).transform(X)
    assert same_partition(KMeans(2, random_state=0, n_init=3).fit_predict(learned), Y)
    with pytest.raises(ConstraintError, match=r"triplets\[0\] names row 3 twice"):
        MahalanobisLearner().fit(X, constraints={"triplets": [(3, 3, 4)]})


def test_without_constraints_distances_stay_as_they_are():
    model = MahalanobisLearner().fit(X)
    assert (model.transform(X) == X).all()
    assert (model.objective_, model.n_iter_) == (0.0, 1)


@pytest.mark.parametrize("metric", ["full", "diagonal"])
def test_pairs_that_are_not_enough_are_refused(metric):
    learner = MahalanobisLearner(metric=metric)
    with pytest.raises(ConstraintError, match="holds must-links but no cannot-links, and MahalanobisLearner learns"):
        learner.fit(X, constraints={"must_link": [(0, 2)]})
    with pytest.raises(ConstraintError, match="holds cannot-links but no must-links"):
        learner.fit(X, constraints={"cannot_link": [(0, 1)]})
    with pytest.raises(DataError, match="cannot-linked rows are equal in X"):
        learner.fit([[0.0], [0.0], [1.0]], constraints={"cannot_link": [(0, 1)], "must_link": [(0, 2)]})
    few = {"must_link": [(0, 2)], "cannot_link": [(0, 1)]}
    learner.fit(X, constraints=few)
    flat = np.column_stack([X[:, 0], np.where(np.arange(60) == 1, 1.0, 0.0)])
    with pytest.raises(ConstraintError, match=r"differ in 1 of 2 directions .* too few must-links to learn from"):
        learner.set_params(regularization=0).fit(flat, constraints=few)
    with pytest.raises(ParameterError, match="regularization=-1"):
        learner.set_params(regularization=-1).fit(X)


def test_a_search_that_is_cut_short_says_so():
    with pytest.warns(
        ConvergenceWarning, match=r"stopped after 1 steps with an objective that may be .* Raise max_iter"
    ):
        MahalanobisLearner(max_iter=1, tol=1e-9).fit(X, constraints=KNOWN)


def test_columns_of_one_value_and_very_different_units_are_no_problem():
    rows = np.column_stack([X * [1e9, 1e-9, 1.0], np.ones(60)])
    for metric in ("full", "diagonal"):
        learned = MahalanobisLearner(metric=metric).fit(rows, constraints=KNOWN).transform(rows)
        assert same_partition(KMeans(2, random_state=0, n_init=3).fit_predict(learned), Y)
