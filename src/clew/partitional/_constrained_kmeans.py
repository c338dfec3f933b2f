"""Seeded k-means in which the seeds stay where they are.

Basu, Banerjee and Mooney 2002 (`basu2002`); survey section 3.1, Algorithm 2.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from clew._base import Capabilities
from clew._validation import Allowed, number
from clew.constraints import Closure, Constraints
from clew.partitional._family import COMMON_PARAMETERS, KMeansFamily
from clew.partitional._lloyd import FloatArray, Labels, Policy, Problem, Solution, Units, lloyd
from clew.partitional._seeding import Start
from clew.partitional._ties import TiedAssignment, Ties, component_units


class ConstrainedKMeans(KMeansFamily):
    r"""K-means that keeps labels and must-links.

    Labelled rows keep their class in every round. Must-linked rows move as one block, and the blocks that seeded a
    cluster stay in it. Cannot-links only help to choose the seeds: when they must hold, see `COPKMeans`; when labels
    may be wrong, see `SeededKMeans`.

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
    min_confidence : float, default=0
        Pairs that are less sure are left out; the others are hard, whatever their confidence.

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
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        The first is always empty.

    Notes
    -----
    Constraints: labels and must-links hard; cannot-links choose seeds and are then only reported, but one that
    contradicts the must-links is refused. Labels for some of
    the clusters are enough. Minimises, under these,

    .. math:: J = \sum_i \lVert x_i - c_{z_i} \rVert^2

    Time O(t n k d) for t rounds; memory O(n + k d + pairs) beyond a copy of X.
    Departs from [1]_, which knows labels only: must-linked rows act as the seeds of a cluster whose class has no
    number; with more of them than clusters the largest seed, the others move as blocks. The default start of
    clusters without seeds is k-means++; an empty cluster restarts at the row farthest from its centre.

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

    _capabilities = Capabilities(
        labels="hard",
        must_link="hard",
        cannot_link="seeds",
        sample_weight=True,
        sparse=True,
        predicts=True,
        monotone=True,
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
    """Blocks of must-linked rows go to their nearest centre; seeds stay."""
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
    """Blocks that heed nobody; some are pinned to the cluster they seeded."""

    def __init__(self, seeds: np.ndarray[Any, Any], n_clusters: int) -> None:
        self._state = TiedAssignment(Ties.build(len(seeds), pinned=seeds.astype(np.int32)), n_clusters)

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        return self._state.sweep(problem, units, centers, np.arange(len(units)), labels), 0.0
