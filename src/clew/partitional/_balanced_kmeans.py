"""K-means in which the sizes of clusters have limits, and every must-link and cannot-link holds.

Demiriz, Bennett and Bradley 2008 (`demiriz2008`); survey section 3.2.2, Eq. 43-44, Algorithm 14.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from clew._persistence import Learned
from clew._validation import NONE, Allowed, integer, number, words
from clew.constraints import Closure, Constraints
from clew.exceptions import ParameterError
from clew.partitional._cop_kmeans import cop_kmeans
from clew.partitional._family import COMMON_PARAMETERS, SOFT_CONSTRAINTS, KMeansFamily
from clew.partitional._geometry import IntArray, Labels, Problem
from clew.partitional._lloyd import Solution, lloyd
from clew.partitional._reduction import cluster_masses, labels_at
from clew.partitional._seeding import Start
from clew.partitional._sizes import LIMIT, SizedPolicy, SizeLimits, matched_start, read_limits, unit_costs
from clew.solvers.coloring import WORK_LIMIT as COLORING_WORK
from clew.solvers.packing import WORK_LIMIT

# Largest number of times that the rounds continue after the exact search has found a better labelling.
_PROOFS = 2
# An objective within this share of the lower bound counts as proven, because HiGHS works to a tolerance.
_PROVEN = 1e-8


class BalancedKMeans(KMeansFamily):
    r"""K-means in which the sizes of clusters have limits.

    Each round assigns all rows at the lowest total cost for which every size keeps its limits. Must-linked rows move
    as one block, and cannot-linked rows are never together. Limits that cannot hold are refused with the reason.
    Without any limit the method is `COPKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    size_min : number, list of one per cluster, or None
        Smallest size of a cluster. A list is in the order of `cluster_labels_`, and None means no limit.
    size_max : number, list of one per cluster, or None
        Largest size of a cluster.
    size : number, list of one per cluster, or None
        The size that clusters should have, up to `tolerance`. None with a tolerance is the mean size.
    tolerance : float or None
        How far sizes may be from `size`, as a share: ``size=200, tolerance=0.1`` is from 180 to 220.
    size_unit : {"rows", "weight"}, default="rows"
        Whether a size is a number of rows or the sum of their `sample_weight`.
    min_confidence : float, default=0
        Pairs with a lower confidence are left out. All others are hard.
    work_limit : int
        Limit on the work of one exact search, in nodes times variables. The search runs if pairs or weights make the
        assignment NP-hard.
    init, leftover, n_init, max_iter, tol, metric, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_centers_, cluster_labels_, cluster_sizes_, inertia_, objective_history_, n_iter_
        As in `KMeansFamily`.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Weight of the rows of each cluster.
    objective_ : float
        The same as `inertia_`.
    lower_bound_ : float
        No assignment to these centres within the limits costs less. It equals `objective_` if the assignment is proven
        to be the cheapest, which is always the case without pairs and weights.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all hard, including entailed ones and the limits. Under these constraints, the method minimises

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2, \qquad l_h \le \sum_{i: z_i = h} q_i \le u_h

    where q is 1 or the weight of a row. For fixed centres and q = 1 this is a minimum-cost flow with k sinks, whose
    solution is exact and in whole rows. With blocks, cannot-links or weights it is NP-hard: the rounds exchange blocks
    between two clusters at a time, and the last one adds an exact search within `work_limit`.
    Sums of weights keep the limits up to a relative rounding of 1e-9.

    `predict` returns the label of the nearest centre and does not enforce sizes. A fitted row that the limits moved
    away from its nearest centre is therefore predicted to be in another cluster than its own.

    Time O(t (n k d + p k (n + k))) for t rounds in which p rows must move, far less if lists of the cheapest rows
    are still valid; memory O(n k) beyond a copy of X.
    Departs from [1]_: there are upper limits, blocks, cannot-links and weights. If limits differ, the largest group of
    a start gets the widest limit.

    References
    ----------
    .. [1] A. Demiriz, K. P. Bennett, P. S. Bradley (2008). "Using assignment constraints to avoid empty clusters in
       k-means clustering." In: Constrained Clustering, CRC Press. Section 9.2.

    Examples
    --------
    >>> from clew import BalancedKMeans
    >>> model = BalancedKMeans(n_clusters=2, size_min=2, size_max=3, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [3.0], [9.0]]).cluster_sizes_.tolist()
    [2, 3]
    """

    _capabilities = replace(
        SOFT_CONSTRAINTS, labels="hard", must_link="hard", cannot_link="hard", sizes="hard", monotone=True
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        **COMMON_PARAMETERS,
        "size_min": LIMIT,
        "size_max": LIMIT,
        "size": LIMIT,
        "tolerance": number(0, 1) | NONE,
        "size_unit": words("rows", "weight"),
        "min_confidence": number(0, 1),
        "work_limit": integer(1),
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **KMeansFamily._learned_attributes,
        "cluster_weights_": Learned("real", (("clusters",),), low=0),
        "lower_bound_": Learned("real"),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        size_min: Any = None,
        size_max: Any = None,
        size: Any = None,
        tolerance: float | None = None,
        size_unit: str = "rows",
        init: Any = "neighbourhoods",
        leftover: str = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        metric: str = "euclidean",
        min_confidence: float = 0.0,
        work_limit: int = WORK_LIMIT,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.size_min = size_min
        self.size_max = size_max
        self.size = size
        self.tolerance = tolerance
        self.size_unit = size_unit
        self.init = init
        self.leftover = leftover
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.metric = metric
        self.min_confidence = min_confidence
        self.work_limit = work_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def _examples(cls) -> list[Any]:
        return [
            cls(n_clusters=3, random_state=0),
            cls(n_clusters=3, init="k-means++", metric="cosine", random_state=0),
        ]

    def _limits(self, problem: Problem) -> SizeLimits | None:
        """The limits that were given, or the band around `size`."""
        n_clusters, in_weights = int(self.n_clusters), self.size_unit == "weight"
        size_min, size_max = self.size_min, self.size_max
        if self.size is not None or self.tolerance is not None:
            size_min, size_max = self._band(problem, n_clusters, in_weights=in_weights)
        return read_limits(self, n_clusters, size_min, size_max, in_weights=in_weights)

    def _band(self, problem: Problem, n_clusters: int, *, in_weights: bool) -> tuple[Any, Any]:
        name = type(self).__name__
        if self.size_min is not None or self.size_max is not None:
            raise ParameterError(
                f"{name} has size or tolerance, and also size_min or size_max. Use only one of the two forms."
            )
        if self.tolerance is None:
            raise ParameterError(f"size={self.size!r} in {name} needs a tolerance. Give tolerance=0.1 for 10 %.")
        if self.size is None:
            mean = (float(problem.row_weights.sum()) if in_weights else problem.n_rows) / n_clusters
            low, high = mean * (1 - self.tolerance), mean * (1 + self.tolerance)
            if not in_weights:  # if the mean is not a whole number, allow both neighbouring numbers
                low, high = min(low, np.floor(mean)), max(high, np.ceil(mean))
            return low, high
        read = read_limits(self, n_clusters, self.size, None, in_weights=True)
        assert read is not None
        return (1 - self.tolerance) * read.lower, (1 + self.tolerance) * read.lower

    def _best_start(
        self, problem: Problem, constraints: Constraints, closed: Closure, clusters: IntArray, rng: np.random.Generator
    ) -> Solution:
        best = super()._best_start(problem, constraints, closed, clusters, rng)
        return self._proven(problem, constraints, closed, best, class_pins(closed, clusters), self.max_iter)

    def _proven(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        found: Solution,
        pins: IntArray,
        max_iter: int,
    ) -> Solution:
        """Improve a solution by the exact search, and set the lower bound for its centres."""
        limits = self._limits(problem)
        self.lower_bound_ = found.objective
        if limits is None:
            if not closed.tied.any():
                return found
            limits = SizeLimits(np.zeros(len(found.centers)), np.full(len(found.centers), float(problem.n_rows)))
        policy, units = SizedPolicy.of(problem, constraints, closed, limits, pins, self.work_limit)
        if policy.packing.is_flow:
            return found
        for attempt in range(_PROOFS):
            labels = labels_at(found.labels, closed.first_row)
            costs = unit_costs(problem, units, found.centers)
            proof = policy.packing.prove(costs, labels)
            before = float(costs[np.arange(len(labels)), labels].sum())
            self.lower_bound_ = problem.constant + proof.bound
            if proof.cost >= before - _PROVEN * problem.scale:
                break
            found = _relabelled(found, proof.labels[closed.component_of], found.objective + proof.cost - before)
            if attempt == _PROOFS - 1 or found.n_iter >= max_iter:
                break
            policy = SizedPolicy(policy.packing, policy.explanation, proof.labels)
            more = lloyd(problem, units, policy, found.centers, max_iter=max_iter - found.n_iter, tol=self.tol)
            found = more._replace(history=[*found.history, *more.history], n_iter=found.n_iter + more.n_iter)
        return found

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        return balanced_kmeans(
            problem,
            constraints,
            closed,
            start,
            rng,
            self._limits(problem),
            max_iter=self.max_iter,
            tol=self.tol,
            work_limit=self.work_limit,
            in_order=not isinstance(self.init, str),
        )

    def _keep(self, found: Solution) -> None:
        self.cluster_weights_ = cluster_masses(found.problem, found.labels, len(found.centers))
        is_proven = self.objective_ - self.lower_bound_ <= _PROVEN * max(found.problem.scale, 0.0)
        self.lower_bound_ = self.objective_ if is_proven else float(self.lower_bound_)


def balanced_kmeans(
    problem: Problem,
    constraints: Constraints,
    closed: Closure,
    start: Start,
    rng: np.random.Generator,
    limits: SizeLimits | None,
    *,
    max_iter: int,
    tol: float,
    work_limit: int,
    in_order: bool = False,
) -> Solution:
    """Assign all components within the limits. With `in_order`, the centres are already in the order of the limits."""
    if limits is None:
        return cop_kmeans(
            problem, constraints, closed, start, rng, max_iter=max_iter, tol=tol, work_limit=COLORING_WORK
        )
    if not in_order:
        start = matched_start(problem, closed, start, limits)
    pins = np.where(closed.labels >= 0, start.seeds, -1)
    policy, units = SizedPolicy.of(problem, constraints, closed, limits, pins, work_limit)
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


def class_pins(closed: Closure, clusters: IntArray) -> IntArray:
    """The cluster of each component with a known class, -1 for all other components."""
    pins = np.full(closed.n_components, -1, dtype=np.int64)
    known = np.flatnonzero(closed.labels >= 0)
    order = np.argsort(clusters)
    pins[known] = order[np.searchsorted(clusters, closed.labels[known], sorter=order)]
    return pins


def _relabelled(found: Solution, labels: Labels, objective: float) -> Solution:
    """The same centres with a better labelling."""
    return found._replace(labels=labels, objective=objective, history=[*found.history, objective])
