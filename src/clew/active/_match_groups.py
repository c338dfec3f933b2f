"""Answers as evidence about groups: each counts for all candidates between the two groups that it is about.

Questions are chosen because two groups may be one, or because a group may be two. The pair that is asked about is
therefore no random pair: most pairs with the same distance are in groups that nobody doubts. A model that is fitted to
the asked pairs alone learns that such pairs are mostly different, and splits groups that were right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.matching._pair_model import ANSWER_WEIGHT, Candidates

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class GroupAnswers(NamedTuple):
    """Mean features of the candidates between two clusters or within one, 1 for "same", and the weights."""

    features: npt.NDArray[np.float32]
    same: FloatArray
    weights: FloatArray


def group_answers(candidates: Candidates, inside: IntArray, clusters: IntArray, asked: IntArray) -> GroupAnswers:
    """Turn answers into evidence about clusters that satisfy all of them.

    An answer counts for the two clusters of its rows: "same" within one cluster, "different" between two. A cluster
    whose answers are all "different" also counts as one answer "same", because its rows stayed together. With the
    clusters {0, 1, 2} and {3, 4}, the answer "different" about (0, 3) gives the mean of the candidates between both as
    "different", and the means within {0, 1, 2} and within {3, 4} as "same".

    Parameters
    ----------
    candidates : Candidates
    inside : ndarray of ints
        Positions of the candidates whose rows are clustered, and `clusters` for every row: see `clusters_around`.
    asked : ndarray of shape (n_answers, 2)
        The pairs of the answers, all of them candidates.
    """
    n_clusters = int(clusters.max(initial=0)) + 1
    answered, n_answers = np.unique(_keys(clusters[asked], n_clusters), return_counts=True)
    apart = answered[answered // n_clusters != answered % n_clusters]
    own = np.setdiff1d(np.concatenate([apart // n_clusters, apart % n_clusters]) * (n_clusters + 1), answered)
    wanted, times = np.concatenate([answered, own]), np.concatenate([n_answers, np.ones_like(own)])
    order = np.argsort(wanted)
    wanted, times = wanted[order], times[order]
    keys = _keys(clusters[candidates.pairs[inside]], n_clusters)
    place = np.minimum(np.searchsorted(wanted, keys), max(len(wanted) - 1, 0))
    chosen = wanted[place] == keys if len(wanted) else np.zeros(len(keys), dtype=bool)
    place, some = place[chosen], candidates.features[inside[chosen]]
    count = np.bincount(place, minlength=len(wanted))
    sums = sparse.csr_array((np.ones(len(place)), (place, np.arange(len(place)))), (len(wanted), len(place))) @ some
    known = count > 0
    means = (sums[known] / count[known, None]).astype(np.float32)
    same = (wanted // n_clusters == wanted % n_clusters)[known].astype(np.float64)
    return GroupAnswers(means, same, ANSWER_WEIGHT * np.minimum(times, count)[known])


def _keys(ends: IntArray, n_clusters: int) -> IntArray:
    """A number for each pair of clusters: the lower one times their number, plus the higher one."""
    return ends.min(axis=1) * n_clusters + ends.max(axis=1)
