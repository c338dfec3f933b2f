"""Other ways to group the rows: named clusterings that differ from the clusters of the project.

A grouping is only an event of the log: it adds no constraint, and the clusters of the project do not depend on it.
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clew._base import quietly
from clew._registry import by_method_name, find_method
from clew.evaluation import normalized_mutual_info_score
from clew.exceptions import DataError, NotFoundError, ParameterError
from clew.session._correcting import with_examples
from clew.session._events import Event
from clew.session._labelling import groups_of, packed_labels
from clew.session._project import ProjectLog
from clew.session._results import Grouping
from clew.session._settings import check_name, check_text
from clew.session._state import SessionState
from clew.session._strategies import has_small_groups

IntArray = npt.NDArray[np.int64]

# Default name of a grouping; the second one is "another way 2".
_USUAL_NAME = "another way"
_LONGEST_NAME = 200


class _Inputs(NamedTuple):
    """Inputs of a new grouping: rows, their ordinals, and the groupings from which it must differ."""

    X: Any
    rows: IntArray
    n_rows: int
    known: list[IntArray]
    random_state: int


class Regrouping:
    """The part of a session that finds and keeps other groupings. `Session` documents its methods."""

    def __init__(self, project: ProjectLog) -> None:
        self._project = project

    @property
    def _state(self) -> SessionState:
        return self._project.state

    def regroup(
        self, name: str | None = None, *, n_clusters: int | None = None, method: str, annotator: str = "me"
    ) -> Grouping:
        """Find a grouping that differs from the clusters and from all stored groupings, and store it under a name."""
        check_name(annotator)
        found = find_method(method, "alternative clusterer")
        with self._project.reading():
            chosen = self._free_name(name)
            given = self._inputs()
        n_groups = len(np.unique(given.known[0])) if n_clusters is None else n_clusters
        model = by_method_name()[found](n_clusters=n_groups, random_state=given.random_state)
        with quietly():
            labels = model.fit(given.X, given=_crossed(given.known)).labels_
        stored = np.full(given.n_rows, -1, dtype=np.int64)
        stored[given.rows] = labels
        payload = {
            "name": chosen,
            "method": found,
            "clusters": len(np.unique(labels)),
            "likeness": round(max(normalized_mutual_info_score(one, labels) for one in given.known), 6),
        }
        with self._project.writing() as transaction:
            self._free_name(chosen)  # another person may have used it meanwhile
            event = self._project.append(transaction, "grouping", annotator, payload, packed_labels(stored))
        with self._project.reading():
            return self._shown(event)

    def groupings(self) -> list[Grouping]:
        """The stored groupings, oldest first."""
        with self._project.reading():
            return [self._shown(event) for event in self._state.ledger.groupings().values()]

    def labels(self, name: str) -> dict[Any, int]:
        """The group of each row in a stored grouping. Rows that were added later are left out."""
        with self._project.reading():
            rows, groups = self._state.rows, groups_of(self._kept(name), self._state.rows)
            ids = rows.names(range(len(groups)))
            return {row: group for row, group in zip(ids, groups.tolist(), strict=True) if group >= 0}

    def remove(self, name: str, *, annotator: str = "me") -> None:
        """Remove a grouping. The log keeps it, and `undo` brings it back."""
        check_name(annotator)
        with self._project.writing() as transaction:
            self._kept(name)
            self._project.append(transaction, "grouping", annotator, {"name": name, "removed": True})

    def _inputs(self) -> _Inputs:
        state = self._state
        if has_small_groups(state.ledger.settings, state.known.driver):
            raise ParameterError("The project has small groups, and another grouping needs few large clusters.")
        labels = state.labelling.present
        if len(np.unique(labels[labels >= 0])) < 2:
            raise DataError(
                "There are fewer than two clusters, so every grouping is unlike them. Answer some questions, or "
                "set the number of clusters."
            )
        known = [labels, *(groups_of(event, state.rows) for event in state.ledger.groupings().values())]
        rows = state.rows
        return _Inputs(rows.X, rows.present, len(rows.ids), known, int(state.ledger.settings["random_state"]))

    def _free_name(self, name: str | None) -> str:
        """Return an unused name; raise if the given name is already used."""
        kept = self._state.ledger.groupings()
        if name is None:
            usual = (_USUAL_NAME if place == 1 else f"{_USUAL_NAME} {place}" for place in count(1))
            return next(one for one in usual if one not in kept)
        word = (check_text("name", name) or "").strip()
        if not word or len(word) > _LONGEST_NAME:
            raise ParameterError(f"name={name!r}: expected 1 to {_LONGEST_NAME} characters.")
        if word in kept:
            raise ParameterError(f"There is a grouping {word!r} already. Choose another name, or remove it first.")
        return word

    def _kept(self, name: str) -> Event:
        kept = self._state.ledger.groupings()
        if name not in kept:
            names = f"There are {', '.join(map(repr, kept))}." if kept else "There is none yet."
            raise NotFoundError(f"There is no grouping {name!r}. {names}")
        return kept[name]

    def _shown(self, event: Event) -> Grouping:
        rows, payload = self._state.rows, event.payload
        groups, clusters = groups_of(event, rows), self._state.labelling.present
        ids = np.unique(clusters[clusters >= 0])
        overlap = [
            [int(((groups == group) & (clusters == cluster)).sum()) for cluster in ids]
            for group in np.unique(groups[groups >= 0])
        ]
        return Grouping(
            payload["name"], with_examples(rows, groups), payload["likeness"], payload["method"], event.annotator,
            event.time, ids.tolist(), overlap,
        )  # fmt: skip


def _crossed(known: list[IntArray]) -> IntArray:
    """Cross several clusterings: rows are together if they are together in all. Noise in one of them is noise."""
    codes = np.unique(np.column_stack(known), axis=0, return_inverse=True)[1].ravel()
    return np.where(np.min(known, axis=0) < 0, -1, codes)
