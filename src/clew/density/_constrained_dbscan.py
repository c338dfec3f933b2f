"""DBSCAN in which must-linked rows join together and cannot-links stop a cluster from growing.

Zhao et al. 2012 (`zhao2012`); survey (`truong2013`) section 3.2.4, Algorithms 17 and 18.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from clew._base import Capabilities, ConstrainedClusterer
from clew._persistence import Learned, State
from clew._validation import Allowed, above, check_neighbour_graph, integer, number, words
from clew.constraints import Closure, Constraints, label_clusters
from clew.density._k_distance import automatic_eps
from clew.exceptions import DataError, FileError
from clew.kernels.expand import expand_clusters

IntArray = npt.NDArray[np.int64]


class ConstrainedDBSCAN(ConstrainedClusterer):
    r"""DBSCAN in which every constraint holds.

    A row with at least `min_samples` rows within `eps` is a core row. A cluster starts at a core row and grows over the
    neighbours of its core rows. Must-linked rows join a cluster together. A row stays out of a cluster that holds one
    of its cannot-link partners. Rows that no cluster reaches are noise. Use it for clusters of any shape whose number
    is unknown.

    Parameters
    ----------
    eps : float or "auto", default="auto"
        Radius of a neighbourhood. "auto" chooses the radius at which rows with a third of the median density are just
        core rows. To choose another radius, look at the distances that `clew.audit.plot_k_distance` draws.
    min_samples : int, default=5
        Number of rows within `eps`, including the row itself, that make it a core row.
    metric : {"euclidean", "manhattan", "cosine", "precomputed"}, default="euclidean"
        With "precomputed", X is a square matrix of distances, or a sparse neighbour graph: the entries of a row are the
        distances to its neighbours, and all other rows are out of reach.
    min_confidence : float, default=0
        Pairs with a lower confidence are left out. All others are hard.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, -1 for noise; known classes keep their numbers.
    n_clusters_ : int
    eps_ : float
        The radius in use.
    core_sample_indices_ : ndarray of shape (n_core,)
        The core rows.
    components_ : array or CSR matrix of shape (n_core, n_features)
        The values of the core rows. Not set with ``metric="precomputed"``.
    core_clusters_ : ndarray of shape (n_core,)
        Position in `cluster_labels_` of each core row's cluster.
    cluster_labels_ : ndarray of shape (n_clusters_,)
        The label of each cluster, in the order in which clusters were found.
    cluster_sizes_ : ndarray of shape (n_clusters_,)
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all hard, entailed ones included. Two noise rows are not together, so two cannot-linked rows
    may both be noise. Must-linked rows and rows of a known class are never noise: a component that no cluster reaches
    becomes a cluster of its own. Without constraints, the labels are those of scikit-learn's DBSCAN. `predict` returns
    the label of the nearest core row within `eps`. So a core row gets its own label back, and a border row between two
    clusters gets the label of the cluster with the nearer core row.

    The order of the rows matters in two cases. A border row joins the first cluster that reaches it. If two
    cannot-linked rows are in one dense region, the cluster that starts first takes every row of the region that no
    constraint keeps out of it.

    The time is that of the neighbour search plus O(e + m) for e neighbours and m pairs; memory is O(n + e + m).
    Departs from [1]_: neighbours are tested and added together with their whole component (the text of [1]_ confuses
    two rows here), and components without a core row are kept together instead of becoming noise.

    References
    ----------
    .. [1] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms: from a priori scheme to
       interactive scheme and open issues." Algorithms 17 and 18.
    .. [2] W. Zhao, Q. He, H. Ma, Z. Shi (2012). "Effective semi-supervised document clustering via active learning with
       instance-level constraints." Knowledge and Information Systems 30(3).

    Examples
    --------
    >>> from clew import ConstrainedDBSCAN
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [9.0]]
    >>> model = ConstrainedDBSCAN(eps=1.0, min_samples=2)
    >>> model.fit(X).labels_
    array([ 0,  0,  0,  0,  0, -1])
    >>> model.fit(X, constraints={"must_link": [(3, 5)], "cannot_link": [(0, 3)]}).labels_
    array([0, 0, 0, 1, 1, 1])
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
        "eps": words("auto") | above(0),
        "min_samples": integer(1),
        "metric": words("euclidean", "manhattan", "cosine", "precomputed"),
        "min_confidence": number(0, 1),
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        "n_clusters_": Learned("integer", low=0, counts="clusters"),
        **ConstrainedClusterer._learned_attributes,
        "cluster_labels_": Learned("integer", (("clusters",),), low=0, empty=True),
        "cluster_sizes_": Learned("integer", (("clusters",),), low=0, empty=True),
        "eps_": Learned("real", low=0),
        "core_sample_indices_": Learned("integer", (("core",),), low=0, below="rows", empty=True),
        "core_clusters_": Learned("integer", (("core",),), low=0, below="clusters", empty=True),
        "components_": Learned("real", (("core", "columns"),), sparse=True, empty=True, optional=True),
    }

    def __init__(
        self,
        eps: float | str = "auto",
        *,
        min_samples: int = 5,
        metric: str = "euclidean",
        min_confidence: float = 0.0,
    ) -> None:
        self.eps = eps
        self.min_samples = min_samples
        self.metric = metric
        self.min_confidence = min_confidence

    @classmethod
    def _examples(cls) -> list[ConstrainedDBSCAN]:
        return [cls(min_samples=3), cls(1.5, min_samples=2, metric="precomputed")]

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of this instance, which depend on its parameters."""
        return replace(super().capabilities, pairwise="dissimilarity" if self.metric == "precomputed" else None)

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        if self.metric == "precomputed" and sparse.issparse(X):
            return check_neighbour_graph(self, X, reset=reset)
        return super()._check_input(X, reset=reset)

    def _fit(
        self, X: Any, constraints: Constraints, weights: npt.NDArray[np.float64], rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        self.eps_ = self._chosen_eps(X)
        found = constrained_dbscan(neighbourhoods(X, self.eps_, self.metric), self.min_samples, constraints.closure())
        is_core = found.is_core
        self.n_clusters_ = found.n_clusters
        self.core_sample_indices_ = np.flatnonzero(is_core)
        self.core_clusters_ = found.clusters[is_core]
        self.__dict__.pop("components_", None)
        if self.metric != "precomputed":
            self.components_ = X[self.core_sample_indices_]
        self.cluster_labels_ = found.cluster_labels
        self.cluster_sizes_ = np.bincount(found.clusters[found.clusters >= 0], minlength=found.n_clusters)
        return np.append(found.cluster_labels, -1)[found.clusters]

    def _chosen_eps(self, X: Any) -> float:
        if self.min_samples > X.shape[0]:
            raise DataError(
                f"min_samples={self.min_samples}, but X has n_samples={X.shape[0]} rows, so no row can be a core row. "
                "Lower min_samples."
            )
        if self.eps != "auto":
            return float(self.eps)
        eps = automatic_eps(X, self.min_samples, self.metric)
        if eps == np.inf:
            raise DataError(
                f"eps='auto' in ConstrainedDBSCAN: no row of the neighbour graph has min_samples={self.min_samples} "
                "rows within reach, itself included. Set eps, lower min_samples, or use a graph with more neighbours."
            )
        return eps

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of the nearest core row, or -1 if no core row is within `eps`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``metric="precomputed"``, the distances from the new rows to all fitted rows.
        """
        rows = self._check_new_rows(X)
        clusters = np.full(rows.shape[0], -1, dtype=np.int64)
        if len(self.core_clusters_):
            if self.metric == "precomputed":
                distances, nearest = _lowest_entries(rows[:, self.core_sample_indices_])
            else:
                finder = NearestNeighbors(n_neighbors=1, metric=self.metric).fit(self.components_)
                distances, nearest = (found[:, 0] for found in finder.kneighbors(rows))
            near = distances <= self.eps_
            clusters[near] = self.core_clusters_[nearest[near]]
        labels = np.append(self.cluster_labels_, -1)[clusters]
        return self._with_class_names(labels.astype(np.int64))

    @classmethod
    def _from_state(cls, path: str | os.PathLike[str], state: State) -> Self:
        estimator = super()._from_state(path, state)
        if state.learned and estimator.metric != "precomputed" and "components_" not in state.learned:
            raise FileError(f"{path} cannot be used: components_ is missing. Save the estimator again.")
        return estimator


class Neighbourhoods(NamedTuple):
    """The rows within reach of each row, in ascending order: row i has the neighbours `rows[ptr[i]:ptr[i + 1]]`."""

    ptr: IntArray
    rows: IntArray


class DensityClusters(NamedTuple):
    """Result of `constrained_dbscan`: core rows, cluster positions per row (-1: noise) and a label per cluster."""

    is_core: npt.NDArray[np.bool_]
    clusters: IntArray
    cluster_labels: IntArray

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.cluster_labels)


def constrained_dbscan(near: Neighbourhoods, min_samples: int, closed: Closure) -> DensityClusters:
    """Grow clusters over neighbourhoods, which include the row itself, and keep cannot-linked rows apart."""
    is_core = np.diff(near.ptr) >= min_samples
    member_ptr, members = closed.rows
    graph = closed.graph
    cluster_of = np.full(closed.n_components, -1, dtype=np.int64)
    n_clusters = expand_clusters(
        near.ptr,
        near.rows,
        is_core.view(np.int8),
        closed.component_of,
        member_ptr,
        members,
        graph.edge_ptr,
        graph.edges,
        graph.clique_ptr,
        graph.cliques,
        cluster_of,
        np.full(closed.n_components, -1, dtype=np.int64),
        np.full(len(graph.member_ptr) - 1, -1, dtype=np.int64),
        np.empty(len(is_core), dtype=np.int64),
    )
    left = np.flatnonzero((cluster_of < 0) & ((closed.sizes > 1) | (closed.labels >= 0)))
    cluster_of[left] = n_clusters + np.arange(len(left))
    return DensityClusters(
        is_core, cluster_of[closed.component_of], label_clusters(cluster_of, closed, n_clusters + len(left))
    )


def neighbourhoods(X: Any, eps: float, metric: str) -> Neighbourhoods:
    """Find the rows within `eps` of each row, including the row itself."""
    if metric != "precomputed":
        return _rows_within(X, eps, metric)
    if not sparse.issparse(X):
        return _entries_within(X, eps)
    # The row itself is a neighbour, whether the graph stores the diagonal or not.
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    kept = (X.data <= eps) & (rows != X.indices)
    own = np.arange(X.shape[0])
    rows, others = np.concatenate([rows[kept], own]), np.concatenate([X.indices[kept], own])
    return _in_order(sparse.coo_array((np.ones(len(rows), dtype=np.int8), (rows, others)), shape=X.shape).tocsr())


def _entries_within(X: npt.NDArray[Any], eps: float) -> Neighbourhoods:
    """The columns of each row whose entries are at most `eps`."""
    within = eps >= X
    return Neighbourhoods(_pointers(within.sum(axis=1)), np.ascontiguousarray(np.nonzero(within)[1]))


def _lowest_entries(X: Any) -> tuple[npt.NDArray[Any], IntArray]:
    """The lowest entry of each row and its first column. Missing entries of a sparse matrix count as infinite."""
    if not sparse.issparse(X):
        columns = X.argmin(axis=1)
        return X[np.arange(len(X)), columns], columns
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.lexsort((X.indices, X.data, rows))
    lowest, columns = np.full(X.shape[0], np.inf), np.zeros(X.shape[0], dtype=np.int64)
    filled = np.flatnonzero(np.diff(X.indptr))
    first = order[X.indptr[filled]]
    lowest[filled], columns[filled] = X.data[first], X.indices[first]
    return lowest, columns


def _rows_within(X: Any, eps: float, metric: str) -> Neighbourhoods:
    found = NearestNeighbors(radius=eps, metric=metric).fit(X).radius_neighbors(X, return_distance=False)
    counts = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
    rows = np.concatenate(found).astype(np.int64, copy=False)
    entries = np.empty(len(rows), dtype=np.int8)
    return _in_order(sparse.csr_array((entries, rows, _pointers(counts)), shape=(len(counts), len(counts))))


def _in_order(near: sparse.csr_array) -> Neighbourhoods:
    """Sort the neighbours of each row in ascending order; a search tree may list them in any order."""
    near.sort_indices()
    return Neighbourhoods(near.indptr.astype(np.int64, copy=False), near.indices.astype(np.int64, copy=False))


def _pointers(counts: npt.NDArray[Any]) -> IntArray:
    return np.append(0, np.cumsum(counts)).astype(np.int64)
