"""K-means as a hidden Markov random field over the labels of paired rows, with learned column weights.

Basu, Bilenko and Mooney 2004 (`basu2004b`); survey (`truong2013`) section 3.2.1, Eq. 17 to 28 and Algorithm 9.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.metrics.pairwise import cosine_distances

from clew._persistence import Learned
from clew._validation import Allowed, number
from clew.constraints import Closure, Constraints
from clew.kernels.pairs import assign_rows
from clew.kernels.sparse_rows import add_sparse_rows, multiply_own
from clew.partitional._family import COMMON_PARAMETERS, SOFT_CONSTRAINTS, KMeansFamily
from clew.partitional._geometry import CosineRows, FloatArray, Labels, Problem, unit_rows, with_data
from clew.partitional._learned_metric import MetricProblem
from clew.partitional._lloyd import Policy, Solution, lloyd
from clew.partitional._mpck_means import learned_distances, mpck_means
from clew.partitional._pairs import Pairs
from clew.partitional._seeding import Start
from clew.partitional._units import Units

# Largest number of gradient steps of the column weights per round, and of halvings of a step that does not help.
_MOST_STEPS, _MOST_HALVINGS = 5, 10
# Relative gain of a step below which no further step is taken in a round.
_NO_GAIN = 1e-6
# Bound on the logarithms of weights, against overflow.
_WIDEST = 30.0


class HMRFKMeans(KMeansFamily):
    r"""K-means with learned column weights. The price of a broken pair depends on the distance between its rows.

    All clusters share one weight per column. A broken must-link costs the distance between its rows. A broken
    cannot-link costs the longest distance minus the distance between its rows. All distances use the weights.
    ``metric="cosine"`` is made for text: CSR rows stay sparse. Use it when some columns, or words, matter more than
    others. For full matrices, or weights for each cluster, see `MPCKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    metric : {"euclidean", "cosine"}, default="euclidean"
        Squared distance to the centre, or one minus the cosine, of weighted columns.
    penalty : float, default=1.0
        Weight of a broken pair, multiplied by its confidence. With 0, pairs only affect the start.
    init, leftover, n_init, max_iter, tol, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_labels_, cluster_sizes_, objective_history_, n_iter_, violated_must_link_, violated_cannot_link_
        As in `KMeansFamily`.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        In the units of X; of length one for cosines.
    metrics_ : ndarray of shape (1, n_features)
        The learned column weights a. For cosines their mean is 1, weighted by the mass of each column (see Notes).
    inertia_ : float
        Weighted sum of the rows' distances to their centres, under the weights.
    objective_ : float
        J below.

    Notes
    -----
    Constraints: all soft. Minimises, over labels, centres and weights,

    .. math:: J = \sum_i D_a(x_i, c_{z_i}) + \lambda \sum_{ML} w_{ij} [z_i \neq z_j] D_a(x_i, x_j)
              + \lambda \sum_{CL} w_{ij} [z_i = z_j] \big( D_{\max} - D_a(x_i, x_j) \big)
              - \mu \log \det \operatorname{diag} a

    The log-determinant comes from the normaliser of the model. Without it all weights would shrink to 0.
    Euclidean: D is the weighted squared distance, D_max the squared diagonal of the bounding box of all rows under the
    current weights, and mu the number of rows. The best weights have a closed form. As in `MPCKMeans` with a shared
    diagonal metric, a prior of a few unseen rows keeps them finite.
    Cosine: D is one minus the cosine of rows whose columns are multiplied by the square roots of a. D_max is 1 for data
    without negative numbers, else 2. In the log-determinant, the logarithm of each weight is multiplied by the mass of
    its column: the sum of its squares in rows of length one, times the mean cost of a row if all rows share one centre.
    So the weight of a rare word has a weak prior. Cosines do not depend on the scale of a, which is fixed by a mean of
    1, weighted by mass. The weights take up to five gradient steps in each round, and a step is halved until J falls.
    Only given pairs are priced, each once at its highest confidence; groups and classes are expanded to pairs, up to
    two million.

    Time O(t (n k d + m k + m d)) for t rounds and m pairs, with d the non-zero columns of a row for CSR data; memory
    O(n + k d + m k) beyond three copies of X in double precision.
    Departs from [1]_: rows move one at a time in seeded random order, once a round. The longest distance is that of the
    bounding box. The prior of the weights is the log-determinant. An empty cluster restarts at the row farthest from
    its centre.

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

    _capabilities = replace(SOFT_CONSTRAINTS, monotone=True)
    _parameters: ClassVar[dict[str, Allowed]] = {**COMMON_PARAMETERS, "penalty": number(0)}
    metrics_: FloatArray
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **KMeansFamily._learned_attributes,
        "metrics_": Learned("real", ((1, "columns"),), low=float(np.finfo(np.float64).tiny)),
    }

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
            return WeightedCosines.weighed(X, weights, self.n_jobs, metrics[0])
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
class WeightedCosines(CosineRows):
    """Rows of length one whose columns are multiplied by square roots of weights. `given` are the unweighted rows.

    The mean of the weights, weighted by `mass`, is 1. So the log-determinant is never above 0.
    """

    given: Any = None
    column_weights: FloatArray = field(default_factory=lambda: np.ones(1))
    dtype: Any = np.float64
    mass: FloatArray = field(default_factory=lambda: np.ones(1))  # factor of each column in the log-determinant

    @classmethod
    def weighed(cls, X: Any, weights: FloatArray, n_jobs: int | None, column_weights: FloatArray) -> WeightedCosines:
        """Weight the columns, in double precision. Rows are scaled to length one before and after."""
        given = unit_rows(X.astype(np.float64))
        if sparse.issparse(given):
            given.sum_duplicates()
        rows = _weigh(given, column_weights)
        shift = np.zeros(X.shape[1])
        plain = CosineRows(given, weights, shift)
        mass = (plain.mean_cost or 1.0) * np.asarray(_squares(given).T @ plain.row_weights).ravel()
        return cls(rows, weights, shift, effective_n_jobs(n_jobs), given, column_weights, X.dtype, mass)

    @property
    def form(self) -> FloatArray:
        """The weights as a metric."""
        return self.column_weights[None]

    @property
    def constant(self) -> float:
        """The log-determinant, the only term that is not in the scores."""
        return -float(self.mass @ np.log(self.column_weights))

    @property
    def scale(self) -> float:
        """Size of the terms of the objective."""
        return float(self.row_weights.sum()) + abs(self.constant)

    def surplus(self, labels: Labels) -> float:
        return self.constant

    def placed(self, centers: npt.NDArray[Any]) -> FloatArray:
        return np.asarray(_weigh(centers.astype(np.float64), self.column_weights))

    def restored(self, centers: FloatArray) -> Any:
        return unit_rows(centers / np.sqrt(self.column_weights)).astype(self.dtype)

    def scaled(self, column_weights: FloatArray) -> FloatArray:
        """Scale weights to a mean of 1, weighted by mass."""
        total = self.mass.sum()
        return column_weights * (total / (self.mass @ column_weights) if total > 0 else 1.0)

    def weighed_anew(self, column_weights: FloatArray) -> WeightedCosines:
        """The same rows with other weights, which are scaled first."""
        return replace(self, X=_weigh(self.given, column_weights), column_weights=column_weights)


def _weigh(X: Any, column_weights: FloatArray) -> Any:
    roots = np.sqrt(column_weights)
    return unit_rows(with_data(X, X.data * roots[X.indices]) if sparse.issparse(X) else X * roots)


def _squares(X: Any) -> Any:
    return with_data(X, X.data**2) if sparse.issparse(X) else X**2


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
    """Algorithm 9 for cosines: assign the rows, move the centres, update the weights."""
    pairs = Pairs.of(constraints) if penalty > 0 else Pairs.of(Constraints(n_samples=problem.n_rows))
    policy = _CosinePolicy(problem, pairs, penalty, rng)
    units = Units.contract(problem, pairs.rows, np.arange(len(pairs.rows)), len(pairs.rows)) if len(pairs) else None
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol)


class _CosinePolicy(Policy):
    """Move rows in pairs one at a time, then update the column weights.

    For rows g without weights, the length of row i under weights a is the square root of ``g_i² @ a``, and the inner
    product of two rows is ``(g_i * g_j) @ a``. The squares and products of g are computed once.
    """

    def __init__(self, problem: WeightedCosines, pairs: Pairs, penalty: float, rng: np.random.Generator) -> None:
        self._pairs, self._rng, self._prices = pairs, rng, penalty * pairs.confidence
        given = problem.given
        values = given.data if sparse.issparse(given) else given
        self._longest = 1.0 if values.min(initial=0.0) >= 0 else 2.0
        self._step = 1.0
        self._squares = _squares(given)
        self._ends = pairs.rows[pairs.ends]
        first, second = (given[self._ends[:, end]] for end in range(2))
        self._products = first.multiply(second).tocsr() if sparse.issparse(given) else first * second

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        assert isinstance(problem, WeightedCosines)
        n_clusters, pairs = len(centers), self._pairs
        lengths = 1 - self._cosines(problem.column_weights, self._norms(problem.column_weights))
        table = np.ascontiguousarray(np.broadcast_to(lengths[:, None], (len(lengths), n_clusters)))
        arrays = (pairs.ends, pairs.must, self._prices, pairs.pair_ptr, pairs.pair_of)
        work, longest, score = np.empty(n_clusters), np.full(n_clusters, self._longest), 0.0
        for chosen, costs in units.costs(problem, centers, self._rng.permutation(len(units))):
            score += assign_rows(np.ascontiguousarray(chosen), costs, *arrays, table, longest, labels, work)
        return score, self._price(lengths, labels)

    def _norms(self, column_weights: FloatArray) -> FloatArray:
        """Length of each row under the weights; 1 for a row of zeros."""
        norms = np.sqrt(self._squares @ column_weights)
        return np.where(norms > 0, norms, 1.0)

    def _cosines(self, column_weights: FloatArray, norms: FloatArray) -> FloatArray:
        """Cosine of the two rows of each pair, under the weights."""
        inner = np.asarray(self._products @ column_weights) / norms[self._ends].prod(axis=1)
        return inner.clip(-1, 1)

    def _price(self, lengths: FloatArray, labels: Labels) -> float:
        must, cannot = self._pairs.broken(labels)
        return float(self._prices[must] @ lengths[must] + self._prices[cannot] @ (self._longest - lengths[cannot]))

    def learn(self, problem: Problem, centers: FloatArray, labels: Labels) -> tuple[Problem, FloatArray]:
        """Gradient descent on the logarithms of the weights; a step is halved until the objective falls."""
        assert isinstance(problem, WeightedCosines)
        clusters = _Clusters(problem, labels, len(centers))
        first = now = self._weighed(problem, clusters, problem.column_weights)
        for _ in range(_MOST_STEPS):
            stepped = self._stepped(problem, clusters, now)
            if stepped is None:
                break
            before, now = now, stepped
            if before.objective - now.objective < _NO_GAIN * problem.scale:
                break
        if now is first:
            return problem, centers
        learned = problem.weighed_anew(now.column_weights)
        kept = learned.placed(problem.restored(centers).astype(np.float64))  # centres of clusters without rows
        return learned, np.where(now.lengths[:, None] > 0, now.sums / now.divisors[:, None], kept)

    def _weighed(self, problem: WeightedCosines, clusters: _Clusters, column_weights: FloatArray) -> _WeighedColumns:
        """J for fixed labels and given weights, with the best centres."""
        norms = self._norms(column_weights)
        sums = clusters.sums(column_weights, norms)
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        cosines = self._cosines(column_weights, norms)
        price = self._price(1 - cosines, clusters.labels[self._pairs.rows])
        within = float((clusters.masses - lengths).sum())
        objective = within + price - float(problem.mass @ np.log(column_weights))
        return _WeighedColumns(column_weights, norms, sums, lengths, cosines, objective)

    def _stepped(self, problem: WeightedCosines, clusters: _Clusters, now: _WeighedColumns) -> _WeighedColumns | None:
        """Weights after one step that lowers the objective; None if no step does."""
        gradient = self._gradient(problem, clusters, now)
        logarithms = np.log(now.column_weights)
        # The second derivative of the log-determinant is mass * weight. Without the weight, steps are too long for
        # weights above 1 and most have to be halved.
        direction = gradient / (np.where(problem.mass > 0, problem.mass, 1) * np.maximum(now.column_weights, 1))
        for _ in range(_MOST_HALVINGS):
            moved = np.exp(np.clip(logarithms - self._step * direction, -_WIDEST, _WIDEST))
            candidate = self._weighed(problem, clusters, problem.scaled(moved))
            if candidate.objective < now.objective:
                self._step = min(2 * self._step, 1.0)
                return candidate
            self._step /= 2
        self._step = 1.0
        return None

    def _gradient(self, problem: WeightedCosines, clusters: _Clusters, now: _WeighedColumns) -> FloatArray:
        """Derivative of J with respect to the logarithm of each weight.

        In each column, the derivative of a cosine is ``x y - (x² + y²) cos / 2``. The cosines of a cluster's rows with
        its centre add up to the length of the sum of these rows.
        """
        near = clusters.cosines(now) * problem.row_weights
        around = np.asarray(self._squares.T @ (near / now.norms**2)).ravel() * now.column_weights
        along = np.einsum("ij,ij->j", now.sums, now.sums / now.divisors[:, None])
        gradient = (around - along) / 2 + problem.mass * (now.column_weights - 1)
        return gradient + self._of_pairs(now, clusters.labels[self._pairs.rows])

    def _of_pairs(self, now: _WeighedColumns, labels: Labels) -> FloatArray:
        must, cannot = self._pairs.broken(labels)
        broken = np.concatenate([must, cannot])
        prices = np.concatenate([self._prices[must], -self._prices[cannot]])
        squares = now.norms[self._ends[broken]] ** 2
        near = now.cosines[broken] * prices
        along = np.asarray(self._products[broken].T @ (prices / np.sqrt(squares.prod(axis=1)))).ravel()
        around = sum(
            np.asarray(self._squares[self._ends[broken, end]].T @ (near / squares[:, end])).ravel() for end in range(2)
        )
        return now.column_weights * (around / 2 - along)


class _WeighedColumns(NamedTuple):
    """Column weights, with the sums, cosines and objective that they give for fixed clusters."""

    column_weights: FloatArray
    norms: FloatArray
    sums: FloatArray  # of the rows of each cluster; a centre is a sum over its length
    lengths: FloatArray
    cosines: FloatArray  # of the rows of each pair
    objective: float

    @property
    def divisors(self) -> FloatArray:
        """Lengths of the sums; 1 for a length of 0."""
        return np.where(self.lengths > 0, self.lengths, 1.0)


class _Clusters:
    """Rows grouped by cluster, so that sums and cosines under new weights take one pass over the entries."""

    def __init__(self, problem: WeightedCosines, labels: Labels, n_clusters: int) -> None:
        self.labels, self._given, self._weights = labels, problem.given, problem.row_weights
        self.masses = np.bincount(labels, weights=self._weights, minlength=n_clusters)
        self._shape = (n_clusters, problem.X.shape[1])

    def sums(self, column_weights: FloatArray, norms: FloatArray) -> FloatArray:
        """Sum of the weighted rows of each cluster, under the column weights."""
        shares = self._weights / norms
        if sparse.issparse(self._given):
            sums = np.zeros(self._shape)
            add_sparse_rows(*_arrays(self._given), shares, self.labels, sums)
        else:
            rows = np.arange(len(self.labels))
            sums = sparse.csr_array((shares, (self.labels, rows)), shape=(self._shape[0], len(rows))) @ self._given
        return np.asarray(sums * np.sqrt(column_weights), dtype=np.float64)

    def cosines(self, now: _WeighedColumns) -> FloatArray:
        """Cosine of each row with the centre of its cluster."""
        centers = now.sums * np.sqrt(now.column_weights) / now.divisors[:, None]
        if sparse.issparse(self._given):
            inner = np.empty(len(self.labels))
            multiply_own(*_arrays(self._given), centers, self.labels, inner)
        else:
            inner = np.einsum("ij,ij->i", self._given, centers[self.labels])
        return np.asarray(inner / now.norms)


def _arrays(rows: Any) -> tuple[npt.NDArray[Any], ...]:
    """The arrays of CSR rows in the order that kernels take them."""
    return rows.data, rows.indices, rows.indptr
