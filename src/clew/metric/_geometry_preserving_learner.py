"""Move a few rows a short distance until k-means satisfies the constraints, starting with the cheapest constraints.

Randel 2021 (`randel2021b`), section 6.5, Algorithms 7 and 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from clew._base import Capabilities, quietly, warn_caller
from clew._persistence import Learned
from clew._validation import RANDOM_STATE, Allowed, integer, number, words
from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs, group_columns
from clew.constraints._closure import must_links
from clew.kernels.disjoint_set import merge_pairs, number_components
from clew.kernels.multipliers import charge_rows
from clew.metric._family import EmbeddingLearner
from clew.partitional import SeededKMeans
from clew.solvers.coloring import CliqueGraph, color, compress
from clew.solvers.criteria import SquaredDistances
from clew.solvers.lagrangian import Statements, dual_ascent
from clew.solvers.packing import Packing

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# A row moves beyond the border between two clusters by this share of its distance to the border (thesis 6.5), and ...
_BEYOND_BORDER = 0.01
# ... by at least this share of the distance between the centres, so that a row on the border moves as well.
_LEAST_BEYOND = 1e-4
# A row is moved towards the same cluster at most this often, each time twice as far beyond the border. Borders change
# as rows move, so a row may end up on the wrong side again.
_MOST_MOVES = 10
# Rounds of the subgradient method after each move.
_DUAL_ROUNDS = 300
# Work limit of the search for clusters that satisfy all constraints.
_COLOR_WORK = 2_000_000


class GeometryPreservingLearner(EmbeddingLearner):
    r"""Moves a few rows a short distance, until k-means satisfies the constraints.

    All other rows stay where they are, so the data keep their geometry. Constraints that cost the clustering least are
    satisfied first. Use it to see how far rows must move before clusters agree with the constraints, or to prepare
    rows for any clusterer. It cannot transform new rows.

    Parameters
    ----------
    n_clusters : int, default=8
    order : {"impact", "random"}, default="impact"
        Which violated constraint is treated next: the one with the least cost (see `clew.audit.impact`), or a random
        one. Random order is for comparison: rows travel farther.
    rescore_every : int, default=1
        The costs and the goals (see Notes) are recomputed each time this many constraints have been treated. Larger
        numbers are faster.
    n_init : int, default=10
        Number of starts of the first k-means.
    max_iter : int, default=1000
        Largest number of constraints to treat.
    min_confidence : float, default=0
        Pairs with a lower confidence are ignored.
    random_state : int, Generator, RandomState or None, default=None

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_features)
        The rows, some of them moved.
    distances_moved_ : ndarray of shape (n_samples,)
        Total distance that each row was moved.
    labels_ : ndarray of shape (n_samples,)
        Clusters found by k-means on the moved rows.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of these clusters.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_pairs, 2)
        Constraints that `labels_` violates, because they contradict each other or because no allowed move satisfies
        them.
    n_iter_ : int
        Number of constraints that were treated.

    Notes
    -----
    Constraints: all soft. K-means clusters the rows without constraints. The cost of a constraint is the sum of the
    absolute values of its Lagrange multipliers [1]_ (Eq. 6.8 and 6.11), divided by its confidence. The violated
    constraint with the lowest cost is treated next. Its rows move parallel to the line between two centres, to a point
    just beyond the border between the clusters. For a must-link, the two rows move to the cluster c that minimises the
    sum of

    .. math:: \Delta(i, b, c) = \frac{n_c}{n_c + 1} \lVert x_i - y_c \rVert^2
              - \frac{n_b}{n_b - 1} \lVert x_i - y_b \rVert^2

    over the rows that are not yet in c, where b is the row's current cluster, n are the cluster sizes, and y are the
    centres. For a cannot-link, one of the two rows moves to its cheapest other cluster. A row never moves back to a
    cluster that it was moved out of. Then k-means continues from the last centres. The search ends when no violated
    constraint has an allowed move.

    Classes and must-groups are treated as chains of must-links. Cannot-groups, and the first rows of all classes, are
    treated as sets of rows that must all be in different clusters. Time O(t r n k d) for t constraints and r rounds of
    the multipliers (at most 300); memory O(n d).

    Departs from [1]_ in four ways. K-means continues from the last centres, so that clusters keep their identity; the
    list of forbidden moves depends on it. With ``order="impact"``, rows move towards their *goals*: the clusters that
    satisfy all constraints together at the lowest sum of the costs above. The thesis looks at one pair at a time, so
    that a row may move although other constraints want its partner to move. If no clusters satisfy all constraints,
    there are no goals, and the cost of a row in a cluster includes the multipliers of all its constraints there.
    ``order="random"`` is the thesis's baseline, without goals. A row that is alone in its cluster saves nothing by
    leaving it; the formula would divide by 0. A row may be moved towards the same cluster up to ten times, each time
    twice as far beyond the border, because borders change as rows move; the thesis's list of forbidden moves alone does
    not always end the search.

    References
    ----------
    .. [1] R. Randel (2021). "Optimization Methods to Enhance Constraint-Based Semi-Supervised Clustering." PhD thesis,
       Polytechnique Montréal. Section 6.5, Algorithms 7 and 8.

    Examples
    --------
    >>> from clew import GeometryPreservingLearner
    >>> X = [[0.0], [1.0], [4.0], [8.0], [9.0], [10.0]]
    >>> model = GeometryPreservingLearner(n_clusters=2, random_state=0)
    >>> model.fit_transform(X, constraints={"must_link": [(2, 4)]}).ravel().round(2)
    array([ 0.  ,  1.  ,  5.35,  8.  ,  9.  , 10.  ])
    >>> model.labels_
    array([1, 1, 0, 0, 0, 0], dtype=int32)
    """

    _capabilities = Capabilities(labels="soft", must_link="soft", cannot_link="soft")
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "order": words("impact", "random"),
        "rescore_every": integer(1),
        "n_init": integer(1),
        "max_iter": integer(0),
        "min_confidence": number(0, 1),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **EmbeddingLearner._learned_attributes,
        "embedding_": Learned("real", (("rows", "columns"),)),
        "distances_moved_": Learned("real", (("rows",),), low=0),
        "cluster_centers_": Learned("real", (("clusters", "columns"),)),
        "labels_": Learned("integer", (("rows",),), low=0, below="clusters"),
        "violated_must_link_": Learned("integer", ((None, 2),), low=0, below="rows"),
        "violated_cannot_link_": Learned("integer", ((None, 2),), low=0, below="rows"),
        "n_iter_": Learned("integer", low=0),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        order: str = "impact",
        rescore_every: int = 1,
        n_init: int = 10,
        max_iter: int = 1000,
        min_confidence: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.order = order
        self.rescore_every = rescore_every
        self.n_init = n_init
        self.max_iter = max_iter
        self.min_confidence = min_confidence
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[GeometryPreservingLearner]:
        return [cls(n_clusters=3, random_state=0), cls(n_clusters=2, order="random", n_init=1, random_state=0)]

    def _fit(self, X: Any, constraints: Constraints, rng: np.random.Generator) -> None:
        moved = preserve_geometry(
            X.astype(np.float64), constraints, int(self.n_clusters), self.max_iter, rng,
            n_init=self.n_init, by_impact=self.order == "impact", rescore_every=self.rescore_every,
        )  # fmt: skip
        self.embedding_ = moved.rows.astype(X.dtype, copy=False)
        self.cluster_centers_ = moved.centers.astype(X.dtype, copy=False)
        self.distances_moved_, self.labels_, self.n_iter_ = moved.distances, moved.labels, moved.n_iter
        self.violated_must_link_, self.violated_cannot_link_ = constraints.violations(moved.labels)
        if moved.stopped:
            warn_caller(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} with "
                f"{len(self.violated_must_link_) + len(self.violated_cannot_link_)} violated constraints. "
                "Raise max_iter.",
                ConvergenceWarning,
            )


class MovedRows(NamedTuple):
    """Rows after their moves, the distance that each was moved, and their clusters.

    `stopped` is True if the limit of steps was reached while allowed moves were left.
    """

    rows: FloatArray
    distances: FloatArray
    labels: npt.NDArray[np.int32]
    centers: FloatArray
    n_iter: int
    stopped: bool


def preserve_geometry(
    X: FloatArray,
    constraints: Constraints,
    n_clusters: int,
    max_iter: int,
    rng: np.random.Generator,
    *,
    n_init: int = 10,
    by_impact: bool = True,
    rescore_every: int = 1,
    watch: Callable[[MovedRows], Any] | None = None,
) -> MovedRows:
    """Move rows until k-means satisfies the constraints or no move is left (thesis Algorithm 7).

    Parameters
    ----------
    by_impact : bool
        Whether to treat the violated constraint with the highest impact next; otherwise a random one.
    rescore_every : int
        Number of steps after which the multipliers and the goals of the rows are recomputed.
    watch : callable, optional
        Called with the state after each step.
    """
    stated = _Stated.of(constraints)
    rows, distances = X.copy(), np.zeros(len(X))
    labels, centers = _kmeans(rows, n_clusters, n_init=n_init, random_state=rng)
    impact, goals = _Impact(np.empty(0), np.empty((0, 0))), None
    joint = _JointClusters(stated.dual, n_clusters)
    forbidden = np.zeros((len(stated.tied), n_clusters), dtype=bool)
    n_moves = np.zeros(forbidden.shape, dtype=np.int64)
    n_iter = 0
    while True:
        where = labels[stated.tied]
        costs = _move_costs(rows[stated.tied], where, centers, np.bincount(labels, minlength=n_clusters))
        broken = stated.violated(where)
        if by_impact and n_iter % rescore_every == 0 and len(broken.pairs):
            impact = stated.impact(rows, centers, n_clusters)
            goals = joint.cheapest(np.where(forbidden, np.inf, costs))
        if by_impact and goals is None and len(broken.pairs):
            costs += impact.charges - np.take_along_axis(impact.charges, where[:, None].astype(np.int64), axis=1)
        costs[forbidden] = np.inf
        broken = broken.those(np.isfinite(_cheapest(broken, costs, where)))
        if not len(broken.pairs) or n_iter == max_iter:
            return MovedRows(rows, distances, labels, centers, n_iter, bool(len(broken.pairs)))
        chosen = np.argmax(impact.scores[broken.statements]) if by_impact else rng.integers(len(broken.pairs))
        for place, target in _moves(broken.pairs[chosen], costs, where, goals):
            row, origin = stated.tied[place], where[place]
            step = _over_the_border(rows[row], centers[origin], centers[target], 2.0 ** n_moves[place, target])
            rows[row] += step
            distances[row] += np.linalg.norm(step)
            forbidden[place, origin] = True
            n_moves[place, target] += 1
            forbidden[place, target] |= n_moves[place, target] == _MOST_MOVES
        labels, centers = _kmeans(rows, n_clusters, init=centers)
        n_iter += 1
        if watch is not None:
            watch(MovedRows(rows, distances, labels, centers, n_iter, False))


def _kmeans(
    rows: FloatArray, n_clusters: int, init: Any = "k-means++", n_init: int = 1, random_state: Any = 0
) -> tuple[npt.NDArray[np.int32], FloatArray]:
    """Cluster the rows without constraints. If `init` gives the centres, clusters keep their numbers."""
    with quietly():
        model = SeededKMeans(n_clusters, init=init, n_init=n_init, tol=0, random_state=random_state).fit(rows)
    return model.labels_, np.asarray(model.cluster_centers_)


class _Broken(NamedTuple):
    """Violated pairs, as positions in `_Stated.tied`, and the statement that each pair comes from."""

    pairs: IntArray
    statements: IntArray

    def those(self, kept: npt.NDArray[np.bool_]) -> _Broken:
        return _Broken(self.pairs[kept], self.statements[kept])


class _Impact(NamedTuple):
    """Score of each statement, divided by its confidence, and the charge of all statements for each row and cluster."""

    scores: FloatArray
    charges: FloatArray


class _Stated(NamedTuple):
    """The constraints as pairs of rows that belong together, and sets of rows that are all in different clusters.

    `tied` lists the rows that constraints name; pairs and sets hold positions in it. Statements are numbered: first the
    pairs of `dual.together`, then the sets of `dual.set_ptr`.
    """

    tied: IntArray
    dual: Statements
    confidence: FloatArray

    @classmethod
    def of(cls, constraints: Constraints) -> _Stated:
        links = must_links(constraints)
        together, sure = _distinct(np.concatenate(links), constraints.must_link_confidence)
        apart, sure_apart = _distinct(constraints.cannot_link, constraints.cannot_link_confidence)
        sets, members = [np.repeat(np.arange(len(apart)), 2)], [apart.ravel()]
        columns = group_columns(constraints.cannot_groups)
        if constraints.labels is not None:  # the first row of each class
            classes, first = np.unique(constraints.labels, return_index=True)
            column = np.full(constraints.n_rows, -1)
            column[first[classes >= 0]] = 0
            columns = [*columns, column]
        n_sets = len(apart)
        for column in columns:
            grouped = np.flatnonzero(column >= 0)
            values, number = np.unique(column[grouped], return_inverse=True)
            sets.append(n_sets + number)
            members.append(grouped)
            n_sets += len(values)
        set_ptr, rows = compress(np.concatenate(sets), np.concatenate(members), n_sets)
        tied = np.unique(np.concatenate([together.ravel(), rows]))
        dual = Statements(
            len(tied), np.searchsorted(tied, together), np.full(len(together), np.inf),
            set_ptr, np.searchsorted(tied, rows), np.full(n_sets, np.inf),
        )  # fmt: skip
        return cls(tied, dual, np.concatenate([sure, sure_apart, np.ones(n_sets - len(apart))]))

    def violated(self, where: npt.NDArray[np.int32]) -> _Broken:
        """Find the pairs that the clusters `where` violate. A set gives one pair for each surplus row in a cluster."""
        together, members = self.dual.together, self.dual.members
        split = np.flatnonzero(where[together[:, 0]] != where[together[:, 1]])
        set_of = np.repeat(np.arange(len(self.dual.set_ptr) - 1), np.diff(self.dual.set_ptr))
        order = np.lexsort((where[members], set_of))
        members, set_of = members[order], set_of[order]
        alike = np.flatnonzero((set_of[1:] == set_of[:-1]) & (where[members[1:]] == where[members[:-1]]))
        pairs = np.concatenate([together[split], np.column_stack([members[alike], members[alike + 1]])])
        return _Broken(pairs, np.concatenate([split, len(together) + set_of[alike]]))

    def impact(self, rows: FloatArray, centers: FloatArray, n_clusters: int) -> _Impact:
        """Solve for the optimal multipliers (steps 4 and 5) and turn them into scores and charges."""
        middle = rows.mean(axis=0)
        criterion = SquaredDistances(rows - middle, self.tied, n_clusters)
        dual = dual_ascent(criterion, centers - middle, self.dual, max_iter=_DUAL_ROUNDS)
        scores = np.concatenate([np.abs(dual.pulls).sum(axis=1), dual.prices.sum(axis=1)])
        charges = np.zeros((len(self.tied), n_clusters))
        charge_rows(self.dual.together, dual.pulls, self.dual.set_ptr, self.dual.members, dual.prices, charges)
        return _Impact(-scores / self.confidence, charges)


class _JointClusters:
    """The cheapest clusters of the tied rows that satisfy all statements together.

    Must-linked rows share a cluster. If a must-link joins two rows of a set, only one of them counts in the set.
    """

    def __init__(self, statements: Statements, n_clusters: int) -> None:
        parent, self._component_of = np.arange(statements.n_tied), np.empty(statements.n_tied, dtype=np.int64)
        merge_pairs(parent, statements.together)
        self._n_components, self._n_clusters = number_components(parent, self._component_of), n_clusters
        set_of = np.repeat(np.arange(len(statements.set_ptr) - 1), np.diff(statements.set_ptr))
        apart = np.unique(np.column_stack([set_of, self._component_of[statements.members]]), axis=0)
        graph = CliqueGraph.build(self._n_components, np.empty((0, 2), dtype=np.int64), apart[:, 0], apart[:, 1])
        everywhere = np.full(self._n_components, -1, dtype=np.int32)
        no_limit = np.full(n_clusters, float(self._n_components))
        self._packing = Packing(np.ones(self._n_components), 0 * no_limit, no_limit, graph, everywhere)

    def cheapest(self, costs: FloatArray) -> npt.NDArray[np.int32] | None:
        """A cluster for each tied row; avoids infinite costs where possible. None if the statements cannot all hold.

        The search starts with a greedy colouring. Exchanges and a mixed-integer program improve it.
        """
        finite = np.isfinite(costs)
        costs = np.where(finite, costs, 1.0 + np.abs(costs[finite]).sum())
        sums = np.zeros((self._n_components, self._n_clusters))
        np.add.at(sums, self._component_of, costs)
        wishes = np.argsort(sums, axis=1, kind="stable").astype(np.int32)
        colors = color(self._packing.graph, self._n_clusters, preference=wishes, work_limit=_COLOR_WORK).colors
        if colors is None:
            return None
        return self._packing.prove(sums, self._packing.improve(sums, colors)).labels[self._component_of]


def _distinct(pairs: IntArray, confidence: FloatArray) -> tuple[IntArray, FloatArray]:
    """Distinct pairs and the highest confidence of each; pairs after the first ``len(confidence)`` are certain."""
    sure = np.concatenate([confidence, np.ones(len(pairs) - len(confidence))])
    once = distinct_pairs(pairs, sure)
    return once.pairs, sure[once.best]


def _move_costs(rows: FloatArray, where: npt.NDArray[np.int32], centers: FloatArray, sizes: IntArray) -> FloatArray:
    """Change of the k-means criterion if a row joins each cluster: 0 for its own, infinite if it cannot move there.

    A row that is alone in its cluster coincides with the centre, so it saves nothing by leaving.
    """
    squares = cdist(rows, centers, "sqeuclidean")
    own, n = np.arange(len(rows)), sizes[where]
    saved = np.where(n > 1, n / np.maximum(n - 1, 1), 0.0) * squares[own, where]
    costs = sizes / (sizes + 1) * squares - saved[:, None]
    costs[cdist(centers, centers)[where] == 0] = np.inf
    costs[own, where] = 0.0
    return costs


def _cheapest(broken: _Broken, costs: FloatArray, where: npt.NDArray[np.int32]) -> FloatArray:
    """Cost of the cheapest allowed move for each violated pair; infinite if there is none."""
    first, second = broken.pairs.T
    together = where[first] != where[second]
    both = costs[first] + costs[second]
    one = np.minimum(costs[first], costs[second])
    one[np.arange(len(one)), where[first]] = np.inf
    return np.where(together[:, None], both, one).min(axis=1, initial=np.inf)


def _moves(
    pair: IntArray, costs: FloatArray, where: npt.NDArray[np.int32], goals: npt.NDArray[np.int32] | None
) -> list[tuple[int, int]]:
    """The moves of Algorithm 8: positions of rows, and the cluster towards which each moves.

    If there are goals, and moves towards them are allowed, only these moves are considered.
    """
    together, options = bool(where[pair[0]] != where[pair[1]]), costs[pair]
    if not together:
        options[:, where[pair[0]]] = np.inf
    if goals is not None:
        towards = np.where(goals[pair][:, None] == np.arange(costs.shape[1]), options, np.inf)
        if np.isfinite(towards.sum(axis=0) if together else towards).any():
            options = towards
    if together:
        target = int(np.argmin(options.sum(axis=0)))
        return [(place, target) for place in pair if where[place] != target]
    place, target = divmod(int(np.argmin(options)), costs.shape[1])
    return [(pair[place], target)]


def _over_the_border(row: FloatArray, origin: FloatArray, target: FloatArray, factor: float) -> FloatArray:
    """The step that takes a row just beyond the border between two clusters, parallel to the line of their centres.

    See Fig. 6.6 of the thesis. The row ends `factor` times as far beyond the border as usual.
    """
    line = target - origin
    share = float(((origin + target) / 2 - row) @ line / (line @ line))
    return (share + factor * max(_BEYOND_BORDER * share, _LEAST_BEYOND)) * line
