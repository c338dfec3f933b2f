"""K-means that starts where knowledge says: labels, or components of must-linked rows, give the first centres.

Basu, Banerjee and Mooney 2002 (`basu2002`); survey section 3.1, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from clew._base import Capabilities
from clew.constraints import Closure, Constraints
from clew.partitional._family import KMeansFamily
from clew.partitional._lloyd import Problem, Solution, lloyd
from clew.partitional._seeding import Start


class SeededKMeans(KMeansFamily):
    r"""K-means started at the means of known rows.

    Knowledge gives the first centres and nothing else: rows, seeds included, then go where they are nearest. Use it
    when some of the knowledge may be wrong; when labels must be kept, see `ConstrainedKMeans`.

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
        beyond, one from 100,000 on. All starts have the same seeds; if no centre is left to chance there is one.
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
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label that stands for each row of `cluster_centers_`.
    cluster_sizes_ : ndarray of shape (n_clusters,)
    inertia_ : float
        Weighted sum of the rows' squared distances (or one minus cosine) to their centres.
    objective_ : float
        The same as `inertia_`: broken constraints cost nothing here.
    objective_history_ : ndarray
        The objective after each assignment; it never rises.
    n_iter_ : int
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)

    Notes
    -----
    Constraints: seeds only. Seeds for some of the clusters are enough. Minimises

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2

    Time O(t n k d) for t rounds; memory O(n + k d) beyond a copy of X.
    Departs from [1]_: the default start of clusters without seeds is k-means++ (``leftover="mean"`` is the paper's); an
    empty cluster restarts at the row farthest from its centre.

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney (2002). "Semi-supervised clustering by seeding." ICML. Algorithm
       Seeded-KMeans.

    Examples
    --------
    >>> from clew import SeededKMeans
    >>> model = SeededKMeans(n_clusters=2, random_state=0)
    >>> model.fit([[0.0], [1.0], [8.0], [9.0]], constraints=[1, -1, -1, 0]).labels_
    array([1, 1, 0, 0], dtype=int32)
    """

    _capabilities = Capabilities(
        labels="seeds",
        must_link="seeds",
        cannot_link="seeds",
        sample_weight=True,
        sparse=True,
        predicts=True,
        monotone=True,
    )

    @classmethod
    def _examples(cls) -> list[SeededKMeans]:
        return [
            cls(n_clusters=3, random_state=0),
            cls(n_clusters=3, leftover="mean", metric="cosine", random_state=0),
        ]

    def _restarts_anew(self) -> bool:
        return False

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        return lloyd(problem, None, None, start.centers, max_iter=self.max_iter, tol=self.tol)
