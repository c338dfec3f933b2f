"""Prepare data for an audit: the criterion, and a first clustering without constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew._base import quietly
from clew._distances import distance_matrix
from clew._validation import check_matrix
from clew.exceptions import DataError, ParameterError
from clew.medoids._search import plain_medoids
from clew.partitional import SeededKMeans
from clew.solvers.criteria import Criterion, FloatArray, IntArray, MedoidDistances, SquaredDistances

# Starts of k-medoids, each followed by swaps until none pays.
_STARTS = 5


@dataclass(frozen=True)
class Model:
    """A criterion on some rows.

    Attributes
    ----------
    name : {"kmeans", "kmedoids"}
    n_rows, n_clusters : int
    centers : ndarray
        Centres of the best clustering without constraints.
    costs : ndarray of shape (n_rows, n_clusters)
        Cost of every row with each centre.
    criterion : callable
        ``criterion(tied, anchors)`` is what `dual_ascent` takes.
    distances : ndarray of shape (n_rows, n_candidates) or None
        Of k-medoids: distances from every row to every candidate.
    """

    name: str
    n_rows: int
    n_clusters: int
    centers: npt.NDArray[Any]
    costs: FloatArray
    criterion: Callable[[IntArray, sparse.csr_array | None], Criterion]
    distances: FloatArray | None = None

    @property
    def labels(self) -> IntArray:
        """The best clustering without constraints."""
        return self.costs.argmin(axis=1)

    @property
    def unit(self) -> float:
        """Cost of moving a typical row to its second-best cluster; if that is 0, the mean cost of a row."""
        if self.n_clusters > 1:
            lowest = np.partition(self.costs, 1, axis=1)
            typical = float(np.median(lowest[:, 1] - lowest[:, 0]))
            if typical > 0:
                return typical
        return float(self.costs.min(axis=1).mean()) or 1.0


def prepare(X: Any, n_clusters: int, model: str, metric: Any, rng: np.random.Generator) -> Model:
    """Check the data and cluster them without constraints."""
    check_model(model, metric)
    if model == "kmeans":
        return _squared(_rows(X, n_clusters), n_clusters, rng)
    return _medoids(X, n_clusters, metric, rng)


def check_model(model: Any, metric: Any) -> None:
    """Refuse an unknown criterion, and metrics that its centres do not fit."""
    if model not in ("kmeans", "kmedoids"):
        raise ParameterError(f"model={model!r}: expected 'kmeans' or 'kmedoids'.")
    if model == "kmeans" and (not isinstance(metric, str) or metric != "euclidean"):
        named = repr(metric) if isinstance(metric, str) else f"a {type(metric).__name__}"
        raise ParameterError(
            f"metric={named} with model='kmeans': its centres are means, which fit 'euclidean' only. "
            "Use model='kmedoids'."
        )


def check_n_clusters(n_clusters: Any, n_rows: int) -> int:
    """Check a number of clusters against the number of rows."""
    if not isinstance(n_clusters, int | np.integer) or isinstance(n_clusters, bool) or n_clusters < 1:
        raise ParameterError(f"n_clusters={n_clusters!r}: expected an integer >= 1.")
    if n_clusters > n_rows:
        raise DataError(f"n_clusters={n_clusters}, but X has {n_rows} rows. Lower n_clusters.")
    return int(n_clusters)


def _rows(X: Any, n_clusters: int) -> Any:
    X = check_matrix(X)
    check_n_clusters(n_clusters, X.shape[0])
    X = X.astype(np.float64)
    return X.tocsr() if sparse.issparse(X) else np.ascontiguousarray(X - X.mean(axis=0))


@quietly()
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
    medoids = plain_medoids(distances, candidates, n_clusters, rng, n_init=_STARTS)
    return Model(
        "kmedoids",
        len(distances),
        n_clusters,
        medoids,
        distances[:, medoids],
        lambda tied, anchors: MedoidDistances(distances, candidates, tied, n_clusters, anchors),
        distances,
    )
