"""The current knowledge about the rows: answers in effect, corrections in use, and the driver of the questions.

Each pair of rows has one entry in the driver's log, however many annotators answered it. A correction has one entry
too. An entry that contradicts earlier ones is logged but not used.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from clew._words import name_key
from clew.active import DIFFERENT, SAME, UNSURE, Answer, Answered, Auto, Pair, Questions, Stated, Strategy, Which
from clew.active._annotators import AnnotatorErrors
from clew.active._log import said_in
from clew.active._questions import MOST_CHECKS
from clew.constraints import Constraints, key_of
from clew.constraints._records import AnswerTable, arguments_of
from clew.exceptions import ConstraintError, ContradictoryConstraintsError
from clew.session._corrections import Correction, in_force
from clew.session._events import Event
from clew.session._fit_driver import FitDriver
from clew.session._ledger import Ledger, Record
from clew.session._strategies import lasting_strategy, made, strategy_in
from clew.session._table import ProjectRows

# An answer gets a second opinion by another person if the probability that it is wrong exceeds this.
_DOUBTFUL = 0.1
# Source of a pair: "answer" or "correction", and the numbers of the events.
Source = tuple[str, tuple[int, ...]]
Entry = tuple[Answered, Source]
# Added to the place of a fact, so that facts come before all answers in the driver's log.
_FIRST = -(1 << 60)


class Known:
    """Answers and corrections in effect, and the driver that has taken them in.

    Attributes
    ----------
    prior : Constraints
        Constraints given when the project was created.
    driver : Questions
        The driver of the questions. Its row numbers are positions of the present rows.
    places, sources : lists of ints and of Source
        For each entry of the driver's log, the number that orders it and the events it comes from. For example, a pair
        answered in events 4 and 9 has the place 4 and the source ``("answer", (4, 9))``. Facts have negative places.
    quarantined : set of ints
        Corrections that are not used, because they contradict answers.
    waiting : dict of int to Source
        Answers that are not used, because they contradict others, by place.
    disputed : dict
        Pairs with opposite answers of several annotators.
    slots : dict
        Answers in effect, grouped by their pair of ordinals. A question about several rows is grouped by its own
        number. A slot is the key of such a group.
    below_overlap : dict
        Pairs with fewer annotators than the setting `overlap`.
    """

    def __init__(self, ledger: Ledger, rows: ProjectRows) -> None:
        self._ledger, self._rows = ledger, rows
        self._corrections: dict[int, Correction] = {}
        self._compiled: dict[int, tuple[Correction, Entry]] = {}
        self.prior = self._read_prior()
        strategy, seed = made(strategy_in(ledger.settings)), int(ledger.settings["random_state"])
        # A session groups answers by their pair, and an annotator has one answer per pair.
        self._root = Questions(
            rows.X, strategy, None, None, self.prior, seed,
            trust_n_clusters=False, records=rows.compared, asks_again=False,
        )  # fmt: skip
        self.build()

    def _read_prior(self) -> Constraints:
        given, sources = self._given(), self._rows.sources
        return given if sources is None else given | Constraints(cannot_groups=sources)

    def _given(self) -> Constraints:
        columns, rows = self._ledger.events[0].payload["prior"], self._rows
        if columns is None:
            return Constraints(n_samples=len(rows.present))
        records = AnswerTable(
            columns, lambda place: f"given knowledge, line {place}", ConstraintError, "given knowledge"
        )
        everything = Constraints(**arguments_of(records, rows.ids, len(rows.ids)))
        return everything if len(rows.present) == len(everything) else everything[rows.present]

    # -- taking in events ------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Rebuild the driver from all answers and corrections in effect. No question is pending then."""
        share = self._ledger.settings["check_share"]
        self._root.check_share = MOST_CHECKS if share is None else share
        self._root.error_rate = self._ledger.settings.get("error_rate")  # projects of earlier versions have none
        self._fit_driver = FitDriver(self._root)
        self.slots = self._grouped()
        self.below_overlap = self._pairs_below_overlap()
        self.disputed = {slot: None for slot, records in self.slots.items() if disagree(records)}
        self._answers: dict[int, Entry] = {}
        for slot, records in self.slots.items():
            self._enter(slot, records)
        self.driver = self._root.again((), made(strategy_in(self._ledger.settings)), None)
        self.places: list[int] = []
        self.sources: list[Source] = []
        self.waiting: dict[int, Source] = {}
        self._in_force: dict[int, Entry] = {}
        self.quarantined = self._settle(self.corrections(), set(self._answers))

    def use_strategy(self) -> None:
        """Let the strategy of the settings ask from now on."""
        self.driver.use(made(strategy_in(self._ledger.settings)))

    def add(self, record: Record) -> bool:
        """Add an answer. Returns whether the driver can continue with its pending questions.

        If the pair already has answers, their combined answer may change, and the driver starts again.
        """
        slot = self.slot(record)
        before = self.slots.get(slot, [])
        if self._ledger.is_among_facts(record):
            if self._ledger.is_batch_complete(record):
                self.build()
            return False
        if before:
            self.slots[slot] = [*before, record]
            self.update([record.id])
            return False
        self.slots[slot] = [record]
        if self._is_below_overlap([record]):
            self.below_overlap[slot] = None
        self._enter(slot, [record])
        if record.id in self._answers:
            entry, source = self._answers[record.id]
            self._log(record.id, source, self.driver.add(entry))
        return True

    def update(self, answers: Iterable[int]) -> None:
        """Update the driver after answers or corrections changed. Its log is rewritten from the first change on."""
        changed: set[int] = set()
        first = [self._ledger.first_answer(answer) for answer in answers]
        if any(one.certain for one in first):
            self.build()
            return
        for slot in {self.slot(one): None for one in first}:
            before = self.slots.get(slot)
            if before is None:  # the answer itself was undone before its revision or confirmation
                continue
            after = [self._ledger.records[one.id] for one in before if one.id in self._ledger.records]
            if after and after[0].id != before[0].id:  # the pair has another place in the log now
                self.build()
                return
            changed |= self._replace_answers(slot, before[0].id, after)
        self.below_overlap = self._pairs_below_overlap()
        self.quarantined = self._settle(self.corrections(), changed)

    def _replace_answers(self, slot: Any, place: int, records: list[Record]) -> set[int]:
        """Replace the answers about a pair. Returns their place if the combined answer changes, else an empty set."""
        entry, _ = self._answers.pop(place, (None, None))
        self.disputed.pop(slot, None)
        if not records:
            del self.slots[slot]
            return set() if entry is None else {place}
        self.slots[slot] = records
        self._enter(slot, records)
        if disagree(records):
            self.disputed[slot] = None
        if place not in self._answers or self._answers[place][0] != entry:
            return {place}
        self.sources[bisect_left(self.places, place)] = self._answers[place][1]
        if place in self.waiting:
            self.waiting[place] = self._answers[place][1]
        return set()

    def _enter(self, slot: Any, records: list[Record]) -> None:
        entry = self._entry(slot, records)
        if entry is not None:
            place = records[0].id + (_FIRST if records[0].certain else 0)
            self._answers[place] = (entry, ("answer", tuple(record.id for record in records)))

    def _log(self, place: int, source: Source, agrees: bool) -> None:
        """Record the place and the source of an entry that the driver has added."""
        self.places.append(place)
        self.sources.append(source)
        if not agrees:
            self.waiting[place] = source

    # -- answers by pair -------------------------------------------------------------------------------------------

    def _grouped(self) -> dict[Any, list[Record]]:
        """Group the answers in effect by pair, because several annotators may have answered the same pair."""
        slots: dict[Any, list[Record]] = {}
        for record in self._ledger.answers():
            slots.setdefault(self.slot(record), []).append(record)
        return slots

    def slot(self, record: Record) -> Any:
        """Group key of an answer: its pair of ordinals, or its own number for a question about several rows.

        A fact is not grouped with answers about the same pair.
        """
        if record.kind == "which":
            return record.id
        pair = self.slot_of(record.left, record.right)
        return (*pair, "fact") if record.certain else pair

    def slot_of(self, left: Any, right: Any) -> tuple[int, int]:
        """Group key of two row ids: their ordinals, lower first."""
        first, second = self._rows.ordinal[key_of(left)], self._rows.ordinal[key_of(right)]
        return (first, second) if first < second else (second, first)

    def annotator_errors(self) -> dict[str, AnnotatorErrors]:
        """Estimated errors of annotators by `name_key`; empty while answers are facts."""
        strategy = lasting_strategy(self._ledger.settings)
        return strategy.annotator_errors(self.driver.view) if isinstance(strategy, Auto) else {}

    def worth_second_opinions(self) -> list[tuple[int, int]] | None:
        """Pairs below `overlap` whose answer may be wrong, most doubtful first; None while answers are facts."""
        strategy = lasting_strategy(self._ledger.settings)
        doubts = strategy.answer_doubts(self.driver.view) if isinstance(strategy, Auto) else None
        if doubts is None:
            return None
        doubt_of = {slot: doubts.get(self._positions(slot), 0.0) for slot in self.below_overlap}
        return sorted((slot for slot, doubt in doubt_of.items() if doubt > _DOUBTFUL), key=lambda slot: -doubt_of[slot])

    def answers_right(self) -> dict[int, float]:
        """Probability that each answer "same" or "different" is right, by its number; empty while answers are facts."""
        strategy = lasting_strategy(self._ledger.settings)
        together = (strategy.pair_beliefs(self.driver.view) if isinstance(strategy, Auto) else None) or {}
        found: dict[int, float] = {}
        for slot, records in self.slots.items() if together else ():
            pair = together.get(self._positions(slot[:2])) if isinstance(slot, tuple) else None
            if pair is not None and not math.isnan(pair):
                says = {"same": pair, "different": 1 - pair}
                found |= {one.id: says[one.answer] for one in records if one.answer in says}
        return found

    def _positions(self, slot: tuple[int, int]) -> tuple[int, int]:
        """Positions of the two rows of a pair of ordinals, lower first."""
        one, two = sorted(self._rows.position[list(slot)].tolist())
        return one, two

    def _pairs_below_overlap(self) -> dict[Any, None]:
        """Pairs with fewer annotators than `overlap`."""
        if self._ledger.settings["overlap"] < 2:
            return {}
        return {slot: None for slot, records in self.slots.items() if self._is_below_overlap(records)}

    def _is_below_overlap(self, records: list[Record]) -> bool:
        """Whether fewer annotators than `overlap` have answered a pair that was asked (not imported)."""
        people, overlap = {name_key(record.annotator) for record in records}, self._ledger.settings["overlap"]
        return len(people) < overlap and records[0].kind != "which" and records[0].question is not None

    def _entry(self, slot: Any, records: list[Record]) -> Answered | None:
        """Combine all answers about a pair into one entry of the driver's log. None while a row is missing."""
        record = records[0]
        if record.kind == "which":
            return self._which(record)
        first, second = int(self._rows.position[slot[0]]), int(self._rows.position[slot[1]])
        if first < 0 or second < 0:
            return None
        if record.certain:
            return Answered(Stated(((Pair(first, second), Answer(record.answer)),)), SAME)
        answer, confidence = agreed(records)
        expected = None if record.expected is None else Answer(record.expected)
        if self._rows.ordinal[key_of(record.left)] != slot[0]:
            first, second = second, first
        votes = tuple((one.annotator, Answer(one.answer), one.confidence) for one in records if not one.aside)
        pair, disputed = Pair(first, second, check=record.check), self._was_disputed(records)
        return Answered(pair, answer, confidence, expected, votes=votes, disputed=disputed)

    def _was_disputed(self, records: list[Record]) -> bool:
        """Whether the first and the present answers about a pair contain both "same" and "different".

        Answers that people keep as preferences do not count.
        """
        if any(one.aside for one in records):
            return False
        words = {one.answer for one in records} | {self._ledger.first_answer(one.id).answer for one in records}
        return {"same", "different"} <= words

    def _which(self, record: Record) -> Answered | None:
        position = self._rows.positions((record.left, *record.candidates))
        if min(position) < 0:
            return None
        answer: Any = Answer(record.answer)
        if answer is SAME:
            answer = self._rows.positions([record.right])[0]
        if record.aside:
            answer = UNSURE
        votes = ((record.annotator, answer, record.confidence),)
        return Answered(Which(position[0], tuple(position[1:])), answer, record.confidence, votes=votes)

    # -- conflicts -------------------------------------------------------------------------------------------------

    @property
    def conflicting(self) -> set[int]:
        """All events that are part of an unresolved conflict."""
        events = {event for _, events in self.waiting.values() for event in events}
        return events | self.quarantined | {one.id for slot in self.disputed for one in self.slots[slot]}

    @property
    def n_conflicts(self) -> int:
        """Number of unresolved conflicts."""
        return len(self.waiting) + len(self.quarantined) + len(self.disputed)

    # -- corrections -----------------------------------------------------------------------------------------------

    def corrections(self) -> list[Correction]:
        """Corrections in effect, oldest first."""
        return [self.correction(event) for event in self._ledger.corrections()]

    def correction(self, event: Event) -> Correction:
        """The correction of an event."""
        if event.seq not in self._corrections:
            self._corrections[event.seq] = Correction.read(event.seq, event.payload, self._rows.ordinal, key_of)
        return self._corrections[event.seq]

    @contextmanager
    def trial(self, corrections: list[Correction], *, counts: bool = True) -> Iterator[tuple[Questions, set[int]]]:
        """Try corrections instead of the current ones. Yields the driver with these corrections, and the numbers of the
        corrections that contradict answers.

        The current corrections are back when the block ends. If `counts`, corrections change the number of clusters.
        """
        with self._lent() as other:
            aside = other._settle(corrections, set(), counts=counts)
            yield other.driver, aside

    @contextmanager
    def _lent(self) -> Iterator[Known]:
        """Lend the driver to a copy in which corrections can be tried."""
        other = copy.copy(self)
        with self.driver.trial() as other.driver:
            other.waiting, other.places, other.sources = dict(self.waiting), list(self.places), list(self.sources)
            yield other

    def _settle(self, corrections: list[Correction], changed: set[int], *, counts: bool = True) -> set[int]:
        """Apply every correction that contradicts no answer. Returns the other corrections, which are not used at all.

        The driver's log is rewritten from the first place where an answer has `changed` or a correction gives other
        pairs than before. If `counts`, corrections change the number of clusters.
        """
        aside = self._held_up(corrections, changed)
        while True:
            live = [one for one in corrections if one.seq not in aside]
            k = self._n_clusters(live) if counts else self.driver.n_clusters
            if k != self.driver.n_clusters:
                self.driver.assume(k)
            self._rewrite({self._place(one): self._stated(one) for one in in_force(live)}, changed)
            wrong = next((events[0] for kind, events in self.waiting.values() if kind == "correction"), None)
            if wrong is None:
                return aside
            aside.add(wrong)
            changed = set()

    def _held_up(self, corrections: list[Correction], changed: set[int]) -> set[int]:
        """Corrections that contradicted others when they were made, and still do.

        Only answers and conflict resolutions can release them. A later correction cannot, because it would then move
        more than its own rows.
        """
        found: set[int] = set()
        for place, one in enumerate(corrections):
            if one.waited:
                earlier = [other for other in corrections[: place + 1] if other.seq not in found]
                with self._lent() as trial:
                    trial._rewrite({self._place(other): self._stated(other) for other in in_force(earlier)}, changed)
                    if ("correction", (one.seq,)) in trial.waiting.values():
                        found.add(one.seq)
        return found

    def _n_clusters(self, corrections: Iterable[Correction]) -> int | None:
        """The `n_clusters` setting, plus the clusters that later corrections add or remove."""
        given, counted = self._ledger.settings["n_clusters"], self._ledger.counted
        if given is None:
            return None
        k = given + sum(one.more_clusters for one in corrections if one.seq == 0 or one.seq > counted)
        return min(max(k, 1), len(self._rows.present))

    def _place(self, correction: Correction) -> int:
        """Place of a correction in the log. A proposed correction comes last."""
        return correction.seq or self._ledger.version + 1

    def _stated(self, correction: Correction) -> Entry:
        """Convert a correction to an entry of the log. The entry is cached until a later correction changes it."""
        if correction.seq not in self._compiled or self._compiled[correction.seq][0] != correction:
            said = correction.pairs(self._rows.position)
            entry = Answered(Stated(tuple(said)), SAME), ("correction", (correction.seq,))
            self._compiled[correction.seq] = (correction, entry)
        return self._compiled[correction.seq][1]

    def _rewrite(self, corrected: dict[int, Entry], changed: set[int]) -> None:
        """Rewrite the driver's log with the answers and these corrections, from the first difference on."""
        differing = {
            place
            for place in self._in_force.keys() | corrected.keys()
            if self._in_force.get(place) != corrected.get(place)
        }
        self._in_force = corrected
        if not (changed or differing):
            return
        first = bisect_left(self.places, min(changed | differing))
        rest = set(self.places[first:]) | changed | corrected.keys()
        if first < len(self.places):
            self.driver.rewind(first)
            self.waiting = {place: source for place, source in self.waiting.items() if place < self.places[first]}
            del self.places[first:], self.sources[first:]
        after = self.places[-1] if self.places else _FIRST
        found = {place: self._answers.get(place) or corrected.get(place) for place in sorted(rest) if place > after}
        entries = [(place, *entry) for place, entry in found.items() if entry is not None]
        agrees = self.driver.extend([entry for _, entry, _ in entries])
        for (place, _, source), is_fine in zip(entries, agrees, strict=True):
            self._log(place, source, is_fine)

    # -- constraints -----------------------------------------------------------------------------------------------

    def constraints(self) -> Constraints:
        """The constraints of a fit: all events in use, and soft constraints from resolved conflicts."""
        aside = [
            (pair, Answer(record.answer), record.confidence)
            for record in self._ledger.records.values()
            if record.aside and record.kind != "which" and record.answer != "unsure"
            if min(pair := self._rows.position[list(self.slot(record))].tolist()) >= 0
        ]
        known = self.driver.constraints
        return known | self._as_constraints(aside) if aside else known

    def binding(self) -> Constraints:
        """Constraints that hold with every method: sources, and the facts and corrections in use."""
        records, sources = self._ledger.records, self._rows.sources
        found = self.said(lambda kind, events: kind == "correction" or records[events[0]].certain)
        return found if sources is None else found | Constraints(cannot_groups=sources)

    def said(self, chosen: Callable[[str, tuple[int, ...]], bool]) -> Constraints:
        """Constraints from some of the answers and corrections in use, chosen by their source."""
        return self._as_constraints(
            [
                (list(pair.key), answer, entry.confidence)
                for entry, (kind, events) in zip(self.driver.answers, self.sources, strict=True)
                if not entry.conflict and chosen(kind, events)
                for pair, answer in said_in(entry)
            ]
        )

    def _as_constraints(self, said: list[tuple[list[int], Answer, float]]) -> Constraints:
        (must, must_sure), (cannot, cannot_sure) = (
            ([pair for pair, says, _ in said if says is answer], [sure for _, says, sure in said if says is answer])
            for answer in (SAME, DIFFERENT)
        )
        return Constraints(
            must, cannot, must_link_confidence=must_sure, cannot_link_confidence=cannot_sure,
            n_samples=len(self._rows.present),
        )  # fmt: skip

    def require_consistent(self, facts: list[dict[str, Any]]) -> None:
        """Raise an error if new facts contradict each other, earlier facts, corrections or the given constraints."""
        if not facts:
            return
        records = self._ledger.records.values()
        stated = [(one.left, one.right, one.answer) for one in records if one.certain]
        stated += [(one["left"], one["right"], one["answer"]) for one in facts]
        pairs = [(self._rows.positions((left, right)), Answer(answer), 1.0) for left, right, answer in stated]
        known = self.prior.at_least(1.0) | self._as_constraints([one for one in pairs if min(one[0]) >= 0])
        self._refuse_contradiction(known, "facts or given constraints", "Remove one of these facts")
        self._refuse_contradiction(known | self.binding(), "facts and corrections", "Undo the correction")

    def _refuse_contradiction(self, known: Constraints, by: str, remedy: str) -> None:
        if found := known.conflicts(limit=1):
            names = [str(name) for name in self._rows.names(found[0].chain)]
            raise ContradictoryConstraintsError(
                f"Rows {names[0]} and {names[-1]} are different, but {' = '.join(names)} are the same, by {by}. "
                f"Nothing was imported. {remedy}, or turn the fact into an answer: name its annotator."
            )

    def fresh(self, strategy: Strategy) -> Questions:
        """Another driver about the same rows and number of clusters, without answers."""
        return self._root.again((), strategy, self.driver.n_clusters)

    def copier(self, strategy: Strategy) -> Callable[[], AbstractContextManager[Questions]]:
        """A function that lends another driver with the current answers. It may be called later, in any thread."""
        return partial(self._fit_driver.at, tuple(self.driver.answers), strategy, self.driver.n_clusters)


def agreed(records: list[Record]) -> tuple[Answer, float]:
    """Combine answers about a pair: the common answer with its highest confidence, or UNSURE if they disagree."""
    decided = [record for record in records if record.answer != "unsure" and not record.aside]
    answers = {record.answer for record in decided}
    if len(answers) != 1:
        return UNSURE, 1.0
    return (SAME if answers == {"same"} else DIFFERENT), max(record.confidence for record in decided)


def disagree(records: list[Record]) -> bool:
    """Whether annotators gave opposite answers."""
    return len({record.answer for record in records if record.answer != "unsure" and not record.aside}) > 1
