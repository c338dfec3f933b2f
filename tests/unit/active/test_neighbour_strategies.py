"""Laws that AbilityToSeparate and DensityBorder share."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints
from clew.active import DIFFERENT, SAME, UNSURE, Oracle, Pair, Questions
from clew.active._ability_to_separate import AbilityToSeparate
from clew.active._density_border import DensityBorder
from clew.active._questions import run

STRATEGIES = [
    pytest.param(AbilityToSeparate(n_neighbors=5), id="asc"),
    pytest.param(AbilityToSeparate(n_neighbors=5, score="random"), id="asc-random"),
    pytest.param(DensityBorder(min_samples=3), id="density-border"),
]
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def three_groups(seed, n=36):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 2.5 * np.array([(0, 0), (1, 0), (0, 1)])[y], y


def keys(questions):
    return [entry.question.key for entry in questions.answers]


@each_strategy
@pytest.mark.parametrize("n_clusters", [3, None])
def test_asks_only_open_pairs_never_twice_and_ends(strategy, n_clusters, seed):
    X, y = three_groups(seed)
    questions, oracle = Questions(X, strategy, n_clusters=n_clusters, random_state=seed), Oracle(y)
    while (pair := questions.ask()) is not None:
        assert questions.view.knowledge.relation(*pair.key) is None
        questions.tell(pair, oracle(pair))
    assert len(set(keys(questions))) == len(keys(questions)) > 0
    assert questions.ask() is None
    assert questions.progress().can_stop
    assert len(questions.labels()) == len(X)


@each_strategy
def test_same_log_and_seed_same_question(strategy, seed):
    X, y = three_groups(seed)
    one, two = (Questions(X, strategy, n_clusters=3, random_state=seed) for _ in range(2))
    for questions in (one, two):
        run(questions, Oracle(y), 9)
    assert keys(one) == keys(two)
    resumed = [Questions(X, strategy, n_clusters=3, random_state=seed) for _ in range(2)]
    for questions in resumed:
        questions.replay(one.answers)
    assert resumed[0].ask() == resumed[1].ask()


@pytest.mark.parametrize("strategy", [STRATEGIES[0], STRATEGIES[2]])
def test_a_resumed_log_goes_on_with_the_same_guesses(strategy, seed):
    X, y = three_groups(seed)
    whole = Questions(X, strategy, random_state=seed)
    run(whole, Oracle(y), 12)
    whole.ask()
    resumed = Questions(X, strategy, random_state=seed)
    resumed.replay(whole.answers)
    resumed.ask()
    known = whole.view.knowledge.relation
    open_guesses = {key: guess for key, guess in whole.view.imputed.items() if known(*key) is None}
    assert resumed.view.imputed == open_guesses
    if isinstance(strategy, AbilityToSeparate):
        assert resumed.pending == whole.pending


@each_strategy
def test_batches_out_of_order_undo_and_replay_still_end(strategy, seed):
    X, y = three_groups(seed)
    rng, oracle = np.random.default_rng(seed), Oracle(y)
    questions = Questions(X, strategy, random_state=seed)
    for turn in range(400):
        batch = questions.ask(4)
        if not batch:
            break
        assert len({pair.key for pair in batch}) == len(batch)
        for place in rng.permutation(len(batch)):
            questions.tell(batch[place], oracle(batch[place]))
        if turn % 5 == 2:
            questions.undo()
    assert questions.ask() is None
    again = Questions(X, strategy, random_state=seed)
    again.replay(questions.answers)
    assert again.ask() is None


@each_strategy
def test_someone_who_is_never_sure_is_asked_each_pair_once(strategy):
    X, y = three_groups(0, 20)
    questions = Questions(X, strategy, random_state=0)
    spent = run(questions, Oracle(y, unsure=1.0), 1000)
    assert 0 < spent < 20 * 19 / 2 + 1
    assert len(set(keys(questions))) == spent
    assert questions.ask() is None
    assert questions.view.imputed == {}


@each_strategy
def test_degenerate_data(strategy):
    assert Questions([[1.0, 2.0]], strategy).ask() is None
    two = Questions([[0.0], [1.0]], strategy, random_state=0)
    assert two.ask() == Pair(0, 1)
    two.tell(Pair(0, 1), SAME)
    assert two.ask() is None
    repeated = Questions(np.ones((30, 2)), strategy, random_state=0)
    assert run(repeated, lambda pair: SAME, 1000) < 30
    assert repeated.ask() is None


@each_strategy
def test_prior_knowledge_is_not_asked(strategy, seed):
    X, y = three_groups(seed)
    labels = np.where(np.arange(len(y)) < 9, y, -1)
    groups = np.where(np.arange(len(y)) >= 15, np.arange(len(y)) // 3, -1)  # three rows of different classes each
    prior = Constraints(labels=labels, cannot_groups=groups, n_samples=len(y))
    questions, oracle = Questions(X, strategy, n_clusters=3, constraints=prior, random_state=seed), Oracle(y)
    while (pair := questions.ask()) is not None:
        first, second = pair.key
        assert not (first < 9 and second < 9)
        assert groups[first] < 0 or groups[first] != groups[second]
        assert questions.tell(pair, oracle(pair))
    assert questions.conflicts == []


@each_strategy
def test_everything_known_beforehand_leaves_nothing_to_ask(strategy):
    X, y = three_groups(0)
    assert Questions(X, strategy, constraints=y, random_state=0).ask() is None
    apart = Constraints(cannot_groups=np.zeros(len(y), dtype=int), n_samples=len(y))
    assert Questions(X, strategy, constraints=apart, random_state=0).ask() is None


@each_strategy
def test_wrong_answers_do_not_stop_it(strategy, seed):
    X, y = three_groups(seed, 60)
    questions = Questions(X, strategy, n_clusters=3, random_state=seed)
    spent = run(questions, Oracle(y, noise=0.1, unsure=0.1, random_state=seed), 5000)
    assert questions.ask() is None
    assert len(set(keys(questions))) == spent
    assert len(questions.labels()) == 60


@each_strategy
def test_a_contradiction_in_the_log_is_survived(strategy):
    X, y = three_groups(1)
    questions = Questions(X, strategy, random_state=0)
    questions.replay([((0, 3), SAME), ((3, 6), SAME), ((0, 6), DIFFERENT), ((1, 4), UNSURE)])
    run(questions, Oracle(y), 1000)
    assert len(questions.conflicts) == 1
    assert questions.ask() is None
