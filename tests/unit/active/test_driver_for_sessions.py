"""Methods of the driver for sessions, which keep their own log: volunteered pairs, held questions, other logs."""

from __future__ import annotations

import numpy as np
import pytest

from clew.active import (
    DIFFERENT,
    SAME,
    UNSURE,
    AbilityToSeparate,
    Answered,
    ExploreConsolidate,
    Feedback,
    Oracle,
    Pair,
    Questions,
    RandomPairs,
    Stated,
    SuperInstances,
    Which,
)

X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [9.0], [9.1]])
Y = np.array([0, 0, 0, 1, 1, 1, 2, 2])


def stated(*said):
    return Answered(Stated(tuple((Pair(*pair), answer) for pair, answer in said)), SAME)


def test_volunteered_pairs_are_taken_as_a_whole_or_not_at_all():
    questions = Questions(X, Feedback(), random_state=0)
    assert questions.add(stated(((0, 1), SAME), ((1, 3), DIFFERENT)))
    assert not questions.add(stated(((3, 4), SAME), ((4, 0), SAME)))  # 3 with 0, by way of 4
    assert questions.view.knowledge.relation(3, 4) is None
    assert [entry.conflict for entry in questions.answers] == [False, True]
    assert len(questions.conflicts) == 1
    assert questions.constraints.must_link.tolist() == [[0, 1]]
    questions.undo()
    questions.add(Answered(Stated(((Pair(3, 4), SAME),)), UNSURE))
    assert questions.view.knowledge.relation(3, 4) is None


def test_answers_nobody_asked_for_are_added_one_by_one_or_replayed_alike():
    log = [((0, 1), "same"), ((0, 3), "different"), ((1, 3), "same"), ((6, 7), "unsure")]
    one, two = (Questions(X, RandomPairs(), random_state=0) for _ in range(2))
    assert [one.add(Answered(Pair(*pair), answer)) for pair, answer in log] == [True, True, False, True]
    two.replay(log)
    assert one.answers == two.answers
    assert one.ask() == two.ask()


def test_a_held_question_is_not_asked_and_a_released_one_may_be():
    questions = Questions(X[:2], RandomPairs(), random_state=0)
    questions.hold(Pair(0, 1))
    assert questions.ask() is None
    questions.release(Pair(0, 1))
    assert questions.ask() == Pair(0, 1)
    assert questions.tell((1, 0), SAME)


def test_releasing_one_of_two_questions_about_a_pair_keeps_the_pair_waiting():
    questions = Questions(X, RandomPairs(), random_state=0)
    questions.hold(Pair(0, 1))
    questions.hold(Which(0, (1, 2)))
    questions.release(Which(0, (1, 2)))
    assert questions.view.pending == {(0, 1)}


def test_another_log_leaves_the_first_alone():
    questions = Questions(X, ExploreConsolidate(), n_clusters=3, random_state=0)
    pair = questions.ask()
    questions.tell(pair, Oracle(Y)(pair))
    waiting = questions.ask()
    other = questions.again([((0, 1), SAME)], RandomPairs(), 2)
    assert [entry.question for entry in other.answers] == [Pair(0, 1)]
    assert (other.n_clusters, other.pending) == (2, [])
    assert questions.pending == [waiting]
    assert len(questions.answers) == 1
    questions.use(Feedback())
    assert questions.ask() is None


@pytest.mark.parametrize("trust", [True, False])
def test_what_follows_from_the_number_of_clusters_may_be_taken_for_less_than_an_answer(trust):
    questions = Questions(X, ExploreConsolidate(), n_clusters=2, random_state=0, trust_n_clusters=trust)
    for pair, answer in [((0, 3), DIFFERENT), ((6, 0), DIFFERENT)]:
        questions.add(Answered(Pair(*pair), answer))
    assert questions.view.known(6, 3) is (SAME if trust else None)
    assert 6 not in questions.view.unplaced()  # nobody is asked about it either way
    assert questions.add(Answered(Pair(6, 3), DIFFERENT)) is not trust
    if not trust:
        assert len(questions.view.neighbourhoods) == 3


def test_a_row_presumed_in_a_cluster_founds_its_own_when_answers_about_others_say_so():
    questions = Questions(X, ExploreConsolidate(), n_clusters=2, random_state=0, trust_n_clusters=False)
    apart = [((0, 3), DIFFERENT), ((6, 0), DIFFERENT), ((7, 0), DIFFERENT), ((6, 7), DIFFERENT)]
    for pair, answer in [*apart, ((6, 3), SAME)]:
        questions.add(Answered(Pair(*pair), answer))
    assert [set(one.rows.tolist()) for one in questions.view.neighbourhoods] == [{3, 6}, {0}, {7}]


def test_what_labels_looked_ahead_to_is_forgotten_when_questions_wait_or_the_strategy_changes():
    expected = Questions(X, RandomPairs(), random_state=0).ask()
    held = Questions(X, RandomPairs(), random_state=0)
    held.labels()
    held.hold(expected)
    held.labels()
    assert held.ask().key != expected.key
    held.release(expected)
    assert expected not in held.pending
    changed = Questions(X, AbilityToSeparate(n_neighbors=3), random_state=0)
    changed.labels()
    changed.use(RandomPairs())
    assert changed.view.imputed == {}
    assert changed.ask() == expected


def test_new_rows_do_not_lose_what_super_instances_have_found(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(4), 15)
    rows = rng.normal(size=(60, 2)) + 12 * np.column_stack([y % 2, y // 2])
    questions = Questions(rows, SuperInstances(), random_state=0)
    oracle = Oracle(y)
    for _ in range(40):
        pair = questions.ask()
        questions.tell(pair, oracle(pair))
    clusters = questions.labels()
    more = np.vstack([rows, rows[:6] + rng.normal(size=(6, 2)) / 10])
    grown = Questions(more, SuperInstances(), random_state=0)
    grown.replay(questions.answers)
    labels = grown.labels()
    assert len(set(labels)) >= 4
    together = [set(np.flatnonzero(labels[:60] == one)) for one in set(labels[:60])]
    found = [set(np.flatnonzero(clusters == one)) for one in set(clusters)]
    assert all(any(part <= whole for whole in found) for part in together)
