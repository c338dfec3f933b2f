"""Many groups of an unknown number: a tree of average linkage, and questions about where to cut it.

A merge is described by its level: the logarithm of the number of clusters before it. Rows that are joined at a level
above a threshold belong together, nearly always, and the threshold is the logarithm of the number of groups. The first
questions search for the threshold. Later ones are about the merges whose answers are expected to change most pairs of
rows. Dasgupta and Hsu 2008 (`dasgupta2008`) ask about the nodes of a tree for classification.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit

from clew.active._answers import Pair
from clew.active._representatives import MicroClusters, PointView, point_view
from clew.active._uncertain_matches import _any_open_pair
from clew.active._view import View
from clew.constraints import Closure
from clew.constraints._closure import component_numbers
from clew.graph._kernels import standard
from clew.hierarchical._agglomeration import must_pairs
from clew.hierarchical._average_tree import AverageTree, average_tree
from clew.hierarchical._sparse_agglomeration import graph_merges

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# With more rows, the tree is built on a sample of so many rows, since its time is quadratic.
_MOST_POINTS = 30_000
# From so many rows on, the tree takes more than a second.
_PREPARED = 10_000
# Levels are rounded to so many values.
_N_LEVELS = 500
# Number of thresholds that are compared, the widths over which the probability of "same" falls from 0.73 to 0.27, and
# the probability of an answer against the tree at any level.
_N_THRESHOLDS, _WIDTHS, _AGAINST = 120, np.array([0.05, 0.1, 0.2, 0.4, 0.8]), 0.05
# The threshold is found if its standard deviation is below the first value, or after so many answers.
_CERTAIN, _MOST_ANSWERS = 0.25, 60
# Half the range of levels from which questions about the threshold are chosen.
_NEAR = 0.1
# There are many groups if their number exceeds that of the large groups by this factor.
_MANY_MORE = 2.0
# Number of merges that are looked at to find one that may be asked about.
_MOST_LOOKED = 1_000


class GroupTree(NamedTuple):
    """The tree of rows, or of points that represent them, and what is derived from it.

    Attributes
    ----------
    tree : AverageTree
    pairs : ndarray of shape (n_points - 1, 2)
        A point of each of the two clusters that a merge joins.
    levels : ndarray of shape (n_points - 1,)
        Logarithm of the number of clusters before each merge.
    stakes : ndarray of shape (n_points - 1,)
        Number of pairs of points that each merge joins.
    parents : ndarray of shape (2 * n_points - 1,)
        The node that each node is merged into; -1 for the root.
    """

    tree: AverageTree
    pairs: IntArray
    levels: FloatArray
    stakes: FloatArray
    parents: IntArray

    @classmethod
    def of(cls, columns: FloatArray) -> GroupTree:
        """Build the tree of standardised rows."""
        tree = average_tree(columns)
        n = tree.n_rows
        parents = np.full(2 * n - 1, -1)
        parents[tree.children] = np.arange(n, 2 * n - 1)[:, None]
        stakes = tree.sizes[tree.children].astype(np.float64).prod(axis=1)
        return cls(tree, tree.pairs(), np.log(n - np.arange(n - 1)), stakes, parents)

    def level_of(self, one: int, two: int) -> float:
        """The level of the merge that joins two points."""
        while one != two:  # the numbers of parents are larger
            if one < two:
                one = int(self.parents[one])
            else:
                two = int(self.parents[two])
        return float(self.levels[one - self.tree.n_rows])

    def labels(self, is_merged: npt.NDArray[np.bool_], closed: Closure, cells: IntArray) -> IntArray:
        """Clusters by some of the merges, the lowest first. Merges against cannot-links are left out.

        `cells` has the point of the tree that each point of `closed` belongs to; see `Points`.
        """
        n, n_tree = len(cells), self.tree.n_rows
        further = np.arange(n_tree, n)
        pairs = np.concatenate([np.column_stack([cells[further], further]), self.pairs[is_merged]])
        heights = np.concatenate([np.zeros(len(further)), 1.0 + np.flatnonzero(is_merged)])
        edges = sparse.coo_array((heights + 1, tuple(pairs.T)), shape=(n, n))
        merges = graph_merges(sparse.csr_array(edges + edges.T), "single", closed)
        return component_numbers(n, must_pairs(closed), merges.pairs)[0]


class Threshold(NamedTuple):
    """The posterior of the level below which rows do not belong together: one weight per threshold and width."""

    grid: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, highest: float, levels: FloatArray, same: npt.NDArray[np.bool_]) -> Threshold:
        """The posterior given the levels of answered pairs and the answers, from a uniform prior up to `highest`."""
        grid, at = np.linspace(0.0, highest, _N_THRESHOLDS), np.linspace(0.0, highest, _N_LEVELS)
        places = np.rint(levels * ((_N_LEVELS - 1) / highest)).astype(np.int64)
        total = np.zeros((_N_THRESHOLDS, len(_WIDTHS)))
        for answer in (True, False):
            counts = np.bincount(places[same == answer], minlength=_N_LEVELS)
            some = np.flatnonzero(counts)
            total += np.tensordot(counts[some], _log_likelihoods(grid, at[some], np.full(len(some), answer)), 1)
        return cls(grid, _normalized(total))

    def __call__(self, levels: FloatArray) -> FloatArray:
        """Probability that rows which are joined at these levels belong together."""
        at = np.linspace(0.0, self.grid[-1], _N_LEVELS)
        found = np.tensordot(_same(self.grid, at), self.weights, 2)
        return np.interp(levels, at, found)

    @property
    def median(self) -> float:
        """Median of the threshold."""
        return float(self.grid[np.searchsorted(np.cumsum(self.weights.sum(axis=1)), 0.5)])

    @property
    def deviation(self) -> float:
        """Standard deviation of the threshold."""
        shares = self.weights.sum(axis=1)
        return float(np.sqrt(shares @ (self.grid - shares @ self.grid) ** 2))


def first_certain(highest: float, levels: FloatArray, same: npt.NDArray[np.bool_]) -> Threshold | None:
    """The posterior after the first answers that make it certain enough; None if there are too few answers."""
    levels, same = levels[:_MOST_ANSWERS], same[:_MOST_ANSWERS]
    grid = np.linspace(0.0, highest, _N_THRESHOLDS)
    total = np.zeros((_N_THRESHOLDS, len(_WIDTHS)))
    for one in _log_likelihoods(grid, levels, same):
        total += one
        found = Threshold(grid, _normalized(total))
        if found.deviation < _CERTAIN:
            return found
    return Threshold(grid, _normalized(total)) if len(levels) == _MOST_ANSWERS else None


def _same(grid: FloatArray, levels: FloatArray) -> FloatArray:
    """Probability of "same" for each level, threshold and width."""
    return expit((levels[:, None, None] - grid[:, None]) / _WIDTHS)


def _log_likelihoods(grid: FloatArray, levels: FloatArray, same: npt.NDArray[np.bool_]) -> FloatArray:
    probability = _AGAINST + (1 - 2 * _AGAINST) * _same(grid, levels)
    return np.log(np.where(same[:, None, None], probability, 1 - probability))


def _normalized(logs: FloatArray) -> FloatArray:
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


class TreeQuestions:
    """Questions and labels for many groups of an unknown number. All of it is computed from the view alone.

    Parameters
    ----------
    seed : int
        Seed of the sample of very many rows.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def comparison_pair(self, view: View) -> Pair | None:
        """The next question that searches for the number of groups; None if it is known well enough."""
        state = self._state(view)
        if first_certain(state.grown.levels[0], *state.answers) is not None:
            return None
        levels = state.grown.levels
        near = np.abs(levels - state.threshold.median) < _NEAR
        nearest = np.abs(levels - state.threshold.median).argmin()
        near[nearest] = True
        question = state.open_pair(np.where(near, state.grown.stakes, 0.0), "How many groups are there?")
        return None if question is None else state.in_rows(question)

    def has_many_groups(self, view: View, n_large: int) -> bool:
        """Whether the answers show that there are many more groups than `n_large`."""
        state = self._state(view)
        found = first_certain(state.grown.levels[0], *state.answers)
        return found is not None and np.exp(found.median) > _MANY_MORE * n_large

    def next_question(self, view: View) -> Pair | None:
        """The merge whose answer is expected to change most pairs of rows; None if nothing is open."""
        state = self._state(view)
        probability = state.threshold(state.grown.levels)
        doubt = np.where(state.is_merged(), 1 - probability, probability)
        question = state.open_pair(doubt * state.grown.stakes, "Are these two groups one?")
        return _any_open_pair(view) if question is None else state.in_rows(question)

    def labels(self, view: View) -> IntArray:
        """Cut the tree where the expected F-score of pairs is best, and obey all constraints."""
        state = self._state(view)
        closed = state.view.constraints().closure()
        cells = np.arange(view.n_rows) if state.of_points is None else state.of_points.points.cells
        labels = state.grown.labels(state.is_merged(), closed, cells)
        return labels if state.of_points is None else state.of_points.nearest_labels(labels)

    def prepare(self, view: View) -> None:
        """Build the tree of many rows before the first question, so that no later question has to wait for it."""
        if view.n_rows >= _PREPARED:
            self._grown(view)

    def _grown(self, view: View) -> tuple[GroupTree, MicroClusters | None]:
        def grow() -> tuple[GroupTree, MicroClusters | None]:
            if view.n_rows <= _MOST_POINTS:
                return GroupTree.of(standard(view.X)), None
            micro = MicroClusters.of(view.X, _MOST_POINTS, self._seed)
            return GroupTree.of(micro.centers), micro

        return view.once(f"group tree {self._seed}", grow)

    def _state(self, view: View) -> _State:
        """What the view says about the tree. It is only computed again after a new answer."""
        grown, micro = self._grown(view)
        of_points = None if micro is None else point_view(view, micro)
        inner = view if of_points is None else of_points.view
        last: _State | None
        last_at, last = view.latest.get("group tree", (None, None))
        at = len(view.said), len(inner.said)
        if last is None or last_at != at or last.view is not inner:
            said = inner.said[inner.said[:, 2] != 0]
            cells = np.arange(inner.n_rows) if of_points is None else of_points.points.cells
            said = said[cells[said[:, 0]] != cells[said[:, 1]]]
            levels = np.array([grown.level_of(*pair) for pair in cells[said[:, :2]].tolist()], dtype=np.float64)
            answers = levels, said[:, 2] > 0
            last = _State(inner, of_points, grown, answers, Threshold.of(grown.levels[0], *answers))
            view.latest["group tree"] = at, last
        return last


class _State(NamedTuple):
    """The tree, the answers about it (levels, and whether the answer is "same"), and the posterior of the threshold."""

    view: View
    of_points: PointView | None
    grown: GroupTree
    answers: tuple[FloatArray, npt.NDArray[np.bool_]]
    threshold: Threshold

    def is_merged(self) -> npt.NDArray[np.bool_]:
        """Merges below the cut with the best expected F-score of pairs of rows: 2 right / (joined + all true)."""
        stakes = self.grown.stakes
        right = np.cumsum(stakes * self.threshold(self.grown.levels))
        scores = right / (np.cumsum(stakes) + right[-1])
        return np.arange(len(stakes)) <= scores.argmax()

    def open_pair(self, scores: FloatArray, why: str) -> Pair | None:
        """The pair of the merge with the highest score that may be asked about."""
        n = min(_MOST_LOOKED, len(scores))
        best = np.argpartition(-scores, n - 1)[:n]
        for place in best[np.lexsort((best, -scores[best]))].tolist():
            one, two = self.grown.pairs[place].tolist()
            if scores[place] > 0 and self.view.is_open(one, two):
                return Pair(one, two, why=why)
        return None

    def in_rows(self, question: Pair) -> Pair:
        """The question about points as a question about rows."""
        return question if self.of_points is None else self.of_points.in_rows(question)
