"""What a strategy sees: the data, what is known, what is pending, and the means to guess."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair
from clew.active._knowledge import Knowledge
from clew.constraints import Constraints

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


class Store:
    """What was computed from the data alone, for all who ask about them: threads that want the same wait for it."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}
        self._lock = RLock()

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """What was found under this key; `make` finds it the first time."""
        with self._lock:
            if key not in self._found:
                self._found[key] = make()
            return self._found[key]


class View:
    """The state a strategy works on; rebuilt from the log whenever history changes.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    n_clusters : int or None
        None where it is unknown.
    n_rows : int
    told : list of lists of (pair, answer)
        What each answer said about pairs, oldest first, contradictions included.
    n_contradictions : int
        How many answers contradict earlier ones.
    constraints : callable
        Everything known, as `Constraints`.
    knowledge : Knowledge
        What answers and prior constraints say about pairs.
    asked, unsure, pending : sets of pairs of rows
        Answered in any way; answered "unsure"; asked and not yet answered.
    deduced : list of pairs of rows
        Rows known to differ from all neighbourhoods but one, and that one, where the number of clusters is known.
    imputed : dict
        Guesses: pair of rows → (answer, confidence).
    prior : Constraints
        What was known before any answer.
    latest : dict
        What strategies computed last from this view, for a fresh start in between; gone when history changes.
    placed, named, questioned : ndarrays of bools
        Which rows are in a neighbourhood; which ones an answer other than "unsure" was about; which ones were asked
        about, whatever the answer.
    """

    def __init__(
        self,
        X: Any,
        n_clusters: int | None,
        knowledge: Knowledge,
        prior: Constraints,
        prior_rows: IntArray,
        store: Store,
        *,
        deduces: bool = True,
    ) -> None:
        self.X, self.n_clusters, self.knowledge, self.prior = X, n_clusters, knowledge, prior
        self.n_rows = int(X.shape[0])
        self.told: list[list[tuple[Pair, Answer]]] = []
        self.n_contradictions = 0
        self.asked: set[tuple[int, int]] = set()
        self.unsure: set[tuple[int, int]] = set()
        self.pending: set[tuple[int, int]] = set()
        self.deduced: list[tuple[int, int]] = []
        self.imputed: dict[tuple[int, int], tuple[Answer, float]] = {}
        self.latest: dict[str, Any] = {}
        self.placed, self.named, self.questioned = (np.zeros(self.n_rows, dtype=bool) for _ in range(3))
        self.fit: Callable[[int | None], npt.NDArray[Any]] = lambda n_answers: np.zeros(self.n_rows, dtype=np.int64)
        self.constraints: Callable[[], Constraints] = lambda: Constraints(n_samples=self.n_rows)
        self._store, self._deduces = store, deduces
        self._presumed: set[int] = set()
        self._members: list[int] = []
        self._doubts: dict[int, set[int]] = {}
        self._closed: dict[int, int] = {}
        self._cache: tuple[int, list[Neighbourhood]] | None = None
        self._found: dict[int, Neighbourhood] = {}
        self._to_placed = Nearest(self.n_rows)
        self._affected: list[int] = []
        for row in prior_rows.tolist():
            self._settle(row)
        self._settle_all()

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return len(self.told)

    @property
    def said(self) -> list[tuple[Pair, Answer]]:
        """Pairs with their answers, oldest first, contradictions included."""
        return [one for said in self.told for one in said]

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """What `make` returns, computed once for this data and kept over restarts: for what answers do not change."""
        return self._store.once(key, make)

    # -- answers ---------------------------------------------------------------------------------------------------

    def take(self, said: list[tuple[Pair, Answer]], *, volunteered: bool = False) -> bool:
        """Take in what an answer (or what somebody volunteered) says about pairs, all of it or nothing.

        False if it contradicts what is known: then it changes nothing, but the pairs count as asked.
        """
        self.told.append(said)
        for pair, answer in said:
            self.asked.add(pair.key)
            self.imputed.pop(pair.key, None)
            if answer is UNSURE:
                self._doubt(pair)
        decided = [(pair, answer) for pair, answer in said if answer is not UNSURE]
        if not volunteered:
            self.questioned[[row for pair, _ in said for row in pair.key]] = True
        self.named[[row for pair, _ in decided for row in pair.key]] = True
        if self.knowledge.contradicts((pair.key, answer) for pair, answer in decided):
            self.n_contradictions += 1
            return False
        for pair, answer in decided:
            self._learn(pair, answer)
        is_first = not self._members
        rows = [row for pair, _ in decided for row in (pair.second, pair.first)]  # the row compared with comes first
        for row in rows:
            self._settle(row)
        if is_first:
            self._settle_all()
        for row in rows:
            self._deduce(row)
        while self._affected:
            row = self._affected.pop(0)
            self._settle(row)
            self._deduce(row)
        return True

    def _doubt(self, pair: Pair) -> None:
        self.unsure.add(pair.key)
        self._doubts.setdefault(pair.first, set()).add(pair.second)
        self._doubts.setdefault(pair.second, set()).add(pair.first)

    def _learn(self, pair: Pair, answer: Answer) -> None:
        """Add a pair; rows that join a neighbourhood are marked here, once, so that a log costs its length."""
        joining = [row for row in pair.key if self._may_move(row)] if answer is SAME else []
        rows = None
        if len(joining) == 1:
            rows, apart = self.knowledge.rows(joining[0]), self.knowledge.apart(joining[0])
            # What differs from the rows that join differs from the neighbourhood now, perhaps from the last one left.
            self._affected += filter(self._may_move, apart)
        self.knowledge.add(pair.first, pair.second, answer)
        if rows is not None:
            self.placed[rows] = True

    def _may_move(self, row: int) -> bool:
        """Whether a row is in no neighbourhood, or only presumed to be in one."""
        return not self.placed[row] or row in self._presumed

    def _settle(self, row: int) -> None:
        """Make the component of a row a neighbourhood if it differs from all others."""
        if self._may_move(row) and all(self.knowledge.relation(row, one) is DIFFERENT for one in self._members):
            self._begin(row)

    def _settle_all(self) -> None:
        """As `_settle` for every row, lowest first, once there is a neighbourhood; afterwards answers keep it so."""
        is_open = np.zeros(self.n_rows, dtype=bool)
        for member in self._members:
            is_open[self.knowledge.open_rows(member)] = True
        while self._members and not (closed := self.placed | is_open).all():
            row = int(closed.argmin())
            self._begin(row)
            is_open[self.knowledge.open_rows(row)] = True

    def _begin(self, row: int) -> None:
        """A neighbourhood of its own for a row and what is known to be together with it."""
        self._members.append(int(row))
        self.placed[self.knowledge.rows(row)] = True

    def _deduce(self, row: int) -> None:
        """With all clusters found, a row that differs from all but one belongs to that one.

        It is learnt, or only presumed where answers may prove the number of clusters wrong: then nobody is asked, and
        nothing contradicts what is said later.
        """
        if self.placed[row] or self.n_clusters is None or len(self._members) != self.n_clusters:
            return
        left = [member for member in self._members if self.knowledge.relation(row, member) is None]
        if len(left) == 1 and not self._deduces:
            self._presumed.update(self.knowledge.rows(row).tolist())
            self.placed[self.knowledge.rows(row)] = True
        elif len(left) == 1:
            self._learn(Pair(row, left[0]), SAME)
            self.deduced.append(Pair(row, left[0]).key)

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
            self._cache = (self.n_answers, [self._neighbourhood(member) for member in self._members])
        return self._cache[1]

    def _neighbourhood(self, member: int) -> Neighbourhood:
        """One that has not grown since it was looked at is as it was: rows never leave."""
        known = self._found.get(member)
        if known is None or len(known.rows) != self.knowledge.size(member):
            rows = self.knowledge.rows(member)
            self._found[member] = known = Neighbourhood(member, rows, mean_row(self.X, rows))
        return known

    def to_placed(self) -> FloatArray:
        """Squared distance of each row to the nearest one in a neighbourhood; inf while there is none.

        Kept up to date, so that a strategy which starts afresh measures only rows placed since.
        """
        return self._to_placed.distances(self.X, self.placed)

    def unplaced(self) -> IntArray:
        """Rows in no neighbourhood that a question can place: not "unsure" with all, and in no pending question.

        All rows that are in no pending question while there is no neighbourhood.
        """
        rows = np.flatnonzero(~self.placed)
        waiting = {row for pair in self.pending for row in pair}
        doubtful = self._doubts.keys() - waiting if self._members else ()
        closed = [row for row in doubtful if self._is_closed(row)]
        out = [row for row in (*waiting, *closed) if not self.placed[row]]
        return rows[~np.isin(rows, out)] if out else rows

    def _is_closed(self, row: int) -> bool:
        """Whether an "unsure" row has no neighbourhood left to ask about; only a new one changes that."""
        if self.placed[row] or self._closed.get(row) == len(self._members):
            return True
        if self.open_neighbourhoods(row):
            return False
        self._closed[row] = len(self._members)
        return True

    def open_neighbourhoods(self, row: int) -> list[Neighbourhood]:
        """Neighbourhoods a row might belong to: not known to differ, and not "unsure" or pending with any member."""
        partners = self._doubts.get(row, set()) | {sum(pair) - row for pair in self.pending if row in pair}
        doubtful = {self.knowledge.component(partner) for partner in partners}
        return [
            one
            for one in self.neighbourhoods
            if self.knowledge.relation(row, one.member) is None and self.knowledge.component(one.member) not in doubtful
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

    def labels(self, n_answers: int | None = None) -> npt.NDArray[Any]:
        """The current clustering, from what is known and guessed; or that of the first answers, without guesses."""
        return self.fit(n_answers)


class Nearest:
    """Squared distance of every row to its nearest marked row; it depends on the data and the marked rows alone."""

    def __init__(self, n_rows: int) -> None:
        self._measured = np.zeros(n_rows, dtype=bool)
        self._nearest = np.full(n_rows, np.inf)

    def distances(self, X: Any, marked: npt.NDArray[np.bool_]) -> FloatArray:
        """Running minima: only rows marked since the last call are measured, unless one was taken back."""
        if (self._measured & ~marked).any():
            self._measured, self._nearest = np.zeros(len(marked), dtype=bool), np.full(len(marked), np.inf)
        for row in np.flatnonzero(marked & ~self._measured).tolist():
            # One row at a time: sums in blocks of other sizes round otherwise, and ties would depend on history.
            np.minimum(self._nearest, distances_to(X, row), out=self._nearest)
        self._measured = marked.copy()
        return self._nearest


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


def dense_row(X: Any, row: int) -> FloatArray:
    """A row as a matrix of one row, dense."""
    one = X[[row]]
    return np.asarray(one.toarray() if sparse.issparse(one) else one, dtype=np.float64)


def distances_to(X: Any, row: int) -> FloatArray:
    """Squared distance of every row to one."""
    return squared_distances(X, None, dense_row(X, row))[:, 0]
