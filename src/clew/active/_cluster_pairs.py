"""Ask whether two clusters belong together: one answer for many pairs of rows.

Truong and Battiti 2013 (`truong2013`), section 5.2, calls for such questions; how they are chosen is ours.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.active._answers import Pair
from clew.active._view import IntArray, View, mean_row, squared_distances


class ClusterPairs:
    """Ask whether two clusters belong together, those most in doubt first.

    Clusters come from the clusterer. Each is shown by its rows and stands for them by its medoid: the answer is taken
    as one about the two medoids, so that a few strange rows in a cluster do no harm. Ask for more clusters than there
    are groups to find the groups by joining.

    Notes
    -----
    Doubt is large where the squared distance between two centres is small against the sum of the mean squared
    distances of the rows to them. The medoid is the row nearest to the centre. The clusterer runs again after every
    answer, so that a log that is resumed meets the same clusters; questions end when all pairs of the current clusters
    are decided. O(n d + k² d) per run.

    References
    ----------
    .. [1] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms: from a priori scheme to
       interactive scheme and open issues." Section 5.2.

    Examples
    --------
    >>> from clew.active import ClusterPairs, Questions
    >>> questions = Questions([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]], ClusterPairs(), n_clusters=2, random_state=0)
    >>> pair = questions.ask()
    >>> pair.key, sorted(pair.rows)
    ((1, 4), [(0, 1, 2), (3, 4, 5)])
    """

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Cluster, ask about the pair of clusters most in doubt, and begin again."""
        while view.n_rows > 1 and (pair := _most_doubtful(view)) is not None:
            yield pair


def _most_doubtful(view: View) -> Pair | None:
    clusters = clusters_of(view.labels())
    medoids, pairs = doubtful_pairs(view.X, clusters)
    for one, two in pairs:
        if view.is_open(medoids[one], medoids[two]):
            return Pair(
                medoids[one],
                medoids[two],
                why="Do these two clusters belong together?",
                rows=(tuple(clusters[one].tolist()), tuple(clusters[two].tolist())),
            )
    return None


def clusters_of(labels: npt.NDArray[Any]) -> list[IntArray]:
    """Rows by cluster, in order of the labels; noise, -1, is no cluster."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    return [rows for rows in np.split(order, starts) if labels[rows[0]] >= 0]


def doubtful_pairs(X: Any, clusters: list[IntArray]) -> tuple[list[int], list[tuple[int, int]]]:
    """The medoid of each cluster, and all pairs of clusters, those that overlap most first."""
    centers = np.array([mean_row(X, rows) for rows in clusters])
    distances = [squared_distances(X, rows, center[None])[:, 0] for rows, center in zip(clusters, centers, strict=True)]
    medoids = [int(rows[far.argmin()]) for rows, far in zip(clusters, distances, strict=True)]
    spread = np.array([far.mean() for far in distances])
    gaps = {
        (one, two): float(((centers[one] - centers[two]) ** 2).sum())
        for one, two in combinations(range(len(clusters)), 2)
    }
    # Two clusters of one place each have no spread: they come last, the nearer pair first.
    doubt = {pair: gap / spread[list(pair)].sum() if spread[list(pair)].any() else np.inf for pair, gap in gaps.items()}
    return medoids, sorted(gaps, key=lambda pair: (doubt[pair], gaps[pair]))
