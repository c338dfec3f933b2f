"""Rows and answers from elsewhere, and results as files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from clew.active._view import mean_row, squared_distances
from clew.constraints import AnswerRecord, key_of
from clew.exceptions import ParameterError
from clew.session import _export
from clew.session._correcting import Correcting
from clew.session._import import answers_in
from clew.session._settings import check_confidence, check_name, check_seconds, check_text, utc
from clew.session._table import ids_of, like, packed_rows, row_hashes, table_of


class Exchanging(Correcting):
    """The part of a session that takes in rows and answers, and writes files."""

    def add_rows(self, data: Any = None, *, annotator: str = "me") -> list[Any]:
        """Take in new rows; each joins the cluster nearest to it until the next fit. Gives their ids.

        Parameters
        ----------
        data : path, frame or array, optional
            Rows with the columns of the project; they are kept in the log. Unless given, the rows that were appended to
            the data file since.
        annotator : str
        """
        check_name(annotator)
        with self._writing() as transaction:
            ids, body = self._appended() if data is None else self._given(data)
            if not ids:
                return []
            payload = {"ids": ids, "clusters": self._nearest_clusters(body, len(ids)), "from_file": data is None}
            self._append(transaction, "rows_added", annotator, payload, body)
        return ids

    def _appended(self) -> tuple[list[Any], bytes]:
        """Rows of the data file that the project does not know."""
        state = self._state
        table, id_column = self._read_base(state.ledger), state.settings["id_column"]
        names = ids_of(table, id_column)
        fresh = [row for row, name in enumerate(names) if key_of(name) not in state.ordinal]
        ids = [names[row] for row in fresh]
        return ids, packed_rows(ids, row_hashes(table, state.settings["table_columns"])[fresh], None)

    def _given(self, data: Any) -> tuple[list[Any], bytes]:
        state = self._state
        columns, id_column = state.settings["table_columns"], state.settings["id_column"]
        table = like(table_of(data, id_column), columns)
        if id_column is None:
            ids: list[Any] = [f"new-{len(state.rows.ids) + row}" for row in range(table.n_rows)]
        else:
            ids = ids_of(table, id_column)
        twice = next((name for name in ids if key_of(name) in state.ordinal), None)
        if twice is not None:
            raise ParameterError(f"Row {twice!r} is known already. New rows need ids of their own.")
        return ids, packed_rows(ids, row_hashes(table, columns), table)

    def _nearest_clusters(self, body: bytes, n_new: int) -> list[int]:
        """The cluster nearest to each new row, with all rows encoded together; -1 while there are none."""
        state = self._state
        grown = state.with_rows(body)
        labels = np.concatenate([state.labels, np.full(n_new, -1)])[grown.present]
        clusters = np.unique(labels[labels >= 0])
        if not len(clusters):
            return [-1] * n_new
        centers = np.array([mean_row(grown.X, np.flatnonzero(labels == one)) for one in clusters])
        new = grown.position[len(state.labels) :]
        return clusters[squared_distances(grown.X, new, centers).argmin(axis=1)].tolist()

    def import_answers(self, answers: Any, *, annotator: str | None = None, format: str | None = None) -> int:
        """Take in answers from elsewhere, all of them or none; gives how many were new.

        Parameters
        ----------
        answers : path or records
            A file of ours (``id_1, id_2, answer[, confidence, annotator, time, seconds, comment]``) or of another
            tool, see `clew.constraints.read_answers`; or such records as dicts or tuples of three.
        annotator : str, optional
            Who gave them, where they do not say.
        format : str, optional
            The tool that wrote the file; found from its content unless given.
        """
        with self._reading():
            found = answers_in(answers, format, self._state.rows.records)
        who = "import" if annotator is None else check_name(annotator)
        with self._writing() as transaction:
            have = {
                (*sorted((key_of(one.left), key_of(one.right))), one.answer, one.annotator)
                for one in self._state.ledger.records.values()
                if one.kind != "which"
            }
            new = []
            for one in found:
                person = who if one.annotator is None else check_name(one.annotator)
                payload = self._imported(one)
                identity = (*sorted((key_of(one.id_1), key_of(one.id_2))), one.answer, person)
                if identity not in have:
                    have.add(identity)
                    new.append((person, payload))
            if not new:
                return 0
            events = self._append(transaction, "import", who, {"count": len(new), "source": new[0][1]["source"]})
            batch, now = {"batch": events[0].seq}, utc(self._clock())
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

    def export(self, what: str, path: str | os.PathLike[str]) -> None:
        """Write "labels", "constraints" or "answers" as csv, tsv, jsonl or parquet, whole or not at all."""
        with self._reading():
            if what == "labels" and self._state.is_stale:
                self.fit()
            _export.export(self._state, what, path)
