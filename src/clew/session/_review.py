"""Which answers deserve a second look: a quick list from the clusters, and all the evidence of an audit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import normalize

from clew import audit
from clew.active._view import mean_row, squared_distances
from clew.audit import Doubt
from clew.constraints import key_of
from clew.session._conflicts import conflicts
from clew.session._ledger import Record
from clew.session._results import ReviewItem
from clew.session._state import State

IntArray = npt.NDArray[np.int64]

_OPPOSITE = {"same": "different", "different": "same"}
# Least suspicion by reason; what an answer costs can add to it.
_OF_VIOLATED, _OF_DISAGREEMENT, _OF_FLAG = 0.7, 0.8, 0.5
_IN_CONFLICT = "It is part of a contradiction."
_OF_CONFLICT = (0.9, _IN_CONFLICT)
# From here on an answer is listed for its cost alone: it forces a row away by the mean distance within clusters.
_COSTLY = 0.5
# From here on an answer is listed for the chance alone that it is wrong. Two reasons list it too: among few answers the
# chance is estimated with care, and wrong ones that lead the ranking may have a twentieth.
_DOUBTFUL = 0.03
# A review looks at so many answers, the latest, and at so many rows; with both it takes seconds.
_MOST_ANSWERS, _MOST_ROWS = 2000, 4000


@dataclass(frozen=True)
class Noted:
    """An answer, what the session itself has against it, and whether somebody looked at it again and kept it."""

    record: Record
    item: ReviewItem
    settled: bool


@dataclass(frozen=True)
class ReviewPlan:
    """All a review needs, taken from a session at one moment; `run` touches neither the session nor its database.

    Attributes
    ----------
    version : int
        The event up to which the log was used.
    X : ndarray or sparse matrix
        The rows that answers name, and a sample of the others.
    names : list of row ids
    answers : list of tuples
        As `clew.audit.review` reads them; `places` says which of `known` each is, -1 for one that confirms another.
    known : list of Noted
    n_clusters, random_state : int
    """

    version: int
    X: Any
    names: list[Any]
    answers: list[tuple[Any, ...]]
    places: list[int]
    known: list[Noted]
    n_clusters: int
    random_state: int

    def run(self) -> list[ReviewItem]:
        """Answers worth a second look by all evidence there is (`clew.audit.review`), the most suspicious first."""
        doubts = self._doubts()
        return _ranked(_judged(one, doubts.get(place)) for place, one in enumerate(self.known) if not one.settled)

    def _doubts(self) -> dict[int, Doubt]:
        if not self.answers:
            return {}
        heard = audit.review(
            self.X,
            self.answers,
            self.n_clusters,
            ids=np.array(self.names, dtype=object),
            random_state=self.random_state,
        )
        return {self.places[doubt.index]: doubt for doubt in heard.doubts if self.places[doubt.index] >= 0}


def _judged(noted: Noted, doubt: Doubt | None) -> ReviewItem:
    """An item with the chance that its answer is wrong; without reasons it is not listed."""
    if doubt is None:
        return noted.item
    against = doubt.reasons if doubt.suspicion >= _DOUBTFUL or len(doubt.reasons) > 1 else ()
    own = [one for one in noted.item.reasons if one != _IN_CONFLICT or not against]
    return replace(noted.item, suspicion=doubt.suspicion, likely=doubt.likely, reasons=(*against, *own))


def quick_review(state: State) -> list[ReviewItem]:
    """Answers that clusters break or pay for, and those with a reason of the session's own; takes milliseconds."""
    noted = _noted(state)
    found = []
    for one, cost in zip(noted, _costs(state, [one.record for one in noted]).tolist(), strict=True):
        item = one.item
        if cost >= _COSTLY:
            reasons = ("It forces rows away from the clusters they are nearest to.", *item.reasons)
            likely = _OPPOSITE.get(item.answer, item.answer)
            item = replace(item, suspicion=max(cost, item.suspicion), likely=likely, reasons=reasons)
        if not one.settled:
            found.append(item)
    return _ranked(found)


def plan_review(state: State) -> ReviewPlan:
    """What a review of the answers in effect needs; of very many, the latest."""
    noted = _noted(state)[-_MOST_ANSWERS:]
    pairs = [_positions(state, one.record) for one in noted]
    stated = [place for place, one in enumerate(noted) if one.record.answer != "unsure" and min(pairs[place]) >= 0]
    rows = _named_and_others(state, [pairs[place] for place in stated])
    X = state.rows.X[rows]
    answers: list[tuple[Any, ...]] = []
    places: list[int] = []
    for place in stated:
        record = noted[place].record
        pair = tuple(np.searchsorted(rows, pairs[place]).tolist())
        answers.append((pair, record.answer, record.confidence, record.annotator, record.time, record.check))
        places.append(place)
        if record.confirmed is not None:
            answers.append((pair, record.answer, 1.0, record.confirmed, record.time, False))
            places.append(-1)
    labels = state.labels[state.rows.present]
    k = state.driver.n_clusters or len(np.unique(labels[labels >= 0])) or 2
    return ReviewPlan(
        state.ledger.version,
        normalize(X) if state.settings["metric"] == "cosine" else X,
        state.rows.names(rows),
        answers,
        places,
        noted,
        min(k, len(rows)),
        int(state.settings["random_state"]),
    )


def _noted(state: State) -> list[Noted]:
    """Answers about pairs, with what the session itself holds against them."""
    waiting: dict[int, str] = {}
    for conflict in conflicts(state):
        for answer in conflict.answers:
            waiting.setdefault(answer, conflict.kind)
    found = []
    for record in state.ledger.answers():
        if record.kind == "which":
            continue
        told = []
        if _is_violated(state, record):
            told.append((_OF_VIOLATED, "The clusters do not follow it."))
        if record.id in waiting:
            disagrees = waiting[record.id] == "disagreement"
            told.append((_OF_DISAGREEMENT, "Another person says the opposite.") if disagrees else _OF_CONFLICT)
        if record.flag:
            told.append((_OF_FLAG, "It was flagged."))
        suspicion = max((least for least, _ in told), default=0.0)
        item = ReviewItem(
            record.id, record.left, record.right, record.answer, suspicion, record.answer,
            tuple(reason for _, reason in told), record.annotator, record.time,
        )  # fmt: skip
        found.append(Noted(record, item, record.confirmed is not None and record.id not in waiting))
    return found


def _ranked(items: Iterable[ReviewItem]) -> list[ReviewItem]:
    """Those with a reason, the most suspicious first."""
    return sorted((item for item in items if item.reasons), key=lambda item: (-item.suspicion, item.answer_id))


def _positions(state: State, record: Record) -> list[int]:
    return [int(state.rows.position[state.ordinal[key_of(name)]]) for name in (record.left, record.right)]


def _named_and_others(state: State, pairs: list[list[int]]) -> IntArray:
    """Positions of the rows that answers name, and of others up to a number that keeps a review to seconds."""
    named = np.unique(np.array(pairs, dtype=np.int64))
    others = np.setdiff1d(np.arange(len(state.rows.present)), named)
    n_more = min(len(others), max(_MOST_ROWS - len(named), 0))
    rng = np.random.default_rng(int(state.settings["random_state"]))
    return np.sort(np.concatenate([named, rng.choice(others, n_more, replace=False)]))


def _is_violated(state: State, record: Record) -> bool:
    """Whether clusters that know an answer do not follow it."""
    if record.id > state.fitted_version:
        return False
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
