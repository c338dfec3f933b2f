"""Data prepared for an audit: the criterion, and clusterings without knowledge to start from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew._validation import check_matrix
from clew.audit._distances import distance_matrix
from clew.exceptions import DataError, ParameterError
from clew.partitional import SeededKMeans
from clew.solvers.criteria import Criterion, FloatArray, IntArray, MedoidDistances, SquaredDistances

# Starts of k-medoids share a budget of rows, as in `n_init="auto"` of the estimators: ten for small data, one from
# 100,000 rows on.
_MOST_STARTS, _ROWS_OF_ALL_STARTS = 10, 100_000
# Alternations of one start of k-medoids.
_ALTERNATIONS = 100
# Distances looked at together when medoids are exchanged; sweeps over all medoids at most.
_BLOCK_ENTRIES, _SWEEPS = 1_000_000, 20
# Sums that differ by no more than this share of them are the same number.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Model:
    """A criterion on some rows.

    Attributes
    ----------
    name : {"kmeans", "kmedoids"}
    n_rows, n_clusters : int
    centers : ndarray
        Of the best clustering without knowledge.
    costs : ndarray of shape (n_rows, n_clusters)
        Cost of every row with each of them.
    criterion : callable
        ``criterion(tied, anchors)`` is what `dual_ascent` takes.
    """

    name: str
    n_rows: int
    n_clusters: int
    centers: npt.NDArray[Any]
    costs: FloatArray
    criterion: Callable[[IntArray, sparse.csr_array | None], Criterion]

    @property
    def labels(self) -> IntArray:
        """The best clustering without knowledge."""
        return self.costs.argmin(axis=1)

    @property
    def unit(self) -> float:
        """What moving a typical row to its second-best cluster costs; the mean cost of a row where that is 0."""
        if self.n_clusters > 1:
            lowest = np.partition(self.costs, 1, axis=1)
            typical = float(np.median(lowest[:, 1] - lowest[:, 0]))
            if typical > 0:
                return typical
        return float(self.costs.min(axis=1).mean()) or 1.0


def prepare(X: Any, n_clusters: int, model: str, metric: Any, rng: np.random.Generator) -> Model:
    """Check the data and cluster them without knowledge."""
    if model == "kmeans":
        if not isinstance(metric, str) or metric != "euclidean":
            named = repr(metric) if isinstance(metric, str) else f"a {type(metric).__name__}"
            raise ParameterError(
                f"metric={named} with model='kmeans': its centres are means, which fit 'euclidean' only. "
                "Use model='kmedoids'."
            )
        return _squared(_rows(X, n_clusters), n_clusters, rng)
    if model == "kmedoids":
        return _medoids(X, n_clusters, metric, rng)
    raise ParameterError(f"model={model!r}: expected 'kmeans' or 'kmedoids'.")


def check_n_clusters(n_clusters: Any, n_rows: int) -> int:
    """A number of clusters that so many rows can have."""
    if not isinstance(n_clusters, int | np.integer) or isinstance(n_clusters, bool) or n_clusters < 1:
        raise ParameterError(f"n_clusters={n_clusters!r}: expected an integer >= 1.")
    if n_clusters > n_rows:
        raise DataError(f"n_clusters={n_clusters}, but X has {n_rows} rows. Lower n_clusters.")
    return int(n_clusters)


def _n_starts(n_rows: int) -> int:
    return min(_MOST_STARTS, max(1, _ROWS_OF_ALL_STARTS // max(n_rows, 1)))


def _rows(X: Any, n_clusters: int) -> Any:
    X = check_matrix(X)
    check_n_clusters(n_clusters, X.shape[0])
    X = X.astype(np.float64)
    return X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X - X.mean(axis=0))


def _squared(X: Any, n_clusters: int, rng: np.random.Generator) -> Model:
    fitted = SeededKMeans(n_clusters, init="k-means++", random_state=rng).fit(X)
    centers = np.asarray(fitted.cluster_centers_, dtype=np.float64)
    norms = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    costs = np.asarray(norms).reshape(-1, 1) - 2 * (X @ centers.T) + np.einsum("ij,ij->i", centers, centers)
    return Model(
        "kmeans",
        X.shape[0],
        n_clusters,
        centers,
        np.maximum(np.asarray(costs), 0.0),
        lambda tied, anchors: SquaredDistances(X, tied, n_clusters, anchors),
    )


def _medoids(X: Any, n_clusters: int, metric: Any, rng: np.random.Generator) -> Model:
    distances, candidates = distance_matrix(X, metric, rng)
    check_n_clusters(n_clusters, len(distances))
    found = [k_medoids(distances, candidates, n_clusters, rng) for _ in range(_n_starts(len(distances)))]
    medoids = exchange(distances, min(found, key=lambda solution: solution[0])[1])
    return Model(
        "kmedoids",
        len(distances),
        n_clusters,
        medoids,
        distances[:, medoids],
        lambda tied, anchors: MedoidDistances(distances, candidates, tied, n_clusters, anchors),
    )


def k_medoids(
    distances: FloatArray, candidates: IntArray, n_clusters: int, rng: np.random.Generator
) -> tuple[float, IntArray]:
    """Cost and medoids (as columns): drawn far from each other, then assignment and medoids in turn."""
    medoids = [int(rng.integers(len(candidates)))]
    nearest = distances[:, medoids[0]].copy()
    for _ in range(1, n_clusters):
        chances = nearest[candidates]
        total = float(chances.sum())
        if total == 0:  # every candidate stands on a medoid
            chances = np.ones(len(candidates))
            total = float(len(candidates))
        medoids.append(int(rng.choice(len(candidates), p=chances / total)))
        np.minimum(nearest, distances[:, medoids[-1]], out=nearest)
    nothing = np.empty(0, dtype=np.int64)
    criterion = MedoidDistances(distances, candidates, nothing, n_clusters)
    solution = criterion.at(np.array(medoids))
    for _ in range(_ALTERNATIONS):
        lower = criterion.descend(solution, nothing.astype(np.int32))
        if lower.free_cost >= solution.free_cost:
            break
        solution = lower
    return solution.free_cost, solution.centers


def exchange(distances: FloatArray, medoids: IntArray) -> IntArray:
    """Medoids (as columns) after each in turn was replaced by the candidate that is best beside the others.

    Alternation alone ends above the best found in two of five cases, which is enough to change the advice on a metric.
    """
    medoids = medoids.copy()
    rows = max(1, _BLOCK_ENTRIES // distances.shape[1])
    for _ in range(_SWEEPS):
        before = medoids.copy()
        for place in range(len(medoids)):
            others = distances[:, np.delete(medoids, place)].min(axis=1, initial=np.inf, keepdims=True)
            totals = np.zeros(distances.shape[1])
            for start in range(0, len(distances), rows):
                block = slice(start, start + rows)
                totals += np.minimum(distances[block], others[block]).sum(axis=0)
            best = int(totals.argmin())
            if totals[best] < totals[medoids[place]] * (1 - _ROUNDING):
                medoids[place] = best
        if np.array_equal(medoids, before):
            break
    return medoids
