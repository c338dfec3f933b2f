"""The current content of the log: answers after revisions and undo, corrections, settings and cluster names."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, ClassVar

from clew._words import name_key
from clew.constraints import AnswerRecord
from clew.session._events import SILENT, Event


@dataclass(frozen=True)
class Record:
    """An answer in its current version.

    Attributes
    ----------
    id : int
        Number of the answer's event; `Session.revise` takes it.
    kind : {"pair", "which", "clusters"}
    left, right : row ids
        For "which", `left` is the row asked about and `right` the chosen candidate, or None if none was chosen.
    candidates : tuple of row ids
        Candidates of a "which" question.
    answer : {"same", "different", "unsure"}
    confidence : float
    annotator, time : str
    seconds : float or None
        Time the annotator took.
    comment : str or None
    flag : bool
    question : int or None
        Id of the answered question; None for an imported answer.
    check : bool
        Whether the question was a check question, whose answer was already implied.
    expected : str or None
        The answer that the clusters predicted.
    source : str
        "asked", or the source of the import.
    batch : int or None
        Event number of the import.
    certain : bool
        Whether an imported row is a fact and not somebody's answer: it gives the confidence 1 and names no annotator.
    revised : bool
    aside : bool
        Whether a resolved conflict turned the answer into a soft constraint.
    confirmed : str or None
        The annotator who confirmed the answer after a second look.
    """

    id: int
    kind: str
    left: Any
    right: Any
    answer: str
    confidence: float
    annotator: str
    time: str
    candidates: tuple[Any, ...] = ()
    seconds: float | None = None
    comment: str | None = None
    flag: bool = False
    question: int | None = None
    check: bool = False
    expected: str | None = None
    source: str = "asked"
    batch: int | None = None
    certain: bool = False
    revised: bool = False
    aside: bool = False
    confirmed: str | None = None

    by_position: ClassVar[bool] = False

    def records(self) -> list[AnswerRecord]:
        """One record for each pair: the two rows, or the row of a "which" question with each candidate."""
        said = [(self.right, self.answer)]
        if self.kind == "which":
            is_choice = self.answer == "same"
            said = [(one, "different" if is_choice and one != self.right else self.answer) for one in self.candidates]
        who = None if self.certain else self.annotator
        more = self.confidence, who, self.time, self.seconds, self.comment, self.source, self.certain
        return [AnswerRecord(self.left, other, answer, *more) for other, answer in said]


_FIELDS = frozenset(one.name for one in fields(Record))
# Events that change answers, or confirm them.
_ABOUT_ANSWERS = ("revise", "resolve", "confirm")


class Ledger:
    """The current content of the log, updated with each event.

    Attributes
    ----------
    events : list of Event
    undone : set of ints
        Numbers of the events that were undone.
    records : dict of int to Record
        Answers in effect by number, oldest first.
    settings : dict
        The current settings.
    counted : int
        Number of the event that last set `n_clusters`.
    fitted_version : int
        Number of the last event that the last fit used; 0 before the first fit.
    n_checks : int
        Number of answers to check questions.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.undone: set[int] = set()
        self._first: dict[int, Record] = {}
        self._revisions: dict[int, list[int]] = {}
        self.records: dict[int, Record] = {}
        self._batches: dict[int, list[int]] = {}
        self._batches_with_facts: set[int] = set()
        self._of_kind: dict[str, list[Event]] = {}
        # Answers to questions since settings changed: of everybody (""), and of each person by `name_key`.
        self._asked: dict[str, list[int]] = {}
        self.n_checks = 0
        self.settings: dict[str, Any] = {}
        self.counted = self.fitted_version = 0

    @property
    def version(self) -> int:
        """The number of the last event."""
        return self.events[-1].seq if self.events else 0

    def event(self, seq: int) -> Event:
        """One event."""
        return self.events[seq - 1]

    def target(self, event: Event) -> Event:
        """The event that an undo takes back; any other event itself."""
        return self.event(event.payload["undoes"]) if event.kind == "undo" else event

    @property
    def said_version(self) -> int:
        """Number of the last event that clusters or reviews depend on."""
        return next(event.seq for event in reversed(self.events) if event.kind not in SILENT)

    @property
    def is_stale(self) -> bool:
        """Whether answers or corrections came after the last fit."""
        return not self.fitted_version or self.said_version > self.fitted_version

    def rows(self) -> list[tuple[bytes, bool]]:
        """Serialised rows of the first table and of each addition, and whether they are still in the project."""
        added = (*self.events[:1], *self._of_kind.get("rows_added", ()))
        return [(event.body or b"", event.seq not in self.undone) for event in added]

    def is_among_facts(self, record: Record) -> bool:
        """Whether an answer was imported together with facts, so far."""
        return record.batch in self._batches_with_facts

    def is_batch_complete(self, record: Record) -> bool:
        """Whether an imported answer is the last one of its import, so far."""
        assert record.batch is not None
        return len(self._batches[record.batch]) == self.event(record.batch).payload["count"]

    def first_answer(self, seq: int) -> Record:
        """The first version of an answer."""
        return self._first[seq]

    def answers_since_setting(self, most: int, annotator: str = "") -> list[str]:
        """The last answers of one annotator or of all since settings changed, newest first.

        Imported and undone answers do not count.
        """
        asked = (seq for seq in reversed(self._asked.get(name_key(annotator), ())) if seq not in self.undone)
        return [self.event(seq).payload["answer"] for seq in islice(asked, most)]

    def data(self) -> dict[str, Any] | None:
        """Latest location of the data file. None if the project stores the data."""
        moved = [event.payload["data"] for event in self._of_kind.get("setting", ()) if "data" in event.payload]
        return moved[-1] if moved else self.events[0].payload["data"]

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        self.events.append(event)
        self._of_kind.setdefault(event.kind, []).append(event)
        payload = event.payload
        if event.kind == "answer":
            self._first[event.seq] = self.records[event.seq] = _record(event)
            self.n_checks += self._first[event.seq].check
            if payload.get("batch") is not None:
                self._batches.setdefault(payload["batch"], []).append(event.seq)
                if self._first[event.seq].certain:
                    self._batches_with_facts.add(payload["batch"])
            else:
                for name in ("", name_key(event.annotator)):
                    self._asked.setdefault(name, []).append(event.seq)
        elif event.kind == "fit":
            self.fitted_version = payload["version"]
        elif event.kind == "setting":
            self._asked = {}
        elif event.kind in _ABOUT_ANSWERS:
            for change in payload["changes"]:
                self._revisions.setdefault(change["answer_id"], []).append(event.seq)
                self._refresh(change["answer_id"])
        elif event.kind == "undo":
            self._undo(payload["undoes"])
        if self.target(event).kind in ("create", "setting"):
            self.settings, self.counted = self._settings()

    def touched(self, event: Event) -> list[int]:
        """Ids of the answers that an event changes or undoes."""
        if event.kind in _ABOUT_ANSWERS:
            return [change["answer_id"] for change in event.payload["changes"] if change["answer_id"] in self._first]
        if event.kind == "undo":
            undone = self.event(event.payload["undoes"])
            named = self._batches.get(undone.seq, [undone.seq])
            return self.touched(undone) or [answer for answer in named if answer in self._first]
        return []

    def _undo(self, seq: int) -> None:
        self.undone.add(seq)
        event = self.events[seq - 1]
        for answer in [seq, *self._batches.get(seq, ())]:
            if answer in self._first:
                self.undone.add(answer)
                self._refresh(answer)
        if event.kind in _ABOUT_ANSWERS:
            for change in event.payload["changes"]:
                self._refresh(change["answer_id"])

    def _refresh(self, answer: int) -> None:
        """Recompute an answer from its first version and the last revision that was not undone."""
        if answer not in self._first:
            return  # a correction
        if answer in self.undone:
            self.records.pop(answer, None)
            return
        record = self._first[answer]
        for seq in self._revisions.get(answer, ()):
            if seq not in self.undone:
                record = _revised(record, self.events[seq - 1], answer)
        self.records[answer] = record

    def answers(self) -> list[Record]:
        """Answers in effect, oldest first."""
        return list(self.records.values())

    def corrections(self) -> list[Event]:
        """Corrections in effect, oldest first."""
        return [
            event
            for event in self._of_kind.get("correction", ())
            if event.seq not in self.undone and not self._is_withdrawn(event.seq)
        ]

    def _is_withdrawn(self, correction: int) -> bool:
        return any(seq not in self.undone for seq in self._revisions.get(correction, ()))

    def withdrawn(self, event: Event) -> list[Event]:
        """The corrections that an event withdraws to resolve a conflict."""
        named = event.payload["changes"] if event.kind == "resolve" else []
        events = [self.event(change["answer_id"]) for change in named]
        return [one for one in events if one.kind == "correction" and not one.payload["conflict"]]

    def reversed_by(self, event: Event) -> tuple[list[Event], list[Event]]:
        """The corrections that an event takes back, and the corrections that it makes again."""
        if event.kind != "undo":
            return self.withdrawn(event), []
        undone = self.target(event)
        is_used = undone.kind == "correction" and not undone.payload["conflict"]
        return [undone] if is_used else [], self.withdrawn(undone)

    def _settings(self) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = dict(self.events[0].payload["settings"])
        counted = 1
        for event in self._of_kind.get("setting", ()):
            if event.seq not in self.undone:
                found |= event.payload["settings"]
                counted = event.seq if "n_clusters" in event.payload["settings"] else counted
        return found, counted

    def groupings(self) -> dict[str, Event]:
        """Kept groupings by name, oldest first."""
        found: dict[str, Event] = {}
        for event in self._of_kind.get("grouping", ()):
            if event.seq not in self.undone:
                found.pop(event.payload["name"], None)
                if not event.payload.get("removed"):
                    found[event.payload["name"]] = event
        return found

    def names(self) -> dict[int, str]:
        """Names of clusters."""
        found = {}
        for event in self._of_kind.get("name", ()):
            if event.seq not in self.undone:
                found[event.payload["cluster"]] = event.payload["name"]
        return {cluster: name for cluster, name in found.items() if name}


def _record(event: Event) -> Record:
    given = {name: value for name, value in event.payload.items() if name in _FIELDS}
    given["candidates"] = tuple(given.get("candidates", ()))
    return Record(**{"id": event.seq, "annotator": event.annotator, "time": event.time, **given})


def _revised(record: Record, event: Event, answer: int) -> Record:
    if event.kind == "confirm":
        return replace(record, confirmed=event.annotator)
    for change in event.payload["changes"]:
        if change["answer_id"] == answer:
            values = {name: value for name, value in change.items() if name != "answer_id"}
            return replace(record, revised=True, confirmed=None, certain=False, **({"aside": False} | values))
    return record
