"""Stable cluster ids: each cluster of a new fit takes over the id of the old cluster it shares most rows with.

The matching is one to one and maximises the overlap. An unmatched cluster gets the next new id. Ids are never reused.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

IntArray = npt.NDArray[np.int64]


def stable_ids(
    old: npt.ArrayLike, new: npt.ArrayLike, next_id: int, names: Sequence[Hashable] | None = None
) -> tuple[IntArray, int]:
    """Give each cluster of a new labelling the id of the old cluster that it overlaps most with.

    Parameters
    ----------
    old : array-like of shape (n_rows,)
        Cluster id of each row before the fit, -1 for rows that had none.
    new : array-like of shape (n_rows,)
        Any labels after the fit. Rows without a cluster have -1 and stay -1.
    next_id : int
        The first id that was never used.
    names : sequence of str, optional
        Names of the rows. Ties between equal overlaps go to the cluster with the smallest name, so that neither the
        order of the rows nor the numbers in `new` matter. Default: the row positions.

    Returns
    -------
    ids : ndarray of shape (n_rows,)
    next_id : int

    Examples
    --------
    >>> from clew.session._identity import stable_ids
    >>> stable_ids([4, 4, 7, 7, -1], [1, 1, 0, 0, 2], 8)
    (array([4, 4, 7, 7, 8]), 9)
    """
    before, after = np.asarray(old, dtype=np.int64), np.asarray(new, dtype=np.int64)
    rank = np.arange(len(after)) if names is None else _ranks(names)
    clusters = _in_order(after, rank)
    earlier = np.unique(before[before >= 0])
    shared = np.zeros((len(clusters), len(earlier)), dtype=np.int64)
    both = (before >= 0) & (after >= 0)
    place = {int(label): position for position, label in enumerate(clusters)}
    rows = np.array([place[int(label)] for label in after[both]], dtype=np.int64)
    np.add.at(shared, (rows, np.searchsorted(earlier, before[both])), 1)
    ids = np.full(len(clusters), -1, dtype=np.int64)
    rows, taken = linear_sum_assignment(shared, maximize=True)
    overlap = shared[rows, taken] > 0
    ids[rows[overlap]] = earlier[taken[overlap]]
    fresh = np.flatnonzero(ids < 0)
    ids[fresh] = next_id + np.arange(len(fresh))
    found = np.full(len(after), -1, dtype=np.int64)
    for label, number in zip(clusters, ids, strict=True):
        found[after == label] = number
    return found, next_id + len(fresh)


def _ranks(names: Sequence[Any]) -> IntArray:
    ranks = np.empty(len(names), dtype=np.int64)
    ranks[sorted(range(len(names)), key=lambda row: names[row])] = np.arange(len(names))
    return ranks


def _in_order(labels: IntArray, rank: IntArray) -> IntArray:
    """Labels in order of their first row, with the rows sorted by rank."""
    by_rank = labels[np.argsort(rank)]
    values, first = np.unique(by_rank, return_index=True)
    order = values[np.argsort(first)]
    return order[order >= 0]
