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
    sizes, n_clusters = np.bincount(clusters), int(clusters.max(initial=0)) + 1
    ends = clusters[pairs]
    apart = ends[:, 0] != ends[:, 1]
    low, high = np.sort(ends[apart], axis=1).T
    place = np.unique(low * n_clusters + high, return_inverse=True)[1]
    between = np.bincount(place, log_odds[apart]) / np.bincount(place)
    worth[apart] = expit(between[place]) * np.sqrt(sizes[low] * sizes[high])
    worth[~apart] = _split_off(components[pairs[~apart]], log_odds[~apart], sizes[ends[~apart, 0]], components)
    return worth


def _split_off(sides: IntArray, log_odds: FloatArray, n_inside: IntArray, components: IntArray) -> FloatArray:
    """The larger of the expected changes if the component of the first or of the second row leaves the cluster."""
    open_pair = sides[:, 0] != sides[:, 1]
    sizes = np.bincount(components)
    total, count = (
        sum(np.bincount(side[open_pair], values, minlength=len(sizes)) for side in sides.T)
        for values in (log_odds[open_pair], np.ones(int(open_pair.sum())))
    )
    mean = total / np.maximum(count, 1)
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
