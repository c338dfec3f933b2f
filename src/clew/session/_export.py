"""Labels, constraints and answers as files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from clew._tables import write_table
from clew.exceptions import ParameterError
from clew.session._state import State

WHAT = ("labels", "constraints", "answers")


def export(state: State, what: str, path: str | os.PathLike[str]) -> None:
    """Write one of them as csv, tsv, jsonl or parquet, whole or not at all."""
    if what not in WHAT:
        raise ParameterError(f"what={what!r}: expected {', '.join(WHAT[:-1])} or {WHAT[-1]}.")
    if what == "constraints":
        known = state.constraints()
        ids = np.array([state.rows.ids[row] for row in state.rows.present], dtype=object)
        known._replace(ids=ids).to_file(path)
    else:
        write_table(path, _labels(state) if what == "labels" else _answers(state))


def _labels(state: State) -> dict[str, Any]:
    names = state.ledger.names()
    rows = state.rows.present[state.labels[state.rows.present] >= 0]
    clusters = state.labels[rows].tolist()
    return {
        "id": _column([state.rows.ids[row] for row in rows]),
        "cluster": np.array(clusters, dtype=np.int64),
        "name": _column([names.get(cluster, "") for cluster in clusters]),
    }


def _answers(state: State) -> dict[str, Any]:
    records = state.ledger.answers()
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "id_1",
            "id_2",
            "answer",
            "confidence",
            "annotator",
            "time",
            "seconds",
            "source",
            "comment",
            "flag",
        )
    }
    for record in records:
        pairs = [(record.left, record.right, record.answer)]
        if record.kind == "which":
            pairs = [
                (record.left, one, record.answer if record.answer != "same" or one == record.right else "different")
                for one in record.candidates
            ]
        for left, right, answer in pairs:
            values = (
                left, right, answer, record.confidence, record.annotator, record.time, record.seconds, record.source,
                record.comment, record.flag,
            )  # fmt: skip
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
    return {name: _column(values) for name, values in columns.items()}


def _column(values: list[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
