"""Add rows, import answers and export files."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew._words import name_key
from clew.active._distances import mean_row, squared_distances
from clew.constraints import AnswerRecord, key_of
from clew.datasets import Table
from clew.exceptions import ParameterError
from clew.matching import MatchClustering
from clew.session._growth import Growth
from clew.session._import import answers_in
from clew.session._project import ProjectLog
from clew.session._settings import check_confidence, check_name, check_seconds, check_text, utc
from clew.session._state import SessionState
from clew.session._strategies import has_small_groups
from clew.session._table import ProjectRows


class Exchanging:
    """The part of a session that adds rows, imports answers and writes files. `Session` documents its methods."""

    def __init__(self, project: ProjectLog) -> None:
        self._project = project

    @property
    def _state(self) -> SessionState:
        return self._project.state

    def add_rows(self, data: Any = None, *, annotator: str = "me") -> list[Any]:
        """Add new rows. Each row joins the nearest cluster until the next fit, or starts a small group if it matches
        none. Returns the ids of the new rows."""
        check_name(annotator)
        table = None if data is None else self.read_rows(data)
        while True:
            with self._project.reading():
                growth = self._state.growth()
            if table is None:
                growth.add_appended()
            else:
                growth.add(table)
            if not growth.ids:
                return []
            model = self._match_model(growth)
            with self._project.writing() as transaction:
                if not self._state.take_growth(growth):
                    continue  # another call has changed rows or settings meanwhile
                clusters = (
                    self._nearest_clusters(growth.rows, growth.ids)
                    if model is None
                    else self._matching_groups(model, growth.rows, growth.ids)
                )
                payload = {"ids": growth.ids, "clusters": clusters, "from_file": data is None}
                self._project.append(transaction, "rows_added", annotator, payload, growth.body)
            return growth.ids

    def read_rows(self, data: Any) -> Table:
        """Read rows with the columns of the project, without adding them. `add_rows` takes the table."""
        with self._project.reading():
            growth = self._state.growth()
        return growth.read(data)

    def _match_model(self, growth: Growth) -> MatchClustering | None:
        """A model of the rows so far that tells which group a new row matches. None if groups are large."""
        old = growth.rows.position[growth.before.present]
        with self._project.reading():
            if not has_small_groups(growth.settings, self._state.known.driver):
                return None
            known = self._state.known.constraints().at_least(1.0)
        if len(known) != len(old) or (old < 0).any():
            return None  # the data file has changed meanwhile
        return MatchClustering(random_state=0).fit(growth.rows.matched(old), constraints=known)

    def _matching_groups(self, model: MatchClustering, grown: ProjectRows, ids: list[Any]) -> list[int]:
        """The group that each new row matches best; rows that match none start groups with unused numbers."""
        labelling = self._state.labelling
        if not (labelling.present >= 0).all():
            return [-1] * len(ids)
        new = np.array(grown.positions(ids))
        # Use the current groups, not those of the model, because people may have corrected them since.
        model.labels_ = labelling.present
        found = model.predict(grown.matched(new))
        unused = labelling.next_cluster - int(model.labels_.max()) - 1
        joined = np.where(found > model.labels_.max(), found + unused, found)
        return self._one_per_source(joined[:, np.newaxis], grown, ids)

    def _one_per_source(self, wishes: NDArray[Any], grown: ProjectRows, ids: list[Any]) -> list[int]:
        """The first cluster in each new row's list of `wishes` that has no row of its source, else a new cluster."""
        clusters, sources = wishes[:, 0].tolist(), grown.sources
        if sources is None:
            return clusters
        labels = self._state.labelling.labels
        places = grown.position[: len(labels)]
        taken = {
            (cluster, sources[place])
            for cluster, place in zip(labels.tolist(), places.tolist(), strict=True)
            if place >= 0
        }
        unused = max(self._state.labelling.next_cluster, int(wishes.max()) + 1)
        for row, place in enumerate(grown.positions(ids)):
            if sources[place]:
                free = (one for one in wishes[row].tolist() if (one, sources[place]) not in taken)
                clusters[row] = next(free, unused)
                unused += clusters[row] == unused
                taken.add((clusters[row], sources[place]))
        return clusters

    def _nearest_clusters(self, grown: ProjectRows, ids: list[Any]) -> list[int]:
        """The nearest cluster of each new row, with all rows encoded together. -1 while there are no clusters.

        If rows have sources, the nearest cluster without a row of the same source.
        """
        now = self._state.labelling.labels
        new = np.array(grown.positions(ids))
        everyone = np.full(len(grown.ids), -1)
        everyone[: len(now)] = now
        labels = everyone[grown.present]
        labels[new] = -1
        clusters = np.unique(labels[labels >= 0])
        if not len(clusters):
            return [-1] * len(ids)
        centers = np.array([mean_row(grown.X, np.flatnonzero(labels == one)) for one in clusters])
        far = squared_distances(grown.X, new, centers)
        if grown.sources is None:
            return clusters[far.argmin(axis=1)].tolist()
        return self._one_per_source(clusters[far.argsort(axis=1, kind="stable")], grown, ids)

    def read_answers(self, answers: Any, *, format: str | None = None) -> list[AnswerRecord]:
        """Read answers about the rows of the project, without recording them. `import_answers` takes the list."""
        with self._project.reading():
            records = self._state.rows.records
        return answers_in(answers, format, records)

    def import_answers(self, answers: Any, *, annotator: str | None = None, format: str | None = None) -> int:
        """Import answers, all of them or none. Returns the number of new answers."""
        found = self.read_answers(answers, format=format)
        who = "import" if annotator is None else check_name(annotator)
        with self._project.writing() as transaction:
            have = {
                (*sorted((key_of(one.left), key_of(one.right))), one.answer, name_key(one.annotator), one.certain)
                for one in self._state.ledger.records.values()
                if one.kind != "which"
            }
            new = []
            for one in found:
                person = who if one.annotator is None else check_name(one.annotator)
                is_fact = one.certain and annotator is None
                payload = self._imported(one) | ({"certain": True} if is_fact else {})
                identity = (*sorted((key_of(one.id_1), key_of(one.id_2))), one.answer, name_key(person), is_fact)
                if identity not in have:
                    have.add(identity)
                    new.append((person, payload))
            if not new:
                return 0
            self._state.known.require_consistent([payload for _, payload in new if "certain" in payload])
            event = self._project.append(transaction, "import", who, {"count": len(new), "source": new[0][1]["source"]})
            batch, now = {"batch": event.seq}, utc(self._project.clock())
            transaction.append([("answer", now, person, payload | batch, None) for person, payload in new])
        return len(new)

    def _imported(self, one: AnswerRecord) -> dict[str, Any]:
        rows = self._state.rows
        left, right = rows.ids[rows.find(one.id_1)], rows.ids[rows.find(one.id_2)]
        if key_of(left) == key_of(right):
            raise ParameterError(f"An answer names row {left!r} twice. Remove it.")
        payload = {
            "kind": "pair", "left": left, "right": right, "answer": one.answer, "implied": 0,
            "source": one.source or "records",
            "confidence": check_confidence(one.confidence), "seconds": check_seconds(one.seconds),
            "comment": check_text("comment", one.comment),
        }  # fmt: skip
        return payload | ({} if one.time is None else {"time": str(one.time)})
