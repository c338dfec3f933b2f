"""Response models: small, and valid as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from clew.datasets._written import is_missing
from clew.session import (
    Agreement,
    Cluster,
    Conflict,
    Corrected,
    Event,
    PairAgreement,
    PersonAgreement,
    Progress,
    Question,
    ReviewItem,
    Session,
)
from clew.session._clustering import FitProgress
from clew.web._worker import Worker

# Largest number of list elements shown in an event, and of rows shown in a change.
_MOST_LISTED = 20
_MOST_CHANGED = 200
# Largest number of characters of a cluster's title.
_MOST_TITLE = 90


@dataclass(frozen=True)
class TrainingView:
    """Progress of a network that is trained.

    Attributes
    ----------
    step, n_steps : int
        The part of the training, from 1, and the number of parts.
    round, most_rounds : int
    seconds_left : float or None
        An estimate for the rest of this part, None before its first round.
    """

    step: int
    n_steps: int
    round: int
    most_rounds: int
    seconds_left: float | None


# The parts of training a network, in their order.
_STAGES = ("pre-training", "clustering")


@dataclass(frozen=True)
class Status(Progress):
    """Progress of a project, whether a fit is running, and the progress of a fit that trains a network."""

    fitting: bool = False
    training: TrainingView | None = None
    problem: str | None = None
    project: str = ""


@dataclass(frozen=True)
class Welcome:
    """First response to a page.

    Attributes
    ----------
    project : str
        The id of the project.
    is_taken : bool
        Whether this name was used in another browser or in the terminal.
    """

    project: str
    is_taken: bool


@dataclass(frozen=True)
class Row:
    """A row as a card shows it.

    `missing` names the columns without a value, also those that say "unknown" or "-". `dates` has a key for each column
    with a date: the same date has the same key in every format. `probability` is the probability of its cluster, null
    if the method has none.
    """

    id: Any
    values: dict[str, Any]
    missing: list[str]
    dates: dict[str, str]
    cluster: int | None
    probability: float | None = None


@dataclass(frozen=True)
class ClusterView(Cluster):
    """A cluster as a list shows it.

    Attributes
    ----------
    title : str
        The texts of its most typical row, shortened. Empty if the row has no texts.
    probability : float or None
        The smallest probability of its rows; None for a single row, and if the method has no probabilities.
    """

    title: str = ""
    probability: float | None = None


@dataclass(frozen=True)
class Change:
    """Rows that move from one cluster to another. Only the first rows are listed."""

    before: int
    after: int
    count: int
    rows: list[Any]


@dataclass(frozen=True)
class CorrectionView:
    """Changes that a correction makes or would make."""

    id: int | None
    cluster: int | None
    changes: list[Change]
    conflict: Conflict | None


@dataclass(frozen=True)
class HistoryEntry:
    """An event of the log; long lists are cut."""

    seq: int
    kind: str
    time: str
    annotator: str
    payload: dict[str, Any]
    undone: bool = False


@dataclass(frozen=True)
class Undone:
    """The action that was undone, and the question that is open again."""

    undone: HistoryEntry | None
    question: Question | None


@dataclass(frozen=True)
class Reviewed:
    """Answers worth a second look, the most suspicious first.

    Attributes
    ----------
    items : list of ReviewItem
    thorough : bool
        Whether this is the full review. Otherwise it lists answers that the clusters violate or satisfy at a cost.
    working : bool
        Whether a full review is running; the event `jobs` tells when it is ready.
    problem : str or None
        Why the full review failed.
    """

    items: list[ReviewItem]
    thorough: bool
    working: bool
    problem: str | None


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa of two annotators; null if it is undefined."""

    annotators: tuple[str, str]
    kappa: float | None


@dataclass(frozen=True)
class Agreed:
    """Agreement of all annotators."""

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
    """The settings and their possible values.

    Attributes
    ----------
    project : str
    rows : int
    columns : list of str
    changes : str or None
        How the data file differs from the rows of the project.
    has_small_groups : bool
        Whether there are very many groups of few rows: it was set, or the questions have found out.
    settings : dict
    choices : dict
    """

    project: str
    rows: int
    columns: list[str]
    changes: str | None
    has_small_groups: bool
    settings: dict[str, Any]
    choices: dict[str, list[str]]


def status(worker: Worker) -> Status:
    """The progress of the session and of the fits."""
    now = worker.session.progress()
    fields = {name: getattr(now, name) for name in now.__dataclass_fields__}
    fits = worker.fits
    return Status(
        **fields,
        fitting=fits.running,
        training=None if fits.progress is None else _training(fits.progress),
        problem=fits.problem,
        project=worker.project,
    )


def _training(now: FitProgress) -> TrainingView:
    return TrainingView(_STAGES.index(now.stage) + 1, len(_STAGES), now.n_iter, now.max_iter, now.seconds_left)


def correction(done: Corrected) -> CorrectionView:
    """A correction with its changes by cluster."""
    groups: dict[tuple[int, int], list[Any]] = {}
    for row, change in done.changed.items():
        groups.setdefault(change, []).append(row)
    changes = [Change(*change, len(rows), rows[:_MOST_CHANGED]) for change, rows in groups.items()]
    return CorrectionView(done.id, done.cluster, changes, done.conflict)


def history_entry(event: Event, undone: bool = False) -> HistoryEntry:
    """An event without its arrays."""
    return HistoryEntry(event.seq, event.kind, event.time, event.annotator, plain(_cut(event.payload)), undone)


def agreed(found: Agreement) -> Agreed:
    """Convert an agreement to a response, with pairs of people as lists."""
    return Agreed(found.pairs, found.people, [Kappa(people, kappa) for people, kappa in found.kappa.items()])


def plain(value: Any) -> Any:
    """A value that JSON can represent; NaN and infinity become null."""
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


def clusters(session: Session) -> list[ClusterView]:
    """The current clusters with their titles."""
    source = session.settings.get("source")
    return [_cluster(session, cluster, source) for cluster in session.clusters(refit=False)]


def _cluster(session: Session, cluster: Cluster, source: str | None) -> ClusterView:
    row = cluster.typical[0]
    cells = {column: value for column, value in session.row(row).items() if column != source and str(value) != str(row)}
    texts = [value.strip() for value in cells.values() if isinstance(value, str) and not is_missing(value)]
    title = " · ".join(texts)
    if len(title) > _MOST_TITLE:
        title = f"{title[:_MOST_TITLE].rstrip()} …"
    # With probabilities, the borderline rows begin with the least probable one.
    doubtful = session.probability_of(cluster.borderline[0]) if cluster.size > 1 and cluster.borderline else None
    return ClusterView(**vars(cluster), title=title, probability=doubtful)
