"""Learn a Mahalanobis distance under which must-linked rows are near and cannot-linked rows are far.

Xing et al. 2003 (`xing2003`); Truong & Battiti 2013 (`truong2013`), section 3.3, Eq. 29-37 and Algorithm 10.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from clew._base import Capabilities, warn_caller
from clew._persistence import Learned
from clew._validation import Allowed, above, integer, number, words
from clew.constraints import Constraints
from clew.exceptions import ConstraintError
from clew.metric._family import MetricLearner
from clew.metric._pairs import learning_pairs

FloatArray = npt.NDArray[np.float64]

# Must-linked rows count as equal in a direction if they differ there by less than this share of the largest difference.
_RANK_TOLERANCE = 1e-10
# A step must gain at least this share of the gain that the gradient promises (Armijo's rule).
_ARMIJO = 1e-4
# Steps shorter than this end the search: rounding hides any further gain.
_SHORTEST_STEP = 1e-14
# A gradient step may set entries of the diagonal below this to 0 (the sum of all entries is about 1/2).
_NEAR_ZERO = 1e-3
# This share of the trace is added to the Hessian's diagonal: with few cannot-links the Hessian is singular.
_DAMPING = 1e-9
# The check that `tol` is reached costs as much as a step, so it is made once in this many steps.
_STEPS_PER_CHECK = 5


class MahalanobisLearner(MetricLearner):
    r"""Learns a Mahalanobis distance under which must-linked rows are near and cannot-linked rows are far.

    The metric is one weight per column (``metric="diagonal"``) or a matrix that also mixes columns
    (``metric="full"``). Put it before any clusterer, in a pipeline or by calling `transform`. Use it when columns
    differ in unit or importance and the clusterer does not learn a metric itself.

    Parameters
    ----------
    metric : {"full", "diagonal"}, default="full"
        ``"full"`` needs more pairs: it learns d (d + 1) / 2 numbers for d columns, and ``"diagonal"`` learns d.
    regularization : float, default=0.3
        Weight of the variance of all rows, relative to the differences of must-linked rows. The fewer pairs there are,
        the larger it should be. With 0, must-linked rows must differ in every direction in which cannot-linked rows
        differ, which takes at least as many must-links as columns.
    max_iter : int, default=1000
    tol : float, default=1e-4
        The search stops when no metric can have an objective that is lower by more than this.
    min_confidence : float, default=0.0
        Pairs with a lower confidence are left out.

    Attributes
    ----------
    metric_matrix_ : ndarray of shape (n_features, n_features)
        The matrix A below, scaled so that the total variance of the transformed rows equals that of X.
    components_ : ndarray of shape (n_features, n_features)
        The symmetric square root of A. `transform` multiplies rows by it.
    objective_ : float
        J below, at the returned A.
    objective_history_ : ndarray
        J at the start and after each step. It never rises.
    n_iter_ : int
        Number of steps, at least 1.

    Notes
    -----
    Constraints: labels and both kinds of pairs are soft. Confidences are weights w. Classes and groups are replaced by
    all their pairs, or by a sample of 100,000 if there are more. A triplet (a, b, c) adds the pair (a, b) to the
    must-links and (a, c) to the cannot-links. The learner minimises, over positive semi-definite matrices A,

    .. math:: J(A) = \frac{1}{2} \ln \Big( \frac{1}{W_{ML}} \sum_{ML} w_{ij} \lVert x_i - x_j \rVert_A^2
              + 2 \lambda \sum_f A_{ff} s_f^2 \Big)
              - \ln \Big( \frac{1}{W_{CL}} \sum_{CL} w_{ij} \lVert x_i - x_j \rVert_A \Big)

    where W are the sums of the weights, :math:`s_f^2` is the variance of column f, and :math:`\lambda` is
    `regularization`. Multiplying A by a constant does not change J. Rescaling a column of X changes the entries of A,
    but not the distances. For :math:`\lambda = 0` the minimum solves both problems of [1]_. The full problem maximises
    the sum of the cannot-linked distances, while the sum of the squared must-linked distances is at most 1. The
    diagonal problem minimises the latter sum minus the logarithm of the former. The distances of cannot-linked rows are
    not squared, because squares would put all weight on one direction.

    A change of coordinates turns the first mean into the trace of A. The admissible matrices are then those of trace 1,
    and projecting onto them takes one projection of the eigenvalues onto a simplex, whereas [1]_ projects onto two sets
    in turn. Gradient steps are accelerated, with a line search. The diagonal problem is solved by a projected Newton
    method. Both stop when the largest eigenvalue (or entry) of the gradient proves that `tol` is reached.

    Without constraints the metric is Euclidean. Time O(t (m d^2 + d^3)) for t steps and m pairs; memory O(m d) beyond
    X.

    References
    ----------
    .. [1] E. P. Xing, A. Y. Ng, M. I. Jordan, S. Russell (2003). "Distance metric learning with application to
       clustering with side-information." NIPS 15.
    .. [2] T. Truong, R. Battiti (2013). "A Survey of Semi-Supervised Clustering Algorithms: from a priori scheme to
       interactive scheme and open issues." Section 3.3, Eq. 29-37, Algorithm 10.

    Examples
    --------
    >>> from clew import MahalanobisLearner
    >>> X = [[0.0, 0.0], [9.0, 0.0], [0.0, 1.0], [9.0, 1.0]]
    >>> known = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(0, 2), (1, 2)]}
    >>> model = MahalanobisLearner(metric="diagonal").fit(X, constraints=known)
    >>> model.transform(X).round(1)
    array([[0. , 0. ],
           [0. , 0. ],
           [0. , 9.1],
           [0. , 9.1]])
    """

    _capabilities = Capabilities(
        labels="soft", must_link="soft", cannot_link="soft", triplets="soft", predicts=True, monotone=True,
        needs_both_kinds=True,
    )  # fmt: skip
    _parameters: ClassVar[dict[str, Allowed]] = {
        "metric": words("full", "diagonal"),
        "regularization": number(0),
        "max_iter": integer(1),
        "tol": above(0),
        "min_confidence": number(0, 1),
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **MetricLearner._learned_attributes,
        "metric_matrix_": Learned("real", (("columns", "columns"),)),
        "components_": Learned("real", (("columns", "columns"),)),
        "objective_": Learned("real"),
        "objective_history_": Learned("real", ((None,),)),
        "n_iter_": Learned("integer", low=1),
    }

    def __init__(
        self,
        *,
        metric: str = "full",
        regularization: float = 0.3,
        max_iter: int = 1000,
        tol: float = 1e-4,
        min_confidence: float = 0.0,
    ) -> None:
        self.metric = metric
        self.regularization = regularization
        self.max_iter = max_iter
        self.tol = tol
        self.min_confidence = min_confidence

    @classmethod
    def _examples(cls) -> list[MahalanobisLearner]:
        return [cls(), cls(metric="diagonal")]

    def _fit(self, X: Any, constraints: Constraints, rng: np.random.Generator) -> None:
        rows = X.astype(np.float64)
        spread = rows.std(axis=0)
        spread[spread == 0] = 1.0
        found = self._learned((rows - rows.mean(axis=0)) / spread, constraints, rng)
        if found is None:
            self.metric_matrix_ = self.components_ = np.eye(X.shape[1], dtype=X.dtype)
            self.objective_, self.objective_history_, self.n_iter_ = 0.0, np.zeros(1), 1
            return
        matrix = found.matrix / np.outer(spread, spread)
        matrix *= rows.var(axis=0).sum() / np.vdot(matrix, np.atleast_2d(np.cov(rows.T, bias=True)))
        values, vectors = np.linalg.eigh(matrix)
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        self.metric_matrix_, self.components_ = matrix.astype(X.dtype), root.astype(X.dtype)
        self.objective_, self.objective_history_ = float(found.history[-1]), found.history
        self.n_iter_ = max(len(found.history) - 1, 1)
        if found.gap > self.tol:
            warn_caller(
                f"{type(self).__name__} stopped after {self.n_iter_} steps with an objective that may be "
                f"{found.gap:.2g} > tol={self.tol:g} above the lowest. Raise max_iter or tol.",
                ConvergenceWarning,
            )

    def _learned(self, rows: FloatArray, constraints: Constraints, rng: np.random.Generator) -> LearnedMetric | None:
        """Learn the metric for columns of variance 1; None without constraints."""
        pairs = learning_pairs(constraints, rng, triplets=True)
        if not len(pairs.near.pairs) and not len(pairs.far.pairs):
            return None
        pairs.require_both(type(self).__name__, rows)
        near, far = pairs.near.differences(rows), pairs.far.differences(rows)
        differs = far.any(axis=1)
        scatter = (near * (pairs.near.weights / pairs.near.weights.sum())[:, None]).T @ near
        scatter[np.diag_indices_from(scatter)] += 2 * self.regularization * rows.var(axis=0)
        weights = pairs.far.weights / pairs.far.weights.sum()
        learn = learn_full if self.metric == "full" else learn_diagonal
        return learn(scatter, far[differs], weights[differs], self.max_iter, self.tol)

    def _transform(self, X: Any) -> npt.NDArray[Any]:
        return np.asarray(X @ self.components_.astype(X.dtype, copy=False))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class LearnedMetric(NamedTuple):
    """A matrix A, the objective J after each step, and an upper bound on how far J is above its minimum."""

    matrix: FloatArray
    history: FloatArray
    gap: float


def learn_full(scatter: FloatArray, far: FloatArray, weights: FloatArray, max_iter: int, tol: float) -> LearnedMetric:
    """Minimise J over all matrices by accelerated projected gradient steps.

    Parameters
    ----------
    scatter : ndarray of shape (n_features, n_features)
        The regularised mean of x xᵀ over the differences x of must-linked rows, so that the mean squared distance is
        trace(A scatter).
    far : ndarray of shape (n_pairs, n_features)
        Differences of cannot-linked rows, none of them 0.
    weights : ndarray of shape (n_pairs,)
        Weights of these differences.
    """
    values, vectors = np.linalg.eigh(scatter)
    kept = values > _RANK_TOLERANCE * values.max(initial=0)
    _refuse_unbounded(far, far @ vectors[:, ~kept])
    whiten = vectors[:, kept] / np.sqrt(values[kept])  # in these coordinates the scatter is the identity
    pairs = far @ whiten
    point = ahead = np.eye(pairs.shape[1]) / pairs.shape[1]
    squares = squares_ahead = _squares(pairs, point)
    value = float(weights @ np.sqrt(squares))
    history, momentum, step, gap = [-np.log(value)], 1.0, 1.0, np.inf
    while len(history) <= max_iter and step > _SHORTEST_STEP:
        if len(history) % _STEPS_PER_CHECK == 1 and (gap := _gap(pairs, weights, squares)) <= tol:
            break
        slope = _gradient(pairs, weights, squares_ahead)
        value_ahead = weights @ np.sqrt(squares_ahead)
        while True:
            new = _with_trace_one(ahead + step * slope)
            move, new_squares = new - ahead, _squares(pairs, new)
            new_value = float(weights @ np.sqrt(new_squares))
            promised = np.vdot(slope, move) - np.vdot(move, move) / (2 * step)
            if np.log(new_value / value_ahead) >= promised or step <= _SHORTEST_STEP:
                break
            step /= 2
        if new_value <= value:  # restart without momentum and with a shorter step
            ahead, squares_ahead, momentum, step = point, squares, 1.0, step / 2
            continue
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        beyond = (momentum - 1) / following
        ahead, squares_ahead = new + beyond * (new - point), new_squares + beyond * (new_squares - squares)
        if (squares_ahead <= 0).any():
            ahead, squares_ahead = new, new_squares
        point, squares, value, momentum, step = new, new_squares, new_value, following, 1.5 * step
        history.append(-np.log(value))
    gap = min(gap, _gap(pairs, weights, squares))
    return LearnedMetric(whiten @ point @ whiten.T, np.array(history), max(gap, 0.0))


def _refuse_unbounded(far: FloatArray, outside: FloatArray) -> None:
    """Raise if cannot-linked rows differ in a direction in which must-linked rows are equal: J then has no minimum."""
    if (np.linalg.norm(outside, axis=1) > np.sqrt(_RANK_TOLERANCE) * np.linalg.norm(far, axis=1)).any():
        n_columns, n_missing = far.shape[1], outside.shape[1]
        raise ConstraintError(
            f"The must-linked rows differ in {n_columns - n_missing} of {n_columns} directions of X, and cannot-linked "
            f"rows differ in more, so there are too few must-links to learn from. Set regularization above 0, or add "
            "must-links."
        )


def _squares(pairs: FloatArray, matrix: FloatArray) -> FloatArray:
    """Squared lengths of differences, kept above 0 despite rounding: at 0 the gradient is infinite."""
    return np.asarray(np.maximum(np.einsum("ij,ij->i", pairs @ matrix, pairs), np.finfo(np.float64).tiny))


def _gradient(pairs: FloatArray, weights: FloatArray, squares: FloatArray) -> FloatArray:
    """The gradient of the logarithm of the mean distance with respect to the matrix."""
    lengths = np.sqrt(squares)
    scaled = pairs * (weights / (2 * lengths * (weights @ lengths)))[:, None]
    return np.asarray(scaled.T @ pairs)


def _gap(pairs: FloatArray, weights: FloatArray, squares: FloatArray) -> float:
    """Upper bound on the gain of any matrix of trace 1: the function is concave, and gradient times matrix is 1/2."""
    return float(np.linalg.eigvalsh(_gradient(pairs, weights, squares))[-1]) - 0.5


def _with_trace_one(matrix: FloatArray) -> FloatArray:
    """Nearest positive semi-definite matrix of trace 1: project the eigenvalues onto a simplex."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    falling = values[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    shift = excess[np.flatnonzero(falling > excess)[-1]]
    return np.asarray((vectors * np.maximum(values - shift, 0)) @ vectors.T)


def learn_diagonal(
    scatter: FloatArray, far: FloatArray, weights: FloatArray, max_iter: int, tol: float
) -> LearnedMetric:
    """Minimise J over diagonal matrices by a projected Newton method; parameters as in `learn_full`.

    Columns are scaled so that the mean square of the must-linked differences is 1. Then sum(a) - log(mean distance) is
    minimised for a >= 0 (Eq. 33). Entries near 0 that the gradient would lower take a gradient step, which ends at 0.
    All other entries take a Newton step.
    """
    spread = np.diag(scatter).copy()
    kept = spread > _RANK_TOLERANCE * spread.max(initial=0)
    _refuse_unbounded(far, far[:, ~kept])
    squares = far[:, kept] ** 2 / spread[kept]
    point = np.full(squares.shape[1], 0.5 / squares.shape[1])
    lengths = np.sqrt(squares @ point)
    history = [_scale_free(point, weights @ lengths)]
    gap = np.inf
    while len(history) <= max_iter:
        mean = weights @ lengths
        slope_of_mean = squares.T @ (weights / (2 * lengths))
        gap = float(slope_of_mean.max() * point.sum() / mean) - 0.5
        if gap <= tol:
            break
        slope = 1 - slope_of_mean / mean
        near_zero = min(_NEAR_ZERO, float(np.abs(point - np.maximum(point - slope, 0)).max()))
        free = (point > near_zero) | (slope < 0)
        some = squares[:, free]
        curvature = np.outer(slope_of_mean[free], slope_of_mean[free]) / mean**2
        curvature += (some * (weights / (4 * lengths**3 * mean))[:, None]).T @ some
        curvature[np.diag_indices_from(curvature)] += _DAMPING * np.trace(curvature)
        direction = -slope
        direction[free] = -np.linalg.solve(curvature, slope[free])
        step, cost = 1.0, point.sum() - np.log(mean)
        while step > _SHORTEST_STEP:
            new = np.maximum(point + step * direction, 0)
            new_lengths = np.sqrt(squares @ new)
            if (new_lengths > 0).all():
                new_cost = new.sum() - np.log(weights @ new_lengths)
                if new_cost <= cost + _ARMIJO * slope @ (new - point) and new_cost < cost:
                    break
            step /= 2
        else:
            break
        point, lengths = new, new_lengths
        history.append(_scale_free(point, weights @ lengths))
    matrix = np.zeros_like(scatter)
    matrix[kept, kept] = point / spread[kept]
    return LearnedMetric(matrix, np.minimum.accumulate(history), max(gap, 0.0))


def _scale_free(point: FloatArray, mean: float) -> float:
    return float(np.log(point.sum()) / 2 - np.log(mean))
