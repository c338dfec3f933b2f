"""Questions of RandomPairs, MinMax, DenseMinMax, ExploreConsolidate, ClusterPairs and Feedback."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints
from clew._neighbours import local_density
from clew.active import ExploreConsolidate, Oracle, Questions, Which
from clew.active._cluster_pairs import ClusterPairs
from clew.active._dense_min_max import DenseMinMax
from clew.active._feedback import Feedback
from clew.active._min_max import MinMax
from clew.active._random_pairs import RandomPairs
from clew.exceptions import ParameterError
from tests.reference import min_max as reference

TRUTH = np.repeat([0, 1, 2], 8)


def blobs(seed=0):
    return np.random.default_rng(seed).integers(-3, 4, (24, 2)) + 20.0 * TRUTH[:, None]


def run(questions, oracle, budget=2000):
    asked = []
    for _ in range(budget):
        if (question := questions.ask()) is None:
            return asked
        asked.append(question)
        questions.tell(question, oracle(question))
    raise AssertionError("still asking")


@pytest.mark.parametrize(
    "strategy",
    [RandomPairs(), MinMax(), DenseMinMax(n_neighbors=4), DenseMinMax(n_neighbors=4, ask="label")],
    ids=["random", "min-max", "dense", "dense-label"],
)
@pytest.mark.parametrize("n_clusters", [3, None])
def test_every_row_is_placed_in_the_end(strategy, n_clusters):
    questions = Questions(blobs(), strategy, n_clusters=n_clusters, random_state=0)
    run(questions, Oracle(np.arange(24) % 3))  # classes that the rows say nothing about
    assert questions.view.placed.all() and len(questions.view.neighbourhoods) == 3


def test_min_max_takes_the_least_certain_row(seed):
    questions = Questions(blobs(seed), MinMax(), n_clusters=3, random_state=seed)
    oracle = Oracle(TRUTH)
    questions.tell(first := questions.ask(), oracle(first))
    while (question := questions.ask()) is not None:
        view = questions.view
        skeleton = set(np.flatnonzero(view.placed).tolist())
        assert question.first == reference.least_certain(blobs(seed), skeleton)
        open_rows = [row for one in view.neighbourhoods if view.knowledge.relation(question.first, one.member) is None
                     for row in one.rows.tolist()]  # fmt: skip
        assert question.second == reference.nearest(blobs(seed), question.first, open_rows)
        questions.tell(question, oracle(question))


def test_local_density_counts_shared_neighbours(seed):
    X = np.random.default_rng(seed).random((30, 2))
    assert np.allclose(local_density(X, 5), reference.local_density(X, 5)), "LDS, Vu 2012 Eq. 2"


def test_dense_rows_come_first():
    strategy = DenseMinMax(n_neighbors=4)
    questions = Questions(blobs(), strategy, n_clusters=3, random_state=0)
    dense = strategy._dense(questions.view)
    rows = [question.first for question in run(questions, Oracle(TRUTH))]
    sparse_from = next(place for place, row in enumerate(rows) if not dense[row])
    assert not dense[rows[sparse_from:]].any() and sparse_from > 3


def test_label_questions_name_every_open_neighbourhood():
    questions = Questions(blobs(), DenseMinMax(n_neighbors=4, ask="label"), n_clusters=3, random_state=0)
    asked = run(questions, Oracle(TRUTH))
    assert all(isinstance(question, Which) for question in asked)
    assert len(asked) == 23


@pytest.mark.parametrize("bad", [{"n_neighbors": 0}, {"n_neighbors": 1.5}, {"threshold": -1}, {"ask": "both"}])
def test_bad_parameters_are_refused(bad):
    with pytest.raises(ParameterError, match="in DenseMinMax"):
        DenseMinMax(**bad)


def test_random_pairs_are_uniform():
    """Eight of 15 pairs are open, each as likely as the others; 600 draws, four standard deviations."""
    prior = Constraints([(0, 1), (1, 2)], [(0, 3), (3, 4)], n_samples=6)
    keys = [Questions(np.zeros((6, 1)), RandomPairs(), constraints=prior, random_state=s).ask().key for s in range(600)]
    values, counts = np.unique(keys, axis=0, return_counts=True)
    assert len(values) == 8 and abs(counts - 75).max() < 4 * np.sqrt(75)


def test_feedback_asks_nothing_and_takes_any_pair():
    questions = Questions(blobs(), Feedback(), n_clusters=3)
    assert questions.ask() is None and questions.tell((3, 9), "different")
    assert questions.constraints.cannot_link.tolist() == [[3, 9]]


def test_cluster_questions_show_whole_clusters():
    questions = Questions(blobs(), ClusterPairs(), n_clusters=6, random_state=0)
    question = questions.ask()
    assert question.first in question.rows[0] and question.second in question.rows[1]
    labels = questions.view.labels()
    assert all(len(set(labels[list(rows)].tolist())) == 1 for rows in question.rows)


def test_explore_and_consolidate_pair_with_any_member_of_a_neighbourhood():
    X, partners = blobs(), set()
    prior = Constraints(labels=np.where(np.arange(24) % 8 < 4, TRUTH, -1))
    for seed in range(12):
        question = Questions(X, ExploreConsolidate(), n_clusters=3, constraints=prior, random_state=seed).ask()
        assert prior.labels[question.first] == -1
        assert TRUTH[question.second] == TRUTH[question.first]  # the nearest neighbourhood comes first
        partners.add(question.second % 8)
    assert partners == {0, 1, 2, 3}
