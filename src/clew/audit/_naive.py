"""Scores that need no dual: cluster again without each constraint, or with nothing but it.

Randel, Aloise, Blanchard and Hertz 2021 (`randel2021`), thesis section 5.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._validation import as_generator, check_matrix
from clew.audit._models import check_n_clusters
from clew.constraints import Constraints
from clew.partitional import COPKMeans, SeededKMeans

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Thesis 5.4.2: scores are divided by the smallest of their kind; these thresholds served best there.
_OPTIMISTIC_THRESHOLD, _PESSIMISTIC_THRESHOLD = 0.15, 0.0
# A difference below this share of the cost is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class NaiveImpact:
    """Scores of `optimistic` and `pessimistic`: 0 where a constraint changes nothing, else negative.

    Attributes
    ----------
    must_link_score, cannot_link_score : ndarray of shape (n_pairs,)
    base_cost : float
        Cost with all constraints (optimistic) or with none (pessimistic).
    threshold : float
        Suspect is what exceeds this share of the lowest score of its kind.
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


def optimistic(X: Any, constraints: Any, n_clusters: int, *, random_state: Any = 0) -> NaiveImpact:
    """Believe every constraint: what would the clustering save without each one?

    Blind where two wrong constraints hold a row in place together: leaving out either changes nothing. Constrained
    k-means from several starts for each pair; `impact` is better and faster.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraints : Constraints, dict, frame or path
        Pairs; they must be able to hold together.
    n_clusters : int
    random_state : int, Generator, RandomState or None, default=0

    Raises
    ------
    ContradictoryConstraintsError, InfeasibleConstraintsError
        The constraints cannot all hold: there is no cost to start from.

    Examples
    --------
    >>> from clew.audit import optimistic
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]
    >>> optimistic(X, {"must_link": [(0, 1), (2, 3)]}, 2).must_link_suspect
    array([False,  True])
    """
    X, known, rng = _checked(X, constraints, n_clusters, random_state)
    base = COPKMeans(n_clusters, random_state=rng).fit(X, constraints=known)

    def saved(without: Constraints) -> float:
        return min(_lowest_cost(X, without, base.cluster_centers_, rng) - base.inertia_, 0.0)

    must = [saved(_without(known, "must_link", place)) for place in range(len(known.must_link))]
    cannot = [saved(_without(known, "cannot_link", place)) for place in range(len(known.cannot_link))]
    return _result(must, cannot, base.inertia_, _OPTIMISTIC_THRESHOLD)


def pessimistic(X: Any, constraints: Any, n_clusters: int, *, random_state: Any = 0) -> NaiveImpact:
    """Believe no constraint: what does each one, alone, cost a clustering without knowledge?

    Blind to constraints that are right together: each alone may go against the clustering. Constrained k-means from
    several starts for each pair that a clustering without knowledge breaks.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraints : Constraints, dict, frame or path
        Pairs; they may contradict each other.
    n_clusters : int
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> from clew.audit import pessimistic
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]]
    >>> pessimistic(X, {"must_link": [(0, 1), (2, 3)]}, 2).must_link_suspect
    array([False,  True])
    """
    X, known, rng = _checked(X, constraints, n_clusters, random_state)
    base = SeededKMeans(n_clusters, random_state=rng).fit(X)

    def cost(**pair: Any) -> float:
        alone = Constraints(**pair, n_samples=X.shape[0])
        if not sum(map(len, alone.violations(base.labels_))):
            return 0.0
        return min(base.inertia_ - _lowest_cost(X, alone, base.cluster_centers_, rng), 0.0)

    must = [cost(must_link=[pair]) for pair in known.must_link.tolist()]
    cannot = [cost(cannot_link=[pair]) for pair in known.cannot_link.tolist()]
    return _result(must, cannot, base.inertia_, _PESSIMISTIC_THRESHOLD)


def _checked(X: Any, constraints: Any, n_clusters: int, random_state: Any) -> tuple[Any, Constraints, Any]:
    X = check_matrix(X)
    check_n_clusters(n_clusters, X.shape[0])
    return X, Constraints.of(constraints, n_samples=X.shape[0]), as_generator(random_state)


def _lowest_cost(X: Any, constraints: Constraints, centers: Any, rng: np.random.Generator) -> float:
    """Of the clustering from these centres and of those from new ones: the first alone seldom leaves its optimum."""
    starts: tuple[dict[str, Any], ...] = ({"init": centers, "n_init": 1}, {})
    fitted = [COPKMeans(len(centers), **start, random_state=rng).fit(X, constraints=constraints) for start in starts]
    return min(float(model.inertia_) for model in fitted)


def _without(constraints: Constraints, kind: str, place: int) -> Constraints:
    names = (kind, f"{kind}_confidence")
    return constraints._replace(**{name: np.delete(getattr(constraints, name), place, axis=0) for name in names})


def _result(must: list[float], cannot: list[float], base_cost: float, threshold: float) -> NaiveImpact:
    scores = [np.array(values, dtype=np.float64) for values in (must, cannot)]
    scores = [np.where(values < -_ROUNDING * base_cost, values, 0.0) for values in scores]
    return NaiveImpact(scores[0], scores[1], float(base_cost), threshold)
