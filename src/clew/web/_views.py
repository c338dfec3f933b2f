"""What the server tells, in a form that JSON can hold and that stays small."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from clew.session import (
    Agreement,
    Conflict,
    Corrected,
    Event,
    PairAgreement,
    PersonAgreement,
    Progress,
    Question,
    ReviewItem,
)
from clew.web._worker import Worker

# Elements of a list in the payload of an event, and rows of a change, that are shown.
_MOST_LISTED = 20
_MOST_CHANGED = 200


@dataclass(frozen=True)
class Status(Progress):
    """Where things stand, and whether clusters are being made."""

    fitting: bool = False
    problem: str | None = None


@dataclass(frozen=True)
class Row:
    """A row as a card shows it."""

    id: Any
    values: dict[str, Any]
    cluster: int | None


@dataclass(frozen=True)
class Change:
    """Rows that go from one cluster to another; the first of many."""

    before: int
    after: int
    count: int
    rows: list[Any]


@dataclass(frozen=True)
class Correction:
    """What a correction changes, or would change."""

    id: int | None
    cluster: int | None
    changes: list[Change]
    conflict: Conflict | None


@dataclass(frozen=True)
class Deed:
    """An event of the log; long lists are cut."""

    seq: int
    kind: str
    time: str
    annotator: str
    payload: dict[str, Any]
    undone: bool = False


@dataclass(frozen=True)
class Undone:
    """What was taken back, and the question that is open again."""

    undone: Deed | None
    question: Question | None


@dataclass(frozen=True)
class Reviewed:
    """Answers worth a second look, the most suspicious first.

    Attributes
    ----------
    items : list of ReviewItem
    thorough : bool
        Whether all evidence was weighed; else these are the answers that the clusters break or pay for.
    working : bool
        Whether a better list is being made; an event `errands` tells when it is there.
    problem : str or None
        Why there is no better one.
    """

    items: list[ReviewItem]
    thorough: bool
    working: bool
    problem: str | None


@dataclass(frozen=True)
class Kappa:
    """Agreement of two people beyond chance; null where it is not defined."""

    annotators: tuple[str, str]
    kappa: float | None


@dataclass(frozen=True)
class Agreed:
    """Who agrees with whom."""

    pairs: list[PairAgreement]
    people: list[PersonAgreement]
    kappa: list[Kappa]


@dataclass(frozen=True)
class Added:
    """New rows: how many, and the ids of the first."""

    count: int
    ids: list[Any]


@dataclass(frozen=True)
class Imported:
    """How many answers were new."""

    count: int


@dataclass(frozen=True)
class Project:
    """The settings, and what can be chosen.

    Attributes
    ----------
    project : str
    rows : int
    columns : list of str
    changes : str or None
        What differs between the data and what the project knows of it.
    settings : dict
    choices : dict
    """

    project: str
    rows: int
    columns: list[str]
    changes: str | None
    settings: dict[str, Any]
    choices: dict[str, list[str]]


def status(worker: Worker) -> Status:
    """The progress of the session and of the fits."""
    now = worker.session.progress()
    fields = {name: getattr(now, name) for name in now.__dataclass_fields__}
    return Status(**fields, fitting=worker.fits.running, problem=worker.fits.problem)


def correction(done: Corrected) -> Correction:
    """A correction with its changes by cluster."""
    groups: dict[tuple[int, int], list[Any]] = {}
    for row, change in done.changed.items():
        groups.setdefault(change, []).append(row)
    changes = [Change(*change, len(rows), rows[:_MOST_CHANGED]) for change, rows in groups.items()]
    return Correction(done.id, done.cluster, changes, done.conflict)


def deed(event: Event, undone: bool = False) -> Deed:
    """An event without its arrays."""
    return Deed(event.seq, event.kind, event.time, event.annotator, plain(_cut(event.payload)), undone)


def agreed(found: Agreement) -> Agreed:
    """An agreement whose pairs of people are lists."""
    return Agreed(found.pairs, found.people, [Kappa(people, kappa) for people, kappa in found.kappa.items()])


def plain(value: Any) -> Any:
    """A value as JSON can hold it: what is no finite number becomes null."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | bool) else str(value)


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cut(one) for key, one in value.items()}
    if isinstance(value, list) and len(value) > _MOST_LISTED:
        return {"count": len(value), "first": [_cut(one) for one in value[:_MOST_LISTED]]}
    return [_cut(one) for one in value] if isinstance(value, list) else value
