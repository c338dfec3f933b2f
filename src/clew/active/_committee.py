"""Ask about the rows on which a committee of clusterings disagrees most.

Greene and Cunningham 2007, as described in the survey `truong2013`, section 4, Algorithms 20 to 22, Eq. 88 to 93.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.preprocessing import normalize

from clew._base import quietly
from clew._validation import Allowed, check_parameters, integer, number, words
from clew.active._answers import DIFFERENT, SAME, Pair
from clew.active._distances import mean_row, squared_distances
from clew.active._strategy import Strategy
from clew.active._view import FloatArray, IntArray, View
from clew.exceptions import ParameterError
from clew.partitional import SeededKMeans

# Largest number of rows that a member is fitted on. The other rows go to the nearest centre.
_MOST_SAMPLED = 4000
# The closure is exact up to this many different vote patterns. With more, only the most frequent patterns link others.
_MOST_PATTERNS = 2000
# Number of largest neighbourhoods considered for representatives: 10 per cluster, and at least 100.
_LEAST_CONSIDERED, _CONSIDERED_PER_CLUSTER = 100, 10
# Largest number of guesses about pairs with a representative, because each guess slows down `labels`.
_MOST_GUESSES = 2000
# Confidence of a guess, whatever the votes: about nine in ten are right (survey section 4).
_RIGHT = 0.9

_PARAMETERS = {
    "n_members": integer(1),
    "share": Allowed("a number above 0 and up to 1", lambda value: number(0, 1).accepts(value) and value > 0),
    "kappa_must": number(0, 1),
    "kappa_cannot": number(0, 1),
    "metric": words("euclidean", "cosine"),
    "random_state": integer(0),
}


class Committee(Strategy):
    """Let clusterings of subsamples vote, and ask about the rows on which they disagree.

    The members of the committee are k-means clusterings of random subsamples. They vote on every pair of rows: the
    association of a pair is the share of members that put both rows into one cluster. Rows that nearly all members put
    together form a neighbourhood, represented by its median. Pairs on which the members agree become guesses
    (`View.impute`). The next row is the one with the smallest margin between its two best neighbourhoods. It is
    compared with the representatives in order of association, until one is the same. The last comparison is implied.
    Needs the number of clusters.

    Parameters
    ----------
    n_members : int, default=50
        Number of clusterings in the committee.
    share : float, default=0.8
        Share of the rows that a member is fitted on, at most 4,000 rows. The other rows go to the nearest centre.
    kappa_must : float, default=0.95
        Least association of a guessed must-link.
    kappa_cannot : float, default=0.05
        Highest association of a guessed cannot-link.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Metric of the members.
    random_state : int, default=0
        Seed of the members. They depend on the seed and the rows alone, so that a resumed log meets the same committee.

    Notes
    -----
    Memory is linear: one label per row and member. Rows of the association matrix are computed from them when needed.
    Departs from [1]_: If guessed cannot-links separate fewer neighbourhoods than there are clusters, the neighbourhoods
    least associated with the chosen ones are added. Answers that join two representatives, or that reveal a group
    without representative, change the list of representatives. At most 2,000 guesses are used: pairs of a row and its
    representative, and pairs of representatives. Beyond 2,000 different vote patterns, only the most frequent patterns
    link others in the closure.

    References
    ----------
    .. [1] D. Greene, P. Cunningham (2007). "Constraint selection by committee: an ensemble approach to identifying
       informative constraints for semi-supervised clustering." ECML. Algorithms 20 to 22 and Eq. (88) to (93) of the
       survey by D. T. Truong and R. Battiti (2013).

    Examples
    --------
    >>> from clew.active import Questions
    >>> from clew.active._committee import Committee
    >>> questions = Questions([[0.0], [1.0], [4.6], [8.0], [9.0]], Committee(), n_clusters=2, random_state=0)
    >>> 2 in questions.ask().key
    True
    """

    def __init__(
        self,
        n_members: int = 50,
        *,
        share: float = 0.8,
        kappa_must: float = 0.95,
        kappa_cannot: float = 0.05,
        metric: str = "euclidean",
        random_state: int = 0,
    ) -> None:
        self.n_members = n_members
        self.share = share
        self.kappa_must = kappa_must
        self.kappa_cannot = kappa_cannot
        self.metric = metric
        self.random_state = random_state
        check_parameters(self, _PARAMETERS)
        if kappa_cannot >= kappa_must:
            raise ParameterError(
                f"kappa_cannot={kappa_cannot!r} in Committee: expected a number below kappa_must={kappa_must!r}."
            )

    @classmethod
    def _examples(cls) -> list[Committee]:
        return [cls(10), cls(5, kappa_must=0.7, metric="cosine")]

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Ask about the most uncertain row, then the next."""
        if view.n_clusters is None:
            raise ParameterError("Committee needs n_clusters: its members are k-means clusterings. Pass n_clusters.")
        settings = (self.n_members, self.share, self.kappa_must, self.kappa_cannot, self.metric, self.random_state)
        opinion: Opinion = view.once(f"committee {view.n_clusters} {settings}", lambda: self._convene(view))
        # Recomputed from the view for each question, so that a resumed run asks the same as an uninterrupted one.
        while (pair := self._next_question(view, opinion)) is not None:
            yield pair

    def _next_question(self, view: View, opinion: Opinion) -> Pair | None:
        """Record guesses, then find the most uncertain unplaced row."""
        view.imputed.clear()
        for pair, association in opinion.guesses:
            same = association >= self.kappa_must
            view.impute(pair, SAME if same else DIFFERENT, _RIGHT * (association if same else 1 - association))
        representatives = _standing(view, opinion)
        waiting = {row for pair in view.pending for row in pair}.difference(opinion.representatives)
        components = view.knowledge.components()
        is_placed = np.isin(components, components[representatives])
        for row in opinion.order[~is_placed[opinion.order]].tolist():
            if row not in waiting and (found := _place(view, opinion, representatives, row)) is not None:
                return found
        return None

    def _convene(self, view: View) -> Opinion:
        assert view.n_clusters is not None
        rng = np.random.default_rng(self.random_state)
        votes = committee_votes(view.X, view.n_clusters, self.n_members, self.share, self.metric, rng)
        rows = normalize(view.X) if self.metric == "cosine" else view.X
        return form_opinion(rows, votes, view.n_clusters, self.kappa_must, self.kappa_cannot, rng)


@dataclass(frozen=True)
class Opinion:
    """Votes of the committee and the representatives they give, before any answer."""

    votes: npt.NDArray[np.int32]  # (n_rows, n_members)
    representatives: list[int]
    associations: FloatArray  # S, Eq. 90: (n_rows, representatives)
    order: IntArray  # rows, the most uncertain one first
    guesses: list[tuple[Pair, float]]


@quietly()
def committee_votes(
    X: Any, n_clusters: int, n_members: int, share: float, metric: str, rng: np.random.Generator
) -> npt.NDArray[np.int32]:
    """The cluster of each row in each member (Algorithm 20). A, the association, is the share of equal entries."""
    n_rows = int(X.shape[0])
    n_sampled = max(n_clusters, min(_MOST_SAMPLED, int(np.ceil(share * n_rows))))
    votes = np.empty((n_rows, n_members), dtype=np.int32)
    for member in range(n_members):
        sample = np.sort(rng.choice(n_rows, n_sampled, replace=False))
        model = SeededKMeans(
            n_clusters, init="k-means++", n_init=1, max_iter=100, tol=1e-3, metric=metric, random_state=rng
        )
        votes[:, member] = model.fit(X[sample]).predict(X)
    return votes


def association(votes: npt.NDArray[np.int32], row: int) -> FloatArray:
    """One row of A: the share of members that put each row into the cluster of this row."""
    return np.asarray((votes == votes[row]).mean(axis=1), dtype=np.float64)


def mean_association(votes: npt.NDArray[np.int32], rows: IntArray) -> FloatArray:
    """Mean association of every row with some rows (Eq. 90), from counts of their votes."""
    n_members = votes.shape[1]
    n_labels = int(votes.max()) + 1
    counts = np.zeros((n_members, n_labels))
    for member in range(n_members):
        counts[member] = np.bincount(votes[rows, member], minlength=n_labels)
    total = np.zeros(len(votes))
    for member in range(n_members):
        total += counts[member, votes[:, member]]
    return total / (n_members * len(rows))


def form_opinion(
    X: Any,
    votes: npt.NDArray[np.int32],
    n_clusters: int,
    kappa_must: float,
    kappa_cannot: float,
    rng: np.random.Generator,
) -> Opinion:
    """Choose the representatives (Algorithm 21) and rank the rows by margin (Eq. 90 to 93)."""
    neighbourhood_of = imputed_components(votes, kappa_must)
    chosen = choose_representatives(X, votes, neighbourhood_of, n_clusters, kappa_cannot)
    representatives = [representative for representative, _ in chosen]
    associations = np.column_stack([mean_association(votes, rows) for _, rows in chosen])
    margins = weighted_margins(associations, np.array([len(rows) for _, rows in chosen]))
    guesses: list[tuple[Pair, float]] = []
    for place, (representative, rows) in enumerate(chosen):
        close = association(votes, representative)
        found = rows[(close[rows] >= kappa_must) & (rows != representative)]
        found = found[np.argsort(-close[found], kind="stable")][: _MOST_GUESSES // len(chosen)]
        guesses += [(Pair(row, representative), float(close[row])) for row in found.tolist()]
        guesses += [
            (Pair(representative, other), float(close[other]))
            for other in representatives[:place]
            if close[other] <= kappa_cannot
        ]
    # Many margins tie. The tie-break is random, because the file may be sorted by class.
    order = np.lexsort((rng.permutation(len(votes)), margins))
    return Opinion(votes, representatives, associations, order, guesses)


def imputed_components(votes: npt.NDArray[np.int32], kappa_must: float) -> IntArray:
    """The neighbourhood of each row: the closure of the pairs whose association is at least `kappa_must` (Eq. 88)."""
    patterns, pattern_of, sizes = np.unique(votes, axis=0, return_inverse=True, return_counts=True)
    pattern_of = pattern_of.ravel()
    common = np.sort(np.argsort(-sizes, kind="stable")[:_MOST_PATTERNS])
    found = np.arange(len(patterns), dtype=np.int64)
    # Counted in whole members, so that rounding errors do not matter.
    least = int(np.ceil(kappa_must * votes.shape[1] - 1e-9))
    ballots = _ballots(patterns)
    links = _agreeing(ballots[common], ballots[common], least)
    found[common] = common[_first_of_component(links)]
    rare = np.setdiff1d(np.arange(len(patterns)), common)
    for start in range(0, len(rare), _MOST_PATTERNS):
        block = rare[start : start + _MOST_PATTERNS]
        agreement = _agreement(ballots[block], ballots[common])
        best = agreement.argmax(axis=1)
        joins = agreement[np.arange(len(block)), best] >= least
        found[block[joins]] = found[common[best[joins]]]
    return found[pattern_of]


def _ballots(patterns: npt.NDArray[np.int32]) -> Any:
    """One-hot encode the votes: an inner product of two rows counts the members that agree."""
    n_patterns, n_members = patterns.shape
    n_labels = int(patterns.max()) + 1
    columns = patterns + n_labels * np.arange(n_members, dtype=np.int32)
    pointers = n_members * np.arange(n_patterns + 1)
    ones = np.ones(patterns.size, dtype=np.float32)
    return sparse.csr_matrix((ones, columns.ravel(), pointers), shape=(n_patterns, n_members * n_labels))


def _agreement(some: Any, others: Any) -> npt.NDArray[np.float32]:
    return np.asarray(some @ others.T.toarray(), dtype=np.float32)


def _agreeing(some: Any, others: Any, least: int) -> Any:
    return sparse.csr_matrix(_agreement(some, others) >= least)


def _first_of_component(links: Any) -> IntArray:
    _, component_of = connected_components(links, directed=False)
    return np.asarray(np.unique(component_of, return_index=True)[1][component_of], dtype=np.int64)


def choose_representatives(
    X: Any, votes: npt.NDArray[np.int32], neighbourhood_of: IntArray, n_clusters: int, kappa_cannot: float
) -> list[tuple[int, IntArray]]:
    """Choose medians of the largest neighbourhoods, pairwise separated by guessed cannot-links (Algorithm 21, Eq. 89).

    If there are too few of them, the remaining neighbourhood least associated with the chosen ones is next.
    Returns each median with the rows of its neighbourhood.
    """
    _, number, sizes = np.unique(neighbourhood_of, return_inverse=True, return_counts=True)
    ends, rows_by_number = np.cumsum(sizes), np.argsort(number, kind="stable")
    chosen: list[tuple[int, IntArray]] = []
    passed_over: list[tuple[int, IntArray]] = []

    def closeness(row: int) -> float:
        return max((float((votes[row] == votes[one]).mean()) for one, _ in chosen), default=0.0)

    for one in np.argsort(-sizes, kind="stable")[: max(_LEAST_CONSIDERED, _CONSIDERED_PER_CLUSTER * n_clusters)]:
        rows = rows_by_number[ends[one] - sizes[one] : ends[one]]
        median = _median(X, votes, rows)
        (chosen if closeness(median) <= kappa_cannot else passed_over).append((median, rows))
        if len(chosen) == n_clusters:
            return chosen
    while passed_over and len(chosen) < n_clusters:
        chosen.append(passed_over.pop(int(np.argmin([closeness(median) for median, _ in passed_over]))))
    return chosen


def _median(X: Any, votes: npt.NDArray[np.int32], rows: IntArray) -> int:
    """The row most associated with the others. Of equal rows, the nearest to the mean."""
    within = mean_association(votes[rows], np.arange(len(rows)))
    tied = rows[within == within.max()]
    mean = mean_row(X, rows).reshape(1, -1)
    return int(tied[squared_distances(X, tied, mean)[:, 0].argmin()])


def weighted_margins(associations: FloatArray, sizes: IntArray) -> FloatArray:
    """Margin of each row between its two best neighbourhoods, weighted by their sizes (Eq. 92 and 93)."""
    weighted = associations * (sizes / sizes.sum())
    if weighted.shape[1] < 2:
        return np.ones(len(weighted))
    second, first = np.partition(weighted, -2, axis=1)[:, -2:].T
    total = first + second
    return np.where(total > 0, 2 * first / np.where(total > 0, total, 1) - 1, 0.0)


def _place(view: View, opinion: Opinion, representatives: list[int], row: int) -> Pair | None:
    """Compare a row with the representatives in order of association, until one is the same (Algorithm 22)."""
    left = [one for one in representatives if view.knowledge.relation(row, one) is None]
    if len(left) == 1 and len(representatives) == view.n_clusters:
        view.impute(Pair(row, left[0]), SAME, _RIGHT)  # implied if the representatives are all different
        return None
    close = dict(zip(opinion.representatives, opinion.associations[row].tolist(), strict=True))
    for one in representatives:
        if one not in close:
            close[one] = float((opinion.votes[row] == opinion.votes[one]).mean())
    for one in sorted(left, key=lambda one: -close[one]):
        if view.is_open(row, one):
            return Pair(row, one, why="The clusterings disagree on this row. Does it belong here?")
    return None


def _standing(view: View, opinion: Opinion) -> list[int]:
    """Update the representatives with the answers: merge joined ones, then add groups revealed by answers."""
    assert view.n_clusters is not None
    relation = view.knowledge.relation
    found: list[int] = []
    for one in opinion.representatives:
        if not any(relation(one, other) is SAME for other in found):
            found.append(one)
    for neighbourhood in view.neighbourhoods:
        if len(found) == view.n_clusters:
            break
        if all(relation(neighbourhood.member, other) is DIFFERENT for other in found):
            found.append(neighbourhood.member)
    return found
