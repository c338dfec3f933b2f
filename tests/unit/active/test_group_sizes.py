"""`Auto` finds out whether groups are large, many, or small."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from benchmarks.record_tables import record_table
from clew.active import Auto, Oracle, Questions
from clew.active._group_sizes import near_duplicates
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
