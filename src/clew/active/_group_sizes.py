"""Detect whether the rows form a few large groups or very many small groups, from the data and the first answers.

Groups are small if most rows have a neighbour that is far nearer than the distances to their other neighbours suggest.
Otherwise groups are assumed to be large, until new ones keep appearing. Then a few questions about records compare two
partitions made without answers, one into large and one into small groups: are two random rows of one group the same?
Groups that are not small may still be many; see `_group_tree`.
"""

from __future__ import annotations

from collections.abc import Collection
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
# They also keep appearing if at most the second number of so many first answers are "same", which may be wrong. Even if
# large groups are better than small ones, there may be many groups: then this also holds for the other first answers.
_MORE_FIRST, _FEW_SAME = 19, 2
# Number of pairs of each partition that are asked about at most. The second number of pairs of large groups is enough
# if all of them differ.
_N_LARGE, _N_LARGE_IF_DIFFERENT, _N_SMALL = 12, 6, 4
# The partition into large groups is better as soon as this many of its pairs are the same, and this is so probable. One
# "same" alone may be a wrong answer.
_N_SAME, _SURE = 2, 0.9
# Number of points of the grid for the share of "same", and the lowest share, unless the true pairs of the other
# partition are a smaller share.
_N_SHARES, _LEAST_SHARE = 200, 0.05


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


def early_same(view: View) -> float | None:
    """Share of "same" among the first decided answers about records; None unless new groups keep appearing in them."""
    for n, few in ((_N_FIRST, 0), (_MORE_FIRST, _FEW_SAME)):
        same = first_answers(view, n)
        if same is not None and same <= few:
            return same / n
    return None


def groups_keep_appearing(view: View) -> bool:
    """Whether the first decided answers about records are "different", but for a few that may be wrong."""
    return early_same(view) is not None


def may_be_many(view: View, but: Collection[tuple[int, int]]) -> bool:
    """Whether new groups of records still appear later, in answers that are not about the pairs `but`."""
    same = first_answers(view, _MORE_FIRST, but)
    return same is not None and same <= _FEW_SAME


def first_answers(view: View, n: int, but: Collection[tuple[int, int]] = ()) -> int | None:
    """Number of "same" among the first `n` decided answers; None if there are fewer answers, or few rows.

    Answers about the pairs `but` do not count.
    """
    said = ((pair, answer) for told in view.told for pair, answer in told if answer in (SAME, DIFFERENT))
    first = [answer for _, answer in islice((one for one in said if one[0].key not in but), n)]
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

    @property
    def keys(self) -> set[tuple[int, int]]:
        """The pairs that may be asked about."""
        return {pair.key for pair in (*self.large, *self.small)}

    def next_pair(self, view: View) -> Pair | None:
        """The next pair to ask about; None if the answers decide between the partitions."""
        n_same = n_different = 0
        for pair in self.large:
            if view.is_open(*pair.key):
                return pair
            answer = view.known(*pair.key)
            n_same, n_different = n_same + (answer is SAME), n_different + (answer is DIFFERENT)
            if self._large_is_better(view, n_same, n_different):
                return None
            if n_different == _N_LARGE_IF_DIFFERENT and not n_same:
                break
        return next((pair for pair in self.small if view.is_open(*pair.key)), None)

    def _large_is_better(self, view: View, n_same: int, n_different: int) -> bool:
        """Whether large groups are better after these answers, even if all pairs of the small groups are right."""
        return n_same >= _N_SAME and self._large_is_worse(view, n_same, n_different, self.n_small) < 1 - _SURE

    def _large_is_worse(self, view: View, n_same: int, n_different: int, small_right: float) -> float:
        """Probability that large groups are worse, if so many pairs of the small groups are right.

        If groups are small, two rows of the first questions are hardly ever the same. So if no error rate is given, it
        is taken to be the share of "same" among these answers.
        """
        if not small_right:
            return 0.0
        rate = (early_same(view) or 0.0) if view.error_rate is None else view.error_rate
        return probably_worse(n_same, n_different, self.n_large, self.n_small, small_right, rate)

    def small_is_better(self, view: View) -> bool:
        """Whether the partition into small groups probably has the larger F-score, according to the answers.

        Its precision is the share of "same" among the answers about its pairs.
        """
        n_same, n_different = _said(view, self.large)
        right, wrong = _said(view, self.small)
        small_right = self.n_small * right / max(right + wrong, 1)
        return self._large_is_worse(view, n_same, n_different, small_right) > 0.5


def probably_worse(
    n_same: int, n_different: int, joined: float, other_joined: float, other_right: float, error_rate: float = 0.0
) -> float:
    """Probability that a partition has a lower F-score of pairs than another one.

    The partition joins `joined` pairs. Of a sample of them, so many are "same" and "different". The logarithm of the
    share of "same" among all of them has a uniform prior, because 12 answers cannot tell one true pair in a hundred
    from one in ten thousand. The other partition joins `other_joined` pairs, and `other_right` of them belong together.
    The lowest share is that of these true pairs. The number of true pairs is taken to be the larger of the numbers that
    the two partitions join. An answer is wrong with probability `error_rate`.
    """
    least = min(other_right / joined, _LEAST_SHARE)
    shares = np.exp(np.log(least) * (np.arange(_N_SHARES) + 0.5) / _N_SHARES)
    said_same = shares * (1 - error_rate) + (1 - shares) * error_rate
    weights = said_same**n_same * (1 - said_same) ** n_different
    right = shares * joined
    true = np.maximum(right, other_right)
    is_worse = right / (joined + true) < other_right / (other_joined + true)
    return float(weights[is_worse].sum() / weights.sum())


def _said(view: View, pairs: list[Pair]) -> tuple[int, int]:
    """Numbers of "same" and "different" among the answers about these pairs."""
    known = [view.known(*pair.key) for pair in pairs]
    return known.count(SAME), known.count(DIFFERENT)


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
