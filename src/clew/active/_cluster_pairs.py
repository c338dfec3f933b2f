"""Ask whether two clusters belong together: one answer for many pairs of rows.

Truong and Battiti 2013 (`truong2013`), section 5.2, calls for such questions. The way to choose them is clew's own.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.active._answers import Pair
from clew.active._distances import mean_row, squared_distances
from clew.active._strategy import Strategy
from clew.active._view import IntArray, View


class ClusterPairs(Strategy):
    """Ask whether two clusters belong together, most overlapping clusters first.

    The clusterer makes the clusters. A question shows the rows of two clusters, and the answer is recorded for their
    medoids only, so that outliers in a cluster do no harm. With `n_clusters` above the true number, the answers join
    the small clusters into the true ones.

    Notes
    -----
    Two clusters overlap if the squared distance between their centres is small relative to the sum of their mean
    squared distances to the centre. The medoid is the row nearest to the centre. The clusterer runs again after every
    answer, so that a resumed log meets the same clusters. Questions end when all pairs of the current clusters are
    decided. O(n d + k² d) per run.

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
        """Cluster, ask about the two clusters that overlap most, and repeat."""
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
    """Rows of each cluster, in order of the labels. Rows with label -1 (noise) are left out."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    return [rows for rows in np.split(order, starts) if labels[rows[0]] >= 0]


def doubtful_pairs(X: Any, clusters: list[IntArray]) -> tuple[list[int], list[tuple[int, int]]]:
    """The medoid of each cluster, and all pairs of clusters, most overlapping pairs first."""
    centers = np.array([mean_row(X, rows) for rows in clusters])
    distances = [squared_distances(X, rows, center[None])[:, 0] for rows, center in zip(clusters, centers, strict=True)]
    medoids = [int(rows[far.argmin()]) for rows, far in zip(clusters, distances, strict=True)]
    spread = np.array([far.mean() for far in distances])
    gaps = {
        (one, two): float(((centers[one] - centers[two]) ** 2).sum())
        for one, two in combinations(range(len(clusters)), 2)
    }
    # Two clusters without spread (repeated rows only) come last, nearest pair first.
    doubt = {pair: gap / spread[list(pair)].sum() if spread[list(pair)].any() else np.inf for pair, gap in gaps.items()}
    return medoids, sorted(gaps, key=lambda pair: (doubt[pair], gaps[pair]))
