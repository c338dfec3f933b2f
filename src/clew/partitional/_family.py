"""What the k-means relatives share: restarts, learned attributes, `predict` and `transform`."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import cosine_distances, euclidean_distances
from sklearn.utils.validation import check_is_fitted

from clew._base import WeightedClusterer
from clew._validation import NONE, RANDOM_STATE, Allowed, array_like, below_zero, check_rows, integer, number, words
from clew.constraints import Closure, Constraints
from clew.exceptions import ParameterError
from clew.partitional._lloyd import FloatArray, IntArray, Problem, Solution, nearest, row_costs
from clew.partitional._seeding import Start, cluster_labels, initial_centers

COMMON_PARAMETERS: dict[str, Allowed] = {
    "n_clusters": integer(1),
    "init": words("neighbourhoods", "k-means++") | array_like(),
    "leftover": words("k-means++", "mean"),
    "n_init": words("auto") | integer(1),
    "max_iter": integer(1),
    "tol": number(0),
    "metric": words("euclidean", "cosine"),
    "random_state": RANDOM_STATE,
    "n_jobs": integer(1) | below_zero() | NONE,
}


# With n_clusters="auto", the search ends after so many numbers without a lower criterion, or at a perfect fit.
_NUMBERS_WITHOUT_GAIN, _NO_COST = 5, 1e-12
# With n_init="auto", starts share a budget of rows: ten for small data, one from 100,000 rows on.
_MOST_STARTS, _ROWS_OF_ALL_STARTS = 10, 100_000


def _n_starts(n_init: int | str, n_rows: int) -> int:
    return min(_MOST_STARTS, max(1, _ROWS_OF_ALL_STARTS // n_rows)) if isinstance(n_init, str) else n_init


def _identified(found: Solution, classes: IntArray, clusters: IntArray) -> Solution:
    """The same clusters, numbered so that each class names the cluster with most of its rows, one to one."""
    known = np.flatnonzero((classes >= 0) & np.isin(classes, clusters))
    shared = np.zeros((len(clusters), len(clusters)), dtype=np.int64)
    wanted = np.searchsorted(clusters, classes[known], sorter=np.argsort(clusters))
    np.add.at(shared, (found.labels[known], np.argsort(clusters)[wanted]), 1)
    new_place = linear_sum_assignment(shared, maximize=True)[1]
    centers = np.empty_like(found.centers)
    centers[new_place] = found.centers
    labels = new_place.astype(np.int32)[found.labels]
    return found._replace(problem=found.problem.reordered(new_place), labels=labels, centers=centers)


def mixing_cost(found: Solution) -> float:
    """Minus twice the log-likelihood of which cluster each row is in, given the clusters' shares."""
    masses = np.bincount(found.labels, weights=found.problem.row_weights)
    masses = masses[masses > 0]
    return -2 * float(masses @ np.log(masses / masses.sum()))


def rows_seen(problem: Problem) -> float:
    """How many rows speak for a number of clusters: what they weigh, or their count where weights are shares."""
    weights = problem.row_weights
    return max(float(weights.sum()), float(np.count_nonzero(weights)))


class KMeansFamily(ClassNamePrefixFeaturesOutMixin, TransformerMixin, WeightedClusterer):  # type: ignore[misc]
    """Base of the k-means relatives; each supplies `_solve`, and its own constructor if it has more parameters."""

    _parameters: ClassVar[dict[str, Allowed]] = COMMON_PARAMETERS
    n_init: int | str
    cluster_centers_: npt.NDArray[Any]

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

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        """Run the method from one start."""
        raise NotImplementedError  # pragma: no cover

    @property
    def _geometry(self) -> str:
        """What a row costs before anything is learned: a squared distance, or one minus a cosine."""
        return self.metric

    @property
    def _learns_metric(self) -> bool:
        """Whether costs are measured in a metric that is learned."""
        return False

    def _restarts_anew(self) -> bool:
        """Whether knowledge acts beyond the start, so that further starts may leave the neighbourhoods."""
        return True

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        problem = self._prepare(X, weights)
        closed = constraints.closure()
        if isinstance(self.n_clusters, str):
            best, clusters = self._best_number(problem, constraints, closed, rng)
        else:
            clusters = cluster_labels(closed, self.n_clusters)
            best = self._best_start(problem, constraints, closed, clusters, rng)
        if self._capabilities.labels == "soft" and self._restarts_anew() and constraints.labels is not None:
            best = _identified(best, constraints.labels, clusters)
        if not best.converged:
            warnings.warn(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} with centre shift {best.shift:.1g} > "
                f"tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        # The rounds add up scores in an expanded form; the result is stated from the distances themselves.
        self.inertia_ = float(row_costs(best.problem, best.centers, best.labels) @ problem.row_weights)
        self.objective_ = best.unit * (self.inertia_ + best.price + best.problem.surplus(best.labels))
        self.objective_history_ = np.array([*best.history[:-1], self.objective_])
        self.n_iter_ = best.n_iter
        self.cluster_centers_ = best.problem.restored(best.centers)
        self._keep(best)
        self.cluster_labels_ = clusters
        self.cluster_sizes_ = np.bincount(best.labels, minlength=len(clusters))
        if self._parameters["n_clusters"].accepts("auto"):
            self.n_clusters_ = len(clusters)
        return self._named(best.labels)

    def _best_start(
        self, problem: Problem, constraints: Constraints, closed: Closure, clusters: IntArray, rng: np.random.Generator
    ) -> Solution:
        best: Solution | None = None
        anew = self._restarts_anew() and isinstance(self.init, str)
        for attempt in range(_n_starts(self.n_init, problem.n_rows)):
            again = anew and attempt > 0
            start = initial_centers(problem, closed, clusters, self.init, self.leftover, rng, again=again)
            found = self._solve(problem, constraints, closed, start, rng)
            if best is None or found.objective < best.objective:
                best = found
            if not start.drawn and not anew:
                break  # every further start would be this one
        assert best is not None
        return best

    def _best_number(
        self, problem: Problem, constraints: Constraints, closed: Closure, rng: np.random.Generator
    ) -> tuple[Solution, IntArray]:
        """The solution, over growing numbers of clusters, with the lowest criterion; and its clusters."""
        self._check_auto()
        least = max(1, len(np.unique(closed.labels[closed.labels >= 0])))
        most = max(least, int(np.ceil(np.sqrt(problem.n_rows))))
        lowest, found, since = np.inf, None, 0
        for n_clusters in range(least, most + 1):
            clusters = cluster_labels(closed, n_clusters)
            best = self._best_start(problem, constraints, closed, clusters, rng)
            criterion = self._criterion(best, n_clusters)
            since += 1
            if found is None or criterion < lowest:
                lowest, found, since = criterion, (best, clusters), 0
            if since == _NUMBERS_WITHOUT_GAIN or lowest == -np.inf:
                break
        assert found is not None
        return found

    def _check_auto(self) -> None:
        if self._geometry != "euclidean":
            raise ParameterError(
                f"n_clusters='auto' in {type(self).__name__} needs metric='euclidean': its criterion is a likelihood "
                "of distances. Give a number."
            )
        if not isinstance(self.init, str):
            raise ParameterError(
                f"n_clusters='auto' in {type(self).__name__}: init is an array, which fixes the number. Give a number."
            )

    def _criterion(self, found: Solution, n_clusters: int) -> float:
        """Bayesian criterion of Gaussians of one unknown spread, the prices of pairs included."""
        problem = found.problem
        total, n_columns = float(problem.row_weights.sum()), problem.X.shape[1]
        cost = max(found.objective, 0.0)
        if cost <= _NO_COST * problem.scale:
            return -np.inf
        spread = total * n_columns * np.log(cost / (total * n_columns))
        n_seen = rows_seen(problem)
        return float((spread + mixing_cost(found)) * n_seen / total + n_clusters * (n_columns + 1) * np.log(n_seen))

    def _prepare(self, X: Any, weights: FloatArray) -> Problem:
        """Rows as the first round sees them."""
        return Problem.prepare(X, weights, self.metric, self.n_jobs)

    def _measure(self, X: Any) -> Problem:
        """New rows as the last round would have seen them."""
        return self._prepare(X, np.empty(0))

    def _keep(self, found: Solution) -> None:
        """Set the learned attributes of this method alone."""

    def _named(self, labels: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
        clusters = self.cluster_labels_
        small = clusters.max(initial=0) <= np.iinfo(np.int32).max
        return clusters[labels].astype(np.int32) if small else clusters[labels]

    def _check_new_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return check_rows(self, X, reset=False, accept_sparse=self._capabilities.sparse)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The label of the nearest centre of each row; constraints play no part.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        problem = self._measure(self._check_new_rows(X))
        return self._named(nearest(problem, problem.placed(self.cluster_centers_)))

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Distance of each row to every centre (one minus cosine for ``metric="cosine"``).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        distances = cosine_distances if self.metric == "cosine" else euclidean_distances
        return np.asarray(distances(self._check_new_rows(X), self.cluster_centers_))

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
