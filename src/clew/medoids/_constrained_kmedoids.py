"""K-medoids under must-links, cannot-links and size limits, for any dissimilarity.

Randel, Aloise, Mladenović and Hansen 2018 (`randel2018`); thesis chapter 4, Algorithms 3 and 4.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning

from clew._base import Capabilities, ConstrainedClusterer, warn_caller
from clew._distances import distances_between
from clew._persistence import Learned, State
from clew._validation import (
    CALLABLE,
    NONE,
    RANDOM_STATE,
    Allowed,
    above,
    array_like,
    below_zero,
    integer,
    number,
    refuse_negative,
    words,
)
from clew.constraints import Closure, Constraints, require_coloring
from clew.exceptions import FileError, ParameterError
from clew.medoids._exact import ProvenMedoids, prove
from clew.medoids._search import (
    Costs,
    Descent,
    FloatArray,
    IntArray,
    Limits,
    MedoidClusters,
    MedoidTies,
    SearchProgress,
    SearchResult,
    SizedDescent,
    SwapDescent,
    draw_medoids,
    search_medoids,
    unit_costs,
)
from clew.partitional._seeding import cluster_labels, labels_of_clusters
from clew.partitional._sizes import LIMIT, Explanation, SizeLimits, pack, read_limits
from clew.solvers.coloring import WORK_LIMIT
from clew.solvers.packing import WORK_LIMIT as PACKING_WORK
from clew.solvers.packing import PackingError

_METRICS = ("euclidean", "manhattan", "chebyshev", "cosine")


class ConstrainedKMedoids(ConstrainedClusterer):
    r"""K-medoids in which every constraint holds, for any dissimilarity.

    A cluster is represented by its medoid, a row of the data that people can look at. The cost of a row is its
    dissimilarity to the medoid of its cluster. The dissimilarity may be any function or matrix; it need not be
    symmetric or a metric. Use it where means make no sense: for sequences, mixed records, or a matrix of ratings. The
    method is also robust to outliers.

    Parameters
    ----------
    n_clusters : int, default=8
    metric : {"euclidean", "manhattan", "chebyshev", "cosine", "precomputed"} or callable, default="euclidean"
        A callable takes two rows and returns the dissimilarity of the first row to the second one as its medoid. With
        "precomputed", X is a square matrix: ``X[i, j]`` is the dissimilarity of row i to medoid j. It may be
        asymmetric. Negative and missing entries are refused.
    solver : {"vns", "exact"}, default="vns"
        "vns" is a variable neighbourhood search. "exact" runs it first, and then a mixed-integer program that proves
        the result optimal or finds a better one. "exact" is for up to a few hundred rows.
    size_min : number, array of shape (n_clusters,) or None, default=None
        Smallest number of rows in a cluster. An array has one limit for each cluster, in the order of
        `cluster_labels_`.
    size_max : number, array of shape (n_clusters,) or None, default=None
        Largest number of rows in a cluster, in the same form.
    init : "k-medoids++" or array of shape (n_clusters,), default="k-medoids++"
        The first medoids. "k-medoids++" draws rows far from each other. An array of row positions, such as the
        `medoid_indices_` of an earlier fit, is a warm start.
    n_init : int, default=1
        Number of starts; the best result is kept. All starts after the first are random, even if `init` is an array.
    max_iter : int, default=200
        Number of shakes per start. A shake replaces some medoids at random and then swaps until no swap helps. With 0,
        only the initial swaps are made.
    max_shake : int, default=10
        Largest number of medoids that a shake replaces (v_max in the thesis).
    time_limit : float or None, default=None
        Limit in seconds, for each start and again for the mixed-integer program. With it, results depend on the clock.
    callback : callable or None, default=None
        Called after each shake with a named tuple of `start`, `n_iter`, `inertia` and `n_shaken`. If it returns False,
        the start ends.
    min_confidence : float, default=0
        Pairs with a lower confidence are ignored. All other pairs are hard.
    work_limit : int
        Largest number of steps of the exact search for a labelling that violates no cannot-link. With size limits,
        another search is used, and its limit is fixed.
    random_state : int, Generator, RandomState or None, default=None
    n_jobs : int or None, default=None
        Number of threads. Each works on its own start. Results do not depend on it.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    medoid_indices_ : ndarray of shape (n_clusters,)
        Row of each medoid. No row occurs twice.
    cluster_centers_ : array or CSR matrix of shape (n_clusters, n_features)
        The values of the medoids. Not set with ``metric="precomputed"``.
    cluster_labels_, cluster_sizes_ : ndarray of shape (n_clusters,)
        Label and number of rows of each cluster.
    inertia_ : float
        Sum of the dissimilarities of all rows to their medoids.
    objective_ : float
        The same as `inertia_`.
    objective_history_ : ndarray
        Cost after each improvement.
    lower_bound_, gap_ : float
        With ``solver="exact"``: a lower bound on the cost of every solution, and the share by which `inertia_` exceeds
        it. The gap is 0 if the result is proven optimal (up to a share of 1e-8).
    n_iter_ : int
        Number of shakes.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all hard, including entailed ones and size limits. Under these constraints, the method minimises, over
    k different medoids m and labels z,

    .. math:: J = \sum_i d(x_i, x_{m_{z_i}})

    As in [1]_, a medoid need not be in its own cluster: a must-link or cannot-link may put its row elsewhere. So any
    labelling that satisfies the constraints is possible with any medoids, and every feasible problem gets a solution.

    Must-linked rows form one unit, whose cost is the sum over its rows. Medoids are still single rows. The cost of a
    swap takes the cannot-links into account. In each connected part of the cannot-link graph where the nearest medoids
    conflict, units move to the cheapest free cluster [1]_ (Algorithm 3), and branch and bound then finds the cheapest
    labels of that part. The sum of nearest costs is a lower bound, so most of these searches are skipped. With size
    limits, and if no row is must-linked or cannot-linked, labels come from an exact minimum-cost flow. Otherwise units
    are exchanged between two clusters at a time.

    Time O(n u) for one round over all candidates with u units, and a few rounds per shake; memory O(n²).
    Departs from [1]_: swaps are eager, as in FasterPAM [2]_, and candidates are tried in a new random order in each
    descent. The descent minimises the cost with cannot-links, not the cost without them.

    References
    ----------
    .. [1] R. Randel, D. Aloise, N. Mladenović, P. Hansen (2018). "On the k-medoids model for semi-supervised
       clustering." ICVNS. Algorithms 3 and 4 of the thesis.
    .. [2] E. Schubert, P. J. Rousseeuw (2021). "Fast and eager k-medoids clustering." Information Systems 101.

    Examples
    --------
    >>> from clew import ConstrainedKMedoids
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0], [30.0]]
    >>> model = ConstrainedKMedoids(n_clusters=2, random_state=0)
    >>> model.fit(X, constraints={"must_link": [(4, 5)], "cannot_link": [(2, 3)]}).labels_
    array([0, 0, 0, 1, 1, 1])
    >>> model.medoid_indices_
    array([1, 4])
    """

    _capabilities = Capabilities(
        labels="hard",
        must_link="hard",
        cannot_link="hard",
        sizes="hard",
        sparse=True,
        asymmetric=True,
        quadratic=True,
        predicts=True,
        monotone=True,
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "metric": words(*_METRICS, "precomputed") | CALLABLE,
        "solver": words("vns", "exact"),
        "size_min": LIMIT,
        "size_max": LIMIT,
        "init": words("k-medoids++") | array_like(),
        "n_init": integer(1),
        "max_iter": integer(0),
        "max_shake": integer(1),
        "time_limit": above(0) | NONE,
        "callback": CALLABLE | NONE,
        "min_confidence": number(0, 1),
        "work_limit": integer(0),
        "random_state": RANDOM_STATE,
        "n_jobs": integer(1) | below_zero() | NONE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **ConstrainedClusterer._learned_attributes,
        "medoid_indices_": Learned("integer", (("clusters",),), low=0, below="rows"),
        "cluster_centers_": Learned("real", (("clusters", "columns"),), sparse=True, optional=True),
        "inertia_": Learned("real", low=0),
        "objective_": Learned("real", low=0),
        "objective_history_": Learned("real", ((None,),), low=0),
        "lower_bound_": Learned("real", optional=True),
        "gap_": Learned("real", low=0, optional=True),
        "n_iter_": Learned("integer", low=0),
    }

    lower_bound_: float

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str | Callable[[Any, Any], float] = "euclidean",
        solver: str = "vns",
        size_min: Any = None,
        size_max: Any = None,
        init: Any = "k-medoids++",
        n_init: int = 1,
        max_iter: int = 200,
        max_shake: int = 10,
        time_limit: float | None = None,
        callback: Callable[[SearchProgress], Any] | None = None,
        min_confidence: float = 0.0,
        work_limit: int = WORK_LIMIT,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.solver = solver
        self.size_min = size_min
        self.size_max = size_max
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.max_shake = max_shake
        self.time_limit = time_limit
        self.callback = callback
        self.min_confidence = min_confidence
        self.work_limit = work_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def _examples(cls) -> list[ConstrainedKMedoids]:
        return [
            cls(n_clusters=3, max_iter=20, random_state=0),
            cls(n_clusters=3, metric="precomputed", max_iter=20, random_state=0),
            cls(n_clusters=3, metric="manhattan", solver="exact", max_iter=5, random_state=0),
        ]

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of this instance, which depend on its parameters."""
        is_matrix = isinstance(self.metric, str) and self.metric == "precomputed"
        return replace(super().capabilities, pairwise="dissimilarity" if is_matrix else None, sparse=not is_matrix)

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        closed, k = constraints.closure(), int(self.n_clusters)
        names = cluster_labels(closed, k)
        limits = read_limits(self, k, self.size_min, self.size_max)
        distances = self._distances(X)
        costs = unit_costs(distances, closed.component_of, closed.n_components)
        packing = None
        if limits is None:
            ties = MedoidTies.of(closed.graph, self._witness(constraints, closed))
            result = self._search(costs, closed, lambda: SwapDescent(costs, k, ties), rng)
        else:
            packing = pack(constraints, closed, limits, _pins(closed, names, limits), PACKING_WORK)
            sized = packing
            try:
                result = self._search(costs, closed, lambda: SizedDescent(costs, sized), rng)
            except PackingError as error:
                raise Explanation(constraints, closed, limits, packing).error(error) from None
        found = result.found
        for name in ("lower_bound_", "gap_", "cluster_centers_"):
            self.__dict__.pop(name, None)
        if self.solver == "exact":
            found = self._proven(prove(costs, closed.graph.pairs(), found, packing, self.time_limit))
        if limits is None or not limits.differ:  # otherwise each slot has its own limits
            found = _in_order(found, np.argsort(found.medoids))
            labels = labels_of_clusters(closed, found.labels, k)
            found = _in_order(found, np.argsort(labels)[np.argsort(np.argsort(names))])
        self.cluster_labels_, self.medoid_indices_ = names, found.medoids
        slots = found.labels[closed.component_of]
        self.cluster_sizes_ = np.bincount(slots, minlength=k)
        costs_of_rows = distances[np.arange(len(slots)), found.medoids[slots]]
        self.inertia_ = self.objective_ = float(costs_of_rows.sum(dtype=np.float64))
        if self.solver == "exact":
            self.lower_bound_ = min(self.lower_bound_, self.inertia_)  # sums in different order may differ by rounding
        self.objective_history_ = np.array([*(cost for cost in result.history if cost > self.inertia_), self.inertia_])
        self.n_iter_ = result.n_iter
        if self.capabilities.pairwise is None:
            self.cluster_centers_ = X[self.medoid_indices_]
        return names[slots]

    def _distances(self, X: Any) -> Costs:
        if self.capabilities.pairwise is not None:
            return X
        matrix = distances_between(X, X, self.metric)
        if callable(self.metric):
            refuse_negative(matrix, "dissimilarity", np.arange(len(matrix)))
        return matrix.astype(X.dtype, copy=False)

    def _witness(self, constraints: Constraints, closed: Closure) -> npt.NDArray[np.int32]:
        """Find clusters that violate no cannot-link; raise an error that says why if there are none."""
        k = int(self.n_clusters)
        return require_coloring(
            constraints, closed, np.arange(closed.n_components), k,
            fixed=np.full(closed.n_components, -1, dtype=np.int32),
            preference=np.arange(k, dtype=np.int32)[None, :], work_limit=self.work_limit,
        )  # fmt: skip

    def _search(
        self, costs: Costs, closed: Closure, descent: Callable[[], Descent], rng: np.random.Generator
    ) -> SearchResult:
        limits = Limits(self.max_iter, self.max_shake, self.time_limit, self.callback)
        starts = []
        for place, generator in enumerate(rng.spawn(self.n_init)):
            given = place == 0 and not isinstance(self.init, str)
            medoids = (
                self._given_medoids(len(costs))
                if given
                else draw_medoids(costs, closed.component_of, int(self.n_clusters), generator)
            )
            starts.append((medoids, generator))
        return search_medoids(descent, starts, limits, effective_n_jobs(self.n_jobs))

    def _given_medoids(self, n_rows: int) -> IntArray:
        """Check `init` and return its row positions."""
        medoids = np.asarray(self.init)
        if medoids.shape != (self.n_clusters,) or medoids.dtype.kind not in "iu":
            raise ParameterError(
                f"init in ConstrainedKMedoids has shape {medoids.shape} and type {medoids.dtype}: expected "
                f"{self.n_clusters} row positions, one for each medoid."
            )
        if medoids.min() < 0 or medoids.max() >= n_rows:
            wrong = medoids.min() if medoids.min() < 0 else medoids.max()
            raise ParameterError(f"init in ConstrainedKMedoids names row {wrong}, but X has {n_rows} rows.")
        if len(np.unique(medoids)) < len(medoids):
            raise ParameterError(f"init in ConstrainedKMedoids names a row twice: {medoids.tolist()}.")
        return medoids.astype(np.int64)

    def _proven(self, proof: ProvenMedoids) -> MedoidClusters:
        """Set `lower_bound_` and `gap_` from a proof; return its solution."""
        cost = proof.found.cost
        self.lower_bound_ = proof.bound
        self.gap_ = (cost - proof.bound) / cost if cost > proof.bound else 0.0
        if self.gap_ > 0:
            warn_caller(
                f"ConstrainedKMedoids stopped at time_limit={self.time_limit:g} before the result was proven optimal. "
                f"Its cost exceeds the lower bound by {self.gap_:.2%}. Raise time_limit.",
                ConvergenceWarning,
            )
        return proof.found

    @classmethod
    def _from_state(cls, path: str | os.PathLike[str], state: State) -> Self:
        estimator = super()._from_state(path, state)
        needed = [] if estimator.capabilities.pairwise is not None else ["cluster_centers_"]
        needed += ["lower_bound_", "gap_"] if estimator.solver == "exact" else []
        for name in needed if state.learned else ():
            if name not in state.learned:
                raise FileError(f"{path} cannot be used: {name} is missing. Save the estimator again.")
        return estimator

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of the nearest medoid of each row; constraints and size limits are not used.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``metric="precomputed"``, the dissimilarities of the new rows to all fitted rows.
        """
        rows = self._check_new_rows(X)
        if self.capabilities.pairwise is not None:
            near = rows[:, self.medoid_indices_]
        else:
            near = distances_between(rows, self.cluster_centers_, self.metric)
        return self._with_class_names(self.cluster_labels_[near.argmin(axis=1)])


def _pins(closed: Closure, names: IntArray, limits: SizeLimits) -> IntArray:
    """If each slot has its own limits, the slot of each component with a known class; -1 for all others."""
    pins = np.full(closed.n_components, -1)
    if limits.differ:
        known = np.flatnonzero(closed.labels >= 0)
        order = np.argsort(names)
        pins[known] = order[np.searchsorted(names, closed.labels[known], sorter=order)]
    return pins


def _in_order(found: MedoidClusters, order: IntArray) -> MedoidClusters:
    """Reorder the slots of a solution."""
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order))
    return MedoidClusters(found.medoids[order], place[found.labels], found.cost)
