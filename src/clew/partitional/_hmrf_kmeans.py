"""K-means as a hidden Markov random field: labels of paired rows are neighbours, columns have learned weights.

Basu, Bilenko and Mooney 2004 (`basu2004b`); survey (`truong2013`) section 3.2.1, Eq. 17 to 28 and Algorithm 9.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.metrics.pairwise import cosine_distances

from clew._base import Capabilities
from clew._validation import Allowed, number
from clew.constraints import Closure, Constraints
from clew.kernels.pairs import assign_rows
from clew.partitional._family import COMMON_PARAMETERS, KMeansFamily
from clew.partitional._learned_metric import MetricProblem
from clew.partitional._lloyd import FloatArray, Labels, Policy, Problem, Solution, Units, lloyd, row_costs, unit_rows
from clew.partitional._mpck_means import learned_distances, mpck_means
from clew.partitional._pairs import Pairs
from clew.partitional._pck_means import mean_cost
from clew.partitional._seeding import Start

# Steps of the column weights in a round, and halvings of a step before they stay as they are.
_MOST_STEPS, _MOST_HALVINGS = 20, 10
# Gain of a step, as a share of the objective's size, below which the weights are good enough for this round.
_NO_GAIN = 1e-6
# Logarithms of weights stay within this, so that nothing overflows.
_WIDEST = 30.0


class HMRFKMeans(KMeansFamily):
    r"""K-means in which labels of paired rows lean on each other and columns have learned weights.

    All clusters share one weight per column. A broken must-link costs the distance of its rows, a broken cannot-link
    what they lack to the longest distance, both under the weights. With ``metric="cosine"`` it is made for text: CSR
    rows stay sparse. Use it when some columns, or words, say more than others; for whole matrices, or weights for each
    cluster, see `MPCKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    metric : {"euclidean", "cosine"}, default="euclidean"
        Squared distance to the centre, or one minus the cosine, of weighted columns.
    penalty : float, default=1.0
        Weight of a broken pair, times its confidence. 0 leaves pairs to the start.
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
        In the columns of X; of length one for cosines.
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label that stands for each row of `cluster_centers_`.
    cluster_sizes_ : ndarray of shape (n_clusters,)
    metrics_ : ndarray of shape (1, n_features)
        The learned column weights a; for cosines their mean is 1, columns counted by what they hold.
    inertia_ : float
        Weighted sum of the rows' distances to their centres, under the weights.
    objective_ : float
        J below.
    objective_history_ : ndarray
        J after each assignment; it never rises.
    n_iter_ : int
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)

    Notes
    -----
    Constraints: all soft. Minimises, over labels, centres and weights,

    .. math:: J = \sum_i D_a(x_i, c_{z_i}) + \lambda \sum_{ML} w_{ij} [z_i \neq z_j] D_a(x_i, x_j)
              + \lambda \sum_{CL} w_{ij} [z_i = z_j] \big( D_{\max} - D_a(x_i, x_j) \big)
              - \mu \log \det \operatorname{diag} a

    The log-determinant comes from the normaliser of the model; without it all weights would fall to 0.
    Euclidean: D is the weighted squared distance, D_max the diagonal of the box around all rows under the present
    weights, mu the number of rows; a few unseen rows keep the weights finite (see `MPCKMeans`, of which this is the
    shared diagonal metric), and the best weights have a closed form.
    Cosine: D is one minus the cosine of the rows with columns times the root of a, D_max is 1 for data without negative
    numbers, else 2. The logarithm of a column counts by what the column holds, its squares in rows of length one times
    the mean cost of a row with the global centre as its own: a rare word has little to say about its weight, and little
    to hold it back. Cosines do not see the scale of a, which is fixed: the mean over columns, so weighed, is 1. Weights
    take up to twenty steps down the gradient each round, each halved until J falls.
    Only given pairs are priced, each once at its highest confidence; groups and classes stand for all their pairs,
    which are written out, up to two million.

    Time O(t (n k d + m k + m d)) for t rounds and m pairs, with d the non-zero columns of a row for CSR data; memory
    O(n + k d + m k) beyond three copies of X in double precision.
    Departs from [1]_: rows move one at a time in seeded random order, once a round; the longest distance is that of the
    box; the prior of the weights is the log-determinant; an empty cluster restarts at the row farthest from its centre.

    References
    ----------
    .. [1] S. Basu, M. Bilenko, R. J. Mooney (2004). "A probabilistic framework for semi-supervised clustering." KDD.
    .. [2] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms." Eq. (28), Algorithm 9.

    Examples
    --------
    >>> from clew import HMRFKMeans
    >>> model = HMRFKMeans(n_clusters=2, metric="cosine", random_state=0)
    >>> model.fit([[9.0, 0.0], [5.0, 1.0], [1.0, 6.0], [0.0, 3.0]], constraints={"must_link": [(0, 1)]}).labels_
    array([0, 0, 1, 1], dtype=int32)
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
    _parameters: ClassVar[dict[str, Allowed]] = {**COMMON_PARAMETERS, "penalty": number(0)}
    metrics_: FloatArray

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str = "euclidean",
        penalty: float = 1.0,
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
        self.penalty = penalty
        self.init = init
        self.leftover = leftover
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def _examples(cls) -> list[HMRFKMeans]:
        return [cls(n_clusters=3, random_state=0), cls(n_clusters=3, metric="cosine", random_state=0)]

    @property
    def _learns_metric(self) -> bool:
        return True

    def _restarts_anew(self) -> bool:
        return self.penalty != 0

    def _prepare(self, X: Any, weights: FloatArray) -> Problem:
        return self._weighed(X, weights, np.ones((1, X.shape[1])))

    def _measure(self, X: Any) -> Problem:
        return self._weighed(X, np.empty(0), self.metrics_)

    def _weighed(self, X: Any, weights: FloatArray, metrics: FloatArray) -> Problem:
        if self.metric == "cosine":
            return WeightedCosines.of(X, weights, self.n_jobs, metrics[0])
        return MetricProblem.measured(X, weights, self.n_jobs, metrics)

    def _keep(self, found: Solution) -> None:
        assert isinstance(found.problem, MetricProblem | WeightedCosines)
        self.metrics_ = found.problem.form

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        if isinstance(problem, MetricProblem):
            settings: dict[str, Any] = {"learns": "diagonal", "shared": True, "priced": True}
            return mpck_means(problem, constraints, start, rng, self.penalty, **settings, **limits)
        assert isinstance(problem, WeightedCosines)
        return hmrf_cosines(problem, constraints, start, rng, self.penalty, **limits)

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Distance of each row to every centre (one minus cosine for ``metric="cosine"``), under the weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        rows = self._check_new_rows(X)
        problem = self._measure(rows)
        centers = problem.placed(self.cluster_centers_)
        if isinstance(problem, MetricProblem):
            return learned_distances(problem, centers).astype(rows.dtype)
        return np.asarray(cosine_distances(problem.X, centers), dtype=rows.dtype)


@dataclass(frozen=True)
class WeightedCosines(Problem):
    """Rows times the roots of column weights, scaled to length one; `given` are the rows without weights.

    Weights have mean 1 over the columns, each as heavy as its `mass`: then a log-determinant is never above 0.
    """

    given: Any = None
    column_weights: FloatArray = field(default_factory=lambda: np.ones(1))
    dtype: Any = np.float64
    mass: FloatArray = field(default_factory=lambda: np.ones(1))  # what each column adds to the log-determinant

    @classmethod
    def of(cls, X: Any, weights: FloatArray, n_jobs: int | None, column_weights: FloatArray) -> WeightedCosines:
        """Scale rows to length one, in double precision, before and after the weights."""
        given = unit_rows(X.astype(np.float64))
        rows = _weigh(given, column_weights)
        shift = np.zeros(X.shape[1])
        plain = Problem(given, weights, "cosine", shift)
        squares = given.multiply(given) if sparse.issparse(given) else given**2
        mass = (mean_cost(plain) or 1.0) * np.asarray(squares.T @ plain.row_weights).ravel()
        return cls(rows, weights, "cosine", shift, effective_n_jobs(n_jobs), given, column_weights, X.dtype, mass)

    @property
    def form(self) -> FloatArray:
        """The weights as a metric."""
        return self.column_weights[None]

    @property
    def constant(self) -> float:
        """The log-determinant; the scores hold all the rest."""
        return -float(self.mass @ np.log(self.column_weights))

    @property
    def scale(self) -> float:
        """The size of the sums that the objective is made of."""
        return float(self.row_weights.sum()) + abs(self.constant)

    def surplus(self, labels: Labels) -> float:
        return self.constant

    def placed(self, centers: npt.NDArray[Any]) -> FloatArray:
        return np.asarray(_weigh(centers.astype(np.float64), self.column_weights))

    def restored(self, centers: FloatArray) -> Any:
        return unit_rows(centers / np.sqrt(self.column_weights)).astype(self.dtype)

    def weighed_anew(self, column_weights: FloatArray) -> WeightedCosines:
        """The same rows under other weights."""
        total = self.mass.sum()
        column_weights = column_weights * (total / (self.mass @ column_weights) if total > 0 else 1.0)
        return replace(self, X=_weigh(self.given, column_weights), column_weights=column_weights)


def _weigh(X: Any, column_weights: FloatArray) -> Any:
    roots = np.sqrt(column_weights)
    return unit_rows(sparse.csr_matrix(X.multiply(roots)) if sparse.issparse(X) else X * roots)


def hmrf_cosines(
    problem: WeightedCosines,
    constraints: Constraints,
    start: Start,
    rng: np.random.Generator,
    penalty: float,
    *,
    max_iter: int,
    tol: float,
) -> Solution:
    """Algorithm 9 for cosines: rows, centres, then a step of the weights."""
    pairs = Pairs.of(constraints) if penalty > 0 else Pairs.of(Constraints(n_samples=problem.n_rows))
    policy = _CosinePolicy(problem, pairs, penalty, rng)
    units = Units.contract(problem, pairs.rows, np.arange(len(pairs.rows)), len(pairs.rows)) if len(pairs) else None
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


class _CosinePolicy(Policy):
    """Rows that pairs name move one at a time; then the column weights take a step."""

    def __init__(self, problem: WeightedCosines, pairs: Pairs, penalty: float, rng: np.random.Generator) -> None:
        self._pairs, self._rng, self._prices = pairs, rng, penalty * pairs.confidence
        values = problem.given.data if sparse.issparse(problem.given) else problem.given
        self._longest = 1.0 if values.min(initial=0.0) >= 0 else 2.0
        self._step = 1.0

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        n_clusters, pairs = len(centers), self._pairs
        lengths = 1 - self._cosines(problem)
        table = np.ascontiguousarray(np.broadcast_to(lengths[:, None], (len(lengths), n_clusters)))
        arrays = (pairs.ends, pairs.must, self._prices, pairs.pair_ptr, pairs.pair_of)
        work, longest, score = np.empty(n_clusters), np.full(n_clusters, self._longest), 0.0
        for chosen, costs in units.costs(problem, centers, self._rng.permutation(len(units))):
            score += assign_rows(np.ascontiguousarray(chosen), costs, *arrays, table, longest, labels, work)
        return score, self._price(lengths, labels)

    def _cosines(self, problem: Problem) -> FloatArray:
        """Cosine of the two rows of each pair, under the weights."""
        first, second = (problem.X[self._pairs.rows[self._pairs.ends[:, end]]] for end in range(2))
        if sparse.issparse(first):
            return np.asarray(first.multiply(second).sum(axis=1)).ravel().clip(-1, 1)
        return np.einsum("ij,ij->i", first, second).clip(-1, 1)

    def _price(self, lengths: FloatArray, labels: Labels) -> float:
        must, cannot = self._pairs.broken(labels)
        return float(self._prices[must] @ lengths[must] + self._prices[cannot] @ (self._longest - lengths[cannot]))

    def learn(self, problem: Problem, centers: FloatArray, labels: Labels) -> tuple[Problem, FloatArray]:
        """Steps of the logarithms of the weights down the gradient, each as far as the objective falls."""
        assert isinstance(problem, WeightedCosines)
        now, _ = self._objective(problem, centers, labels)
        for _ in range(_MOST_STEPS):
            stepped = self._stepped(problem, centers, labels, now)
            if stepped is None:
                break
            before = now
            problem, centers, now = stepped
            if before - now < _NO_GAIN * problem.scale:
                break
        return problem, centers

    def _stepped(
        self, problem: WeightedCosines, centers: FloatArray, labels: Labels, now: float
    ) -> tuple[WeightedCosines, FloatArray, float] | None:
        """One step: weights, centres and a lower objective; None where no step lowers it."""
        gradient = self._gradient(problem, centers, labels)
        logarithms = np.log(problem.column_weights)
        direction = gradient / np.where(problem.mass > 0, problem.mass, 1)
        for _ in range(_MOST_HALVINGS):
            moved = np.exp(np.clip(logarithms - self._step * direction, -_WIDEST, _WIDEST))
            candidate = problem.weighed_anew(moved)
            objective, new_centers = self._objective(candidate, centers, labels, problem)
            if objective < now:
                self._step = min(2 * self._step, 1.0)
                return candidate, new_centers, objective
            self._step /= 2
        self._step = 1.0
        return None

    def _objective(
        self, problem: WeightedCosines, centers: FloatArray, labels: Labels, before: WeightedCosines | None = None
    ) -> tuple[float, FloatArray]:
        """J for these labels with the best centres under the weights; an empty cluster keeps its own."""
        sums = _mixing(problem, labels, len(centers)) @ problem.X
        sums = sums.toarray() if sparse.issparse(sums) else np.asarray(sums)
        lengths = np.sqrt((sums**2).sum(axis=1))
        masses = np.bincount(labels, weights=problem.row_weights, minlength=len(centers))
        kept = centers if before is None else problem.placed(before.restored(centers).astype(np.float64))
        best = np.where(lengths[:, None] > 0, sums / np.where(lengths > 0, lengths, 1)[:, None], kept)
        price = self._price(1 - self._cosines(problem), labels[self._pairs.rows])
        return float((masses - lengths).sum()) + price + problem.constant, best

    def _gradient(self, problem: WeightedCosines, centers: FloatArray, labels: Labels) -> FloatArray:
        """Derivative of J by the logarithm of each weight: of a cosine, ``x y - (x² + y²) cos / 2`` by column."""
        mixing = _mixing(problem, labels, len(centers))
        sums = mixing @ problem.X
        sums = sums.toarray() if sparse.issparse(sums) else np.asarray(sums)
        near = (1 - row_costs(problem, centers, labels)) * problem.row_weights
        squares = problem.X.multiply(problem.X) if sparse.issparse(problem.X) else problem.X**2
        along = (sums * centers).sum(axis=0)
        around = np.asarray(squares.T @ near).ravel()
        around += (centers**2).T @ np.bincount(labels, weights=near, minlength=len(centers))
        gradient = around / 2 - along + problem.mass * (problem.column_weights - 1)
        return gradient + self._of_pairs(problem, labels[self._pairs.rows])

    def _of_pairs(self, problem: WeightedCosines, labels: Labels) -> FloatArray:
        must, cannot = self._pairs.broken(labels)
        broken = np.concatenate([must, cannot])
        prices = np.concatenate([self._prices[must], -self._prices[cannot]])
        near = self._cosines(problem)[broken] * prices
        first, second = (problem.X[self._pairs.rows[self._pairs.ends[broken, end]]] for end in range(2))
        if sparse.issparse(first):
            along = first.multiply(second).T @ prices
            around = (first.multiply(first) + second.multiply(second)).T @ near
        else:
            along, around = (first * second).T @ prices, (first**2 + second**2).T @ near
        return np.asarray(around).ravel() / 2 - np.asarray(along).ravel()


def _mixing(problem: Problem, labels: Labels, n_clusters: int) -> Any:
    """The matrix that adds up rows, times their weights, by cluster."""
    entries = (problem.row_weights, (labels, np.arange(problem.n_rows)))
    return sparse.csr_matrix(entries, shape=(n_clusters, problem.n_rows))
