"""Place the row whose neighbourhood is least certain, per question it takes to place it.

Xiong, Azimi and Fern 2014 (`xiong2014`), Algorithms 1 and 2, Eq. 1 to 5 (NPU).
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import RandomForestClassifier

from clew._validation import check_parameters, integer
from clew.active._answers import DIFFERENT, SAME, Pair
from clew.active._view import View, squared_distances
from clew.constraints import Constraints
from clew.partitional import PCKMeans

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


class PointUncertainty:
    r"""Normalised point-based uncertainty: the most uncertain row per question that placing it takes.

    Neighbourhoods are rows known to be together. Before a row is placed, the data are clustered with all that is known,
    and a random forest learns the clusters; two rows are as alike as the share of trees in which they meet in a leaf.
    The row that is asked about, against neighbourhoods in order of probability, is the one with the largest ratio of
    entropy to expected questions.

    Parameters
    ----------
    n_trees : int, default=50
        Trees of the forest.
    max_rows : int, default=1000
        The forest learns from a random sample of at most this many rows.
    max_candidates : int, default=5000
        At most this many rows, drawn at random, compete for a question.

    Notes
    -----
    With neighbourhoods :math:`N_1, \dots, N_l` and the forest's proximity M,

    .. math:: p_i(x) \propto \frac{1}{|N_i|} \sum_{y \in N_i} M(x, y), \qquad
              x^* = \arg\max_x \frac{-\sum_i p_i(x) \log_2 p_i(x)}{\sum_i i \, p_{(i)}(x)},

    where :math:`p_{(1)} \ge p_{(2)} \ge \dots` are the probabilities in the order of the questions. A row is placed before the
    next one is chosen, so there is one clustering and one forest for each row that is placed.
    Departs from [1]_: the forest learns from a sample; the last neighbourhood costs no question where the number of clusters
    is known and all are found; while there is one neighbourhood, and every entropy is 0, the row farthest from it is taken.

    References
    ----------
    .. [1] S. Xiong, J. Azimi, X. Z. Fern (2014). "Active learning of constraints for semi-supervised clustering." IEEE
       Transactions on Knowledge and Data Engineering 26(1). Algorithms 1 and 2.

    Examples
    --------
    >>> from clew.active import Questions
    >>> from clew.active._point_uncertainty import PointUncertainty
    >>> Questions([[0.0], [5.0], [9.0]], PointUncertainty(), n_clusters=2, random_state=0).ask().why
    'Is this a new group?'
    """

    def __init__(self, *, n_trees: int = 50, max_rows: int = 1000, max_candidates: int = 5000) -> None:
        self.n_trees, self.max_rows, self.max_candidates = n_trees, max_rows, max_candidates
        check_parameters(self, dict.fromkeys(("n_trees", "max_rows", "max_candidates"), integer(1)))

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Place the most uncertain row, again and again."""
        if not view.neighbourhoods:
            yield from _first_pair(view, rng)
        while (rows := _candidates(view)).size:
            if len(view.neighbourhoods) < 2:
                row = _farthest(view, rows)
                likeliest_first = [0]
                why = "Is this a new group?"
            else:
                row, likeliest_first = self._most_uncertain(view, rows, rng)
                why = "Where does this row belong?"
            yield from _place(view, row, likeliest_first, why)

    def _most_uncertain(self, view: View, rows: IntArray, rng: np.random.Generator) -> tuple[int, list[int]]:
        """The row with the largest ratio of entropy to expected questions, and its neighbourhoods, likeliest first."""
        if len(rows) > self.max_candidates:
            rows = np.sort(rng.choice(rows, self.max_candidates, replace=False))
        neighbourhoods = [one.rows for one in view.neighbourhoods]
        leaves = _forest_leaves(view, rows, neighbourhoods, self.n_trees, self.max_rows, rng)
        chances = probabilities(leaves[0], leaves[1:])
        scores = uncertainty(chances, all_found=len(neighbourhoods) == view.n_clusters)
        best = int(scores.argmax())
        return int(rows[best]), np.argsort(-chances[best], kind="stable").tolist()


def probabilities(leaves: IntArray, neighbourhood_leaves: list[IntArray]) -> FloatArray:
    """How likely each row belongs to each neighbourhood.

    Parameters
    ----------
    leaves : ndarray of shape (n_rows, n_trees)
        The leaf of each row in each tree.
    neighbourhood_leaves : list of ndarrays of shape (n_members, n_trees)

    Returns
    -------
    ndarray of shape (n_rows, n_neighbourhoods)
        Mean proximity to the members, divided by the sum over neighbourhoods; the same for all where it is 0 for all.
    """
    n_leaves = 1 + max(int(some.max()) for some in (leaves, *neighbourhood_leaves))
    found = np.zeros((len(leaves), len(neighbourhood_leaves)))
    for tree in range(leaves.shape[1]):
        # Members per leaf, so that no row is compared with a member one by one.
        shares = [np.bincount(some[:, tree], minlength=n_leaves) / len(some) for some in neighbourhood_leaves]
        found += np.column_stack(shares)[leaves[:, tree]]
    total = found.sum(axis=1, keepdims=True)
    return np.divide(found, total, out=np.full_like(found, 1 / found.shape[1]), where=total > 0)


def uncertainty(chances: FloatArray, *, all_found: bool) -> FloatArray:
    """Entropy in bits over the expected number of questions; with all clusters found, the last answer is implied."""
    logarithms = np.log2(chances, out=np.zeros_like(chances), where=chances > 0)
    entropy = -(chances * logarithms).sum(axis=1)
    n_questions = np.arange(1, chances.shape[1] + 1)
    if all_found:
        n_questions[-1] = max(n_questions[-1] - 1, 1)
    return entropy / (-np.sort(-chances, axis=1) @ n_questions)


def _forest_leaves(
    view: View, rows: IntArray, neighbourhoods: list[IntArray], n_trees: int, max_rows: int, rng: np.random.Generator
) -> list[IntArray]:
    """Leaves of some rows, then of the rows of each neighbourhood, in a forest that learned the current clusters."""
    labels = _cluster(view, neighbourhoods, rng)
    sample = np.arange(view.n_rows)
    if view.n_rows > max_rows:
        sample = np.sort(rng.choice(view.n_rows, max_rows, replace=False))
    forest = RandomForestClassifier(n_trees, random_state=int(rng.integers(2**31)))
    forest.fit(view.X[sample], labels[sample])
    leaves = forest.apply(view.X[np.concatenate([rows, *neighbourhoods])])
    return np.split(leaves, np.cumsum([len(rows), *map(len, neighbourhoods[:-1])]))


def _cluster(view: View, neighbourhoods: list[IntArray], rng: np.random.Generator) -> npt.NDArray[Any]:
    """The clustering that the neighbourhoods and the answers about other rows lead to, from one start."""
    known = np.full(view.n_rows, -1)
    for place, members in enumerate(neighbourhoods):
        known[members] = place
    apart = [pair for pair in view.asked if view.knowledge.relation(*pair) is DIFFERENT]
    n_clusters = max(view.n_clusters or 0, len(neighbourhoods))
    model = PCKMeans(n_clusters, n_init=1, random_state=int(rng.integers(2**31)))
    return np.asarray(model.fit(view.X, constraints=Constraints(cannot_link=apart, labels=known)).labels_)


def _first_pair(view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
    """A random row and the one farthest from it; "unsure" moves on to the next farthest."""
    start = int(rng.integers(view.n_rows))
    point = np.asarray(view.X[[start]].mean(axis=0), dtype=np.float64).reshape(1, -1)
    for row in np.argsort(-squared_distances(view.X, None, point)[:, 0], kind="stable").tolist():
        if view.is_open(row, start):
            yield Pair(row, start, why="Is this a new group?")
            if view.neighbourhoods:
                return


def _candidates(view: View) -> IntArray:
    """Rows to place next: those an earlier run began with, else all that are open and not in a pending question."""
    rows = view.unplaced()
    waiting = {row for pair in view.pending for row in pair}
    begun = {row for pair in view.asked - view.unsure for row in pair if not view.placed[row]} - waiting
    begun_and_open = [row for row in sorted(begun) if view.open_neighbourhoods(row)]
    if begun_and_open:
        return np.array(begun_and_open)
    return rows[~np.isin(rows, list(waiting))] if waiting else rows


def _farthest(view: View, rows: IntArray) -> int:
    center = view.neighbourhoods[0].center.reshape(1, -1)
    return int(rows[squared_distances(view.X, rows, center)[:, 0].argmax()])


def _place(view: View, row: int, likeliest_first: list[int], why: str) -> Generator[Pair, Any, None]:
    """Ask about a row and each neighbourhood it may belong to, likeliest first, until one is the same."""
    open_members = {one.member for one in view.open_neighbourhoods(row)}
    for neighbourhood in [view.neighbourhoods[place] for place in likeliest_first]:
        if neighbourhood.member in open_members and (yield Pair(row, neighbourhood.member, why=why)) is SAME:
            return
