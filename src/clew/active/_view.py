"""What a strategy sees: the data, what is known, what is pending, and the means to guess."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair
from clew.active._knowledge import Knowledge

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Neighbourhood:
    """Rows known to be together, and known to differ from every other neighbourhood.

    Attributes
    ----------
    member : int
        The row that stands for the neighbourhood in a question: the first one found.
    rows : ndarray of ints
    center : ndarray of shape (n_features,)
    """

    member: int
    rows: IntArray
    center: FloatArray


class View:
    """The state a strategy works on; rebuilt from the log whenever history changes.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    n_clusters : int or None
        None where it is unknown.
    n_rows : int
    n_answers : int
    knowledge : Knowledge
        What answers and prior constraints say about pairs.
    asked, unsure, pending : sets of pairs of rows
        Answered in any way; answered "unsure"; asked and not yet answered.
    deduced : list of pairs of rows
        Rows known to differ from all neighbourhoods but one, and that one, where the number of clusters is known.
    imputed : dict
        Guesses: pair of rows → (answer, confidence).
    placed : ndarray of bools
        Which rows are in a neighbourhood.
    """

    def __init__(
        self, X: Any, n_clusters: int | None, knowledge: Knowledge, prior_rows: IntArray, store: dict[str, Any]
    ) -> None:
        self.X, self.n_clusters, self.knowledge = X, n_clusters, knowledge
        self.n_rows, self.n_answers = int(X.shape[0]), 0
        self.asked: set[tuple[int, int]] = set()
        self.unsure: set[tuple[int, int]] = set()
        self.pending: set[tuple[int, int]] = set()
        self.deduced: list[tuple[int, int]] = []
        self.imputed: dict[tuple[int, int], tuple[Answer, float]] = {}
        self.placed = np.zeros(self.n_rows, dtype=bool)
        self.fit: Callable[[], npt.NDArray[Any]] = lambda: np.zeros(self.n_rows, dtype=np.int64)
        self._store = store
        self._members: list[int] = []
        self._cache: tuple[int, list[Neighbourhood]] | None = None
        for row in prior_rows.tolist():
            self._settle(row)

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """What `make` returns, computed once for this data and kept over restarts: for what answers do not change."""
        if key not in self._store:
            self._store[key] = make()
        return self._store[key]

    # -- answers ---------------------------------------------------------------------------------------------------

    def take(self, pair: Pair, answer: Answer) -> bool:
        """Take an answer in; False if it contradicts what is known (it then changes nothing but counts as asked)."""
        self.asked.add(pair.key)
        self.n_answers += 1
        self.imputed.pop(pair.key, None)
        if answer is UNSURE:
            self.unsure.add(pair.key)
            return True
        if not self.knowledge.add(pair.first, pair.second, answer):
            return False
        for row in (pair.second, pair.first):  # the row a question compares with comes first
            self._settle(row)
        if answer is DIFFERENT:
            for row in (pair.second, pair.first):
                self._deduce(row)
        return True

    def _settle(self, row: int) -> None:
        """Make the component of a row a neighbourhood if it differs from all others, or mark its rows if it is one."""
        relations = [self.knowledge.relation(row, member) for member in self._members]
        if all(relation is DIFFERENT for relation in relations):
            self._members.append(int(row))
        elif SAME not in relations:
            return
        self.placed[self.knowledge.rows(row)] = True

    def _deduce(self, row: int) -> None:
        """With all clusters found, a row that differs from all but one belongs to that one."""
        if self.placed[row] or self.n_clusters is None or len(self._members) != self.n_clusters:
            return
        left = [member for member in self._members if self.knowledge.relation(row, member) is None]
        if len(left) == 1 and self.knowledge.add(row, left[0], SAME):
            self.deduced.append(Pair(row, left[0]).key)
            self._settle(row)

    # -- what is known ---------------------------------------------------------------------------------------------

    def known(self, first: int, second: int) -> Answer | None:
        """The answer to a pair as far as it is decided: given, implied, or "unsure"; None when open."""
        found = self.knowledge.relation(first, second)
        if found is None and Pair(first, second).key in self.unsure:
            return UNSURE
        return found

    def is_open(self, first: int, second: int) -> bool:
        """Whether a pair may be asked: two rows, nothing decided, not answered, not pending."""
        key = Pair(first, second).key
        return (
            first != second
            and key not in self.asked
            and key not in self.pending
            and self.knowledge.relation(first, second) is None
        )

    @property
    def neighbourhoods(self) -> list[Neighbourhood]:
        """Groups of rows known to be together that are known to differ from each other, in order of discovery."""
        if self._cache is None or self._cache[0] != self.n_answers:
            found = []
            for member in self._members:
                rows = self.knowledge.rows(member)
                found.append(Neighbourhood(member, rows, mean_row(self.X, rows)))
            self._cache = (self.n_answers, found)
        return self._cache[1]

    def unplaced(self) -> IntArray:
        """Rows in no neighbourhood for which a question is still open; all rows before the first answer."""
        rows = np.flatnonzero(~self.placed)
        if not self._members or not (self.unsure or self.pending):
            return rows
        doubtful = {row for pair in self.unsure | self.pending for row in pair if not self.placed[row]}
        closed = [row for row in doubtful if not self.open_neighbourhoods(row)]
        return rows[~np.isin(rows, closed)] if closed else rows

    def open_neighbourhoods(self, row: int) -> list[Neighbourhood]:
        """Neighbourhoods a row might belong to: not known to differ, and not "unsure" or pending with any member."""
        doubtful = {sum(pair) - row for pair in self.unsure | self.pending if row in pair}
        return [
            one
            for one in self.neighbourhoods
            if self.knowledge.relation(row, one.member) is None
            and (not doubtful or doubtful.isdisjoint(one.rows.tolist()))
        ]

    def nearest_neighbourhoods(self, row: int) -> list[Neighbourhood]:
        """Neighbourhoods a row might belong to, the one with the nearest centre first."""
        found = self.open_neighbourhoods(row)
        if len(found) < 2:
            return found
        distances = squared_distances(self.X, np.array([row]), np.array([one.center for one in found]))[0]
        return [found[place] for place in np.argsort(distances, kind="stable")]

    def impute(self, pair: Pair, answer: Answer, confidence: float) -> None:
        """A guess: used by `labels`, shown, never logged, and dropped where it contradicts what is known."""
        if self.knowledge.relation(pair.first, pair.second) is None:
            self.imputed[pair.key] = (answer, float(confidence))

    def labels(self) -> npt.NDArray[Any]:
        """The current clustering, from what is known and guessed."""
        return self.fit()


def mean_row(X: Any, rows: IntArray) -> FloatArray:
    """The mean of some rows."""
    return np.asarray(X[rows].mean(axis=0), dtype=np.float64).ravel()


def squared_distances(X: Any, rows: IntArray | None, points: FloatArray) -> FloatArray:
    """Squared distances between rows of X (None: all) and points."""
    chosen = X if rows is None else X[rows]
    if sparse.issparse(chosen):
        norms = np.asarray(chosen.multiply(chosen).sum(axis=1), dtype=np.float64).reshape(-1, 1)
    else:
        norms = np.einsum("ij,ij->i", chosen, chosen, dtype=np.float64)[:, None]
    inner = np.asarray(chosen @ points.T, dtype=np.float64)
    return np.maximum(norms - 2 * inner + np.einsum("ij,ij->i", points, points), 0.0)
