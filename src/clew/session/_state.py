"""A session in memory: a function of the log and the data, kept up to date event by event.

Nothing here writes: a session appends an event first and applies it afterwards, so that memory is never ahead of the
log.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import normalize

from clew.active import DIFFERENT, SAME, UNSURE, Answer, Answered, Auto, Pair, Questions, Stated, Which
from clew.constraints import Constraints, key_of
from clew.constraints._records import Records, arguments_of
from clew.datasets import Table
from clew.exceptions import ConstraintError
from clew.session._clustering import FitPlan, FitResult
from clew.session._corrections import Clusters, Correction, in_force
from clew.session._events import SILENT, Event
from clew.session._identity import stable_ids
from clew.session._ledger import Ledger, Record
from clew.session._settings import ENCODING
from clew.session._store import Lease
from clew.session._strategies import default_strategy, made
from clew.session._table import Rows

IntArray = npt.NDArray[np.int64]
# A pair said by this event; its number, and "answer" or "correction".
Source = tuple[str, tuple[int, ...]]


class State:
    """What the log and the data say together.

    Attributes
    ----------
    ledger : Ledger
    rows : Rows
    driver : Questions
        In positions of the present rows.
    sources : list of Source
        Where each entry of the driver's log comes from.
    quarantined, conflicting : sets of ints
        Corrections that contradict answers; all events that wait for a conflict to be resolved.
    slots : dict
        Answers in effect by pair of ordinals (or by their own number, for questions about several rows).
    leases : dict of int to Lease
        Questions that wait for an answer.
    labels : ndarray of ints
        Cluster id of each row by ordinal, -1 for none yet.
    """

    def __init__(self, events: Iterable[Event], read_base: Callable[[Ledger], Table], leases: Iterable[Lease]) -> None:
        self.ledger = Ledger()
        self._bodies: list[bytes] = []
        self._grown: tuple[bytes, Rows] | None = None
        self.labels = np.empty(0, dtype=np.int64)
        self.next_cluster, self.fitted_version = 0, 0
        self.notes: tuple[str, ...] = ()
        self.ordinal: dict[str, int] = {}
        self.leases = {lease.id: lease for lease in leases}
        self.read_base = read_base
        rest = []
        for event in events:
            self.ledger.apply(event)
            self._register(event)
            rest.append(event)
        self._load_rows()
        for event in rest:
            self._relabel(event)
        self.build()

    def _register(self, event: Event) -> None:
        if event.kind in ("create", "rows_added"):
            assert event.body is not None
            self._bodies.append(event.body)

    def _load_rows(self) -> None:
        self.settings, self._counted = self.ledger.settings()
        if self._grown is None or self._grown[0] is not self._bodies[-1]:
            self.rows = Rows(self.settings, self.read_base(self.ledger), self._bodies)
        else:
            self.rows = self._grown[1]
        self._grown = None
        self.ordinal = self.rows.ordinal
        grown = np.full(len(self.rows.ids), -1, dtype=np.int64)
        grown[: len(self.labels)] = self.labels
        self.labels = grown
        self.prior = self._read_prior()
        self._root = Questions(
            normalize(self.rows.X) if self.settings["metric"] == "cosine" else self.rows.X,
            made(self._strategy()),
            None,
            None,
            self.prior,
            int(self.settings["random_state"]),
            trust_n_clusters=False,
        )

    def with_rows(self, body: bytes) -> Rows:
        """The rows with more of them, as they will be when these are added."""
        self._grown = (body, Rows(self.settings, self.read_base(self.ledger), [*self._bodies, body]))
        return self._grown[1]

    def require_encodable(self, settings: dict[str, Any]) -> None:
        """Refuse settings with which the rows cannot become vectors."""
        if not set(ENCODING).isdisjoint(settings):
            Rows({**self.settings, **settings}, self.read_base(self.ledger), self._bodies)

    def _read_prior(self) -> Constraints:
        columns = self.ledger.events[0].payload["prior"]
        if columns is None:
            return Constraints(n_samples=len(self.rows.present))
        records = Records(columns, lambda place: f"given knowledge, line {place}", ConstraintError, "given knowledge")
        everything = Constraints(**arguments_of(records, self.rows.ids, len(self.rows.ids)))
        return everything if len(self.rows.present) == len(everything) else everything[self.rows.present]

    # -- settings --------------------------------------------------------------------------------------------------

    def _strategy(self) -> dict[str, Any]:
        return self.settings["strategy"] or {"name": default_strategy(), "parameters": {}}

    @property
    def strategy(self) -> str:
        """The name of the strategy that asks now."""
        return str(self._strategy()["name"])

    def n_clusters(self, corrections: Iterable[Correction]) -> int | None:
        """The number of clusters asked for, counted on by the corrections made since."""
        given = self.settings["n_clusters"]
        if given is None:
            return None
        k = given + sum(one.more_clusters for one in corrections if one.seq == 0 or one.seq > self._counted)
        return min(max(k, 1), len(self.rows.present))

    # -- events ----------------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Take in an event that is in the log."""
        self.ledger.apply(event)
        self._register(event)
        if self._reshapes(event):
            self._load_rows()
        self._relabel(event)
        if event.kind == "confirm":
            self.slots = self._slots()
        elif event.kind == "answer":
            self._add_answer(self.ledger.records[event.seq])
        elif event.kind == "setting" and set(event.payload["settings"]) == {"strategy"}:
            self.settings, self._counted = self.ledger.settings()
            self.driver.use(made(self._strategy()))
        elif event.kind not in ("fit", "name", "import"):
            self.settings, self._counted = self.ledger.settings()
            self.build()

    def _reshapes(self, event: Event) -> bool:
        """Whether rows, how they become vectors, or how these are compared is other than before."""
        if event.kind == "undo":
            return self._reshapes(self.ledger.event(event.payload["undoes"]))
        if event.kind == "setting":
            return "data" in event.payload or not {"metric", *ENCODING}.isdisjoint(event.payload["settings"])
        return event.kind == "rows_added"

    def _relabel(self, event: Event) -> None:
        """What an event does to the clusters at once."""
        payload = event.payload
        if event.kind == "fit":
            labels = unpacked_labels(event.body or b"")
            self.labels[: len(labels)] = labels
            self.next_cluster, self.fitted_version = payload["next_cluster"], payload["version"]
            self.notes = tuple(payload["notes"])
        elif event.kind == "rows_added":
            new = [self.ordinal[key_of(name)] for name in payload["ids"]]
            self.labels[new] = payload["clusters"]
        elif event.kind == "correction" and not payload["conflict"]:
            for _, after, rows in self._changes(event):
                self.labels[rows] = after
                self.next_cluster = max(self.next_cluster, after + 1)
        elif event.kind == "undo":
            undone = self.ledger.event(payload["undoes"])
            if undone.kind == "correction" and not undone.payload["conflict"]:
                for before, after, rows in self._changes(undone):
                    self.labels[rows[self.labels[rows] == after]] = before

    def _changes(self, event: Event) -> list[tuple[int, int, IntArray]]:
        return [
            (before, after, np.array([self.ordinal[key_of(name)] for name in names], dtype=np.int64))
            for names, before, after in event.payload["changes"]
        ]

    # -- knowledge -------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """The driver from everything in effect."""
        self.driver, self.sources, self.quarantined = self._built(self.corrections())
        self.slots = self._slots()
        self.thin = {slot: None for slot, records in self.slots.items() if self._is_thin(records)}
        self.conflicting = set(self.quarantined)
        for entry, (_, events) in zip(self.driver.answers, self.sources, strict=True):
            if entry.conflict:
                self.conflicting.update(events)
        for records in self.slots.values():
            if disagree(records):
                self.conflicting.update(record.id for record in records)
        self._hold_leases()

    def _is_thin(self, records: list[Record]) -> bool:
        """Whether fewer people than wanted have answered a pair that was asked."""
        people = {record.annotator for record in records}
        return len(people) < self.settings["overlap"] and records[0].kind != "which" and records[0].question is not None

    def corrections(self) -> list[Correction]:
        """Corrections that nobody took back."""
        return [Correction.read(one.seq, one.payload, self.ordinal, key_of) for one in self.ledger.corrections()]

    def conflicts_with(self, proposed: Correction) -> bool:
        """Whether a correction would contradict what is known."""
        return proposed.seq in self._built([*self.corrections(), proposed])[2]

    def _built(self, corrections: list[Correction]) -> tuple[Questions, list[Source], set[int]]:
        """A driver in which every correction holds that contradicts no answer; the others are set aside as a whole."""
        quarantined: set[int] = set()
        slots = self._slots()
        while True:
            live = in_force(one for one in corrections if one.seq not in quarantined)
            entries = self._entries(slots, live)
            k = self.n_clusters(one for one in corrections if one.seq not in quarantined)
            driver = self._root.again([entry for entry, _ in entries], made(self._strategy()), k)
            sources = [source for _, source in entries]
            wrong = next(
                (
                    source[1][0]
                    for entry, source in zip(driver.answers, sources, strict=True)
                    if entry.conflict and source[0] == "correction"
                ),
                None,
            )
            if wrong is None:
                return driver, sources, quarantined
            quarantined.add(wrong)

    def _slots(self) -> dict[Any, list[Record]]:
        """Answers in effect by what they are about; several people may have answered the same pair."""
        slots: dict[Any, list[Record]] = {}
        for record in self.ledger.answers():
            slots.setdefault(self.slot(record), []).append(record)
        return slots

    def slot(self, record: Record) -> Any:
        """What an answer is about: the pair, or only itself for one about several rows."""
        if record.kind == "which":
            return record.id
        return self.slot_of(record.left, record.right)

    def slot_of(self, left: Any, right: Any) -> tuple[int, int]:
        """Two rows by ordinal, lower first."""
        first, second = self.ordinal[key_of(left)], self.ordinal[key_of(right)]
        return (first, second) if first < second else (second, first)

    def _entries(self, slots: dict[Any, list[Record]], live: list[Correction]) -> list[tuple[Answered, Source]]:
        """What the driver takes in, in the order of the log."""
        found: list[tuple[int, Answered, Source]] = []
        for slot, records in slots.items():
            entry = self._entry(slot, records)
            if entry is not None:
                found.append((records[0].id, entry, ("answer", tuple(record.id for record in records))))
        for correction in live:
            said = correction.pairs(self.rows.position)
            # One that is only proposed comes last.
            place = correction.seq or self.ledger.version + 1
            found.append((place, Answered(Stated(tuple(said)), SAME), ("correction", (correction.seq,))))
        found.sort(key=lambda one: one[0])
        return [(entry, source) for _, entry, source in found]

    def _entry(self, slot: Any, records: list[Record]) -> Answered | None:
        """One entry for all answers about a pair: what the people agree on; nothing while a row is missing."""
        record = records[0]
        if record.kind == "which":
            return self._which(record)
        first, second = (int(self.rows.position[row]) for row in slot)
        if first < 0 or second < 0:
            return None
        answer, confidence = agreed(records)
        expected = None if record.expected is None else Answer(record.expected)
        if self.rows.position[self.ordinal[key_of(record.left)]] != first:
            first, second = second, first
        return Answered(Pair(first, second, check=record.check), answer, confidence, expected)

    def _which(self, record: Record) -> Answered | None:
        position = [int(self.rows.position[self.ordinal[key_of(name)]]) for name in (record.left, *record.candidates)]
        if min(position) < 0:
            return None
        answer: Any = Answer(record.answer)
        if answer is SAME:
            answer = int(self.rows.position[self.ordinal[key_of(record.right)]])
        if record.aside:
            answer = UNSURE
        return Answered(Which(position[0], tuple(position[1:])), answer, record.confidence)

    def _add_answer(self, record: Record) -> None:
        """Take in one more answer without starting anew, unless somebody answered the same before."""
        slot = self.slot(record)
        before = self.slots.setdefault(slot, [])
        old = agreed(before) if before else None
        before.append(record)
        self.thin.pop(slot, None)
        if self._is_thin(before):
            self.thin[slot] = None
        if old is not None and agreed(before) != old:
            self.build()
            return
        if old is not None:
            place = self.sources.index(("answer", tuple(one.id for one in before[:-1])))
            self.sources[place] = ("answer", tuple(one.id for one in before))
            if self.driver.answers[place].conflict or disagree(before):
                self.conflicting.add(record.id)
            return
        entry = self._entry(slot, before)
        if entry is None:
            return
        if not self.driver.add(entry):
            self.conflicting.add(record.id)
        self.sources.append(("answer", (record.id,)))

    # -- questions that wait ---------------------------------------------------------------------------------------

    def take_leases(self, leases: Iterable[Lease]) -> None:
        """The questions that wait for an answer, as the database has them."""
        for lease in list(self.leases.values()):
            self.drop_lease(lease)
        self.leases = {lease.id: lease for lease in leases}
        self._hold_leases()

    def change_leases(self, leases: Iterable[Lease]) -> None:
        """Questions that were given to somebody, answered or opened again."""
        for lease in leases:
            is_again = lease.is_open and lease.id not in self.leases and self.leases and lease.id < max(self.leases)
            if lease.is_open:
                self.leases[lease.id] = lease
            else:
                self.leases.pop(lease.id, None)
            if is_again:  # by number, as the database has them
                self.leases = dict(sorted(self.leases.items()))

    def drop_lease(self, lease: Lease) -> None:
        """Nobody waits for this answer any longer."""
        self.leases.pop(lease.id, None)
        question = self.driver_question(lease)
        others = (self.driver_question(other) for other in self.leases.values())
        if question is not None and question not in others:
            self.driver.release(question)

    def _hold_leases(self) -> None:
        for lease in self.leases.values():
            question = self.driver_question(lease)
            if question is not None:
                self.driver.hold(question)

    def driver_question(self, lease: Lease) -> Pair | Which | None:
        """A question that waits in the driver's terms; None if a row is missing now."""
        payload = lease.payload
        names = [payload["left"], *(payload["candidates"] if payload["kind"] == "which" else [payload["right"]])]
        places = [int(self.rows.position[self.ordinal[key_of(name)]]) for name in names]
        if min(places) < 0:
            return None
        if payload["kind"] == "which":
            return Which(places[0], tuple(places[1:]), payload["why"])
        return Pair(places[0], places[1], payload["why"], payload["check"])

    def constraints(self) -> Constraints:
        """What a fit gets: everything in use, and answers that a resolved conflict keeps as preferences."""
        known = self.driver.constraints
        must: list[list[int]] = []
        cannot: list[list[int]] = []
        must_sure: list[float] = []
        cannot_sure: list[float] = []
        for record in self.ledger.records.values():
            if not record.aside or record.kind == "which" or record.answer == "unsure":
                continue
            pair = [int(self.rows.position[row]) for row in self.slot(record)]
            if min(pair) >= 0:
                (must if record.answer == "same" else cannot).append(pair)
                (must_sure if record.answer == "same" else cannot_sure).append(record.confidence)
        if must or cannot:
            known = known | Constraints(
                must, cannot, must_link_confidence=must_sure, cannot_link_confidence=cannot_sure,
                n_samples=len(self.rows.present),
            )  # fmt: skip
        return known

    # -- clusters --------------------------------------------------------------------------------------------------

    @property
    def clusters(self) -> Clusters:
        """The current clusters, for corrections."""
        return Clusters(self.rows.X, self.rows.present, self.rows.position, self.labels)

    @property
    def is_stale(self) -> bool:
        """Whether something was said since the clusters were made."""
        return not self.fitted_version or self.said_version > self.fitted_version

    @property
    def said_version(self) -> int:
        """The last event that clusters or reviews depend on."""
        return next(event.seq for event in reversed(self.ledger.events) if event.kind not in SILENT)

    def is_late(self, result: FitResult) -> bool:
        """Whether clusters were changed by hand, or what they are made from, since a fit was planned."""
        return any(self._changes_clusters(event) for event in self.ledger.events[result.version :])

    def _changes_clusters(self, event: Event) -> bool:
        if event.kind == "undo":
            return self._changes_clusters(self.ledger.event(event.payload["undoes"]))
        if event.kind == "setting":
            return bool({"n_clusters", "method", "metric", "random_state"} & set(event.payload["settings"]))
        return event.kind in ("correction", "rows_added")

    def plan(self) -> FitPlan:
        """All that a fit needs now."""
        driver, known = self.driver, self.constraints()
        return FitPlan(
            version=self.ledger.version,
            X=self.rows.X,
            rows=self.rows.present,
            constraints=known._replace(ids=np.array(self.rows.names(range(len(self.rows.present))), dtype=object)),
            current=self.labels[self.rows.present],
            n_clusters=driver.n_clusters,
            n_groups=len(driver.view.neighbourhoods),
            method=self.settings["method"],
            metric=self.settings["metric"],
            random_state=int(self.settings["random_state"]),
            own_labels=self._own_labels(known),
            corrected=bool(self.ledger.corrections()),
        )

    def _own_labels(self, known: Constraints) -> Callable[[IntArray | None], npt.NDArray[Any]] | None:
        """Clusters of the strategy where it makes some: of the usual one while another takes over for a while.

        They are made from those to keep, where there are such.
        """
        chosen = self.settings["strategy"] or {"automatic": True}
        setting = {"name": default_strategy(), "parameters": {}} if chosen.get("automatic") else chosen
        strategy, k = made(setting), self.driver.n_clusters
        if not hasattr(strategy, "labels") or (k is not None and not isinstance(strategy, Auto)):
            return None  # without clusters, or with as many as it finds
        log, root = tuple(self.driver.answers), self._root

        def own(keep: IntArray | None) -> npt.NDArray[Any]:
            view = root.again(log, strategy, k).view
            view.constraints = lambda: known  # answers kept as preferences included
            return strategy.labels(view, keep) if isinstance(strategy, Auto) else strategy.labels(view)

        return own

    def identified(self, result: FitResult) -> tuple[IntArray, int]:
        """Cluster ids of all rows after a fit, and the next free one; rows that are missing keep theirs."""
        names = [key_of(self.rows.ids[row]) for row in result.rows]
        found, next_cluster = stable_ids(self.labels[result.rows], result.labels, self.next_cluster, names)
        labels = self.labels.copy()
        labels[result.rows] = found
        return labels, next_cluster


def agreed(records: list[Record]) -> tuple[Answer, float]:
    """What people agree on, and how sure the surest is; UNSURE where they do not agree, or only say so."""
    decided = [record for record in records if record.answer != "unsure" and not record.aside]
    answers = {record.answer for record in decided}
    if len(answers) != 1:
        return UNSURE, 1.0
    return (SAME if answers == {"same"} else DIFFERENT), max(record.confidence for record in decided)


def disagree(records: list[Record]) -> bool:
    """Whether people gave opposite answers."""
    return len({record.answer for record in records if record.answer != "unsure" and not record.aside}) > 1


def packed_labels(labels: IntArray) -> bytes:
    """Labels as bytes."""
    stream = io.BytesIO()
    np.savez_compressed(stream, labels=labels.astype(np.int32))
    return stream.getvalue()


def unpacked_labels(body: bytes) -> IntArray:
    """What `packed_labels` packed."""
    with np.load(io.BytesIO(body), allow_pickle=False) as stored:
        return stored["labels"].astype(np.int64)
