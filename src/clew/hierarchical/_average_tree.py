"""The tree of average linkage on squared Euclidean distances, without a matrix of distances.

The mean squared distance between two clusters is the squared distance of their means plus their two variances, so a
cluster needs no more than a mean, a variance and a size. Merging all pairs of clusters that are each other's nearest
at once gives the same tree as merging the nearest pair of all, one pair at a time (Murtagh 1983, `murtagh1983`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.constraints._closure import component_numbers

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Noise that is added to the rows, which have a mean squared norm of 1. Without it, equal distances would have to be
# merged one by one.
_NOISE = 1e-9
# Number of distances that are computed at a time.
_BLOCK = 4_000_000


class AverageTree(NamedTuple):
    """Merges of clusters, the lowest first. Merge i makes node n_rows + i; the nodes 0 to n_rows - 1 are the rows.

    For the rows 0, 1, 5 and 9 on a line, ``children`` is ``[[0, 1], [2, 3], [4, 5]]``, ``sizes`` is ``[1, 1, 1, 1, 2,
    2, 4]`` and ``members`` is ``[0, 1, 2, 3, 0, 2, 0]``.

    Attributes
    ----------
    children : ndarray of shape (n_rows - 1, 2)
        The two merged nodes, the larger cluster first.
    heights : ndarray of shape (n_rows - 1,)
        Root of the mean squared distance between the two clusters.
    sizes : ndarray of shape (2 * n_rows - 1,)
        Number of rows of each node.
    members : ndarray of shape (2 * n_rows - 1,)
        A row of each node: that of its larger child, so that it lies where rows are dense.
    """

    children: IntArray
    heights: FloatArray
    sizes: IntArray
    members: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.children) + 1

    def pairs(self) -> IntArray:
        """A row of each of the two clusters that a merge joins, of shape (n_rows - 1, 2)."""
        return self.members[self.children]

    def labels(self, n_clusters: int) -> IntArray:
        """Labels after all but the last `n_clusters` - 1 merges, numbered by first rows."""
        return component_numbers(self.n_rows, self.pairs()[: self.n_rows - n_clusters])[0]


def average_tree(columns: FloatArray) -> AverageTree:
    """Build the tree of rows that have a mean squared norm of 1. Time O(n² d), memory O(n d)."""
    n_rows, n_nodes = len(columns), 2 * len(columns) - 1
    means = np.empty((n_nodes, columns.shape[1]))
    means[:n_rows] = columns + _NOISE * np.random.default_rng(0).normal(size=columns.shape)
    variances, sizes = np.zeros(n_nodes), np.ones(n_nodes, dtype=np.int64)
    children, heights = np.empty((n_rows - 1, 2), dtype=np.int64), np.empty(n_rows - 1)
    nearest = np.full(n_nodes, -1)
    alive = stale = np.arange(n_rows)
    n_made = n_rows
    while len(alive) > 1:
        nearest[stale], squares = _nearest(means, variances, stale, alive)
        one, two = _reciprocal(nearest, alive)
        if not len(one):  # rounding errors: no two clusters are each other's nearest
            nearest[alive], squares = _nearest(means, variances, alive, alive)
            one = alive[[squares.argmin()]]
            two = nearest[one]
        made = np.arange(n_made, n_made + len(one))
        n_made += len(one)
        share = sizes[one] / (sizes[one] + sizes[two])
        apart = means[one] - means[two]
        squared = np.einsum("ij,ij->i", apart, apart)
        means[made] = means[two] + share[:, None] * apart
        variances[made] = share * variances[one] + (1 - share) * variances[two] + share * (1 - share) * squared
        sizes[made] = sizes[one] + sizes[two]
        larger_first = sizes[one] >= sizes[two]
        children[made - n_rows, 0] = np.where(larger_first, one, two)
        children[made - n_rows, 1] = np.where(larger_first, two, one)
        heights[made - n_rows] = np.sqrt(squared + variances[one] + variances[two])
        is_gone = np.zeros(n_nodes, dtype=bool)
        is_gone[one] = is_gone[two] = True
        alive = np.concatenate([alive[~is_gone[alive]], made])
        # The nearest of any other cluster stays the nearest: a merged cluster is not nearer than both of its parts.
        stale = alive[(nearest[alive] < 0) | is_gone[nearest[alive]]]
    return _sorted(children, heights, sizes)


def _nearest(
    means: FloatArray, variances: FloatArray, wanted: IntArray, alive: IntArray
) -> tuple[IntArray, FloatArray]:
    """The nearest other cluster of each wanted cluster, and their mean squared distance."""
    points = means[alive]
    norms = np.einsum("ij,ij->i", points, points) + variances[alive]
    doubled = np.ascontiguousarray(-2 * points.T)
    found, squares = np.empty(len(wanted), dtype=np.int64), np.empty(len(wanted))
    own = np.searchsorted(alive, wanted)
    step = max(_BLOCK // len(alive), 1)
    for begin in range(0, len(wanted), step):
        block = slice(begin, begin + step)
        apart = means[wanted[block]] @ doubled
        apart += norms
        each = np.arange(len(apart))
        apart[each, own[block]] = np.inf
        places = apart.argmin(axis=1)
        found[block], squares[block] = alive[places], apart[each, places]
    return found, squares + np.einsum("ij,ij->i", means[wanted], means[wanted]) + variances[wanted]


def _reciprocal(nearest: IntArray, alive: IntArray) -> tuple[IntArray, IntArray]:
    """Pairs of clusters that are each other's nearest."""
    one = alive[(nearest[nearest[alive]] == alive) & (alive < nearest[alive])]
    return one, nearest[one]


def _sorted(children: IntArray, heights: FloatArray, sizes: IntArray) -> AverageTree:
    """Number the merges by height. A node is made after its children, whatever the rounding errors."""
    n_rows = len(heights) + 1
    for place, (one, two) in enumerate(children.tolist()):
        below = max(heights[one - n_rows] if one >= n_rows else 0.0, heights[two - n_rows] if two >= n_rows else 0.0)
        heights[place] = max(heights[place], below)
    order = np.argsort(heights, kind="stable")
    number = np.arange(2 * n_rows - 1)
    number[n_rows + order] = np.arange(n_rows, 2 * n_rows - 1)
    children, sizes = number[children[order]], np.concatenate([sizes[:n_rows], sizes[n_rows:][order]])
    members = np.arange(2 * n_rows - 1)
    for place, larger in enumerate(children[:, 0].tolist()):
        members[n_rows + place] = members[larger]
    return AverageTree(children, heights[order], sizes, members)
