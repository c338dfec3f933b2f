"""The simulated person."""

from __future__ import annotations

import numpy as np
import pytest

from clew.active import DIFFERENT, SAME, UNSURE, BudgetSpentError, Oracle, Pair, Which
from clew.exceptions import ParameterError


def test_answers_from_labels():
    oracle = Oracle(["a", "a", "b"])
    assert [oracle(Pair(0, 1)), oracle(Pair(0, 2))] == [SAME, DIFFERENT]
    assert oracle.n_answered == 2


def test_unknown_labels_make_it_unsure():
    oracle = Oracle([0, -1, 0, 1])
    assert oracle(Pair(0, 1)) is UNSURE
    assert oracle(Which(1, (0, 3))) is UNSURE
    assert oracle(Which(0, (1, 3))) is UNSURE
    assert oracle(Which(0, (1, 2))) == 2


def test_which():
    oracle = Oracle([0, 1, 0, 2])
    assert oracle(Which(0, (1, 2))) == 2
    assert oracle(Which(0, (1, 3))) is DIFFERENT


def test_a_wrong_answer_to_which_is_wrong():
    oracle = Oracle([0, 1, 0, 2], noise=1.0, random_state=0)
    assert {oracle(Which(0, (1, 2, 3))) for _ in range(50)} == {1, 3, DIFFERENT}
    assert {oracle(Which(0, (1, 3))) for _ in range(50)} == {1, 3}


def test_noise_is_independent_per_call():
    oracle = Oracle([0, 0], noise=0.3, unsure=0.2, random_state=0)
    answers = [oracle(Pair(0, 1)) for _ in range(4000)]
    assert abs(answers.count(UNSURE) / 4000 - 0.2) < 0.03
    assert abs(answers.count(DIFFERENT) / 4000 - 0.8 * 0.3) < 0.03
    assert all(Oracle([0, 1], noise=1.0)(Pair(0, 1)) is SAME for _ in range(5))


def test_the_same_seed_errs_alike():
    runs = [[Oracle(np.zeros(9), noise=0.5, random_state=3)(Pair(0, i)) for i in range(1, 9)] for _ in range(2)]
    assert runs[0] == runs[1]


def test_the_budget_ends():
    oracle = Oracle([0, 1], budget=1)
    oracle(Pair(0, 1))
    with pytest.raises(BudgetSpentError, match="budget of 1 "):
        oracle(Pair(0, 1))
    assert oracle.n_answered == 1


@pytest.mark.parametrize("bad", [{"noise": 1.5}, {"unsure": -0.1}, {"noise": float("nan")}])
def test_bad_rates_are_refused(bad):
    with pytest.raises(ParameterError, match="from 0 to 1"):
        Oracle([0, 1], **bad)
