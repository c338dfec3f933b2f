"""Detect whether the rows form a few large groups or very many small groups, from the data and the first answers.

Groups are small if most rows have a neighbour that is far nearer than the distances to their other neighbours suggest.
Otherwise groups are assumed to be large, until new ones keep appearing. Then a few questions about records compare two
partitions made without answers, one into large and one into small groups: are two random rows of one group the same?
The groups of vectors may be many, too; see `_group_tree`.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.neighbors import NearestNeighbors

from clew.active._answers import DIFFERENT, SAME, Pair
from clew.active._view import View

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# For tables with fewer rows, the data alone never show small groups.
_FEW_ROWS = 100
# Number of rows, and of neighbours of each, from which the size of groups is estimated.
_SAMPLE, _N_NEIGHBORS = 500, 30
# A row has a near duplicate if its nearest neighbour is nearer than this share of the expected distance. The data show
# small groups if this share of the rows has one. It is 0.6 to 0.7 on three published tables of records (a fourth has
# few duplicates), and 0 to 0.25 on ten published tables with 2 to 10 groups.
_NEAR, _SHARE_NEAR = 0.5, 0.4
# If none of so many first answers about records is "same", new groups keep appearing, and two partitions are compared.
_N_FIRST = 6
# Number of pairs of each partition that are asked about. The second number of pairs of large groups is enough if all of
# them differ.
_N_LARGE, _N_LARGE_IF_DIFFERENT, _N_SMALL = 12, 6, 4


def near_duplicates(X: npt.NDArray[np.float64]) -> float:
    """Share of rows whose nearest neighbour is far nearer than the distances to other neighbours suggest.

    In a large group of d dimensions, the distance to the k-th neighbour grows as k^(1/d). The median of 1/d between
    the 10th and the 30th neighbour predicts the distance to the first one.
    """
    n_rows = X.shape[0]
    k = min(_N_NEIGHBORS, (n_rows - 1) // 3)
    rows = np.linspace(0, n_rows - 1, min(n_rows, _SAMPLE)).astype(np.int64)
    found = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(X).kneighbors(X[rows])[0][:, 1:]
    distances = np.maximum(found, 1e-12)
    inner = max(k // 3, 2)
    growth = np.median(np.log(distances[:, k - 1] / distances[:, inner - 1])) / np.log(k / inner)
    expected = distances[:, inner - 1] * inner**-growth
    # Rows with many equal rows are discrete data, not duplicates.
    return float(((distances[:, 0] < _NEAR * expected) & (distances[:, inner - 1] > 1e-9)).mean())


def data_show_small_groups(view: View) -> bool:
    """Whether the data alone show very many small groups."""
    if view.n_rows < _FEW_ROWS:
        return False
    return bool(view.once("near duplicates", lambda: near_duplicates(view.X)) >= _SHARE_NEAR)


def groups_keep_appearing(view: View) -> bool:
    """Whether all of the first decided answers about records are "different"."""
    return first_answers(view, _N_FIRST) == 0


def first_answers(view: View, n: int) -> int | None:
    """Number of "same" among the first `n` decided answers; None if there are fewer answers, or few rows."""
    first = list(islice((answer for told in view.told for _, answer in told if answer in (SAME, DIFFERENT)), n))
    return first.count(SAME) if len(first) == n and view.n_rows >= _FEW_ROWS else None


class Comparison(NamedTuple):
    """Random pairs within the groups of two partitions, and the number of all pairs within groups."""

    large: list[Pair]
    small: list[Pair]
    n_large: float
    n_small: float

    @classmethod
    def of(cls, large: IntArray, small: IntArray, rng: np.random.Generator) -> Comparison:
        """Draw pairs within the groups of a partition into large groups and of one into small groups."""
        drawn = [pairs_within(labels, rng) for labels in (large, small)]
        return cls(drawn[0][0][:_N_LARGE], drawn[1][0][:_N_SMALL], drawn[0][1], drawn[1][1])

    def next_pair(self, view: View) -> Pair | None:
        """The next pair to ask about; None if the answers decide between the partitions."""
        first = self.large[:_N_LARGE_IF_DIFFERENT]
        large = first if all(view.known(*pair.key) is DIFFERENT for pair in first) else self.large
        return next((pair for pair in (*self.small, *large) if view.is_open(*pair.key)), None)

    def small_is_better(self, view: View) -> bool:
        """Whether the partition into small groups has the larger F-score according to the answers.

        The precision of each partition is the share of "same" answers. The number of true pairs is the larger of the
        two numbers of true pairs found.
        """
        right = [_share_same(view, pairs) * n for pairs, n in ((self.large, self.n_large), (self.small, self.n_small))]
        scores = [2 * one / (n + max(right)) if n else 0.0 for one, n in zip(right, self[2:], strict=True)]
        return scores[1] > scores[0]


def _share_same(view: View, pairs: list[Pair]) -> float:
    known = [view.known(*pair.key) for pair in pairs]
    return known.count(SAME) / max(known.count(SAME) + known.count(DIFFERENT), 1)


def pairs_within(labels: IntArray, rng: np.random.Generator) -> tuple[list[Pair], float]:
    """Pairs of rows of one group, drawn uniformly from all such pairs, and the number of all such pairs.

    There are up to 24 pairs; fewer if some were drawn twice.
    """
    sizes = np.bincount(labels).astype(np.float64)
    n_pairs = sizes * (sizes - 1) / 2
    total = float(n_pairs.sum())
    if not total:
        return [], 0.0
    found: dict[tuple[int, int], Pair] = {}
    for group in rng.choice(len(sizes), size=2 * _N_LARGE, p=n_pairs / total).tolist():
        one, two = rng.choice(np.flatnonzero(labels == group), size=2, replace=False).tolist()
        pair = Pair(one, two, why="Are the groups large or small?")
        found.setdefault(pair.key, pair)
    return list(found.values()), total
