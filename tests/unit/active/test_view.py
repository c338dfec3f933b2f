"""What a strategy sees."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from clew.active import DIFFERENT, SAME, UNSURE, Pair, Questions
from clew.active._distances import squared_distances
from clew.active._feedback import Feedback


def told(n, answers, **arguments):
    """The view after some volunteered pairs."""
    questions = Questions(np.arange(n, dtype=float)[:, None], Feedback(), **arguments)
    for pair, answer in answers:
        questions.tell(pair, answer)
    return questions.view


def test_the_row_that_a_question_compares_with_is_the_first_neighbourhood():
    view = told(4, [((3, 1), DIFFERENT)])
    assert [one.member for one in view.neighbourhoods] == [1, 3]
    assert view.unplaced().tolist() == [0, 2]


def test_neighbourhoods_have_rows_and_centres():
    view = told(5, [((0, 4), DIFFERENT), ((1, 0), SAME)])
    first = next(one for one in view.neighbourhoods if one.member == 0)
    assert sorted(first.rows.tolist()) == [0, 1]
    assert first.center.tolist() == [0.5]
    assert view.placed.tolist() == [True, True, False, False, True]


def test_a_row_joins_with_all_that_is_known_to_be_with_it():
    view = told(5, [((0, 4), DIFFERENT), ((1, 2), SAME), ((2, 0), SAME)])
    assert view.placed.tolist() == [True, True, True, False, True]


def test_what_differs_from_all_neighbourhoods_is_one():
    view = told(5, [((0, 2), SAME)], constraints={"cannot_link": [(0, 1)]})
    assert [one.member for one in view.neighbourhoods] == [2, 1]
    answers = [((4, 0), DIFFERENT), ((2, 1), DIFFERENT), ((3, 2), DIFFERENT), ((1, 0), SAME), ((3, 4), SAME)]
    assert [one.member for one in told(5, answers).neighbourhoods] == [0, 4, 2]
    groups = told(4, [], constraints={"labels": [7, -1, -1, -1], "cannot_groups": [0, -1, 0, 0]})
    assert [one.member for one in groups.neighbourhoods] == [0, 2, 3]


def test_the_last_neighbourhood_is_deduced_when_the_number_of_clusters_is_known():
    answers = [((1, 0), DIFFERENT), ((2, 0), DIFFERENT), ((2, 1), DIFFERENT), ((3, 0), DIFFERENT), ((3, 1), DIFFERENT)]
    view = told(5, answers, n_clusters=3)
    assert view.deduced == [(2, 3)]
    assert view.known(2, 3) is SAME and view.placed[3]
    assert told(5, answers).deduced == []


def test_a_deduction_uses_what_is_known_about_joined_rows():
    apart = [((1, 0), DIFFERENT), ((2, 0), DIFFERENT), ((2, 1), DIFFERENT)]
    view = told(5, [*apart, ((3, 0), DIFFERENT), ((4, 1), DIFFERENT), ((3, 4), SAME)], n_clusters=3)
    assert view.known(3, 2) is SAME and view.known(4, 2) is SAME


def test_unsure_pairs_are_decided_but_say_nothing():
    view = told(3, [((0, 1), UNSURE)])
    assert view.known(1, 0) is UNSURE and not view.is_open(0, 1)
    assert view.knowledge.relation(0, 1) is None


def test_unsure_rows_leave_when_no_neighbourhood_is_left_for_them():
    answers = [((1, 0), DIFFERENT), ((2, 0), UNSURE)]
    assert told(4, answers).unplaced().tolist() == [2, 3]
    assert told(4, [*answers, ((2, 1), UNSURE)]).unplaced().tolist() == [3]


def test_a_new_neighbourhood_brings_unsure_rows_back():
    answers = [((1, 0), DIFFERENT), ((2, 0), UNSURE), ((2, 1), UNSURE)]
    view = told(4, answers)
    assert view.unplaced().tolist() == [3]
    assert told(4, [*answers, ((3, 0), DIFFERENT), ((3, 1), DIFFERENT)]).unplaced().tolist() == [2]


def test_unsure_about_one_member_is_unsure_about_its_neighbourhood():
    view = told(4, [((1, 0), DIFFERENT), ((2, 0), SAME), ((3, 2), UNSURE)])
    assert [one.member for one in view.open_neighbourhoods(3)] == [1]


def test_rows_with_a_pending_question_wait():
    view = told(4, [((1, 0), DIFFERENT)])
    view.waiting.add(Pair(0, 2))
    assert view.unplaced().tolist() == [3]
    assert not view.is_open(2, 0)


def test_nearest_neighbourhoods_come_first():
    view = told(6, [((5, 0), DIFFERENT)])
    assert [one.member for one in view.nearest_neighbourhoods(4)] == [5, 0]
    assert [one.member for one in view.nearest_neighbourhoods(1)] == [0, 5]


def test_guesses_are_kept_until_they_are_decided():
    view = told(4, [((0, 1), DIFFERENT)])
    view.impute(Pair(0, 1), SAME, 0.9)
    view.impute(Pair(2, 3), SAME, 0.9)
    assert view.imputed == {(2, 3): (SAME, 0.9)}
    assert view.take([(Pair(3, 2), DIFFERENT)])
    assert view.imputed == {}


def test_once_computes_once():
    view, calls = told(2, []), []
    assert [view.once("a", lambda: calls.append(0) or 7) for _ in range(3)] == [7, 7, 7]
    assert calls == [0]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_squared_distances(form):
    X, points = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 1.0]])
    expected = ((X[:, None] - points) ** 2).sum(axis=2)
    assert_allclose(squared_distances(form(X), None, points), expected)
    assert_allclose(squared_distances(form(X), np.array([1]), points), expected[[1]])
