"""K-means in which broken pairs have a price.

Basu, Banerjee and Mooney 2004 (`basu2004`), Eq. 2.1 and Figure 1; survey section 3.2.1, Algorithm 8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from clew._base import Capabilities
from clew._validation import BOOLEAN, Allowed, as_generator, check_parameters, check_weights, integer, number, words
from clew.constraints import Closure, Constraints
from clew.exceptions import InfeasibleConstraintsError, WorkLimitError
from clew.partitional._cop_kmeans import hard_policy
from clew.partitional._family import COMMON_PARAMETERS, KMeansFamily
from clew.partitional._lloyd import FloatArray, IntArray, Labels, Policy, Problem, Solution, Units, lloyd, row_costs
from clew.partitional._seeding import Start, initial_centers
from clew.partitional._stream import know_anchors, with_anchors
from clew.partitional._ties import TiedAssignment, component_units, priced_ties
from clew.solvers.coloring import compress

# Steps spent on a labelling without violations to start from; without one the greedy start is used.
_START_WORK = 20_000_000


class PCKMeans(KMeansFamily):
    r"""K-means in which every broken pair has a price.

    A row goes to its nearest centre unless the pairs this breaks cost more than the detour. Use it when some
    constraints may be wrong; when all must hold, see `COPKMeans`.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        "auto", for Euclidean distances, tries growing numbers and keeps the one with the lowest criterion below.
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
    penalty : float or "auto", default="auto"
        Price of one broken pair, times its confidence, in the unit of `inertia_`. "auto" is the mean cost of a row with
        the global centre as its own. 0 is `SeededKMeans`; a huge price makes every pair hold that can.
    entailed : bool, default=True
        Whether pairs that follow from certain ones (confidence 1) are priced like given ones. False for noisy
        knowledge: one wrong must-link then costs one price, not that of every pair it entails.

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
    cluster_weights_ : ndarray of shape (n_clusters,)
        Weight of the rows each cluster has seen, over all batches.
    n_clusters_ : int
        The number of clusters, given or found.
    penalty_ : float
        The price used.
    objective_ : float
        J below: `inertia_` plus the price of what is broken.
    objective_history_ : ndarray
        J after each assignment; it never rises.
    n_iter_ : int
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)

    Notes
    -----
    Constraints: all soft. Minimises

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2
              + \lambda \Big( \sum_{ML} w_{ij} [z_i \neq z_j] + \sum_{CL} w_{ij} [z_i = z_j] \Big)

    over given and, with `entailed`, entailed pairs, each once; w is the confidence. This is twice Eq. 2.1 of [1]_, so
    the paper's weight of 1 on Iris is ``penalty=2``; for ``metric="cosine"`` a row costs one minus its cosine, which is
    Eq. 2.1 itself, and the paper's 0.001 for text is ``penalty=0.001``. Entailed pairs are priced by counting rows per
    component and cluster, never expanded. A pair that is not certain is priced alone and entails nothing; a given
    cannot-link inside a component contradicts it and is priced alone too (a group or class that does: one pair per row,
    as `violated_cannot_link_` lists it). Two group columns that keep the same rows apart are two statements.

    ``n_clusters="auto"`` minimises, over k from the number of known classes up to the root of n, the Bayesian criterion
    of Gaussians of one unknown spread, prices included:
    :math:`n d \log (J / n d) - 2 \sum_h n_h \log (n_h / n) + k (d + 1) \log n`; it stops after five numbers without a
    lower one. Here n is what the rows weigh; weights that sum to less than the number of rows are taken as shares.
    For cosines there is no such likelihood, and a number must be given.

    J never rises; the result is a local optimum in which no row, and no component that is together, can move to a
    cheaper cluster.
    Time O(t (n k d + m k)) for t rounds and m pairs; memory O(n + k d + m) beyond a copy of X.
    Departs from [1]_: after the rows, components that are together may move as one block; if the first greedy pass
    breaks pairs, a labelling that breaks none is sought as well and the cheaper one starts; the default start of
    clusters without neighbourhoods is k-means++; an empty cluster restarts at the row farthest from its centre.

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney (2004). "Active semi-supervision for pairwise constrained clustering."
       SDM. Eq. (2.1), Figure 1.

    Examples
    --------
    >>> from clew import PCKMeans
    >>> model = PCKMeans(n_clusters=2, random_state=0)
    >>> model.fit([[0.0], [1.0], [8.0], [9.0]], constraints={"cannot_link": [(0, 3)]}).labels_
    array([1, 1, 0, 0], dtype=int32)
    """

    _capabilities = Capabilities(
        labels="soft",
        must_link="soft",
        cannot_link="soft",
        sample_weight=True,
        sparse=True,
        predicts=True,
        monotone=True,
    )
    cluster_weights_: FloatArray
    _parameters: ClassVar[dict[str, Allowed]] = {
        **COMMON_PARAMETERS,
        "n_clusters": words("auto") | integer(1),
        "penalty": words("auto") | number(0),
        "entailed": BOOLEAN,
    }

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        init: Any = "neighbourhoods",
        leftover: str = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        metric: str = "euclidean",
        penalty: float | str = "auto",
        entailed: bool = True,
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
        self.penalty = penalty
        self.entailed = entailed

    @classmethod
    def _examples(cls) -> list[PCKMeans]:
        return [
            cls(n_clusters=3, random_state=0),
            cls(n_clusters=3, entailed=False, metric="cosine", random_state=0),
        ]

    def _keep(self, found: Solution) -> None:
        counts = np.bincount(found.labels, weights=found.problem.row_weights, minlength=len(found.centers))
        self.cluster_weights_ = counts.astype(np.float64)

    def _restarts_anew(self) -> bool:
        return self.penalty != 0

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        self.penalty_ = mean_cost(problem) if isinstance(self.penalty, str) else float(self.penalty)
        return pck_means(
            problem,
            constraints,
            start,
            rng,
            self.penalty_,
            entailed=self.entailed,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def partial_fit(self, X: Any, y: Any = None, *, constraints: Any = None, sample_weight: Any = None) -> Self:
        """Go on with another batch of rows: the clusters keep their numbers, and the weight of what they have seen.

        The first batch is a `fit`. In later ones the rows of earlier batches stand, for each cluster, as one row at its
        centre with their weight, so that a centre stays the mean of all its rows. Constraints are about the rows of the
        batch; a label ties a row to the cluster of that number, and so to rows of earlier batches. `labels_` and what
        is violated are of this batch; earlier rows are not looked at again.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
        constraints : Constraints, labels, dict, frame, sparse matrix, path or None
            About these rows; labels name clusters in `cluster_labels_`.
        sample_weight : array-like of shape (n_samples,), optional
        """
        if not hasattr(self, "cluster_centers_"):
            return self.fit(X, constraints=constraints, sample_weight=sample_weight)
        before = dict(vars(self))
        try:
            self._go_on(X, constraints, sample_weight)
        except BaseException:  # a failed batch leaves the estimator as it was
            self.__dict__ = before
            raise
        return self

    def _go_on(self, X: Any, constraints: Any, sample_weight: Any) -> None:
        check_parameters(self, self._parameters)
        X = self._check_new_rows(X)
        n_rows, clusters = X.shape[0], self.cluster_labels_
        known = self._usable(Constraints.of(constraints, n_samples=n_rows))
        rows, weights = with_anchors(
            X, check_weights(sample_weight, n_rows), self.cluster_centers_, self.cluster_weights_
        )
        problem, all_known = self._prepare(rows, weights), know_anchors(known, clusters)
        rng = as_generator(self.random_state)
        start = initial_centers(problem, all_known.closure(), clusters, self.cluster_centers_, self.leftover, rng)
        found = pck_means(
            problem, all_known, start, rng, self.penalty_,
            entailed=self.entailed, max_iter=self.max_iter, tol=self.tol, n_anchors=len(clusters),
        )  # fmt: skip
        labels = found.labels[:n_rows]
        costs = row_costs(problem, found.centers, found.labels)[:n_rows]
        self.cluster_centers_ = problem.restored(found.centers)
        self.cluster_weights_ = self.cluster_weights_ + np.bincount(labels, weights[:n_rows], minlength=len(clusters))
        self.cluster_sizes_ = np.bincount(labels, minlength=len(clusters))
        self.inertia_ = float(costs @ weights[:n_rows])
        self.objective_ = self.inertia_ + found.price
        self.objective_history_, self.n_iter_ = np.array(found.history), found.n_iter
        self.labels_ = self._named(labels)
        self.violated_must_link_, self.violated_cannot_link_ = known.violations(self.labels_)


def mean_cost(problem: Problem) -> float:
    """What a row costs on average when the global centre is its own."""
    weights = problem.row_weights / problem.row_weights.sum()
    mean = np.asarray(problem.X.T @ weights, dtype=np.float64).ravel()
    if problem.metric == "cosine":
        return max(1.0 - float(np.linalg.norm(mean)), 0.0)
    return max(problem.constant / float(problem.row_weights.sum()) - float(mean @ mean), 0.0)


def pck_means(
    problem: Problem,
    constraints: Constraints,
    start: Start,
    rng: np.random.Generator,
    penalty: float,
    *,
    entailed: bool,
    max_iter: int,
    tol: float,
    n_anchors: int = 0,
) -> Solution:
    """Rows that constraints name move one at a time, in seeded random order, to where they cost least.

    The last `n_anchors` rows, one for each cluster in order, stay in their clusters.
    """
    if penalty == 0:
        return lloyd(problem, None, None, start.centers, max_iter=max_iter, tol=tol)
    rows, ties = priced_ties(constraints, penalty, entailed=entailed)
    anchor = rows - (problem.n_rows - n_anchors)
    ties = replace(ties, pinned=np.where(anchor >= 0, anchor, -1).astype(np.int32))
    units = Units.contract(problem, rows, np.arange(len(rows)), len(rows))
    policy = _PricedPolicy(problem, units, TiedAssignment(ties, len(start.centers)), constraints, start.seeds, rng)
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


class _PricedPolicy(Policy):
    """Each row goes to the cluster where its distance plus the price of what it breaks is lowest.

    After the rows, components that are together may move as a block: under a high price no row would go first.
    """

    def __init__(
        self,
        problem: Problem,
        units: Units,
        state: TiedAssignment,
        constraints: Constraints,
        seeds: IntArray,
        rng: np.random.Generator,
    ) -> None:
        self._state, self._constraints, self._seeds, self._rng = state, constraints, seeds, rng
        closed = constraints.closure()
        anchored = np.zeros(closed.n_components, dtype=bool)
        anchored[closed.component_of[units.rows[state.pinned >= 0]]] = True
        self._blocks, _ = component_units(problem, closed, (closed.sizes > 1) & ~anchored)
        places = np.searchsorted(units.rows, self._blocks.rows)
        self._members = compress(self._blocks.unit_of, places, len(self._blocks))

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        first = len(labels) > 0 and labels[0] < 0
        score = self._state.sweep(problem, units, centers, self._rng.permutation(len(units)), labels)
        order = self._rng.permutation(len(self._blocks))
        score += self._state.move_blocks(problem, self._blocks, self._members, centers, order, labels)
        price = self._state.price(labels)
        if first and price > 0:
            score, price = self._better_start(problem, units, centers, labels, score, price)
        return score, price

    def _better_start(
        self, problem: Problem, units: Units, centers: FloatArray, labels: Labels, score: float, price: float
    ) -> tuple[float, float]:
        """Take a labelling that breaks no certain pair instead, if there is one and it is cheaper."""
        certain = self._constraints.at_least(1.0)
        closed = certain.closure()
        if closed.contradictory:
            return score, price
        seeds = self._seeds[self._constraints.closure().component_of[closed.first_row]]
        pins = np.where(closed.labels >= 0, seeds, -1)
        policy, blocks = hard_policy(problem, certain, closed, len(centers), self._rng, _START_WORK, pins)
        block_labels = np.full(len(blocks), -1, dtype=np.int32)
        try:
            policy.assign(problem, blocks, centers, block_labels)
        except (InfeasibleConstraintsError, WorkLimitError):
            return score, price
        by_row = np.full(problem.n_rows, -1, dtype=np.int32)
        by_row[blocks.rows] = block_labels[blocks.unit_of]
        candidate = np.where(by_row[units.rows] >= 0, by_row[units.rows], labels)
        self._state.load(candidate)
        candidate_score, candidate_price = (
            units.cost(problem, centers, candidate),
            self._state.price(candidate),
        )
        if candidate_score + candidate_price < score + price:
            labels[:] = candidate
            return candidate_score, candidate_price
        self._state.load(labels)
        return score, price
