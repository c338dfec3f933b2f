"""K-means in which a broken pair costs the distance between centres, and pulls them together.

Davidson and Ravi 2005 (`davidson2005`), as in section 3.2.1 of the survey (`truong2013`), Eq. 4 to 8.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from clew._base import Capabilities
from clew.constraints import Closure, Constraints
from clew.partitional._family import KMeansFamily
from clew.partitional._lloyd import FloatArray, IntArray, Labels, Policy, Problem, Solution, Units, lloyd
from clew.partitional._pairs import PairedAssignment, Pairs
from clew.partitional._seeding import Start


class CVQE(KMeansFamily):
    r"""K-means in which a broken pair costs the distance between two centres.

    The two rows of a pair are placed together, over all pairs of clusters. A broken must-link costs the squared
    distance of the two centres and pulls them towards each other; a broken cannot-link costs the squared distance from
    its centre to the nearest other one and pulls the centre there. No price has to be chosen. `LCVQE` prices pairs by
    their own rows and tries fewer clusters; to choose the price yourself, see `PCKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    init : {"neighbourhoods", "k-means++"} or array of shape (n_clusters, n_features), default="neighbourhoods"
        Where centres start. Neighbourhoods are the known classes and the components of must-linked rows, the largest
        first; then a row that is cannot-linked to all of them, if there is one; the leftover as `leftover` says.
    leftover : {"k-means++", "mean"}, default="k-means++"
        How centres without a neighbourhood start: by k-means++, or near the global mean.
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

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the rows and of the centres that broken pairs pull towards.
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label that stands for each row of `cluster_centers_`.
    cluster_sizes_ : ndarray of shape (n_clusters,)
    inertia_ : float
        Weighted sum of the rows' squared distances (or one minus cosine) to their centres.
    objective_ : float
        J below.
    objective_history_ : ndarray
        J after each assignment. It may rise: when it has not reached a new low for twenty rounds, the lowest is
        returned.
    n_iter_ : int
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)

    Notes
    -----
    Constraints: all soft. Looks for a low

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2
              + \sum_{ML} w_{ij} [z_i \neq z_j] \lVert c_{z_i} - c_{z_j} \rVert^2
              + \sum_{CL} w_{ij} [z_i = z_j] \lVert c_{z_i} - c_{h(z_i)} \rVert^2

    where h(z) is the centre nearest to centre z and w the confidence; twice the objective of [2]_, so that `inertia_`
    has its usual meaning. Only given pairs are priced, each once at its highest confidence; groups and classes stand
    for all their pairs, which are written out, up to two million. With one cluster a broken cannot-link costs nothing.

    Time O(t (n k d + m k²)) for t rounds and m pairs; memory O(n + k d + m + r k) beyond a copy of X, for r rows that
    pairs name.
    Departs from [1]_: pairs are visited in seeded random order, and a row that several pairs name counts what all of
    them cost; both centres of a broken must-link move; an empty cluster restarts at the row farthest from its centre.

    References
    ----------
    .. [1] I. Davidson, S. S. Ravi (2005). "Clustering with constraints: feasibility issues and the k-means algorithm."
       SDM.
    .. [2] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms." Eq. (4) to (8).

    Examples
    --------
    >>> from clew import CVQE
    >>> model = CVQE(n_clusters=2, random_state=0)
    >>> model.fit([[0.0], [1.0], [5.0], [8.0], [9.0]], constraints={"must_link": [(1, 2)]}).labels_
    array([0, 0, 0, 1, 1], dtype=int32)
    """

    _capabilities = Capabilities(
        labels="soft",
        must_link="soft",
        cannot_link="soft",
        sample_weight=True,
        sparse=True,
        predicts=True,
    )

    @classmethod
    def _examples(cls) -> list[CVQE]:
        return [cls(n_clusters=3, random_state=0), cls(n_clusters=3, metric="cosine", random_state=0)]

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        return cvqe(problem, constraints, start, rng, max_iter=self.max_iter, tol=self.tol)


def cvqe(
    problem: Problem,
    constraints: Constraints,
    start: Start,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
) -> Solution:
    """Pairs go, in seeded random order, to the two clusters where they cost least; broken ones pull the centres."""
    pairs = Pairs.of(constraints)
    if not len(pairs):
        return lloyd(problem, None, None, start.centers, max_iter=max_iter, tol=tol)
    units = Units.contract(problem, pairs.rows, np.arange(len(pairs.rows)), len(pairs.rows))
    policy = _PricedByCenters(pairs, PairedAssignment(pairs, units, problem, len(start.centers)), rng)
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


class _PricedByCenters(Policy):
    """Eq. 6 and 7: the clusters of a pair are those where its distances and prices are lowest."""

    monotone = False

    def __init__(self, pairs: Pairs, state: PairedAssignment, rng: np.random.Generator) -> None:
        self._pairs, self._state, self._rng = pairs, state, rng

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        prices, _ = between_centers(centers, problem.metric)
        self._state.measure(problem, centers)
        self._state.sweep(self._rng.permutation(len(self._pairs)), labels, prices)
        must, cannot = self._pairs.broken(labels)
        broken = np.concatenate([must, cannot])
        first, second = labels[self._pairs.ends[broken]].T
        return self._state.score(labels), float(self._pairs.confidence[broken] @ prices[first, second])

    def pull(self, units: Units, centers: FloatArray, labels: Labels, sums: FloatArray, masses: FloatArray) -> None:
        """Eq. 8: a centre is the mean of its rows and of the centres that its broken pairs name."""
        must, cannot = self._pairs.broken(labels)
        pull = np.zeros((len(centers), len(centers)))
        ends = labels[self._pairs.ends]
        for here, there in ((0, 1), (1, 0)):
            np.add.at(pull, (ends[must, here], ends[must, there]), self._pairs.confidence[must])
        if len(centers) > 1:
            towards = between_centers(centers, "euclidean")[1]
            own = ends[cannot, 0]
            np.add.at(pull, (own, towards[own]), self._pairs.confidence[cannot])
        sums += pull @ centers
        masses += pull.sum(axis=1)


def between_centers(centers: FloatArray, metric: str) -> tuple[FloatArray, IntArray]:
    """Costs between centres, with that to the nearest other one on the diagonal; and which that is.

    For centres of length one, squared distances and cosines have the same order.
    """
    costs = cdist(centers, centers, "sqeuclidean")
    if metric == "cosine":
        costs /= 2
    if len(centers) == 1:
        return costs, np.zeros(1, dtype=np.int64)
    np.fill_diagonal(costs, np.inf)
    towards = costs.argmin(axis=1)
    np.fill_diagonal(costs, costs.min(axis=1))
    return costs, towards
