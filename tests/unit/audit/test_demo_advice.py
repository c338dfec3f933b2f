"""Audits and advice for right answers, of the demo and of other data."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints
from clew.audit import ClusterNumberAdvice, MetricAdvice, advise_n_clusters, review
from clew.cli import _demo
from clew.datasets import load, scaled

CLAIMS = {"same": "belong together", "different": "are different"}


def demo_answers(seed):
    data = load("iris")
    X = scaled(data.X, _demo.SCALES["iris"])
    plain, _ = _demo.fit(X, data, None, seed)
    return X, _demo.simulate(X, data, plain, 48, seed)


@pytest.mark.parametrize("draw", range(4))
def test_no_right_answer_of_the_demo_is_called_wrong(draw):
    X, answers = demo_answers(draw)
    found = review(X, answers, 3)
    assert max(doubt.suspicion for doubt in found.doubts) <= 0.5
    assert found.message.startswith("0 of 48 answers are more likely wrong than right")


@pytest.mark.parametrize("draw", range(3))
def test_advice_on_the_demo_is_right_or_says_that_the_answers_cannot_tell(draw):
    X, answers = demo_answers(draw)
    advice = advise_n_clusters(X, answers)
    assert advice.best == 3 or not advice.sure
    assert advice.message.startswith("The answers suggest" if advice.sure else "The answers cannot tell")


def mixture(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 150)
    return rng.normal(0, 3, (3, 3))[y] + rng.normal(size=(150, 3)), y


@pytest.mark.parametrize("draw", range(3))
def test_reasons_agree_with_the_suspicion(draw):
    X, y = mixture(draw)
    known = Constraints.sample(y, 60, noise=0.1, random_state=draw)
    for doubt in review(X, known, 3).doubts:
        opposite = {"same": "different", "different": "same"}[doubt.answer]
        told = " ".join(doubt.reasons)
        assert doubt.likely == (opposite if doubt.suspicion > 0.5 else doubt.answer)
        if doubt.suspicion > 0.5:
            assert f"the chance that the two {CLAIMS[opposite]} is" in told and "are wrong." not in told
        elif f"the chance that the two {CLAIMS[opposite]} is" in told:
            assert "But only about" in told
        else:
            assert f"the chance that the two {CLAIMS[doubt.answer]} is" in told


def test_most_answers_that_are_called_wrong_are():
    called, wrong = [], []
    for seed in range(6):
        X, y = mixture(seed)
        right = Constraints.sample(y, 100, random_state=seed)
        pairs = np.concatenate([right.must_link, right.cannot_link])
        same, turned = np.arange(100) < len(right.must_link), np.arange(100) % 10 == 3
        words = np.where(same ^ turned, "same", "different")
        found = review(X, list(zip(pairs.tolist(), words.tolist(), strict=True)), 3)
        called += [doubt.index for doubt in found.doubts if doubt.suspicion > 0.5]
        wrong += [doubt.index for doubt in found.doubts if doubt.suspicion > 0.5 and turned[doubt.index]]
    assert len(wrong) > 0.75 * len(called) > 20


def test_answers_that_follow_no_clusters_tell_no_number():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 3, 100)
    advice = advise_n_clusters(X, Constraints.sample(y, 60, random_state=0), range(2, 7))
    assert not advice.sure and "cannot tell how many clusters there are" in advice.message
    only_same = Constraints(Constraints.sample(y, 60, random_state=0).must_link, n_samples=100)
    np.testing.assert_allclose(advise_n_clusters(X, only_same, range(2, 7)).probabilities, 0.2)


def test_words_of_advice():
    def said(*chances):
        return ClusterNumberAdvice(tuple(range(2, 2 + len(chances))), np.array(chances), np.ones(len(chances))).message

    assert said(0.05, 0.9, 0.03, 0.02) == "The answers suggest 3 clusters: 90% likely."
    assert said(0.3, 0.68, 0.01, 0.01) == "The answers cannot tell between 3 (68%) and 2 (30%) clusters."
    assert said(0.02, 0.03, 0.05, 0.9).endswith("90% likely. More than 5 were not tried.")
    fitness = np.array([[0.9, 0.9, 0.6], [0.8, 0.7, 0.7]])
    advice = MetricAdvice(("cosine", "euclidean"), fitness)
    assert not advice.sure and "cosine leads" in advice.message and "67% of random subsets" in advice.message
    assert MetricAdvice(("a", "b"), fitness[:, :2]).sure
