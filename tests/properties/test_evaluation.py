"""Laws of the scores, on small random labellings and constraints."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn import metrics

from clew import Constraints
from clew.evaluation import (
    adjusted_rand_score,
    constraint_satisfaction,
    evaluate,
    matching_accuracy,
    normalized_mutual_info_score,
    pairwise_scores,
    same_partition,
    variation_of_information,
)
from tests.reference import evaluation as reference

# Entropies are a few units and are summed from a handful of terms; this leaves three digits of slack.
ROUNDING = 1e-12


def labels_of(n, n_values=4, lowest=0):
    return st.lists(st.integers(lowest, n_values - 1), min_size=n, max_size=n)


def labellings(how_many, *, max_rows=9, n_values=4):
    return st.integers(1, max_rows).flatmap(lambda n: st.tuples(*(labels_of(n, n_values) for _ in range(how_many))))


@st.composite
def constrained_labellings(draw):
    n = draw(st.integers(2, 9))
    row = st.integers(0, n - 1)
    pairs = st.lists(st.tuples(row, row).filter(lambda pair: pair[0] != pair[1]), max_size=6)
    groups = st.lists(labels_of(n, 3, lowest=-1), max_size=3)
    knowledge = {
        "must_link": draw(pairs),
        "cannot_link": draw(pairs),
        "labels": draw(st.just([]) | labels_of(n, 2, lowest=-1)),
        "must_groups": draw(groups),
        "cannot_groups": draw(groups),
    }
    return draw(labels_of(n, 3, lowest=-1)), draw(labels_of(n, 3, lowest=-1)), knowledge


def constraints_from(knowledge, n):
    return Constraints(
        knowledge["must_link"],
        knowledge["cannot_link"],
        labels=knowledge["labels"] or None,
        must_groups=np.transpose(knowledge["must_groups"]) if knowledge["must_groups"] else None,
        cannot_groups=np.transpose(knowledge["cannot_groups"]) if knowledge["cannot_groups"] else None,
        n_samples=n,
    )


@given(constrained_labellings())
def test_pairwise_scores_leave_out_exactly_the_stated_pairs(case):
    labels_true, labels_pred, knowledge = case
    scores = pairwise_scores(labels_true, labels_pred, constraints_from(knowledge, len(labels_true)))
    left_out = reference.stated_pairs(**knowledge)
    assert scores == pytest.approx(reference.pairwise_scores(labels_true, labels_pred, left_out), abs=ROUNDING)


@given(constrained_labellings())
def test_satisfaction_counts_match_the_double_loop(case):
    _, clusters, knowledge = case
    kept = constraint_satisfaction(clusters, constraints_from(knowledge, len(clusters)))
    expected = reference.satisfaction(clusters, **knowledge)
    assert kept._asdict() == expected
    assert kept.satisfied == sum(satisfied for satisfied, _ in expected.values())
    assert kept.total == sum(total for _, total in expected.values())


@given(constrained_labellings(), st.data())
def test_direction_order_and_repetition_of_pairs_do_not_matter(case, data):
    labels_true, labels_pred, knowledge = case
    untidy = dict(knowledge)
    for kind in ("must_link", "cannot_link"):
        turned = knowledge[kind] + [pair[::-1] for pair in knowledge[kind]]
        untidy[kind] = data.draw(st.permutations(turned))
    n = len(labels_true)
    tidy, untidy = constraints_from(knowledge, n), constraints_from(untidy, n)
    assert pairwise_scores(labels_true, labels_pred, untidy) == pairwise_scores(labels_true, labels_pred, tidy)
    assert constraint_satisfaction(labels_pred, untidy) == constraint_satisfaction(labels_pred, tidy)


@given(labellings(2), st.permutations(["p", "q", "r", "s"]), st.permutations([7, -2, 0.5, 2**62]))
def test_label_values_do_not_matter(case, names_true, names_pred):
    labels_true, labels_pred = case
    renamed_true = [names_true[label] for label in labels_true]
    renamed_pred = [names_pred[label] for label in labels_pred]
    assert evaluate(renamed_true, renamed_pred) == evaluate(labels_true, labels_pred)
    assert same_partition(labels_true, renamed_true) and same_partition(labels_pred, renamed_pred)


@given(constrained_labellings())
def test_each_noise_row_is_like_a_cluster_of_its_own(case):
    labels_true, labels_pred, knowledge = case
    alone = [f"row {row}" if label == -1 else label for row, label in enumerate(labels_pred)]
    known = constraints_from(knowledge, len(alone))
    assert evaluate(labels_true, labels_pred, known) == evaluate(labels_true, alone, known)
    assert constraint_satisfaction(labels_pred, known) == constraint_satisfaction(alone, known)
    assert same_partition(labels_pred, alone)
    assert same_partition(alone, labels_pred)


@given(labellings(2), st.data())
def test_order_of_rows_does_not_matter(case, data):
    labels_true, labels_pred = case
    order = data.draw(st.permutations(range(len(labels_true))))
    moved = evaluate([labels_true[row] for row in order], [labels_pred[row] for row in order])
    assert moved == evaluate(labels_true, labels_pred)


@given(labellings(2))
def test_every_score_is_symmetric(case):
    labels_true, labels_pred = case
    assert evaluate(labels_pred, labels_true) == evaluate(labels_true, labels_pred)


@given(labellings(2))
def test_a_score_is_perfect_exactly_for_the_same_partition(case):
    labels_true, labels_pred = case
    same = reference.together(labels_true) == reference.together(labels_pred)
    assert same_partition(labels_true, labels_pred) is same
    perfect = {name: 0.0 if name == "VI" else 1.0 for name in evaluate([0], [0])}
    for name, score in evaluate(labels_true, labels_pred).items():
        assert (score == perfect[name]) is same, name


@given(labellings(2))
def test_scores_keep_their_ranges(case):
    scores = evaluate(*case)
    lowest = {"ARI": -0.5, "accuracy": 1 / len(case[0])}
    assert all(lowest.get(name, 0.0) <= score for name, score in scores.items())
    assert scores.pop("VI") <= log(len(case[0])) + ROUNDING
    assert max(scores.values()) <= 1.0


@given(labellings(3))
def test_variation_of_information_obeys_the_triangle_inequality(case):
    a, b, c = case
    direct, detour = (
        variation_of_information(a, c),
        variation_of_information(a, b) + variation_of_information(b, c),
    )
    assert direct <= detour + ROUNDING


@given(labellings(2, max_rows=40, n_values=12))
def test_scores_equal_those_of_scikit_learn(case):
    labels_true, labels_pred = case
    assert adjusted_rand_score(labels_true, labels_pred) == pytest.approx(
        metrics.adjusted_rand_score(labels_true, labels_pred), abs=ROUNDING
    )
    assert normalized_mutual_info_score(labels_true, labels_pred) == pytest.approx(
        metrics.normalized_mutual_info_score(labels_true, labels_pred), abs=ROUNDING
    )


@given(labellings(2, max_rows=60, n_values=15))
def test_matching_is_as_good_as_the_dense_assignment(case):
    table = metrics.cluster.contingency_matrix(*case)
    assert matching_accuracy(*case) == table[linear_sum_assignment(table, maximize=True)].sum() / len(case[0])
