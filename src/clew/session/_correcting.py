"""Fit clusters, show them, and correct them by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clew.active._distances import mean_row, squared_distances
from clew.exceptions import ParameterError
from clew.session._clustering import FitPlan, FitResult, PlacedRows
from clew.session._corrections import KINDS, Correction, never_rows
from clew.session._labelling import packed_labels
from clew.session._project import ProjectLog
from clew.session._results import Cluster, Corrected
from clew.session._settings import check_cluster, check_name, check_text, check_word
from clew.session._state import SessionState
from clew.session._table import ProjectRows

# Number of typical and of borderline rows shown per cluster.
_SHOWN = 6
_ARGUMENTS = {
    "merge": ("cluster", "other"),
    "split": ("cluster", "rows"),
    "move": ("row", "cluster"),
    "never": ("clusters", "rows"),
}


class Correcting:
    """The part of a session that fits and corrects clusters. `Session` documents its methods."""

    def __init__(self, project: ProjectLog) -> None:
        self._project = project

    @property
    def _state(self) -> SessionState:
        return self._project.state

    # -- fitting ---------------------------------------------------------------------------------------------------

    def plan_fit(self) -> FitPlan:
        """Return a plan with all inputs of a fit. Its `run` may go on in another thread while people answer."""
        with self._project.reading():
            self._project.catch_up()
            return self._state.planner.plan()

    def placed_rows(self) -> PlacedRows:
        """The vectors of the present rows and their current clusters, without a fit."""
        with self._project.reading():
            self._project.catch_up()
            state = self._state
            seed = int(state.ledger.settings["random_state"])
            return PlacedRows(state.ledger.version, state.rows.X, seed, state.labelling.present)

    def adopt(self, result: FitResult) -> bool:
        """Use the result of a plan as the clusters. Returns False if a correction or new rows were added meanwhile."""
        with self._project.writing() as transaction:
            ledger, now = self._state.ledger, self._state.labelling
            if self._state.planner.is_late(result):
                return False
            labels, next_cluster, probability = now.identified(result)
            unchanged = np.array_equal(labels, now.labels) and result.notes == now.notes
            unchanged &= np.array_equal(probability, now.probability, equal_nan=True)
            confirms = bool(ledger.fitted_version) and unchanged and (result.kept or not now.is_outdated)
            if confirms and not ledger.is_stale:
                return True
            payload = {
                "version": result.version,
                "next_cluster": next_cluster,
                "notes": list(result.notes),
                "clusters": len(np.unique(labels[result.rows])),
                "kept": result.kept,
            }
            # A fit that confirms the labels stores no copy of them: it says that they are up to date.
            body = None if confirms else packed_labels(labels, probability)
            self._project.append(transaction, "fit", "", payload, body)
        return True

    def is_late(self, plan: FitPlan) -> bool:
        """Whether corrections, rows or settings have changed since the plan, so that its result would be refused."""
        with self._project.reading():
            return self._state.planner.is_late(plan)

    def fit(self) -> dict[Any, int]:
        """Cluster again with all answers and corrections. Clusters that persist keep their ids."""
        while not self.adopt(self.plan_fit().run()):
            pass
        return self.labels(refit=False)

    def labels(self, *, refit: bool = True) -> dict[Any, int]:
        """Cluster id of each present row. Fits first if the clusters are stale, unless `refit` is False."""
        with self._project.reading():
            if refit and self._state.ledger.is_stale:
                self.fit()
            rows, labels = self._state.rows, self._state.labelling.labels
            return {rows.ids[row]: int(labels[row]) for row in rows.present if labels[row] >= 0}

    def probabilities(self, *, refit: bool = True) -> dict[Any, float]:
        """Probability of the cluster of each present row that has one."""
        with self._project.reading():
            if refit and self._state.ledger.is_stale:
                self.fit()
            rows, found = self._state.rows, self._state.probability().tolist()
            return {rows.ids[row]: one for row, one in zip(rows.present, found, strict=True) if one == one}

    def clusters(self, *, refit: bool = True) -> list[Cluster]:
        """The clusters in order of their ids, with typical and borderline rows."""
        with self._project.reading():
            if refit and self._state.ledger.is_stale:
                self.fit()
            now = self._state.labelling
            return with_examples(self._state.rows, now.present, self._state.ledger.names(), self._state.probability())

    def name_cluster(self, cluster: int, name: str, *, annotator: str = "me") -> None:
        """Name a cluster. The name belongs to the cluster id. An empty name removes it."""
        check_name(annotator)
        self._require_clusters()
        with self._project.writing() as transaction:
            self._state.labelling.clusters.rows(check_cluster(cluster))
            payload = {"cluster": int(cluster), "name": check_text("name", name) or ""}
            self._project.append(transaction, "name", annotator, payload)

    def _require_clusters(self) -> None:
        with self._project.reading():
            if not self._state.ledger.fitted_version:
                self.fit()

    # -- correcting ------------------------------------------------------------------------------------------------

    def merge(self, cluster: int, other: int, *, annotator: str = "me") -> Corrected:
        """Merge two clusters. Their rows stay together in every later fit. The first cluster keeps its id."""
        return self._correct(annotator, "merge", cluster, other)

    def split(self, cluster: int, rows: Sequence[Any], *, annotator: str = "me") -> Corrected:
        """Split some rows off a cluster into a new cluster with a new id."""
        return self._correct(annotator, "split", cluster, rows)

    def move(self, row: Any, cluster: int | None = None, *, annotator: str = "me") -> Corrected:
        """Move a row to another cluster, or with None into a new cluster of its own."""
        return self._correct(annotator, "move", row, cluster)

    def never(
        self, *, clusters: Sequence[int] | None = None, rows: Sequence[Any] | None = None, annotator: str = "me"
    ) -> Corrected:
        """Keep two clusters, or two rows, apart in every later fit."""
        return self._correct(annotator, "never", clusters, rows)

    def preview(self, kind: str, *args: Any, **named: Any) -> Corrected:
        """Return the changes that a correction would make, without making it: ``preview("merge", 0, 3)``."""
        check_word("kind", kind, KINDS)
        values = dict(zip(_ARGUMENTS[kind], args, strict=False)) | named
        if set(values) - set(_ARGUMENTS[kind]) or len(args) > 2:
            raise ParameterError(f"preview({kind!r}): expected {' and '.join(_ARGUMENTS[kind])}.")
        self._require_clusters()
        with self._project.reading():
            proposed = self._proposed(kind, *(values.get(name) for name in _ARGUMENTS[kind]))
            return self._previewed(*self._state.effects.of_correction(proposed))

    def _correct(self, annotator: str, kind: str, *args: Any) -> Corrected:
        check_name(annotator)
        self._require_clusters()
        with self._project.writing() as transaction:
            proposed, contradicts = self._state.effects.of_correction(self._proposed(kind, *args))
            preview = self._previewed(proposed, contradicts)
            payload = proposed.payload(self._state.rows.ids) | {"conflict": contradicts}
            seq = self._project.append(transaction, "correction", annotator, payload).seq
        with self._project.reading():
            conflict = self._state.conflicts.of(seq) if contradicts else None
        return Corrected(seq, preview.changed, preview.cluster, conflict)

    def _previewed(self, proposed: Correction, contradicts: bool) -> Corrected:
        if contradicts:
            return Corrected(None, {}, None, self._state.conflicts.of(0, proposed))
        ids = self._state.rows.ids
        changed = {ids[row]: (before, after) for rows, before, after in proposed.changes for row in rows}
        return Corrected(None, changed, proposed.changes[0][2] if proposed.changes else None)

    def _proposed(self, kind: str, first: Any, second: Any) -> Correction:
        """Build a correction of the current clusters from the arguments of a call."""
        clusters, new_id = self._state.labelling.clusters, self._state.labelling.next_cluster
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


def with_examples(
    rows: ProjectRows, labels: Any, names: Mapping[int, str] | None = None, probability: Any = None
) -> list[Cluster]:
    """The clusters of the present rows in order of their ids, with typical and borderline rows."""
    ids, sizes = np.unique(labels[labels >= 0], return_counts=True)
    if not len(ids):
        return []
    order = np.argsort(labels, kind="stable")[len(labels) - sizes.sum() :]
    members_of = np.split(order, np.cumsum(sizes)[:-1])
    centers = np.array([mean_row(rows.X, members) for members in members_of])
    chances = np.full(len(labels), np.nan) if probability is None else probability
    found = []
    for place, (cluster, members) in enumerate(zip(ids.tolist(), members_of, strict=True)):
        if len(ids) > 1 and len(members) <= _SHOWN and not np.isnan(chances[members]).any():
            # All its rows are shown, and their order needs no other cluster. There may be very many such clusters.
            here = squared_distances(rows.X, members, centers[place : place + 1])[:, 0]
            typical, borderline = np.argsort(here, kind="stable"), np.lexsort((-here, chances[members]))
        else:
            far = squared_distances(rows.X, members, centers)
            typical, borderline = _typical_and_borderline(far, place, chances[members])
        shown = rows.names(members[typical]), rows.names(members[borderline])
        found.append(Cluster(cluster, (names or {}).get(cluster), len(members), *shown))
    return found


def _typical_and_borderline(far: Any, own: int, chances: Any) -> tuple[Any, Any]:
    """Rows nearest to the centre of their cluster, and rows almost as near to another centre.

    If rows have probabilities, the borderline rows are the least probable ones.
    """
    here = far[:, own].copy()
    typical = np.argsort(here, kind="stable")[:_SHOWN]
    if far.shape[1] == 1:
        return typical, typical[:0]
    far[:, own] = np.inf
    if not np.isnan(chances).all():
        return typical, np.lexsort((far.min(axis=1) - here, chances))[: min(_SHOWN, int((~np.isnan(chances)).sum()))]
    return typical, np.argsort(far.min(axis=1) - here, kind="stable")[:_SHOWN]
