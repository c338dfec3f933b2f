"""Many groups of an unknown number: the tree, the search for its cut, and the questions about merges."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from clew.active import SAME, Auto, Oracle, Questions, _group_tree
from clew.active._group_tree import GroupTree, Threshold, TreeQuestions, first_certain
from clew.constraints import Constraints
from tests.unit.active.test_group_sizes import answered, groups

LINE = np.array([[0.0], [1.0], [5.0], [9.0]])


def test_the_level_of_a_pair_is_the_number_of_clusters_before_it_is_joined():
    grown = GroupTree.of(LINE)
    assert [grown.level_of(*pair) for pair in ((0, 1), (2, 3), (1, 3))] == np.log([4, 3, 2]).tolist()


@pytest.mark.parametrize(
    ("must_link", "cannot_link", "expected"),
    [([], [], [0, 0, 1, 1]), ([(1, 2)], [], [0, 0, 0, 0]), ([], [(2, 3)], [0, 0, 1, 2]), ([(1, 3)], [(2, 3)], None)],
)
def test_labels_obey_constraints(must_link, cannot_link, expected):
    closed = Constraints(must_link, cannot_link, n_samples=4).closure()
    labels = GroupTree.of(LINE).labels(np.array([True, True, False]), closed, np.arange(4)).tolist()
    assert labels == ([0, 0, 1, 0] if expected is None else expected)


def test_the_posterior_of_the_threshold_follows_answers(seed):
    rng = np.random.default_rng(seed)
    levels = rng.uniform(0, 8, size=300)
    found = Threshold.of(8.0, levels, levels > 5)
    assert abs(found.median - 5) < 0.2
    assert found.deviation < 0.2
    assert (np.diff(found(np.linspace(0, 8, 50))) >= 0).all()
    nothing = Threshold.of(8.0, levels[:0], levels[:0] > 5)
    assert nothing.deviation > 2
    assert first_certain(8.0, levels[:3], levels[:3] > 5) is None


def test_later_answers_do_not_change_whether_the_threshold_was_found():
    levels, same = np.tile([3.9, 4.1], 20), np.tile([False, True], 20)
    found = first_certain(8.0, levels, same)
    assert found is not None
    assert first_certain(8.0, np.append(levels, 7.0), np.append(same, False)).median == found.median


def test_more_answers_make_better_groups(seed):
    X, y = groups(seed, np.full(150, 8), n_columns=10, spread=0.4)
    questions = answered(Questions(X, Auto(), random_state=0), y, 50)
    before = adjusted_rand_score(y, questions.labels())
    answered(questions, y, 150)
    after = adjusted_rand_score(y, questions.labels())
    assert before > 0.6
    assert after > before
    labels = questions.labels()
    for pair, answer in ((pair, answer) for one in questions.view.told for pair, answer in one):
        assert (labels[pair.first] == labels[pair.second]) == (answer is SAME)


def test_a_sample_of_the_rows_represents_them(seed, monkeypatch):
    monkeypatch.setattr(_group_tree, "_MOST_POINTS", 600)
    monkeypatch.setattr(_group_tree, "_PREPARED", 100)
    X, y = groups(seed, np.full(150, 8), n_columns=10, spread=0.35)
    same = np.array([np.flatnonzero(y == group)[:2] for group in range(10)])  # most are not in the sample
    known = Constraints(must_link=same[:5], cannot_link=same[5:])
    questions = answered(Questions(X, Auto(), constraints=known, random_state=0), y, 60)
    assert questions.strategy.has_many_groups(questions.view)
    labels = questions.labels()
    assert adjusted_rand_score(y, labels) > 0.8
    assert (labels[same[:5, 0]] == labels[same[:5, 1]]).all()
    assert (labels[same[5:, 0]] != labels[same[5:, 1]]).all()


def test_a_resumed_log_asks_the_same_about_merges(seed):
    X, y = groups(seed, np.full(80, 6), n_columns=6)
    questions = answered(Questions(X, Auto(), random_state=0), y, 60)
    resumed = Questions(X, Auto(), random_state=0)
    resumed.replay(questions.answers)
    assert resumed.ask() == questions.ask()
    assert (resumed.labels() == questions.labels()).all()


def test_every_pair_is_decided_in_the_end():
    X, y = groups(0, np.full(60, 2), n_columns=3, spread=0.3)
    questions, oracle = Questions(X, Auto(), random_state=0), Oracle(y)
    for _ in range(20_000):
        pair = questions.ask()
        if pair is None:
            break
        questions.tell(pair, oracle(pair))
    assert adjusted_rand_score(y, questions.labels()) == 1


def test_few_groups_are_not_many():
    X, y = groups(0, np.full(5, 40), n_columns=4, spread=0.2)
    view = answered(Questions(X, Auto(groups="large"), random_state=0), y, 60).view
    assert not TreeQuestions(0).has_many_groups(view, 5)
