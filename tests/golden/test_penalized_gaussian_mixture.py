"""The mixture with weighted pairs against the sum over all assignments, and its limits."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from clew import ConstrainedGaussianMixture, Constraints, PenalizedGaussianMixture

KNOWN = {
    "must_link": [(0, 1), (1, 2), (0, 2), (3, 4)],
    "must_link_confidence": [0.9, 0.7, 0.4, 1.0],
    "cannot_link": [(0, 3), (2, 5)],
    "cannot_link_confidence": [0.8, 1.0],
}


def brute_force(X, model):
    """Survey, Eq. 16, with the posterior given the rows: log-likelihood, shares, and how likely pairs are together."""
    k = len(model.weights_)
    pairs = [*zip(KNOWN["must_link"], KNOWN["must_link_confidence"], [1] * 4, strict=True)]
    pairs += zip(KNOWN["cannot_link"], KNOWN["cannot_link_confidence"], [0] * 2, strict=True)
    density = [
        multivariate_normal(m, c).pdf(X) for m, c in zip(model.cluster_centers_, model.covariances_, strict=True)
    ]
    total, omega, shares, together = 0.0, 0.0, np.zeros((len(X), k)), np.zeros(len(pairs))
    for z in product(range(k), repeat=len(X)):
        prior = np.prod([model.weights_[j] for j in z])
        for (a, b), c, kind in pairs:
            agrees = (z[a] == z[b]) == kind
            if c == 1:
                prior *= agrees
            elif kind == 1:
                prior *= (c / (1 - c)) ** (z[a] == z[b])
            else:
                prior *= ((1 - c) / c) ** (z[a] == z[b])
        value = prior * np.prod([density[j][i] for i, j in enumerate(z)])
        omega, total = omega + prior, total + value
        shares[np.arange(len(X)), z] += value
        together += [value * (z[a] == z[b]) for (a, b), _, _ in pairs]
    return np.log(total / omega), shares / total, together / total


def test_posteriors_and_likelihood_are_the_sum_over_all_assignments(seed):
    X = np.random.default_rng(seed).normal(size=(6, 2))
    model = PenalizedGaussianMixture(2, reg_covar=0.1, n_init=2, random_state=seed).fit(X, constraints=KNOWN)
    log_likelihood, shares, together = brute_force(X, model)
    assert model.objective_ == pytest.approx(-log_likelihood, abs=1e-7)
    np.testing.assert_allclose(model.probabilities_, shares, atol=1e-7)
    np.testing.assert_allclose([*model.must_link_posterior_, *model.cannot_link_posterior_], together, atol=1e-7)


def test_certain_pairs_are_hard_and_even_odds_say_nothing(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(15, 2)), rng.normal(size=(15, 2)) + 3])
    pairs = {"must_link": [(0, 1), (2, 20)], "cannot_link": [(0, 29), (3, 4)]}
    init = X[[0, 29]]
    hard = ConstrainedGaussianMixture(2, sampling="rows", init=init).fit(X, constraints=pairs)
    soft = PenalizedGaussianMixture(2, init=init)
    found = soft.fit(X, constraints=pairs)
    np.testing.assert_allclose(found.probabilities_, hard.probabilities_, atol=1e-6)
    even = Constraints(**pairs, must_link_confidence=0.5, cannot_link_confidence=0.5, n_samples=30)
    plain = ConstrainedGaussianMixture(2, init=init)
    knowledge = soft._knowledge(even, np.arange(2))
    densities = rng.normal(size=(30, 2))
    first = knowledge.expect(densities.copy(), np.log([0.3, 0.7]))
    second = plain._knowledge(Constraints(n_samples=30), np.arange(2)).expect(densities.copy(), np.log([0.3, 0.7]))
    np.testing.assert_allclose(first.shares, second.shares)
    assert first.log_likelihood == pytest.approx(second.log_likelihood)
