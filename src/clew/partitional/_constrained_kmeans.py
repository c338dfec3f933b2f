"""Seeded k-means in which seeds keep their cluster.

Basu, Banerjee and Mooney 2002 (`basu2002`); survey section 3.1, Algorithm 2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from clew._validation import Allowed, number
from clew.constraints import Closure, Constraints
from clew.partitional._family import COMMON_PARAMETERS, SOFT_CONSTRAINTS, KMeansFamily
from clew.partitional._geometry import FloatArray, Labels, Problem
from clew.partitional._lloyd import Policy, Solution, lloyd
from clew.partitional._seeding import Start
from clew.partitional._ties import TiedAssignment, Ties, component_units
from clew.partitional._units import Units


class ConstrainedKMeans(KMeansFamily):
    r"""K-means that keeps labels and must-links.

    Labelled rows keep their class in every round. Must-linked rows move as one block, and the blocks that seeded a
    cluster stay in it. Cannot-links only help to choose the seeds. When cannot-links must hold, see `COPKMeans`. When
    labels may be wrong, see `SeededKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    n_init : int or "auto", default="auto"
        Number of starts; the result with the lowest objective is returned. "auto" means ten for up to 10,000 rows,
        fewer for more rows, and one from 100,000 rows on. Single rows seed the first start only. If neighbourhoods give
        every centre, there is one start.
    min_confidence : float, default=0
        Pairs with a lower confidence are ignored. All other pairs are hard.
    init, leftover, max_iter, tol, metric, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_centers_, cluster_labels_, cluster_sizes_, inertia_, objective_history_, n_iter_
        As in `KMeansFamily`.
    objective_ : float
        The same as `inertia_`.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        The first is always empty.

    Notes
    -----
    Constraints: labels and must-links are hard. Cannot-links help to choose the seeds, and violated ones are only
    reported. A cannot-link that contradicts the must-links is an error. Some clusters may have no labels. Minimises,
    under these constraints,

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2

    Time O(t n k d) for t rounds; memory O(n + k d + pairs) beyond a copy of X.
    Departs from [1]_, which takes labels only: a component of must-linked rows seeds a cluster as a class does. With
    more components than clusters, the largest are seeds and the others move as blocks. Clusters without seeds start by
    k-means++ unless `leftover` says otherwise. An empty cluster restarts at the row farthest from its centre.

    References
    ----------
    .. [1] S. Basu, A. Banerjee, R. J. Mooney (2002). "Semi-supervised clustering by seeding." ICML. Algorithm
       Constrained-KMeans.

    Examples
    --------
    >>> from clew import ConstrainedKMeans
    >>> model = ConstrainedKMeans(n_clusters=2, random_state=0)
    >>> model.fit([[0.0], [1.0], [8.0], [9.0]], constraints=[1, 0, -1, 0]).labels_
    array([1, 0, 0, 0], dtype=int32)
    """

    _capabilities = replace(
        SOFT_CONSTRAINTS, labels="hard", must_link="hard", cannot_link="seeds", monotone=True, out_of_core=True
    )
    _parameters: ClassVar[dict[str, Allowed]] = {**COMMON_PARAMETERS, "min_confidence": number(0, 1)}

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

    @classmethod
    def _examples(cls) -> list[ConstrainedKMeans]:
        return [
            cls(n_clusters=3, random_state=0),
            cls(n_clusters=3, init="k-means++", metric="cosine", random_state=0),
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
        return constrained_kmeans(problem, closed, start, max_iter=self.max_iter, tol=self.tol)


def constrained_kmeans(problem: Problem, closed: Closure, start: Start, *, max_iter: int, tol: float) -> Solution:
    """Assign blocks of must-linked rows to their nearest centre; seeds keep their cluster."""
    blocks = (closed.sizes > 1) | (start.seeds >= 0)
    units, _ = component_units(problem, closed, blocks)
    return lloyd(
        problem,
        units,
        _Blocks(start.seeds[blocks], len(start.centers)),
        start.centers,
        max_iter=max_iter,
        tol=tol,
    )


class _Blocks(Policy):
    """Blocks that ignore cannot-links; seeds are pinned to their cluster."""

    def __init__(self, seeds: np.ndarray[Any, Any], n_clusters: int) -> None:
        self._state = TiedAssignment(Ties.build(len(seeds), pinned=seeds.astype(np.int32)), n_clusters)

    def movable(self, units: Units) -> npt.NDArray[np.bool_]:
        return self._state.pinned < 0

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        return self._state.sweep(problem, units, centers, None, labels), 0.0
