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
from clew._registry import by_method_name, find_method
from clew._validation import check_matrix
from clew._words import counted
from clew.constraints import Constraints
from clew.exceptions import DataError, ParameterError
from clew.medoids._search import plain_medoids
from clew.partitional import SeededKMeans
from clew.solvers.criteria import Criterion, FixedCosts, FloatArray, IntArray, MedoidDistances, SquaredDistances

# Number of starts of k-medoids, each followed by swaps until no swap helps.
_STARTS = 5
# Lower bound on the probabilities of a fitted model, so that costs are finite. On ten tables, the F1 of the suspects is
# the same with 1e-2 and with 1e-300.
_LEAST_CHANCE = 1e-3
# Upper bound on the confidence of answers in a model that judges them, so that a soft method can overrule an answer.
_MOST_CONFIDENCE = 0.9


@dataclass(frozen=True)
class Model:
    """A clustering criterion for some rows.

    Attributes
    ----------
    name : str
        "kmeans", "kmedoids", or the class of a fitted model.
    n_rows, n_clusters : int
    centers : ndarray
        Centres of the best clustering without constraints.
    costs : ndarray of shape (n_rows, n_clusters)
        Cost of every row with each centre.
    criterion : callable
        ``criterion(tied, anchors)`` returns the criterion that `dual_ascent` takes.
    distances : ndarray of shape (n_rows, n_candidates) or None
        For k-medoids: distances from every row to every candidate.
    probabilities : ndarray of shape (n_rows, n_clusters) or None
        For a fitted model: the probability of each cluster for each row.
    """

    name: str
    n_rows: int
    n_clusters: int
    centers: npt.NDArray[Any]
    costs: FloatArray
    criterion: Callable[[IntArray, sparse.csr_array | None], Criterion]
    distances: FloatArray | None = None
    probabilities: FloatArray | None = None

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


def prepare(X: Any, n_clusters: int, model: Any, metric: Any, rng: np.random.Generator) -> Model:
    """Check the data and cluster them without constraints, or use the clusters of a fitted model."""
    if not isinstance(model, str):
        return _fitted(X, n_clusters, model, metric)
    check_model(model, metric)
    if model == "kmeans":
        return squared_model(_rows(X, n_clusters), n_clusters, "k-means++", rng)
    return _medoids(X, n_clusters, metric, rng)


def has_probabilities(model: Any) -> bool:
    """Whether a model has probabilities of each cluster for each row."""
    return hasattr(model, "predict_proba") or hasattr(model, "probabilities_")


def probabilities_of(model: Any, X: Any, n_rows: int) -> FloatArray:
    """Probability of each cluster for each row, by a fitted model. Constraints are ignored if the model can predict."""
    if not has_probabilities(model):
        raise ParameterError(
            f"model={type(model).__name__} has no probabilities. Give a fitted mixture, such as "
            "ConstrainedGaussianMixture. The clusters of other models go to review by labels."
        )
    found = np.asarray(model.predict_proba(X) if hasattr(model, "predict_proba") else model.probabilities_)
    if found.ndim != 2 or len(found) != n_rows:
        raise ParameterError(
            f"The probabilities of model={type(model).__name__} have shape {found.shape}, but X has {n_rows} rows. "
            "Fit the model to the same rows."
        )
    return found


def predicting_methods() -> dict[str, type[Any]]:
    """The clusterers that have probabilities for new rows, by their name in the shell."""
    return {name: kind for name, kind in by_method_name("clusterer").items() if hasattr(kind, "predict_proba")}


@quietly()
def fitted_model(name: str, X: Any, constraints: Constraints, n_clusters: int, random_state: Any) -> Any:
    """Fit a method with probabilities, given by its name, to rows and to answers that may be wrong."""
    able, found = predicting_methods(), find_method(name, "clusterer")
    if found not in able:
        raise ParameterError(f"{found} has no probabilities for new rows. Choose one of {', '.join(sorted(able))}.")
    doubted = constraints._replace(
        must_link_confidence=np.minimum(constraints.must_link_confidence, _MOST_CONFIDENCE),
        cannot_link_confidence=np.minimum(constraints.cannot_link_confidence, _MOST_CONFIDENCE),
    )
    model: Any = able[found](n_clusters=n_clusters, random_state=random_state)
    return model.fit(X, constraints=doubted)


def chance_together(probabilities: FloatArray, pairs: IntArray) -> FloatArray:
    """Probability that a model puts both rows of each pair in one cluster."""
    found = (probabilities[pairs[:, 0]] * probabilities[pairs[:, 1]]).sum(axis=1)
    return np.asarray(np.clip(found, 0, 1))


def check_model(model: Any, metric: Any) -> None:
    """Raise if the criterion is unknown, or if the metric does not fit its centres."""
    if model not in ("kmeans", "kmedoids"):
        named = repr(model) if isinstance(model, str) else type(model).__name__
        raise ParameterError(f"model={named}: expected 'kmeans' or 'kmedoids'.")
    if model == "kmeans" and (not isinstance(metric, str) or metric != "euclidean"):
        named = repr(metric) if isinstance(metric, str) else f"a {type(metric).__name__}"
        raise ParameterError(
            f"metric={named} with model='kmeans': its centres are means, which need 'euclidean'. Use model='kmedoids'."
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


def _fitted(X: Any, n_clusters: int, model: Any, metric: Any) -> Model:
    """The clusters of a fitted model; a row costs minus the logarithm of its probability."""
    name = type(model).__name__
    if not isinstance(metric, str) or metric != "euclidean":
        raise ParameterError(f"metric with model={name}: a fitted model has its own. Leave metric out.")
    n_rows = check_matrix(X).shape[0]
    probabilities = np.asarray(probabilities_of(model, X, n_rows), dtype=np.float64)
    if check_n_clusters(n_clusters, n_rows) != probabilities.shape[1]:
        raise ParameterError(
            f"n_clusters={n_clusters}, but model={name} has {counted(probabilities.shape[1], 'cluster')}. "
            "Give the number of the model."
        )
    return fixed_model(name, -np.log(np.maximum(probabilities, _LEAST_CHANCE)), probabilities)


def fixed_model(name: str, costs: FloatArray, probabilities: FloatArray | None = None) -> Model:
    """Clusters that do not change, with the cost of every row in each of them."""
    n_rows, n_clusters = costs.shape
    return Model(
        name,
        n_rows,
        n_clusters,
        np.arange(n_clusters),
        costs,
        lambda tied, anchors: FixedCosts(costs, tied, anchors),
        probabilities=probabilities,
    )


@quietly()
def squared_model(X: Any, n_clusters: int, init: Any, rng: np.random.Generator) -> Model:
    """K-means on checked rows whose columns have mean 0; `init` may be centres to start from."""
    fitted = SeededKMeans(n_clusters, init=init, random_state=rng).fit(X)
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
