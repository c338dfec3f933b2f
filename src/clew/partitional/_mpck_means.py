"""K-means that learns a metric for its clusters, and prices broken pairs in this metric.

Bilenko, Basu and Mooney 2004 (`bilenko2004`). The survey (`truong2013`) calls it MPKM; PKM and MKM are special cases.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from clew._base import Capabilities
from clew._persistence import Learned
from clew._validation import BOOLEAN, Allowed, integer, number, words
from clew.constraints import Closure, Constraints
from clew.partitional._family import COMMON_PARAMETERS, SOFT_CONSTRAINTS, KMeansFamily, mixing_cost, rows_seen
from clew.partitional._geometry import FloatArray, Problem, row_costs
from clew.partitional._learned_metric import MetricPolicy, MetricProblem
from clew.partitional._lloyd import Solution, lloyd
from clew.partitional._pairs import Pairs
from clew.partitional._seeding import Start
from clew.partitional._units import Units


class MPCKMeans(KMeansFamily):
    r"""K-means that learns a metric from the clusters and the pairs.

    The metric is fitted to the spread of the clusters and to the broken pairs. All clusters share one metric, or each
    has its own. Use it when columns have different units or clusters have different spreads. If plain distances are
    right, `PCKMeans` needs less data.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        "auto" tries increasing numbers and keeps the one with the lowest criterion (see Notes).
    metric : {"diagonal", "full", "none"}, default="diagonal"
        Metric to learn: a weight for each column ("diagonal"), a full matrix, or none (squared Euclidean distances).
    shared : bool, default=True
        Whether all clusters share one metric. Separate metrics need more rows in each cluster.
    penalty : float, default=1.0
        Weight of a broken pair, multiplied by its confidence. With 0, pairs only affect the start.
    assignment : {"priced", "nearest"}, default="priced"
        Whether the assignment of a row counts the pairs it breaks, or takes the nearest centre. With "nearest", pairs
        only affect the metric (MKM).
    init, leftover, n_init, max_iter, tol, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_centers_, cluster_labels_, cluster_sizes_, n_iter_, violated_must_link_, violated_cannot_link_
        As in `KMeansFamily`.
    n_clusters_ : int
        The number of clusters, given or found.
    metrics_ : ndarray of shape (n_metrics, n_features) or (n_metrics, n_features, n_features)
        The learned weights or matrices A: one for each centre, or only one if it is shared or no metric is learned.
    inertia_ : float
        Weighted sum of the rows' squared distances to their centres, in the learned metric.
    objective_ : float
        J below.
    objective_history_ : ndarray
        J after each assignment; it never rises with ``assignment="priced"``. With "nearest" it may. After twenty rounds
        without a new minimum, the round with the lowest J is returned.

    Notes
    -----
    Constraints: all soft. With :math:`\|v\|_h^2 = v' A_h v`, minimises

    .. math:: J = \sum_i \big( \lVert x_i - c_{z_i} \rVert_{z_i}^2 - \log \det A_{z_i} \big)
              + \lambda \sum_{ML} w_{ij} [z_i \neq z_j] \tfrac{1}{2} \big( \lVert x_i - x_j \rVert_{z_i}^2
              + \lVert x_i - x_j \rVert_{z_j}^2 \big)
              + \lambda \sum_{CL} w_{ij} [z_i = z_j] \big( F_{z_i} - \lVert x_i - x_j \rVert_{z_i}^2 \big)_+
              + n_0 \sum_h \big( \operatorname{tr} A_h V - \log \det A_h \big)

    where F_h is the longest distance: the diagonal of the bounding box of all rows, in the metric of the cluster. It
    takes O(n d) to compute, and with a diagonal metric no pair is longer. The last term is a prior of n_0 unseen rows
    per metric, as many as there are columns, with the variances V of the columns. It keeps A finite if a cluster has
    few rows or a column is constant. Only given pairs are priced, each once at its highest confidence; groups and
    classes are expanded to pairs, up to two million. ``metric="none"`` is PKM, "diagonal" or "full" MPKM, and with
    ``assignment="nearest"`` MKM of [2]_.

    J is minus twice a log-likelihood, up to a constant. ``n_clusters="auto"`` minimises, over k from the number of
    known classes up to the root of n, J - 2 Σ n_h log(n_h / n) + p log n, the Bayesian criterion with p free parameters
    in centres, metrics and shares. It stops after five numbers without a lower value. With ``metric="none"`` the
    criterion is that of `PCKMeans`.

    J never rises with ``assignment="priced"``; the result is a local optimum.
    Time O(t (n k d + m k d)) for t rounds and m pairs, d² for d with a full matrix; memory O(n + k d + m (k + d))
    beyond a copy of X in double precision.
    Departs from [1]_: the bounding box replaces the farthest pair, which takes n² distances to find. Unseen rows
    replace the ridge for singular matrices. Entailed pairs are not added. An empty cluster restarts at the row farthest
    from its centre.

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

    _capabilities = replace(SOFT_CONSTRAINTS, monotone=True)
    _parameters: ClassVar[dict[str, Allowed]] = {
        **COMMON_PARAMETERS,
        "n_clusters": words("auto") | integer(1),
        "metric": words("none", "diagonal", "full"),
        "shared": BOOLEAN,
        "penalty": number(0),
        "assignment": words("priced", "nearest"),
    }
    metrics_: FloatArray
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **KMeansFamily._learned_attributes,
        "n_clusters_": Learned("integer", low=1, counts="clusters"),
        "metrics_": Learned(
            "real",
            (
                (1, "columns"),
                ("clusters", "columns"),
                (1, "columns", "columns"),
                ("clusters", "columns", "columns"),
            ),
        ),
    }

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
            cls(n_clusters=3, assignment="nearest", random_state=0),
        ]

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, monotone=self.assignment == "priced")

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
    """Update rows, centres and metrics in turn; each minimises the objective for the two others."""
    problem = _identity(problem, len(start.centers), learns, shared)
    pairs = Pairs.of(constraints) if penalty > 0 else Pairs.of(Constraints(n_samples=problem.n_rows))
    policy = MetricPolicy(problem, pairs, penalty, rng, learns=learns, shared=shared, priced=priced)
    units = Units.contract(problem, pairs.rows, np.arange(len(pairs.rows)), len(pairs.rows)) if len(pairs) else None
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


def _identity(problem: MetricProblem, n_clusters: int, learns: str | None, shared: bool) -> MetricProblem:
    """The initial metric: squared Euclidean distances, with the prior of unseen rows that learning needs."""
    n_columns = problem.X.shape[1]
    n_metrics = 1 if shared or learns is None else n_clusters
    if learns == "full":
        form = np.repeat(np.eye(n_columns)[None], n_metrics, axis=0)
    else:
        form = np.ones((n_metrics, n_columns))
    problem = replace(problem, form=form)
    return problem if learns is None else problem.with_prior(float(n_columns))
