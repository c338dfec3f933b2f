"""Basu, Banerjee & Mooney (2004), section 5.2: the scores of the paper's figures."""

from __future__ import annotations

from math import log

import pytest

from clew import Constraints
from clew.evaluation import normalized_mutual_info_score, pairwise_scores

CLASSES = ["a", "a", "a", "b", "b", "b"]
CLUSTERS = [0, 0, 1, 1, 1, 1]


def test_nmi_divides_by_the_arithmetic_mean_of_the_entropies():
    classes = log(2)
    clusters = -(1 / 3 * log(1 / 3) + 2 / 3 * log(2 / 3))
    # Cluster 0 holds class a alone; of the four rows of cluster 1 one is of class a.
    classes_given_clusters = -4 / 6 * (1 / 4 * log(1 / 4) + 3 / 4 * log(3 / 4))
    information = classes - classes_given_clusters
    expected = information / ((classes + clusters) / 2)
    assert normalized_mutual_info_score(CLASSES, CLUSTERS) == pytest.approx(expected, rel=1e-12)


def test_precision_recall_and_f_count_pairs_in_the_same_cluster():
    # Together in the clusters: 1 + 6 pairs, of which 1 + 3 share a class; the classes hold 3 + 3.
    precision, recall = 4 / 7, 4 / 6
    expected = (precision, recall, 2 * precision * recall / (precision + recall))
    assert pairwise_scores(CLASSES, CLUSTERS) == pytest.approx(expected, rel=1e-12)


def test_only_pairs_without_an_explicit_constraint_are_scored():
    # (0, 1) was right, (2, 3) was wrong, (0, 2) was missed: all three leave the counts above.
    known = Constraints(must_link=[(0, 1), (0, 2)], cannot_link=[(2, 3)])
    precision, recall = 3 / 5, 3 / 4
    expected = (precision, recall, 2 * precision * recall / (precision + recall))
    assert pairwise_scores(CLASSES, CLUSTERS, known) == pytest.approx(expected, rel=1e-12)


def test_a_pair_that_only_follows_from_constraints_is_still_scored():
    # (1, 2) follows from (0, 1) and (0, 2); it is one of the pairs the clusters miss, so recall counts it.
    chain = Constraints(must_link=[(0, 1), (0, 2)])
    spelled_out = Constraints(must_link=[(0, 1), (0, 2), (1, 2)])
    assert pairwise_scores(CLASSES, CLUSTERS, chain).recall == 3 / 4
    assert pairwise_scores(CLASSES, CLUSTERS, spelled_out).recall == 3 / 3
