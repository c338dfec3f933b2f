"""Add constraints to any clusterer: must-links join its clusters, and cannot-links split them.

Made for density-based methods such as HDBSCAN and OPTICS. The method is clew's own. Clusters are split by shortest
paths over a neighbour graph whose edges cost squared distances, so that paths run through dense regions.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from sklearn.base import clone
from sklearn.cluster import HDBSCAN, OPTICS
from sklearn.neighbors import NearestNeighbors

from clew._base import Capabilities, ConstrainedClusterer
from clew._persistence import Learned
from clew._validation import Allowed, integer, number, words
from clew.constraints import Closure, Constraints, label_clusters
from clew.constraints._arrays import distinct_pairs
from clew.constraints._closure import component_numbers
from clew.density._constrained_dbscan import ConstrainedDBSCAN
from clew.exceptions import DataError
from clew.kernels.join import join_pairs
from clew.solvers.coloring import CliqueGraph

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

NAMED = ("hdbscan", "optics", "dbscan")
# Value of `min_samples` for a clusterer given by name; it is scikit-learn's default for all three.
_MIN_SAMPLES = 5
CLUSTERER = Allowed(
    "a clusterer with fit_predict",
    lambda value: hasattr(value, "fit_predict") and hasattr(value, "get_params") and not isinstance(value, type),
    in_shell=False,
)


class ConstrainedDensity(ConstrainedClusterer):
    r"""Adds constraints to any clusterer, such as scikit-learn's HDBSCAN or OPTICS.

    The clusterer first clusters the rows without the constraints. Then clusters that share must-linked rows are joined,
    and clusters that contain cannot-linked rows are split between these rows. All other clusters stay as they were. Use
    it if clusters differ in density, so that no single radius of `ConstrainedDBSCAN` suits them all.

    Parameters
    ----------
    clusterer : {"hdbscan", "optics", "dbscan"} or estimator, default="hdbscan"
        "hdbscan" and "optics" are scikit-learn's, with this `metric` and otherwise default parameters. "dbscan" uses
        the automatic radius of `ConstrainedDBSCAN`. An estimator must have `fit_predict`, and its labels below 0 are
        noise; it is cloned.
    n_neighbors : int, default=10
        Number of neighbours of each row in the graph along which clusters are split.
    metric : {"euclidean", "manhattan", "cosine"}, default="euclidean"
        Distance used in the graph, and by a clusterer given by name.
    min_confidence : float, default=0
        Pairs with a lower confidence are left out. All others are hard.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, -1 for noise; known classes keep their numbers.
    base_labels_ : ndarray of shape (n_samples,)
        The clusters before the constraints were applied, -1 for noise.
    n_clusters_ : int
    cluster_labels_ : ndarray of shape (n_clusters_,)
        The label of each cluster.
    cluster_sizes_ : ndarray of shape (n_clusters_,)
    fit_rows_ : array or CSR matrix of shape (n_samples, n_features)
        The training rows, in which `predict` finds the nearest row.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all hard, entailed ones included, whatever the clusterer does. The clusterer itself does not see them;
    they are applied to its clusters afterwards.

    1. Join. Clusters that share a component of must-linked rows become one. A noise row joins the cluster of its
       component. A component of noise rows, and a noise row of a known class, becomes a cluster. All other noise rows
       stay noise.
    2. Split. In a cluster with cannot-links, every component that has one is a source. Each row goes to the source with
       the shortest path over the graph of `n_neighbors` nearest neighbours in the cluster, where a step costs its
       squared distance and a must-link costs nothing. Disconnected parts of the graph are linked through their first
       rows.
    3. Join again. Sources are joined, nearest first by shortest path, unless a cannot-link separates the sets to be
       joined.

    Without constraints, the labels are those of the clusterer. `predict` returns the label of the nearest fitted row.
    In addition to the clusterer, the time is that of a neighbour search in the clusters that are split, plus
    O(n_neighbors n log n); memory is O(n_neighbors n).

    `save` also stores the clusterer if it is given by name or is an estimator of clew. It refuses others, because they
    could only be stored as pickles.

    Examples
    --------
    >>> from sklearn.cluster import OPTICS
    >>> from clew import ConstrainedDensity
    >>> X = [[0.0], [1.0], [2.0], [3.0], [20.0], [21.0], [22.0], [23.0]]
    >>> model = ConstrainedDensity(OPTICS(min_samples=3), n_neighbors=2)
    >>> model.fit(X).labels_
    array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> model.fit(X, constraints={"cannot_link": [(0, 3)], "must_link": [(3, 4)]}).labels_
    array([0, 0, 1, 1, 1, 1, 1, 1])
    """

    _capabilities = Capabilities(
        labels="hard",
        must_link="hard",
        cannot_link="hard",
        sparse=True,
        any_shape=True,
        needs_n_clusters=False,
        noise=True,
        predicts=True,
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "clusterer": words(*NAMED) | CLUSTERER,
        "n_neighbors": integer(1),
        "metric": words("euclidean", "manhattan", "cosine"),
        "min_confidence": number(0, 1),
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        "n_clusters_": Learned("integer", low=0, counts="clusters"),
        **ConstrainedClusterer._learned_attributes,
        "cluster_labels_": Learned("integer", (("clusters",),), low=0, empty=True),
        "cluster_sizes_": Learned("integer", (("clusters",),), low=0, empty=True),
        "base_labels_": Learned("integer", (("rows",),), low=-1),
        "fit_rows_": Learned("real", (("rows", "columns"),), sparse=True),
    }

    def __init__(
        self,
        clusterer: Any = "hdbscan",
        *,
        n_neighbors: int = 10,
        metric: str = "euclidean",
        min_confidence: float = 0.0,
    ) -> None:
        self.clusterer = clusterer
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.min_confidence = min_confidence

    @classmethod
    def _examples(cls) -> list[ConstrainedDensity]:
        return [cls(), cls("dbscan")]

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        self.base_labels_ = self._base_labels(X)
        found = constrained_density(X, self.base_labels_, constraints.closure(), self.n_neighbors, self.metric)
        self.n_clusters_ = len(found.cluster_labels)
        self.cluster_labels_ = found.cluster_labels
        self.cluster_sizes_ = np.bincount(found.clusters[found.clusters >= 0], minlength=self.n_clusters_)
        self.fit_rows_ = X
        return np.append(found.cluster_labels, -1)[found.clusters]

    def _base_labels(self, X: Any) -> IntArray:
        """Run the clusterer without constraints; number its clusters from 0 in the order of their labels, noise -1."""
        if isinstance(self.clusterer, str) and X.shape[0] == 1:
            return np.array([-1])
        clusterer = self._named(X.shape[0]) if isinstance(self.clusterer, str) else clone(self.clusterer)
        name = type(clusterer).__name__
        try:
            labels = np.asarray(clusterer.fit_predict(X))
        except ValueError as error:
            raise DataError(f"{name} cannot cluster X: {error}") from error
        if labels.shape != (X.shape[0],) or labels.dtype.kind not in "iu":
            raise DataError(
                f"{name} returned labels of shape {labels.shape} and type {labels.dtype}, but X has {X.shape[0]} rows: "
                "expected one integer per row. Use another clusterer."
            )
        found = np.full(X.shape[0], -1, dtype=np.int64)
        found[labels >= 0] = np.unique(labels[labels >= 0], return_inverse=True)[1]
        return found

    def _named(self, n_rows: int) -> Any:
        """Build the clusterer with this name. `min_samples` is lowered if there are fewer rows."""
        least = min(_MIN_SAMPLES, n_rows)
        if self.clusterer == "dbscan":
            return ConstrainedDBSCAN(min_samples=least, metric=self.metric)
        if self.clusterer == "optics":
            return OPTICS(min_samples=max(least, 2), metric=self.metric)
        return HDBSCAN(min_cluster_size=max(least, 2), min_samples=least, metric=self.metric, copy=True)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of the nearest fitted row, -1 if that row is noise.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        rows = self._check_new_rows(X)
        finder = NearestNeighbors(n_neighbors=1, metric=self.metric).fit(self.fit_rows_)
        return self.labels_[finder.kneighbors(rows, return_distance=False)[:, 0]]


class SplitClusters(NamedTuple):
    """Result of `constrained_density`: cluster positions per row (-1: noise) and a label per cluster."""

    clusters: IntArray
    cluster_labels: IntArray


def constrained_density(X: Any, base: IntArray, closed: Closure, n_neighbors: int, metric: str) -> SplitClusters:
    """Join clusters that share a component, then split clusters that contain cannot-linked components."""
    region_of = joined_regions(base, closed)
    regions = region_of[closed.component_of]
    groups = regions.copy()
    n_groups = int(region_of.max(initial=-1)) + 1
    for region, sources in _regions_to_split(region_of, closed.graph):
        rows = np.flatnonzero(regions == region)
        parts = split_region(X, rows, sources, closed, n_neighbors, metric)
        groups[rows] = n_groups + parts
        n_groups += int(parts.max()) + 1
    clusters, n_clusters = _numbered(groups, base)
    cluster_of = np.full(closed.n_components, -1, dtype=np.int64)
    cluster_of[closed.component_of] = clusters
    return SplitClusters(clusters, label_clusters(cluster_of, closed, n_clusters))


def _numbered(groups: IntArray, base: IntArray) -> tuple[IntArray, int]:
    """Number groups in the order of the base clusters in them, then of their first rows; -1 stays -1."""
    rows = np.flatnonzero(groups >= 0)
    lowest = np.where(base[rows] >= 0, base[rows], len(base))
    order = np.lexsort((rows, lowest))
    _, first, which = np.unique(groups[rows][order], return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    found = np.full(len(groups), -1, dtype=np.int64)
    found[rows[order]] = number[which]
    return found, len(first)


def joined_regions(base: IntArray, closed: Closure) -> IntArray:
    """The region of each component, -1 for noise.

    A region is a set of clusters that components join, or a must-linked or labelled component outside all clusters.
    """
    n_clusters = int(base.max(initial=-1)) + 1
    placed = np.flatnonzero(base >= 0)
    spans = np.column_stack([base[placed], n_clusters + closed.component_of[placed]])
    region_of = component_numbers(n_clusters + closed.n_components, spans)[0][n_clusters:]
    has_cluster = np.zeros(closed.n_components, dtype=bool)
    has_cluster[closed.component_of[placed]] = True
    return np.where(has_cluster | (closed.sizes > 1) | (closed.labels >= 0), region_of, -1)


def _regions_to_split(region_of: IntArray, graph: CliqueGraph) -> list[tuple[int, IntArray]]:
    """Regions with cannot-links between their components, and these components."""
    source = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
    tied = source[region_of[source] == region_of[graph.edges]]
    clique_of = np.repeat(np.arange(len(graph.member_ptr) - 1), np.diff(graph.member_ptr))
    key = clique_of * (int(region_of.max(initial=0)) + 2) + region_of[graph.members] + 1
    _, which, counts = np.unique(key, return_inverse=True, return_counts=True)
    tied = np.unique(np.concatenate([tied, graph.members[counts[which] > 1]]))
    tied = tied[region_of[tied] >= 0]
    return [(int(region), tied[region_of[tied] == region]) for region in np.unique(region_of[tied])]


def split_region(X: Any, rows: IntArray, sources: IntArray, closed: Closure, n_neighbors: int, metric: str) -> IntArray:
    """Split a region into parts so that no part contains cannot-linked components; return the part of each row.

    `sources` are the components with cannot-links inside the region.
    """
    component = closed.component_of[rows]
    first = np.full(closed.n_components, -1, dtype=np.int64)
    first[component[::-1]] = np.arange(len(rows))[::-1]
    graph = _path_graph(X[rows], first[component], n_neighbors, metric)
    source_of = np.full(closed.n_components, -1, dtype=np.int64)
    source_of[sources] = np.arange(len(sources))
    start = source_of[component]
    cost, _, reached_from = dijkstra(
        graph, directed=False, indices=np.flatnonzero(start >= 0), min_only=True, return_predecessors=True
    )
    cell = np.where(start >= 0, start, start[reached_from])
    cell = cell[first[component]]  # paths of equal length could separate the rows of a component
    return _joined_cells(graph, cost, cell, closed.graph.part(sources))[cell]


def _path_graph(X: Any, leader: IntArray, n_neighbors: int, metric: str) -> sparse.csr_array:
    """Build a connected graph: edges of squared distance to the nearest rows, and of cost 0 to each row's `leader`.

    If the neighbour graph has several connected parts, the first row of each part is linked to the nearest first rows
    of other parts, until one part is left. Each pair is stored once.
    """
    followers = np.flatnonzero(leader < np.arange(len(leader)))
    one, two, costs = [followers], [leader[followers]], [np.zeros(len(followers))]
    nodes = np.arange(len(leader))
    while True:
        k = min(n_neighbors, len(nodes) - 1)
        distances, others = NearestNeighbors(n_neighbors=k, metric=metric).fit(X[nodes]).kneighbors()
        one.append(np.repeat(nodes, k))
        two.append(nodes[others.ravel()])
        costs.append(distances.ravel().astype(np.float64) ** 2)
        # A sparse matrix would add up repeated entries, so each pair is kept once, at its lowest cost.
        every = np.concatenate(costs)
        unique = distinct_pairs(np.column_stack([np.concatenate(one), np.concatenate(two)]), -every)
        low, high = unique.pairs.T
        graph = sparse.csr_array((every[unique.best], (low, high)), shape=(len(leader), len(leader)))
        n_parts, part = connected_components(graph, directed=False)
        if n_parts == 1:
            return graph
        nodes = np.unique(part, return_index=True)[1]


def _joined_cells(graph: sparse.csr_array, cost: FloatArray, cell: IntArray, conflicts: CliqueGraph) -> IntArray:
    """Join cells in the order of the shortest path between their sources, unless they conflict; return their parts."""
    edges = graph.tocoo()
    one, two = edges.row, edges.col
    between = np.flatnonzero(cell[one] != cell[two])
    one, two = one[between], two[between]
    lengths = cost[one] + edges.data[between] + cost[two]
    pairs = distinct_pairs(np.column_stack([cell[one], cell[two]]).astype(np.int64), -lengths)
    order = np.argsort(lengths[pairs.best], kind="stable")
    n_cells = conflicts.n_vertices
    part = np.arange(n_cells)
    join_pairs(
        np.ascontiguousarray(pairs.pairs[order]),
        conflicts.edge_ptr,
        conflicts.edges,
        conflicts.clique_ptr,
        conflicts.cliques,
        conflicts.member_ptr,
        conflicts.members,
        part,
        np.full(n_cells, -1, dtype=np.int64),
        np.arange(n_cells),
        np.ones(n_cells, dtype=np.int64),
    )
    return np.unique(part, return_inverse=True)[1].astype(np.int64)
