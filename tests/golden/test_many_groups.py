"""Sparse class probabilities for very many groups: against slow loops, and in `Auto`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from clew import Constraints
from clew.active import Auto, Oracle, Questions, _auto
from clew.evaluation import adjusted_rand_score
from clew.graph import _kernels
from clew.graph._gaussian_process import LabelledRows
from clew.graph._graph_propagation import many_groups_labels
from clew.graph._kernels import build_kernels, build_neighbor_graph
from clew.graph._many_groups import best_two, component_scores, sparse_probabilities
from tests.helpers import whole_numbers


@pytest.fixture
def kernels(seed):
    X = whole_numbers(np.random.default_rng(seed), 30)
    return build_kernels(build_neighbor_graph(X, 5, seed), 4, seed)


@pytest.fixture
def many_from_three(monkeypatch):
    """Three groups are very many."""
    for module in (_kernels, _auto):
        monkeypatch.setattr(module, "MANY_GROUPS", 2)


def test_probabilities_match_dense_loops(kernels, seed):
    """With one labelled row per cluster, so that the mapping of clusters to classes is known."""
    reference = kernels.partitions[kernels.unconstrained]
    rows = np.array([int(np.flatnonzero(reference == one)[0]) for one in range(3)])
    labelled = LabelledRows(rows, np.array([2, 0, 1]), np.ones(3))
    class_of = np.append([2, 0, 1], np.full(int(reference.max()) - 2, 3))[reference]
    weights = kernels.prior[3:] * np.where(np.arange(len(kernels.partitions)) == kernels.unconstrained, 15, 1)
    values = np.zeros((30, 4))
    for place, labels in enumerate(kernels.partitions):
        for row in range(30):
            members = np.flatnonzero(labels == labels[row])
            counts = np.bincount(class_of[members], minlength=4)
            own = class_of[row] if place == kernels.unconstrained else int(counts.argmax())
            scores = 10.0 * (np.arange(4) == own)
            for one, cls in zip(rows, labelled.classes, strict=True):
                scores[cls] += labels[one] == labels[row]
            values[row] += weights[place] / weights.sum() * scores / scores.sum()
    values[rows] = np.eye(4)[labelled.classes]
    for _ in range(2):
        values = values + kernels.walk @ values
        small = (values < 0.01 * values.sum(axis=1, keepdims=True)) & (values < values.max(axis=1, keepdims=True))
        values[small] = 0
    values /= values.sum(axis=1, keepdims=True)
    values[rows] = np.eye(4)[labelled.classes]
    np.testing.assert_allclose(sparse_probabilities(kernels, labelled, 4).toarray(), values, atol=1e-12)


def test_best_two_classes_and_scores_of_components():
    dense = np.array([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0], [0.4, 0.4, 0.2]])
    found = sparse.csr_array(dense)
    best, first, second = best_two(found)
    assert best.tolist() == [1, 2, 0]
    assert first.tolist() == [0.5, 1.0, 0.4]
    assert second.tolist() == [0.3, 0.0, 0.4]
    closed = Constraints([(0, 2)], n_samples=3).closure()
    scores = component_scores(closed, np.array([0]), found)
    np.testing.assert_allclose(scores, np.log(dense[[0, 2]]).sum(axis=0)[None])


def test_labels_satisfy_certain_constraints_and_follow_the_partition_without_any(kernels):
    free = many_groups_labels(kernels, Constraints(n_samples=30), np.arange(4), penalty=3.0)
    assert free.tolist() == kernels.partitions[kernels.unconstrained].tolist()
    pairs = Constraints([(0, 5), (5, 9)], [(0, 1), (1, 2), (0, 2)], n_samples=30)
    labels = many_groups_labels(kernels, pairs, np.arange(4), penalty=3.0)
    assert labels[0] == labels[5] == labels[9]
    assert len({labels[0], labels[1], labels[2]}) == 3


def test_doubtful_pairs_join_rows_that_nothing_else_decides(kernels):
    reference = kernels.partitions[kernels.unconstrained]
    one, two = np.flatnonzero(reference == 0)[0], np.flatnonzero(reference == 1)[0]
    pairs = Constraints([(one, two)], must_link_confidence=[0.99], n_samples=30)
    labels = many_groups_labels(kernels, pairs, np.arange(4), penalty=1e6)
    assert labels[one] == labels[two]


@pytest.mark.usefixtures("many_from_three")
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_auto_asks_and_labels_with_very_many_groups(noise, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(6), 20)
    X = 10 * np.eye(6)[y] + rng.normal(size=(120, 6))
    questions = Questions(X, Auto(random_state=seed), n_clusters=6, random_state=seed)
    oracle = Oracle(y, noise=noise, random_state=seed)
    for _ in range(60):
        questions.tell(pair := questions.ask(), oracle(pair))
    labels, known = questions.labels(), questions.constraints
    assert (labels[known.must_link[:, 0]] == labels[known.must_link[:, 1]]).all()
    assert questions.strategy.answer_doubts(questions.view) is None
    again = Questions(X, Auto(random_state=seed), n_clusters=6, random_state=seed)
    again.replay(questions.answers)
    assert again.labels().tolist() == labels.tolist()
    if noise == 0:
        assert adjusted_rand_score(y, labels) > 0.95
