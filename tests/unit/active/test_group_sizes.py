"""`Auto` finds out whether groups are large, many, or small."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from benchmarks.record_tables import record_table
from clew.active import DIFFERENT, SAME, Answered, Auto, Oracle, Pair, Questions
from clew.active._auto import begun
from clew.active._group_sizes import Comparison, near_duplicates, probably_worse
from clew.datasets import as_table, load


def groups(seed, sizes, n_columns=16, spread=0.3):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(sizes), n_columns))[y] + spread * rng.normal(size=(len(y), n_columns)), y


def answered(questions, y, n):
    oracle = Oracle(y)
    for _ in range(n):
        pair = questions.ask()
        questions.tell(pair, oracle(pair))
    return questions


def test_data_show_near_duplicates(seed):
    X, _ = groups(seed, np.full(200, 3), spread=0.1)
    assert near_duplicates(X) > 0.9
    assert Auto().has_small_groups(Questions(X).view)
    assert not Auto().has_small_groups(Questions(X, n_clusters=200).view)
    assert not Auto(groups="large").has_small_groups(Questions(X).view)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_data_with_large_groups_have_few_near_duplicates(name):
    X = load(name).X
    assert near_duplicates(X) < 0.3
    assert not Auto().has_small_groups(Questions(X).view)


def test_equal_rows_of_discrete_data_are_no_duplicates(seed):
    X = np.random.default_rng(seed).integers(2, size=(300, 3)).astype(float)
    assert near_duplicates(X) == 0
    assert near_duplicates(np.zeros((200, 2))) == 0


def test_answers_tell_that_groups_are_many(seed):
    X, y = groups(seed, np.arange(100) % 25 + 1)
    questions = Questions(X, Auto(), random_state=0)
    assert not questions.strategy.has_many_groups(questions.view)
    answered(questions, y, 50)
    assert questions.strategy.has_many_groups(questions.view)
    assert not questions.strategy.has_small_groups(questions.view)
    assert adjusted_rand_score(y, questions.labels()) > 0.9


def test_answers_tell_that_groups_are_large(seed):
    X, y = groups(seed, np.full(4, 75), spread=0.3)
    questions = answered(Questions(X, Auto(), random_state=0), y, 45)
    assert not questions.strategy.has_small_groups(questions.view)
    assert not questions.strategy.has_many_groups(questions.view)


def test_a_given_number_or_size_of_groups_is_not_questioned(seed):
    X, y = groups(seed, np.arange(100) % 25 + 1)
    for settings in ({"strategy": Auto(), "n_clusters": 100}, {"strategy": Auto(groups="large")}):
        questions = answered(Questions(X, random_state=0, **settings), y, 45)
        assert not questions.strategy.has_many_groups(questions.view)


def test_a_table_with_few_duplicates_is_found_out_soon(seed):
    found = record_table("products", 300, seed)
    questions = Questions(as_table(found.columns), Auto(), random_state=0)
    answered(questions, found.entity, 25)
    assert questions.strategy.has_small_groups(questions.view)


def test_a_resumed_log_asks_the_same_while_partitions_are_compared(seed):
    X, y = groups(seed, np.arange(100) % 25 + 1)
    questions = answered(Questions(X, Auto(), random_state=0), y, 24)
    resumed = Questions(X, Auto(), random_state=0)
    resumed.replay(questions.answers)
    assert resumed.ask() == questions.ask()


def test_large_groups_are_better_after_two_equal_pairs(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(6), 50)
    small = np.where(rng.random(300) < 0.1, 0, 1 + np.arange(300))
    compared = Comparison.of(y, small, rng)
    questions = Questions(rng.normal(size=(300, 2)), Auto(groups="large"), random_state=0)
    for n_asked, pair in enumerate(compared.large):
        assert compared.next_pair(questions.view) == (pair if n_asked < 2 else None)
        questions.replay([*questions.answers, Answered(pair, SAME)])
    assert not compared.small_is_better(questions.view)


def test_small_groups_are_better_if_no_pair_of_large_groups_is_equal(seed):
    rng = np.random.default_rng(seed)
    compared = Comparison.of(np.repeat(np.arange(6), 50), np.repeat(np.arange(150), 2), rng)
    questions = Questions(rng.normal(size=(300, 2)), Auto(groups="large"), random_state=0)
    told = []
    while (pair := compared.next_pair(questions.view)) is not None:
        told.append(Answered(pair, SAME if pair in compared.small else DIFFERENT))
        questions = Questions(questions.view.X, Auto(groups="large"), random_state=0)
        questions.replay(told)
    assert [one.answer for one in told] == [DIFFERENT] * 6 + [SAME] * 4
    assert compared.small_is_better(questions.view)


@pytest.mark.parametrize("n_later", [0, 1])
def test_one_wrong_answer_does_not_hide_small_groups(n_later):
    """Four of five records are alone, so that only answers show small groups. An early answer is wrong, and a later."""
    found = record_table("people", 400)
    first = np.unique(found.entity, return_index=True)[1]
    kept = np.sort(np.append(first, np.setdiff1d(np.arange(400), first)[:40]))
    table = as_table({name: [values[row] for row in kept] for name, values in found.columns.items()})
    oracle, questions = Oracle(found.entity[kept]), Questions(table, Auto(), random_state=0)
    wrong = [1, 20][: 1 + n_later]
    for place in range(35):
        pair = questions.ask()
        questions.tell(pair, SAME if place in wrong else oracle(pair))
    assert questions.strategy.has_small_groups(questions.view)


def test_the_probability_that_a_partition_is_worse():
    assert probably_worse(1, 9, 100.0, 100.0, 90.0) > 0.99
    assert probably_worse(9, 1, 100.0, 100.0, 10.0) < 0.01
    assert probably_worse(2, 10, 1e5, 500.0, 500.0) < 0.3 < 0.5 < probably_worse(2, 10, 1e5, 500.0, 500.0, 0.1)
    assert probably_worse(0, 0, 100.0, 50.0, 50.0) == pytest.approx(np.log(20 / 2**0.5) / np.log(20), abs=0.01)


@pytest.mark.parametrize("draw", [0, 1])
def test_texts_in_many_groups_are_found_by_a_tree(draw):
    rng = np.random.default_rng(draw)
    words = np.array([f"w{number:03d}" for number in range(600)])
    y = np.repeat(np.arange(100), np.maximum(120 // (1 + np.arange(100)), 1))
    stories = words[rng.integers(600, size=(100, 25))]
    copies = np.where(rng.random((len(y), 25)) < 0.45, words[rng.integers(600, size=(len(y), 25))], stories[y])
    questions = Questions(as_table({"text": [" ".join(copy) for copy in copies]}), Auto(), random_state=0)
    answered(questions, y, 60)
    assert questions.strategy.has_many_groups(questions.view)
    assert not questions.strategy.has_small_groups(questions.view)
    assert adjusted_rand_score(y, questions.labels()) > 0.9


def test_rows_of_random_pairs_are_not_begun(seed):
    X, y = groups(seed, np.full(4, 30))
    questions = answered(Questions(X, Auto(groups="large"), random_state=0), y, 5)
    placed = np.flatnonzero(questions.view.placed)
    free = np.flatnonzero(~questions.view.placed & ~questions.view.named)
    questions.replay([*questions.answers, Answered(Pair(*free[:2].tolist()), DIFFERENT)])
    assert not begun(questions.view)[free[:2]].any()
    questions.replay([*questions.answers, Answered(Pair(int(free[0]), int(placed[0])), DIFFERENT)])
    assert begun(questions.view)[free[:2]].tolist() == [True, False]
