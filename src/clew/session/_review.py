"""Which answers deserve a second look: those the clusters break or pay for, conflicts, disagreements, flags."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.active._view import mean_row, squared_distances
from clew.constraints import key_of
from clew.session._conflicts import conflicts
from clew.session._ledger import Record
from clew.session._results import ReviewItem
from clew.session._state import State

_OPPOSITE = {"same": "different", "different": "same"}
# Least suspicion by reason; what an answer costs can add to it.
_OF_VIOLATED, _OF_CONFLICT, _OF_DISAGREEMENT, _OF_FLAG = 0.7, 0.9, 0.8, 0.5
# From here on an answer is listed for its cost alone: it forces a row away by the mean distance within clusters.
_COSTLY = 0.5


def review(state: State) -> list[ReviewItem]:
    """Answers worth a second look, the most suspicious first."""
    waiting: dict[int, str] = {}
    for conflict in conflicts(state):
        for answer in conflict.answers:
            waiting.setdefault(answer, conflict.kind)
    records = [record for record in state.ledger.answers() if record.kind != "which"]
    costs = _costs(state, records)
    found = []
    for record, cost in zip(records, costs, strict=True):
        reasons, suspicion = [], float(cost)
        if cost >= _COSTLY:
            reasons.append("It forces rows away from the clusters they are nearest to.")
        if _is_violated(state, record):
            suspicion = max(suspicion, _OF_VIOLATED)
            reasons.append("The clusters do not follow it.")
        if record.id in waiting:
            disagrees = waiting[record.id] == "disagreement"
            suspicion = max(suspicion, _OF_DISAGREEMENT if disagrees else _OF_CONFLICT)
            reasons.append("Another person says the opposite." if disagrees else "It is part of a contradiction.")
        if record.flag:
            suspicion = max(suspicion, _OF_FLAG)
            reasons.append("It was flagged.")
        if reasons:
            likely = _OPPOSITE.get(record.answer, record.answer) if cost >= _COSTLY else record.answer
            found.append(
                ReviewItem(
                    record.id, record.left, record.right, record.answer, suspicion, likely, tuple(reasons),
                    record.annotator, record.time,
                )
            )  # fmt: skip
    return sorted(found, key=lambda item: (-item.suspicion, item.answer_id))


def _is_violated(state: State, record: Record) -> bool:
    one, two = (int(state.labels[state.ordinal[key_of(name)]]) for name in (record.left, record.right))
    return min(one, two) >= 0 and record.answer != "unsure" and (one == two) != (record.answer == "same")


def _costs(state: State, records: list[Record]) -> npt.NDArray[np.float64]:
    """From 0 to 1: how far an answer forces a row from its nearest centre, against the spread of the clusters."""
    rows = state.rows
    labels = state.labels[rows.present]
    clusters = np.unique(labels[labels >= 0])
    pairs = np.array(
        [[rows.position[state.ordinal[key_of(name)]] for name in (one.left, one.right)] for one in records]
    )
    costs = np.zeros(len(records))
    if len(clusters) < 2 or not len(records):
        return costs
    centers = np.array([mean_row(rows.X, np.flatnonzero(labels == one)) for one in clusters])
    there = np.flatnonzero((pairs >= 0).all(axis=1))
    used, place = np.unique(pairs[there], return_inverse=True)
    far = squared_distances(rows.X, used, centers)
    spread = _spread(rows.X, labels, clusters, centers)
    if spread == 0:
        return costs
    best = np.sort(far, axis=1)[:, :2]
    nearest = far.argmin(axis=1)
    for number, (one, two) in zip(there.tolist(), place.reshape(-1, 2).tolist(), strict=True):
        record = records[number]
        if record.answer == "same":
            detour = (far[one] + far[two]).min() - best[one, 0] - best[two, 0]
        elif record.answer == "different" and nearest[one] == nearest[two]:
            detour = min(best[one, 1] - best[one, 0], best[two, 1] - best[two, 0])
        else:
            continue
        costs[number] = detour / (detour + spread)
    return costs


def _spread(X: Any, labels: Any, clusters: Any, centers: Any) -> float:
    total = 0.0
    for cluster, center in zip(clusters, centers, strict=True):
        total += squared_distances(X, np.flatnonzero(labels == cluster), center[None]).sum()
    return total / max(int((labels >= 0).sum()), 1)
