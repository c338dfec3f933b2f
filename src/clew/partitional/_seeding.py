"""Where the centres start: neighbourhoods of known rows (`basu2004`), k-means++, or an array.

A *neighbourhood* is a component of at least two rows, or one with a known class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from clew.constraints import Closure
from clew.exceptions import InfeasibleConstraintsError, ParameterError
from clew.partitional._lloyd import FloatArray, IntArray, Problem, Units, unit_rows

# Spread of the centres that start near the global mean, in standard deviations of the columns.
_PERTURBATION = 0.1


class Start(NamedTuple):
    """Initial centres, the cluster that each component seeds (-1: none), and whether some centre was left to chance."""

    centers: FloatArray
    seeds: IntArray
    drawn: bool


def cluster_labels(closed: Closure, n_clusters: int) -> IntArray:
    """The label of each cluster: known classes keep their numbers, the other clusters get the lowest free ones."""
    classes = np.unique(closed.labels[closed.labels >= 0])
    if len(classes) > n_clusters:
        raise InfeasibleConstraintsError(
            f"labels name {len(classes)} classes, but n_clusters={n_clusters}. Raise n_clusters.",
            np.sort(closed.first_row[[int(np.flatnonzero(closed.labels == one)[0]) for one in classes]]),
        )
    if len(classes) == 0 or classes[-1] < n_clusters:
        return np.arange(n_clusters)
    free = np.setdiff1d(np.arange(n_clusters + len(classes)), classes)
    return np.concatenate([classes, free[: n_clusters - len(classes)]])


def initial_centers(
    problem: Problem,
    closed: Closure,
    labels_of_clusters: IntArray,
    init: Any,
    leftover: str,
    rng: np.random.Generator,
    *,
    again: bool = False,
) -> Start:
    """Start k-means with what is known; `again` for further starts, which would otherwise repeat the first."""
    n_clusters = len(labels_of_clusters)
    seeds = np.full(closed.n_components, -1, dtype=np.int64)
    cluster_of_class = {label: cluster for cluster, label in enumerate(labels_of_clusters.tolist())}
    classed = np.flatnonzero(closed.labels >= 0)
    seeds[classed] = [cluster_of_class[label] for label in closed.labels[classed].tolist()]
    if not isinstance(init, str):
        return Start(_given_centers(problem, init, n_clusters), seeds, False)
    if init == "k-means++":
        centers = plus_plus(problem, np.empty((0, problem.X.shape[1])), n_clusters, rng)
        if len(classed):  # let each class start at the centre nearest to it
            means = _component_means(problem, closed, classed)
            centers = _matched(centers, means, seeds[classed])
        return Start(centers, seeds, True)
    unnamed = np.empty(0, dtype=np.int64) if again else np.flatnonzero((closed.sizes > 1) & (closed.labels < 0))
    return _neighbourhoods(problem, closed, seeds, unnamed, n_clusters, "k-means++" if again else leftover, rng)


def _neighbourhoods(
    problem: Problem,
    closed: Closure,
    seeds: IntArray,
    unnamed: IntArray,
    n_clusters: int,
    leftover: str,
    rng: np.random.Generator,
) -> Start:
    """Basu 2004, section 3: the largest neighbourhoods, a row that differs from all of them, then the leftover.

    Known classes have their clusters in `seeds` already; `unnamed` are the components that may take the others.
    """
    open_clusters = np.setdiff1d(np.arange(n_clusters), seeds)
    chosen = _choose(problem, closed, np.flatnonzero(seeds >= 0), unnamed, len(open_clusters))
    seeds = seeds.copy()
    seeds[chosen] = open_clusters[: len(chosen)]
    n_chosen = len(chosen)
    chosen = np.flatnonzero(seeds >= 0)
    if 0 < len(chosen) < n_clusters:
        stranger = _apart_from_all(closed, chosen)
        if stranger is not None:
            seeds[stranger] = open_clusters[n_chosen]
            chosen = np.flatnonzero(seeds >= 0)
    centers = np.empty((n_clusters, problem.X.shape[1]))
    centers[seeds[chosen]] = _component_means(problem, closed, chosen)
    empty = np.setdiff1d(np.arange(n_clusters), seeds[chosen])
    if len(empty):
        known = centers[seeds[chosen]]
        if leftover == "mean":
            centers[empty] = _near_the_mean(problem, len(empty), rng)
        else:
            centers[empty] = plus_plus(problem, known, len(empty), rng)
    return Start(centers, seeds, len(empty) > 0)


def _choose(problem: Problem, closed: Closure, taken: IntArray, others: IntArray, n_wanted: int) -> IntArray:
    """The neighbourhoods that start a cluster each, beside those of the `taken` classes.

    The largest, as in the paper, where they are known to be different clusters. With more neighbourhoods than clusters
    that is rare (Basu 2004, appendix A.3): then farthest first, distances weighted by size, as the same authors do in
    later work (`bilenko2004`).
    """
    largest = others[np.argsort(-closed.sizes[others], kind="stable")][:n_wanted]
    if len(others) <= n_wanted or _all_apart(closed, np.concatenate([taken, largest])):
        return largest
    means = _component_means(problem, closed, np.concatenate([taken, others]))
    taken_means, means = means[: len(taken)], means[len(taken) :]
    distance = cdist(means, taken_means).min(axis=1) if len(taken) else np.ones(len(others))
    chosen: list[int] = []
    while len(chosen) < n_wanted:
        best = int((closed.sizes[others] * distance).argmax())
        nearest = cdist(means, means[best : best + 1]).ravel()
        distance = np.minimum(distance, nearest) if len(taken) or chosen else nearest
        distance[best] = -1.0
        chosen.append(best)
    return others[chosen]


def _all_apart(closed: Closure, components: IntArray) -> bool:
    return all(np.isin(components[place + 1 :], closed.graph.neighbours(int(one))).all()
               for place, one in enumerate(components))  # fmt: skip


def _apart_from_all(closed: Closure, components: IntArray) -> int | None:
    """The first component that is kept apart from every one of these, if there is one."""
    candidates = closed.graph.neighbours(int(components[0]))
    for component in components[1:]:
        candidates = np.intersect1d(candidates, closed.graph.neighbours(int(component)))
    candidates = np.setdiff1d(candidates, components)
    return int(candidates[0]) if len(candidates) else None


def _component_means(problem: Problem, closed: Closure, components: IntArray) -> FloatArray:
    place = np.full(closed.n_components, -1, dtype=np.int64)
    place[components] = np.arange(len(components))
    unit_of_row = place[closed.component_of]
    rows = np.flatnonzero(unit_of_row >= 0)
    points = Units.contract(problem, rows, unit_of_row[rows], len(components)).points
    means = np.asarray(points.toarray() if sparse.issparse(points) else points, dtype=np.float64)
    return unit_rows(means) if problem.metric == "cosine" else means


def _given_centers(problem: Problem, init: Any, n_clusters: int) -> FloatArray:
    try:
        centers = np.array(init.toarray() if sparse.issparse(init) else init, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("init holds something that is no number. Give one row of numbers per cluster.") from None
    if centers.shape != (n_clusters, problem.X.shape[1]):
        raise ParameterError(
            f"init has shape {centers.shape}: expected (n_clusters, n_features) = {(n_clusters, problem.X.shape[1])}."
        )
    if not np.isfinite(centers).all():
        raise ParameterError("init contains NaN or infinity. Every centre must be finite.")
    return unit_rows(centers) if problem.metric == "cosine" else centers - problem.shift


def _near_the_mean(problem: Problem, n_centers: int, rng: np.random.Generator) -> FloatArray:
    weights = problem.row_weights / problem.row_weights.sum()
    mean = np.asarray(problem.X.T @ weights, dtype=np.float64).ravel()
    centers = mean + _PERTURBATION * np.sqrt(problem.variances) * rng.standard_normal((n_centers, len(mean)))
    return unit_rows(centers) if problem.metric == "cosine" else centers


def _matched(centers: FloatArray, means: FloatArray, clusters: IntArray) -> FloatArray:
    """The same centres, ordered so that each mean's nearest (taken one to one) stands at its cluster."""
    taken = linear_sum_assignment(cdist(means, centers))[1]
    ordered = np.empty_like(centers)
    rest = np.setdiff1d(np.arange(len(centers)), clusters)
    ordered[clusters] = centers[taken]
    ordered[rest] = centers[np.setdiff1d(np.arange(len(centers)), taken)]
    return ordered


def plus_plus(problem: Problem, known: FloatArray, n_more: int, rng: np.random.Generator) -> FloatArray:
    """Greedy k-means++: rows drawn by weighted squared distance to the centres so far, the best of a few each time."""
    centers = list(known)
    weights = problem.row_weights
    nearest = np.full(problem.n_rows, np.inf)
    for center in centers:
        nearest = np.minimum(nearest, _costs(problem, center[None, :])[:, 0])
    n_trials = 2 + int(np.log(len(known) + n_more))
    for _ in range(n_more):
        potential = weights * nearest if centers else weights
        total = potential.sum()
        chances = potential / total if total > 0 else weights / weights.sum()
        drawn = rng.choice(problem.n_rows, size=n_trials if centers else 1, p=chances)
        rows = problem.X[drawn]
        points = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
        left = np.minimum(nearest[:, None], _costs(problem, points))
        best = int((weights @ left).argmin())
        nearest = left[:, best]
        centers.append(points[best])
    return np.array(centers[len(known) :])


def _costs(problem: Problem, centers: FloatArray) -> FloatArray:
    scoring = problem.scoring(centers)
    costs = np.asarray(scoring(problem.X), dtype=np.float64) + scoring.offsets
    costs += problem.left_out(problem.X)[:, None]
    return np.maximum(costs, 0)
