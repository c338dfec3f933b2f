"""Scores without duals: cluster again without each constraint, or with that constraint alone.

Randel, Aloise, Blanchard and Hertz 2021 (`randel2021`), thesis section 5.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from clew._base import quietly
from clew._validation import as_generator, check_matrix
from clew.audit._answers import constraints_from
from clew.audit._models import check_model, check_n_clusters
from clew.constraints import Constraints
from clew.medoids import ConstrainedKMedoids
from clew.partitional import COPKMeans

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Thresholds of thesis 5.4.2, for scores divided by the lowest score of their kind.
_OPTIMISTIC_THRESHOLD, _PESSIMISTIC_THRESHOLD = 0.15, 0.0
# Differences below this share of the cost are rounding errors.
_ROUNDING = 1e-9
# Number of shakes of k-medoids in each clustering.
_SHAKES = 20


@dataclass(frozen=True)
class NaiveImpact:
    """Scores of `optimistic` and `pessimistic`: 0 if a constraint changes nothing, else negative.

    Attributes
    ----------
    must_link_score, cannot_link_score : ndarray of shape (n_pairs,)
    base_cost : float
        Cost with all constraints (optimistic) or with none (pessimistic).
    threshold : float
        A constraint is suspect if its score, divided by the lowest score of its kind, exceeds this number.
    """

    must_link_score: FloatArray
    cannot_link_score: FloatArray
    base_cost: float
    threshold: float

    @property
    def must_link_suspect(self) -> BoolArray:
        """Which must-links look wrong."""
        return self._suspect(self.must_link_score)

    @property
    def cannot_link_suspect(self) -> BoolArray:
        """Which cannot-links look wrong."""
        return self._suspect(self.cannot_link_score)

    def _suspect(self, scores: FloatArray) -> BoolArray:
        return (scores < 0) & (scores <= self.threshold * scores.min(initial=0.0))


@quietly()
def optimistic(
    X: Any,
    constraints: Any,
    n_clusters: int,
    model: str = "kmeans",
    *,
    metric: Any = "euclidean",
    random_state: Any = 0,
) -> NaiveImpact:
    """Compare the cost with all constraints and the cost without each one.

    If two wrong constraints both hold a row in the wrong cluster, this method misses them, because leaving out one of
    them changes nothing. It clusters from several starts for each pair. `impact` is better and faster.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraints : Constraints, dict, frame, path, or list of answers as in `review`
        All pairs must be satisfiable together.
    n_clusters : int
    model : {"kmeans", "kmedoids"}, default="kmeans"
        The criterion: squared distances to means (`COPKMeans`), or distances to medoids (`ConstrainedKMedoids`).
    metric : str or callable, default="euclidean"
        Of k-medoids, as in `ConstrainedKMedoids`.
    random_state : int, Generator, RandomState or None, default=0

    Raises
    ------
    ContradictoryConstraintsError, InfeasibleConstraintsError
        The constraints cannot all hold, so there is no cost to compare with.

    Examples
    --------
    >>> from clew.audit import optimistic
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]
    >>> optimistic(X, {"must_link": [(0, 1), (2, 3)]}, 2).must_link_suspect
    array([False,  True])
    """
    X, known, rng = _checked(X, constraints, n_clusters, model, metric, random_state)
    base = _estimator(n_clusters, model, metric, rng).fit(X, constraints=known)

    def saved(without: Constraints) -> float:
        return min(_lowest_cost(X, without, base, rng) - base.inertia_, 0.0)

    must = [saved(_without(known, "must_link", place)) for place in range(len(known.must_link))]
    cannot = [saved(_without(known, "cannot_link", place)) for place in range(len(known.cannot_link))]
    return _result(must, cannot, base.inertia_, _OPTIMISTIC_THRESHOLD)


@quietly()
def pessimistic(
    X: Any,
    constraints: Any,
    n_clusters: int,
    model: str = "kmeans",
    *,
    metric: Any = "euclidean",
    random_state: Any = 0,
) -> NaiveImpact:
    """Compare the cost without constraints and the cost with each one alone.

    It may suspect correct constraints that make sense only together. It clusters from several starts for each
    pair that a clustering without constraints violates.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraints : Constraints, dict, frame, path, or list of answers as in `review`
        Pairs, which may contradict each other.
    n_clusters : int
    model : {"kmeans", "kmedoids"}, default="kmeans"
        The criterion: squared distances to means (`COPKMeans`), or distances to medoids (`ConstrainedKMedoids`).
    metric : str or callable, default="euclidean"
        Of k-medoids, as in `ConstrainedKMedoids`.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> from clew.audit import pessimistic
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]
    >>> pessimistic(X, {"must_link": [(0, 1), (2, 3)]}, 2).must_link_suspect
    array([False,  True])
    """
    X, known, rng = _checked(X, constraints, n_clusters, model, metric, random_state)
    base = _estimator(n_clusters, model, metric, rng).fit(X)

    def cost(**pair: Any) -> float:
        alone = Constraints(**pair, n_samples=X.shape[0])
        if not sum(map(len, alone.violations(base.labels_))):
            return 0.0
        return min(base.inertia_ - _lowest_cost(X, alone, base, rng), 0.0)

    must = [cost(must_link=[pair]) for pair in known.must_link.tolist()]
    cannot = [cost(cannot_link=[pair]) for pair in known.cannot_link.tolist()]
    return _result(must, cannot, base.inertia_, _PESSIMISTIC_THRESHOLD)


def _checked(
    X: Any, constraints: Any, n_clusters: int, model: str, metric: Any, random_state: Any
) -> tuple[Any, Constraints, Any]:
    check_model(model, metric)
    X = check_matrix(X)
    check_n_clusters(n_clusters, X.shape[0])
    return X, constraints_from(constraints, X.shape[0]).numbered(), as_generator(random_state)


def _estimator(n_clusters: int, model: str, metric: Any, rng: np.random.Generator) -> Any:
    if model == "kmeans":
        return COPKMeans(n_clusters, random_state=rng)
    return ConstrainedKMedoids(n_clusters, metric=metric, max_iter=_SHAKES, random_state=rng)


def _lowest_cost(X: Any, constraints: Constraints, base: Any, rng: np.random.Generator) -> float:
    """Lowest cost of two fits: one from the centres of `base`, and one from new centres."""
    centers = base.cluster_centers_ if isinstance(base, COPKMeans) else base.medoid_indices_
    starts: tuple[dict[str, Any], ...] = ({"init": centers, "n_init": 1}, {})
    fitted = [clone(base).set_params(**start, random_state=rng).fit(X, constraints=constraints) for start in starts]
    return min(float(model.inertia_) for model in fitted)


def _without(constraints: Constraints, kind: str, place: int) -> Constraints:
    names = (kind, f"{kind}_confidence")
    return constraints._replace(**{name: np.delete(getattr(constraints, name), place, axis=0) for name in names})


def _result(must: list[float], cannot: list[float], base_cost: float, threshold: float) -> NaiveImpact:
    scores = [np.array(values, dtype=np.float64) for values in (must, cannot)]
    scores = [np.where(values < -_ROUNDING * base_cost, values, 0.0) for values in scores]
    return NaiveImpact(scores[0], scores[1], float(base_cost), threshold)
