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
from scipy.special import expit, logit

from clew.active._answer_errors import error_rate
from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair
from clew.active._group_sizes import first_answers, pairs_within, probably_worse
from clew.active._knowledge import Knowledge
from clew.active._representatives import MicroClusters, PointView, point_view
from clew.active._second_opinions import certain_constraints
from clew.active._uncertain_matches import any_open_pair, votes
from clew.active._view import View
from clew.constraints import Closure, Constraints
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
# the least probability of an answer against the tree at any level.
_N_THRESHOLDS, _WIDTHS, _AGAINST = 120, np.array([0.05, 0.1, 0.2, 0.4, 0.8]), 0.05
# New groups keep appearing if none of so many first answers is "same". If an error rate is given, 2.5 times as many as
# are expected to be wrong may be "same", because `Auto` then asks again about some rows. Without it, an answer "same"
# means that there may be a few groups of several parts each, which the tree would never join.
_N_FIRST, _MORE_SAME = 19, 2.5
# The threshold is found if its standard deviation is below the first value. The search ends in vain after so many
# answers. It also ends if the probability of many groups is below the third value.
_CERTAIN, _MOST_ANSWERS, _IMPROBABLE = 0.25, 60, 0.1
# Half the range of levels from which questions about the threshold are chosen.
_NEAR = 0.1
# There are many groups if their number exceeds that of the large groups by this factor, and this number. With so few
# rows per group on average, the tree says nothing: few large groups that overlap look like that, too.
_MANY_MORE, _MANY, _FEW_ROWS = 2.0, 50, 2.0
# The tree is compared with large groups until one of the two is better with this probability, or until so many pairs
# have been asked about.
_SURE, _MOST_COMPARED = 0.9, 12
# Shares of right answers against the tree that are compared if answers may be wrong.
_CONTRARY = np.linspace(0.005, 0.4, 80)
# Number of times that one pair is asked about if answers may be wrong.
_MOST_ASKED = 3
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

    def merge_of(self, one: int, two: int) -> int:
        """The merge that joins two points; -1 for a point and itself."""
        if one == two:
            return -1
        while one != two:  # the numbers of parents are larger
            if one < two:
                one = int(self.parents[one])
            else:
                two = int(self.parents[two])
        return one - self.tree.n_rows

    def merges_of(self, pairs: IntArray) -> IntArray:
        """The merges that join pairs of points; -1 for a point and itself."""
        return np.array([self.merge_of(*pair) for pair in pairs.tolist()], dtype=np.int64)

    def levels_of(self, pairs: IntArray) -> FloatArray:
        """The levels of the merges that join pairs of different points."""
        return self.levels[self.merges_of(pairs)]

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
    def of(cls, highest: float, answers: LevelAnswers) -> Threshold:
        """The posterior given the answers, from a uniform prior up to `highest`."""
        levels, same, against = answers
        grid, at = np.linspace(0.0, highest, _N_THRESHOLDS), np.linspace(0.0, highest, _N_LEVELS)
        places = np.rint(levels * ((_N_LEVELS - 1) / highest)).astype(np.int64)
        total = np.zeros((_N_THRESHOLDS, len(_WIDTHS)))
        for answer in (True, False):
            counts = np.bincount(places[same == answer], minlength=_N_LEVELS)
            some = np.flatnonzero(counts)
            total += np.tensordot(counts[some], _log_likelihoods(grid, at[some], answer, against), 1)
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

    def given(self, level: float, same: bool, against: float) -> Threshold:
        """The posterior given one more answer."""
        likelihoods = np.exp(_log_likelihoods(self.grid, np.array([level]), same, against)[0])
        return Threshold(self.grid, self.weights * likelihoods / (self.weights * likelihoods).sum())

    def cut(self, grown: GroupTree) -> Cut:
        """The cut of a tree with the best expected F-score of pairs: 2 right / (joined + all true)."""
        right, joined = np.cumsum(grown.stakes * self(grown.levels)), np.cumsum(grown.stakes)
        best = int((right / (joined + right[-1])).argmax())
        return Cut(best + 1, right[best] / joined[-1], joined[best] / joined[-1])

    def above(self, level: float) -> float:
        """Probability that the threshold is above a level."""
        return float(self.weights.sum(axis=1)[self.grid > level].sum())

    @property
    def deviation(self) -> float:
        """Standard deviation of the threshold."""
        shares = self.weights.sum(axis=1)
        return float(np.sqrt(shares @ (self.grid - shares @ self.grid) ** 2))


class Cut(NamedTuple):
    """A cut of the tree: the number of merges below it, and shares of all pairs of points."""

    n_merges: int
    right: float  # expected share of the pairs that are joined and belong together
    joined: float  # share of the pairs that are joined


class LargeGroups(NamedTuple):
    """A partition into large groups, made without answers, with which the tree is compared.

    Attributes
    ----------
    n_clusters : int
        The guessed number of groups.
    pairs : list of Pair
        Random pairs of rows of one large group.
    joined : float
        Share of all pairs of rows that are in one large group.
    """

    n_clusters: int
    pairs: list[Pair]
    joined: float

    @classmethod
    def of(cls, labels: IntArray, n_clusters: int) -> LargeGroups:
        """Draw pairs within the groups."""
        pairs, n_pairs = pairs_within(labels, np.random.default_rng(0))
        return cls(n_clusters, pairs[:_MOST_COMPARED], 2 * n_pairs / (len(labels) * (len(labels) - 1)))

    def worse(self, n_same: int, n_different: int, cut: Cut) -> float:
        """Probability that these groups have a lower F-score of pairs than a cut of the tree.

        `n_same` and `n_different` are the numbers of answers about pairs within these groups; see `probably_worse`.
        """
        return probably_worse(n_same, n_different, self.joined, cut.joined, cut.right)


class LevelAnswers(NamedTuple):
    """Levels of answered pairs, whether the answer is "same", and the least chance of an answer against the tree."""

    levels: FloatArray
    same: npt.NDArray[np.bool_]
    against: float = _AGAINST


def search_result(highest: float, answers: LevelAnswers, many: float) -> Threshold | None:
    """The posterior after the first answers that end the search; None if there are too few answers.

    The search ends if the threshold is certain, if it is hardly above the level `many`, or after too many answers.
    """
    grid = np.linspace(0.0, highest, _N_THRESHOLDS)
    total = np.zeros((_N_THRESHOLDS, len(_WIDTHS)))
    for place, (level, same) in enumerate(zip(answers.levels[:_MOST_ANSWERS], answers.same, strict=False)):
        total += _log_likelihoods(grid, np.array([level]), bool(same), answers.against)[0]
        if place + 1 < _N_FIRST:
            continue
        found = Threshold(grid, _normalized(total))
        if found.deviation < _CERTAIN or place + 1 == _MOST_ANSWERS or found.above(many) < _IMPROBABLE:
            return found
    return None


def groups_keep_appearing(view: View) -> bool:
    """Whether the first decided answers are "different", but for some that may be wrong."""
    same = first_answers(view, _N_FIRST)
    return same is not None and same <= _MORE_SAME * _N_FIRST * (view.error_rate or 0.0)


def _same(grid: FloatArray, levels: FloatArray) -> FloatArray:
    """Probability of "same" for each level, threshold and width."""
    return expit((levels[:, None, None] - grid[:, None]) / _WIDTHS)


def _log_likelihoods(grid: FloatArray, levels: FloatArray, same: bool, against: float) -> FloatArray:
    probability = against + (1 - 2 * against) * _same(grid, levels)
    return np.log(probability if same else 1 - probability)


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

    def comparison_pair(self, view: View, large: LargeGroups) -> Pair | None:
        """The next question that searches for the number of groups, or compares the tree with large groups.

        None if both are finished.
        """
        state = self._state(view)
        found = state.search_result(large.n_clusters)
        if found is not None:
            return self._compared(view, large, found)[1] if state.may_be_many(found, large.n_clusters) else None
        levels = state.grown.levels
        near = np.abs(levels - state.threshold.median) < _NEAR
        nearest = np.abs(levels - state.threshold.median).argmin()
        near[nearest] = True
        question = state.open_pair(np.where(near, state.grown.stakes, 0.0), "How many groups are there?")
        return None if question is None else state.in_rows(question[0])

    def has_many_groups(self, view: View, large: LargeGroups) -> bool:
        """Whether the answers show that there are many more groups than the large ones, and that the tree is better."""
        state = self._state(view)
        found = state.search_result(large.n_clusters)
        if found is None or not state.may_be_many(found, large.n_clusters):
            return False
        return self._compared(view, large, found)[0]

    def _compared(self, view: View, large: LargeGroups, found: Threshold) -> tuple[bool, Pair | None]:
        """Whether the tree is better than large groups, and a pair to ask about while that is in doubt."""
        answers = [view.known(*pair.key) for pair in large.pairs]
        openings = (place for place, pair in enumerate(large.pairs) if view.is_open(*pair.key))
        n_asked = next(openings, len(answers))
        answers = answers[:n_asked]
        key = found.weights.tobytes(), *answers
        last_key, worse = view.latest.get("tree or large groups", (None, 0.0))
        if last_key != key:
            worse = self._worse(view, large, found, answers)
            view.latest["tree or large groups"] = key, worse
        is_sure = not 1 - _SURE < worse < _SURE
        if is_sure and (SAME in answers or DIFFERENT in answers):  # a question that waits for its answer says nothing
            return worse > 0.5, None
        if n_asked < len(large.pairs):
            return False, large.pairs[n_asked]
        is_waiting = any(pair.key in view.waiting.pairs for pair in large.pairs)
        return worse > 0.5 and not is_waiting, None

    def _worse(self, view: View, large: LargeGroups, found: Threshold, answers: list[Answer | None]) -> float:
        """Probability that large groups are worse than the tree, given the answers about the first pairs within them.

        The answers count in the order of the pairs until the probability is certain. They also correct the threshold
        that the search has found.
        """
        grown, micro = self._grown(view)
        cells = np.arange(view.n_rows) if micro is None else micro.of_row
        against = max(_AGAINST, view.error_rate or 0.0)
        counts = {SAME: 0, DIFFERENT: 0}
        worse = large.worse(0, 0, found.cut(grown))
        for pair, answer in zip(large.pairs, answers, strict=False):
            if answer is None or answer is UNSURE:
                continue
            counts[answer] += 1
            merge = grown.merge_of(*cells[list(pair.key)].tolist())
            if merge >= 0:
                found = found.given(grown.levels[merge], answer is SAME, against)
            worse = large.worse(counts[SAME], counts[DIFFERENT], found.cut(grown))
            if not 1 - _SURE < worse < _SURE:
                break
        return worse

    def next_question(self, view: View) -> Pair | None:
        """The merge whose answer is expected to change most pairs of rows; None if nothing is open.

        If answers may be wrong, this may be a pair that was asked before.
        """
        state = self._state(view)
        probability = state.threshold(state.grown.levels)
        doubt = np.where(state.is_merged(), 1 - probability, probability)
        merges = np.arange(len(probability))
        scores = doubt * state.stakes(state.grown.pairs, merges)
        question, worth = state.open_pair(scores, "Are these two groups one?") or (None, 0.0)
        if state.rate and view.may_check(repeated=True):
            question = state.second_opinion(worth) or question
        return any_open_pair(view) if question is None else state.in_rows(question)

    def labels(self, view: View) -> IntArray:
        """Cut the tree where the expected F-score of pairs is best, and obey all constraints.

        If answers may be wrong, this leaves out answers that the tree and other answers make improbable.
        """
        state = self._state(view)
        cells = np.arange(view.n_rows) if state.of_points is None else state.of_points.points.cells
        labels = state.grown.labels(state.is_merged(), state.constraints().closure(), cells)
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
            cells = np.arange(inner.n_rows) if of_points is None else of_points.points.cells
            said = inner.said[inner.said[:, 2] != 0]
            said = said[cells[said[:, 0]] != cells[said[:, 1]]]
            rate = error_rate(inner)
            against = max(_AGAINST, inner.error_rate or 0.0)
            answers = LevelAnswers(grown.levels_of(cells[said[:, :2]]), said[:, 2] > 0, against)
            threshold = Threshold.of(grown.levels[0], answers)
            last = _State(inner, of_points, grown, answers, threshold, rate, cells)
            view.latest["group tree"] = at, last
        return last


def _many(n_large: int) -> float:
    """Logarithm of the number of groups above which they are many."""
    return float(np.log(max(_MANY_MORE * n_large, _MANY)))


class _State(NamedTuple):
    """The tree, the answers about it, the posterior of the threshold, and the error rate; 0 while answers are facts.

    `cells` has the point of the tree that each row of the view belongs to.
    """

    view: View
    of_points: PointView | None
    grown: GroupTree
    answers: LevelAnswers
    threshold: Threshold
    rate: float
    cells: IntArray

    def search_result(self, n_large: int) -> Threshold | None:
        """The threshold when the search ended, whatever the later answers."""
        return search_result(self.grown.levels[0], self.answers, _many(n_large))

    def may_be_many(self, found: Threshold, n_large: int) -> bool:
        """Whether the search found many more groups than the large ones."""
        if found.deviation >= _CERTAIN:  # in vain: groups overlap, or are not compact
            return False
        return bool(_many(n_large) < found.median < np.log(len(self.grown.levels) / _FEW_ROWS))

    def is_merged(self) -> npt.NDArray[np.bool_]:
        """Merges below the cut with the best expected F-score of pairs."""
        return np.arange(len(self.grown.levels)) < self.threshold.cut(self.grown).n_merges

    def stakes(self, pairs: IntArray, merges: IntArray) -> FloatArray:
        """Number of pairs of points that an answer about a pair of them joins or separates, given their merges.

        Below the cut, these are the pairs that the merge joins. Above it, two of the clusters may be one.
        """
        is_merged = self.is_merged()
        clusters = self.grown.tree.labels(len(is_merged) + 1 - int(is_merged.sum()))
        of_points = np.bincount(clusters)[clusters].astype(np.float64)
        return np.where(is_merged[merges], self.grown.stakes[merges], of_points[pairs].prod(axis=1))

    def constraints(self) -> Constraints:
        """All constraints; without answers that are probably wrong, if answers may be wrong."""
        if not self.rate:
            return self.view.constraints()
        certain = certain_constraints(self.view)
        pairs, log_odds = self.judged()
        known = Knowledge(certain.closure())
        together: list[tuple[int, int]] = []
        apart: list[tuple[int, int]] = []
        for place in np.argsort(-np.abs(log_odds), kind="stable").tolist():
            one, two = pairs[place].tolist()
            answer: Answer = SAME if log_odds[place] > 0 else DIFFERENT
            if known.add(one, two, answer):
                (together if answer is SAME else apart).append((one, two))
        return certain | Constraints(together, apart, n_samples=self.view.n_rows)

    def judged(self) -> tuple[IntArray, FloatArray]:
        """The pairs that people answered, and the log-odds that they are the same, from the tree and the answers.

        Where groups are not compact, right answers are against the tree, too. Their share is estimated, so that answers
        are only doubted if as few of them are against the tree as the error rate says.
        """
        said = votes(self.view)
        said[:, :2].sort(axis=1)
        pairs, place = np.unique(said[:, :2], axis=0, return_inverse=True)
        evidence = np.bincount(place.ravel(), weights=said[:, 2], minlength=len(pairs)) * logit(1 - self.rate)
        levels, same, _ = self.answers
        flips = self.rate + (1 - 2 * self.rate) * _CONTRARY
        right = np.where(same, self.threshold(levels), 1 - self.threshold(levels))
        contrary = _CONTRARY[np.log(flips[:, None] + (1 - 2 * flips[:, None]) * right).sum(axis=1).argmax()]
        of_pairs = self.cells[pairs]
        is_apart = of_pairs[:, 0] != of_pairs[:, 1]
        expected = np.ones(len(pairs))
        expected[is_apart] = self.threshold(self.grown.levels_of(of_pairs[is_apart]))
        return pairs, logit(contrary + (1 - 2 * contrary) * expected) + evidence

    def open_pair(self, scores: FloatArray, why: str) -> tuple[Pair, float] | None:
        """The pair of the merge with the highest score that may be asked about, and the score."""
        n = min(_MOST_LOOKED, len(scores))
        best = np.argpartition(-scores, n - 1)[:n]
        for place in best[np.lexsort((best, -scores[best]))].tolist():
            one, two = self.grown.pairs[place].tolist()
            if scores[place] > 0 and self.view.is_open(one, two):
                return Pair(one, two, why=why), float(scores[place])
        return None

    def second_opinion(self, worth: float) -> Pair | None:
        """The answered pair whose second opinion is expected to change most pairs of rows, if more than `worth`."""
        pairs, log_odds = self.judged()
        of_pairs = self.cells[pairs]
        merges = self.grown.merges_of(of_pairs)
        scores = np.where(merges < 0, 0.0, expit(-np.abs(log_odds)) * self.stakes(of_pairs, merges))
        said = votes(self.view)[:, :2]
        said.sort(axis=1)
        for place in np.argsort(-scores, kind="stable").tolist():
            if scores[place] <= worth:
                return None
            one, two = pairs[place].tolist()
            n_asked = int((said == pairs[place]).all(axis=1).sum())
            if n_asked < _MOST_ASKED and (one, two) not in self.view.waiting.pairs | self.view.unsure:
                return Pair(one, two, why="A second opinion: the tree or another answer contradicts.", check=True)
        return None

    def in_rows(self, question: Pair) -> Pair:
        """The question about points as a question about rows."""
        return question if self.of_points is None else self.of_points.in_rows(question)
