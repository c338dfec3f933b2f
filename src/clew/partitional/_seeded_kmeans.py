"""K-means whose first centres come from labels or from components of must-linked rows.

Basu, Banerjee and Mooney 2002 (`basu2002`); survey section 3.1, Algorithm 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clew.constraints import Closure, Constraints
from clew.partitional._family import SOFT_CONSTRAINTS, KMeansFamily
from clew.partitional._geometry import Problem
from clew.partitional._lloyd import Solution, lloyd
from clew.partitional._seeding import Start


class SeededKMeans(KMeansFamily):
    r"""K-means started at the means of known rows.

    Constraints give the first centres and nothing else. After that, every row goes to its nearest centre, seeds
    included. Use it when some constraints may be wrong. When labels must be kept, see `ConstrainedKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    n_init : int or "auto", default="auto"
        Number of starts; the result with the lowest objective is returned. "auto" means ten for up to 10,000 rows,
        fewer for more rows, and one from 100,000 rows on. Single rows seed the first start only. If neighbourhoods give
        every centre, there is one start.
    init, leftover, max_iter, tol, metric, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_centers_, cluster_labels_, cluster_sizes_, inertia_, objective_history_, n_iter_,
    violated_must_link_, violated_cannot_link_
        As in `KMeansFamily`.
    objective_ : float
        The same as `inertia_`: broken constraints cost nothing here.

    Notes
    -----
    Constraints: seeds only. Some clusters may have no seeds. Minimises

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2

    Time O(t n k d) for t rounds; memory O(n + k d) beyond a copy of X.
    Departs from [1]_: clusters without seeds start by k-means++ (``leftover="mean"`` is as in the paper). An empty
    cluster restarts at the row farthest from its centre.

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

    _capabilities = replace(
        SOFT_CONSTRAINTS, labels="seeds", must_link="seeds", cannot_link="seeds", monotone=True, out_of_core=True
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
