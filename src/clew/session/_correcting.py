"""Clusters: fitting them, and correcting them by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.active._view import mean_row, squared_distances
from clew.exceptions import ParameterError
from clew.session import _conflicts
from clew.session._clustering import FitPlan, FitResult
from clew.session._core import Core
from clew.session._corrections import KINDS, Correction, never_rows
from clew.session._results import Cluster, Corrected
from clew.session._settings import check_cluster, check_name, check_text, check_word
from clew.session._state import packed_labels

# Rows shown for a cluster.
_SHOWN = 6
_ARGUMENTS = {
    "merge": ("cluster", "other"),
    "split": ("cluster", "rows"),
    "move": ("row", "cluster"),
    "never": ("clusters", "rows"),
}


class Correcting(Core):
    """The part of a session that makes clusters."""

    # -- fitting ---------------------------------------------------------------------------------------------------

    def plan_fit(self) -> FitPlan:
        """All that a fit needs now; its `run` may go on in another thread while people answer."""
        with self._reading():
            self._catch_up(self._store.events(self._version))
            return self._state.plan()

    def adopt(self, result: FitResult) -> bool:
        """Make the result of a plan the clusters; False if it came too late, after a correction or new rows."""
        with self._writing() as transaction:
            state = self._state
            if state.is_late(result):
                return False
            labels, next_cluster = state.identified(result)
            if state.fitted_version and np.array_equal(labels, state.labels) and result.notes == state.notes:
                state.fitted_version = max(state.fitted_version, result.version)
                return True
            payload = {
                "version": result.version,
                "next_cluster": next_cluster,
                "notes": list(result.notes),
                "clusters": len(np.unique(labels[result.rows])),
            }
            self._append(transaction, "fit", "", payload, packed_labels(labels))
        return True

    def fit(self) -> dict[Any, int]:
        """Cluster anew with everything said so far; ids of clusters that stay are kept."""
        while not self.adopt(self.plan_fit().run()):
            pass
        return self.labels(refit=False)

    def labels(self, *, refit: bool = True) -> dict[Any, int]:
        """Cluster id of each row that is present; fits first if something was said since, unless `refit` is False."""
        with self._reading():
            if refit and self._state.is_stale:
                self.fit()
            rows, labels = self._state.rows, self._state.labels
            return {rows.ids[row]: int(labels[row]) for row in rows.present if labels[row] >= 0}

    def clusters(self, *, refit: bool = True) -> list[Cluster]:
        """The clusters by id, with typical and borderline rows."""
        with self._reading():
            if refit and self._state.is_stale:
                self.fit()
            rows, names = self._state.rows, self._state.ledger.names()
            labels = self._state.labels[rows.present]
            ids = np.unique(labels[labels >= 0])
            centers = np.array([mean_row(rows.X, np.flatnonzero(labels == one)) for one in ids])
            found = []
            for place, cluster in enumerate(ids.tolist()):
                members = np.flatnonzero(labels == cluster)
                typical, borderline = _typical_and_borderline(squared_distances(rows.X, members, centers), place)
                shown = rows.names(members[typical]), rows.names(members[borderline])
                found.append(Cluster(cluster, names.get(cluster), len(members), *shown))
            return found

    def name_cluster(self, cluster: int, name: str, *, annotator: str = "me") -> None:
        """Give a cluster a name, which stays with its id; an empty name takes it away."""
        check_name(annotator)
        self._require_clusters()
        with self._writing() as transaction:
            self._state.clusters.rows(check_cluster(cluster))
            payload = {"cluster": int(cluster), "name": check_text("name", name) or ""}
            self._append(transaction, "name", annotator, payload)

    def _require_clusters(self) -> None:
        with self._reading():
            if not self._state.fitted_version:
                self.fit()

    # -- correcting ------------------------------------------------------------------------------------------------

    def merge(self, cluster: int, other: int, *, annotator: str = "me") -> Corrected:
        """Two clusters are one: all their rows stay together in every later fit. The first keeps its id."""
        return self._correct(annotator, "merge", cluster, other)

    def split(self, cluster: int, rows: Sequence[Any], *, annotator: str = "me") -> Corrected:
        """Some rows of a cluster become one of their own, which gets a new id."""
        return self._correct(annotator, "split", cluster, rows)

    def move(self, row: Any, cluster: int | None = None, *, annotator: str = "me") -> Corrected:
        """A row belongs to another cluster, or (None) out of its own into one by itself."""
        return self._correct(annotator, "move", row, cluster)

    def never(
        self, *, clusters: Sequence[int] | None = None, rows: Sequence[Any] | None = None, annotator: str = "me"
    ) -> Corrected:
        """Two clusters, or two rows, are never together."""
        return self._correct(annotator, "never", clusters, rows)

    def preview(self, kind: str, *args: Any, **named: Any) -> Corrected:
        """What a correction would change, without making it: ``preview("merge", 0, 3)``."""
        check_word("kind", kind, KINDS)
        values = dict(zip(_ARGUMENTS[kind], args, strict=False)) | named
        if set(values) - set(_ARGUMENTS[kind]) or len(args) > 2:
            raise ParameterError(f"preview({kind!r}): expected {' and '.join(_ARGUMENTS[kind])}.")
        self._require_clusters()
        with self._reading():
            proposed = self._proposed(kind, *(values.get(name) for name in _ARGUMENTS[kind]))
            return self._previewed(proposed, self._state.conflicts_with(proposed))

    def _correct(self, annotator: str, kind: str, *args: Any) -> Corrected:
        check_name(annotator)
        self._require_clusters()
        with self._writing() as transaction:
            proposed = self._proposed(kind, *args)
            contradicts = self._state.conflicts_with(proposed)
            preview = self._previewed(proposed, contradicts)
            payload = proposed.payload(self._state.rows.ids) | {"conflict": contradicts}
            seq = self._append(transaction, "correction", annotator, payload)[0].seq
        with self._reading():
            conflict = _conflicts.conflict_of(self._state, seq) if contradicts else None
        return Corrected(seq, preview.changed, preview.cluster, conflict)

    def _previewed(self, proposed: Correction, contradicts: bool) -> Corrected:
        if contradicts:
            return Corrected(None, {}, None, _conflicts.conflict_of(self._state, 0, proposed))
        ids = self._state.rows.ids
        changed = {ids[row]: (before, after) for rows, before, after in proposed.changes for row in rows}
        return Corrected(None, changed, proposed.changes[0][2] if proposed.changes else None)

    def _proposed(self, kind: str, first: Any, second: Any) -> Correction:
        """A correction about the clusters as they are now."""
        clusters, new_id = self._state.clusters, self._state.next_cluster
        if kind == "merge":
            return clusters.merge(check_cluster(first), check_cluster(second))
        if kind == "split":
            return clusters.split(check_cluster(first), [self._ordinal(row) for row in _listed(second)], new_id)
        if kind == "move":
            return clusters.move(self._ordinal(first), None if second is None else check_cluster(second), new_id)
        if (first is None) == (second is None) or len(_listed(second if first is None else first)) != 2:
            raise ParameterError("never: give two clusters (clusters=[0, 3]) or two rows (rows=['a', 'b']).")
        if first is None:
            return never_rows(*map(self._ordinal, second))
        return clusters.never(*map(check_cluster, first))

    def _ordinal(self, row: Any) -> int:
        self._state.rows.find_present(row)
        return self._state.rows.find(row)


def _listed(rows: Any) -> Sequence[Any]:
    if isinstance(rows, str | bytes) or not isinstance(rows, Sequence | np.ndarray | set | frozenset):
        raise ParameterError(f"{rows!r}: expected a list of ids.")
    return list(rows)


def _typical_and_borderline(far: Any, own: int) -> tuple[Any, Any]:
    """Rows nearest to the centre of their cluster, and those that are nearly as near to another one."""
    here = far[:, own].copy()
    typical = np.argsort(here, kind="stable")[:_SHOWN]
    if far.shape[1] == 1:
        return typical, typical[:0]
    far[:, own] = np.inf
    return typical, np.argsort(far.min(axis=1) - here, kind="stable")[:_SHOWN]
