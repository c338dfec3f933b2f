"""Scores by their definitions: loops over pairs of rows, sums over probabilities, all permutations."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations
from math import log


def row_pairs(n):
    return set(combinations(range(n), 2))


def together(labels):
    return {(i, j) for i, j in row_pairs(len(labels)) if labels[i] == labels[j]}


def in_one_cluster(labels):
    """Pairs that predicted labels put together; rows in cluster -1 are noise, together with nobody."""
    return {(i, j) for i, j in together(labels) if labels[i] != -1}


def ordered(pairs):
    return {(min(i, j), max(i, j)) for i, j in pairs}


def sharing(columns):
    """Pairs with one value, other than -1, in at least one of the columns."""
    return {
        (i, j) for column in columns for i, j in row_pairs(len(column)) if column[i] == column[j] and column[i] != -1
    }


def both_labelled(labels):
    return {(i, j) for i, j in row_pairs(len(labels)) if labels[i] != -1 and labels[j] != -1}


def stated_pairs(must_link=(), cannot_link=(), labels=(), must_groups=(), cannot_groups=()):
    """Groups are lists of columns."""
    return (
        ordered(must_link)
        | ordered(cannot_link)
        | both_labelled(labels)
        | sharing(must_groups)
        | sharing(cannot_groups)
    )


def pairwise_scores(labels_true, labels_pred, left_out=frozenset()):
    actual, predicted = together(labels_true) - left_out, in_one_cluster(labels_pred) - left_out
    right = actual & predicted
    precision = len(right) / len(predicted) if predicted else 1.0
    recall = len(right) / len(actual) if actual else 1.0
    f = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return precision, recall, f


def rand_score(labels_true, labels_pred):
    pairs = row_pairs(len(labels_true))
    disagreeing = together(labels_true) ^ in_one_cluster(labels_pred)
    return 1 - len(disagreeing) / len(pairs) if pairs else 1.0


def adjusted_rand_score(labels_true, labels_pred):
    """(index - expected) / (largest - expected), all in exact fractions."""
    n_pairs = len(row_pairs(len(labels_true)))
    true, pred = together(labels_true), together(labels_pred)
    if true == pred:
        return 1.0
    expected = Fraction(len(true) * len(pred), n_pairs)
    return float((len(true & pred) - expected) / (Fraction(len(true) + len(pred), 2) - expected))


def entropy(labels):
    n = len(labels)
    return -sum(count / n * log(count / n) for count in Counter(labels).values())


def conditional_entropy(labels, given):
    n = len(labels)
    joint, margin = Counter(zip(labels, given, strict=True)), Counter(given)
    return -sum(count / n * log(count / margin[value]) for (_, value), count in joint.items())


def normalized_mutual_info_score(labels_true, labels_pred):
    if len(set(labels_true)) == len(set(labels_pred)) == 1:
        return 1.0
    information = entropy(labels_pred) - conditional_entropy(labels_pred, labels_true)
    return information / ((entropy(labels_pred) + entropy(labels_true)) / 2)


def variation_of_information(labels_true, labels_pred):
    return conditional_entropy(labels_true, labels_pred) + conditional_entropy(labels_pred, labels_true)


def matching_accuracy(labels_true, labels_pred):
    """Every way to give each cluster a class of its own; clusters beyond the classes get none."""
    classes, clusters = sorted(set(labels_true)), sorted(set(labels_pred))
    classes += [None] * (len(clusters) - len(classes))
    return max(
        sum(class_of[cluster] == true for true, cluster in zip(labels_true, labels_pred, strict=True))
        / len(labels_true)
        for chosen in permutations(classes, len(clusters))
        for class_of in [dict(zip(clusters, chosen, strict=True))]
    )


def satisfaction(clusters, must_link=(), cannot_link=(), labels=(), must_groups=(), cannot_groups=()):
    """(satisfied, total) by kind; rows in cluster -1 are together with nobody."""
    joined = in_one_cluster(clusters)
    known = both_labelled(labels)
    alike = known & together(labels)
    stated = {
        "must_link": (ordered(must_link), set()),
        "cannot_link": (set(), ordered(cannot_link)),
        "labels": (alike, known - alike),
        "must_groups": (sharing(must_groups), set()),
        "cannot_groups": (set(), sharing(cannot_groups)),
    }
    return {
        kind: (len(same & joined) + len(different - joined), len(same) + len(different))
        for kind, (same, different) in stated.items()
    }
