"""Merge clusters on a condensed distance matrix. Pairs that must not be merged are infinitely far apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.constraints import Closure
from clew.constraints._closure import component_numbers
from clew.kernels import linkage as kernels
from clew.solvers.coloring import CliqueGraph, color

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LINKAGES = ("single", "complete", "average", "ward", "centroid")
# These linkages update squared Euclidean distances.
SQUARED = ("ward", "centroid")
# After a dead end, the search forbids one merge after another until it has scanned this many distances. From then on
# a colouring decides.
_SCAN_LIMIT = 1_000_000_000


class Merges(NamedTuple):
    """Merges in order: two rows that name the merged clusters, and the distance between these clusters.

    For the rows 0, 1, 5 and 9 on a line, ``pairs`` is ``[[0, 1], [2, 3], [0, 2]]`` and, with single linkage,
    ``heights`` is ``[1, 4, 4]``.
    """

    pairs: IntArray
    heights: FloatArray

    def first(self, n_merges: int) -> Merges:
        """The first `n_merges` merges."""
        return Merges(self.pairs[:n_merges], self.heights[:n_merges])


def concatenated(*parts: Merges) -> Merges:
    """Concatenate several lists of merges."""
    return Merges(np.concatenate([part.pairs for part in parts]), np.concatenate([part.heights for part in parts]))


@dataclass
class Level:
    """Clusters and the distances between them. A cluster is named by its first row.

    Attributes
    ----------
    distances : ndarray of shape (n_rows * (n_rows - 1) / 2,)
        Condensed matrix; infinite for clusters that must not be merged.
    linkage : str
    sizes : ndarray of shape (n_rows,)
        Number of rows of each cluster, stored at the position of its first row.
    alive : ndarray of shape (n_clusters,)
        First rows of the clusters, in increasing order.
    """

    distances: FloatArray
    linkage: str
    sizes: FloatArray
    alive: IntArray

    @classmethod
    def of_components(cls, distances: FloatArray, linkage: str, closed: Closure) -> Level:
        """Start from the components of must-linked rows; block cannot-linked ones. Overwrites `distances`."""
        n_rows = len(closed.component_of)
        if linkage in SQUARED:
            np.square(distances, out=distances)
        level = cls(distances, linkage, np.ones(n_rows), np.arange(n_rows))
        level.join(must_pairs(closed))
        level.block(closed.graph, closed.first_row)
        return level

    @property
    def _code(self) -> int:
        return LINKAGES.index(self.linkage)

    def join(self, pairs: IntArray) -> None:
        """Merge pairs of clusters, whatever their distance."""
        pairs = np.ascontiguousarray(pairs)
        kernels.join_pairs(self.distances, len(self.sizes), self._code, pairs, self.sizes, self.alive)
        self.alive = self.alive[: len(self.alive) - len(pairs)].copy()

    def block(self, graph: CliqueGraph, first_row: IntArray) -> None:
        """Make clusters that are adjacent in a graph infinitely far apart; `first_row` names each vertex's cluster."""
        kernels.block_pairs(
            self.distances,
            len(self.sizes),
            np.ascontiguousarray(first_row),
            graph.edge_ptr,
            graph.edges,
            graph.member_ptr,
            graph.members,
            np.inf,
        )

    def copy(self) -> Level:
        """Copy the clusters into a smaller matrix, numbered from 0."""
        n_rows, n = len(self.sizes), len(self.alive)
        first, second = np.triu_indices(n, 1)
        low, high = self.alive[first], self.alive[second]
        distances = self.distances[low * (2 * n_rows - low - 1) // 2 + high - low - 1]
        return Level(distances, self.linkage, self.sizes[self.alive], np.arange(n))

    def merged(self, limit: float = np.inf) -> Merges:
        """Merge the closest clusters until all are blocked or farther apart than `limit`. Overwrites the level."""
        n_rows, n = len(self.sizes), len(self.alive)
        pairs, heights = np.empty((max(n - 1, 0), 2), dtype=np.int64), np.empty(max(n - 1, 0))
        common = (self.distances, n_rows, self._code)
        work, bounds = np.empty(n_rows, dtype=np.int64), np.zeros(n_rows)
        if self.linkage == "centroid":  # a merged cluster can be nearer to a third one than its parts were
            within = limit**2 if limit < 1e150 else np.inf
            found = kernels.merge_closest(*common, within, self.sizes, self.alive, work, bounds, pairs, heights)
            order = np.arange(found)
        else:
            found = kernels.merge_chain(*common, self.sizes, self.alive, work, bounds, pairs, heights)
            order = np.argsort(heights[:found], kind="stable")
            order = order[: np.searchsorted(heights[order], limit, side="right")]
        merges = Merges(pairs[order], heights[order])
        if self.linkage in SQUARED:
            np.sqrt(merges.heights, out=merges.heights)
        return merges


def must_pairs(closed: Closure) -> IntArray:
    """Must-links that span each component: its first row paired with each of its other rows, in row order."""
    first = closed.first_row[closed.component_of]
    later = np.flatnonzero(first < np.arange(len(first)))
    return np.column_stack([first[later], later])


def linkage_matrix(closed: Closure, merges: Merges) -> FloatArray:
    """Build SciPy's linkage matrix: must-links at height 0, then the merges, then blocked merges a tenth higher."""
    n_rows = len(closed.component_of)
    joined = np.concatenate([must_pairs(closed), merges.pairs])
    cluster_of = component_numbers(n_rows, joined)[0]
    first_row = np.unique(cluster_of, return_index=True)[1]
    blocked = np.column_stack([np.zeros(len(first_row) - 1, dtype=np.int64), first_row[1:]])
    pairs = np.concatenate([joined, blocked])
    tree = np.zeros((n_rows - 1, 4))
    kernels.number_merges(pairs, np.arange(n_rows), np.arange(n_rows), np.ones(n_rows, dtype=np.int64), tree)
    n_must = len(joined) - len(merges.heights)
    tree[n_must : len(joined), 2] = merges.heights
    tree[len(joined) :, 2] = 1.1 * merges.heights.max(initial=0) or 1.0
    return tree


def clusters_after(tree: FloatArray, n_merges: int) -> IntArray:
    """Cluster of each row after the first `n_merges` merges of a linkage matrix, numbered by first rows."""
    n_rows = len(tree) + 1
    nodes = np.repeat(n_rows + np.arange(n_merges), 2)
    pairs = np.column_stack([tree[:n_merges, :2].astype(np.int64).ravel(), nodes])
    return component_numbers(n_rows + n_merges, pairs)[0][:n_rows]


def merged_by_coloring(
    components: Callable[[], Level], merges: Merges, closed: Closure, n_clusters: int, colors: IntArray, work_limit: int
) -> Merges:
    """Find merges that avoid the dead end and leave exactly `n_clusters` clusters.

    The closest clusters are merged as long as the remaining cannot-link graph can be coloured with `n_clusters`
    colours. A merge that makes this impossible is forbidden, and the search continues from there.

    Parameters
    ----------
    components : function
        Returns a fresh level of the components.
    merges : Merges
        The merges that ended in a dead end.
    closed : Closure
    n_clusters : int
    colors : ndarray of shape (n_components,)
        A colouring of the components, which shows that `n_clusters` clusters are enough.
    work_limit : int
        Limit on the work of all colourings. Beyond it, only clusters that have the same colour in the last known
        colouring are merged.
    """
    search = _ColoringSearch(closed, n_clusters, colors, work_limit)
    level = components()
    scanned = 0
    while len(level.alive) - len(merges.pairs) > n_clusters:
        n_good = search.n_colorable(merges)
        level.join(merges.pairs[:n_good])
        search.taken.append(merges.first(n_good))
        scanned += len(level.alive) ** 2
        if scanned > _SCAN_LIMIT or search.work_left <= 0:
            level.block(search.color_graph(level.alive), level.alive)
        else:
            search.forbid(merges.pairs[n_good])
            level.block(search.pair_graph(level.alive, merges.pairs[n_good]), level.alive)
        names = level.alive
        merges = level.copy().merged()
        merges = Merges(names[merges.pairs], merges.heights)
    return concatenated(*search.taken, merges.first(len(level.alive) - n_clusters))


class _ColoringSearch:
    """Tests whether merges leave a graph that can be coloured, given earlier merges and forbidden pairs."""

    def __init__(self, closed: Closure, n_colors: int, colors: IntArray, work_limit: int) -> None:
        self.work_left = work_limit
        self.taken: list[Merges] = []
        self._closed = closed
        self._n_colors = n_colors
        self._colors = colors
        self._forbidden = np.empty((0, 2), dtype=np.int64)
        graph = closed.graph
        source = np.repeat(np.arange(closed.n_components), np.diff(graph.edge_ptr))
        self._edges = np.column_stack([source, graph.edges])[source < graph.edges]
        self._clique_of = np.repeat(np.arange(len(graph.member_ptr) - 1), np.diff(graph.member_ptr))

    def forbid(self, pair: IntArray) -> None:
        self._forbidden = np.concatenate([self._forbidden, self._closed.component_of[pair][None]])

    def n_colorable(self, merges: Merges) -> int:
        """Count the merges, from the first on, after which the graph can still be coloured; never all of them."""
        pairs = self._closed.component_of[merges.pairs]
        low, high = self._n_of_one_color(pairs), len(pairs)
        while high - low > 1 and self.work_left > 0:
            middle = (low + high) // 2
            if self._recolored(pairs[:middle]):
                low = middle + self._n_of_one_color(pairs[middle:high])
            else:
                high = middle
        return low

    def color_graph(self, names: IntArray) -> CliqueGraph:
        """Graph in which clusters of different colours are adjacent."""
        colors = self._colors[self._closed.component_of[names]]
        first, second = np.triu_indices(len(names), 1)
        apart = colors[first] != colors[second]
        return _graph(len(names), np.column_stack([first[apart], second[apart]]))

    def pair_graph(self, names: IntArray, pair: IntArray) -> CliqueGraph:
        """Graph whose only edge joins the two clusters of a merge."""
        return _graph(len(names), np.searchsorted(names, pair)[None])

    def _n_of_one_color(self, pairs: IntArray) -> int:
        apart = self._colors[pairs[:, 0]] != self._colors[pairs[:, 1]]
        return int(apart.argmax()) if apart.any() else len(pairs)

    def _recolored(self, pairs: IntArray) -> bool:
        """Try to colour the components after more merges. On success, the new colours replace the old ones."""
        taken = [self._closed.component_of[some.pairs] for some in self.taken]
        cluster_of, n_clusters = component_numbers(self._closed.n_components, *taken, pairs)
        edges = cluster_of[np.concatenate([self._edges, self._forbidden])]
        if (edges[:, 0] == edges[:, 1]).any():
            return False
        graph = CliqueGraph.build(n_clusters, edges, self._clique_of, cluster_of[self._closed.graph.members])
        found = color(graph, self._n_colors, work_limit=self.work_left)
        self.work_left -= found.work
        if found.colors is None:
            return False
        self._colors = found.colors[cluster_of].astype(np.int64)
        return True


def _graph(n_vertices: int, pairs: IntArray) -> CliqueGraph:
    nothing = np.empty(0, dtype=np.int64)
    return CliqueGraph.build(n_vertices, pairs, nothing, nothing)
