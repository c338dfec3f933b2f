"""The mixture with soft groups against the sum over all labels of groups and all choices of rows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from clew import ConstrainedGaussianMixture, Constraints, SoftGroupMixture

GROUPS = {
    "one group": [[0.5], [0.9], [0.0], [1.0], [0.0]],
    "polytree": [[0.9, 0], [0.4, 0.5], [0, 0.8], [0, 0], [0.3, 0]],
    "loop": [[0.6, 0.3], [0.2, 0.7], [0.5, 0], [0, 0.5], [0, 0]],
    "whole rows": [[0.5, 0.5], [1, 0], [0, 0.2], [0, 0], [0, 0]],
}


def brute_force(X, groups, model):
    """Law 2004, Eq. 1 to 4, summed over every label of every group and every choice of every row."""
    n_rows, n_groups = groups.shape
    k = len(model.weights_)
    density = np.array(
        [multivariate_normal(m, c).pdf(X) for m, c in zip(model.cluster_centers_, model.covariances_, strict=True)]
    ).T
    free = 1 - groups.sum(axis=1)
    total, shares = 0.0, np.zeros((n_rows, k))
    for labels in product(range(k), repeat=n_groups):
        prior = np.prod([model.weights_[w] for w in labels])
        rows = free[:, None] * model.weights_ * density
        for group, label in enumerate(labels):
            rows[:, label] += groups[:, group] * density[:, label]
        value = prior * np.prod(rows.sum(axis=1))
        total += value
        shares += value * rows / rows.sum(axis=1, keepdims=True)
    return np.log(total), shares / total


@pytest.mark.parametrize("name", GROUPS)
def test_posteriors_and_likelihood_are_the_sum_over_all_labels(name, seed):
    X = np.random.default_rng(seed).normal(size=(5, 2))
    groups = np.array(GROUPS[name], dtype=float)
    for weight in (1.0, "auto"):
        model = SoftGroupMixture(2, reg_covar=0.1, n_init=1, knowledge_weight=weight, random_state=seed)
        model.fit(X, constraints=Constraints(soft_groups=groups))
        log_likelihood, shares = brute_force(X, groups, model)
        np.testing.assert_allclose(model.probabilities_, shares, atol=1e-6)
        assert model.n_loopy_parts_ == 0
        if weight == 1.0:
            assert model.objective_ == pytest.approx(-log_likelihood, abs=1e-6)


def test_a_pair_is_an_anchor_and_a_partner(seed):
    """A star of pairs is a group in which the anchor has strength 1."""
    X = np.random.default_rng(seed).normal(size=(6, 2))
    pairs = Constraints([(0, 1), (2, 0)], must_link_confidence=[0.8, 0.6], n_samples=6)
    group = Constraints(soft_groups=[[1], [0.8], [0.6], [0], [0], [0]])
    first, second = (SoftGroupMixture(2, n_init=1, random_state=seed).fit(X, constraints=one) for one in (pairs, group))
    np.testing.assert_allclose(first.probabilities_, second.probabilities_, atol=1e-9)
    assert first.objective_ == pytest.approx(second.objective_)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_strengths_of_one_are_hard_and_strengths_of_zero_say_nothing(kind, seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 3])
    member = np.zeros((40, 2))
    member[[0, 1, 2], 0] = member[[20, 21, 39], 1] = 1
    hard = ConstrainedGaussianMixture(2, covariance_type=kind, init=X[[0, 20]]).fit(
        X, constraints=Constraints(must_groups=np.where(member.any(axis=1), member.argmax(axis=1), -1))
    )
    soft = SoftGroupMixture(2, covariance_type=kind, init=X[[0, 20]])
    found = soft.fit(X, constraints=Constraints(soft_groups=member))
    np.testing.assert_allclose(found.probabilities_, hard.probabilities_, atol=1e-9)
    assert found.objective_ == pytest.approx(hard.objective_)
    nearly = soft.fit(X, constraints=Constraints(soft_groups=member * (1 - 1e-9)))
    np.testing.assert_allclose(nearly.probabilities_, hard.probabilities_, atol=1e-4)
    plain = ConstrainedGaussianMixture(2, covariance_type=kind, init=X[[0, 20]]).fit(X)
    found = soft.fit(X, constraints=Constraints(soft_groups=0 * member))
    np.testing.assert_allclose(found.probabilities_, plain.probabilities_, atol=1e-9)
    hardly = soft.fit(X, constraints=Constraints(soft_groups=1e-9 * member))
    # The labels of the two groups are drawn too: two of 42 draws that determine the weights (Eq. 7).
    np.testing.assert_allclose(hardly.probabilities_, plain.probabilities_, atol=1e-2)


def test_certain_and_empty_groups_lead_to_the_same_starts_as_hard_ones_and_none(seed):
    """The limits hold for drawn starts too, not only from given centres."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(20, 2)), rng.normal(size=(20, 2)) + 3])
    member = np.zeros((40, 2))
    member[[0, 1, 2], 0] = member[[20, 21, 39], 1] = 1
    column = np.where(member.any(axis=1), member.argmax(axis=1), -1)
    soft, hard = (one(3, n_init=4, random_state=seed) for one in (SoftGroupMixture, ConstrainedGaussianMixture))
    for strengths, groups in ((member, column), (0 * member, np.full(40, -1))):
        found = soft.fit(X, constraints=Constraints(soft_groups=strengths)).probabilities_
        np.testing.assert_allclose(
            found, hard.fit(X, constraints=Constraints(must_groups=groups)).probabilities_, atol=1e-9
        )


@pytest.mark.parametrize(
    ("strengths", "weight"), [([0.7, 0.7], 0.37), ([0.5], 0.25), ([0.8, 0.6], (0.52 + 0.28) / 2), ([1 - 1e-12], 1.0)]
)
def test_the_automatic_weight_is_less_for_doubtful_strengths(strengths, weight):
    """The mean of 1 - 3 s (1 - s); rows that are certainly joined count once."""
    densities, log_weights = np.random.default_rng(0).normal(size=(6, 2)), np.log([0.4, 0.6])
    groups = np.zeros((6, 1))
    groups[: len(strengths), 0] = strengths
    known = Constraints(must_link=[(4, 5)], soft_groups=groups)
    found = SoftGroupMixture(2)._knowledge(known, np.arange(2)).expect(densities.copy(), log_weights)
    doubtful = len(strengths)
    np.testing.assert_allclose(found.weighted[:doubtful], weight * found.shares[:doubtful])
    np.testing.assert_allclose(found.weighted[doubtful:], found.shares[doubtful:])
    single = densities[4] + densities[5] + log_weights
    np.testing.assert_allclose(found.shares[4], np.exp(single - np.logaddexp.reduce(single)))


def test_the_weight_of_knowledge_multiplies_the_rows_that_have_it(seed):
    rng = np.random.default_rng(seed)
    densities, log_weights = rng.normal(size=(12, 2)), np.log([0.4, 0.6])
    known = Constraints(soft_groups=[[0.7]] * 4 + [[0.0]] * 8)
    once, thrice = (
        SoftGroupMixture(2, knowledge_weight=weight)
        ._knowledge(known, np.arange(2))
        .expect(densities.copy(), log_weights)
        for weight in (1.0, 3.0)
    )
    free = np.logaddexp.reduce(densities[4:] + log_weights, axis=1).sum()
    assert thrice.log_likelihood - free == pytest.approx(3 * (once.log_likelihood - free))
    np.testing.assert_allclose(thrice.shares, once.shares)
    np.testing.assert_allclose(thrice.weighted[:4], 3 * once.shares[:4])
    np.testing.assert_allclose(thrice.weighted[4:], once.shares[4:])
    np.testing.assert_allclose(
        thrice.counts - once.shares[4:].sum(axis=0), 3 * (once.counts - once.shares[4:].sum(axis=0))
    )
