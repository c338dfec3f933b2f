"""The mixture of word distributions: words of feedback, the passive strategy, bad input and sparse rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import clew
from clew import Constraints, FeedbackNaiveBayes
from clew.active import Feedback, Questions
from clew.evaluation import adjusted_rand_score, same_partition
from clew.exceptions import DataError, ParameterError

WORDS = ["space", "orbit", "church", "faith", "writes", "article", "lines", "host"]


def posts(seed, n_rows=60):
    """Posts about two topics; the style of their senders is far louder than the topics."""
    rng = np.random.default_rng(seed)
    topic, style = np.resize([0, 1], n_rows), np.resize([0, 0, 1, 1], n_rows)
    rates = np.where(topic[:, None] == [0, 0, 1, 1], 3.0, 0.2), np.where(style[:, None] == [0, 0, 1, 1], 8.0, 1.0)
    return rng.poisson(np.column_stack(rates)).astype(float), topic, style


def test_feedback_of_a_person_turns_the_clusters_to_the_topic(seed):
    """The user sees clusters by style, tells pairs by topic, and the words of the topic become important."""
    X, topic, style = posts(seed)
    model = FeedbackNaiveBayes(2, random_state=seed)
    assert adjusted_rand_score(style, model.fit(X).labels_) > 0.9
    questions = Questions(X, Feedback(), n_clusters=2, clusterer=model, random_state=seed)
    assert questions.ask() is None
    rng = np.random.default_rng(seed)
    while len(questions.answers) < 40:
        pair = tuple(rng.choice(60, 2, replace=False).tolist())
        questions.tell(pair, "same" if topic[pair[0]] == topic[pair[1]] else "different")
    model.fit(X, constraints=questions.constraints)
    assert adjusted_rand_score(topic, model.labels_) > 0.6
    assert adjusted_rand_score(topic, questions.labels()) > 0.6


def test_the_words_of_feedback_are_shown(seed):
    X, topic, _ = posts(seed)
    frame = pd.DataFrame(X, columns=WORDS)
    pairs = [(a, b) for a in range(0, 12) for b in range(a) if topic[a] != topic[b]]
    model = FeedbackNaiveBayes(2, n_init=1, random_state=seed).fit(frame, constraints={"cannot_link": pairs})
    raised = model.important_words()
    assert model.n_feedback_rounds_ == 0 or raised
    assert [one.weight for one in raised] == sorted((one.weight for one in raised), reverse=True)
    assert all(one.weight > 1 and one.word in WORDS and one.cluster in (0, 1) for one in raised)
    assert model.important_words(n_words=1) == raised[:1]
    shown = model.cluster_words(n_words=2)
    assert {label: len(words) for label, words in shown.items()} == {0: 2, 1: 2}
    assert model.cluster_words(list(range(8)), n_words=2) == {
        label: [WORDS.index(word) for word in words] for label, words in shown.items()
    }
    with pytest.raises(ParameterError, match="words has 3 entries, but X had 8 columns"):
        model.important_words(["a", "b", "c"])


def test_no_weight_moves_more_than_the_step_and_none_is_negative(seed):
    X, topic, _ = posts(seed)
    known = Constraints.sample(topic, 60, balance=0.5, random_state=seed)
    model = FeedbackNaiveBayes(2, step=0.25, max_feedback_rounds=3, n_init=1, random_state=seed)
    weights = model.fit(X, constraints=known).word_weights_
    assert (weights >= 0).all()
    assert (np.abs(weights - 1) <= 0.25 * 3 + 1e-12).all()
    assert (model.set_params(step=0).fit(X, constraints=known).word_weights_ == 1).all()
    assert (model.set_params(step=1, max_feedback_rounds=0).fit(X, constraints=known).word_weights_ == 1).all()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_negative_counts_are_refused_and_fractions_count_in_part(form, seed):
    X, _, _ = posts(seed)
    wrong = X.copy()
    wrong[3, 2] = -1
    with pytest.raises(DataError, match=r"Negative values in data passed to FeedbackNaiveBayes: X\[3, 2\] is -1"):
        FeedbackNaiveBayes(2).fit(form(wrong))
    model = FeedbackNaiveBayes(2, random_state=seed).fit(form(X))
    with pytest.raises(DataError, match=r"X\[3, 2\] is -1"):
        model.predict(form(wrong))
    half = FeedbackNaiveBayes(2, random_state=seed).fit(form(X / 2))
    assert same_partition(half.labels_, model.labels_)


def test_contradictory_pairs_are_priced(seed):
    X, _, _ = posts(seed)
    both = {"must_link": [(0, 1)], "cannot_link": [(0, 1)]}
    model = FeedbackNaiveBayes(2, max_feedback_rounds=3, random_state=seed).fit(X, constraints=both)
    assert len(model.violated_must_link_) + len(model.violated_cannot_link_) == 1


def test_smoothing_is_above_zero(seed):
    X, _, _ = posts(seed)
    with pytest.raises(ParameterError, match=r"smoothing=0 in FeedbackNaiveBayes: expected a finite number > 0"):
        FeedbackNaiveBayes(2, smoothing=0).fit(X)


def test_documents_without_words_and_words_without_documents(seed):
    X, _, _ = posts(seed)
    X[5] = 0
    X[:, 3] = 0
    known = {"cannot_link": [(5, 6)], "must_link": [(5, 7)]}
    model = FeedbackNaiveBayes(2, random_state=seed).fit(sparse.csr_array(X), constraints=known)
    np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_proba(X[5:6])[0], model.weights_)
    assert np.isfinite(model.objective_)


def test_a_cluster_that_dies_is_named(seed):
    same = np.tile([[2.0, 1.0]], (10, 1))
    with pytest.warns(clew.exceptions.FewerClustersWarning, match=r"found 1 of 3 clusters: X has 1 distinct"):
        FeedbackNaiveBayes(3, random_state=seed).fit(same)


def test_a_run_that_is_cut_short_is_named(seed):
    X, _, _ = posts(seed, 200)
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_iter=1 before .* Raise max_iter or tol"):
        FeedbackNaiveBayes(2, max_iter=1, random_state=seed).fit(X)


def test_sparse_rows_are_never_written_out(seed):
    rng = np.random.default_rng(seed)
    X = sparse.random_array(
        (2000, 20000), density=0.002, rng=rng, format="csr", data_sampler=lambda size: np.ones(size)
    )
    y = rng.integers(4, size=2000)
    known = Constraints.sample(y, 50, random_state=seed)
    model = FeedbackNaiveBayes(4, n_init=1, max_feedback_rounds=2, max_iter=5, tol=1, random_state=seed)
    tracemalloc.start()
    model.fit(X, constraints=known)
    model.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.shape[0] * X.shape[1] * 8 / 10
