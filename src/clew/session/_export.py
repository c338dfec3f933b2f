"""Export labels, constraints or answers as files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from clew._tables import write_table
from clew.datasets import golden_records
from clew.exceptions import ParameterError
from clew.session._labelling import groups_of
from clew.session._state import SessionState

WHAT = ("labels", "groupings", "golden", "constraints", "answers")
_COLUMNS = ("id_1", "id_2", "answer", "confidence", "annotator", "time", "seconds", "source", "comment")


def export(state: SessionState, what: str, path: str | os.PathLike[str]) -> None:
    """Write labels, other groupings, golden records, constraints or answers. An error leaves no partial file."""
    if what not in WHAT:
        raise ParameterError(f"what={what!r}: expected {', '.join(WHAT[:-1])} or {WHAT[-1]}.")
    if what == "constraints":
        known = state.known.constraints()
        ids = np.array([state.rows.ids[row] for row in state.rows.present], dtype=object)
        known._replace(ids=ids).to_file(path)
    else:
        tables = {"labels": _labels, "groupings": _groupings, "golden": _golden, "answers": _answers}
        write_table(path, tables[what](state))


def _labels(state: SessionState) -> dict[str, Any]:
    names = {-1: "noise"} | state.ledger.names()
    rows, clusters = state.rows.present, state.labelling.present.tolist()
    return {
        "id": _column([state.rows.ids[row] for row in rows]),
        "cluster": np.array(clusters, dtype=np.int64),
        "name": _column([names.get(cluster, "") for cluster in clusters]),
    } | _probability(state)


def _groupings(state: SessionState) -> dict[str, Any]:
    """The cluster of each row, and its group by each kept grouping; -1 for rows that were added later."""
    labels = _labels(state)
    found = {"id": labels["id"], "cluster": labels["cluster"]}
    for name, event in state.ledger.groupings().items():
        found[name if name not in found else f"{name} (grouping)"] = groups_of(event, state.rows)
    return found


def _golden(state: SessionState) -> dict[str, Any]:
    """A row for each cluster: its number, its size, the lowest probability of its rows, and the golden values."""
    table, labels = state.rows.encoded.table, state.labelling.present
    values = table.only(
        name for name, column in table.values.items() if name != state.ledger.settings["id_column"] and column.ndim == 1
    )
    clusters, place, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    found: dict[str, Any] = {"cluster": clusters, "n_rows": sizes}
    for name, probability in _probability(state).items():
        lowest = np.ones(len(clusters))
        np.minimum.at(lowest, place, probability)
        found[name] = lowest
    taken = {
        name if name not in found else f"{name} of the record": column
        for name, column in golden_records(values, labels).values.items()
    }
    return found | taken


def _probability(state: SessionState) -> dict[str, Any]:
    """Probability that each row belongs to its cluster, by the last fit or by the strategy that made the clusters."""
    found = state.probability()
    return {} if np.isnan(found).all() else {"probability": found.round(6)}  # the log stores single precision


def _answers(state: SessionState) -> dict[str, Any]:
    said = [(one, record.flag) for record in state.ledger.answers() for one in record.records()]
    columns = {name: _column([getattr(one, name) for one, _ in said]) for name in _COLUMNS}
    return columns | {"flag": _column([flag for _, flag in said])}


def _column(values: list[Any]) -> Any:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
