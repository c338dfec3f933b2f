"""K-means that learns a metric for its clusters while it prices broken pairs in it.

Bilenko, Basu and Mooney 2004 (`bilenko2004`); MPKM in the survey (`truong2013`), where PKM and MKM are its settings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from clew._base import Capabilities
from clew._validation import BOOLEAN, Allowed, integer, number, words
from clew.constraints import Closure, Constraints
from clew.partitional._family import COMMON_PARAMETERS, KMeansFamily, mixing_cost, rows_seen
from clew.partitional._learned_metric import MetricPolicy, MetricProblem
from clew.partitional._lloyd import FloatArray, Problem, Solution, Units, lloyd, row_costs
from clew.partitional._pairs import Pairs
from clew.partitional._seeding import Start


class MPCKMeans(KMeansFamily):
    r"""K-means that learns which columns matter, for all clusters or for each, from clusters and pairs.

    Distances are measured in a metric that follows from the spread of the clusters and from the pairs that are broken.
    Use it when columns have different units or clusters different spreads, and pairs say which differences
    count; when the distances are right as they are, `PCKMeans` needs less data.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        "auto" tries growing numbers and keeps the one with the lowest criterion below.
    metric : {"diagonal", "full", "none"}, default="diagonal"
        What is learned: a weight for each column, a whole matrix, or nothing, which leaves squared Euclidean distances.
    shared : bool, default=True
        Whether all clusters have one metric, or each its own; their own need more rows in each cluster.
    penalty : float, default=1.0
        Weight of a broken pair, times its confidence. 0 leaves pairs to the start.
    assignment : {"priced", "nearest"}, default="priced"
        Whether a row weighs what it breaks, or goes to the nearest centre, so that pairs shape the metric only (MKM).
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
    n_clusters_ : int
        The number of clusters, given or found.
    metrics_ : ndarray of shape (n_metrics, n_features) or (n_metrics, n_features, n_features)
        The learned weights or matrices A: one if shared (or none is learned), else one for each centre.
    inertia_ : float
        Weighted sum of the rows' squared distances to their centres, in the learned metric.
    objective_ : float
        J below.
    objective_history_ : ndarray
        J after each assignment; it never rises with ``assignment="priced"``. With "nearest" it may, and when it has not
        reached a new low for twenty rounds, the lowest is returned.
    n_iter_ : int
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)

    Notes
    -----
    Constraints: all soft. With \|v\|_h^2 = v' A_h v, minimises

    .. math:: J = \sum_i \big( \lVert x_i - c_{z_i} \rVert_{z_i}^2 - \log \det A_{z_i} \big)
              + \lambda \sum_{ML} w_{ij} [z_i \neq z_j] \tfrac{1}{2} \big( \lVert x_i - x_j \rVert_{z_i}^2
              + \lVert x_i - x_j \rVert_{z_j}^2 \big)
              + \lambda \sum_{CL} w_{ij} [z_i = z_j] \big( F_{z_i} - \lVert x_i - x_j \rVert_{z_i}^2 \big)_+
              + n_0 \sum_h \big( \operatorname{tr} A_h V - \log \det A_h \big)

    where F_h is the longest distance: the diagonal of the box around all rows, in the metric of the cluster. It costs
    O(n d) once and never falls short of a pair where the metric is diagonal. The last term is n_0 unseen rows per
    metric, as many as columns, spread like the columns of the table (V). It keeps A finite where a cluster has few rows
    or a column no spread. Only given pairs are priced, each once at its highest confidence; groups and classes stand
    for all their pairs, which are written out, up to two million. ``metric="none"`` is PKM, "diagonal" or "full" MPKM,
    and with ``assignment="nearest"`` MKM of [2]_.

    J is minus twice a log-likelihood, up to a constant. ``n_clusters="auto"`` minimises, over k from the number of
    known classes up to the root of n, J - 2 Σ n_h log(n_h / n) + p log n, the Bayesian criterion for the p numbers that
    centres, metrics and shares have; it stops after five numbers without a lower one. With ``metric="none"`` it is that
    of `PCKMeans`.

    J never rises with ``assignment="priced"``; the result is a local optimum.
    Time O(t (n k d + m k d)) for t rounds and m pairs, d² for d with a full matrix; memory O(n + k d + m (k + d))
    beyond a copy of X in double precision.
    Departs from [1]_: the box instead of the farthest pair, which takes n² distances to find; unseen rows instead of a
    ridge where a matrix is singular; entailed pairs are not added; an empty cluster restarts at the row farthest from
    its centre.

    References
    ----------
    .. [1] M. Bilenko, S. Basu, R. J. Mooney (2004). "Integrating constraints and metric learning in semi-supervised
       clustering." ICML. Eq. (5) and (6).
    .. [2] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms." Table 1.

    Examples
    --------
    >>> from clew import MPCKMeans
    >>> model = MPCKMeans(n_clusters=2, random_state=0)
    >>> X = [[0.0, 0.0], [0.2, 9.0], [0.1, 5.0], [3.0, 0.1], [3.1, 8.9], [3.2, 4.0]]
    >>> model.fit(X, constraints={"must_link": [(0, 1), (3, 4)]}).labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    _capabilities = Capabilities(
        labels="soft",
        must_link="soft",
        cannot_link="soft",
        sample_weight=True,
        sparse=True,
        predicts=True,
        monotone=True,
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        **COMMON_PARAMETERS,
        "n_clusters": words("auto") | integer(1),
        "metric": words("none", "diagonal", "full"),
        "shared": BOOLEAN,
        "penalty": number(0),
        "assignment": words("priced", "nearest"),
    }
    metrics_: FloatArray

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        metric: str = "diagonal",
        shared: bool = True,
        penalty: float = 1.0,
        assignment: str = "priced",
        init: Any = "neighbourhoods",
        leftover: str = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.shared = shared
        self.penalty = penalty
        self.assignment = assignment
        self.init = init
        self.leftover = leftover
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def _examples(cls) -> list[MPCKMeans]:
        return [
            cls(n_clusters=3, shared=False, random_state=0),
            cls(n_clusters=3, metric="full", random_state=0),
            cls(n_clusters=3, metric="none", random_state=0),
        ]

    @property
    def _geometry(self) -> str:
        return "euclidean"

    @property
    def _learns_metric(self) -> bool:
        return self.metric != "none"

    def _restarts_anew(self) -> bool:
        return self.penalty != 0

    def _prepare(self, X: Any, weights: FloatArray) -> Problem:
        return MetricProblem.measured(X, weights, self.n_jobs, np.ones((1, X.shape[1])))

    def _measure(self, X: Any) -> MetricProblem:
        return MetricProblem.measured(X, np.empty(0), self.n_jobs, self.metrics_)

    def _keep(self, found: Solution) -> None:
        assert isinstance(found.problem, MetricProblem)
        self.metrics_ = found.problem.form

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        assert isinstance(problem, MetricProblem)
        return mpck_means(
            problem,
            constraints,
            start,
            rng,
            self.penalty,
            learns=None if self.metric == "none" else self.metric,
            shared=self.shared,
            priced=self.assignment == "priced",
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _criterion(self, found: Solution, n_clusters: int) -> float:
        """Bayesian criterion of Gaussians with the learned metrics."""
        if not self._learns_metric:
            return super()._criterion(found, n_clusters)
        assert isinstance(found.problem, MetricProblem)
        n_columns = found.problem.X.shape[1]
        each = n_columns if self.metric == "diagonal" else n_columns * (n_columns + 1) // 2
        n_numbers = n_clusters * (n_columns + 1) + found.problem.n_metrics * each
        n_seen = rows_seen(found.problem)
        share = n_seen / float(found.problem.row_weights.sum())
        return share * (found.objective + mixing_cost(found)) + n_numbers * float(np.log(n_seen))

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Distance of each row to every centre, in the metric of that centre.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        rows = self._check_new_rows(X)
        problem = self._measure(rows)
        return learned_distances(problem, problem.placed(self.cluster_centers_)).astype(rows.dtype)


def learned_distances(problem: MetricProblem, centers: FloatArray) -> FloatArray:
    """Distance of every row to every centre, in the metric of the centre."""
    apart = np.empty((problem.n_rows, len(centers)))
    for cluster in range(len(centers)):
        apart[:, cluster] = row_costs(problem, centers, np.full(problem.n_rows, cluster, dtype=np.int32))
    return np.sqrt(apart)


def mpck_means(
    problem: MetricProblem,
    constraints: Constraints,
    start: Start,
    rng: np.random.Generator,
    penalty: float,
    *,
    learns: str | None,
    shared: bool,
    priced: bool,
    max_iter: int,
    tol: float,
) -> Solution:
    """Rows, centres and metrics in turn, each where the objective is lowest for the two others."""
    problem = _identity(problem, len(start.centers), learns, shared)
    pairs = Pairs.of(constraints) if penalty > 0 else Pairs.of(Constraints(n_samples=problem.n_rows))
    policy = MetricPolicy(problem, pairs, penalty, rng, learns=learns, shared=shared, priced=priced)
    units = Units.contract(problem, pairs.rows, np.arange(len(pairs.rows)), len(pairs.rows)) if len(pairs) else None
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


def _identity(problem: MetricProblem, n_clusters: int, learns: str | None, shared: bool) -> MetricProblem:
    """Squared Euclidean distances to start with, and the unseen rows that learning needs."""
    n_columns = problem.X.shape[1]
    n_metrics = 1 if shared or learns is None else n_clusters
    if learns == "full":
        form = np.repeat(np.eye(n_columns)[None], n_metrics, axis=0)
    else:
        form = np.ones((n_metrics, n_columns))
    problem = replace(problem, form=form)
    return problem if learns is None else problem.with_prior(float(n_columns))
