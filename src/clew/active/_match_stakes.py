"""What is at stake in a question about two records: how many pairs change if the present groups are wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from clew.constraints import Constraints
from clew.matching._match_clustering import grouped

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def expected_changes(pairs: IntArray, log_odds: FloatArray, clusters: IntArray, components: IntArray) -> FloatArray:
    """Probability that an answer about each pair changes the clusters, times the root of the number of changed pairs.

    An answer about two clusters may merge them, which changes all pairs between them. An answer within a cluster may
    split off the component of one of its two rows. The probabilities come from the mean log-odds of all candidates
    between the two parts. The root keeps a large cluster from taking all questions. For example, with the clusters {0,
    1} and {2}, an answer about rows 1 and 2 changes two pairs, and its probability rests on the candidates (0, 2) and
    (1, 2).

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2)
        Candidate pairs.
    log_odds : ndarray of shape (n_pairs,)
        Log-odds that the two rows of each pair match.
    clusters : ndarray of shape (n_rows,)
        The present cluster of each row.
    components : ndarray of shape (n_rows,)
        The component of each row: rows that answers join.
    """
    worth = np.empty(len(pairs))
    sizes = np.bincount(clusters)
    ends = clusters[pairs]
    apart = ends[:, 0] != ends[:, 1]
    between, _ = _between_clusters(ends[apart], log_odds[apart])
    worth[apart] = expit(between) * np.sqrt(sizes[ends[apart]].prod(axis=1))
    worth[~apart] = _split_off(components[pairs[~apart]], log_odds[~apart], sizes[ends[~apart, 0]], components)
    return worth


def judged_by_clusters(
    log_odds: FloatArray, left_out: FloatArray, pairs: IntArray, clusters: IntArray, components: IntArray
) -> FloatArray:
    """Mean log-odds that decide each answered pair, without the pair's own answer.

    These are the means of `expected_changes`: of all candidates between two clusters, or between a row's component and
    the rest of its cluster (the smaller of both rows' means). In each mean, the pair itself counts with its `left_out`
    log-odds, all other pairs with `log_odds`.
    """
    found = np.empty(len(pairs))
    ends, change = clusters[pairs], left_out - log_odds
    apart = ends[:, 0] != ends[:, 1]
    between, n_between = _between_clusters(ends[apart], log_odds[apart])
    found[apart] = between + change[apart] / n_between
    sides = components[pairs[~apart]]
    mean, count = _of_components(sides, log_odds[~apart], len(components))
    inside = [mean[side] + change[~apart] / np.maximum(count[side], 1) for side in sides.T]
    found[~apart] = np.minimum(*inside)
    return found


def _between_clusters(ends: IntArray, log_odds: FloatArray) -> tuple[FloatArray, IntArray]:
    """Mean log-odds of all candidates between the same two clusters as each candidate, and their number."""
    low, high = np.sort(ends, axis=1).T
    place = np.unique(low * (int(ends.max(initial=0)) + 1) + high, return_inverse=True)[1]
    count = np.bincount(place)
    return (np.bincount(place, log_odds) / count)[place], count[place]


def _of_components(sides: IntArray, log_odds: FloatArray, n_components: int) -> tuple[FloatArray, IntArray]:
    """Mean log-odds of the candidates between each component and other components, and their number."""
    is_open = sides[:, 0] != sides[:, 1]
    ends = sides[is_open].T.ravel()
    count = np.bincount(ends, minlength=n_components)
    return np.bincount(ends, np.tile(log_odds[is_open], 2), minlength=n_components) / np.maximum(count, 1), count


def _split_off(sides: IntArray, log_odds: FloatArray, n_inside: IntArray, components: IntArray) -> FloatArray:
    """The larger of the expected changes if the component of the first or of the second row leaves the cluster."""
    sizes = np.bincount(components)
    mean, _ = _of_components(sides, log_odds, len(sizes))
    changes = [expit(-mean[side]) * np.sqrt(sizes[side] * np.maximum(n_inside - sizes[side], 0)) for side in sides.T]
    return np.maximum(*changes)


def clusters_around(
    chosen: IntArray,
    pairs: IntArray,
    log_odds: FloatArray,
    components: IntArray,
    known: Constraints,
    missing_weight: float,
    rng: np.random.Generator,
) -> tuple[IntArray, IntArray]:
    """Cluster only the rows whose clusters depend on the chosen candidates.

    Rows that no chain of likely matches connects are never in one cluster, so all other rows can be left out. Returns
    the positions of the candidates within the clustered rows, and a cluster for every row. The clusters of other rows
    mean nothing.
    """
    n_rows = len(components)
    likely = components[pairs[log_odds > 0]]
    graph = sparse.coo_array((np.ones(len(likely)), (likely[:, 0], likely[:, 1])), shape=(n_rows, n_rows))
    part = connected_components(graph, directed=False)[1][components]
    is_needed = np.zeros(n_rows, dtype=bool)
    is_needed[part[pairs[chosen]]] = True
    rows = np.flatnonzero(is_needed[part])
    place = np.zeros(n_rows, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    inside = np.flatnonzero(is_needed[part[pairs]].all(axis=1))
    closed = known.restrict(rows).closure()
    clusters = np.zeros(n_rows, dtype=np.int64)
    clusters[rows] = grouped(place[pairs[inside]], log_odds[inside], closed, missing_weight, rng)
    return inside, clusters
