"""Agglomerative clustering in which every level of the tree satisfies every constraint.

Davidson and Ravi 2005 (`davidson2005b`); survey section 3.2.1, Algorithms 3 to 5. Reducible linkages use
nearest-neighbour chains (`murtagh1983`); the others search for the closest pair (`mullner2011`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from scipy import sparse
from scipy.sparse.csgraph import connected_components

from clew._base import Capabilities
from clew._validation import NONE, Allowed, check_neighbour_graph, number, words
from clew.constraints import Closure, Constraints, Feasibility
from clew.exceptions import ParameterError
from clew.hierarchical._agglomeration import LINKAGES, SQUARED, Level, Merges
from clew.hierarchical._family import COMMON_PARAMETERS, AgglomerativeFamily, component_level
from clew.hierarchical._sparse_agglomeration import graph_merges, merges_within
from clew.solvers.coloring import WORK_LIMIT


class ConstrainedAgglomerative(AgglomerativeFamily):
    r"""Agglomerative clustering in which every level of the tree satisfies every constraint.

    Components of must-linked rows are merged first. Then the two closest clusters that no cannot-link separates are
    merged, again and again. The number of clusters need not be known: without `n_clusters` and `distance_threshold`,
    merging continues until cannot-links block every merge. Clusters may have any shape with single linkage, and are
    compact with complete and Ward linkage.

    Parameters
    ----------
    n_clusters : int or None, default=None
        The level of the tree that becomes `labels_`.
    linkage : {"average", "single", "complete", "ward", "centroid"}, default="average"
        Distance between two clusters: the mean, lowest or highest distance between their rows, the increase of the sum
        of squares (Ward), or the distance between their centroids. The last two need Euclidean distances.
    metric : {"euclidean", "manhattan", "chebyshev", "mahalanobis", "cosine", "precomputed"}, default="euclidean"
        Distance between two rows. With "precomputed", X is a square matrix of distances, or a sparse matrix of
        distances between neighbours (`sklearn.neighbors.kneighbors_graph` with ``mode="distance"``). With a sparse
        matrix, only the stored distances count, and clusters without an edge between them are not merged.
    distance_threshold : float or None, default=None
        Clusters at this distance or farther apart are not merged. Cannot be combined with `n_clusters`.
    gamma : float or None, default=None
        Clusters whose centroids are farther apart than this are not merged (centroid linkage only). Distances that are
        known to be larger, by the triangle inequality with some pivots, are not computed, and no distance matrix is
        kept.
    on_dead_end : {"stop", "color"}, default="stop"
        What to do when cannot-links block every merge before `n_clusters` is reached. "stop" keeps the present clusters
        and warns. "color" searches for other merges that lead to `n_clusters`: the closest clusters are merged as
        long as an exact colouring shows that the rest still fits into `n_clusters` clusters. With `gamma` or a sparse
        matrix, merging always stops.
    min_confidence : float, default=0
        Pairs with a lower confidence are left out. All others are hard.
    work_limit : int
        Largest number of steps of the search for a colouring. It counts work, not seconds.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    linkage_ : ndarray of shape (n_samples - 1, 4)
        The tree in SciPy's format, for `scipy.cluster.hierarchy`. The leaves are the rows. The first
        ``n_samples - k_max_`` merges are the must-links, at height 0. The merges that were made follow in order. The
        last ``k_min_ - 1`` merges are blocked by cannot-links; they only complete the tree, a tenth above the highest
        merge.
    k_max_, k_min_ : int
        Largest and smallest number of clusters of the levels that satisfy all constraints. `cut` returns any of them.
    cluster_labels_ : ndarray of shape (n_clusters,)
    cluster_sizes_ : ndarray of shape (n_clusters,)
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all hard, entailed ones included. Cannot-linked clusters are infinitely far apart, and remain so after
    further merges. With this rule, single, complete, average and Ward linkage are still reducible:

    .. math:: d(A \cup B, C) \ge \min \{ d(A, C), d(B, C) \},

    so merges along chains of nearest neighbours, sorted by height, are the merges of the closest pairs, up to ties.
    Centroid linkage is not reducible: its heights may fall, and each merge needs a search for the closest pair. Time
    O(n²), for centroid linkage O(n²) typically and O(n³) at worst; memory one condensed matrix of n (n - 1) / 2
    distances. With `gamma` the memory is O(n d), with a sparse matrix of m edges O(n + m). Ties go to the lowest row.

    References
    ----------
    .. [1] I. Davidson, S. S. Ravi (2005). "Agglomerative hierarchical clustering with constraints: theoretical and
       empirical results." PKDD.
    .. [2] F. Murtagh (1983). "A survey of recent advances in hierarchical clustering algorithms." The Computer Journal.
    .. [3] D. Müllner (2011). "Modern hierarchical, agglomerative clustering algorithms." arXiv:1109.2378.

    Examples
    --------
    >>> from clew import ConstrainedAgglomerative
    >>> model = ConstrainedAgglomerative(n_clusters=2)
    >>> model.fit([[0.0], [4.0], [5.0]], constraints={"cannot_link": [(1, 2)]}).labels_
    array([0, 0, 1])
    >>> model.cut(3)
    array([0, 1, 2])
    """

    _capabilities = Capabilities(labels="hard", must_link="hard", cannot_link="hard", sparse=True, quadratic=True)
    _parameters: ClassVar[dict[str, Allowed]] = {
        **COMMON_PARAMETERS,
        "linkage": words(*LINKAGES),
        "gamma": number(0) | NONE,
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        linkage: str = "average",
        metric: str = "euclidean",
        distance_threshold: float | None = None,
        gamma: float | None = None,
        on_dead_end: str = "stop",
        min_confidence: float = 0,
        work_limit: int = WORK_LIMIT,
    ) -> None:
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric
        self.distance_threshold = distance_threshold
        self.gamma = gamma
        self.on_dead_end = on_dead_end
        self.min_confidence = min_confidence
        self.work_limit = work_limit

    @classmethod
    def _examples(cls) -> list[ConstrainedAgglomerative]:
        return [
            cls(3, on_dead_end="color"),
            cls(3, linkage="ward", on_dead_end="color"),
            cls(3, linkage="centroid", on_dead_end="color"),
            cls(3, linkage="complete", metric="precomputed", on_dead_end="color"),
        ]

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        if self.metric == "precomputed" and sparse.issparse(X):
            return check_neighbour_graph(self, X, reset=reset)
        return super()._check_input(X, reset=reset)

    def _merges(self, X: Any, closed: Closure) -> Merges:
        self._require_fitting_linkage(X)
        if self.metric == "precomputed" and sparse.issparse(X):
            return graph_merges(X, self.linkage, closed)
        if self.gamma is None:
            return super()._merges(X, closed)
        if self.metric == "precomputed":
            return self._level(X, closed).merged(self.gamma)
        return merges_within(X, closed, self.gamma)[0]

    def _level(self, X: Any, closed: Closure) -> Level:
        return component_level(X, self.metric, self.linkage, closed)

    def _require_fitting_linkage(self, X: Any) -> None:
        """Raise if the linkage does not fit the other parameters or X."""
        what = f"linkage={self.linkage!r} in {type(self).__name__}"
        if self.linkage in SQUARED and self.metric not in ("euclidean", "precomputed"):
            raise ParameterError(
                f"{what} needs Euclidean distances, but metric={self.metric!r}. "
                'Set metric="euclidean", or linkage="average".'
            )
        if self.gamma is not None and self.linkage != "centroid":
            raise ParameterError(
                f"gamma={self.gamma:g} bounds the distance between centroids, but {what}. "
                'Set linkage="centroid", or use distance_threshold.'
            )
        if self.linkage in SQUARED and self.metric == "precomputed" and sparse.issparse(X):
            raise ParameterError(
                f"{what} needs all distances, but X is a sparse matrix of some distances. "
                'Pass the rows themselves, or set linkage="average".'
            )

    def _knows_all_distances(self, X: Any) -> bool:
        return self.gamma is None and not (self.metric == "precomputed" and sparse.issparse(X))

    def _why_more(self, X: Any, constraints: Constraints, found: Feasibility) -> str:
        if self._knows_all_distances(X):
            return super()._why_more(X, constraints, found)
        if self.gamma is not None:
            return (
                f"others are cannot-linked, or their centroids are more than gamma={self.gamma:g} apart. Raise gamma."
            )
        n_parts = connected_components(X, directed=False, return_labels=False)
        parts = f"the graph of neighbours has {n_parts} connected component{'s' if n_parts > 1 else ''}"
        return (
            f"no edge joins two of them that are not cannot-linked; {parts}. "
            "Use more neighbours per row, or raise n_clusters."
        )
