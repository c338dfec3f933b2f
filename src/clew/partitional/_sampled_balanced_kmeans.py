"""K-means within size limits for many rows: cluster a sample, then assign and refine all rows.

Banerjee and Ghosh 2008 (`banerjee2008`); survey section 3.2.2, Algorithm 13.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from clew._validation import Allowed, integer, words
from clew.constraints import Closure, Constraints
from clew.exceptions import InfeasibleConstraintsError, ParameterError, WorkLimitError
from clew.partitional._balanced_kmeans import BalancedKMeans, balanced_kmeans, class_pins
from clew.partitional._family import best_start
from clew.partitional._geometry import IntArray, Problem
from clew.partitional._lloyd import Solution
from clew.partitional._seeding import Start
from clew.partitional._sizes import SizeLimits
from clew.solvers.packing import WORK_LIMIT

# For sample_size="auto": expected number of rows of the smallest cluster in the sample, and the probability that some
# cluster has fewer than half of its expected rows.
_ROWS_OF_SMALLEST, _RISK = 1000, 0.01


class SampledBalancedKMeans(BalancedKMeans):
    r"""K-means in which the sizes of clusters have limits, for large data.

    `BalancedKMeans` finds the centres on a sample of rows. Then all rows are assigned to these centres within the
    limits, and a few rounds over all rows refine the result. Limits, must-links and cannot-links hold for all rows, as
    in `BalancedKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    size_min : number, list of one per cluster, or None
        Smallest size of a cluster. A list is in the order of `cluster_labels_`, and None means no limit.
    size_max : number, list of one per cluster, or None
        Largest size of a cluster.
    size : number, list of one per cluster, or None
        The size that clusters should have, up to `tolerance`. None with a tolerance is the mean size.
    tolerance : float or None
        How far sizes may be from `size`, as a share: ``size=200, tolerance=0.1`` is from 180 to 220.
    size_unit : {"rows", "weight"}, default="rows"
        Whether a size is a number of rows or the sum of their `sample_weight`.
    sample_size : int or "auto", default="auto"
        Number of rows in the sample. With "auto", the smallest cluster has about a thousand rows in the sample. If the
        sample has all rows, the method is `BalancedKMeans`.
    max_refine : int, default=10
        Largest number of rounds over all rows. The first one assigns the rows outside the sample.
    min_confidence : float, default=0
        Pairs with a lower confidence are left out. All others are hard.
    work_limit : int
        Limit on the work of one exact search, in nodes times variables. The search runs if pairs or weights make the
        assignment NP-hard.
    init, leftover, n_init, max_iter, tol, metric, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_centers_, cluster_labels_, cluster_sizes_, inertia_
        As in `KMeansFamily`.
    n_iter_ : int
        Number of rounds over all rows.
    objective_history_ : ndarray
        The objective of all rows after each of these rounds; it never rises.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Weight of the rows of each cluster.
    objective_ : float
        The same as `inertia_`.
    lower_bound_ : float
        No assignment to these centres within the limits costs less.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all hard, including entailed ones and the limits. The objective is that of `BalancedKMeans`.
    For the sample, limits are scaled down by its share of the rows, or of the weight. `n_init` and `max_iter` apply to
    the sample. Rows in constraints are drawn first, for up to half of the sample, so that known classes have centres of
    their own. If no labelling of the sample keeps the limits (a large block may be drawn too often), the sample is
    clustered without limits.

    The sample is uniform. With p the share of the smallest cluster, :math:`\max(1000, 8 \ln (100 k)) / p` rows are
    drawn, so by Chernoff's bound each of k clusters has at least half of its expected rows, except with a probability
    of 0.01. The lowest limit gives p, but p is at least half of the mean share.

    The time is that of `BalancedKMeans` on the sample plus a few rounds over all rows; memory O(n k) beyond a copy of
    X.
    Departs from [1]_: all rows are assigned by the flow of `BalancedKMeans`, not by a stable marriage followed by moves
    of single rows, and the centres move between the rounds. There are upper limits, blocks, cannot-links and weights.

    References
    ----------
    .. [1] A. Banerjee, J. Ghosh (2008). "Clustering with balancing constraints." In: Constrained Clustering, CRC Press.

    Examples
    --------
    >>> import numpy as np
    >>> from clew import SampledBalancedKMeans
    >>> X = np.random.default_rng(0).normal(size=(50_000, 2))
    >>> SampledBalancedKMeans(n_clusters=4, tolerance=0, random_state=0).fit(X).cluster_sizes_.tolist()
    [12500, 12500, 12500, 12500]
    """

    _capabilities = replace(BalancedKMeans._capabilities, out_of_core=True)
    _parameters: ClassVar[dict[str, Allowed]] = {
        **BalancedKMeans._parameters,
        "sample_size": words("auto") | integer(1),
        "max_refine": integer(1),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        size_min: Any = None,
        size_max: Any = None,
        size: Any = None,
        tolerance: float | None = None,
        size_unit: str = "rows",
        sample_size: int | str = "auto",
        max_refine: int = 10,
        init: Any = "neighbourhoods",
        leftover: str = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        metric: str = "euclidean",
        min_confidence: float = 0.0,
        work_limit: int = WORK_LIMIT,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_clusters, size_min=size_min, size_max=size_max, size=size, tolerance=tolerance, size_unit=size_unit,
            init=init, leftover=leftover, n_init=n_init, max_iter=max_iter, tol=tol, metric=metric,
            min_confidence=min_confidence, work_limit=work_limit, random_state=random_state, n_jobs=n_jobs,
        )  # fmt: skip
        self.sample_size = sample_size
        self.max_refine = max_refine

    @classmethod
    def _examples(cls) -> list[Any]:
        return [
            cls(n_clusters=3, sample_size=12, random_state=0),
            cls(n_clusters=3, sample_size=15, init="k-means++", metric="cosine", random_state=0),
        ]

    def _named_rows(self, constraints: Constraints) -> tuple[Constraints, None]:
        return constraints, None  # limits concern all rows

    def _best_start(
        self, problem: Problem, constraints: Constraints, closed: Closure, clusters: IntArray, rng: np.random.Generator
    ) -> Solution:
        limits = self._limits(problem)
        n_sample = self._n_sample(problem, limits, len(clusters))
        found = None
        if n_sample >= problem.n_rows and hasattr(problem.X, "prepared"):  # not in memory, but few
            problem = replace(problem, X=problem.X[np.arange(problem.n_rows)])
        if n_sample < problem.n_rows:
            rows = draw_sample(problem, closed, n_sample, rng)
            found = self._clustered_sample(problem, constraints, limits, rows, clusters, rng)
        if found is None:
            return super()._best_start(problem, constraints, closed, clusters, rng)
        pins = class_pins(closed, clusters)
        refined = balanced_kmeans(
            problem, constraints, closed, Start(found.centers, pins, False), rng, limits,
            max_iter=self.max_refine, tol=self.tol, work_limit=self.work_limit, in_order=True,
        )  # fmt: skip
        # Few rounds over all rows are intended, so only the rounds on the sample can end too early.
        refined = refined._replace(converged=found.converged, shift=found.shift)
        return self._proven(problem, constraints, closed, refined, pins, self.max_refine)

    def _n_sample(self, problem: Problem, limits: SizeLimits | None, n_clusters: int) -> int:
        if not isinstance(self.sample_size, str):
            if self.sample_size < n_clusters:
                raise ParameterError(
                    f"sample_size={self.sample_size} in {type(self).__name__} is below n_clusters={n_clusters}. "
                    "Raise sample_size."
                )
            return self.sample_size
        smallest = 0.5 / n_clusters
        if limits is not None:
            total = float(problem.row_weights.sum()) if limits.in_weights else problem.n_rows
            smallest = max(smallest, float(limits.lower.min()) / total)
        return int(np.ceil(max(_ROWS_OF_SMALLEST, 8 * np.log(n_clusters / _RISK)) / smallest))

    def _clustered_sample(
        self,
        problem: Problem,
        constraints: Constraints,
        limits: SizeLimits | None,
        rows: IntArray,
        clusters: IntArray,
        rng: np.random.Generator,
    ) -> Solution | None:
        """Cluster the sample, within proportional limits if possible. None if no clustering was found."""
        weights = problem.weights[rows] if len(problem.weights) else problem.weights
        sample, known = replace(problem, X=problem.X[rows], weights=weights), constraints.restrict(rows)
        closed = known.closure()
        for within in [None] if limits is None else [_in_proportion(problem, sample, limits), None]:
            try:
                solved = (
                    balanced_kmeans(
                        sample, known, closed, start, rng, within,
                        max_iter=self.max_iter, tol=self.tol, work_limit=self.work_limit,
                        in_order=not isinstance(self.init, str),
                    )
                    for start in self._starts(sample, closed, clusters, rng)
                )  # fmt: skip
                return best_start(solved)
            except (InfeasibleConstraintsError, WorkLimitError):
                continue
        return None


def draw_sample(problem: Problem, closed: Closure, n_sample: int, rng: np.random.Generator) -> IntArray:
    """Draw the rows of the sample, in row order: up to half of them from rows in constraints, the others from all rows.

    Rows without weight are drawn last.
    """
    tied = (closed.tied | (closed.sizes > 1) | (closed.labels >= 0))[closed.component_of]
    first = np.flatnonzero(tied & (problem.row_weights > 0))
    if len(first) > n_sample // 2:
        first = rng.choice(first, n_sample // 2, replace=False)
    left = np.ones(problem.n_rows, dtype=bool)
    left[first] = False
    found, missing = [first], n_sample - len(first)
    for group in (left & (problem.row_weights > 0), left & (problem.row_weights == 0)):
        rows = np.flatnonzero(group)
        found.append(rng.choice(rows, min(missing, len(rows)), replace=False))
        missing -= len(found[-1])
    return np.sort(np.concatenate(found))


def _in_proportion(problem: Problem, sample: Problem, limits: SizeLimits) -> SizeLimits:
    """Scale the size limits from all rows to a sample."""
    if limits.in_weights:
        share = float(sample.row_weights.sum()) / float(problem.row_weights.sum())
        return SizeLimits(limits.lower * share, limits.upper * share, in_weights=True)
    share = sample.n_rows / problem.n_rows
    return SizeLimits(np.floor(limits.lower * share), np.ceil(limits.upper * share))
