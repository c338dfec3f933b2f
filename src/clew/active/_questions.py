"""The driver: asks what is worth asking, takes answers in any order, and never loses or repeats one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from clew._base import ConstrainedClusterer
from clew._validation import as_generator, check_matrix
from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair, Stated, Which
from clew.active._auto import Auto
from clew.active._knowledge import Knowledge
from clew.active._view import Store, View
from clew.constraints import Conflict, Constraints
from clew.exceptions import ConstraintError, ParameterError
from clew.partitional import PCKMeans

# At most this share of the questions are checks of what is implied already.
_CHECK_SHARE = 0.05
# A strategy that yields this many decided pairs in a row, per row of data, has nothing left to ask.
_IDLE_PER_ROW, _IDLE_AT_LEAST = 20, 10_000
# The advice to stop looks at this many answers; the clustering must have foreseen nearly all of them.
_LOOK_BACK, _STOP_BELOW = 20, 0.08
# Clusters assumed when nobody said how many there are and fewer neighbourhoods have been found.
_LEAST_CLUSTERS = 2

Question = Pair | Which
Entry = Pair | Which | Stated


class Strategy(Protocol):
    """What to ask next: yields questions and receives answers; must be restartable from the view."""

    def __call__(self, view: View, rng: np.random.Generator) -> Generator[Question, Any, None]:
        """Yield questions worth asking, the best one first."""


@dataclass(frozen=True)
class Answered:
    """One entry of the log.

    Attributes
    ----------
    question : Pair, Which or Stated
    answer : Answer or int
        For `Which`, possibly the row that was chosen; for `Stated`, SAME, or UNSURE to take it back.
    confidence : float
    expected : Answer or None
        What the clustering at that time foresaw.
    conflict : bool
        Whether the answer contradicts earlier ones and waits, out of use, to be resolved.
    """

    question: Entry
    answer: Any
    confidence: float = 1.0
    expected: Answer | None = None
    conflict: bool = False


@dataclass(frozen=True)
class Progress:
    """Where things stand; see `Questions.progress`."""

    asked: int
    unsure: int
    implied: int
    neighbourhoods: int
    conflicts: int
    expected_gain: float
    can_stop: bool
    reason: str


class Questions:
    """Turns data into a short list of questions.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features)
    strategy : Strategy, optional
        What to ask next; `Auto` unless given.
    n_clusters : int, optional
        Number of clusters, where it is known.
    clusterer : estimator, optional
        Makes `labels` from what is known; unless given, the strategy where it makes clusters (`Auto` does), else
        `PCKMeans`.
    constraints : optional
        What is known beforehand, in any form `Constraints.of` takes; nothing it implies is asked.
    random_state : int, Generator, RandomState or None
        Same data, log and seed: same question.
    trust_n_clusters : bool, default=True
        Whether what follows from the number of clusters alone is known like an answer. If not, it is not asked either,
        but no answer ever contradicts it.

    Examples
    --------
    >>> from clew.active import Oracle, Questions
    >>> questions = Questions([[0.0], [0.1], [5.0], [5.1]], n_clusters=2, random_state=0)
    >>> oracle = Oracle([0, 0, 1, 1])
    >>> while (pair := questions.ask()) is not None:
    ...     _ = questions.tell(pair, oracle(pair))
    >>> questions.labels()
    array([0, 0, 1, 1])
    """

    def __init__(
        self,
        X: Any,
        strategy: Strategy | None = None,
        n_clusters: int | None = None,
        clusterer: ConstrainedClusterer | None = None,
        constraints: Any = None,
        random_state: Any = None,
        *,
        trust_n_clusters: bool = True,
    ) -> None:
        strategy = Auto() if strategy is None else strategy
        if not callable(strategy):
            raise ParameterError(f"strategy={strategy!r}: expected a query strategy such as Auto().")
        if n_clusters is not None and (not isinstance(n_clusters, int | np.integer) or n_clusters < 1):
            raise ParameterError(f"n_clusters={n_clusters!r}: expected an integer >= 1, or None where it is unknown.")
        self.X = check_matrix(X)
        n_rows = self.X.shape[0]
        if n_clusters is not None and n_clusters > n_rows:
            raise ParameterError(f"n_clusters={n_clusters}, but X has {n_rows} rows. Lower n_clusters.")
        self.strategy, self.n_clusters = strategy, None if n_clusters is None else int(n_clusters)
        self.clusterer, self.trust_n_clusters = clusterer, trust_n_clusters
        self.prior = Constraints.of(constraints, n_samples=n_rows)
        self.prior.require_consistent()
        self._seed = _seed_of(random_state)
        self._store = Store()
        self._log: list[Answered] = []
        self._pending: dict[Any, Question] = {}
        self._ahead: tuple[Question | None] | None = None
        self._fitted: npt.NDArray[Any] | None = None
        self._fitted_on: Any = None
        self._live: Generator[Question, Any, None] | None = None
        self._waiting: Question | None = None
        self._reply: Any = None
        self._rng = self._keyed_rng()
        self._rebuild()

    # -- asking ----------------------------------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Any:
        """The next question, or None when nothing is left; with `n`, a list of up to n that stay useful together."""
        if n is not None:
            if not isinstance(n, int | np.integer) or n < 1:
                raise ParameterError(f"n={n!r} in ask: expected an integer >= 1.")
            batch: list[Question] = []
            while len(batch) < n and (found := self.ask()) is not None:
                batch.append(found)
            return batch
        question = self._look_ahead()
        if question is None:
            return None
        self._ahead = None
        self._pending[_key(question)] = question
        self._view.pending.update(_pair_keys(question))
        self._waiting = question
        return question

    def _look_ahead(self) -> Question | None:
        """The next question: found once, and kept until it is asked or something changes."""
        if self._ahead is None:
            if self._live is None or self._pending:
                self._start()
            self._ahead = (self._next(),)
        return self._ahead[0]

    def _start(self) -> None:
        self._rng = self._keyed_rng()
        self._live = self.strategy(self._view, self._rng)
        self._waiting = None
        self._reply = None

    def _keyed_rng(self) -> np.random.Generator:
        return np.random.default_rng([self._seed, len(self._log), len(self._pending)])

    def _next(self) -> Question | None:
        """Run the strategy until it asks something that is open; what is decided is answered for free."""
        assert self._live is not None
        for _ in range(max(_IDLE_AT_LEAST, _IDLE_PER_ROW * self._view.n_rows)):
            try:
                question = next(self._live) if self._reply is None else self._live.send(self._reply)
            except StopIteration:
                return None
            except Exception:
                self._live = None  # a generator that raised is finished; asking again must tell the error again
                raise
            free = self._free_answer(question)
            if free is None:
                if isinstance(question, Pair) and question.check and self._view.known(*question.key) is None:
                    return replace(question, check=False)
                return question
            self._reply = free
        return None

    def _free_answer(self, question: Question) -> Any:
        view = self._view
        if isinstance(question, Which):
            known = {one: view.known(question.row, one) for one in question.candidates}
            same = [one for one, answer in known.items() if answer is SAME]
            if same:
                return same[0]
            if all(answer is DIFFERENT for answer in known.values()):
                return DIFFERENT
            open_ones = [one for one in question.candidates if view.is_open(question.row, one)]
            return None if open_ones else UNSURE
        if question.first == question.second:
            return SAME
        found = view.known(question.first, question.second)
        if question.check and found in (SAME, DIFFERENT) and question.key not in view.asked:
            so_far = [*(entry.question for entry in self._log), *self._pending.values()]
            n_checks = sum(isinstance(one, Pair) and one.check for one in so_far)
            if n_checks + 1 <= _CHECK_SHARE * (len(self._log) + 1) and question.key not in view.pending:
                return None
        if found is None and question.key in view.pending:
            return UNSURE
        return found

    # -- answering -------------------------------------------------------------------------------------------------

    def tell(self, question: Any, answer: Any, *, confidence: float = 1.0) -> bool:
        """Take the answer to a question that was asked; answers may come in any order.

        Returns False when the answer contradicts earlier ones: it is logged, but kept out of use until `undo` or
        `revise` resolves it; see `conflicts`. A bad answer raises and changes nothing.
        """
        question = self._asked(question)
        reply = question.read(answer) if isinstance(question, Which) else Answer.of(answer)
        if not isinstance(confidence, int | float | np.number) or not 0 < confidence <= 1:
            raise ParameterError(f"confidence={confidence!r}: expected a number in (0, 1].")
        return self._enter(Answered(question, reply, float(confidence), self._foreseen(question)))

    def add(self, entry: Answered) -> bool:
        """Take in an answer that was not asked for here, or pairs that were stated; what `tell` returns."""
        return self._enter(self._read(entry))

    def _enter(self, entry: Answered) -> bool:
        question, reply = entry.question, entry.answer
        self._pending.pop(_key(question), None)
        entry = _take(self._view, entry)
        self._log.append(entry)
        self._ahead = None
        if self._live is not None and self._waiting is question and not entry.conflict:
            self._reply = reply
            # A strategy that goes on draws what one that starts afresh here would draw.
            self._rng.bit_generator.state = self._keyed_rng().bit_generator.state
        else:
            self._live = None
        return not entry.conflict

    def _asked(self, question: Any) -> Question:
        question = _as_question(question, self._view.n_rows)
        if _key(question) in self._pending:
            return self._pending[_key(question)]
        if isinstance(question, Pair) and getattr(self.strategy, "passive", False):
            return question
        name = f"rows {question.first} and {question.second}" if isinstance(question, Pair) else f"row {question.row}"
        raise ParameterError(
            f"Nobody asked about {name}. Answer what ask() returned; to volunteer pairs use Feedback()."
        )

    def undo(self) -> Answered | None:
        """Take the last answer back; its question may be asked again. None when there is none."""
        if not self._log:
            return None
        entry = self._log.pop()
        self._rebuild()
        return entry

    def revise(self, question: Any, answer: Any) -> bool:
        """Change an earlier answer; returns whether it now agrees with the others."""
        key = _key(_as_question(question, self._view.n_rows))
        places = [place for place, entry in enumerate(self._log) if _key(entry.question) == key]
        if not places:
            raise ParameterError(f"{question!r} has no answer to revise.")
        old = self._log[places[-1]]
        self._log[places[-1]] = self._read(Answered(old.question, answer, old.confidence, old.expected))
        self._rebuild()
        return not self._log[places[-1]].conflict

    def replay(self, log: Iterable[Any]) -> None:
        """Take in a log: `Answered` entries, or (pair, answer) tuples; asked here or not."""
        self._log += [self._read(item) for item in log]
        self._rebuild()

    def again(self, log: Iterable[Any], strategy: Strategy, n_clusters: int | None) -> Questions:
        """Another driver for the same data with its own log; what was computed from the data is shared."""
        other = copy.copy(self)
        other.strategy, other.n_clusters, other._pending = strategy, n_clusters, {}
        other._log = [self._read(item) for item in log]
        other._rng = other._keyed_rng()
        other._rebuild()
        return other

    def use(self, strategy: Strategy) -> None:
        """Let another strategy ask from now on."""
        self.strategy, self._live, self._ahead = strategy, None, None
        self._view.imputed.clear()

    def hold(self, question: Question) -> None:
        """Let a question wait for its answer as if `ask` had given it: nobody else is asked meanwhile."""
        self._pending[_key(question)] = question
        self._view.pending.update(key for key in _pair_keys(question) if key not in self._view.asked)
        self._live, self._ahead = None, None

    def release(self, question: Question) -> None:
        """Do not wait for an answer any longer; the question may be asked again."""
        self._pending.pop(_key(question), None)
        self._view.pending.difference_update(_pair_keys(question))
        for other in self._pending.values():
            self._view.pending.update(_pair_keys(other))
        self._live, self._ahead = None, None

    def _read(self, item: Any) -> Answered:
        entry = item if isinstance(item, Answered) else Answered(*_two(item))
        if isinstance(entry.question, Stated):
            return entry
        question = _as_question(entry.question, self._view.n_rows)
        reply = question.read(entry.answer) if isinstance(question, Which) else Answer.of(entry.answer)
        return replace(entry, question=question, answer=reply)

    def _rebuild(self) -> None:
        """The view from the log, from scratch."""
        self._view, self._log = self._replayed(self._log)
        self._view.fit = self._current_labels
        self._view.constraints = lambda: self.constraints
        answered = {_key(entry.question) for entry in self._log}
        self._pending = {key: question for key, question in self._pending.items() if key not in answered}
        for question in self._pending.values():
            self._view.pending.update(_pair_keys(question))
        self._live, self._waiting, self._ahead, self._fitted = None, None, None, None

    def _replayed(self, log: list[Answered]) -> tuple[View, list[Answered]]:
        """The view after some answers, and these marked where they contradict."""
        closed = self.prior.closure()
        known = np.flatnonzero((closed.sizes > 1) | (closed.labels >= 0))
        by_size = known[np.lexsort((known, -closed.sizes[known], closed.labels[known] < 0))]
        view = View(
            self.X,
            self.n_clusters,
            Knowledge(closed),
            self.prior,
            closed.first_row[by_size],
            self._store,
            deduces=self.trust_n_clusters,
        )
        taken = [_take(view, entry) for entry in log]
        view.constraints = lambda: self._known(view, taken)
        return view, taken

    # -- what is known ---------------------------------------------------------------------------------------------

    @property
    def answers(self) -> list[Answered]:
        """The log, oldest first."""
        return list(self._log)

    @property
    def pending(self) -> list[Question]:
        """Questions asked and not yet answered."""
        return list(self._pending.values())

    @property
    def view(self) -> View:
        """What the strategy sees now."""
        return self._view

    @property
    def constraints(self) -> Constraints:
        """Everything known: what was given beforehand, every answer in use, and what the number of clusters adds."""
        return self._known(self._view, self._log)

    def _known(self, view: View, log: list[Answered]) -> Constraints:
        deduced = Constraints(view.deduced, n_samples=view.n_rows)
        return self.prior | self._stated(entry for entry in log if not entry.conflict) | deduced

    def _stated(self, entries: Iterable[Answered]) -> Constraints:
        pairs: dict[Answer, list[tuple[tuple[int, int], float]]] = {SAME: [], DIFFERENT: [], UNSURE: []}
        for entry in entries:
            for pair, answer in said_in(entry):
                pairs[answer].append((pair.key, entry.confidence))
        return self._constraints_of(pairs[SAME], pairs[DIFFERENT])

    def _constraints_of(
        self, must: list[tuple[tuple[int, int], float]], cannot: list[tuple[tuple[int, int], float]]
    ) -> Constraints:
        return Constraints(
            [pair for pair, _ in must],
            [pair for pair, _ in cannot],
            must_link_confidence=[sure for _, sure in must],
            cannot_link_confidence=[sure for _, sure in cannot],
            n_samples=self._view.n_rows,
        )

    @property
    def conflicts(self) -> list[Conflict]:
        """Answers that contradict earlier ones, each with the chain against it."""
        found = []
        used = self.constraints
        for entry in self._log:
            if entry.conflict:
                found += (used | self._stated([entry])).conflicts(limit=1)
        return found

    def labels(self) -> npt.NDArray[Any]:
        """Cluster the rows with all that is known, guesses included at their confidence.

        A strategy that builds clusters of its own (`SuperInstances`) gives them, unless a `clusterer` was chosen.
        """
        with suppress(ParameterError):  # a strategy that lacks something tells so when it is asked, and guesses nothing
            self._look_ahead()  # the strategy guesses on its way to the next question
        return self._fit()

    def _fit(self) -> npt.NDArray[Any]:
        if self.clusterer is None and hasattr(self.strategy, "labels"):
            return self._remember(np.asarray(self.strategy.labels(self._view)))
        known, guesses = self.constraints, self.guesses
        try:
            labels = self._clustered(self._view, known | guesses)
        except ConstraintError:
            if not len(guesses.must_link) + len(guesses.cannot_link):
                raise
            labels = self._clustered(self._view, known)  # no clusters fit all guesses: what is known counts
        return self._remember(labels)

    @property
    def guesses(self) -> Constraints:
        """What the strategy guessed, the surest first; what contradicts answers or surer guesses is withdrawn."""
        open_ones = [
            (key, answer, sure)
            for key, (answer, sure) in self._view.imputed.items()
            if self._view.knowledge.relation(*key) is None
        ]
        together = Knowledge(self.constraints.closure())
        kept = [one for one in sorted(open_ones, key=lambda one: -one[2]) if together.add(*one[0], one[1])]
        return self._constraints_of(
            [(key, sure) for key, answer, sure in kept if answer is SAME],
            [(key, sure) for key, answer, sure in kept if answer is DIFFERENT],
        )

    def _clustered(self, view: View, known: Constraints) -> npt.NDArray[Any]:
        return np.asarray(self._model(view).fit(self.X, constraints=known).labels_)

    def _remember(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        self._fitted, self._fitted_on = labels.copy(), self._evidence()
        return labels

    def _evidence(self) -> tuple[int, dict[tuple[int, int], tuple[Answer, float]]]:
        return len(self._log), dict(self._view.imputed)

    def _current_labels(self, n_answers: int | None) -> npt.NDArray[Any]:
        """What `labels` gave last if nothing was learnt since (questions of one batch share a fit), or earlier ones."""
        if n_answers is not None:
            view, log = self._replayed(self._log[:n_answers])
            return self._clustered(view, self._known(view, log))
        if self._fitted is None or self._fitted_on != self._evidence():
            return self._fit()
        return self._fitted.copy()

    def _model(self, view: View) -> ConstrainedClusterer:
        model = PCKMeans(random_state=self._seed) if self.clusterer is None else clone(self.clusterer)
        n_clusters = self.n_clusters
        if n_clusters is None:
            n_clusters = min(max(len(view.neighbourhoods), _LEAST_CLUSTERS), view.n_rows)
        if (self.clusterer is None or self.n_clusters is not None) and "n_clusters" in model.get_params():
            model.set_params(n_clusters=n_clusters)
        return model

    # -- progress --------------------------------------------------------------------------------------------------

    def _foreseen(self, question: Entry) -> Answer | None:
        if self._fitted is None or not isinstance(question, Pair):
            return None
        labels = self._fitted
        return SAME if labels[question.first] == labels[question.second] else DIFFERENT

    def progress(self, cost: float | None = None) -> Progress:
        """Where things stand, and whether it is time to stop.

        The expected gain is the chance that the next answer is one the clustering does not foresee, from the answers
        given since `labels` was first called. Asking pays while that chance exceeds `cost` (the price of an answer in
        units of the worth of a surprise), 0.08 unless given.
        """
        foreseen = [one for one in self._log if one.expected is not None and one.answer in (SAME, DIFFERENT)][
            -_LOOK_BACK:
        ]
        wrong = sum(one.expected is not one.answer for one in foreseen)
        gain = (wrong + 1) / (len(foreseen) + 2)
        limit = _STOP_BELOW if cost is None else cost
        n_unsure = sum(one.answer is UNSURE for one in self._log)
        in_use = [said for one in self._log if not one.conflict for said in said_in(one)]
        told = {pair.key for pair, answer in in_use if answer is not UNSURE}
        if not self._pending and self._look_ahead() is None:
            can_stop, reason = True, "Nothing is left to ask: everything the strategy would ask about is decided."
        elif gain < limit:
            can_stop = True
            reason = (
                f"You can stop: {len(foreseen) - wrong} of the last {len(foreseen)} answers were foreseen, so the next "
                f"one would surprise with a chance of about {gain:.0%}, below {limit:.0%}."
            )
        else:
            can_stop = False
            reason = f"Go on: the next answer is a surprise with a chance of about {gain:.0%}."
        return Progress(
            asked=len(self._log),
            unsure=n_unsure,
            implied=self._view.knowledge.n_decided() - len(told),
            neighbourhoods=len(self._view.neighbourhoods),
            conflicts=sum(one.conflict for one in self._log),
            expected_gain=gain,
            can_stop=can_stop,
            reason=reason,
        )


def _seed_of(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    if random_state is None or isinstance(random_state, np.random.Generator | np.random.RandomState):
        return int(as_generator(random_state).integers(2**31))
    raise ParameterError(f"random_state={random_state!r}: expected an integer >= 0, a generator or None.")


def _two(item: Any) -> tuple[Any, Any]:
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    raise ParameterError(f"{item!r} in the log: expected an entry of `answers`, or a question and its answer.")


def _as_question(question: Any, n_rows: int) -> Question:
    """A question as it was given, a pair of rows as a `Pair`; refused where a row is out of range or named twice."""
    if isinstance(question, tuple | list) and len(question) == 2:
        question = Pair(question[0], question[1])
    if not isinstance(question, Pair | Which):
        raise ParameterError(f"{question!r} is no question. Pass what ask() returned, or a pair of rows.")
    row, *others = (question.first, question.second) if isinstance(question, Pair) else (
        question.row, *question.candidates
    )  # fmt: skip
    for one in (row, *others):
        if not isinstance(one, int | np.integer) or isinstance(one, bool):
            raise ParameterError(f"Row {one!r} is no row position: expected an integer.")
        if not 0 <= one < n_rows:
            raise ParameterError(f"Row {one} is out of range: X has {n_rows} rows.")
    if row in others:
        raise ParameterError(f"The question names row {row} twice.")
    if isinstance(question, Which) and not others:
        raise ParameterError(f"The question about row {row} has no candidates.")
    return question


def said_in(entry: Answered) -> list[tuple[Pair, Answer]]:
    """What an entry says about pairs."""
    question = entry.question
    return [(question, entry.answer)] if isinstance(question, Pair) else question.pairs(entry.answer)


def _key(question: Entry) -> Any:
    if isinstance(question, Stated):
        return question
    return question.key if isinstance(question, Pair) else (question.row, question.candidates)


def _pair_keys(question: Entry) -> list[tuple[int, int]]:
    if isinstance(question, Stated):
        return []
    if isinstance(question, Pair):
        return [question.key]
    return [Pair(question.row, one).key for one in question.candidates]


def _take(view: View, entry: Answered) -> Answered:
    """Put an entry into a view; the entry comes back marked when it contradicts."""
    view.pending.difference_update(_pair_keys(entry.question))
    return replace(entry, conflict=not view.take(said_in(entry), volunteered=isinstance(entry.question, Stated)))


def run(questions: Questions, oracle: Callable[[Question], Any], budget: int) -> int:
    """Ask and tell until the budget is spent or nothing is left; returns the number of answers."""
    for spent in range(budget):
        question = questions.ask()
        if question is None:
            return spent
        questions.tell(question, oracle(question))
    return budget
