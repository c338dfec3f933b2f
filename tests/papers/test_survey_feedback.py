"""Facts that the survey (Truong and Battiti 2013, section 4) states about clustering with user feedback."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from clew import Constraints, FeedbackNaiveBayes
from clew.evaluation import normalized_mutual_info_score
from clew.mixture._feedback_naive_bayes import pair_gradient
from tests.helpers import benchmark_data
from tests.reference.feedback_naive_bayes import divergence


def test_weights_along_the_gradient_part_a_cannot_link_and_join_a_must_link(seed):
    """Eq. 64 to 67: the distance of a pair grows along the gradient and shrinks against it."""
    X = np.random.default_rng(seed).integers(1, 6, size=(2, 9)).astype(float)
    gradient = pair_gradient(sparse.csr_array(X), np.array([[0, 1]])).toarray()[0]
    now = divergence(*X, np.ones(9))
    assert divergence(*X, 1 + 0.1 * gradient) > now > divergence(*X, np.maximum(1 - 0.1 * gradient, 0))


def test_a_word_with_weight_zero_says_nothing(seed):
    """Eq. 68: the exponent of such a word is 0."""
    X = np.random.default_rng(seed).integers(0, 6, size=(20, 5)).astype(float)
    model = FeedbackNaiveBayes(2, random_state=seed).fit(X)
    model.word_weights_ = np.array([1.0, 0, 1, 1, 1])
    other = X.copy()
    other[:, 1] = 99
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(other))


@pytest.mark.benchmark_data
def test_few_constraints_improve_the_clusters_of_newsgroups():
    """Section 4: with few constraints, the clusters are much better than without feedback. Word weights have a part."""
    texts, y = benchmark_data().load("news_sim3")
    counts = CountVectorizer(stop_words="english", min_df=3, max_df=0.5).fit_transform(texts)
    scores = []
    for seed in range(5):
        known = Constraints.sample(y, 200, balance=0.5, random_state=seed)
        model = FeedbackNaiveBayes(3, n_init=1, random_state=seed)
        fits = [model.fit(counts).labels_, model.fit(counts, constraints=known).labels_]
        fits.append(model.set_params(step=0).fit(counts, constraints=known).labels_)
        scores.append([normalized_mutual_info_score(y, labels) for labels in fits])
    without, with_feedback, start_alone = np.mean(scores, axis=0)
    assert with_feedback > start_alone > without
    assert with_feedback > 2 * without
