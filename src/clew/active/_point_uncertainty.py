"""Ask about the row with the highest uncertainty per question that placing it takes.

Xiong, Azimi and Fern 2014 (`xiong2014`): NPU.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import RandomForestClassifier

from clew._base import quietly
from clew._validation import check_parameters, integer
from clew.active._answers import DIFFERENT, Pair
from clew.active._distances import squared_distances
from clew.active._explore_consolidate import half_placed
from clew.active._min_max import first_neighbourhood
from clew.active._strategy import Strategy
from clew.active._view import View
from clew.constraints import Constraints
from clew.partitional import PCKMeans

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Tolerance of the clustering before each question. Its last iterations hardly change the forest.
_TOLERANCE = 1e-3


class PointUncertainty(Strategy):
    r"""Normalised point-based uncertainty (NPU): ask about the row with the highest entropy per expected question.

    A neighbourhood is a set of rows known to be together. Before a question, the rows are clustered with all
    constraints, and a random forest is trained on the clusters. The similarity of two rows is the share of trees in
    which they fall into the same leaf. The next row has the largest ratio of entropy to expected number of questions.
    It is compared with the neighbourhoods in order of probability.

    Parameters
    ----------
    n_trees : int, default=50
        Number of trees in the forest.
    forest_rows : int, default=1000
        Largest number of rows that the forest is trained on, sampled at random.
    max_rows : int, default=5000
        Largest number of candidate rows per question, sampled at random. The clustering uses a sample of the same size,
        plus all rows with constraints.

    Notes
    -----
    With neighbourhoods :math:`N_1, \dots, N_l` and the forest's proximity M,

    .. math:: p_i(x) \propto \frac{1}{|N_i|} \sum_{y \in N_i} M(x, y), \qquad
              x^* = \arg\max_x \frac{-\sum_i p_i(x) \log_2 p_i(x)}{\sum_i i \, p_{(i)}(x)},

    where :math:`p_{(1)} \ge p_{(2)} \ge \dots` are the probabilities in the order of the questions. A row is placed
    before the next row is chosen.
    Departs from [1]_: Clustering and forest are made for each question, not for each row, so that a resumed log meets
    the same ones. Large data are sampled. The last neighbourhood takes no question if the number of clusters is known
    and all of them are found. While there is only one neighbourhood, every entropy is 0, and the row farthest from it
    is taken.

    References
    ----------
    .. [1] S. Xiong, J. Azimi, X. Z. Fern (2014). "Active learning of constraints for semi-supervised clustering." IEEE
       Transactions on Knowledge and Data Engineering 26(1).

    Examples
    --------
    >>> from clew.active import Questions
    >>> from clew.active._point_uncertainty import PointUncertainty
    >>> Questions([[0.0], [5.0], [9.0]], PointUncertainty(), n_clusters=2, random_state=0).ask().why
    'Is this a new group?'
    """

    def __init__(self, *, n_trees: int = 50, forest_rows: int = 1000, max_rows: int = 5000) -> None:
        self.n_trees, self.forest_rows, self.max_rows = n_trees, forest_rows, max_rows
        check_parameters(self, dict.fromkeys(("n_trees", "forest_rows", "max_rows"), integer(1)))

    @classmethod
    def _examples(cls) -> list[PointUncertainty]:
        return [cls(n_trees=3)]

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Ask about the most uncertain row until it is placed, then about the next."""
        yield from first_neighbourhood(view, rng, np.arange(view.n_rows))
        while view.neighbourhoods and (rows := _candidates(view)).size:
            if len(view.neighbourhoods) < 2:
                ranked, chances = _farthest_first(view, rows), np.ones((len(rows), 1))
                why = "Is this a new group?"
            else:
                rows, chances = self._chances(view, rows, rng)
                scores = uncertainty(chances, all_found=len(view.neighbourhoods) == view.n_clusters)
                ranked = np.argsort(-scores, kind="stable")
                why = "Where does this row belong?"
            best = int(ranked[0])
            row = int(rows[best])
            may_be = {one.member for one in view.open_neighbourhoods(row)}
            likeliest_first = [view.neighbourhoods[place].member for place in np.argsort(-chances[best], kind="stable")]
            # Recomputed from the view for each question, so that a resumed run asks the same as an uninterrupted one.
            yield Pair(row, next(member for member in likeliest_first if member in may_be), why=why)

    def _chances(self, view: View, rows: IntArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Candidate rows, and the probability of each neighbourhood for each of them."""
        rows = _sample(rows, self.max_rows, rng)
        neighbourhoods = [one.rows for one in view.neighbourhoods]
        clustered, labels = _cluster(view, neighbourhoods, self.max_rows, rng)
        learned = _sample(np.arange(len(clustered)), self.forest_rows, rng)
        forest = RandomForestClassifier(self.n_trees, random_state=int(rng.integers(2**31)))
        forest.fit(view.X[clustered[learned]], labels[learned])
        leaves = forest.apply(view.X[np.concatenate([rows, *neighbourhoods])])
        of_rows, *of_members = np.split(leaves, np.cumsum([len(rows), *map(len, neighbourhoods[:-1])]))
        return rows, probabilities(of_rows, of_members)


def probabilities(leaves: IntArray, neighbourhood_leaves: list[IntArray]) -> FloatArray:
    """Probability that each row belongs to each neighbourhood.

    Parameters
    ----------
    leaves : ndarray of shape (n_rows, n_trees)
        The leaf of each row in each tree.
    neighbourhood_leaves : list of ndarrays of shape (n_members, n_trees)

    Returns
    -------
    ndarray of shape (n_rows, n_neighbourhoods)
        Mean proximity to the members, normalised to sum 1 over the neighbourhoods. Uniform if all proximities are 0.
    """
    n_leaves = 1 + max(int(some.max()) for some in (leaves, *neighbourhood_leaves))
    found = np.zeros((len(leaves), len(neighbourhood_leaves)))
    for tree in range(leaves.shape[1]):
        # Counts of members per leaf, which avoid comparing each row with each member.
        shares = [np.bincount(some[:, tree], minlength=n_leaves) / len(some) for some in neighbourhood_leaves]
        found += np.column_stack(shares)[leaves[:, tree]]
    total = found.sum(axis=1, keepdims=True)
    return np.divide(found, total, out=np.full_like(found, 1 / found.shape[1]), where=total > 0)


def uncertainty(chances: FloatArray, *, all_found: bool) -> FloatArray:
    """Entropy in bits per expected question. If all clusters are found, the last answer is implied."""
    logarithms = np.log2(chances, out=np.zeros_like(chances), where=chances > 0)
    entropy = -(chances * logarithms).sum(axis=1)
    n_questions = np.arange(1, chances.shape[1] + 1)
    if all_found:
        n_questions[-1] = max(n_questions[-1] - 1, 1)
    return entropy / (-np.sort(-chances, axis=1) @ n_questions)


@quietly()
def _cluster(
    view: View, neighbourhoods: list[IntArray], max_rows: int, rng: np.random.Generator
) -> tuple[IntArray, npt.NDArray[Any]]:
    """Sample rows and cluster them with all constraints, from a single initialisation."""
    known = np.full(view.n_rows, -1)
    for place, members in enumerate(neighbourhoods):
        known[members] = place
    different = [pair for pair in sorted(view.asked) if view.knowledge.relation(*pair) is DIFFERENT]
    apart = np.array(different, dtype=np.int64)
    named = [*neighbourhoods, apart.ravel(), _sample(np.arange(view.n_rows), max_rows, rng)]
    rows = np.unique(np.concatenate(named))
    knowledge = Constraints(cannot_link=np.searchsorted(rows, apart.reshape(-1, 2)), labels=known[rows])
    model = PCKMeans(
        min(max(view.n_clusters or 0, len(neighbourhoods)), len(rows)),
        n_init=1,
        tol=_TOLERANCE,
        random_state=int(rng.integers(2**31)),
    )
    return rows, np.asarray(model.fit(view.X[rows], constraints=knowledge).labels_)


def _sample(rows: IntArray, at_most: int, rng: np.random.Generator) -> IntArray:
    return rows if len(rows) <= at_most else np.sort(rng.choice(rows, at_most, replace=False))


def _candidates(view: View) -> IntArray:
    """Candidate rows: unplaced rows that a question has already named, else all unplaced rows."""
    rows = view.unplaced()
    begun = half_placed(view, rows)
    return begun if begun.size else rows


def _farthest_first(view: View, rows: IntArray) -> IntArray:
    center = view.neighbourhoods[0].center.reshape(1, -1)
    return np.argsort(-squared_distances(view.X, rows, center)[:, 0], kind="stable")
