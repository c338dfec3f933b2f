"""Scores follow the paper's formulas, and the strategy restarts anywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from clew import Constraints
from clew.active import DIFFERENT, UNSURE, Oracle, Questions
from clew.active._point_uncertainty import PointUncertainty, probabilities, uncertainty
from clew.exceptions import ParameterError
from tests.helpers import ask_all, examples
from tests.reference import point_uncertainty as reference


def quick():
    return PointUncertainty(n_trees=3)


def blobs(seed, n=20, k=3):
    return make_blobs(n, 2, centers=k, cluster_std=0.5, center_box=(-20, 20), random_state=seed)


@examples(60)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5), st.booleans())
def test_scores_are_those_of_the_reference(number, n, n_neighbourhoods, all_found):
    rng = np.random.default_rng(number)
    n_trees = int(rng.integers(1, 6))
    leaves = rng.integers(6, size=(n, n_trees))
    members = [rng.integers(6, size=(rng.integers(1, 4), n_trees)) for _ in range(n_neighbourhoods)]
    chances = probabilities(leaves, members)
    assert_allclose(chances, reference.probabilities(leaves.tolist(), [one.tolist() for one in members]), atol=1e-12)
    assert_allclose(
        uncertainty(chances, all_found=all_found), reference.uncertainty(chances.tolist(), all_found), atol=1e-12
    )


def test_an_even_choice_of_two_scores_highest():
    chances = np.array([[1.0, 0.0], [0.5, 0.5], [0.8, 0.2]])
    assert uncertainty(chances, all_found=True).argmax() == 1
    assert_allclose(uncertainty(chances, all_found=True)[:2], [0.0, 1.0])
    assert_allclose(uncertainty(chances, all_found=False)[1], 1 / 1.5)


@pytest.mark.parametrize("k", [None, 3])
def test_all_answers_give_the_classes(seed, k):
    X, y = blobs(seed)
    questions = Questions(X, quick(), n_clusters=k, random_state=seed)
    ask_all(questions, Oracle(y))
    assert questions.ask() is None
    assert questions.view.placed.all()
    assert adjusted_rand_score(y, questions.labels()) == 1.0


def test_a_row_that_was_begun_is_placed_first(seed):
    X, y = blobs(seed, n=30, k=5)
    questions = Questions(X, quick(), n_clusters=5, random_state=seed)
    oracle, begun = Oracle(y), None
    while not questions.view.placed.all():
        pair = questions.ask()
        answer = oracle(pair)
        if begun is not None:
            assert pair.first == begun
        questions.tell(pair, answer)
        begun = None if questions.view.placed[pair.first] else pair.first
        questions.replay([])  # a fresh generator
    assert questions.ask() is None


def test_a_batch_asks_about_each_row_once():
    X, y = blobs(0)
    questions = Questions(X, quick(), n_clusters=3, random_state=0)
    ask_all(questions, Oracle(y), budget=6)
    batch = questions.ask(5)
    assert len({pair.first for pair in batch}) == 5


def test_only_unsure_ends():
    X, _ = blobs(1, n=8)
    questions = Questions(X, quick(), random_state=0)
    assert len(ask_all(questions, lambda pair: UNSURE)) == 28
    assert questions.ask() is None


def test_equal_rows_that_all_differ():
    questions = Questions(np.ones((6, 2)), quick(), random_state=0)
    assert len(ask_all(questions, lambda pair: DIFFERENT)) == 15


def test_a_row_kept_apart_from_all_neighbourhoods_ends():
    prior = Constraints(cannot_groups=np.array([0, 0, -1]))
    questions = Questions([[0.0], [1.0], [5.0]], quick(), constraints=prior, random_state=0)
    assert 0 < len(ask_all(questions, Oracle([0, 1, 0]))) <= 2
    assert questions.ask() is None


def test_sparse_rows_and_samples_work(seed):
    X, y = blobs(seed)
    strategy = PointUncertainty(n_trees=3, forest_rows=10, max_rows=5)
    questions = Questions(sparse.csr_matrix(X), strategy, n_clusters=3, random_state=seed)
    ask_all(questions, Oracle(y))
    assert questions.view.placed.all()


@pytest.mark.parametrize("name", ["n_trees", "forest_rows", "max_rows"])
def test_bad_parameters(name):
    with pytest.raises(ParameterError, match=f"{name}=0 in PointUncertainty"):
        PointUncertainty(**{name: 0})
