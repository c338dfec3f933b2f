"""The mixture of word distributions against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from clew import Constraints, FeedbackNaiveBayes
from clew.mixture._feedback_naive_bayes import StatedPairs, multinomial_em, pair_gradient
from tests.reference import feedback_naive_bayes as reference


def counts(seed, n_rows=8, n_words=5):
    X = np.random.default_rng(seed).integers(0, 4, size=(n_rows, n_words)).astype(float)
    X[:, 0] += 1  # no document is empty
    return X


@pytest.mark.parametrize("n_rounds", [1, 2, 5])
def test_rounds_are_those_of_the_loops(n_rounds, seed):
    X, rng = counts(seed), np.random.default_rng(seed)
    shares, word_weights = rng.dirichlet(np.ones(3), size=len(X)), rng.uniform(0, 2, X.shape[1])
    found = multinomial_em(
        sparse.csr_array(X),
        sparse.csr_array(X * word_weights),
        np.full(len(X), -1),
        shares,
        smoothing=0.5,
        max_iter=n_rounds,
        tol=0,
    )
    weights, words, posteriors, history = reference.em(X.tolist(), shares.tolist(), word_weights, 0.5, n_rounds)
    n_done = len(found.history)
    if n_done < n_rounds:  # the objective rose, which ends a run
        weights, words, posteriors, history = reference.em(X.tolist(), shares.tolist(), word_weights, 0.5, n_done)
    np.testing.assert_allclose(np.exp(found.log_weights), weights)
    np.testing.assert_allclose(np.exp(found.log_words), words)
    np.testing.assert_allclose(found.shares, posteriors, atol=1e-12)
    np.testing.assert_allclose(found.history, history)


def test_the_gradient_is_that_of_the_divergence(seed):
    """The divergence is linear in the weights, so that a unit step of one weight is its derivative."""
    X = counts(seed)
    pairs = np.array([(0, 1), (2, 5), (3, 3)])
    found = pair_gradient(sparse.csr_array(X), pairs).toarray()
    for row, (one, two) in zip(found, pairs, strict=True):
        parts = [reference.divergence(X[one], X[two], unit) for unit in np.eye(X.shape[1])]
        np.testing.assert_allclose(row, parts, atol=1e-12)
    assert (found >= 0).all()
    np.testing.assert_allclose(found[2], 0, atol=1e-12)


def test_a_round_of_feedback_raises_for_cannot_links_and_lowers_for_must_links():
    X = sparse.csr_array(np.array([[3.0, 0, 1], [0, 2.0, 1], [1.0, 1, 1]]))
    labels = np.array([0, 0, 1])
    pairs = StatedPairs(Constraints([(0, 2), (2, 0)], [(0, 1)], must_link_confidence=[0.5, 0.25], n_samples=3))
    expected = (
        pair_gradient(X, np.array([[0, 1]])).toarray()[0] - 0.5 * pair_gradient(X, np.array([[0, 2]])).toarray()[0]
    )
    np.testing.assert_allclose(pairs.direction(X, labels), expected)
    assert pairs.price(labels) == 1.5
    assert pairs.price(np.array([0, 1, 0])) == 0


def test_without_feedback_it_is_the_plain_mixture(seed):
    """Weights stay 1, and a fit that was given no pairs equals one whose pairs hold anyway."""
    X = counts(seed, 30)
    plain = FeedbackNaiveBayes(3, random_state=seed, n_init=1).fit(X)
    assert (plain.word_weights_ == 1).all()
    assert plain.n_feedback_rounds_ == 0
    assert (np.diff(plain.objective_history_) <= 1e-9).all()
    *_, history = reference.em(X.tolist(), plain.probabilities_.tolist(), [1] * X.shape[1], 1.0, 1)
    assert history[0] <= plain.objective_ + 1e-9
    _, total = reference.expect(X.tolist(), plain.weights_, plain.word_probabilities_, [1] * X.shape[1])
    assert plain.objective_ == pytest.approx(-total - np.log(plain.word_probabilities_).sum())


def test_known_classes_are_observed(seed):
    X = counts(seed, 12)
    known = np.array([5, 5, 2, 2, *[-1] * 8])
    model = FeedbackNaiveBayes(3, random_state=seed).fit(X, constraints=known)
    assert model.labels_[:4].tolist() == [5, 5, 2, 2]
    assert (model.probabilities_[:4].max(axis=1) == 1).all()
