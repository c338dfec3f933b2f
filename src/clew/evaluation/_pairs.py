"""Scores over pairs of rows: Rand, adjusted Rand, and precision, recall and F without the constrained pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clew.constraints import Constraints
from clew.evaluation._contingency import Contingency, Integers, PairCounts, encode_scored
from clew.evaluation._shared_keys import RowPairs, clusters, count_sharing, key_columns


class PairwiseScores(NamedTuple):
    """Precision, recall and F over pairs of rows."""

    precision: float
    recall: float
    f: float


def pairwise_scores(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike, constraints: Any = None) -> PairwiseScores:
    """Precision, recall and F of "these two rows are together", over the pairs without a given constraint.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Class and cluster of each row.
    constraints : Constraints or anything `Constraints.of` takes, optional
        Constraints that the clustering used. Their given pairs are left out: must-links and cannot-links, pairs of two
        labelled rows, and pairs that share a must-group or a cannot-group. Entailed pairs are counted. Soft groups and
        triplets give no pair.

    Returns
    -------
    PairwiseScores
        `precision`, `recall` and their harmonic mean `f`.

    Notes
    -----
    Precision is 1 if no pair is predicted together. Recall is 1 if no pair is truly together. So f is 1 exactly if the
    labellings agree on every counted pair.
    Groups are never expanded: time O(n log n + pairs) for each overlap of group columns, memory O(n + pairs).

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney (2004). "Active semi-supervision for pairwise constrained
       clustering." SIAM International Conference on Data Mining. Section 5.2.

    Examples
    --------
    >>> from clew import Constraints
    >>> from clew.evaluation import pairwise_scores
    >>> pairwise_scores([0, 0, 1, 1], [0, 0, 0, 1])
    PairwiseScores(precision=0.3333333333333333, recall=0.5, f=0.4)
    >>> pairwise_scores([0, 0, 1, 1], [0, 0, 0, 1], Constraints(cannot_link=[(0, 2)]))
    PairwiseScores(precision=0.5, recall=0.5, f=0.5)
    """
    return pairwise_of(*encode_scored(labels_true, labels_pred), constraints)


def rand_score(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Fraction of the pairs of rows that both labellings put together or both separate.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Class and cluster of each row.

    Returns
    -------
    float
        From 0 to 1 (same partition). 1 for a single row.

    Examples
    --------
    >>> from clew.evaluation import rand_score
    >>> round(rand_score([0, 0, 1, 1], [0, 0, 1, 2]), 3)
    0.833
    """
    return rand_of(Contingency.of(*encode_scored(labels_true, labels_pred)).pair_counts)


def adjusted_rand_score(labels_true: npt.ArrayLike, labels_pred: npt.ArrayLike) -> float:
    """Rand index adjusted for chance: random labellings with the same cluster sizes score 0 on average.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Class and cluster of each row.

    Returns
    -------
    float
        From -0.5 to 1 (same partition).

    References
    ----------
    .. [1] L. Hubert, P. Arabie (1985). "Comparing partitions." Journal of Classification 2, 193-218.

    Examples
    --------
    >>> from clew.evaluation import adjusted_rand_score
    >>> round(adjusted_rand_score([0, 0, 1, 1], [0, 0, 1, 2]), 3)
    0.571
    """
    return adjusted_rand_of(Contingency.of(*encode_scored(labels_true, labels_pred)).pair_counts)


def pairwise_of(true_of: Integers, pred_of: Integers, constraints: Any) -> PairwiseScores:
    """Pairwise scores of encoded labels."""
    keys, pairs = _stated(constraints, true_of.size)

    def unstated(codes: Integers) -> int:
        blocks = clusters(codes)
        return blocks.n_pairs - count_sharing(blocks, keys) - pairs.count_together(codes)

    right = unstated(true_of * (int(pred_of.max()) + 1) + pred_of)
    predicted, actual = unstated(pred_of), unstated(true_of)
    return PairwiseScores(
        precision=right / predicted if predicted else 1.0,
        recall=right / actual if actual else 1.0,
        f=2 * right / (predicted + actual) if predicted + actual else 1.0,
    )


def _stated(constraints: Any, n_rows: int) -> tuple[list[Integers], RowPairs]:
    """The given pairs: key columns (rows with equal keys form a given pair), and given links that share no key."""
    known = Constraints.of(constraints, n_samples=n_rows)
    keys = key_columns(known.must_groups) + key_columns(known.cannot_groups)
    if known.labels is not None:
        keys.append(np.where(known.labels == -1, -1, 0))
    given = np.concatenate([known.must_link, known.cannot_link])
    return keys, RowPairs.of(given).without_shared(keys)


def rand_of(pairs: PairCounts) -> float:
    """Rand index of pair counts."""
    return pairs.agreeing / pairs.total if pairs.total else 1.0


def adjusted_rand_of(pairs: PairCounts) -> float:
    """Adjusted Rand index of pair counts."""
    # Python integers, because the products exceed 2**63 from about 100,000 rows on.
    only_true, only_pred = pairs.true - pairs.both, pairs.pred - pairs.both
    if only_true == only_pred == 0:
        return 1.0
    apart = pairs.agreeing - pairs.both
    return (2 * (pairs.both * apart - only_true * only_pred)) / (
        pairs.true * (only_true + apart) + pairs.pred * (only_pred + apart)
    )
