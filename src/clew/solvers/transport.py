"""The cheapest assignment of rows to clusters whose sizes have limits.

Demiriz, Bennett and Bradley 2008 (`demiriz2008`); survey section 3.2.2, Eq. 44. For fixed centres the assignment is a
minimum-cost flow, so the linear program has a solution in whole rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.kernels.transport import route_excess

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Length of the list of the cheapest rows to move, for each pair of clusters. Long lists are rebuilt less often, and
# short lists are sorted faster (at 10,000 to 1,000,000 rows, 32 to 128 take equal time). There are k² lists, which
# together hold no more rows than the second number, so lists are shorter if there are many clusters.
_LIST_LENGTH, _LIST_ENTRIES = 64, 2_000_000


class Transport(NamedTuple):
    """The cheapest assignment within the limits.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
    cost : float
        Sum of the rows' costs.
    prices : ndarray of shape (k,)
        Marginal cost of one more row in each cluster: above 0 at the upper limit, below 0 at the lower limit, else 0.
        No row could lower ``costs + prices`` by moving. The prices are a good start for a similar problem.
    n_paths : int
        Number of paths along which rows were moved, after each row started in its cheapest cluster.
    """

    labels: npt.NDArray[np.int32]
    cost: float
    prices: FloatArray
    n_paths: int


def transport(costs: FloatArray, lower: IntArray, upper: IntArray, prices: FloatArray | None = None) -> Transport:
    """Assign each row to one cluster, at the lowest total cost with sizes from `lower` to `upper`.

    Parameters
    ----------
    costs : ndarray of shape (n_rows, k)
    lower, upper : ndarrays of shape (k,)
        Whole numbers with ``lower <= upper`` and ``lower.sum() <= n_rows <= upper.sum()``.
    prices : ndarray of shape (k,), optional
        Initial prices, such as those of a similar problem. They change the work, but not the cost.
    """
    n_rows, k = costs.shape
    reduced = np.zeros(k + 1)
    if prices is not None:
        reduced[:k] = prices
    labels = np.asarray((costs + reduced[:k]).argmin(axis=1), dtype=np.int32)
    sizes = np.bincount(labels, minlength=k)
    flows = np.where(reduced[:k] > 0, upper, np.where(reduced[:k] < 0, lower, np.clip(sizes, lower, upper)))
    lists = (k, k, max(4, min(_LIST_LENGTH, _LIST_ENTRIES // k**2)))
    n_paths = route_excess(
        costs, lower, upper, labels, reduced, flows.astype(np.int64),
        np.empty(k, dtype=np.int64), np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64),
        np.empty(k + 1, dtype=np.int64), np.empty(k + 1), np.empty(k + 1, dtype=np.int64), np.empty(k + 1, np.uint8),
        np.empty(lists), np.empty(lists, dtype=np.int64), np.empty((k, k), dtype=np.int64), np.empty((k, k)),
        np.empty((k, k)),
    )  # fmt: skip
    if n_paths < 0:
        raise ValueError(f"sizes from {lower.sum()} to {upper.sum()} cannot hold {n_rows} rows")
    cost = float(costs[np.arange(n_rows), labels].sum())
    return Transport(labels, cost, reduced[:k] - reduced[k], n_paths)
