"""Densities of rows that are left out, against components that are estimated again without each row."""

from __future__ import annotations

import numpy as np
import pytest

from clew import ConstrainedGaussianMixture, Constraints
from clew.mixture._gaussians import estimate
from clew.solvers.inference import IMPOSSIBLE


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_every_row_is_scored_by_components_estimated_without_it(kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    shares = rng.dirichlet([0.5, 0.5], size=20) * rng.uniform(0.3, 3, size=(20, 1))
    found = estimate(X, shares, kind, 0, None).left_out_log_densities(X, shares)
    for row in range(20):
        others = np.delete(np.arange(20), row)
        again = estimate(X[others], shares[others], kind, 0, None).log_densities(X[row : row + 1])[0]
        np.testing.assert_allclose(found[row], again, rtol=1e-9)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_component_without_other_rows_is_impossible(kind, seed):
    X = np.random.default_rng(seed).normal(size=(12, 3))
    shares = np.eye(2)[[1] + [0] * 11]
    found = estimate(X, shares, kind, 0.1, None).left_out_log_densities(X, shares)
    assert found[0, 1] == IMPOSSIBLE
    assert (found[:, 0] > IMPOSSIBLE).all()


def test_a_component_that_fits_a_few_rows_is_more_likely_and_not_preferred():
    """Five rows of four columns are nearly in a plane. Without one of them, the other four say nothing about it."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 4)), rng.normal(size=(30, 4)) + 3])
    X[:5, 3] = X[:5, 0] - X[:5, 1] + X[:5, 2] + 1e-5 * rng.normal(size=5)
    model = ConstrainedGaussianMixture(2, reg_covar=1e-12)
    knowledge = model._knowledge(Constraints(n_samples=60), np.arange(2))
    right, spurious = (model._climbed(X, knowledge, np.eye(2)[(np.arange(60) < size).astype(int)]) for size in (30, 5))
    assert spurious.log_likelihood > right.log_likelihood
    assert spurious.left_out_log_likelihood(X, knowledge) < right.left_out_log_likelihood(X, knowledge)
