from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clew.active import DIFFERENT, SAME, UNSURE, Oracle, Questions
from clew.active._density_border import DensityBorder, dense_rows
from clew.active._questions import run
from clew.exceptions import ParameterError
from tests.helpers import examples
from tests.reference import density_border as reference

X = np.array([0.0, 0.1, 0.21, 0.5, 5.0, 5.1, 5.21, 5.5, 9.0])[:, None]


@examples(40)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 25), eps=st.floats(0.05, 2), min_samples=st.integers(1, 8))
def test_core_and_border_match_the_definitions(seed, n, eps, min_samples):
    rows = np.random.default_rng(seed).normal(size=(n, 2))
    dense = dense_rows(rows, eps, min_samples)
    core, border = reference.core_and_border(rows.tolist(), eps, min_samples)
    assert dense.core.tolist() == core
    assert dense.border.tolist() == border


@examples(40)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 12), min_samples=st.integers(1, 4))
def test_asks_the_pairs_of_algorithm_19_in_order(seed, n, min_samples):
    rows = np.random.default_rng(seed).normal(size=(n, 2))
    questions = Questions(rows, DensityBorder(eps=0.8, min_samples=min_samples), random_state=seed)
    core, border = reference.core_and_border(rows.tolist(), 0.8, min_samples)
    if not core:
        with pytest.raises(ParameterError, match=r"eps=0\.8 in DensityBorder"):
            questions.ask()
        return
    # Nothing is implied by "unsure", so no pair is skipped, and the generator is driven without restarts.
    asked = []
    while (pair := questions.ask()) is not None:
        asked.append(pair)
        questions.tell(pair, UNSURE)
    if asked:
        starts = [row for row in core if row in asked[0].key]
        expected = [reference.questions(rows.tolist(), 0.8, min_samples, first) for first in starts]
        assert [pair.key for pair in asked] in [[tuple(sorted(pair)) for pair in one] for one in expected]
    else:
        assert len(core) == 1 and not border


def test_default_radius_makes_half_of_the_rows_core():
    rows = np.random.default_rng(0).normal(size=(101, 3))
    dense = dense_rows(rows, None, 5)
    assert len(dense.core) == 51
    assert 0 < len(dense.border) <= 50


def test_same_with_the_nearest_implies_the_rest():
    questions = Questions(X, DensityBorder(eps=0.2, min_samples=3), random_state=0)
    y = [0, 0, 0, 0, 1, 1, 1, 1, 2]
    spent = run(questions, Oracle(y), 100)
    assert {row for entry in questions.answers for row in entry.question.key} <= {0, 1, 2, 4, 5, 6}
    assert questions.ask() is None
    assert spent < 9
    assert len(questions.view.neighbourhoods) == 2


def test_no_core_row_is_an_error_that_changes_nothing():
    questions = Questions(X, DensityBorder(eps=0.01, min_samples=3), random_state=0)
    with pytest.raises(ParameterError, match=r"eps=0\.01 in DensityBorder: no row has min_samples=3"):
        questions.ask()
    assert questions.answers == [] and questions.pending == []


@pytest.mark.parametrize("wrong", [{"eps": -1}, {"eps": float("nan")}, {"min_samples": 0}, {"min_samples": 2.0}])
def test_bad_parameters_are_named(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ParameterError, match=f"{name}={value!r} in DensityBorder"):
        DensityBorder(**wrong)


def test_sparse_rows_give_the_same_questions():
    rows = np.random.default_rng(2).normal(size=(50, 3))
    rows[::2, 0] = 0
    asked = []
    for given_rows in (rows, sparse.csr_array(rows)):
        questions = Questions(given_rows, DensityBorder(), random_state=0)
        run(questions, Oracle(np.arange(50) % 2), 20)
        asked.append([entry.question.key for entry in questions.answers])
    assert asked[0] == asked[1]
    assert len(asked[0]) == 20


def test_a_known_neighbourhood_is_asked_through_one_row():
    labels = np.array([0, 0, 0, 0, -1, -1, -1, -1, -1])
    questions = Questions(X, DensityBorder(eps=0.2, min_samples=3), constraints=labels, random_state=0)
    first = questions.ask()
    member = questions.view.neighbourhoods[0].member
    assert member in first.key
    questions.tell(first, DIFFERENT)
    questions.tell(second := questions.ask(), SAME)
    assert not {0, 1, 2, 3} & set(second.key)
