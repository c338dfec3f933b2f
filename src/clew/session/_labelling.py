"""The cluster of every row, as the events of the log set it."""

from __future__ import annotations

import io
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from clew.constraints import key_of
from clew.session._clustering import FitResult
from clew.session._corrections import Clusters
from clew.session._events import Event
from clew.session._identity import stable_ids
from clew.session._ledger import Ledger
from clew.session._settings import MAKING
from clew.session._table import ProjectRows

IntArray = npt.NDArray[np.int64]


class Labelling:
    """The cluster of every row: set by fits, moved by corrections, and moved back when these are undone.

    Five rows, a fit, and a correction that moves row 1 to cluster 1:

    ======================  =================  ==================
    event                   labels             base
    ======================  =================  ==================
    fit, stored labels      0 0 1 1 -1         0 0 1 1 -1
    correction of row 1     0 1 1 1 -1         0 1 1 1 -1
    fit that starts there   0 1 1 1 0          0 1 1 1 -1
    ======================  =================  ==================

    Attributes
    ----------
    labels : ndarray of ints
        Cluster id of each row by ordinal, -1 for rows without a cluster.
    base : ndarray of ints
        The labels after the last correction. A fit that keeps corrected clusters starts from them.
    base_version : int
        Number of the event that set the base.
    next_cluster : int
        The first cluster id that was never used.
    is_outdated : bool
        Whether a setting has changed after which all clusters must be fitted again.
    notes : tuple of str
        Notes of the last fit.
    probability : ndarray of float32
        Probability of each row's cluster by ordinal, as the last fit found it. NaN if its method has none, and for rows
        that were moved or added since.
    """

    def __init__(self, ledger: Ledger, rows: ProjectRows) -> None:
        self._ledger, self._rows = ledger, rows
        self.labels = np.full(len(rows.ids), -1, dtype=np.int64)
        self.base, self.base_version = self.labels.copy(), 0
        self.next_cluster, self.is_outdated = 0, False
        self.notes: tuple[str, ...] = ()
        self.probability = np.full(len(rows.ids), np.nan, dtype=np.float32)
        for event in ledger.events:
            self.apply(event)

    @property
    def present(self) -> IntArray:
        """Cluster id of each row that is in the data now."""
        return self.labels[self._rows.present]

    @property
    def present_probability(self) -> npt.NDArray[np.float64]:
        """Probability of the cluster of each row that is in the data now."""
        return self.probability[self._rows.present].astype(np.float64)

    @property
    def clusters(self) -> Clusters:
        """The current clusters, for corrections."""
        rows = self._rows
        return Clusters(rows.X, rows.present, rows.position, self.labels)

    def apply(self, event: Event) -> None:
        """Apply the effect of an event of the log on the labels.

        The labels after a correction are the base of later fits. A fit that starts from the base does not change it.
        """
        self._change(event)
        if event.kind == "rows_added":
            new = self._rows.ordinals(event.payload["ids"])
            self.base[new] = self.labels[new]
        elif not (event.kind == "fit" and event.payload.get("kept")) and self._sets_base(self._ledger.target(event)):
            self.base, self.base_version = self.labels.copy(), event.seq
        if event.kind in ("fit", "setting", "undo"):
            outdates = _outdates(self._ledger.target(event))
            self.is_outdated = event.kind != "fit" and (self.is_outdated or outdates)

    def _sets_base(self, event: Event) -> bool:
        if event.kind == "fit":
            return event.body is not None
        return event.kind == "correction" or bool(self._ledger.withdrawn(event))

    def _change(self, event: Event) -> None:
        payload = event.payload
        if event.kind == "fit":
            if event.body is not None:
                labels, probability = unpacked_labels(event.body)
                self.labels[: len(labels)] = labels
                self.probability[: len(labels)] = np.nan if probability is None else probability
            self.next_cluster, self.notes = payload["next_cluster"], tuple(payload["notes"])
        elif event.kind == "rows_added":
            self.labels[self._rows.ordinals(payload["ids"])] = payload["clusters"]
            self.next_cluster = max(self.next_cluster, max(payload["clusters"], default=-1) + 1)
        elif event.kind == "correction" and not payload["conflict"]:
            self.notes = ()  # the notes were about the clusters before the correction
            self._move(self._moves(event, "changes"))
        elif "moves" in payload:
            self._move(self._moves(event, "moves"))
        elif event.kind in ("resolve", "undo"):  # logs of earlier versions do not record where rows move back to
            before, self.labels = self.labels, self.moved_back(*self._ledger.reversed_by(event))
            self.probability[self.labels != before] = np.nan

    def _move(self, moves: list[tuple[int, int, IntArray]]) -> None:
        for _, after, rows in moves:
            self.labels[rows] = after
            self.probability[rows] = np.nan
            self.next_cluster = max(self.next_cluster, after + 1)

    def moved_back(self, taken_back: list[Event], made_again: list[Event], but: Iterable[int] = ()) -> IntArray:
        """The labels after corrections are taken back or made again. Rows that were moved again since then stay."""
        labels, fixed = self.labels.copy(), np.zeros(len(self.labels), dtype=bool)
        fixed[list(but)] = True
        for event, is_back in [*((one, True) for one in taken_back), *((one, False) for one in made_again)]:
            for before, after, rows in self._moves(event, "changes"):
                here, there = (after, before) if is_back else (before, after)
                labels[rows[(labels[rows] == here) & ~fixed[rows]]] = there
        return labels

    def _moves(self, event: Event, name: str) -> list[tuple[int, int, IntArray]]:
        return [(before, after, self._rows.ordinals(names)) for names, before, after in event.payload[name]]

    def identified(self, result: FitResult) -> tuple[IntArray, int, npt.NDArray[np.float32]]:
        """Cluster ids of all rows after a fit, the next unused id, and the probabilities. Missing rows keep theirs.

        A fit that keeps corrected clusters keeps the probabilities of the rows that stay.
        """
        names = [key_of(self._rows.ids[row]) for row in result.rows]
        found, next_cluster = stable_ids(self.labels[result.rows], result.labels, self.next_cluster, names)
        labels = self.labels.copy()
        labels[result.rows] = found
        probability = self.probability.copy()
        if result.kept:
            probability[labels != self.labels] = np.nan
        else:
            probability[result.rows] = np.nan if result.probability is None else result.probability
        return labels, next_cluster, probability


def _outdates(event: Event) -> bool:
    """Whether an event changes a setting after which all clusters must be fitted again."""
    changed = event.payload.get("settings", ())
    return event.kind == "setting" and bool(event.payload.get("remakes", set(MAKING) & set(changed)))


def packed_labels(labels: IntArray, probability: npt.NDArray[np.float32] | None = None) -> bytes:
    """Serialise labels, and probabilities if any row has one, as bytes."""
    stream = io.BytesIO()
    if probability is None or np.isnan(probability).all():
        np.savez_compressed(stream, labels=labels.astype(np.int32))
    else:
        np.savez_compressed(stream, labels=labels.astype(np.int32), probability=probability)
    return stream.getvalue()


def groups_of(event: Event, rows: ProjectRows) -> IntArray:
    """The group of each present row in a stored grouping; -1 for rows that were added later."""
    groups = np.full(len(rows.ids), -1, dtype=np.int64)
    stored = unpacked_labels(event.body or b"")[0]
    groups[: len(stored)] = stored
    return np.asarray(groups[rows.present])


def unpacked_labels(body: bytes) -> tuple[IntArray, npt.NDArray[np.float32] | None]:
    """Read labels and probabilities that `packed_labels` wrote."""
    with np.load(io.BytesIO(body), allow_pickle=False) as stored:
        return stored["labels"].astype(np.int64), stored.get("probability")
