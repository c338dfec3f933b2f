"""Ask about the row whose cluster is most in doubt, judged by its cosines with the two nearest centres.

Huang, Lam and Zhang 2007 as told in survey (`truong2013`) section 4, Eq. 74 to 87.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.preprocessing import normalize

from clew._validation import BOOLEAN, check_parameters, integer, number
from clew.active._answers import DIFFERENT, SAME, Pair
from clew.active._view import FloatArray, IntArray, View

# Rows that may stand for a centre, nearest first: the second one is asked where the first was "unsure" or is pending.
_STAND_INS = 5
# Eq. 87 wants members whose probability is "high": more likely than not.
_HIGH = 0.5

_PARAMETERS = {
    "dependent": BOOLEAN,
    "n_sampled": integer(1),
    "refit_every": integer(1),
    "epsilon": number(0),
    "budget": integer(1),
}


class InformationGain:
    """Ask about the row whose membership has the highest entropy.

    The rows are clustered with what is known. Of some random rows, the one whose cluster is most uncertain is compared
    with another row of its cluster, the one nearest to the centre. After every `refit_every` answers the rows are
    clustered anew, and after each one where these clusters leave nothing to ask. The clusterer is that of `Questions`;
    `clew.IGKMeans` is the one of the paper. Rows are compared by cosines, which suits documents; where the origin means
    nothing, standardise first.

    Parameters
    ----------
    dependent : bool, default=False
        Whether rows asked about before inform about rows like them (Eq. 82 to 87).
    n_sampled : int, default=100
        Random rows from which the best is taken, S in the paper.
    refit_every : int, default=10
        Answers between two clusterings, P = Q / L in the paper.
    epsilon : float, default=1.0
        Weight of the earlier rows in the dependent gain.
    budget : int, default=100
        Number of questions planned, Q in the paper; with `epsilon` it sets the weight epsilon Q / n, at most 1. It is
        no limit.

    Notes
    -----
    Cosines below 0 count as 0. A question costs O(S k), with `dependent` O(S (k + a d)) for a rows asked about before;
    a clustering O(n k d) beside the clusterer's own time.
    Departs from [1]_: the survey leaves open which row of the cluster is the partner and which probability is high; we
    take the row nearest to the centre, which the gain speaks of, and one half. A row that is known to be the same as or
    to differ from that partner is not asked about until it changes cluster.

    References
    ----------
    .. [1] R. Huang, W. Lam, Z. Zhang (2007). "Active learning of constraints for semi-supervised text clustering." SDM.
       Eq. (74) to (87) of the survey by D. T. Truong and R. Battiti (2013).

    Examples
    --------
    >>> from clew.active import Questions
    >>> from clew.active._information_gain import InformationGain
    >>> X = [[9.0, 0.0], [9.0, 1.0], [5.0, 6.0], [1.0, 9.0], [0.0, 9.0]]
    >>> 2 in Questions(X, InformationGain(), n_clusters=2, random_state=0).ask().key
    True
    """

    def __init__(
        self,
        *,
        dependent: bool = False,
        n_sampled: int = 100,
        refit_every: int = 10,
        epsilon: float = 1.0,
        budget: int = 100,
    ) -> None:
        self.dependent = dependent
        self.n_sampled = n_sampled
        self.refit_every = refit_every
        self.epsilon = epsilon
        self.budget = budget
        check_parameters(self, _PARAMETERS)

    @classmethod
    def _examples(cls) -> list[InformationGain]:
        return [cls(), cls(dependent=True, n_sampled=5, refit_every=3)]

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Cluster, ask `refit_every` questions, repeat; end when a new clustering leaves no row to ask about."""
        while True:
            # The clusters depend on the log alone: a run that is resumed asks what one that goes on asks.
            n_answers = view.n_answers - view.n_answers % self.refit_every
            pair = self._best(view, Clustering.after(view, n_answers), rng)
            if pair is None and n_answers < view.n_answers:  # nothing is left in these clusters: look at new ones
                pair = self._best(view, Clustering.after(view, view.n_answers), rng)
            if pair is None:
                return
            yield pair

    def _best(self, view: View, clustering: Clustering, rng: np.random.Generator) -> Pair | None:
        """The pair of the row with the highest gain among some random rows (Eq. 77, 82); None when all are settled."""
        settled = np.zeros(view.n_rows, dtype=bool)
        while (rows := np.flatnonzero(~settled)).size:
            if rows.size > self.n_sampled:
                rows = rng.choice(rows, self.n_sampled, replace=False)
            gains = self._gains(view, clustering, rows)
            for row in rows[np.argsort(-gains, kind="stable")].tolist():
                partner = clustering.partner(view, row)
                if partner is not None:
                    return Pair(row, partner, why="This row is between two groups. Does it belong to this one?")
                settled[row] = True
        return None

    def _gains(self, view: View, clustering: Clustering, rows: IntArray) -> FloatArray:
        own, other = clustering.own[rows], clustering.other[rows]
        if not self.dependent:
            return entropy(must_probability(own, other))
        weight = min(self.epsilon * self.budget / view.n_rows, 1.0)
        earlier = np.array(sorted({row for pair in view.asked for row in pair}), dtype=np.int64)
        earlier = earlier[must_probability(clustering.own[earlier], clustering.other[earlier]) > _HIGH]
        cosines = clustering.rows[rows] @ clustering.rows[earlier].T
        similarities = np.asarray(cosines.toarray() if sparse.issparse(cosines) else cosines, dtype=np.float64)
        similarities = similarities.clip(0, 1)
        clusters = clustering.labels[earlier]
        return entropy(
            must_probability(
                dependent_similarity(own, similarities, clustering.labels[rows], clusters, rows, earlier, weight),
                dependent_similarity(other, similarities, clustering.next_best[rows], clusters, rows, earlier, weight),
            )
        )


def must_probability(own: FloatArray, other: FloatArray) -> FloatArray:
    """Eq. 79 and 84: how likely a row belongs to its centre, by its similarities with that and the next nearest."""
    total = own + other
    return np.where(total > 0, own / np.where(total > 0, total, 1), 0.5)


def entropy(probability: FloatArray) -> FloatArray:
    """Eq. 78 and 83: the entropy of the answer."""
    found = np.zeros(len(probability))
    for one in (probability, 1 - probability):
        some = one > 0
        found[some] -= one[some] * np.log(one[some])
    return found


def dependent_similarity(
    similarity: FloatArray,
    similarities: FloatArray,
    cluster: IntArray,
    clusters: IntArray,
    rows: IntArray,
    earlier: IntArray,
    weight: float,
) -> FloatArray:
    """Eq. 86: similarity with a centre, mixed with that to the nearest earlier row of its cluster, if there is one."""
    counts = (cluster[:, None] == clusters) & (rows[:, None] != earlier)
    nearest = np.where(counts, similarities, -1.0).max(axis=1, initial=-1.0)
    return np.where(nearest >= 0, (1 - weight) * similarity + weight * nearest, similarity)


@dataclass(frozen=True)
class Clustering:
    """The clusters that questions are about."""

    rows: Any  # of length one
    labels: IntArray  # cluster of each row; -1: none
    next_best: IntArray  # cluster with the nearest other centre; -1: none
    own: FloatArray  # similarity with the own centre
    other: FloatArray  # with the nearest other centre
    stand_ins: list[list[int]]  # rows nearest to each centre

    @classmethod
    def after(cls, view: View, n_answers: int) -> Clustering:
        """The clusters after the first answers; the last few are kept while these stay the same."""
        kept: list[tuple[list[Any], Clustering]] = view.once("information gain: last clusterings", list)
        told = view.told[:n_answers]
        for before, clustering in kept:
            if before == told:
                return clustering
        unit_rows = view.once("rows of length one", lambda: normalize(view.X))
        clustering = cls.of(unit_rows, view.labels(n_answers))
        kept[:] = [(told, clustering), *kept[:1]]
        return clustering

    @classmethod
    def of(cls, unit_rows: Any, found: npt.NDArray[Any]) -> Clustering:
        """Compare every row with the centre of every cluster found."""
        names, labels = np.unique(found, return_inverse=True)
        n_rows = len(labels)
        labels = labels.astype(np.int64).ravel()
        if names[0] < 0:  # noise
            labels -= 1
        n_clusters = int(labels.max()) + 1
        if n_clusters == 0:
            nothing = np.zeros(n_rows)
            return cls(unit_rows, labels, labels, nothing, nothing, [])
        every = similarities_with_centers(unit_rows, labels, n_clusters)
        stand_ins = []
        for cluster in range(n_clusters):
            members = np.flatnonzero(labels == cluster)
            nearest = np.argsort(-every[members, cluster], kind="stable")[:_STAND_INS]
            stand_ins.append(members[nearest].tolist())
        everyone = np.arange(n_rows)
        own = np.where(labels >= 0, every[everyone, labels], 0.0)
        every[everyone[labels >= 0], labels[labels >= 0]] = -1.0
        next_best = every.argmax(axis=1) if n_clusters > 1 else np.full(n_rows, -1)
        other = every.max(axis=1).clip(0, 1)
        return cls(unit_rows, labels, next_best, own, other, stand_ins)

    def partner(self, view: View, row: int) -> int | None:
        """The row to compare with, if that is open; None where the row is settled."""
        if self.labels[row] < 0:
            return None
        for one in self.stand_ins[self.labels[row]]:
            if view.knowledge.relation(row, one) in (SAME, DIFFERENT):
                return None
            if view.is_open(row, one):
                return one
        return None


def similarities_with_centers(unit_rows: Any, labels: IntArray, n_clusters: int) -> FloatArray:
    """Eq. 81, from 0 to 1: cosine of every row with the mean of each cluster's rows."""
    sums = np.zeros((n_clusters, unit_rows.shape[1]))
    for cluster in range(n_clusters):
        sums[cluster] = np.asarray(unit_rows[np.flatnonzero(labels == cluster)].sum(axis=0), dtype=np.float64).ravel()
    return np.asarray(unit_rows @ normalize(sums).T, dtype=np.float64).clip(0, 1)
