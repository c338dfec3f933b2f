"""K-means in which a broken pair costs the distances of its rows to the wrong centres, and pulls these.

Pelleg and Baras 2007 (`pelleg2007`), as in section 3.2.1 of the survey (`truong2013`), Eq. 9 to 14.
"""

from __future__ import annotations

import numpy as np

from clew._base import Capabilities
from clew.constraints import Closure, Constraints
from clew.partitional._family import KMeansFamily
from clew.partitional._lloyd import FloatArray, IntArray, Labels, Policy, Problem, Solution, Units, add_points, lloyd
from clew.partitional._pairs import PairedAssignment, Pairs
from clew.partitional._seeding import Start


class LCVQE(KMeansFamily):
    r"""K-means in which a broken pair costs what its own rows are away from the wrong centres.

    The two rows of a pair are placed together, with a few candidates only: each where it is nearest, or both with one
    of them. A broken must-link pulls both centres towards the other row; of two cannot-linked rows that are nearest to
    one centre, the farther goes to its next. No price has to be chosen. `CVQE` prices pairs by the centres; to choose
    the price yourself, see `PCKMeans`.

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
        Means of the rows and of those that broken pairs add.
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

    .. math:: J = \sum_i D_{i z_i} + \sum_{ML} w_{ij} [z_i \neq z_j] \tfrac{1}{2} (D_{i z_j} + D_{j z_i})
              + \sum_{CL} w_{ij} [z_i = z_j] D_{f g(f)}

    where D is the squared distance of a row to a centre, f the row of the pair that is farther from their centre, g(f)
    the centre nearest to f other than theirs, and w the confidence; twice the objective of [2]_, so that `inertia_`
    has its usual meaning. Only given pairs are priced, each once at its highest confidence; groups and classes stand
    for all their pairs, which are written out, up to two million. At these prices a pair that shares no row
    with another always holds: together is never dearer than apart. With one cluster a broken cannot-link costs nothing.

    Time O(t (n k d + m k)) for t rounds and m pairs; memory O(n + k d + m + r k) beyond a copy of X, for r rows that
    pairs name.
    Departs from [1]_: pairs are visited in seeded random order, and a row that several pairs name counts what all of
    them cost, and may also stay; an empty cluster restarts at the row farthest from its centre.

    References
    ----------
    .. [1] D. Pelleg, D. Baras (2007). "K-means with large and noisy constraint sets." ECML.
    .. [2] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms." Eq. (9) to (14).

    Examples
    --------
    >>> from clew import LCVQE
    >>> model = LCVQE(n_clusters=2, random_state=0)
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
    def _examples(cls) -> list[LCVQE]:
        return [cls(n_clusters=3, random_state=0), cls(n_clusters=3, metric="cosine", random_state=0)]

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        return lcvqe(problem, constraints, start, rng, max_iter=self.max_iter, tol=self.tol)


def lcvqe(
    problem: Problem,
    constraints: Constraints,
    start: Start,
    rng: np.random.Generator,
    *,
    max_iter: int,
    tol: float,
) -> Solution:
    """Pairs go, in seeded random order, to the cheapest of a few candidates; broken ones pull the centres."""
    pairs = Pairs.of(constraints)
    if not len(pairs):
        return lloyd(problem, None, None, start.centers, max_iter=max_iter, tol=tol)
    units = Units.contract(problem, pairs.rows, np.arange(len(pairs.rows)), len(pairs.rows))
    policy = _PricedByRows(pairs, PairedAssignment(pairs, units, problem, len(start.centers)), rng)
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


class _PricedByRows(Policy):
    """Eq. 12 and 13: the clusters of a pair are the cheapest of up to three candidates."""

    monotone = False

    def __init__(self, pairs: Pairs, state: PairedAssignment, rng: np.random.Generator) -> None:
        self._pairs, self._state, self._rng = pairs, state, rng

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        self._state.measure(problem, centers)
        self._state.sweep(self._rng.permutation(len(self._pairs)), labels)
        distances, sure, ends = self._state.distances, self._pairs.confidence, self._pairs.ends
        must, _ = self._pairs.broken(labels)
        first, second = ends[must].T
        crossed = distances[first, labels[second]] + distances[second, labels[first]]
        price = float(sure[must] @ crossed) / 2
        cannot, far, towards = self._farther(labels)
        return self._state.score(labels), price + float(sure[cannot] @ distances[far, towards])

    def pull(self, units: Units, centers: FloatArray, labels: Labels, sums: FloatArray, masses: FloatArray) -> None:
        """Eq. 14: a centre is the mean of its rows, of half the rows that broken must-links name, and of `_farther`."""
        must, _ = self._pairs.broken(labels)
        half = self._pairs.confidence[must] / 2
        first, second = self._pairs.ends[must].T
        for here, there in ((first, second), (second, first)):
            add_points(units.points[there], half, labels[here], sums, masses)
        cannot, far, towards = self._farther(labels)
        add_points(units.points[far], self._pairs.confidence[cannot], towards, sums, masses)

    def _farther(self, labels: Labels) -> tuple[IntArray, IntArray, Labels]:
        """Broken cannot-links, the row of each that is farther from their centre, and its nearest other centre."""
        distances = self._state.distances
        _, cannot = self._pairs.broken(labels)
        if distances.shape[1] == 1:  # there is no other centre
            cannot = cannot[:0]
        first, second = self._pairs.ends[cannot].T
        here = labels[first]
        far = np.where(distances[first, here] <= distances[second, here], second, first)
        nearest = self._state.nearest[far]
        return cannot, far, np.where(nearest[:, 0] == here, nearest[:, 1], nearest[:, 0])
