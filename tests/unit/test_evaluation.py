"""Scores against their definitions, edge cases, errors and memory."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn import metrics

import clew.evaluation
from clew import Constraints
from clew.evaluation import (
    PairwiseScores,
    SatisfiedPairs,
    adjusted_rand_score,
    constraint_satisfaction,
    evaluate,
    matching_accuracy,
    normalized_mutual_info_score,
    pairwise_scores,
    rand_score,
    same_partition,
    variation_of_information,
)
from clew.exceptions import ConstraintError, DataError
from tests.reference import evaluation as reference

SCORES = [
    adjusted_rand_score,
    evaluate,
    matching_accuracy,
    normalized_mutual_info_score,
    pairwise_scores,
    rand_score,
    variation_of_information,
]

# Two ways to sum the same few logarithms differ in the last digits only.
ROUNDING = 1e-12


def partitions(n):
    """Every partition of n rows once, as labels numbered by first appearance."""
    if n == 0:
        return [[]]
    return [[*head, label] for head in partitions(n - 1) for label in range(max(head, default=-1) + 2)]


@pytest.mark.sampled(4, slow=1)
@pytest.mark.parametrize("part", range(4))
def test_scores_match_reference_on_every_two_partitions_of_five_rows(part):
    every = partitions(5)
    assert len(every) == 52
    for labels_true in every[part::4]:
        for labels_pred in every:
            expected = {
                "ARI": reference.adjusted_rand_score(labels_true, labels_pred),
                "NMI": reference.normalized_mutual_info_score(labels_true, labels_pred),
                "pairwise F": reference.pairwise_scores(labels_true, labels_pred)[2],
                "Rand": reference.rand_score(labels_true, labels_pred),
                "VI": reference.variation_of_information(labels_true, labels_pred),
                "accuracy": reference.matching_accuracy(labels_true, labels_pred),
            }
            assert evaluate(labels_true, labels_pred) == pytest.approx(expected, abs=ROUNDING)


def test_evaluate_is_the_single_scores_in_the_order_of_tables():
    labels_true, labels_pred = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 1]
    known = Constraints(cannot_link=[(2, 3)])
    scores = evaluate(labels_true, labels_pred, known)
    assert list(scores) == ["ARI", "NMI", "pairwise F", "Rand", "VI", "accuracy"]
    assert list(scores.values()) == [
        adjusted_rand_score(labels_true, labels_pred),
        normalized_mutual_info_score(labels_true, labels_pred),
        pairwise_scores(labels_true, labels_pred, known).f,
        rand_score(labels_true, labels_pred),
        variation_of_information(labels_true, labels_pred),
        matching_accuracy(labels_true, labels_pred),
    ]
    assert all(type(score) is float for score in scores.values())


@pytest.mark.parametrize(
    ("labels_true", "labels_pred", "expected"),
    [
        pytest.param([0], [5], (1.0, 1.0, 1.0), id="single-row"),
        pytest.param([0, 1, 2], [0, 1, 2], (1.0, 1.0, 1.0), id="nobody-together"),
        pytest.param([0, 0, 1], [0, 1, 2], (1.0, 0.0, 0.0), id="nothing-predicted"),
        pytest.param([0, 1, 2], [0, 0, 1], (0.0, 1.0, 0.0), id="nothing-to-find"),
        pytest.param([0, 0, 1], [0, 1, 1], (0.0, 0.0, 0.0), id="nothing-right"),
    ],
)
def test_pairwise_scores_where_a_denominator_is_zero(labels_true, labels_pred, expected):
    assert pairwise_scores(labels_true, labels_pred) == PairwiseScores(*expected)


def test_pairwise_scores_when_every_pair_is_stated():
    assert pairwise_scores([0, 0, 1], [0, 1, 1], Constraints.from_labels([0, 0, 1])) == PairwiseScores(1, 1, 1)


@pytest.mark.parametrize(
    "knowledge",
    [
        pytest.param({"must_link": [(0, 1)]}, id="must-link"),
        pytest.param({"cannot_link": [(1, 0), (0, 1)]}, id="cannot-link-twice"),
        pytest.param({"labels": [1, 0, -1, -1]}, id="labels"),
        pytest.param({"must_groups": [4, 4, -1, 5]}, id="must-groups"),
        pytest.param({"cannot_groups": [4, 4, -1, 5]}, id="cannot-groups"),
        pytest.param({"cannot_groups": [[0, 9], [1, 9], [2, -1], [3, -1]]}, id="second-column"),
        pytest.param({"must_link": [(0, 1)], "labels": [0, 0, -1, -1], "must_groups": [2, 2, -1, -1]}, id="thrice"),
    ],
)
def test_each_kind_of_knowledge_leaves_out_its_pair_once(knowledge):
    labels_true, labels_pred = [0, 0, 0, 1], [0, 0, 1, 1]
    scores = pairwise_scores(labels_true, labels_pred, Constraints(**knowledge))
    assert scores == reference.pairwise_scores(labels_true, labels_pred, {(0, 1)})
    assert scores != pairwise_scores(labels_true, labels_pred)


def test_many_columns_that_repeat_one_another_are_counted_once():
    # Inclusion and exclusion over forty columns would not end; repeated and nested ones must be seen through.
    coarse, fine = [0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]
    known = Constraints(must_groups=np.transpose([coarse] * 20), cannot_groups=np.transpose([fine, coarse] * 10))
    kept = constraint_satisfaction([0, 0, 0, 1, 1, 1], known)
    assert kept.must_groups == SatisfiedPairs(4, 7)
    assert kept.cannot_groups == SatisfiedPairs(3, 7)
    labels_true, labels_pred = [0, 1, 2, 0, 0, 1], [0, 1, 0, 2, 0, 1]
    scores = pairwise_scores(labels_true, labels_pred, known)
    assert scores == reference.pairwise_scores(labels_true, labels_pred, reference.sharing([coarse]))


def test_constraints_come_in_every_form_that_fit_takes():
    labels_true, labels_pred = [0, 0, 0, 1], [0, 0, 1, 1]
    known = Constraints(labels=[0, 0, 0, -1])
    assert pairwise_scores(labels_true, labels_pred, [0, 0, 0, -1]) == pairwise_scores(labels_true, labels_pred, known)
    assert constraint_satisfaction(labels_pred, {"must_link": [(0, 2)]}).must_link == (0, 1)


@pytest.mark.parametrize("noise", [-1, -1.0])
def test_noise_is_alone_in_constraint_satisfaction(noise):
    known = Constraints(
        [(0, 1), (2, 3)],
        [(0, 1), (2, 3)],
        labels=[7, 7, 8, 8],
        must_groups=[0, 0, 1, 1],
        cannot_groups=[0, 0, 1, 1],
    )
    kept = constraint_satisfaction([noise, noise, 3, 3], known)
    assert kept.must_link == kept.cannot_link == kept.must_groups == kept.cannot_groups == SatisfiedPairs(1, 2)
    assert kept.labels == SatisfiedPairs(5, 6)
    assert kept.fraction == 9 / 14


def test_minus_one_is_noise_in_predicted_labels_and_a_class_in_true_ones():
    assert evaluate([0, 0, 1, 1], [-1, -1, 2, 2]) == evaluate([0, 0, 1, 1], [0, 3, 2, 2])
    assert evaluate([-1, -1, 1, 1], [0, 0, 1, 1]) == evaluate([0, 0, 1, 1], [0, 0, 1, 1])
    assert not same_partition([-1, -1, 2], [0, 0, 1])
    assert same_partition([-1, -1, 2], [-1, 4, 2])


def test_a_string_is_never_noise():
    assert evaluate([0, 0], ["-1", "-1"])["Rand"] == 1.0
    assert constraint_satisfaction(["-1", "-1"], Constraints([(0, 1)])).fraction == 1.0


def test_nothing_stated_is_fully_satisfied():
    kept = constraint_satisfaction([0, 1, 1], Constraints(labels=[-1, -1, -1]))
    assert (kept.satisfied, kept.total, kept.fraction) == (0, 0, 1.0)
    assert kept.must_groups.fraction == 1.0


def test_independent_labellings_share_no_information_and_rounding_cannot_go_below_zero():
    for n_classes in range(2, 8):
        for n_clusters in range(2, 8):
            labels_true, labels_pred = np.divmod(np.arange(n_classes * n_clusters), n_clusters)
            assert 0.0 <= normalized_mutual_info_score(labels_true, labels_pred) < ROUNDING


def test_adjusted_rand_can_be_negative_and_stays_exact_beyond_64_bits():
    assert adjusted_rand_score([0, 0, 1, 1], [0, 1, 0, 1]) == -0.5
    half = 150_000
    labels = np.repeat([0, 1], half)
    both, together, total = 2 * comb(half - 1, 2), 2 * comb(half, 2), comb(2 * half, 2)
    expected = Fraction(together * together, total)
    assert adjusted_rand_score(labels, np.roll(labels, 1)) == float((both - expected) / (together - expected))


def test_matching_settles_what_no_greedy_choice_can():
    # Overlaps [[3, 2], [2, 0]]: taking the largest first gives 3, the other diagonal 4.
    labels_true = [0] * 5 + [1] * 2
    labels_pred = [0] * 3 + [1] * 2 + [0] * 2
    assert matching_accuracy(labels_true, labels_pred) == 4 / 7


@pytest.mark.parametrize("n_clusters", [(3, 8), (8, 3), (40, 40)])
def test_matching_equals_the_dense_assignment_on_larger_tables(n_clusters):
    rng = np.random.default_rng(0)
    labels_true, labels_pred = (rng.integers(k, size=500) for k in n_clusters)
    table = metrics.cluster.contingency_matrix(labels_true, labels_pred)
    best = table[linear_sum_assignment(table, maximize=True)].sum()
    assert matching_accuracy(labels_true, labels_pred) == best / 500


def test_matching_of_a_chain_of_overlaps():
    rows = np.arange(1001)
    assert matching_accuracy(rows // 2, (rows + 1) // 2) == 501 / 1001


@pytest.mark.parametrize(
    "labels",
    [
        [0, 0, 1, 0],
        (True, True, False, True),
        ["x", "x", "y", "x"],
        [1, 1, "1", 1],
        np.array([200, 200, 3, 200], dtype=np.uint8),
        np.array([127, 127, -128, 127], dtype=np.int8),
        np.array([2**64 - 1, 2**64 - 1, 0, 2**64 - 1], dtype=np.uint64),
        np.array([2**62, 2**62, -(2**62), 2**62]),
        np.array([0.5, 0.5, np.inf, 0.5]),
        np.array(["2020-01-01", "2020-01-01", "2021-01-01", "2020-01-01"], dtype="datetime64[D]"),
        pd.Series(["x", "x", "y", "x"], index=[3, 1, 2, 0], dtype="category"),
        pl.Series([5, 5, 6, 5]),
    ],
    ids=lambda labels: f"{type(labels).__name__}-{getattr(labels, 'dtype', type(labels[0]).__name__)}",
)
def test_labels_of_every_kind(labels):
    assert same_partition(labels, [0, 0, 1, 0])
    assert evaluate([0, 0, 1, 0], labels) == evaluate([0, 0, 1, 0], [0, 0, 1, 0])


def test_tuples_are_labels_in_an_object_array():
    labels = np.empty(3, dtype=object)
    labels[:] = [("a", 1), ("a", 1), ("a", 2)]
    assert same_partition(labels, [0, 0, 1])


def test_inputs_are_read_only_and_untouched():
    labels = np.array([3, 3, -1, 5])
    labels.flags.writeable = False
    evaluate(labels, labels, Constraints(must_link=[(0, 1)]))
    constraint_satisfaction(labels, Constraints(must_link=[(0, 1)]))
    assert labels.tolist() == [3, 3, -1, 5]


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.__name__)
@pytest.mark.parametrize(
    ("labels_pred", "message"),
    [
        pytest.param([0, 1], "labels_true has 3 labels and labels_pred 2", id="length"),
        pytest.param([], "labels_pred is empty", id="empty"),
        pytest.param([[0], [1], [1]], r"labels_pred has shape \(3, 1\)", id="column"),
        pytest.param(4, r"labels_pred has shape \(\)", id="scalar"),
        pytest.param([[0], [1, 2], [3]], "labels_pred is ragged", id="ragged"),
        pytest.param([0.0, np.nan, 1.0], r"labels_pred\[1\] is nan: .* Leave out", id="nan"),
        pytest.param(["a", "b", None], r"labels_pred\[2\] is None", id="none"),
        pytest.param(np.array(["a", pd.NA, "b"], dtype=object), r"labels_pred\[1\] is <NA>", id="pandas-na"),
        pytest.param(np.array([{}, 1, 2], dtype=object), r"labels_pred\[0\] is \{\}, which cannot", id="unhashable"),
    ],
)
def test_bad_labels_are_refused_with_the_place_and_the_remedy(score, labels_pred, message):
    with pytest.raises(DataError, match=message):
        score([0, 0, 1], labels_pred)


def test_same_partition_and_satisfaction_name_their_own_arguments():
    with pytest.raises(DataError, match="a has 2 labels and b 1"):
        same_partition([0, 1], [0])
    with pytest.raises(DataError, match="labels is empty"):
        constraint_satisfaction([], Constraints())


@pytest.mark.parametrize(
    "known",
    [
        pytest.param(Constraints(labels=[0, 0, -1, 1]), id="labels"),
        pytest.param(Constraints(must_link=[(0, 3)]), id="row-out-of-range"),
    ],
)
def test_constraints_on_other_rows_are_refused(known):
    with pytest.raises(ConstraintError, match="3"):
        pairwise_scores([0, 0, 1], [0, 1, 1], known)
    with pytest.raises(ConstraintError, match="3"):
        constraint_satisfaction([0, 1, 1], known)


def test_groups_of_a_hundred_thousand_rows_are_counted_in_linear_memory():
    n = 200_000
    rng = np.random.default_rng(0)
    labels_true, labels_pred = rng.integers(10, size=n), rng.integers(12, size=n)
    half = np.where(np.arange(n) < n // 2, 0, -1)
    known = Constraints(
        must_link=rng.permutation(n).reshape(-1, 2),
        labels=np.where(rng.random(n) < 0.3, labels_true, -1),
        must_groups=half,
        cannot_groups=np.column_stack([rng.integers(-1, 50, size=n), np.arange(n) // 4]),
    )
    tracemalloc.start()
    scores = pairwise_scores(labels_true, labels_pred, known)
    kept = constraint_satisfaction(labels_pred, known)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept.must_groups.total == (n // 2) * (n // 2 - 1) // 2
    assert 0 < scores.f < 1
    # Forty arrays of n numbers; the five billion pairs of the one group would need 1,600 times as much.
    assert peak < 40 * 8 * n


def test_as_many_clusters_as_rows_stay_linear_in_memory():
    n = 200_000
    rng = np.random.default_rng(0)
    labels_true = np.arange(n)
    labels_pred = np.where(rng.random(n) < 0.1, rng.permutation(n), labels_true)
    tracemalloc.start()
    scores = evaluate(labels_true, labels_pred)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.9 < scores["accuracy"] < 1
    # Forty arrays of n numbers; a dense table of clusters would need 5,000 times as much.
    assert peak < 40 * 8 * n


def test_the_old_name_of_a_score_still_works_with_a_notice():
    with pytest.warns(DeprecationWarning, match="is called normalized_mutual_info_score now"):
        old = clew.evaluation.normalized_mutual_info
    assert old is normalized_mutual_info_score
    with pytest.raises(AttributeError, match="no attribute 'nmi'"):
        clew.evaluation.nmi  # noqa: B018
