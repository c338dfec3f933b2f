"""Ask about the row with the most uncertain cluster, from its cosine similarities with the two nearest centres.

Huang, Lam and Zhang 2007, as described in the survey `truong2013`, section 4, Eq. 74 to 87.
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
from clew.active._strategy import Strategy
from clew.active._view import FloatArray, IntArray, View

# Rows that may represent a centre, nearest first. The second one is used if the first was "unsure" or is pending.
_N_REPRESENTATIVES = 5
# Eq. 87 uses members whose probability is "high", which means above one half here.
_HIGH = 0.5

_PARAMETERS = {
    "dependent": BOOLEAN,
    "n_sampled": integer(1),
    "refit_every": integer(1),
    "epsilon": number(0),
    "budget": integer(1),
}


class InformationGain(Strategy):
    """Ask about the row whose membership has the highest entropy.

    The rows are clustered with all constraints. From a random sample, the row with the most uncertain cluster is
    compared with the row of its cluster that is nearest to the centre. The rows are clustered again after every
    `refit_every` answers, or earlier if the current clusters leave no question. The clusterer is that of `Questions`;
    the paper uses `clew.IGKMeans`. Rows are compared by cosine similarity, which suits documents. If the origin of your
    features has no meaning, standardise them first.

    Parameters
    ----------
    dependent : bool, default=False
        Whether rows with prior constraints or answers change the probabilities of similar rows (Eq. 82 to 87).
    n_sampled : int, default=100
        Size of the random sample from which the best row is taken, S in the paper.
    refit_every : int, default=10
        Number of answers between two clusterings, P = Q / L in the paper.
    epsilon : float, default=1.0
        Weight of the rows with constraints in the dependent gain.
    budget : int, default=100
        Planned number of questions, Q in the paper. It sets the weight epsilon Q / n, at most 1. It does not limit the
        number of questions.

    Notes
    -----
    Cosines below 0 count as 0. A question takes O(S k) time, or with `dependent` O(S (k + a d)), where a is the number
    of rows with constraints. A clustering takes O(n k d) beside the clusterer's own time.
    Where the survey [1]_ is silent: The partner of a row is the row nearest to the centre, because the gain is about
    the centre. A probability is high if it is above one half. A row whose relation to this partner is decided is not
    asked about until it changes cluster.

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
        """Cluster, ask `refit_every` questions and repeat. End when a new clustering leaves no row to ask about."""
        while True:
            # The clusters depend on the log alone, so that a resumed run asks the same as an uninterrupted one.
            n_answers = view.n_answers - view.n_answers % self.refit_every
            pair = self._best(view, Clustering.after(view, n_answers), rng)
            if pair is None and n_answers < view.n_answers:  # these clusters leave no question: cluster again
                pair = self._best(view, Clustering.after(view, view.n_answers), rng)
            if pair is None:
                return
            yield pair

    def _best(self, view: View, clustering: Clustering, rng: np.random.Generator) -> Pair | None:
        """The random row with the highest gain, and its partner (Eq. 77, 82). None if every row is settled."""
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
        earlier = view.knowledge.related_rows()  # in a pair of Phi, the constraints so far
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
    """Probability that a row belongs to its centre, from its similarities with the two nearest centres (Eq. 79, 84)."""
    total = own + other
    return np.where(total > 0, own / np.where(total > 0, total, 1), 0.5)


def entropy(probability: FloatArray) -> FloatArray:
    """Entropy of the answer (Eq. 78 and 83)."""
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
    """Similarity with a centre, mixed with that to the nearest earlier row of its cluster, if any (Eq. 86)."""
    counts = (cluster[:, None] == clusters) & (rows[:, None] != earlier)
    nearest = np.where(counts, similarities, -1.0).max(axis=1, initial=-1.0)
    return np.where(nearest >= 0, (1 - weight) * similarity + weight * nearest, similarity)


@dataclass(frozen=True)
class Clustering:
    """The clusters that questions are about, with each row's similarities to centres."""

    rows: Any  # rows scaled to unit length
    labels: IntArray  # cluster of each row; -1: none
    next_best: IntArray  # cluster with the nearest other centre; -1: none
    own: FloatArray  # similarity with the row's own centre
    other: FloatArray  # similarity with the nearest other centre
    representatives: list[list[int]]  # rows nearest to each centre

    @classmethod
    def after(cls, view: View, n_answers: int) -> Clustering:
        """The clusters after the first `n_answers` answers. The last few results are cached."""
        cached: list[tuple[list[Any], Clustering]] = view.once("information gain: last clusterings", list)
        told = view.told[:n_answers]
        for before, clustering in cached:
            if before == told:
                return clustering
        unit_rows = view.once("rows of length one", lambda: normalize(view.X))
        clustering = cls.of(unit_rows, view.labels(n_answers))
        cached[:] = [(told, clustering), *cached[:1]]
        return clustering

    @classmethod
    def of(cls, unit_rows: Any, found: npt.NDArray[Any]) -> Clustering:
        """Compute the similarity of every row with the centre of every cluster."""
        names, labels = np.unique(found, return_inverse=True)
        n_rows = len(labels)
        labels = labels.astype(np.int64).ravel()
        if names[0] < 0:  # noise
            labels -= 1
        n_clusters = int(labels.max()) + 1
        if n_clusters == 0:
            nothing = np.zeros(n_rows)
            return cls(unit_rows, labels, labels, nothing, nothing, [])
        similarity = similarities_with_centers(unit_rows, labels, n_clusters)
        representatives = []
        for cluster in range(n_clusters):
            members = np.flatnonzero(labels == cluster)
            nearest = np.argsort(-similarity[members, cluster], kind="stable")[:_N_REPRESENTATIVES]
            representatives.append(members[nearest].tolist())
        everyone = np.arange(n_rows)
        own = np.where(labels >= 0, similarity[everyone, labels], 0.0)
        similarity[everyone[labels >= 0], labels[labels >= 0]] = -1.0
        next_best = similarity.argmax(axis=1) if n_clusters > 1 else np.full(n_rows, -1)
        other = similarity.max(axis=1).clip(0, 1)
        return cls(unit_rows, labels, next_best, own, other, representatives)

    def partner(self, view: View, row: int) -> int | None:
        """The row to compare a row with, or None if no such pair is open."""
        if self.labels[row] < 0:
            return None
        for one in self.representatives[self.labels[row]]:
            if view.knowledge.relation(row, one) in (SAME, DIFFERENT):
                return None
            if view.is_open(row, one):
                return one
        return None


def similarities_with_centers(unit_rows: Any, labels: IntArray, n_clusters: int) -> FloatArray:
    """Cosine similarity of every row with the mean of each cluster, clipped to 0 and 1 (Eq. 81)."""
    sums = np.zeros((n_clusters, unit_rows.shape[1]))
    for cluster in range(n_clusters):
        sums[cluster] = np.asarray(unit_rows[np.flatnonzero(labels == cluster)].sum(axis=0), dtype=np.float64).ravel()
    return np.asarray(unit_rows @ normalize(sums).T, dtype=np.float64).clip(0, 1)
