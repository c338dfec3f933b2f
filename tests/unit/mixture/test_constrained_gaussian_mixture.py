"""Mixtures under hard constraints: bad input, degenerate components and the number of clusters."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from clew import ConstrainedGaussianMixture, Constraints
from clew.active import DIFFERENT
from clew.active._knowledge import Knowledge
from clew.exceptions import (
    ContradictoryConstraintsError,
    DataError,
    FewerClustersWarning,
    InfeasibleConstraintsError,
    ParameterError,
)
from clew.mixture._constrained_gaussian_mixture import as_closed
from clew.mixture._gaussians import estimate
from tests.helpers import random_knowledge

X, Y = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)


def test_contradictory_certain_pairs_are_refused_with_their_chain():
    with pytest.raises(ContradictoryConstraintsError, match=r"separates rows 0 and 2.*\(0-1-2\)"):
        ConstrainedGaussianMixture(2).fit(X, constraints={"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 2)]})


def test_infeasible_pairs_are_refused_with_the_rows_that_prove_it():
    with pytest.raises(InfeasibleConstraintsError, match="Rows 0, 1 and 2 are pairwise cannot-linked"):
        ConstrainedGaussianMixture(2).fit(X, constraints={"cannot_groups": [0, 0, 0] + [-1] * 87})


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_singular_covariance_is_refused_or_held_up_and_named(kind):
    line = np.column_stack([X[:, 0], np.zeros(90)]) if kind != "spherical" else np.zeros((90, 2))
    with pytest.raises(DataError, match=r"covariance of component 0 is singular.*Raise reg_covar"):
        ConstrainedGaussianMixture(2, covariance_type=kind, reg_covar=0, random_state=0).fit(line)
    with pytest.warns(FewerClustersWarning) if kind == "spherical" else nullcontext():
        model = ConstrainedGaussianMixture(2, covariance_type=kind, random_state=0).fit(line)
    assert model.singular_components_.tolist() == [0, 1]
    assert ConstrainedGaussianMixture(3, covariance_type=kind, random_state=0).fit(X).singular_components_.size == 0


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_component_without_rows_keeps_its_mean_and_covariance(kind):
    shares = np.eye(3)[Y]
    before = estimate(X, shares, kind, 1e-6, None)
    dead = shares[:, :2].sum(axis=1, keepdims=True) * [1, 0, 0] + shares[:, 2:] * [0, 0, 1]
    after = estimate(X, dead, kind, 1e-6, before)
    np.testing.assert_array_equal(after.means[1], before.means[1])
    if kind != "tied":
        np.testing.assert_array_equal(after.covariances[1], before.covariances[1])
    assert np.isfinite(after.log_densities(X)).all()


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_components_without_rows_are_named_and_nothing_else_is_said(kind):
    """Six components of which three have no rows: EM ends at once, and starts are compared without warnings."""
    places = np.repeat([[0.0, 0], [10, 0], [0, 10]], 10, axis=0)
    model = ConstrainedGaussianMixture(6, covariance_type=kind, n_init=2, tol=0, random_state=0)
    with pytest.warns(FewerClustersWarning, match="found 3 of 6 clusters: X has 3 distinct rows") as said:
        model.fit(places, constraints={"must_link": [(0, 1)]})
    assert len(said) == 1
    assert sorted(model.cluster_sizes_) == [0, 0, 0, 10, 10, 10]


def test_units_that_are_too_small_or_too_large_are_named():
    with pytest.warns(FewerClustersWarning, match=r"no column of X has a variance above reg_covar=1e-06. Scale X"):
        ConstrainedGaussianMixture(3, random_state=0).fit(1e-8 * X)
    with pytest.raises(DataError, match=r"the sum of 90 squares is too large for float64 numbers. Scale X"):
        ConstrainedGaussianMixture(3, random_state=0).fit(2e152 * X)
    assert sorted(ConstrainedGaussianMixture(3, random_state=0).fit(2e150 * X).cluster_sizes_) == [30, 30, 30]


def test_auto_finds_the_number_and_skips_those_that_are_infeasible():
    assert ConstrainedGaussianMixture("auto", n_init=1, random_state=0).fit(X).n_clusters_ == 3
    known = {"cannot_groups": np.where(np.arange(90) < 5, 0, -1)}
    model = ConstrainedGaussianMixture("auto", covariance_type="spherical", n_init=1, random_state=0)
    assert model.fit(X, constraints=known).n_clusters_ >= 5
    with pytest.raises(InfeasibleConstraintsError):
        model.fit(X, constraints={"cannot_groups": np.zeros(90, dtype=int)})
    with pytest.raises(ParameterError, match="init is an array, which fixes the number"):
        ConstrainedGaussianMixture("auto", init=X[:3]).fit(X)


def test_parts_beyond_the_limit_are_approximate_and_counted():
    rows = range(12)
    known = {"cannot_link": [(i, j) for i in rows for j in range(i) if Y[i] != Y[j]]}
    exact = ConstrainedGaussianMixture(3, n_init=1, random_state=0).fit(X, constraints=known)
    loopy = ConstrainedGaussianMixture(3, n_init=1, exact_limit=0, random_state=0).fit(X, constraints=known)
    assert loopy.n_loopy_parts_ > 0
    assert exact.n_exact_parts_ + exact.n_loopy_parts_ == loopy.n_exact_parts_ + loopy.n_loopy_parts_
    together = [model.probabilities_ @ model.probabilities_.T for model in (loopy, exact)]  # clusters have no order
    np.testing.assert_allclose(*together, atol=0.05)


def test_pairs_below_min_confidence_are_left_out():
    known = Constraints(cannot_link=[(0, 1)], cannot_link_confidence=[0.4], n_samples=90)
    model = ConstrainedGaussianMixture(3, min_confidence=0.5, random_state=0).fit(X, constraints=known)
    np.testing.assert_array_equal(model.probabilities_, model.fit(X).probabilities_)


def test_constraints_from_a_closure_have_the_same_closure(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        known = random_knowledge(rng, 9)
        closed = known.closure()
        again = as_closed(closed, known).closure()
        np.testing.assert_array_equal(again.component_of, closed.component_of)
        np.testing.assert_array_equal(again.labels, closed.labels)
        np.testing.assert_array_equal(apart(again), apart(closed))


def apart(closed):
    """Which rows are separated, as a matrix."""
    view = Knowledge(closed)
    return [[view.relation(one, two) is DIFFERENT for one in range(9)] for two in range(9)]
