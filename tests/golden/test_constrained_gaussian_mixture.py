"""The mixture under hard constraints against the sum over all assignments, and against scikit-learn without any."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from clew import ConstrainedGaussianMixture, Constraints
from tests.reference import constrained_gaussian_mixture as reference

KNOWN = [
    {"must_link": [(0, 1), (1, 4)]},
    {"cannot_link": [(0, 1), (2, 5)]},
    {"must_link": [(0, 3)], "cannot_link": [(0, 1), (1, 2), (2, 3)]},
    {"cannot_groups": [0, 0, 0, -1, 1, 1]},
    {"must_link": [(4, 5)], "cannot_link": [(2, 4)], "labels": [0, 1, -1, -1, -1, -1]},
]


def full(model):
    """The covariance matrix of every component."""
    n_clusters, n_columns = model.cluster_centers_.shape
    kind, given = model.covariance_type, model.covariances_
    if kind == "tied":
        return [given] * n_clusters
    return [one if kind == "full" else np.eye(n_columns) * one for one in given]


@pytest.mark.parametrize("sampling", ["components", "rows"])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("known", KNOWN)
def test_posteriors_and_likelihood_are_the_sum_over_all_assignments(known, kind, sampling, seed):
    X = np.random.default_rng(seed).normal(size=(6, 2))
    model = ConstrainedGaussianMixture(
        3, covariance_type=kind, sampling=sampling, reg_covar=0.1, n_init=1, random_state=seed
    ).fit(X, constraints=known)
    constraints = Constraints.of(known, n_samples=6)
    closed = constraints.closure()
    groups = known.get("cannot_groups", [-1] * 6)
    cannot = [*known.get("cannot_link", [])]
    cannot += [(i, j) for i in range(6) for j in range(i) if groups[i] == groups[j] >= 0]
    fixed = {int(u): int(closed.labels[u]) for u in np.flatnonzero(closed.labels >= 0)}
    log_likelihood, shares = reference.expectation(
        X, model.weights_, model.cluster_centers_, full(model), closed.component_of.tolist(), cannot, fixed, sampling
    )
    assert model.objective_ == pytest.approx(-log_likelihood, abs=1e-8)
    np.testing.assert_allclose(model.probabilities_, shares, atol=1e-8)
    assert model.n_loopy_parts_ == 0


def test_the_weights_maximise_the_expected_log_prior(seed):
    """At convergence no other weights are better for the posterior of the last round."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(4, 1)), 4 + rng.normal(size=(3, 1))])
    cannot = [(0, 4), (1, 5), (0, 1)]
    model = ConstrainedGaussianMixture(
        2, covariance_type="tied", tol=1e-7, max_iter=2000, n_init=1, random_state=seed
    ).fit(X, constraints={"cannot_link": cannot})
    counts = model.probabilities_.sum(axis=0)

    def loss(free):
        weights = np.exp([free[0], 0]) / np.exp([free[0], 0]).sum()
        return reference.log_normaliser(weights, list(range(7)), cannot, {}, "components") - counts @ np.log(weights)

    best = minimize(loss, [0.0], tol=1e-12).x[0]
    assert np.log(model.weights_[0] / model.weights_[1]) == pytest.approx(best, abs=0.02)


@pytest.mark.parametrize("reg_covar", [0, 1e-6])
@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_without_constraints_it_is_the_mixture_of_scikit_learn(kind, reg_covar, seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(60, 3)), rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) + 2])
    init = X[[0, 99]]
    shares = np.eye(2)[KMeans(2, init=init, n_init=1, max_iter=100).fit(X).labels_]
    first = GaussianMixture(2, covariance_type=kind, reg_covar=reg_covar)
    first._initialize(X, shares)  # the M-step from the same clusters
    theirs = GaussianMixture(
        2, covariance_type=kind, reg_covar=reg_covar, max_iter=500,
        weights_init=first.weights_, means_init=first.means_, precisions_init=_precisions(first),
    ).fit(X)  # fmt: skip
    close = {"rtol": 1e-6, "atol": 1e-8}
    rounds = ConstrainedGaussianMixture(
        2, covariance_type=kind, init=init, reg_covar=reg_covar, max_iter=theirs.n_iter_, tol=1e-15
    )
    with pytest.warns(match="stopped at max_iter"):
        same = rounds.fit(X)
    np.testing.assert_allclose(same.cluster_centers_, theirs.means_, **close)
    np.testing.assert_allclose(same.covariances_, theirs.covariances_, **close)
    np.testing.assert_allclose(same.weights_, theirs.weights_, **close)
    np.testing.assert_allclose(same.probabilities_, theirs.predict_proba(X), **close)
    np.testing.assert_allclose(same.predict_proba(X), theirs.predict_proba(X), **close)
    assert same.bic_ == pytest.approx(theirs.bic(X))
    assert same.aic_ == pytest.approx(theirs.aic(X))


def _precisions(fitted):
    return _inverse(fitted.covariance_type, fitted.covariances_)


def _inverse(kind, covariances):
    return np.linalg.inv(covariances) if kind in ("full", "tied") else 1 / covariances
