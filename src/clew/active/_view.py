"""The state that a strategy sees: the data, the answers with their closure, pending questions, and guesses."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, islice
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._words import name_key
from clew.active._annotators import CERTAIN, AnswerArrays
from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair
from clew.active._distances import Nearest, mean_row, squared_distances
from clew.active._knowledge import Knowledge
from clew.active._pending import PendingQuestions
from clew.constraints import Closure, Constraints
from clew.datasets import Table
from clew.exceptions import StrategyError

# Largest number of calls of `unplaced` and `labels` between two questions. More calls mean an endless loop.
_MOST_LOOKS = 10_000
# Answers as numbers, see `View.said`.
_NUMBER = {SAME: 1, DIFFERENT: -1, UNSURE: 0}

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
# The answer of one annotator: name, pairs with answers, confidence.
Vote = tuple[str, list[tuple[Pair, Answer]], float]


@dataclass(frozen=True)
class Neighbourhood:
    """Rows known to be together, and known to differ from every other neighbourhood.

    Attributes
    ----------
    member : int
        The representative of the neighbourhood in questions: the first row found.
    rows : ndarray of ints
        All rows of the neighbourhood.
    center : ndarray of shape (n_features,)
        Mean of the rows.
    """

    member: int
    rows: IntArray
    center: FloatArray


class Cache:
    """Cache of results that depend on the data alone. A lock makes threads wait for a result in progress."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}
        self._lock = RLock()

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the cached result of this key. The first call computes it with `make`."""
        with self._lock:
            if key not in self._found:
                self._found[key] = make()
            return self._found[key]


class View:
    """The state that a strategy works on: `take` adds an answer, and `rewind` takes the latest answers back.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    records : Table or None
        The rows as a table, for strategies that compare records.
    n_clusters : int or None
        None if the number of clusters is unknown.
    n_rows : int
    deduces : bool
        Whether pairs that follow from the number of clusters count like answers.
    told : list of lists of (pair, answer)
        For each answer, the pairs that it decides, oldest answer first. Contradicting answers are included.
    taken : list of tuples
        For each answer, the arguments of `take`.
    n_contradictions : int
        Number of answers that contradict earlier answers.
    n_disputed : int
        Number of pairs that have been answered both ways, even if these answers have been changed since.
    constraints : callable
        Returns prior constraints, answers and deduced pairs as `Constraints`.
    knowledge : Knowledge
        Closure of the prior constraints and the answers.
    asked : set of pairs of rows
        Pairs with any answer.
    unsure : set of pairs of rows
        Pairs with the answer "unsure".
    decided : set of pairs of rows
        Pairs that an answer in use declares the same or different.
    stated : set of (row, row, 1 or -1)
        Pairs that a volunteered statement in use, such as a correction, declares the same (1) or different (-1).
    waiting : PendingQuestions
        Questions asked and not yet answered.
    deduced : list of pairs of rows
        Pairs that follow from the number of clusters: a row that differs from all neighbourhoods but one belongs to it.
    imputed : dict
        Guesses: pair of rows → (answer, confidence).
    prior : Constraints
        Constraints given before the first answer.
    error_rate : float or None
        Expected share of wrong answers, if it is given.
    check_share : float
        Largest share of check questions while no answer is expected to be wrong.
    asks_again : bool
        Whether a second opinion may be about a pair that was asked before.
    annotators : list of str
        Names of annotators, in the order of their first answers. Names that differ only in case or in spaces at the
        ends are one annotator.
    latest : dict
        Last results of the strategies on this view, so that a restarted strategy need not compute them again.
    placed : ndarray of bools
        True for rows in a neighbourhood, or presumed to be in one.
    named : ndarray of bools
        True for rows in a pair that was answered "same" or "different".
    questioned : ndarray of bools
        True for rows that a question was about, with any answer.
    """

    def __init__(
        self,
        X: Any,
        n_clusters: int | None,
        knowledge: Knowledge,
        prior: Constraints,
        prior_rows: IntArray,
        cache: Cache,
        *,
        deduces: bool = True,
        records: Table | None = None,
        error_rate: float | None = None,
        check_share: float = 0.0,
        asks_again: bool = True,
    ) -> None:
        self.records, self.error_rate, self.check_share = records, error_rate, check_share
        self.asks_again = asks_again
        self.X, self.n_clusters, self.knowledge, self.prior = X, n_clusters, knowledge, prior
        self.n_rows = int(X.shape[0])
        self.told: list[list[tuple[Pair, Answer]]] = []
        self.taken: list[tuple[list[tuple[Pair, Answer]], bool, list[Vote] | None, bool]] = []
        self.n_contradictions, self.n_disputed = 0, 0
        self.asked: set[tuple[int, int]] = set()
        self.unsure: set[tuple[int, int]] = set()
        self.decided: set[tuple[int, int]] = set()
        self.stated: set[tuple[int, int, int]] = set()
        self.waiting = PendingQuestions()
        self.deduced: list[tuple[int, int]] = []
        self.imputed: dict[tuple[int, int], tuple[Answer, float]] = {}
        self.latest: dict[str, Any] = {}
        self.named, self.questioned, self._known, self._presumed = (np.zeros(self.n_rows, dtype=bool) for _ in range(4))
        self.fit: Callable[[int | None], npt.NDArray[Any]] = lambda n_answers: np.zeros(self.n_rows, dtype=np.int64)
        self.constraints: Callable[[], Constraints] = lambda: Constraints(n_samples=self.n_rows)
        self._store, self.deduces, self._said = cache, deduces, array("q")
        self.annotators: list[str] = []
        self._numbers: dict[str, int] = {}
        # Answers as evidence: rows, sign and annotator of each, its confidence, and the number of answers so far.
        self._evidence, self._confidence, self._n_evidence = array("q"), array("d"), list[int]()
        self._journal, self._marks = knowledge.journal, list[int]()
        self._members: list[int] = []
        self._doubts: dict[int, set[int]] = {}
        self._closed: dict[int, int] = {}
        self._cache: tuple[int, list[Neighbourhood]] | None = None
        self._found: dict[int, Neighbourhood] = {}
        self._to_placed = Nearest(self.n_rows)
        self._affected: list[int] = []
        self._n_looks = 0
        for row in prior_rows.tolist():
            self._settle(row)
        self._settle_all()

    @property
    def n_answers(self) -> int:
        """Number of answers."""
        return len(self.told)

    @property
    def said(self) -> IntArray:
        """All answered pairs, oldest first, as an array of shape (n_pairs, 4). Contradicting answers are included.

        The columns are the two rows, the answer (1 for "same", -1 for "different", 0 for "unsure") and whether it was a
        check question (1 or 0).
        """
        return np.array(self._said, dtype=np.int64).reshape(-1, 4)

    @property
    def answer_arrays(self) -> AnswerArrays:
        """All answers "same" and "different" of every annotator, even if they contradict each other."""
        columns = np.array(self._evidence, dtype=np.int64).reshape(-1, 4)
        return AnswerArrays.of(columns, np.array(self._confidence, dtype=np.float64))

    @property
    def expects_errors(self) -> bool:
        """Whether answers may be wrong: an error rate is given, answers contradict, or there are too many groups."""
        if self.error_rate is not None:
            return self.error_rate > 0
        too_many = self.n_clusters is not None and len(self._members) > self.n_clusters
        return bool(self.n_contradictions or self.n_disputed or too_many)

    def may_check(self, *, repeated: bool = False, urgent: bool = False) -> bool:
        """Whether a check question may be asked now: if answers may be wrong, or within the share of checks.

        A `repeated` question, about a pair that was asked before, needs a given error rate or a place in the share. An
        `urgent` question may come before its turn, once.
        """
        if repeated and not self.asks_again:
            return False
        if self.error_rate if repeated else self.expects_errors:
            return True
        n_waiting = sum(isinstance(one, Pair) and one.check for one in self.waiting)
        n_checks, is_early = self._checks()
        return n_waiting + n_checks + 1 <= self.check_share * (self.n_answers + 1) + (urgent or is_early)

    @property
    def has_urgent_check(self) -> bool:
        """Whether the answers so far leave room for a check question before its turn."""
        is_allowed = self.check_share > 0 and self.error_rate is None
        return is_allowed and self._checks()[0] <= self.check_share * (self.n_answers + 1)

    def _checks(self) -> tuple[int, bool]:
        """Number of answered check questions, and whether one of them came before its turn."""
        places = np.flatnonzero(self.said[:, 3] == 1) + 1
        return len(places), bool((np.arange(1, len(places) + 1) > self.check_share * places).any())

    def once(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, computed once per data set. Use it for results that do not depend on answers."""
        return self._store.once(key, make)

    # -- answers ---------------------------------------------------------------------------------------------------

    def take(
        self,
        said: list[tuple[Pair, Answer]],
        *,
        volunteered: bool = False,
        votes: list[Vote] | None = None,
        disputed: bool = False,
    ) -> bool:
        """Add the pairs of one answer or of one volunteered statement: all of them or none.

        Returns False if the pairs contradict the closure so far. They are then not used, but count as asked. `votes`
        are the answers of each annotator, if they are known; volunteered pairs are certain. `disputed` says that the
        pairs have been answered both ways, even if the votes agree now.
        """
        self._marks.append(len(self._journal))
        self.told.append(said)
        self.taken.append((said, volunteered, votes, disputed))
        self._n_evidence.append(len(self._confidence))
        self._vote([("", said, 1.0)] if votes is None else votes, certain=volunteered, disputed=disputed)
        keys, decided = [], []
        for pair, answer in said:
            key = pair.key
            keys.append(key)
            self._said.extend((pair.first, pair.second, _NUMBER[answer], pair.check))
            self.imputed.pop(key, None)
            if answer is UNSURE:
                self._add(self.unsure, [key])
                self._doubt(pair)
            else:
                decided.append((pair, answer))
        decided_keys = keys if len(decided) == len(said) else [pair.key for pair, _ in decided]
        self._add(self.asked, keys)
        if not volunteered:
            self._set(self.questioned, chain.from_iterable(keys))
        self._set(self.named, chain.from_iterable(decided_keys))
        if not self._learn_all(decided):
            self._journal.note(setattr, self, "n_contradictions", self.n_contradictions)
            self.n_contradictions += 1
            for pair, _ in decided:
                self._doubt(pair)
            return False
        self._add(self.decided, decided_keys)
        if volunteered:
            self._add(self.stated, [(*pair.key, _NUMBER[answer]) for pair, answer in decided])
        is_first = not self._members
        pairs = [(pair.second, pair.first) for pair, _ in decided]  # the row compared with comes first
        rows = list(dict.fromkeys(chain.from_iterable(pairs)))
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

    def _vote(self, votes: list[Vote], *, certain: bool, disputed: bool) -> None:
        """Add the answers of annotators as evidence."""
        answers: set[tuple[tuple[int, int], Answer]] = set()
        for name, said, confidence in votes:
            for pair, answer in said:
                if answer is UNSURE:
                    continue
                who = CERTAIN if certain else self._annotator(name)
                self._evidence.extend((pair.first, pair.second, _NUMBER[answer], who))
                self._confidence.append(confidence)
            if len(votes) > 1 or len(said) > 1:
                answers.update((pair.key, answer) for pair, answer in said if answer is not UNSURE)
        if disputed or len({key for key, _ in answers}) < len(answers):
            self._journal.note(setattr, self, "n_disputed", self.n_disputed)
            self.n_disputed += 1

    def _annotator(self, name: str) -> int:
        """Number of an annotator."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers.get(name_key(name))
        if number is None:
            number = len(self.annotators)
            self.annotators.append(name)
            self._numbers[name_key(name)] = number
            self._journal.note(self._forget_annotator)
        self._numbers[name] = number  # names are looked up as they are written, because `name_key` takes longer
        return number

    def _forget_annotator(self) -> None:
        """Take back the latest annotator, with all spellings of the name."""
        self.annotators.pop()
        last = len(self.annotators)
        self._numbers = {name: number for name, number in self._numbers.items() if number < last}

    def rewind(self, n_answers: int) -> None:
        """Take back all answers after the first `n_answers`, and forget guesses and results of strategies."""
        if n_answers < self.n_answers:
            self._journal.rewind(self._marks[n_answers])
            n_dropped = sum(map(len, self.told[n_answers:]))
            del self._said[len(self._said) - 4 * n_dropped :]
            n_kept = self._n_evidence[n_answers]
            del self._evidence[4 * n_kept :], self._confidence[n_kept:], self._n_evidence[n_answers:]
            del self._marks[n_answers:], self.told[n_answers:], self.taken[n_answers:]
        self._closed.clear()
        self._cache = None
        self._found = {one: found for one, found in self._found.items() if len(found.rows) == self.knowledge.size(one)}
        self.imputed, self.latest = {}, {}

    def _add(self, some: set[Any], keys: list[Any]) -> None:
        """Add pairs to a set. `rewind` removes the pairs that were new."""
        if len(keys) == 1 and keys[0] not in some:
            some.add(keys[0])
            self._journal.note(some.discard, keys[0])
        elif new := {key for key in keys if key not in some}:
            some |= new
            self._journal.note(some.difference_update, new)

    def _set(self, marks: npt.NDArray[np.bool_], rows: Any) -> None:
        """Mark rows. `rewind` removes the new marks."""
        new = [row for row in rows if not marks[row]]
        if new:
            for row in new:  # usually two
                marks[row] = True
            self._journal.note(marks.__setitem__, new, False)

    def _doubt(self, pair: Pair) -> None:
        """Record a pair that was answered without being decided, so that it is not asked again."""
        for one, two in (pair.key, pair.key[::-1]):
            if two not in self._doubts.setdefault(one, set()):
                self._doubts[one].add(two)
                self._journal.note(self._forget_doubt, one, two)

    def _forget_doubt(self, one: int, two: int) -> None:
        self._doubts[one].discard(two)
        if not self._doubts[one]:
            del self._doubts[one]

    def _learn_all(self, said: list[tuple[Pair, Answer]]) -> bool:
        """Add pairs to the closure. Returns False and adds none if they contradict each other or the closure."""
        if len(said) > 1 and self.knowledge.contradicts([(pair.key, answer) for pair, answer in said]):
            return False
        agrees = [self._learn(pair, answer) for pair, answer in said]
        return all(agrees)

    def _learn(self, pair: Pair, answer: Answer) -> bool:
        """Add a pair to the closure and mark rows that join a neighbourhood, so that a log takes linear time.

        Returns False and changes nothing if the answer contradicts the closure.
        """
        joining = [row for row in pair.key if self._may_move(row)] if answer is SAME else []
        if len(joining) != 1:
            return self.knowledge.add(pair.first, pair.second, answer)
        rows, apart = self.knowledge.rows(joining[0]), self.knowledge.apart(joining[0])
        if not self.knowledge.add(pair.first, pair.second, answer):
            return False
        # Rows that differ from the joining rows now differ from the whole neighbourhood, perhaps from all but one.
        self._affected += filter(self._may_move, apart)
        self._place(rows)
        return True

    def _place(self, rows: IntArray) -> None:
        """Mark rows that are known to be in a neighbourhood."""
        self._set(self._known, rows.tolist())
        self._unpresume(rows[self._presumed[rows]])

    def _may_move(self, row: int) -> bool:
        """Whether a row is in no neighbourhood, or only presumed to be in one."""
        return not self._known[row]

    def _settle(self, row: int) -> None:
        """Make the component of a row a neighbourhood if it differs from all others."""
        if self._may_move(row) and self.knowledge.is_apart(row, self._members):
            self._begin(row)

    def _settle_all(self) -> None:
        """Call `_settle` for every row, lowest first, when the first neighbourhood exists. Later answers update it."""
        is_open = np.zeros(self.n_rows, dtype=bool)
        for member in self._members:
            is_open[self.knowledge.open_rows(member)] = True
        while self._members and not (closed := self._known | is_open).all():
            row = int(closed.argmin())
            self._begin(row)
            is_open[self.knowledge.open_rows(row)] = True

    def _begin(self, row: int) -> None:
        """Make the component of a row a new neighbourhood."""
        self._members.append(int(row))
        self._journal.note(self._members.pop)
        # Rows were presumed to be in the only neighbourhood left for them; now there is one more.
        self._unpresume(np.flatnonzero(self._presumed))
        self._place(self.knowledge.rows(row))

    def _unpresume(self, rows: IntArray) -> None:
        if len(rows):
            self._presumed[rows] = False
            self._journal.note(self._presumed.__setitem__, rows, True)

    def _deduce(self, row: int) -> None:
        """Place a row by elimination: with all clusters found, a row that differs from all but one belongs to it.

        If `n_clusters` is trusted, the pair is added like an answer. Otherwise the row is only presumed to be in the
        neighbourhood: no question is asked about it, and later answers cannot contradict it. Presumed rows are recorded
        for any `n_clusters`, and count as placed while the number of neighbourhoods equals `n_clusters`, which may
        change at any time.
        """
        if self._known[row] or self._presumed[row]:
            return
        if self.deduces and (self.n_clusters is None or len(self._members) != self.n_clusters):
            return
        left = list(islice(self.knowledge.undecided(row, self._members), 2))
        if len(left) == 1 and not self.deduces:
            self._set(self._presumed, self.knowledge.rows(row).tolist())
        elif len(left) == 1:
            self._learn(Pair(row, left[0]), SAME)
            self.deduced.append(Pair(row, left[0]).key)
            self._journal.note(self.deduced.pop)

    @property
    def placed(self) -> npt.NDArray[np.bool_]:
        """Rows in a neighbourhood, and rows presumed to be in the only neighbourhood left for them."""
        return self._known | self._presumed if len(self._members) == self.n_clusters else self._known

    @property
    def presumed(self) -> npt.NDArray[np.bool_]:
        """Rows that are presumed to be in the only neighbourhood left for them, although no answer says so."""
        return self.placed & ~self._known

    # -- closure and neighbourhoods --------------------------------------------------------------------------------

    def known(self, first: int, second: int) -> Answer | None:
        """Return the answer about a pair: given, implied, or "unsure". None if the pair is open."""
        found = self.knowledge.relation(first, second)
        if found is None and Pair(first, second).key in self.unsure:
            return UNSURE
        return found

    def is_open(self, first: int, second: int) -> bool:
        """Whether a pair may be asked: two different rows, not decided, not answered, not pending."""
        key = Pair(first, second).key
        return (
            first != second
            and key not in self.asked
            and key not in self.waiting.pairs
            and self.knowledge.relation(first, second) is None
        )

    @property
    def pending(self) -> set[tuple[int, int]]:
        """Pairs of rows asked and not yet answered."""
        return set(self.waiting.pairs - self.asked)

    @property
    def neighbourhoods(self) -> list[Neighbourhood]:
        """Groups of rows known to be together that are known to differ from each other, in order of discovery."""
        if self._cache is None or self._cache[0] != self.n_answers:
            self._cache = (self.n_answers, [self._neighbourhood(member) for member in self._members])
        return self._cache[1]

    def _neighbourhood(self, member: int) -> Neighbourhood:
        """Return the neighbourhood of a representative, from the cache if it has not grown. Rows never leave it."""
        known = self._found.get(member)
        if known is None or len(known.rows) != self.knowledge.size(member):
            rows = self.knowledge.rows(member)
            self._found[member] = known = Neighbourhood(member, rows, mean_row(self.X, rows))
        return known

    def to_placed(self) -> FloatArray:
        """Squared distance of each row to the nearest placed row, or inf while no row is placed.

        The distances are cached, so that only rows placed since the last call are measured.
        """
        return self._to_placed.distances(self.X, self.placed)

    def unplaced(self) -> IntArray:
        """Rows outside all neighbourhoods that a question can still place.

        Rows in a pending question and rows answered "unsure" with every neighbourhood are left out. Before the first
        neighbourhood exists, only rows in a pending question are left out.
        """
        self._look()
        is_free = ~self.placed
        waiting = {row for pair in self.pending for row in pair}
        doubtful = self._doubts.keys() - waiting if self._members else ()
        is_free[[*waiting, *(row for row in doubtful if is_free[row] and self._is_closed(row))]] = False
        return np.flatnonzero(is_free)

    def _is_closed(self, row: int) -> bool:
        """Whether an "unsure" row has no neighbourhood left to ask about. Only a new neighbourhood changes this."""
        if self._closed.get(row) == len(self._members):
            return True
        if self.open_neighbourhoods(row):
            return False
        self._closed[row] = len(self._members)
        return True

    def open_neighbourhoods(self, row: int) -> list[Neighbourhood]:
        """Neighbourhoods that a row may belong to: not known to differ, no member answered or pending with the row."""
        partners = self._doubts.get(row, set()) | {sum(pair) - row for pair in self.pending if row in pair}
        doubtful = {self.knowledge.component(partner) for partner in partners}
        return [
            one
            for one in self.neighbourhoods
            if self.knowledge.relation(row, one.member) is None and self.knowledge.component(one.member) not in doubtful
        ]

    def nearest_neighbourhoods(self, row: int) -> list[Neighbourhood]:
        """Neighbourhoods that a row may belong to, nearest centre first."""
        found = self.open_neighbourhoods(row)
        if len(found) < 2:
            return found
        distances = squared_distances(self.X, np.array([row]), np.array([one.center for one in found]))[0]
        return [found[place] for place in np.argsort(distances, kind="stable")]

    def impute(self, pair: Pair, answer: Answer, confidence: float) -> None:
        """Record a guess. `labels` uses it, but it is not logged, and contradicting answers override it."""
        if self.knowledge.relation(pair.first, pair.second) is None:
            self.imputed[pair.key] = (answer, float(confidence))

    def labels(self, n_answers: int | None = None) -> npt.NDArray[Any]:
        """Cluster with all constraints and guesses, or with the first `n_answers` answers and no guesses."""
        self._look()
        return self.fit(n_answers)

    def await_question(self) -> None:
        """Reset the count of calls that a strategy makes before its next question."""
        self._n_looks = 0

    def _look(self) -> None:
        self._n_looks += 1
        if self._n_looks > _MOST_LOOKS:
            raise StrategyError(f"looked {_MOST_LOOKS:,} times for something to ask and asked nothing")


def prior_order(closed: Closure) -> IntArray:
    """First rows of the components of prior constraints: components of known classes first, then by size."""
    known = np.flatnonzero((closed.sizes > 1) | (closed.labels >= 0))
    return closed.first_row[known[np.lexsort((known, -closed.sizes[known], closed.labels[known] < 0))]]
