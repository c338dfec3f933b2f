"""Compute all scores at once, and check whether two partitions are the same."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from clew.evaluation._contingency import Contingency, encode_partitions, encode_scored
from clew.evaluation._information import nmi_of, vi_of
from clew.evaluation._matching import accuracy_of
from clew.evaluation._pairs import adjusted_rand_of, pairwise_of, rand_of


def evaluate(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike, constraints: Any = None) -> dict[str, float]:
    """Compute the usual scores of a clustering.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Class and cluster of each row.
    constraints : Constraints or anything `Constraints.of` takes, optional
        Constraints that the clustering used. Their given pairs are left out of "pairwise F", but of no other score.

    Returns
    -------
    dict of float
        "ARI", "NMI", "pairwise F", "Rand", "VI", "accuracy", in this order. VI is a distance, and its best value is 0.
        The best value of the others is 1.

    Examples
    --------
    >>> from clew.evaluation import evaluate
    >>> scores = evaluate(["a", "a", "b", "b"], [0, 0, 1, 2])
    >>> {name: round(value, 3) for name, value in scores.items()}
    {'ARI': 0.571, 'NMI': 0.8, 'pairwise F': 0.667, 'Rand': 0.833, 'VI': 0.347, 'accuracy': 0.75}
    """
    true_of, pred_of = encode_scored(labels_true, labels_pred)
    table = Contingency.of(true_of, pred_of)
    return {
        "ARI": adjusted_rand_of(table.pair_counts),
        "NMI": nmi_of(table),
        "pairwise F": pairwise_of(true_of, pred_of, constraints).f,
        "Rand": rand_of(table.pair_counts),
        "VI": vi_of(table),
        "accuracy": accuracy_of(table),
    }


def same_partition(a: npt.ArrayLike, b: npt.ArrayLike) -> bool:
    """Whether two labellings are the same partition, with any label values.

    Parameters
    ----------
    a, b : array-like of shape (n_samples,)
        Cluster of each row. A row with the number -1 is noise and in no cluster.

    Returns
    -------
    bool

    Examples
    --------
    >>> from clew.evaluation import same_partition
    >>> same_partition([0, 0, 1], ["x", "x", "y"])
    True
    """
    return Contingency.of(*encode_partitions(a, b, "a", "b")).is_same_partition
