"""Splits come from the data alone, merges follow the reference, and the strategy restarts anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score

from clew import Constraints
from clew.active import DIFFERENT, SAME, Oracle, Questions
from clew.active._super_instances import SuperInstances, _merge, _State, _SuperInstance, super_instance_labels
from clew.exceptions import ParameterError
from tests.helpers import ask_all, examples
from tests.reference import super_instances as reference


def blobs(seed, n=40, k=3):
    return make_blobs(n, 2, centers=k, cluster_std=0.5, center_box=(-20, 20), random_state=seed)


@examples(60)
@given(st.integers(0, 10_000), st.integers(2, 9), st.integers(1, 4))
def test_merging_asks_what_the_reference_asks(number, n, k):
    rng = np.random.default_rng(number)
    X, y = rng.permutation(1000)[: 2 * n].reshape(n, 2).astype(float), rng.integers(k, size=n)
    expected, pairs = reference.merge(X.tolist(), lambda i, j: y[i] == y[j])
    questions = Questions(X, SuperInstances())
    view = questions.view
    state = _State([], [_SuperInstance(str(row), np.array([row]), row) for row in range(n)])
    steps, asked, answer = _merge(view, state), [], None
    try:
        while True:
            pair = steps.send(answer)
            asked.append(frozenset(pair.key))
            answer = SAME if y[pair.first] == y[pair.second] else DIFFERENT
            view.take([(pair, answer)])
    except StopIteration:
        pass
    assert asked == pairs
    assert {frozenset(view.knowledge.rows(row).tolist()) for row in range(n)} == expected


def test_clean_blobs_are_found_with_few_questions_and_without_k(seed):
    X, y = blobs(seed, n=200, k=4)
    questions = Questions(X, SuperInstances(), random_state=seed)
    oracle = Oracle(y)
    for _ in range(30):
        pair = questions.ask()
        questions.tell(pair, oracle(pair))
    assert adjusted_rand_score(y, super_instance_labels(questions.view)) > 0.95


def test_all_answers_give_the_classes(seed):
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    strategy = SuperInstances()
    questions = Questions(X, strategy, random_state=seed)
    ask_all(questions, Oracle(y))
    assert questions.ask() is None
    assert adjusted_rand_score(y, strategy.labels(questions.view)) == 1.0
    assert len(questions.view.neighbourhoods) == 3


def test_before_any_answer_there_is_one_cluster():
    X, _ = blobs(0)
    assert set(super_instance_labels(Questions(X, SuperInstances()).view)) == {0}


def test_a_fresh_start_asks_what_the_running_one_would(seed):
    X, y = blobs(seed, n=60, k=4)
    oracle = Oracle(y)
    running = Questions(X, SuperInstances(), random_state=seed)
    for _ in range(15):
        pair = running.ask()
        resumed = Questions(X, SuperInstances(), random_state=seed + 1)  # the splits do not follow the driver's seed
        resumed.replay(running.answers)
        assert resumed.ask() == pair
        running.tell(pair, oracle(pair))


@pytest.mark.parametrize(("X", "n_asked"), [([[1.0]], 0), ([[1.0], [2.0]], 1), (np.ones((9, 2)), 0)])
def test_tiny_data_and_equal_rows(X, n_asked):
    questions = Questions(X, SuperInstances())
    assert len(ask_all(questions, lambda pair: DIFFERENT)) == n_asked
    assert len(set(super_instance_labels(questions.view))) == n_asked + 1


def test_groups_of_equal_rows_are_asked_about_once():
    X = np.repeat([[0.0], [4.0], [9.0]], 20, axis=0)
    questions = Questions(X, SuperInstances())
    assert len(ask_all(questions, Oracle(np.repeat([0, 1, 0], 20)))) == 3
    assert super_instance_labels(questions.view).tolist() == [0] * 20 + [1] * 20 + [0] * 20


def test_prior_knowledge_is_used_and_never_asked(seed):
    X, y = blobs(seed, n=30)
    groups = np.full(30, -1)
    groups[[int(np.flatnonzero(y == label)[0]) for label in range(3)]] = 0
    prior = Constraints(must_link=[tuple(np.flatnonzero(y == 0)[:2])], cannot_groups=groups, n_samples=30)
    strategy = SuperInstances()
    questions = Questions(X, strategy, constraints=prior)
    ask_all(questions, Oracle(y))
    assert adjusted_rand_score(y, strategy.labels(questions.view)) == 1.0
    decided = Questions(X, SuperInstances(), constraints=Constraints.from_labels(y))
    assert decided.ask() is None
    assert adjusted_rand_score(y, super_instance_labels(decided.view)) == 1.0


def test_large_sets_are_split_by_a_sample(monkeypatch):
    monkeypatch.setattr("clew.active._super_instances._SAMPLE", 20)
    X, y = blobs(2, n=100)
    questions = Questions(X, SuperInstances())
    ask_all(questions, Oracle(y), budget=60)
    assert adjusted_rand_score(y, super_instance_labels(questions.view)) > 0.95


def test_bad_parameter():
    with pytest.raises(ParameterError, match="random_state='a' in SuperInstances"):
        SuperInstances(random_state="a")
