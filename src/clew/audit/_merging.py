"""Predict answers by small clusters, merged according to the other answers.

A class may consist of several separate groups, which no clustering with the right number of clusters joins. Merging
small clusters by the answers can join them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from clew._base import quietly
from clew.audit._ensemble import folds
from clew.partitional import SeededKMeans

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Number of small clusters: the second value times the largest number of clusters, but at least the first value.
_SMALL, _PER_CLUSTER = 25, 2
# Smallest mean number of rows of a small cluster.
_ROWS = 4
# A merge needs one more answer "same" for each rise of the cost by this many times the mean cost of a small cluster.
_COST_OF_ANSWER = 4.0
# Number of clusterings, each with its own folds of the answers.
_DRAWS = 2


@quietly()
def merged_votes(
    view: FloatArray,
    pairs: IntArray,
    same: BoolArray,
    pair_of: IntArray,
    numbers: tuple[int, ...],
    rng: np.random.Generator,
) -> FloatArray:
    """For each number of clusters: the share of merged clusterings, made without a pair's own answer, that join it."""
    n_small = max(1, min(max(_SMALL, _PER_CLUSTER * max(numbers)), len(view) // _ROWS))
    votes = np.zeros((len(numbers), len(pairs)))
    for _ in range(_DRAWS):
        model = SeededKMeans(n_small, init="k-means++", n_init=2, tol=1e-3, max_iter=1000, random_state=rng).fit(view)
        small = np.asarray(model.labels_, dtype=np.int64)
        ends, sizes = small[pairs], np.bincount(small, minlength=n_small).astype(np.float64)
        unit = _COST_OF_ANSWER * model.inertia_ / n_small or 1.0
        for left_out in folds(pair_of, rng):
            answers = _balance(ends[~left_out], same[~left_out], n_small)
            merged = merge_small(model.cluster_centers_.astype(np.float64), sizes, answers, unit, min(numbers))
            for place, number in enumerate(numbers):
                group_of = merged[min(number, n_small)]
                first, second = group_of[ends[left_out]].T
                votes[place, left_out] += (first == second) / _DRAWS
    return votes


def _balance(ends: IntArray, same: BoolArray, n_small: int) -> FloatArray:
    """Number of answers "same" minus number of answers "different" between any two small clusters."""
    balance = np.zeros((n_small, n_small))
    np.add.at(balance, (ends[:, 0], ends[:, 1]), np.where(same, 1.0, -1.0))
    return balance + balance.T


def merge_small(
    centers: FloatArray, sizes: FloatArray, answers: FloatArray, unit: float, least: int
) -> dict[int, IntArray]:
    """The group of each small cluster, for every number of groups down to `least`.

    The next two groups to merge have the highest balance of answers, minus the rise of the k-means cost divided by
    `unit`.

    Examples
    --------
    Three groups on a line; an answer "same" joins the first and the last:

    >>> import numpy as np
    >>> from clew.audit._merging import merge_small
    >>> answers = np.array([[0, 0, 9], [0, 0, 0], [9, 0, 0.0]])
    >>> merge_small(np.array([[0.0], [1.0], [3.0]]), np.ones(3), answers, 1.0, 2)[2]
    array([0, 1, 0])
    """
    centers, sizes, answers = centers.copy(), sizes.copy(), answers.copy()
    n_small = len(centers)
    group_of, alive = np.arange(n_small), np.ones(n_small, dtype=bool)
    found = {n_small: group_of.copy()}
    for n_groups in range(n_small - 1, least - 1, -1):
        squared = ((centers[:, None] - centers[None]) ** 2).sum(axis=2)
        totals = sizes[:, None] + sizes[None]
        rise = sizes[:, None] * sizes[None] / np.where(totals > 0, totals, 1.0) * squared
        score = np.where(alive[:, None] & alive[None], answers - rise / unit, -np.inf)
        np.fill_diagonal(score, -np.inf)
        kept, gone = sorted(divmod(int(score.argmax()), n_small))
        weight = sizes[kept] + sizes[gone]
        if weight > 0:
            centers[kept] = (sizes[kept] * centers[kept] + sizes[gone] * centers[gone]) / weight
        sizes[kept], alive[gone] = weight, False
        answers[kept] += answers[gone]
        answers[:, kept] += answers[:, gone]
        group_of[group_of == gone] = kept
        found[n_groups] = group_of.copy()
    return found
