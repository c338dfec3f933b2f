"""Complete linkage on distances that constraints change, for the linked rows and for rows near them.

Klein, Kamvar and Manning 2002 (`klein2002`); survey section 3.2.1, Algorithm 6.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from clew._base import Capabilities
from clew._distances import condensed_distances
from clew._validation import Allowed
from clew.constraints import Closure
from clew.hierarchical._agglomeration import Level, must_pairs
from clew.hierarchical._family import COMMON_PARAMETERS, AgglomerativeFamily
from clew.kernels.linkage import relax_paths
from clew.solvers.coloring import WORK_LIMIT


class SpaceLevelAgglomerative(AgglomerativeFamily):
    r"""Complete linkage on distances that the constraints change.

    Must-linked rows are at distance 0, and every other distance becomes the length of the shortest path through
    must-linked rows, so their neighbours also come closer. Cannot-linked rows are farther apart than all others, so
    complete linkage keeps their clusters apart. Use this method if a pair also says something about the rows near it.
    If a pair is only about its own two rows, see `ConstrainedAgglomerative`.

    Parameters
    ----------
    n_clusters : int or None, default=None
        The level of the tree that becomes `labels_`. With None, and without `distance_threshold`, it is the last level,
        where cannot-links block every further merge.
    metric : {"euclidean", "manhattan", "chebyshev", "mahalanobis", "cosine", "precomputed"}, default="euclidean"
        Distance between two rows. With "precomputed", X is a square matrix of distances.
    distance_threshold : float or None, default=None
        Clusters at this distance or farther apart are not merged. Cannot be combined with `n_clusters`.
    on_dead_end : {"stop", "color"}, default="stop"
        What to do when cannot-links block every merge before `n_clusters` is reached. "stop" keeps the present clusters
        and warns. "color" searches for other merges that lead to `n_clusters`: the closest clusters are merged as
        long as an exact colouring shows that the rest still fits into `n_clusters` clusters.
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
    Constraints: all hard, entailed ones included. With distances d between rows and components M of must-linked rows,
    the shortest paths through components have the length

    .. math:: d'(i, j) = \min \big\{ d(i, j), \; \min_M d'(i, M) + d'(M, j) \big\},
              \quad d(i, M) = \min_{m \in M} d(i, m).

    If d satisfies the triangle inequality, no other path is shorter. Time O(q n²) for q components of more than one
    row; memory one condensed matrix of n (n - 1) / 2 distances.
    Departs from [1]_: cannot-linked rows are infinitely far apart, not just one unit farther than the longest distance.
    The tree is the same down to `k_min_` clusters. With fewer clusters, [1]_ breaks cannot-links; here those merges are
    blocked.

    References
    ----------
    .. [1] D. Klein, S. D. Kamvar, C. D. Manning (2002). "From instance-level constraints to space-level constraints:
       making the most of prior knowledge in data clustering." ICML.

    Examples
    --------
    The must-link of rows 1 and 3 also brings their neighbours together: rows 2 and 4 are 4 apart instead of 16.

    >>> from clew import SpaceLevelAgglomerative
    >>> X = [[0.0], [4.0], [6.0], [20.0], [22.0]]
    >>> SpaceLevelAgglomerative(n_clusters=2).fit(X).labels_
    array([0, 0, 0, 1, 1])
    >>> SpaceLevelAgglomerative(n_clusters=2).fit(X, constraints={"must_link": [(1, 3)]}).labels_
    array([0, 1, 1, 1, 1])
    """

    _capabilities = Capabilities(labels="hard", must_link="hard", cannot_link="hard", sparse=True, quadratic=True)
    _parameters: ClassVar[dict[str, Allowed]] = COMMON_PARAMETERS

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        metric: str = "euclidean",
        distance_threshold: float | None = None,
        on_dead_end: str = "stop",
        min_confidence: float = 0,
        work_limit: int = WORK_LIMIT,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.distance_threshold = distance_threshold
        self.on_dead_end = on_dead_end
        self.min_confidence = min_confidence
        self.work_limit = work_limit

    @classmethod
    def _examples(cls) -> list[SpaceLevelAgglomerative]:
        return [cls(3, on_dead_end="color"), cls(3, metric="precomputed", on_dead_end="color")]

    def _level(self, X: Any, closed: Closure) -> Level:
        return space_level(condensed_distances(X, self.metric), closed)


def space_level(distances: npt.NDArray[np.float64], closed: Closure) -> Level:
    """Build the components with the imposed distances between them (Algorithm 6). Overwrites `distances`."""
    n_rows = len(closed.component_of)
    # Rows at distance 0 from each other get the same distance to every third row: the shorter of the two.
    level = Level(distances, "single", np.ones(n_rows), np.arange(n_rows))
    level.join(must_pairs(closed))
    relax_paths(distances, n_rows, level.alive, closed.first_row[closed.sizes > 1])
    level.linkage = "complete"
    level.block(closed.graph, closed.first_row)
    return level
