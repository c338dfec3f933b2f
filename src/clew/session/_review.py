"""Review of answers that may be wrong: by the strategy's own model if it has one, else by the clusters.

A review by the clusters is either quick, or a full one with `clew.audit`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from clew import audit
from clew.active._distances import mean_row, squared_distances
from clew.active._strategy import as_strategy
from clew.audit import Doubt
from clew.audit._models import fitted_model, predicting_methods
from clew.audit._review import review_with
from clew.constraints import Constraints
from clew.exceptions import InfeasibleConstraintsError
from clew.session._conflicts import Conflicts
from clew.session._known import Known
from clew.session._labelling import Labelling
from clew.session._ledger import Ledger, Record
from clew.session._results import ReviewItem
from clew.session._table import ProjectRows

IntArray = npt.NDArray[np.int64]

_OPPOSITE = {"same": "different", "different": "same"}
_VIOLATED = "The clusters do not follow it."
_IN_CONFLICT = "It is part of a contradiction."
_DENIED, _FLAGGED = "Another person says the opposite.", "It was flagged."
# Lowest suspicion for each reason in a quick review, which cannot tell which one of two contradicting answers is wrong.
_LEAST_SUSPICION = {_VIOLATED: 0.7, _IN_CONFLICT: 0.5, _DENIED: 0.5, _FLAGGED: 0.5}
# Lowest cost at which an answer is listed because of its cost alone. At 0.5 the extra squared distance equals the mean
# squared distance within clusters.
_COSTLY = 0.5
# Lowest probability of being wrong at which an answer is listed because of it alone.
_DOUBTFUL = 0.05
# Largest error rate of an annotator in a review.
_MOST_RATE = 0.45
# Largest numbers of answers (the latest ones) and of rows in a review, so that it takes seconds.
_MOST_ANSWERS, _MOST_ROWS = 2000, 4000


@dataclass(frozen=True)
class Noted:
    """An answer, the session's reasons to suspect it, and whether it was confirmed after a second look."""

    record: Record
    item: ReviewItem
    settled: bool


@dataclass(frozen=True)
class ReviewPlan:
    """A snapshot of all inputs of a review. `run` uses neither the session nor its database.

    Attributes
    ----------
    version : int
        Number of the last event that is included.
    known : list of Noted
    """

    version: int
    known: list[Noted]

    def run(self) -> list[ReviewItem]:
        """Return the answers worth a second look, most suspicious first."""
        doubts = self._doubts()
        return _ranked(_judged(one, doubts.get(place)) for place, one in enumerate(self.known) if not one.settled)

    def _doubts(self) -> dict[int, Doubt]:
        """The evidence against answers, by their index in `known`."""
        raise NotImplementedError


@dataclass(frozen=True)
class JudgedReview(ReviewPlan):
    """A review by the strategy's own model, which has judged the answers already."""

    doubts: dict[int, Doubt]

    def _doubts(self) -> dict[int, Doubt]:
        return self.doubts


@dataclass(frozen=True)
class AuditedReview(ReviewPlan):
    """A review with `clew.audit.review`, which compares each answer with clusters of the rows.

    Attributes
    ----------
    X : ndarray or sparse matrix
        The rows that answers name, and a sample of the others.
    names : list of row ids
    answers : list of Record
        Answers and confirmations. `places` has the index of each in `known`, -1 for a confirmation.
    n_clusters, random_state : int
    model : str or None
        The method with probabilities that is used as additional evidence.
    constraints : Constraints
        The constraints to which the model is fitted: answers and corrections in use.
    error_rates : dict
        Estimated error rate of each annotator. Empty while answers are facts.
    """

    X: Any
    names: list[Any]
    answers: list[Record]
    places: list[int]
    n_clusters: int
    random_state: int
    model: str | None
    constraints: Constraints
    error_rates: dict[str, float]

    def _doubts(self) -> dict[int, Doubt]:
        if not self.answers:
            return {}
        heard = audit.review(
            self.X,
            self.answers,
            self.n_clusters,
            model=self._fitted_model(),
            error_rates=self.error_rates,
            ids=np.array(self.names, dtype=object),
            random_state=self.random_state,
        )
        return _by_place(heard.doubts, self.places)

    def _fitted_model(self) -> Any:
        """The model, with more clusters than the session has if a hard method needs them for the answers."""
        n_clusters = self.n_clusters
        while self.model is not None:
            try:
                return fitted_model(self.model, self.X, self.constraints, n_clusters, self.random_state)
            except InfeasibleConstraintsError:
                n_clusters += 1
        return None


class Reviews:
    """The review of the answers in effect: a quick one, and the plan of a full one."""

    def __init__(self, ledger: Ledger, rows: ProjectRows, known: Known, labelling: Labelling) -> None:
        self._ledger, self._rows, self._known, self._labelling = ledger, rows, known, labelling

    def quick(self) -> list[ReviewItem]:
        """Answers that the clusters violate or satisfy at a cost, and others with a reason. Takes milliseconds.

        Where answers are evidence, the suspicion of an answer is the probability that it is wrong.
        If the strategy has a model of its own, this is the full review.
        """
        judged = self._by_own_model(None)
        if judged is not None:
            return judged.run()
        noted, right = self._noted(), self._known.answers_right()
        found = []
        for one, cost in zip(noted, self._costs([one.record for one in noted]).tolist(), strict=True):
            item = one.item
            if cost >= _COSTLY and item.answer_id not in right:
                reasons = ("It forces rows away from the clusters they are nearest to.", *item.reasons)
                suspicion = max(cost, item.suspicion)
                item = replace(item, suspicion=suspicion, likely=_likely(item.answer, suspicion), reasons=reasons)
            if not one.settled:
                found.append(item)
        return _ranked(found)

    def plan(self, model: str | None = None) -> ReviewPlan:
        """Take a snapshot of the answers in effect for a review. If there are too many, the latest are used."""
        judged = self._by_own_model(model)
        if judged is not None:
            return judged
        method = self._ledger.settings["method"]
        if model is None and method is not None and method in predicting_methods():
            model = method
        noted = self._noted()[-_MOST_ANSWERS:]
        answers, places = self._stated(noted)
        rows = self._named_and_others([self._positions(one) for one in answers])
        X = self._rows.X[rows]
        labels = self._labelling.present
        k = self._known.driver.n_clusters or len(np.unique(labels[labels >= 0])) or 2
        return AuditedReview(
            self._ledger.version,
            noted,
            X,
            self._rows.names(rows),
            answers,
            places,
            min(k, len(rows)),
            int(self._ledger.settings["random_state"]),
            model,
            self._known.constraints().restrict(rows),
            self._error_rates(),
        )

    def _by_own_model(self, model: str | None) -> JudgedReview | None:
        """The review by the model that makes the labels; None if another one is named, or if the strategy has none."""
        if model is not None or self._ledger.settings["method"] is not None:
            return None
        noted = self._noted()[-_MOST_ANSWERS:]
        answers, places = self._stated(noted)
        pairs = np.array([self._positions(one) for one in answers], dtype=np.int64).reshape(-1, 2)
        driver = self._known.driver
        opinions = as_strategy(driver.strategy).opinions(driver.view, pairs)
        if opinions is None:
            return None
        ids = np.array(self._rows.present_ids, dtype=object)
        doubts = review_with(*opinions, answers, ids, self._error_rates())
        return JudgedReview(self._ledger.version, noted, _by_place(doubts, places))

    def _stated(self, noted: list[Noted]) -> tuple[list[Record], list[int]]:
        """Answers "same" and "different" about present rows, and their confirmations, which have the place -1."""
        answers: list[Record] = []
        places: list[int] = []
        for place, one in enumerate(noted):
            record = one.record
            if record.answer == "unsure" or min(self._positions(record)) < 0:
                continue
            answers.append(record)
            places.append(place)
            if record.confirmed is not None:
                answers.append(replace(record, confidence=1.0, annotator=record.confirmed, check=False))
                places.append(-1)
        return answers, places

    def _error_rates(self) -> dict[str, float]:
        """Estimated error rates of annotators, at most the rate at which an answer says hardly anything."""
        found = self._known.annotator_errors()
        return {who: min(one.error_rate, _MOST_RATE) for who, one in found.items() if one.error_rate is not None}

    def _noted(self) -> list[Noted]:
        """Answers about pairs, with the session's reasons to suspect them."""
        waiting: dict[int, str] = {}
        for conflict in Conflicts(self._ledger, self._rows, self._known).all():
            for answer in conflict.answers:
                waiting.setdefault(answer, conflict.kind)
        right = self._known.answers_right()
        found = []
        for record in self._ledger.answers():
            if record.kind == "which":
                continue
            told = []
            if self._is_violated(record):
                told.append(_VIOLATED)
            if record.id in waiting:
                disagrees = waiting[record.id] == "disagreement"
                told.append(_DENIED if disagrees else _IN_CONFLICT)
            if record.flag:
                told.append(_FLAGGED)
            # Where answers are evidence, the probability of an answer includes all these reasons but the flag.
            least = dict(_LEAST_SUSPICION)
            if record.id in right:
                least |= dict.fromkeys((_VIOLATED, _IN_CONFLICT, _DENIED), 1 - right[record.id])
            suspicion = max((least[reason] for reason in told), default=0.0)
            item = ReviewItem(
                record.id, record.left, record.right, record.answer, suspicion, _likely(record.answer, suspicion),
                tuple(told), record.annotator, record.time,
            )  # fmt: skip
            found.append(Noted(record, item, record.confirmed is not None and record.id not in waiting))
        return found

    def _positions(self, record: Record) -> list[int]:
        return self._rows.positions((record.left, record.right))

    def _named_and_others(self, pairs: list[list[int]]) -> IntArray:
        """Positions of the rows with answers, and of other rows up to the limit of a review."""
        named = np.unique(np.array(pairs, dtype=np.int64))
        others = np.setdiff1d(np.arange(len(self._rows.present)), named)
        n_more = min(len(others), max(_MOST_ROWS - len(named), 0))
        rng = np.random.default_rng(int(self._ledger.settings["random_state"]))
        return np.sort(np.concatenate([named, rng.choice(others, n_more, replace=False)]))

    def _is_violated(self, record: Record) -> bool:
        """Whether the clusters violate an answer that their fit used."""
        if record.id > self._ledger.fitted_version:
            return False
        one, two = self._labelling.labels[self._rows.ordinals((record.left, record.right))].tolist()
        return min(one, two) >= 0 and record.answer != "unsure" and (one == two) != (record.answer == "same")

    def _costs(self, records: list[Record]) -> npt.NDArray[np.float64]:
        """Cost of each answer, from 0 to 1: extra squared distance to centres, relative to the spread of clusters."""
        rows = self._rows
        labels = self._labelling.present
        clusters = np.unique(labels[labels >= 0])
        pairs = np.array([self._positions(one) for one in records])
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


def _by_place(doubts: Iterable[Doubt], places: list[int]) -> dict[int, Doubt]:
    """The doubts about answers by their places, without those about confirmations."""
    return {places[doubt.index]: doubt for doubt in doubts if places[doubt.index] >= 0}


def _judged(noted: Noted, doubt: Doubt | None) -> ReviewItem:
    """Build the review item of an answer from its audit. An item without reasons is not listed."""
    if doubt is None:
        return noted.item
    against = doubt.reasons if doubt.suspicion >= _DOUBTFUL else ()
    # The audit decides whether a violated answer matters, and lists contradictions and opposite answers itself. Its
    # probability takes all of them into account, but not a flag.
    known = (_VIOLATED, _IN_CONFLICT, _DENIED) if against else (_VIOLATED,)
    own = [one for one in noted.item.reasons if one not in known]
    suspicion = max(doubt.suspicion, _LEAST_SUSPICION[_FLAGGED] if _FLAGGED in own else 0.0)
    likely = _likely(noted.item.answer, suspicion)
    return replace(noted.item, suspicion=suspicion, likely=likely, reasons=(*against, *own))


def _likely(answer: str, suspicion: float) -> str:
    """The opposite of an answer if it is more likely wrong than right, else the answer itself."""
    return _OPPOSITE.get(answer, answer) if suspicion > 0.5 else answer


def _ranked(items: Iterable[ReviewItem]) -> list[ReviewItem]:
    """Items with at least one reason, most suspicious first."""
    return sorted((item for item in items if item.reasons), key=lambda item: (-item.suspicion, item.answer_id))


def _spread(X: Any, labels: Any, clusters: Any, centers: Any) -> float:
    total = 0.0
    for cluster, center in zip(clusters, centers, strict=True):
        total += squared_distances(X, np.flatnonzero(labels == cluster), center[None]).sum()
    return total / max(int((labels >= 0).sum()), 1)
