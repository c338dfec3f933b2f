"""K-means in which every must-link and every cannot-link holds.

Wagstaff et al. 2001 (`wagstaff2001`); survey section 3.2.1, Algorithm 7. Dead ends are repaired, not reported.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from clew._base import Capabilities
from clew._validation import Allowed, integer, number
from clew.constraints import Closure, Constraints, proof_sentence, unknown_sentence
from clew.exceptions import InfeasibleConstraintsError, WorkLimitError
from clew.partitional._family import COMMON_PARAMETERS, KMeansFamily
from clew.partitional._lloyd import FloatArray, IntArray, Labels, Policy, Problem, Solution, Units, lloyd
from clew.partitional._seeding import Start
from clew.partitional._ties import TiedAssignment, component_units, hard_ties
from clew.solvers.coloring import WORK_LIMIT, color

# After a repair, rows move to better clusters that are open to them; few sweeps bring most of the gain.
_POLISH_SWEEPS = 5


class COPKMeans(KMeansFamily):
    r"""K-means in which every constraint holds.

    Each block of must-linked rows goes to the nearest cluster that holds none of its cannot-link partners. Where that
    leads into a dead end, a search looks for a labelling that satisfies everything; if there is none, the error names
    the rows that prove it. Use it when the knowledge is certain; when some of it may be wrong, see `PCKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    init : {"neighbourhoods", "k-means++"} or array of shape (n_clusters, n_features), default="neighbourhoods"
        Where centres start. Neighbourhoods are the known classes and the components of must-linked rows, the largest
        first; then a row that is cannot-linked to all of them, if there is one; the leftover as `leftover` says.
    leftover : {"k-means++", "mean"}, default="k-means++"
        How centres without a neighbourhood start: by k-means++, or near the global mean as in the paper.
    n_init : int or "auto", default="auto"
        Number of starts; the result with the lowest objective is kept. "auto" is ten for up to 10,000 rows, fewer
        beyond, one from 100,000 on. After neighbourhoods, further starts keep the known classes only and draw the other
        centres by k-means++.
    max_iter : int, default=300
        Most rounds of one start.
    tol : float, default=1e-4
        Stop when the centres move less than this, squared, in units of the mean variance of the columns.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Squared distance to the centre, or one minus the cosine (spherical k-means).
    random_state : int, Generator, RandomState or None
    n_jobs : int or None
        Threads (None: one, -1: all). Results do not depend on it.
    min_confidence : float, default=0
        Pairs that are less sure are left out; the others are hard, whatever their confidence.
    work_limit : int
        Most steps of the search for a labelling that satisfies everything; it counts work, not seconds.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label that stands for each row of `cluster_centers_`.
    cluster_sizes_ : ndarray of shape (n_clusters,)
    inertia_ : float
        Weighted sum of the rows' squared distances (or one minus cosine) to their centres.
    objective_ : float
        The same as `inertia_`.
    objective_history_ : ndarray
        The objective after each assignment; it never rises.
    n_iter_ : int
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all hard, entailed ones included. Minimises, under these,

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2

    Time O(t (n k d + m k)) for t rounds and m pairs, plus the search where a dead end is met (exponential in the worst
    case, bounded by `work_limit`); memory O(n + k d + m) beyond a copy of X.
    Departs from [1]_: must-linked rows move as one block; blocks with cannot-links are visited in seeded random order;
    a round's labelling is kept only if it lowers J, else blocks move one at a time from the labelling before, so J
    never rises; dead ends are repaired; an empty cluster restarts at the row farthest from its centre.

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

    _capabilities = Capabilities(
        labels="hard",
        must_link="hard",
        cannot_link="hard",
        sample_weight=True,
        sparse=True,
        predicts=True,
        monotone=True,
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        **COMMON_PARAMETERS,
        "min_confidence": number(0, 1),
        "work_limit": integer(0),
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

    @classmethod
    def _examples(cls) -> list[COPKMeans]:
        return [
            cls(n_clusters=3, random_state=0),
            cls(n_clusters=3, init="k-means++", metric="cosine", random_state=0),
        ]

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
    """Blocks go to the nearest cluster that is open to them; `closed` is the closure of `constraints`."""
    policy, units = hard_policy(problem, constraints, closed, len(start.centers), rng, work_limit, _pins(closed, start))
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


def _pins(closed: Closure, start: Start) -> IntArray:
    """Known classes stay in their clusters; other seeds are free to move."""
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
    """The blocks that constraints tie, and the policy that assigns them without breaking any."""
    blocks = (closed.sizes > 1) | closed.tied | (pins >= 0)
    units, unit_of_component = component_units(problem, closed, blocks)
    return HardPolicy(
        constraints, closed, unit_of_component, pins[blocks].astype(np.int32), n_clusters, rng, work_limit
    ), units


class HardPolicy(Policy):
    """Every block goes to the cheapest cluster that holds nobody it must differ from."""

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
        # Pinned blocks first: where they are is known, whoever comes later.
        order = rng.permutation(len(pinned))
        self._order = order[np.argsort(pinned[order] < 0, kind="stable")]

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        before = labels.copy() if len(labels) and labels[0] >= 0 else None
        labels[:] = -1
        self._state.load(labels)
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
        """A labelling that satisfies everything, near the centres where there is a choice; or the reason why not."""
        preference = np.empty((len(units), self._n_clusters), dtype=np.int32)
        for chosen, costs in units.costs(problem, centers, np.arange(len(units))):
            preference[chosen] = np.argsort(costs, axis=1, kind="stable")
        graph = self._closed.graph.part(self._components)
        found = color(graph, self._n_clusters, fixed=self._pinned, preference=preference, work_limit=self._work_limit)
        if found.colors is not None:
            return found.colors
        if found.proof is None:
            raise WorkLimitError(unknown_sentence(self._n_clusters, self._work_limit))
        found = found._replace(proof=self._components[found.proof])
        message = proof_sentence(self._constraints, self._closed, found, self._n_clusters)
        raise InfeasibleConstraintsError(message, np.sort(self._closed.first_row[found.proof]))

    def _polished(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> float:
        self._state.load(labels)
        score = np.inf
        for _ in range(_POLISH_SWEEPS):
            last, score = score, self._state.sweep(problem, units, centers, self._order, labels)
            if score == last:
                break
        return score
