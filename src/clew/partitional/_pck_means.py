"""K-means in which broken pairs have a price.

Basu, Banerjee and Mooney 2004 (`basu2004`), Eq. 2.1 and Figure 1; survey section 3.2.1, Algorithm 8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from clew._base import Capabilities
from clew._persistence import Learned
from clew._validation import BOOLEAN, Allowed, integer, number, words
from clew.constraints import Closure, Constraints
from clew.datasets._stored import is_remote
from clew.exceptions import ConstraintError, DataTypeError, InfeasibleConstraintsError, ParameterError, WorkLimitError
from clew.partitional._cop_kmeans import hard_policy
from clew.partitional._family import COMMON_PARAMETERS, SOFT_CONSTRAINTS, KMeansFamily
from clew.partitional._geometry import FloatArray, IntArray, Labels, Problem
from clew.partitional._lloyd import Policy, Solution, lloyd
from clew.partitional._reduction import cluster_masses
from clew.partitional._seeding import Start, initial_centers
from clew.partitional._sized_ties import SizedPricedPolicy
from clew.partitional._sizes import LIMIT, SizeLimits, matched_start, read_limits
from clew.partitional._stream import know_anchors, with_anchors
from clew.partitional._ties import TiedAssignment, component_units, priced_ties
from clew.partitional._units import Units
from clew.solvers.coloring import compress

# Largest number of steps of the search for an initial labelling without violations. If it fails, the greedy labelling
# is used.
_START_WORK = 20_000_000


class PCKMeans(KMeansFamily):
    r"""K-means in which every broken pair has a price.

    A row goes to its nearest centre unless the pairs this breaks cost more than a farther centre. Use it when
    constraints may be broken. When all must hold, see `COPKMeans`. Give answers that may be wrong a confidence below 1,
    or set ``entailed=False``. Otherwise the pairs that many certain answers entail outweigh the data.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        "auto", for Euclidean distances, tries increasing numbers and keeps the one with the lowest criterion below.
    penalty : float or "auto", default="auto"
        Price of one broken pair, times its confidence, in the unit of `inertia_`. "auto" is the mean cost of a row if
        all rows share one centre. With 0, the method is `SeededKMeans`. With a very high price, every pair holds if
        possible.
    entailed : bool, default=True
        Whether pairs that follow from certain ones (confidence 1) are priced like given ones. Set it to
        False if answers may be wrong and have no confidence: a wrong must-link then costs one price, instead of one
        for every pair that it entails.
    size_min : number, list of one per cluster, or None
        Smallest number of rows of a cluster. A list is in the order of `cluster_labels_`, and None means no limit.
    size_max : number, list of one per cluster, or None
        Largest number of rows of a cluster, in the same form.
    init, leftover, n_init, max_iter, tol, metric, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_centers_, cluster_labels_, cluster_sizes_, inertia_, objective_history_, n_iter_,
    violated_must_link_, violated_cannot_link_
        As in `KMeansFamily`.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Total weight of the rows of each cluster, over all batches.
    n_clusters_ : int
        The number of clusters, given or found.
    penalty_ : float
        The price used.
    objective_ : float
        J below: `inertia_` plus the price of broken pairs.

    Notes
    -----
    Constraints: all soft; limits on the sizes are hard. Minimises

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2
              + \lambda \Big( \sum_{ML} w_{ij} [z_i \neq z_j] + \sum_{CL} w_{ij} [z_i = z_j] \Big)

    over given and, with `entailed`, entailed pairs, each once; w is the confidence. This is twice Eq. 2.1 of [1]_, so
    the paper's weight of 1 on Iris is ``penalty=2``. For ``metric="cosine"`` a row costs one minus its cosine, which is
    Eq. 2.1 itself, so the paper's 0.001 for text is ``penalty=0.001``. Entailed pairs are priced by counting rows per
    component and cluster, and are never expanded. A pair with a confidence below 1 is priced on its own and entails
    nothing. A cannot-link within a component contradicts it and is also priced on its own (for groups and classes: one
    pair per row, as in `violated_cannot_link_`). If two group columns separate the same rows, both are priced.

    ``n_clusters="auto"`` minimises, over k from the number of known classes up to the root of n, the Bayesian criterion
    of Gaussians with one unknown variance, prices included: :math:`n d \log (J / n d) - 2 \sum_h n_h \log (n_h / n) + k
    (d + 1) \log n`. It stops after five numbers without a lower value. Here n is the sum of the weights, or the number
    of rows if that is larger. For cosines there is no such likelihood, so a number must be given.

    J never rises; the result is a local optimum in which no row, and no component that is together, can move to a
    cheaper cluster. With limits on the sizes, rows without pairs are assigned at the lowest cost by the flow of
    `BalancedKMeans`. A row in pairs moves if that lowers J, including the cost of rows that make room for it.
    Time O(t (n k d + m k)) for t rounds and m pairs; memory O(n + k d + m) beyond a copy of X.
    Departs from [1]_: after the rows, components that are together may move as one block. If the first greedy pass
    breaks pairs, a labelling that breaks none is sought as well, and the cheaper one is used. Clusters without
    neighbourhoods start by k-means++ unless `leftover` says otherwise. An empty cluster restarts at the row farthest
    from its centre.

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney (2004). "Active semi-supervision for pairwise constrained clustering."
       SDM. Eq. (2.1), Figure 1.

    Examples
    --------
    >>> from clew import PCKMeans
    >>> model = PCKMeans(n_clusters=2, random_state=0)
    >>> model.fit([[0.0], [1.0], [8.0], [9.0]], constraints={"cannot_link": [(0, 3)]}).labels_
    array([0, 0, 1, 1], dtype=int32)
    """

    _capabilities = replace(SOFT_CONSTRAINTS, sizes="hard", streams=True, monotone=True, out_of_core=True)
    cluster_weights_: FloatArray
    _parameters: ClassVar[dict[str, Allowed]] = {
        **COMMON_PARAMETERS,
        "n_clusters": words("auto") | integer(1),
        "penalty": words("auto") | number(0),
        "entailed": BOOLEAN,
        "size_min": LIMIT,
        "size_max": LIMIT,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **KMeansFamily._learned_attributes,
        "n_clusters_": Learned("integer", low=1, counts="clusters"),
        "penalty_": Learned("real", low=0),
        "cluster_weights_": Learned("real", (("clusters",),), low=0),
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
        size_min: Any = None,
        size_max: Any = None,
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
        self.size_min = size_min
        self.size_max = size_max

    @classmethod
    def _examples(cls) -> list[PCKMeans]:
        return [
            cls(n_clusters=3, random_state=0),
            cls(n_clusters=3, entailed=False, metric="cosine", random_state=0),
        ]

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, out_of_core=self.size_min is None and self.size_max is None)

    def _keep(self, found: Solution) -> None:
        self.cluster_weights_ = cluster_masses(found.problem, found.labels, len(found.centers))

    def _restarts_anew(self) -> bool:
        return self.penalty != 0

    def _renumbers(self) -> bool:
        limits = self._limits()
        return super()._renumbers() and (limits is None or not limits.differ)

    def _limits(self) -> SizeLimits | None:
        if self.size_min is None and self.size_max is None:
            return None
        if isinstance(self.n_clusters, str):
            raise ParameterError(
                f"n_clusters='auto' in {type(self).__name__} with size_min or size_max: limits need a number of "
                "clusters. Give a number."
            )
        return read_limits(self, self.n_clusters, self.size_min, self.size_max)

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        limits = self._limits()
        if limits is not None and isinstance(self.init, str):
            start = matched_start(problem, closed, start, limits)
        self.penalty_ = problem.mean_cost if isinstance(self.penalty, str) else float(self.penalty)
        return pck_means(
            problem,
            constraints,
            start,
            rng,
            self.penalty_,
            entailed=self.entailed,
            max_iter=self.max_iter,
            tol=self.tol,
            limits=limits,
        )

    def partial_fit(self, X: Any, y: Any = None, *, constraints: Any = None, sample_weight: Any = None) -> Self:
        """Cluster another batch of rows; the clusters keep their numbers and the weight of their earlier rows.

        The first batch is a `fit`. In a later batch, each cluster has one more row: its centre, with the weight of all
        its earlier rows. So a centre stays the mean of all its rows. Constraints are about the rows of the batch. A
        label ties a row to the cluster of that number, and so to rows of earlier batches. Earlier rows keep their
        clusters. `labels_`, `cluster_sizes_` and the violated pairs are those of this batch. `inertia_` and
        `objective_` count the earlier rows by how far the batch moved their centres.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
        constraints : Constraints, labels, dict, frame, sparse matrix, path or None
            About these rows; labels name clusters in `cluster_labels_`.
        sample_weight : array-like of shape (n_samples,), optional
        """
        if self._limits() is not None:
            raise ParameterError(
                f"partial_fit of {type(self).__name__} with size_min or size_max: limits hold for the rows of one "
                "fit. Call fit, or set both to None."
            )
        if isinstance(X, np.memmap):
            X = np.asarray(X)
        if is_remote(X):
            raise DataTypeError(
                f"partial_fit takes a batch of rows in memory, and X is a {type(X).__name__}. Call fit."
            )
        if not hasattr(self, "cluster_centers_"):
            return self.fit(X, y, constraints=constraints, sample_weight=sample_weight)
        with self._whole_or_not_at_all():
            batch = self._checked(X, y, constraints, sample_weight, reset=False)
            known = self._by_cluster_number(batch.constraints)
            self._set_labels(known, self._fit_batch(*batch._replace(constraints=known)))
        return self

    def _fit_batch(
        self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Cluster the checked rows of a later batch; set learned attributes and return the labels."""
        n_rows, clusters = X.shape[0], self.cluster_labels_
        rows, weights = with_anchors(X, weights, self.cluster_centers_, self.cluster_weights_)
        problem, known = self._prepare(rows, weights), know_anchors(constraints, clusters)
        start = initial_centers(problem, known.closure(), clusters, self.cluster_centers_, self.leftover, rng)
        found = pck_means(
            problem, known, start, rng, self.penalty_,
            entailed=self.entailed, max_iter=self.max_iter, tol=self.tol, n_anchors=len(clusters),
        )  # fmt: skip
        self._set_solution(found, n_rows)
        added = np.bincount(found.labels[:n_rows], weights[:n_rows], minlength=len(clusters))
        self.cluster_weights_ = self.cluster_weights_ + added
        return self._named(found.labels[:n_rows])

    def _by_cluster_number(self, constraints: Constraints) -> Constraints:
        """Constraints of a later batch, with class names replaced by the cluster numbers of this estimator."""
        if constraints.classes is None:
            return constraints
        number_of = {name: number for number, name in enumerate(getattr(self, "classes_", np.empty(0)).tolist())}
        unknown = [name for name in constraints.classes.tolist() if name not in number_of]
        if unknown:
            raise ConstraintError(
                f"labels name the class {unknown[0]!r}, which the first batch lacks. Name every class in the first."
            )
        numbers = np.array([*(number_of[name] for name in constraints.classes.tolist()), -1])
        return constraints._replace(labels=numbers[constraints.labels], classes=None)


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
    limits: SizeLimits | None = None,
) -> Solution:
    """Move rows in constraints one at a time, in seeded random order, to their cheapest cluster.

    The last `n_anchors` rows, one for each cluster in order, stay in their clusters. `limits` and anchors exclude each
    other.
    """
    if limits is not None:
        rows, ties = priced_ties(constraints, penalty, entailed=entailed)
        sized = SizedPricedPolicy(problem, constraints, rows, ties, limits, start.seeds, rng)
        every = np.arange(problem.n_rows)
        units = Units.contract(problem, every, every, problem.n_rows)
        return lloyd(problem, units, sized, start.centers, max_iter=max_iter, tol=tol)
    if penalty == 0:
        return lloyd(problem, None, None, start.centers, max_iter=max_iter, tol=tol)
    rows, ties = priced_ties(constraints, penalty, entailed=entailed)
    anchor = rows - (problem.n_rows - n_anchors)
    ties = replace(ties, pinned=np.where(anchor >= 0, anchor, -1).astype(np.int32))
    units = Units.contract(problem, rows, np.arange(len(rows)), len(rows))
    policy = _PricedPolicy(problem, units, TiedAssignment(ties, len(start.centers)), constraints, start.seeds, rng)
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


class _PricedPolicy(Policy):
    """Assign each row to the cluster with the lowest sum of its distance and the prices of the pairs it breaks.

    After the rows, components that are together may move as a block: at a high price, no single row would leave first.
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

    def resume(self, labels: Labels) -> None:
        self._state.load(labels)

    def movable(self, units: Units) -> npt.NDArray[np.bool_]:
        return self._state.pinned < 0

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
        """Use a labelling that breaks no certain pair instead, if one is found and is cheaper."""
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
        by_row = np.full(self._constraints.n_rows, -1, dtype=np.int32)
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
