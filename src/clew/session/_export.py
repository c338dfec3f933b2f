"""Export labels, constraints or answers as files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from clew._tables import write_table
from clew.exceptions import ParameterError
from clew.session._state import SessionState

WHAT = ("labels", "constraints", "answers")
_COLUMNS = ("id_1", "id_2", "answer", "confidence", "annotator", "time", "seconds", "source", "comment")


def export(state: SessionState, what: str, path: str | os.PathLike[str]) -> None:
    """Write labels, constraints or answers as csv, tsv, jsonl or parquet. An error leaves no partial file."""
    if what not in WHAT:
        raise ParameterError(f"what={what!r}: expected {', '.join(WHAT[:-1])} or {WHAT[-1]}.")
    if what == "constraints":
        known = state.known.constraints()
        ids = np.array([state.rows.ids[row] for row in state.rows.present], dtype=object)
        known._replace(ids=ids).to_file(path)
    else:
        write_table(path, _labels(state) if what == "labels" else _answers(state))


def _labels(state: SessionState) -> dict[str, Any]:
    names = {-1: "noise"} | state.ledger.names()
    rows, clusters = state.rows.present, state.labelling.present.tolist()
    return {
        "id": _column([state.rows.ids[row] for row in rows]),
        "cluster": np.array(clusters, dtype=np.int64),
        "name": _column([names.get(cluster, "") for cluster in clusters]),
    }


def _answers(state: SessionState) -> dict[str, Any]:
    said = [(one, record.flag) for record in state.ledger.answers() for one in record.records()]
    columns = {name: _column([getattr(one, name) for one, _ in said]) for name in _COLUMNS}
    return columns | {"flag": _column([flag for _, flag in said])}


def _column(values: list[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
