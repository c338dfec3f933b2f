"""Initial centres: from constraints (`basu2004`), by k-means++, or from an array.

A *neighbourhood* is a component of at least two must-linked rows, or a component with a known class. The *skeleton* is
a set of single rows that are cannot-linked to all neighbourhoods and to each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from clew.constraints import Closure
from clew.exceptions import InfeasibleConstraintsError, ParameterError
from clew.partitional._geometry import FloatArray, IntArray, Problem
from clew.partitional._reduction import dense
from clew.partitional._units import Units
from clew.solvers.coloring import CliqueGraph

# Standard deviation of initial centres near the mean of all rows, as a share of the deviation of the columns.
_PERTURBATION = 0.1
# k-means++ looks at this many rows, and at this many rows per centre, if there are more.
_SAMPLED_ROWS, _SAMPLED_ROWS_PER_CENTER = 131_072, 128


class Start(NamedTuple):
    """Initial centres, the cluster that each component seeds (-1: none), and whether further starts differ."""

    centers: FloatArray
    seeds: IntArray
    drawn: bool


def cluster_labels(closed: Closure, n_clusters: int) -> IntArray:
    """The label of each cluster: known classes keep their numbers, and other clusters get the lowest free numbers."""
    classes = np.unique(closed.labels[closed.labels >= 0])
    if len(classes) > n_clusters:
        raise InfeasibleConstraintsError(
            f"labels name {len(classes)} classes, but n_clusters={n_clusters}. Raise n_clusters.",
            np.sort(closed.first_row[[int(np.flatnonzero(closed.labels == one)[0]) for one in classes]]),
            f"labels name {len(classes)} classes.",
        )
    if len(classes) == 0 or classes[-1] < n_clusters:
        return np.arange(n_clusters)
    free = np.setdiff1d(np.arange(n_clusters + len(classes)), classes)
    return np.concatenate([classes, free[: n_clusters - len(classes)]])


def labels_of_clusters(closed: Closure, cluster_of: npt.NDArray[Any], n_clusters: int) -> IntArray:
    """The label of each cluster of components: the class in it, or else an unused label of `cluster_labels`."""
    labels = np.full(n_clusters, -1, dtype=np.int64)
    known = closed.labels >= 0
    labels[cluster_of[known]] = closed.labels[known]
    labels[labels < 0] = np.setdiff1d(cluster_labels(closed, n_clusters), labels)
    return labels


def initial_centers(
    problem: Problem,
    closed: Closure,
    labels_of_clusters: IntArray,
    init: Any,
    leftover: str,
    rng: np.random.Generator,
    *,
    again: bool = False,
    anew: bool = False,
) -> Start:
    """Choose the initial centres.

    Only the first start (`again` is False) uses the skeleton, because a single row says little about its cluster. With
    `anew`, later starts ignore neighbourhoods without a class too, because they would repeat the first start.
    """
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
    if again and anew:
        return _with_leftover(problem, closed, seeds, n_clusters, "k-means++", rng)
    seeds = _neighbourhoods(problem, closed, seeds, n_clusters)
    if not again:
        seeds = _skeleton(closed, seeds, n_clusters)
    return _with_leftover(problem, closed, seeds, n_clusters, leftover, rng)


def _neighbourhoods(problem: Problem, closed: Closure, seeds: IntArray, n_clusters: int) -> IntArray:
    """Let the largest neighbourhoods seed the clusters that have no known class (Basu 2004, section 3)."""
    unnamed = np.flatnonzero((closed.sizes > 1) & (closed.labels < 0))
    open_clusters = np.setdiff1d(np.arange(n_clusters), seeds)
    chosen = _choose(problem, closed, np.flatnonzero(seeds >= 0), unnamed, len(open_clusters))
    seeds = seeds.copy()
    seeds[chosen] = open_clusters[: len(chosen)]
    return seeds


def _skeleton(closed: Closure, seeds: IntArray, n_clusters: int) -> IntArray:
    """Let rows that are cannot-linked to all seeds and to each other seed further clusters.

    Section 3 of the paper uses one such row. The questions of Explore (section 4) give one for every cluster, perhaps
    without any must-link.
    """
    open_clusters = np.setdiff1d(np.arange(n_clusters), seeds)
    chosen = _apart_from_all(closed, np.flatnonzero(seeds >= 0), len(open_clusters))
    seeds = seeds.copy()
    seeds[chosen] = open_clusters[: len(chosen)]
    return seeds


def _with_leftover(
    problem: Problem, closed: Closure, seeds: IntArray, n_clusters: int, leftover: str, rng: np.random.Generator
) -> Start:
    """Put centres at the means of the seeds; clusters without seeds start as `leftover` says."""
    seeded = np.flatnonzero(seeds >= 0)
    centers = np.empty((n_clusters, problem.X.shape[1]))
    centers[seeds[seeded]] = _component_means(problem, closed, seeded)
    empty = np.setdiff1d(np.arange(n_clusters), seeds[seeded])
    if len(empty):
        known = centers[seeds[seeded]]
        if leftover == "mean":
            centers[empty] = _near_the_mean(problem, len(empty), rng)
        else:
            centers[empty] = plus_plus(problem, known, len(empty), rng)
    on_one_row = (closed.sizes[seeded] == 1) & (closed.labels[seeded] < 0)
    return Start(centers, seeds, len(empty) > 0 or bool(on_one_row.any()))


def _choose(problem: Problem, closed: Closure, taken: IntArray, others: IntArray, n_wanted: int) -> IntArray:
    """Choose the neighbourhoods that seed clusters, in addition to the `taken` ones of known classes.

    If the largest neighbourhoods are all cannot-linked to each other, they are chosen, as in the paper. With more
    neighbourhoods than clusters this is rare (Basu 2004, appendix A.3). Otherwise neighbourhoods are chosen farthest
    first, with distances weighted by size, as in later work of the same authors (`bilenko2004`).
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


def _apart_from_all(closed: Closure, components: IntArray, n_wanted: int) -> IntArray:
    """Components that are cannot-linked to all of `components` and to each other, most cannot-links first."""
    n_links = _n_neighbours(closed.graph)
    is_apart = n_links > 0
    found: list[int] = []
    for component in components.tolist():
        is_apart &= _neighbours_of(closed, component)
    while len(found) < n_wanted and is_apart.any():
        found.append(int(np.where(is_apart, n_links, -1).argmax()))
        is_apart &= _neighbours_of(closed, found[-1])
    return np.array(found, dtype=np.int64)


def _n_neighbours(graph: CliqueGraph) -> IntArray:
    """Number of other components that each component is cannot-linked to."""
    vertex = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
    beside_cliques = vertex[~graph.share_a_clique(vertex, graph.edges)]
    found = np.bincount(beside_cliques, minlength=graph.n_vertices)
    n_cliques, sizes = np.diff(graph.clique_ptr), np.diff(graph.member_ptr)
    in_one = np.flatnonzero(n_cliques == 1)
    found[in_one] += sizes[graph.cliques[graph.clique_ptr[in_one]]] - 1
    for one in np.flatnonzero(n_cliques > 1).tolist():
        found[one] = len(graph.neighbours(one))
    return found.astype(np.int64)


def _neighbours_of(closed: Closure, component: int) -> npt.NDArray[np.bool_]:
    found = np.zeros(closed.n_components, dtype=bool)
    found[closed.graph.neighbours(component)] = True
    return found


def _component_means(problem: Problem, closed: Closure, components: IntArray) -> FloatArray:
    place = np.full(closed.n_components, -1, dtype=np.int64)
    place[components] = np.arange(len(components))
    unit_of_row = place[closed.component_of]
    rows = np.flatnonzero(unit_of_row >= 0)
    points = Units.contract(problem, rows, unit_of_row[rows], len(components)).points
    means = np.asarray(points.toarray() if sparse.issparse(points) else points, dtype=np.float64)
    return problem.as_centers(means)


def _given_centers(problem: Problem, init: Any, n_clusters: int) -> FloatArray:
    try:
        centers = np.array(init.toarray() if sparse.issparse(init) else init, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError("init holds a value that is not a number. Give one row of numbers per cluster.") from None
    if centers.shape != (n_clusters, problem.X.shape[1]):
        raise ParameterError(
            f"init has shape {centers.shape}: expected (n_clusters, n_features) = {(n_clusters, problem.X.shape[1])}."
        )
    if not np.isfinite(centers).all():
        raise ParameterError("init contains NaN or infinity. Every centre must be finite.")
    return problem.as_centers(centers - problem.shift)


def _near_the_mean(problem: Problem, n_centers: int, rng: np.random.Generator) -> FloatArray:
    mean = problem.mean
    centers = mean + _PERTURBATION * np.sqrt(problem.variances) * rng.standard_normal((n_centers, len(mean)))
    return problem.as_centers(centers)


def _matched(centers: FloatArray, means: FloatArray, clusters: IntArray) -> FloatArray:
    """Reorder the centres by a one-to-one matching that puts each class near its mean."""
    taken = linear_sum_assignment(cdist(means, centers))[1]
    ordered = np.empty_like(centers)
    rest = np.setdiff1d(np.arange(len(centers)), clusters)
    ordered[clusters] = centers[taken]
    ordered[rest] = centers[np.setdiff1d(np.arange(len(centers)), taken)]
    return ordered


def plus_plus(problem: Problem, known: FloatArray, n_more: int, rng: np.random.Generator) -> FloatArray:
    """Greedy k-means++: draw a few rows by squared distance to the centres so far, and keep the best one.

    From many rows, a uniform sample takes part.
    """
    n_sampled = max(_SAMPLED_ROWS, _SAMPLED_ROWS_PER_CENTER * (len(known) + n_more))
    if problem.n_rows > n_sampled:
        problem = _sampled(problem, n_sampled, rng)
    elif hasattr(problem.X, "prepared"):  # few rows outside memory
        problem = replace(problem, X=problem.X[np.arange(problem.n_rows)], named=None)
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
        points = dense(problem.X[drawn])
        left = np.minimum(nearest[:, None], _costs(problem, points))
        best = int((weights @ left).argmin())
        nearest = left[:, best]
        centers.append(points[best])
    return np.array(centers[len(known) :])


def _sampled(problem: Problem, n_sampled: int, rng: np.random.Generator) -> Problem:
    """A uniform sample of the rows that weigh something, in memory; of `n_sampled` rows or all of them, if fewer."""
    n_rows, weights = problem.n_rows, problem.weights
    heavy = np.flatnonzero(weights) if len(weights) else None
    n_heavy = n_rows if heavy is None else len(heavy)
    drawn = np.sort(rng.choice(n_heavy, size=min(n_sampled, n_heavy), replace=False))
    rows = drawn if heavy is None else heavy[drawn]
    return replace(problem, X=problem.X[rows], weights=weights[rows] if len(weights) else weights, named=None)


def _costs(problem: Problem, centers: FloatArray) -> FloatArray:
    scoring = problem.scoring(centers)
    costs = np.asarray(scoring(problem.X), dtype=np.float64) + scoring.offsets
    costs += problem.left_out(problem.X)[:, None]
    return np.maximum(costs, 0)
