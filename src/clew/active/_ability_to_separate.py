"""Ask about neighbours that share few neighbours, because such pairs lie where clusters meet.

Vu, Labroche and Bouchon-Meunier 2012 (`vu2012`), section 3, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew._neighbours import density_of, nearest_neighbours, shared_neighbours
from clew._validation import NONE, check_parameters, integer, number, words
from clew.active._answers import DIFFERENT, SAME, Answer, Pair
from clew.active._strategy import Strategy
from clew.active._view import View
from clew.exceptions import ParameterError
from clew.kernels.disjoint_set import merge_pairs, number_components

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Default number of neighbours: 10, enough for shared neighbours to tell dense from sparse regions. With few rows it is
# at most a third of them, because the graph would otherwise be complete and have no gaps to ask about.
_NEIGHBOURS, _LEAST_ROWS_PER_NEIGHBOUR = 10, 3
# Default theta is k / 2 plus this, chosen on iris, wine and seeds with k = 10. With theta = k / 2 questions run out
# after 8 to 33, and 55 to 100 % of the propagated answers are right. With k / 2 + 2 there are 50 questions and more,
# and 92 to 100 % of the propagated answers are right.
_THETA_ABOVE_HALF = 2

_UTILITY: dict[str, Callable[[int, IntArray, FloatArray], FloatArray]] = {
    "sum": lambda k, omega, density: k - omega + 1 / (1 + density),
    "product": lambda k, omega, density: (k - omega) / (1 + density),
    "omega": lambda k, omega, density: (k - omega).astype(np.float64),
    "lds": lambda k, omega, density: 1 / (1 + density),
}


class AbilityToSeparate(Strategy):
    r"""Ask about edges of the nearest-neighbour graph that may separate clusters.

    Two rows are joined by an edge if each is among the k nearest neighbours of the other. The weight omega of an edge
    is the number of neighbours that its rows share. Edges lighter than theta are candidates for questions. The other
    edges are strong, and rows joined by strong paths form one part. The strategy asks about the candidate with the
    highest utility. The answer propagates, as a guess (see `Questions.labels`), to all candidates between the same two
    parts. Candidates within one part are dropped. The number of clusters is not needed. Questions end when no candidate
    is left, which is early on well-separated clusters.

    Parameters
    ----------
    n_neighbors : int, optional
        k. The best value depends on the data. Default: 10, or a third of the rows if that is less.
    theta : int, optional
        Smallest weight of a strong edge, from 1 to `n_neighbors`. The paper found the best values within 2 of k / 2.
        Default: k / 2 + 2, the largest of these, because it leaves more candidates.
    score : {"sum", "product", "omega", "lds", "random"}, default="sum"
        Utility of a candidate: Eq. 3, the product of its two terms, either term alone, or a random choice
        ("Proposed Random").
    confidence : float, default=0.5
        Confidence of propagated answers, above 0.

    Notes
    -----
    With NN(u) the k nearest neighbours of u, itself not included,

    .. math:: \omega(u, v) = |NN(u) \cap NN(v)|, \quad LDS(u) = \frac{1}{k} \sum_{q \in NN(u)} \omega(u, q), \quad
              ASC(u, v) = k - \omega(u, v) + \frac{1}{1 + \min(LDS(u), LDS(v))}.

    Where [1] is silent: Candidates with equal scores are asked in row order. LDS counts shared neighbours with all k
    neighbours, mutual or not. A part that contains two rows answered "different" propagates no "same".
    Departs from [1]: Candidates that were asked or propagated to are removed. While a question between two parts is
    pending, no other pair between them is asked. Above 20,000 rows in more than 6 columns neighbours are approximate.

    References
    ----------
    .. [1] V.-V. Vu, N. Labroche, B. Bouchon-Meunier (2012). "Improving constrained clustering with active query
       selection." Pattern Recognition 45(4). Algorithm 1, Eq. (1)-(4).

    Examples
    --------
    >>> from clew.active import Questions
    >>> from clew.active._ability_to_separate import AbilityToSeparate
    >>> X = [[0.0], [1.1], [2.3], [5.0], [8.0], [9.2], [10.1]]
    >>> Questions(X, AbilityToSeparate(n_neighbors=3), random_state=0).ask().key
    (3, 4)
    """

    def __init__(
        self,
        *,
        n_neighbors: int | None = None,
        theta: int | None = None,
        score: str = "sum",
        confidence: float = 0.5,
    ) -> None:
        self.n_neighbors, self.theta, self.score, self.confidence = n_neighbors, theta, score, confidence
        check_parameters(
            self,
            {
                "n_neighbors": integer(1) | NONE,
                "theta": integer(1) | NONE,
                "score": words(*_UTILITY, "random"),
                "confidence": number(0, 1),
            },
        )
        if confidence == 0:
            raise ParameterError("confidence=0 in AbilityToSeparate: expected a number above 0, at most 1.")
        highest = _NEIGHBOURS if n_neighbors is None else n_neighbors
        if theta is not None and theta > highest:
            raise ParameterError(
                f"theta={theta} in AbilityToSeparate: expected at most n_neighbors={highest}, the most neighbours "
                "two rows can share. Lower theta or raise n_neighbors."
            )

    @classmethod
    def _examples(cls) -> list[AbilityToSeparate]:
        return [cls(n_neighbors=5), cls(n_neighbors=5, score="random")]

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Pair, Any, None]:
        """Ask the best candidate, propagate, refine, until no candidate is left."""
        if view.n_rows < 2:
            return
        graph: NeighbourGraph = view.once(
            f"vu2012 n_neighbors={self.n_neighbors} theta={self.theta}",
            lambda: neighbour_graph(view.X, *self._settings(view.n_rows)),
        )
        guessed = np.zeros(len(graph.candidates), dtype=np.int8)
        while True:
            ranking = self._ranking(graph, rng)
            # Recomputed from the view for each question, so that a resumed run asks the same as an uninterrupted one.
            parts, pair = StrongParts(view, graph.strong), None
            while pair is None and parts.found_more:
                guess, is_left = parts.propagate(graph.candidates)
                pair = _best_open(view, graph.candidates[ranking[is_left[ranking]]], parts)
            _impute(view, graph.candidates, guess, guessed, self.confidence)
            guessed = guess
            if pair is None:
                return
            yield pair

    def _settings(self, n_rows: int) -> tuple[int, int]:
        """The k and theta in use for this many rows."""
        k = self.n_neighbors
        if k is None:
            k = min(_NEIGHBOURS, n_rows // _LEAST_ROWS_PER_NEIGHBOUR)
        k = max(min(k, n_rows - 1), 1)
        return k, min(k // 2 + _THETA_ABOVE_HALF if self.theta is None else self.theta, k)

    def _ranking(self, graph: NeighbourGraph, rng: np.random.Generator) -> IntArray:
        if self.score == "random":
            return rng.permutation(len(graph.candidates))
        return np.argsort(-utility(graph, self.score), kind="stable")


@dataclass(frozen=True)
class NeighbourGraph:
    """The mutual nearest-neighbour graph, split into candidates and strong edges.

    Attributes
    ----------
    n_neighbors : int
    candidates : ndarray of shape (n_candidates, 2)
        Edges lighter than theta whose rows are not joined by a strong path; lower row first, in row order.
    omega : ndarray of shape (n_candidates,)
        Weight of each candidate.
    strong : ndarray of shape (n_rows,)
        For each row, the smallest row of its part (the rows joined to it by strong paths).
    lds : ndarray of shape (n_rows,)
        Local density score of each row.
    """

    n_neighbors: int
    candidates: IntArray
    omega: IntArray
    strong: IntArray
    lds: FloatArray


def utility(graph: NeighbourGraph, score: str) -> FloatArray:
    """Utility of each candidate for separating clusters (Eq. 3 and its variants)."""
    density = graph.lds[graph.candidates].min(axis=1)
    return _UTILITY[score](graph.n_neighbors, graph.omega, density)


def neighbour_graph(X: Any, n_neighbors: int, theta: int) -> NeighbourGraph:
    """Build the graph, select the candidates and refine them once (lines 2 to 4 of Algorithm 1)."""
    n_rows = X.shape[0]
    neighbours = nearest_neighbours(X, n_neighbors)[1]
    omega = shared_neighbours(neighbours)
    ends = np.arange(0, n_rows * n_neighbors + 1, n_neighbors)
    # One is added so that edges without shared neighbours are stored.
    weights = sparse.csr_array((omega.ravel() + 1, neighbours.ravel(), ends), shape=(n_rows, n_rows))
    is_neighbour = sparse.csr_array((np.ones(neighbours.size, dtype=np.int64), neighbours.ravel(), ends), weights.shape)
    mutual = sparse.triu(weights.multiply(is_neighbour.T), 1).tocsr().tocoo()
    edges = np.column_stack([mutual.row, mutual.col]).astype(np.int64)
    edge_omega = mutual.data - 1
    strong = np.arange(n_rows)
    merge_pairs(strong, np.ascontiguousarray(edges[edge_omega >= theta]))
    numbers = np.empty(n_rows, dtype=np.int64)
    number_components(strong, numbers)
    first_row = np.unique(numbers, return_index=True)[1]
    strong = first_row[numbers]
    is_candidate = (edge_omega < theta) & (strong[edges[:, 0]] != strong[edges[:, 1]])
    lds = density_of(omega)
    return NeighbourGraph(n_neighbors, edges[is_candidate], edge_omega[is_candidate], strong, lds)


class StrongParts:
    """Partition of the rows into parts joined by strong paths: strong edges and known must-links (Definition 1)."""

    def __init__(self, view: View, strong: IntArray) -> None:
        self.found_more = True
        self._view = view
        self._known_different: list[tuple[int, int]] = []
        self._parent = strong.copy()
        known = view.knowledge.components()
        order = np.argsort(known, kind="stable")
        together = np.flatnonzero(known[order[1:]] == known[order[:-1]])
        merge_pairs(self._parent, np.column_stack([order[together], order[together + 1]]))
        self._part_of = np.empty(view.n_rows, dtype=np.int64)
        self._different = np.empty(0, dtype=np.int64)

    def propagate(self, candidates: IntArray) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.bool_]]:
        """Propagate answers to candidates (1 same, -1 different, 0 undecided), and return which are still open."""
        self.found_more = False
        view = self._view
        answers = {key: view.knowledge.relation(*key) for key in sorted(view.asked - view.unsure)}
        must = [key for key, answer in answers.items() if answer is SAME] + view.deduced
        merge_pairs(self._parent, _as_pairs(must))
        number_components(self._parent, self._part_of)
        cannot = [key for key, answer in answers.items() if answer is DIFFERENT] + self._known_different
        self._different = np.unique(self._between(_as_pairs(cannot)))
        waiting = np.unique(self._between(_as_pairs(sorted(view.pending))))

        between = self._between(candidates)
        is_inside = self._part_of[candidates[:, 0]] == self._part_of[candidates[:, 1]]
        is_apart = _is_in(between, self._different)
        # A part with two different rows contains a wrong strong path, so nothing is propagated inside it.
        guess = np.where(is_apart, -1, np.where(is_inside, 1, 0)).astype(np.int8)
        guess[is_inside & is_apart] = 0
        return guess, ~(is_inside | is_apart | _is_in(between, waiting))

    def note_different(self, first: int, second: int) -> None:
        """Record two rows that differ by implication, so that the next call of `propagate` uses them."""
        self._known_different.append((first, second))
        self.found_more = True

    def _between(self, pairs: IntArray) -> IntArray:
        """Encode the two parts that each pair connects as one number."""
        parts = np.sort(self._part_of[pairs], axis=1)
        return parts[:, 0] * len(self._part_of) + parts[:, 1]


def _as_pairs(pairs: list[tuple[int, int]]) -> IntArray:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _is_in(values: IntArray, of: IntArray) -> npt.NDArray[np.bool_]:
    """Mask the values that are in the sorted array `of`."""
    if not len(of):
        return np.zeros(len(values), dtype=bool)
    place = np.minimum(np.searchsorted(of, values), len(of) - 1)
    return of[place] == values


def _best_open(view: View, candidates: IntArray, parts: StrongParts) -> Pair | None:
    """The first open candidate, or None if there is none or if a better candidate turned out to be decided."""
    for first, second in candidates:
        if view.is_open(int(first), int(second)):
            return None if parts.found_more else Pair(int(first), int(second), why="Do two groups meet here?")
        if view.knowledge.relation(int(first), int(second)) is DIFFERENT:
            parts.note_different(int(first), int(second))
    return None


def _impute(
    view: View, candidates: IntArray, guess: npt.NDArray[np.int8], before: npt.NDArray[np.int8], confidence: float
) -> None:
    """Update the view with the guesses that changed."""
    meaning: dict[int, Answer] = {1: SAME, -1: DIFFERENT}
    for place in np.flatnonzero(guess != before).tolist():
        first, second = candidates[place].tolist()
        answer = meaning.get(int(guess[place]))
        if answer is None or (first, second) in view.asked:
            view.imputed.pop((first, second), None)
        elif view.imputed.get((first, second)) != (answer, confidence):
            view.impute(Pair(first, second), answer, confidence)
