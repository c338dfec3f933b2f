"""The driver of active learning: runs a strategy, hands out its questions and records the answers in a log."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from clew._base import ConstrainedClusterer, quietly
from clew._validation import ERROR_RATE, NONE, as_generator, check_matrix, check_parameters, is_table, number
from clew._words import counted
from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair, Question, Stated, Which
from clew.active._auto import Auto
from clew.active._knowledge import Knowledge
from clew.active._log import Answered, Entry, Stack, as_answered, as_question, said_in
from clew.active._pending import PendingQuestions, question_key
from clew.active._strategy import Strategy, as_strategy, strategy_makes_labels
from clew.active._view import Cache, View, prior_order
from clew.constraints import Constraints, Contradiction
from clew.datasets import Table, as_table, encode
from clew.exceptions import ClewError, ConstraintError, DataError, ParameterError, StrategyError
from clew.partitional import PCKMeans

# Largest share of check questions, whose answers are already implied.
MOST_CHECKS = 0.05
# Largest number of decided pairs that a strategy may yield in a row: 20 per row of data, but at least 10,000.
_IDLE_PER_ROW, _IDLE_AT_LEAST = 20, 10_000
# The advice to stop uses this many of the latest answers, and a share of surprises below the second value.
_LOOK_BACK, _STOP_BELOW = 20, 0.08
# Number of clusters assumed if it is unknown and fewer neighbourhoods have been found.
_LEAST_CLUSTERS = 2
# Attributes of the view that a trial replaces and restores.
_LENT = ("waiting", "imputed", "latest", "fit", "constraints")


@dataclass(frozen=True)
class QuestionsProgress:
    """Progress of a questionnaire; see `Questions.progress`."""

    asked: int
    unsure: int
    implied: int
    neighbourhoods: int
    conflicts: int
    expected_gain: float
    can_stop: bool
    reason: str


class Questions:
    """Run a query strategy: ask questions, record answers, cluster with them.

    Parameters
    ----------
    X : array-like or CSR matrix of shape (n_samples, n_features), or table
        The rows. A table (a frame with text, a `Table` or a list of dicts) is encoded as vectors by
        `clew.datasets.encode`, and strategies that compare records get the table itself.
    strategy : Strategy, optional
        Chooses the next question. Default: `Auto`.
    n_clusters : int, optional
        Number of clusters, if it is known.
    clusterer : estimator, optional
        Computes `labels` from the constraints. Default: the strategy itself if it has a clusterer (`Auto` does), else
        `PCKMeans`.
    constraints : optional
        Prior constraints, in any form that `Constraints.of` takes. Pairs that they imply are never asked.
    random_state : int, Generator, RandomState or None
        The same data, log and seed give the same question.
    trust_n_clusters : bool, default=True
        If True, pairs that follow from the number of clusters count like answers. If False, these pairs are not asked
        either, but later answers cannot contradict them.
    check_share : float, default=0.05
        Largest share of check questions, whose answers are already implied, from 0 (none) to 0.05. A strategy proposes
        a check question if it suspects a wrong answer (`Auto` does). If early answers look wrong, one more is asked.
    error_rate : float, optional
        Expected share of wrong answers, from 0 to below 0.5. If it is above 0, every answer is evidence and not a fact:
        `Auto` then computes the probabilities of all answers and asks for useful second opinions. Default: answers are
        facts until some of them contradict each other.
    records : table, optional
        The rows as a table, for strategies that compare records (`UncertainMatches`, `Auto`). Default: X, if X is a
        table.
    asks_again : bool, default=True
        Whether a second opinion may be about a pair of records that was asked before. In a session it may not.

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
        check_share: float = MOST_CHECKS,
        error_rate: float | None = None,
        records: Any = None,
        asks_again: bool = True,
    ) -> None:
        strategy = Auto() if strategy is None else strategy
        _check_strategy(strategy)
        self.check_share, self.error_rate, self.asks_again = check_share, error_rate, asks_again
        check_parameters(self, {"check_share": number(0, MOST_CHECKS), "error_rate": ERROR_RATE | NONE})
        if n_clusters is not None and (not isinstance(n_clusters, int | np.integer) or n_clusters < 1):
            raise ParameterError(f"n_clusters={n_clusters!r}: expected an integer >= 1, or None if it is unknown.")
        if is_table(X):
            records = X if records is None else records
            X = encode(X, mixed_as_text=True).X  # records are compared as they are
        self.X = check_matrix(X)
        n_rows = self.X.shape[0]
        self.records = None if records is None else _read_records(records, n_rows)
        if n_clusters is not None and n_clusters > n_rows:
            raise ParameterError(f"n_clusters={n_clusters}, but X has {n_rows} rows. Lower n_clusters.")
        self.strategy, self.n_clusters = strategy, None if n_clusters is None else int(n_clusters)
        self.clusterer, self.trust_n_clusters = clusterer, trust_n_clusters
        self.prior = Constraints.of(constraints, n_samples=n_rows).numbered()
        self.prior.require_consistent()
        self._seed = _seed_of(random_state)
        self._cache = Cache()
        self._log: list[Answered] = []
        self._n_untouched = 0  # in a trial: number of entries shared with the driver that lent them
        self._ahead: tuple[Question | None] | None = None
        self._fitted: npt.NDArray[Any] | None = None
        self._fitted_on: Any = None
        self._live: Generator[Question, Any, None] | None = None
        self._waiting: Question | None = None
        self._reply: Any = None
        self._view, self._stack = self._first_view(), Stack()
        self._rng = self._keyed_rng()
        self._start_over()

    # -- asking ----------------------------------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Any:
        """Return the next question, or None if none is left. With `n`: a list of up to n questions for one batch."""
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
        self._view.waiting.add(question)
        self._waiting = question
        return question

    def _look_ahead(self) -> Question | None:
        """Find the next question without asking it. The question is cached until it is asked or the view changes."""
        if self._ahead is None:
            if self._live is None or self._view.waiting:
                self._start()
            self._ahead = (self._next(),)
        return self._ahead[0]

    def _start(self) -> None:
        self._rng = self._keyed_rng()
        self._live = self.strategy(self._view, self._rng)
        self._waiting = None
        self._reply = None

    def _keyed_rng(self) -> np.random.Generator:
        return np.random.default_rng([self._seed, len(self._log), len(self._view.waiting)])

    def _next(self) -> Question | None:
        """Run the strategy until it yields an open pair. Decided pairs are answered from the closure."""
        most = max(_IDLE_AT_LEAST, _IDLE_PER_ROW * self._view.n_rows)
        self._view.await_question()
        for _ in range(most):
            question = self._resume()
            free = None if question is None else self._free_answer(question)
            if free is None:
                if isinstance(question, Pair) and question.check and self._view.known(*question.key) is None:
                    return replace(question, check=False)
                return question
            self._reply = free
        raise self._stopped(f"asked {most:,} times in a row about pairs that are decided")

    def _resume(self) -> Question | None:
        """Return the strategy's next question, or None if it ends."""
        assert self._live is not None
        try:
            return next(self._live) if self._reply is None else self._live.send(self._reply)
        except StopIteration:
            return None
        except StrategyError as error:
            raise self._stopped(str(error)) from None
        except ClewError:
            self._live = None  # a generator that raised is finished; the next call must raise the error again
            raise
        except Exception as error:
            raise self._stopped(f"failed with {type(error).__name__}: {error}") from error

    def _stopped(self, reason: str) -> StrategyError:
        """Return the error for a strategy that yields no usable question. The next call restarts the strategy."""
        self._live = None
        name = getattr(self.strategy, "__name__", type(self.strategy).__name__)
        return StrategyError(
            f"The strategy {name} {reason}. This is a fault in the strategy. Choose another one; answers are kept."
        )

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
        is_free = question.check and found is not UNSURE and question.key not in view.waiting.pairs
        is_repeated = question.key in view.asked
        is_useful = as_strategy(self.strategy).repeats_questions(view) if is_repeated else found is not None
        is_urgent = question.check and as_strategy(self.strategy).suspects_errors(view)
        if is_free and is_useful and view.may_check(repeated=is_repeated, urgent=is_urgent):
            return None
        return UNSURE if found is None and not view.is_open(*question.key) else found

    # -- answering -------------------------------------------------------------------------------------------------

    def tell(self, question: Any, answer: Any, *, confidence: float = 1.0, annotator: str = "") -> bool:
        """Record the answer to a pending question. Answers may come in any order.

        Returns False if the answer contradicts earlier answers. It is then logged, but not used until `undo` or
        `revise` resolves the conflict (see `conflicts`). An invalid answer raises an error and changes nothing. If
        answers may be wrong, the error rate of each `annotator` is estimated.
        """
        question = self._asked(question)
        reply = question.read(answer) if isinstance(question, Which) else Answer.of(answer)
        if not isinstance(confidence, int | float | np.number) or not 0 < confidence <= 1:
            raise ParameterError(f"confidence={confidence!r}: expected a number in (0, 1].")
        if not isinstance(annotator, str):
            raise ParameterError(f"annotator={annotator!r}: expected a name.")
        votes = ((annotator, reply, float(confidence)),) if annotator else ()
        return self._enter(Answered(question, reply, float(confidence), self._foreseen(question), votes=votes))

    def add(self, entry: Answered) -> bool:
        """Record an answer to a question asked elsewhere, or volunteered pairs. Returns the same as `tell`."""
        return self._enter(self._read(entry))

    def _enter(self, entry: Answered) -> bool:
        question, reply = entry.question, entry.answer
        self._view.waiting.remove(question)
        entry = self._take(entry)
        self._ahead = None
        if self._live is not None and self._waiting is question and not entry.conflict:
            self._reply = reply
            # A running strategy draws the same random numbers as one that is restarted here.
            self._rng.bit_generator.state = self._keyed_rng().bit_generator.state
        else:
            self._live = None
        return not entry.conflict

    def _asked(self, question: Any) -> Question:
        question = as_question(question, self._view.n_rows)
        if (pending := self._view.waiting.find(question)) is not None:
            return pending
        if isinstance(question, Pair) and as_strategy(self.strategy).passive:
            return question
        name = f"rows {question.first} and {question.second}" if isinstance(question, Pair) else f"row {question.row}"
        raise ParameterError(
            f"Nobody asked about {name}. Answer a question from ask(), or use Feedback() to volunteer pairs."
        )

    def undo(self) -> Answered | None:
        """Remove the last answer and return it, or None if the log is empty. Its question may be asked again."""
        if not self._log:
            return None
        entry = self._log[-1]
        self._go_back(len(self._log) - 1)
        return entry

    def revise(self, question: Any, answer: Any) -> bool:
        """Change an earlier answer. Returns whether the new answer agrees with the others."""
        key = question_key(as_question(question, self._view.n_rows))
        places = [place for place, entry in enumerate(self._log) if question_key(entry.question) == key]
        if not places:
            raise ParameterError(f"{question!r} has no answer to revise.")
        place, later = places[-1], self._log[places[-1] + 1 :]
        old = self._log[place]
        new = self._read(Answered(old.question, answer, old.confidence, old.expected))
        new = replace(new, votes=tuple((name, new.answer, confidence) for name, _, confidence in old.votes))
        self._go_back(place)
        self._go_on([new, *later])
        return not self._log[place].conflict

    def replay(self, log: Iterable[Any]) -> None:
        """Add a log of `Answered` entries, records of row positions, or (pair, answer) tuples.

        The questions need not have been asked here.
        """
        entries = [self._read(item) for item in log]
        self._go_on(entries)
        for entry in entries:
            self._view.waiting.remove(entry.question)

    def again(self, log: Iterable[Any], strategy: Strategy, n_clusters: int | None) -> Questions:
        """Return another driver for the same data with its own log. Both share the cache of results from the data."""
        other = copy.copy(self)
        other.strategy, other.n_clusters, other._log = strategy, n_clusters, []
        other._view, other._stack = other._first_view(), Stack()
        other._go_on([self._read(item) for item in log])
        other._rng = other._keyed_rng()
        return other

    @contextmanager
    def trial(self) -> Iterator[Questions]:
        """Lend the answers to another driver, without pending questions. They are as before when the block ends.

        This takes as long as the changes that the other driver makes, however long the log is.
        """
        view, other = self._view, copy.copy(self)
        kept = {name: getattr(view, name) for name in _LENT}
        other._log, other._stack, other._n_untouched = [*self._log], self._stack.copy(), len(self._log)
        view.waiting, view.imputed, view.latest = PendingQuestions(), {}, {}
        other._start_over()
        try:
            yield other
        finally:
            view.n_clusters = self.n_clusters
            view.rewind(other._n_untouched)
            for entry in self._log[other._n_untouched :]:
                _take(view, entry)
            for name, value in kept.items():
                setattr(view, name, value)

    def rewind(self, n: int) -> None:
        """Drop all log entries after the first n, and all pending questions.

        The time depends on the number of dropped entries, not on the length of the log.
        """
        self._view.waiting.clear()
        self._go_back(n)

    def extend(self, entries: Iterable[Answered]) -> list[bool]:
        """Call `add` for several entries and return the list of its results."""
        n_before = len(self._log)
        self._go_on([self._read(entry) for entry in entries])
        return [not entry.conflict for entry in self._log[n_before:]]

    def assume(self, n_clusters: int | None) -> None:
        """Change the number of clusters. The log is only replayed if the number is trusted."""
        self.n_clusters = self._view.n_clusters = n_clusters
        if self.trust_n_clusters:  # pairs may have been deduced from the earlier number
            log = self._log[:]
            self._go_back(0)
            self._go_on(log)
        self._view.imputed, self._view.latest = {}, {}
        self._start_over()

    def _go_back(self, n: int) -> None:
        """Take back all entries after the first n."""
        self._view.rewind(n)
        self._stack.rewind(n)
        del self._log[n:]
        self._n_untouched = min(self._n_untouched, n)
        self._start_over()

    def _go_on(self, entries: list[Answered]) -> None:
        """Add entries that were answered elsewhere."""
        for entry in entries:
            self._take(entry)
        self._start_over()

    def _take(self, entry: Answered) -> Answered:
        """Add an entry to the log and the view. Returns the entry with `conflict` set."""
        entry = _take(self._view, entry)
        self._log.append(entry)
        self._stack.add(entry)
        return entry

    def _start_over(self) -> None:
        """Let the strategy start again from the view at the next question."""
        self._view.fit = self._current_labels
        self._view.constraints = lambda: self.constraints
        self._live, self._waiting, self._ahead, self._fitted = None, None, None, None

    def use(self, strategy: Strategy) -> None:
        """Let another strategy ask from now on."""
        self.strategy, self._live, self._ahead = strategy, None, None
        self._view.imputed.clear()

    def hold(self, question: Question) -> None:
        """Mark a question as pending, as `ask` does. A pending question is not asked again."""
        self._view.waiting.add(question)
        self._live, self._ahead = None, None

    def wait_for(self, questions: Iterable[Question]) -> None:
        """Make exactly these questions pending."""
        self._view.waiting.clear()
        self._live, self._ahead = None, None
        for question in questions:
            self.hold(question)

    def release(self, question: Question) -> None:
        """Remove a question from the pending ones. It may be asked again."""
        self._view.waiting.remove(question)
        self._live, self._ahead = None, None

    def _read(self, item: Any) -> Answered:
        entry = item if isinstance(item, Answered) else as_answered(item)
        if isinstance(entry.question, Stated):
            if entry is not item:
                as_question(entry.question.said[0][0], self._view.n_rows)
            return entry
        question = as_question(entry.question, self._view.n_rows)
        reply = question.read(entry.answer) if isinstance(question, Which) else Answer.of(entry.answer)
        if question is entry.question and reply is entry.answer:
            return entry
        return replace(entry, question=question, answer=reply)

    def _replayed(self, n_answers: int) -> tuple[View, Constraints]:
        """Return the view after the first answers, and the constraints from them."""
        view, stack = self._first_view(), Stack()
        for entry in self._log[:n_answers]:
            stack.add(_take(view, entry))
        known = self._known(view, stack)
        view.constraints = lambda: known
        return view, known

    def _first_view(self) -> View:
        """The view before any answer."""
        closed = self.prior.closure()
        return View(
            self.X,
            self.n_clusters,
            Knowledge(closed),
            self.prior,
            prior_order(closed),
            self._cache,
            deduces=self.trust_n_clusters,
            records=self.records,
            error_rate=self.error_rate,
            check_share=self.check_share,
            asks_again=self.asks_again,
        )

    # -- log, constraints and labels -------------------------------------------------------------------------------

    @property
    def answers(self) -> list[Answered]:
        """The log, oldest first."""
        return list(self._log)

    @property
    def pending(self) -> list[Question]:
        """Questions asked and not yet answered."""
        return list(self._view.waiting)

    @property
    def view(self) -> View:
        """The state that the strategy sees now."""
        return self._view

    @property
    def constraints(self) -> Constraints:
        """All constraints: prior ones, every answer in use, and pairs that follow from the number of clusters."""
        return self._known(self._view, self._stack)

    @property
    def stated(self) -> Constraints:
        """The answers in use, without prior constraints and pairs that follow from the number of clusters."""
        return self._stack.constraints(self._view.n_rows)

    def _known(self, view: View, stack: Stack) -> Constraints:
        deduced = Constraints(view.deduced, n_samples=view.n_rows)
        return self.prior | stack.constraints(view.n_rows) | deduced

    @property
    def conflicts(self) -> list[Contradiction]:
        """Answers that contradict earlier answers, each with the chain of pairs that it contradicts."""
        found = []
        used = self.constraints
        for entry in self._log:
            if entry.conflict:
                alone = Stack()
                alone.add(replace(entry, conflict=False))
                found += (used | alone.constraints(self._view.n_rows)).conflicts(limit=1)
        return found

    def labels(self) -> npt.NDArray[Any]:
        """Cluster the rows with all constraints, and with guesses weighted by their confidence.

        Without a `clusterer`, a strategy with its own clusterer (`Auto`, `SuperInstances`) computes the labels.
        """
        with suppress(ParameterError, StrategyError):  # `ask` reports it; here it only means no guesses
            self._look_ahead()  # the strategy records guesses while it looks for the next question
        return self._fit()

    def _fit(self) -> npt.NDArray[Any]:
        strategy = as_strategy(self.strategy)
        if strategy_makes_labels(strategy, chosen=self.clusterer):
            return self._remember(np.asarray(strategy.labels(self._view)))
        known, guesses = self.constraints, self.guesses
        try:
            labels = self._clustered(self._view, known | guesses)
        except ConstraintError:
            if not len(guesses.must_link) + len(guesses.cannot_link):
                raise
            labels = self._clustered(self._view, known)  # no clustering fits all guesses: use the constraints alone
        return self._remember(labels)

    @property
    def guesses(self) -> Constraints:
        """Guesses of the strategy that contradict no answer and no surer guess, highest confidence first."""
        open_ones = [
            (key, answer, sure)
            for key, (answer, sure) in self._view.imputed.items()
            if self._view.knowledge.relation(*key) is None
        ]
        together = Knowledge(self.constraints.closure())
        kept = [one for one in sorted(open_ones, key=lambda one: -one[2]) if together.add(*one[0], one[1])]
        stack = Stack()
        for key, answer, sure in kept:
            stack.add(Answered(Pair(*key), answer, sure))
        return stack.constraints(self._view.n_rows)

    @quietly()
    def _clustered(self, view: View, known: Constraints) -> npt.NDArray[Any]:
        return np.asarray(self._model(view).fit(self.X, constraints=known).labels_)

    def _remember(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        self._fitted, self._fitted_on = labels.copy(), self._evidence()
        return labels

    def _evidence(self) -> tuple[int, dict[tuple[int, int], tuple[Answer, float]]]:
        return len(self._log), dict(self._view.imputed)

    def _current_labels(self, n_answers: int | None) -> npt.NDArray[Any]:
        """Return the cached labels if no answer came since (one fit per batch), or the labels after `n_answers`."""
        if n_answers is not None:
            return self._clustered(*self._replayed(n_answers))
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

    def progress(self, cost: float | None = None) -> QuestionsProgress:
        """Report the progress so far, and whether it is time to stop.

        The expected gain is the probability that the clustering does not predict the next answer although the answer is
        right. It is estimated from the answers given since `labels` was first called. Asking pays while this
        probability exceeds `cost`, the cost of an answer relative to the value of a surprise (default: 0.08). If the
        strategy cannot ask, `reason` says why.
        """
        foreseen = self._stack.foreseen[-_LOOK_BACK:]
        beliefs = as_strategy(self.strategy).pair_beliefs(self._view) or {}
        surprises = [_surprise(one, beliefs) for one in foreseen if one.expected is not one.answer]
        gain = (sum(surprises) + 1) / (len(foreseen) + 2)
        limit = _STOP_BELOW if cost is None else cost
        is_done, problem = self._is_done()
        if problem:
            can_stop, reason = False, problem
        elif is_done:
            can_stop, reason = True, "Nothing is left to ask: everything the strategy would ask about is decided."
        elif gain < limit:
            can_stop = True
            n_foreseen = len(foreseen) - len(surprises)
            n_wrong = sum(one < 0.5 for one in surprises)
            rest = (
                f", and {counted(n_wrong, 'other')} {'is' if n_wrong == 1 else 'are'} probably wrong" if n_wrong else ""
            )
            reason = (
                f"You can stop: {n_foreseen} of the last {len(foreseen)} answers were foreseen{rest}. So the next one "
                f"is a surprise with a probability of about {gain:.0%}, below {limit:.0%}."
            )
        else:
            can_stop = False
            reason = f"Go on: the probability that the next answer is a surprise is about {gain:.0%}."
        return QuestionsProgress(
            asked=len(self._log),
            unsure=self._stack.n_unsure,
            implied=self._view.knowledge.n_decided() - len(self._view.decided),
            neighbourhoods=len(self._view.neighbourhoods),
            conflicts=self._view.n_contradictions,
            expected_gain=gain,
            can_stop=can_stop,
            reason=reason,
        )

    def _is_done(self) -> tuple[bool, str]:
        """Whether no question is pending and none is left to ask, and the reason if the strategy cannot ask."""
        try:
            return not self._view.waiting and self._look_ahead() is None, ""
        except (ParameterError, StrategyError) as error:
            return False, str(error)


def _surprise(entry: Answered, beliefs: dict[tuple[int, int], float]) -> float:
    """Probability that the clustering had predicted an answer wrongly, given an answer that it had not predicted.

    `beliefs` are the probabilities that the rows of pairs are together, if answers may be wrong.
    """
    together = beliefs.get(entry.question.key, math.nan) if isinstance(entry.question, Pair) else math.nan
    if math.isnan(together):
        return 1.0
    return 1 - together if entry.expected is SAME else together


def _check_strategy(strategy: Any) -> None:
    if isinstance(strategy, type):
        raise ParameterError(f"strategy={strategy.__name__} is a class. Pass an instance: {strategy.__name__}().")
    if not callable(strategy):
        raise ParameterError(f"strategy={strategy!r}: expected a query strategy such as Auto(), not its name.")


def _read_records(records: Any, n_rows: int) -> Table:
    if not is_table(records):
        raise ParameterError("records: expected a table, such as a frame with columns of text.")
    table = as_table(records)
    if table.n_rows != n_rows:
        raise DataError(f"records has {table.n_rows} rows, but X has {n_rows}. Give one record per row.")
    return table


def _seed_of(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    if random_state is None or isinstance(random_state, np.random.Generator | np.random.RandomState):
        return int(as_generator(random_state).integers(2**31))
    raise ParameterError(f"random_state={random_state!r}: expected an integer >= 0, a generator or None.")


def _take(view: View, entry: Answered) -> Answered:
    """Add an entry to a view. Returns the entry with `conflict` set."""
    said = said_in(entry)
    given = entry.votes or (("", entry.answer, entry.confidence),)
    votes = [
        (name, said if answer == entry.answer else said_in(replace(entry, answer=answer)), confidence)
        for name, answer, confidence in given
    ]
    is_statement = isinstance(entry.question, Stated)
    conflict = not view.take(said, volunteered=is_statement, votes=votes, disputed=entry.disputed)
    return entry if entry.conflict == conflict else replace(entry, conflict=conflict)


def run(questions: Questions, oracle: Callable[[Question], Any], budget: int) -> int:
    """Ask and answer until the budget is spent or no question is left. Returns the number of answers."""
    for spent in range(budget):
        question = questions.ask()
        if question is None:
            return spent
        questions.tell(question, oracle(question))
    return budget
