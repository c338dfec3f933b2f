"""The base partitions as a prior: mapping, counts and smoothing against slow loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import lgamma

import numpy as np
import pytest
from scipy import sparse

from clew.evaluation import same_partition
from clew.graph import _partition_prior
from clew.graph._gaussian_process import LabelledRows, prior_weights
from clew.graph._kernels import BaseClustering, RowFeatures, build_kernels, build_neighbor_graph
from clew.graph._partition_prior import _best, _class_evidence, partition_mean, partition_share, propagate
from tests.helpers import whole_numbers


@pytest.fixture
def kernels(seed):
    X = whole_numbers(np.random.default_rng(seed), 30)
    return build_kernels(build_neighbor_graph(X, 5, seed), 3, seed)


def labelled_rows(rows, classes):
    return LabelledRows(np.array(rows, dtype=np.int64), np.array(classes, dtype=np.int64), np.ones(len(rows)))


def test_evidence_is_the_dirichlet_multinomial_probability_of_the_counts():
    counts = np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    found = _class_evidence(counts)
    for cluster in range(2):
        for own in range(3):
            prior = [10 * (one == own) + 1 / 3 for one in range(3)]
            expected = lgamma(11) - lgamma(11 + counts[cluster].sum())
            expected += sum(lgamma(p + n) - lgamma(p) for p, n in zip(prior, counts[cluster], strict=True))
            np.testing.assert_allclose(found[cluster, own], expected)


def test_the_mapping_is_the_best_of_all(seed):
    scores = np.random.default_rng(seed).normal(size=(3, 4))
    best = max(permutations(range(4), 3), key=lambda classes: sum(scores[i, c] for i, c in enumerate(classes)))
    class_of, total = _best(scores, scores)
    assert tuple(class_of) == best
    np.testing.assert_allclose(total, scores[np.arange(3), list(best)].sum())


def test_a_row_left_out_is_a_fit_without_its_label(kernels, seed):
    """With one partition, and labels that do not change the mapping, the row's own count is all that is missing."""
    alone = replace(kernels, partitions=kernels.partitions[:1], prior=kernels.prior[:4], unconstrained=0)
    labels = alone.partitions[0]
    rows = np.concatenate([np.flatnonzero(labels == one)[:3] for one in range(3)])
    labelled = labelled_rows(rows, labels[rows])
    mean = partition_mean(alone, labelled, 3)
    for place, row in enumerate(rows.tolist()):
        cluster = labels[row]
        before = (3 + 10 + 1 / 3) / 14
        without = (2 + 10 + 1 / 3) / 13
        assert mean.leave_one_out[place, cluster] - mean.values[row, cluster] == pytest.approx(without - before)


def test_few_labels_that_fit_the_partitions_keep_the_result_without_answers(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 6)) + 4 * np.repeat(np.eye(6)[:4], 30, axis=0)
    kernels = build_kernels(build_neighbor_graph(X, 8, seed), 4, seed)
    weights = prior_weights(kernels)
    result = kernels.partitions[weights.partition]
    rows = [int(np.flatnonzero(result == one)[0]) for one in range(3)]
    labelled = labelled_rows(rows, [2, 0, 1])  # the fourth class has no label yet
    nobody = LabelledRows(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    found = propagate(kernels, labelled, nobody, weights, 4).probabilities().argmax(axis=1)
    assert same_partition(found, result)
    assert [int(found[row]) for row in rows] == [2, 0, 1]


def test_the_share_of_the_partitions_is_a_posterior_mean(seed):
    """Against loops over the grid: a row follows the partitions with the probability that is averaged."""
    rng = np.random.default_rng(seed)
    by_partitions, by_rows = rng.dirichlet(np.ones(3), (2, 24))
    classes = np.arange(24) % 3
    one, two = by_partitions[np.arange(24), classes], by_rows[np.arange(24), classes]
    by_rows[np.arange(24), classes] = two = np.maximum(two, one)  # no clear lead
    total = mass = 0.0
    for share in np.linspace(0.005, 0.995, 100):
        likelihood = 1.0
        for p, q in zip(one, two, strict=True):
            likelihood *= share * p + (1 - share) * q
        total, mass = total + share * likelihood, mass + likelihood
    assert partition_share(by_partitions, by_rows, classes) == pytest.approx(total / mass)


def test_a_clear_lead_or_a_class_without_labels_leaves_no_average():
    sure, unsure = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.6, 0.4], [0.4, 0.6]])
    classes = np.array([0, 1])
    assert partition_share(sure, unsure, classes) == 1
    assert partition_share(unsure, sure, classes) == 0
    assert partition_share(unsure, unsure, classes) == 0  # few rows: no lead of the partitions
    assert partition_share(unsure[:1], unsure[:1], classes[:1]) == 1  # a class is missing: no lead of the rows
    assert partition_share(sure[:1], unsure[:1], classes[:1]) == 1


def test_while_a_class_is_missing_rows_must_lead_and_be_right_about_four_rows_more():
    right, wrong = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]), np.array([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]])
    classes = np.arange(10) % 2  # of three classes

    def share(n_wrong, classes):
        """The share if the partitions are wrong about the first rows, and the rows are right about all."""
        by_rows = right[classes]
        return partition_share(
            np.where(np.arange(len(classes))[:, None] < n_wrong, wrong[classes], by_rows), by_rows, classes
        )

    assert share(3, classes) == 1
    assert share(4, classes) == 0
    assert share(4, np.array([0, 0, 0, 1])) == 1  # the last row is alone in its class and does not count
    assert share(4, np.repeat(classes, 4)) == 1  # the lead per row is too small


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_further_rows_with_the_features_of_rows_get_their_probabilities(kernels, share, seed, monkeypatch):
    monkeypatch.setattr(_partition_prior, "partition_share", lambda *_: share)
    classes = np.arange(12) % 3
    rows = np.random.default_rng(seed).choice(30, 12, replace=False)
    model = propagate(kernels, labelled_rows(rows, classes), labelled_rows([], []), prior_weights(kernels), 3)
    some = np.array([4, 0, 17])
    features = RowFeatures(
        kernels.columns[some], kernels.diffusion[some], kernels.walk[some], kernels.partitions[:, some]
    )
    np.testing.assert_allclose(model.probabilities(features), model.probabilities()[some], rtol=1e-9)


def test_base_clusterings_predict_their_own_rows_and_replace_clusters_without_rows(kernels):
    otherwise = np.full(30, 7)
    own = sparse.eye_array(30, format="csr")
    means, of_graph, _, *mixtures = kernels.clusterings  # Ward's method predicts by the nearest mean
    for one in (means, of_graph, *mixtures):
        assert one.labels_at(kernels.columns, own, otherwise).tolist() == one.labels.tolist()
    alone = BaseClustering.of(np.array([5, 2, 5]), lambda rows: rows[:, 0].astype(np.int64))
    assert alone.labels.tolist() == [1, 0, 1]
    assert alone.labels_at(np.array([[5.0], [3.0], [2.0]]), own, np.array([8, 8, 8])).tolist() == [1, 8, 0]
