"""K-means in which a broken pair costs the distances of its rows to other centres, and pulls these centres.

Pelleg and Baras 2007 (`pelleg2007`), as in section 3.2.1 of the survey (`truong2013`), Eq. 9 to 14.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clew.partitional._family import SOFT_CONSTRAINTS
from clew.partitional._geometry import FloatArray, IntArray, Labels, Problem
from clew.partitional._pairs import PairedKMeans, PairPolicy
from clew.partitional._units import Units, add_points


class LCVQE(PairedKMeans):
    r"""K-means in which a broken pair costs the distances of its rows to other centres.

    The two rows of a pair are assigned together, with few candidates: each row to its nearest centre, or both rows to
    the nearest centre of one of them. A broken must-link pulls each centre towards the other row. If two cannot-linked
    rows share their nearest centre, the farther row goes to its second nearest centre. No price has to be chosen.
    `CVQE` prices pairs by the centres; to choose the price yourself, see `PCKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    init, leftover, n_init, max_iter, tol, metric, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_labels_, cluster_sizes_, inertia_, n_iter_, violated_must_link_, violated_cannot_link_
        As in `KMeansFamily`.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the rows of each cluster and of the rows that broken pairs add to it.
    objective_ : float
        J below.
    objective_history_ : ndarray
        J after each assignment. It may rise. After twenty rounds without a new minimum, the round with the lowest J is
        returned.

    Notes
    -----
    Constraints: all soft. Searches for a minimum of

    .. math:: J = \sum_i D_{i z_i} + \sum_{ML} w_{ij} [z_i \neq z_j] \tfrac{1}{2} (D_{i z_j} + D_{j z_i})
              + \sum_{CL} w_{ij} [z_i = z_j] D_{f g(f)}

    where D is the squared distance of a row to a centre, f the row of the pair that is farther from their centre, g(f)
    the nearest other centre of f, and w the confidence. This is twice the objective of [2]_, so that
    `inertia_` has its usual meaning. Only given pairs are priced, each once at its highest confidence; groups and
    classes are expanded to pairs, up to two million. At these prices a pair that shares no row with another pair always
    holds, because breaking it never costs less. With one cluster a broken cannot-link costs nothing.

    Time O(t (n k d + m k)) for t rounds and m pairs; memory O(n + k d + m + r k) beyond a copy of X, for r rows in
    pairs.
    Departs from [1]_: pairs are visited in seeded random order. A row in several pairs counts the costs of all of them,
    and may also stay in its cluster. An empty cluster restarts at the row farthest from its centre.

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

    _capabilities = replace(SOFT_CONSTRAINTS, out_of_core=True)

    @property
    def _policy(self) -> type[PairPolicy]:
        return PricedByRows


class PricedByRows(PairPolicy):
    """Assign each pair to the cheapest of up to three candidates (Eq. 12 and 13)."""

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
        """Eq. 14: broken must-links add the other row at half weight, and broken cannot-links the `_farther` row."""
        must, _ = self._pairs.broken(labels)
        half = self._pairs.confidence[must] / 2
        first, second = self._pairs.ends[must].T
        for here, there in ((first, second), (second, first)):
            add_points(units.points[there], half, labels[here], sums, masses)
        cannot, far, towards = self._farther(labels)
        add_points(units.points[far], self._pairs.confidence[cannot], towards, sums, masses)

    def _farther(self, labels: Labels) -> tuple[IntArray, IntArray, Labels]:
        """Broken cannot-links, the row of each pair that is farther from the centre, and its nearest other centre."""
        distances = self._state.distances
        _, cannot = self._pairs.broken(labels)
        if distances.shape[1] == 1:  # there is no other centre
            cannot = cannot[:0]
        first, second = self._pairs.ends[cannot].T
        here = labels[first]
        far = np.where(distances[first, here] <= distances[second, here], second, first)
        nearest = self._state.nearest[far]
        return cannot, far, np.where(nearest[:, 0] == here, nearest[:, 1], nearest[:, 0])
