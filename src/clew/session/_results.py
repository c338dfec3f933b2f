"""Result types of the methods of a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question for an annotator.

    Attributes
    ----------
    id : int
        Number of the question, the same after a restart; `Session.tell` takes it.
    kind : {"pair", "which", "clusters"}
        "Are these two the same?", "Which of these does it belong with?", "Do these two clusters belong together?".
    left, right : row ids
        For "which", `left` is the row and `right` is None.
    candidates : tuple of row ids
        For "which": one row of each group, most probable group first.
    why : str
        One sentence that tells the annotator why this question is asked.
    check : bool
        Whether the answer is already implied and the question is asked to find errors.
    annotator : str
        The annotator to whom the question is leased.
    expires : float
        End of the lease, in seconds since 1970 (UTC). Another annotator may get the question afterwards.
    rows : pair of tuples of row ids
        For "clusters": some rows of each cluster.
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
    """One step in the chain of a conflict: two rows, their answer, and the events that gave it.

    Attributes
    ----------
    left, right : row ids
    answer : {"same", "different"}
    events : tuple of ints
        Numbers of the answers and corrections that gave it. Empty for constraints given at the start.
    said_by : str
        The same events in words.
    """

    left: Any
    right: Any
    answer: str
    events: tuple[int, ...]
    said_by: str


@dataclass(frozen=True)
class Conflict:
    """An answer or correction that contradicts others.

    Until the conflict is resolved, a correction is not used, and an answer is no fact. It is still evidence where
    answers may be wrong.

    Attributes
    ----------
    id : int
        Number of the event: an answer, a correction, or the latest answer of a disagreement.
    kind : {"answer", "correction", "disagreement"}
    message : str
    chain : tuple of row ids
        The rows of the contradiction in order. `links` has one link for each row and the next one.
    links : tuple of Link
        The links between consecutive rows. The last link closes the cycle.
    answers : tuple of ints
        Answers that can be changed to resolve the conflict.
    corrections : tuple of ints
        Corrections that can be taken back to resolve the conflict.
    cheapest : tuple of ints
        The cheapest repair: answers to change to the opposite and corrections to take back, so that everything else can
        hold. The price of an answer is its confidence times the probability that it is right.
        ``Session.resolve(conflict, "repair")`` applies it. Empty if there is none, if two are equally good in a
        disagreement, and in the result of `Session.tell`.
    """

    id: int
    kind: str
    message: str
    chain: tuple[Any, ...]
    links: tuple[Link, ...]
    answers: tuple[int, ...]
    corrections: tuple[int, ...] = ()
    cheapest: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Told:
    """The result of recording an answer.

    Attributes
    ----------
    id : int
        Number of the answer.
    implied : int
        Number of further pairs that the answer decides.
    conflict : Conflict or None
        The conflict, if the answer contradicts others.
    note : str or None
        A message for the annotator, such as a change of strategy.
    """

    id: int
    implied: int
    conflict: Conflict | None = None
    note: str | None = None


@dataclass(frozen=True)
class Corrected:
    """The result of a correction or of its preview.

    Attributes
    ----------
    id : int or None
        Number of the correction; None for a preview.
    changed : dict
        Row id → (cluster before, cluster after).
    cluster : int or None
        Id of the cluster that results from the correction.
    conflict : Conflict or None
        The conflict, if the correction contradicts answers. No row moves then.
    """

    id: int | None
    changed: dict[Any, tuple[int, int]]
    cluster: int | None
    conflict: Conflict | None = None


@dataclass(frozen=True)
class Cluster:
    """A cluster with examples of its rows.

    Attributes
    ----------
    id : int
    name : str or None
    size : int
    typical : list of row ids
        Rows nearest to the centre of the cluster.
    borderline : list of row ids
        Rows almost as near to another centre, or the least probable rows if the method has probabilities.
    """

    id: int
    name: str | None
    size: int
    typical: list[Any]
    borderline: list[Any]


@dataclass(frozen=True)
class Grouping:
    """Another way to group the rows, kept under a name.

    Attributes
    ----------
    name : str
    groups : list of Cluster
        The groups with examples of their rows. Groups have no names.
    likeness : float
        Normalised mutual information with the clusters, or with an earlier grouping if that is higher, when the
        grouping was made: 0 if they are independent, 1 if they are the same.
    method : str
    annotator, time : str
    clusters : list of int
        Ids of the present clusters.
    overlap : list of lists of int
        Number of rows that each group shares with each of these clusters.
    """

    name: str
    groups: list[Cluster]
    likeness: float
    method: str
    annotator: str
    time: str
    clusters: list[int]
    overlap: list[list[int]]


@dataclass(frozen=True)
class ReviewItem:
    """An answer worth a second look.

    Attributes
    ----------
    answer_id : int
    left, right : row ids
    answer : {"same", "different", "unsure"}
    suspicion : float
        Estimated probability that the answer is wrong, from 0 to 1.
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
    """Progress of a session.

    Attributes
    ----------
    answered : int
        Number of answers in effect.
    unsure : int
        Number of answers in effect that are "unsure".
    implied : int
        Number of pairs that follow from the answers.
    groups : int
        Number of neighbourhoods: groups of rows known to differ from each other.
    n_rows : int
        Number of rows that are present in the data.
    n_clusters : int
        Current number of clusters.
    conflicts : int
        Number of unresolved conflicts.
    pending : int
        Number of questions without an answer.
    expected_gain : float
        Probability that the clusters do not predict the next answer.
    can_stop : bool
    reason : str
    strategy : str
    seconds : float or None
        Median time per answer.
    stale : bool
        Whether answers or corrections came after the last fit.
    version : int
        Number of the last event.
    notes : tuple of str
        Notes of the last fit.
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
