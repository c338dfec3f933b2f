"""What the log says now: answers as they stand after revisions and undo, corrections, settings, names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from clew.session._events import Event


@dataclass(frozen=True)
class Record:
    """An answer as it stands.

    Attributes
    ----------
    id : int
        The number of its event; `Session.revise` takes it.
    kind : {"pair", "which", "clusters"}
    left, right : row ids
        For "which", `left` is the row asked about and `right` the one chosen, None for none.
    candidates : tuple of row ids
        Of a "which" question.
    answer : {"same", "different", "unsure"}
    confidence : float
    annotator, time : str
    seconds : float or None
        How long it took.
    comment : str or None
    flag : bool
    question : int or None
        The question it answers; None for an imported answer.
    check : bool
        Whether it was asked to check what is implied.
    expected : str or None
        What the clusters foresaw.
    source : str
        "asked", or where it was imported from.
    batch : int or None
        The import it came with.
    revised : bool
    aside : bool
        Whether a resolved conflict keeps it as a preference only.
    confirmed : str or None
        Who looked at it again and kept it.
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
    revised: bool = False
    aside: bool = False
    confirmed: str | None = None


# Events that change answers, or confirm them.
_ABOUT_ANSWERS = ("revise", "resolve", "confirm")


class Ledger:
    """The log, folded: what is in effect."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.undone: set[int] = set()
        self._first: dict[int, Record] = {}
        self._revisions: dict[int, list[int]] = {}
        self.records: dict[int, Record] = {}
        self._batches: dict[int, list[int]] = {}
        self._of_kind: dict[str, list[Event]] = {}
        self.n_checks = 0

    @property
    def version(self) -> int:
        """The number of the last event."""
        return self.events[-1].seq if self.events else 0

    def event(self, seq: int) -> Event:
        """One event."""
        return self.events[seq - 1]

    def first_answer(self, seq: int) -> Record:
        """An answer as it was first given."""
        return self._first[seq]

    def answers_since_setting(self, most: int) -> list[str]:
        """The last answers since settings changed, newest first; imported ones and those undone do not count."""
        found: list[str] = []
        for event in reversed(self.events):
            if event.kind == "setting" or len(found) == most:
                break
            if event.kind == "answer" and event.seq not in self.undone and event.payload.get("batch") is None:
                found.append(event.payload["answer"])
        return found

    def data(self) -> dict[str, Any] | None:
        """Where the data file is, as said last; None if the project keeps the data."""
        moved = [event.payload["data"] for event in self._of_kind.get("setting", ()) if "data" in event.payload]
        return moved[-1] if moved else self.events[0].payload["data"]

    def apply(self, event: Event) -> None:
        """Take in the next event."""
        self.events.append(event)
        self._of_kind.setdefault(event.kind, []).append(event)
        payload = event.payload
        if event.kind == "answer":
            self._first[event.seq] = self.records[event.seq] = _record(event)
            self.n_checks += self._first[event.seq].check
            if payload.get("batch") is not None:
                self._batches.setdefault(payload["batch"], []).append(event.seq)
        elif event.kind in _ABOUT_ANSWERS:
            for change in payload["changes"]:
                self._revisions.setdefault(change["answer_id"], []).append(event.seq)
                self._refresh(change["answer_id"])
        elif event.kind == "undo":
            self._undo(payload["undoes"])

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
        """The answer from its first version and the last revision that was not undone."""
        if answer not in self._first:
            return  # a correction
        self.records.pop(answer, None)
        if answer in self.undone:
            return
        record = self._first[answer]
        for seq in self._revisions.get(answer, ()):
            if seq not in self.undone:
                record = _revised(record, self.events[seq - 1], answer)
        self.records[answer] = record

    def answers(self) -> list[Record]:
        """Answers in effect, oldest first."""
        return [self.records[seq] for seq in sorted(self.records)]

    def corrections(self) -> list[Event]:
        """Corrections that nobody took back, oldest first."""
        return [
            event
            for event in self._of_kind.get("correction", ())
            if event.seq not in self.undone and not self._is_withdrawn(event.seq)
        ]

    def _is_withdrawn(self, correction: int) -> bool:
        return any(seq not in self.undone for seq in self._revisions.get(correction, ()))

    def settings(self) -> tuple[dict[str, Any], int]:
        """All settings as they are now, and the event that set the number of clusters last."""
        found: dict[str, Any] = dict(self.events[0].payload["settings"])
        counted = 1
        for event in self._of_kind.get("setting", ()):
            if event.seq not in self.undone:
                found |= event.payload["settings"]
                counted = event.seq if "n_clusters" in event.payload["settings"] else counted
        return found, counted

    def names(self) -> dict[int, str]:
        """Names of clusters."""
        found = {}
        for event in self._of_kind.get("name", ()):
            if event.seq not in self.undone:
                found[event.payload["cluster"]] = event.payload["name"]
        return {cluster: name for cluster, name in found.items() if name}


def _record(event: Event) -> Record:
    fields = {name: value for name, value in event.payload.items() if name in Record.__dataclass_fields__}
    fields["candidates"] = tuple(fields.get("candidates", ()))
    return Record(**{"id": event.seq, "annotator": event.annotator, "time": event.time, **fields})


def _revised(record: Record, event: Event, answer: int) -> Record:
    if event.kind == "confirm":
        return replace(record, confirmed=event.annotator)
    for change in event.payload["changes"]:
        if change["answer_id"] == answer:
            values = {name: value for name, value in change.items() if name != "answer_id"}
            return replace(record, revised=True, confirmed=None, **({"aside": False} | values))
    return record
