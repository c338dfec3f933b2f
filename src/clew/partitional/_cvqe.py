"""K-means in which a broken pair costs the distance between centres, and pulls them together.

Davidson and Ravi 2005 (`davidson2005`), as in section 3.2.1 of the survey (`truong2013`), Eq. 4 to 8.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist

from clew.partitional._family import SOFT_CONSTRAINTS
from clew.partitional._geometry import FloatArray, IntArray, Labels, Problem
from clew.partitional._pairs import PairedKMeans, PairPolicy
from clew.partitional._units import Units


class CVQE(PairedKMeans):
    r"""K-means in which a broken pair costs the distance between two centres.

    The two rows of a pair are assigned together, to the cheapest of all pairs of clusters. A broken must-link costs the
    squared distance between the two centres and pulls them towards each other. A broken cannot-link costs the squared
    distance from its centre to the nearest other centre, and pulls its centre towards that one. No price has to be
    chosen. `LCVQE` prices pairs by their own rows and tries fewer clusters. To choose the price yourself, see
    `PCKMeans`.

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
        Means of the rows and of the centres that broken pairs pull towards.
    objective_ : float
        J below.
    objective_history_ : ndarray
        J after each assignment. It may rise. After twenty rounds without a new minimum, the round with the lowest J is
        returned.

    Notes
    -----
    Constraints: all soft. Searches for a minimum of

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2
              + \sum_{ML} w_{ij} [z_i \neq z_j] \lVert c_{z_i} - c_{z_j} \rVert^2
              + \sum_{CL} w_{ij} [z_i = z_j] \lVert c_{z_i} - c_{h(z_i)} \rVert^2

    where h(z) is the centre nearest to centre z and w the confidence. This is twice the objective of [2]_, so that
    `inertia_` has its usual meaning. Only given pairs are priced, each once at its highest confidence; groups and
    classes are expanded to pairs, up to two million. With one cluster a broken cannot-link costs nothing.

    Time O(t (n k d + m k²)) for t rounds and m pairs; memory O(n + k d + m + r k) beyond a copy of X, for r rows in
    pairs.
    Departs from [1]_: pairs are visited in seeded random order. A row in several pairs counts the costs of all of them.
    Both centres of a broken must-link move. An empty cluster restarts at the row farthest from its centre.

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

    _capabilities = replace(SOFT_CONSTRAINTS, out_of_core=True)

    @property
    def _policy(self) -> type[PairPolicy]:
        return PricedByCenters


class PricedByCenters(PairPolicy):
    """Assign each pair to the two clusters with the lowest sum of distances and prices (Eq. 6 and 7)."""

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
    """Costs between centres, with the cost to the nearest other centre on the diagonal, and these nearest centres.

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
