"""K-means in which every must-link and every cannot-link holds.

Wagstaff et al. 2001 (`wagstaff2001`); survey section 3.2.1, Algorithm 7. If no cluster is left for a row, an exact
search starts.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew._base import Capabilities
from clew._validation import NONE, Allowed, above, integer, number
from clew.constraints import Closure, Constraints, require_coloring
from clew.exceptions import DataError
from clew.partitional._family import COMMON_PARAMETERS, SOFT_CONSTRAINTS, KMeansFamily
from clew.partitional._geometry import FloatArray, IntArray, Labels, Problem
from clew.partitional._lloyd import Policy, Solution, lloyd
from clew.partitional._seeding import Start
from clew.partitional._ties import TiedAssignment, component_units, hard_ties
from clew.partitional._units import Units
from clew.solvers.coloring import WORK_LIMIT

# Number of sweeps after a repair, in which blocks move to better clusters. A few sweeps bring most of the gain.
_POLISH_SWEEPS = 5


class COPKMeans(KMeansFamily):
    r"""K-means in which every constraint holds.

    Each block of must-linked rows goes to the nearest cluster that holds none of its cannot-link partners. If no such
    cluster is left for a block, an exact search looks for a labelling that satisfies all constraints. If there is none,
    the error names rows that prove it. Use it when the constraints are certain. When some may be wrong, use `PCKMeans`
    and give them a confidence.

    Parameters
    ----------
    n_clusters : int, default=8
    min_confidence : float, default=0
        Pairs with a lower confidence are ignored. All other pairs are hard.
    work_limit : int
        Largest number of steps of the exact search. It counts work, not seconds.
    epsilon : float or None, default=None
        With a number, every row has a cluster-mate at a Euclidean distance of at most `epsilon` in X
        (`Constraints.near_neighbours`). Rows that k-means leaves without one are must-linked with their nearest
        neighbour, and the fit starts again; if that contradicts the constraints, an exact search decides. A row
        without any other row within `epsilon` is an error. Not for sparse X.
    init, leftover, n_init, max_iter, tol, metric, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_centers_, cluster_labels_, cluster_sizes_, inertia_, objective_history_, n_iter_
        As in `KMeansFamily`.
    objective_ : float
        The same as `inertia_`.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all are hard, entailed ones and the epsilon-constraint included. Minimises, under these constraints,

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2

    Time O(t (n k d + m k)) for t rounds and m pairs, plus the exact search where it is needed (exponential in the worst
    case, bounded by `work_limit`); memory O(n + k d + m) beyond a copy of X.
    Departs from [1]_: must-linked rows move as one block. Blocks with cannot-links are visited in seeded random order.
    A round's labelling is kept only if it lowers J. Otherwise blocks move one at a time from the previous labelling, so
    that J never rises. If no cluster is left for a block, an exact search starts. An empty cluster restarts at the row
    farthest from its centre.

    References
    ----------
    .. [1] K. Wagstaff, C. Cardie, S. Rogers, S. Schroedl (2001). "Constrained k-means clustering with background
       knowledge." ICML. Table 1.

    Examples
    --------
    >>> from clew import COPKMeans
    >>> model = COPKMeans(n_clusters=2, random_state=0)
    >>> model.fit([[0.0], [4.0], [5.0]], constraints={"cannot_link": [(0, 2), (1, 2)]}).labels_
    array([1, 1, 0], dtype=int32)
    """

    _capabilities = replace(
        SOFT_CONSTRAINTS, labels="hard", must_link="hard", cannot_link="hard", monotone=True, out_of_core=True
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        **COMMON_PARAMETERS,
        "min_confidence": number(0, 1),
        "work_limit": integer(0),
        "epsilon": above(0) | NONE,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "neighbourhoods",
        leftover: str = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        metric: str = "euclidean",
        min_confidence: float = 0.0,
        work_limit: int = WORK_LIMIT,
        epsilon: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.leftover = leftover
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.metric = metric
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.min_confidence = min_confidence
        self.work_limit = work_limit
        self.epsilon = epsilon

    @classmethod
    def _examples(cls) -> list[COPKMeans]:
        return [
            cls(n_clusters=3, random_state=0),
            cls(n_clusters=3, init="k-means++", metric="cosine", random_state=0),
        ]

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, out_of_core=self.epsilon is None)

    def _fit(
        self,
        X: Any,
        constraints: Constraints,
        weights: FloatArray,
        rng: np.random.Generator,
        named: IntArray | None = None,
    ) -> npt.NDArray[Any]:
        if self.epsilon is None:
            return super()._fit(X, constraints, weights, rng, named)
        if sparse.issparse(X):
            raise DataError("X is sparse, but epsilon in COPKMeans needs a dense table. Pass X.toarray().")
        near = Constraints.near_neighbours(X, self.epsilon, ids=constraints.ids)
        known = constraints
        while True:
            # Each round starts with the same random numbers, so that rounds differ only by the added must-links.
            labels = super()._fit(X, known, weights, deepcopy(rng))
            clusters = np.unique(labels, return_inverse=True)[1]
            if near.holds(clusters):
                return labels
            known = near.must_links(known, int(self.n_clusters), clusters)

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        return cop_kmeans(
            problem,
            constraints,
            closed,
            start,
            rng,
            max_iter=self.max_iter,
            tol=self.tol,
            work_limit=self.work_limit,
        )


def cop_kmeans(
    problem: Problem,
    constraints: Constraints,
    closed: Closure,
    start: Start,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
    work_limit: int,
) -> Solution:
    """Assign each block to the nearest cluster that its cannot-links allow; `closed` is the closure."""
    policy, units = hard_policy(problem, constraints, closed, len(start.centers), rng, work_limit, _pins(closed, start))
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


def _pins(closed: Closure, start: Start) -> IntArray:
    """The cluster of each component with a known class, -1 for all other components."""
    return np.where(closed.labels >= 0, start.seeds, -1)


def hard_policy(
    problem: Problem,
    constraints: Constraints,
    closed: Closure,
    n_clusters: int,
    rng: np.random.Generator,
    work_limit: int,
    pins: IntArray,
) -> tuple[HardPolicy, Units]:
    """The policy that assigns linked rows without violating a constraint, and these rows as blocks."""
    blocks = (closed.sizes > 1) | closed.tied | (pins >= 0)
    units, unit_of_component = component_units(problem, closed, blocks)
    return HardPolicy(
        constraints, closed, unit_of_component, pins[blocks].astype(np.int32), n_clusters, rng, work_limit
    ), units


class HardPolicy(Policy):
    """Assign each block to the cheapest cluster that contains no block cannot-linked to it."""

    def __init__(
        self,
        constraints: Constraints,
        closed: Closure,
        unit_of_component: IntArray,
        pinned: Labels,
        n_clusters: int,
        rng: np.random.Generator,
        work_limit: int,
    ) -> None:
        self._constraints, self._closed = constraints, closed
        self._components = np.flatnonzero(unit_of_component >= 0)
        self._pinned, self._n_clusters, self._work_limit = pinned, n_clusters, work_limit
        self._state = TiedAssignment(hard_ties(closed, unit_of_component, pinned), n_clusters)
        # Pinned blocks first, because their clusters are given.
        order = rng.permutation(len(pinned))
        self._order = order[np.argsort(pinned[order] < 0, kind="stable")]

    def movable(self, units: Units) -> npt.NDArray[np.bool_]:
        return self._pinned < 0

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        before = labels.copy() if len(labels) and labels[0] >= 0 else None
        labels[:] = -1
        self._state.clear()
        score = self._state.sweep(problem, units, centers, self._order, labels)
        if before is None:
            if score == np.inf:
                labels[:] = self._repaired(problem, units, centers)
                score = self._polished(problem, units, centers, labels)
        elif score > units.cost(problem, centers, before):
            labels[:] = before
            self._state.load(labels)
            score = self._state.sweep(problem, units, centers, self._order, labels)
        return score, 0.0

    def _repaired(self, problem: Problem, units: Units, centers: FloatArray) -> Labels:
        """Find a labelling that satisfies all constraints and prefers near centres; raise an error if there is none."""
        preference = np.empty((len(units), self._n_clusters), dtype=np.int32)
        for chosen, costs in units.costs(problem, centers, None):
            preference[chosen] = np.argsort(costs, axis=1, kind="stable")
        return require_coloring(
            self._constraints, self._closed, self._components, self._n_clusters,
            fixed=self._pinned, preference=preference, work_limit=self._work_limit,
        )  # fmt: skip

    def _polished(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> float:
        self._state.load(labels)
        score = np.inf
        for _ in range(_POLISH_SWEEPS):
            last, score = score, self._state.sweep(problem, units, centers, self._order, labels)
            if score == last:
                break
        return score
