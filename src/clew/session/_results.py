"""What a session gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question for a person.

    Attributes
    ----------
    id : int
        Stays the same over restarts; `Session.tell` takes it.
    kind : {"pair", "which", "clusters"}
        "Are these two the same?", "Which of these does it belong with?", "Do these two clusters belong together?".
    left, right : row ids
        For "which", `left` is the row and `right` is None.
    candidates : tuple of row ids
        Of "which": one row of each group, likeliest first.
    why : str
    check : bool
        Whether the answer is implied and asked to find errors.
    annotator : str
        Whom it was given to.
    expires : float
        When it may be given to somebody else, in seconds since 1970 (UTC).
    rows : pair of tuples of row ids
        Of "clusters": some rows of each.
    """

    id: int
    kind: str
    left: Any
    right: Any
    why: str
    annotator: str
    expires: float
    candidates: tuple[Any, ...] = ()
    check: bool = False
    rows: tuple[tuple[Any, ...], tuple[Any, ...]] | None = None


@dataclass(frozen=True)
class Link:
    """One step of a conflict: what is said about two rows, and by which events.

    Attributes
    ----------
    left, right : row ids
    answer : {"same", "different"}
    events : tuple of ints
        Answers and corrections that say so; none for what was given at the start.
    said_by : str
        The same in words.
    """

    left: Any
    right: Any
    answer: str
    events: tuple[int, ...]
    said_by: str


@dataclass(frozen=True)
class Conflict:
    """Something that contradicts what is known; it is kept out of use until it is resolved.

    Attributes
    ----------
    id : int
        The event that waits: an answer, a correction, or the latest answer of a disagreement.
    kind : {"answer", "correction", "disagreement"}
    message : str
    chain : tuple of row ids
        The rows along the contradiction, each with the next one in `links`.
    links : tuple of Link
        The last one closes the circle.
    answers : tuple of ints
        The answers that could be changed to resolve it.
    """

    id: int
    kind: str
    message: str
    chain: tuple[Any, ...]
    links: tuple[Link, ...]
    answers: tuple[int, ...]

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Told:
    """What became of an answer.

    Attributes
    ----------
    id : int
        The number of the answer.
    implied : int
        How many more pairs are decided by it.
    conflict : Conflict or None
    note : str or None
        What people should know, such as another strategy.
    """

    id: int
    implied: int
    conflict: Conflict | None = None
    note: str | None = None


@dataclass(frozen=True)
class Corrected:
    """What a correction does, or would do.

    Attributes
    ----------
    id : int or None
        The number of the correction; None for a preview.
    changed : dict
        Row id → (cluster before, cluster after).
    cluster : int or None
        The cluster that was made or kept.
    conflict : Conflict or None
        What it contradicts; then nothing changes.
    """

    id: int | None
    changed: dict[Any, tuple[int, int]]
    cluster: int | None
    conflict: Conflict | None = None


@dataclass(frozen=True)
class Cluster:
    """A cluster.

    Attributes
    ----------
    id : int
    name : str or None
    size : int
    typical : list of row ids
        Nearest to its centre.
    borderline : list of row ids
        Nearly as near to another centre.
    """

    id: int
    name: str | None
    size: int
    typical: list[Any]
    borderline: list[Any]


@dataclass(frozen=True)
class ReviewItem:
    """An answer worth a second look.

    Attributes
    ----------
    answer_id : int
    left, right : row ids
    answer : {"same", "different", "unsure"}
    suspicion : float
        From 0 to 1.
    likely : {"same", "different", "unsure"}
        The answer that fits better.
    reasons : tuple of str
    annotator, time : str
    """

    answer_id: int
    left: Any
    right: Any
    answer: str
    suspicion: float
    likely: str
    reasons: tuple[str, ...]
    annotator: str
    time: str


@dataclass(frozen=True)
class Progress:
    """Where things stand.

    Attributes
    ----------
    answered, unsure, implied : int
        Answers in effect; those of them that are "unsure"; pairs that follow from the others.
    groups : int
        Groups of rows known to differ from each other.
    n_rows, n_clusters : int
        Rows that are present; clusters now.
    conflicts, pending : int
        What waits to be resolved; questions that wait for an answer.
    expected_gain : float
        Chance that the next answer is one the clusters do not foresee.
    can_stop : bool
    reason : str
    strategy : str
    seconds : float or None
        Median time of an answer.
    stale : bool
        Whether something was said since the clusters were made.
    version : int
    notes : tuple of str
        From the last fit.
    """

    answered: int
    unsure: int
    implied: int
    groups: int
    n_rows: int
    n_clusters: int
    conflicts: int
    pending: int
    expected_gain: float
    can_stop: bool
    reason: str
    strategy: str
    seconds: float | None
    stale: bool
    version: int
    notes: tuple[str, ...] = field(default_factory=tuple)
