"""Leases: a question is given to one annotator for a limited time, and to nobody else meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from clew._words import name_key
from clew.active import Pair, Which
from clew.session._known import Known
from clew.session._ledger import Ledger, Record
from clew.session._results import Question
from clew.session._store import Lease
from clew.session._table import ProjectRows

# Number of rows shown per cluster in a question about two clusters.
_SHOWN = 6
# Number of random draws for a check question, because most rows have no implied pair.
_DRAWS = 20


class Leases:
    """The open leases of the database: questions without an answer, in the order of their numbers.

    The driver does not ask these questions again. After `bind`, every change of the leases is passed on to the driver.
    """

    def __init__(self, leases: Iterable[Lease]) -> None:
        self._open = {lease.id: lease for lease in leases}
        self._bound: tuple[Ledger, ProjectRows, Known] | None = None

    def bind(self, ledger: Ledger, rows: ProjectRows, known: Known) -> None:
        """Keep the pending questions of this driver equal to the leases from now on."""
        self._bound = ledger, rows, known
        try:
            self.hold()
        except BaseException:
            self._bound = None
            raise

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Lease]:
        return iter(list(self._open.values()))

    def get(self, number: Any) -> Lease | None:
        """The open lease of a question, or None."""
        return self._open.get(number) if isinstance(number, int) else None

    # -- changes ---------------------------------------------------------------------------------------------------

    def replace(self, leases: Iterable[Lease]) -> None:
        """Replace all leases by the leases of the database."""
        if self._bound is not None:
            for lease in self:
                self.drop(lease)
        self._open = {lease.id: lease for lease in leases}
        self.hold()

    def change(self, leases: Iterable[Lease]) -> None:
        """Note leases that were given out, answered or opened again. The event itself informs the driver."""
        for lease in leases:
            is_again = lease.is_open and lease.id not in self._open and self._open and lease.id < max(self._open)
            if lease.is_open:
                self._open[lease.id] = lease
            else:
                self._open.pop(lease.id, None)
            if is_again:  # sorted by number, as in the database
                self._open = dict(sorted(self._open.items()))

    def drop(self, lease: Lease) -> None:
        """Remove a lease. The driver may ask about its rows again."""
        self._open.pop(lease.id, None)
        question = self.question(lease)
        if question is not None and question not in map(self.question, self):
            self._known.driver.release(question)

    def hold(self) -> None:
        """Make exactly the leased questions pending in the driver, if there is one."""
        if self._bound is not None:
            questions = map(self.question, self)
            self._known.driver.wait_for(question for question in questions if question is not None)

    def are_about(self, record: Record) -> bool:
        """Whether the pair of an answer is still asked of somebody. The driver must then keep it pending."""
        return record.kind != "which" and self._known.slot(record) in map(self._pair, self)

    # -- questions -------------------------------------------------------------------------------------------------

    def question(self, lease: Lease) -> Pair | Which | None:
        """Convert a lease into a question of the driver. None if a row is missing."""
        payload = lease.payload
        names = [payload["left"], *(payload["candidates"] if payload["kind"] == "which" else [payload["right"]])]
        places = self._rows.positions(names)
        if min(places) < 0:
            return None
        if payload["kind"] == "which":
            return Which(places[0], tuple(places[1:]), payload["why"])
        return Pair(places[0], places[1], payload["why"], payload["check"])

    def is_worth_asking(self, lease: Lease) -> bool:
        """Whether a question is still useful: its rows are present, and it is undecided or a check question."""
        question = self.question(lease)
        if question is None:
            return False
        known = self._known.driver.view.known
        if isinstance(question, Which):
            return any(known(question.row, one) is None for one in question.candidates)
        pair = self._pair(lease)
        is_open = pair not in self._known.slots and known(*question.key) is None
        return question.check or pair in self._known.below_overlap or is_open

    def expired(self, annotator: str, now: float) -> tuple[Lease | None, list[Lease]]:
        """An expired question that this annotator can take over, and expired questions that are no longer useful."""
        useless, key = [], name_key(annotator)
        for lease in self:
            if lease.expires > now:
                continue
            if not self.is_worth_asking(lease):
                useless.append(lease)
            elif key == name_key(lease.annotator) or key not in self._people(self._pair(lease)):
                return lease, useless
        return None, useless

    def next_payload(self, annotator: str) -> dict[str, Any] | None:
        """The next question for an annotator as database fields, or None if there is none.

        It is a second opinion if one is due, else a check question if one is due, else the next question of the driver.
        The question is pending in the driver afterwards.
        """
        question = self._second_opinion(annotator) or self._check_question()
        if question is not None:
            self._known.driver.hold(question)
        else:
            question = self._known.driver.ask()
        return None if question is None else payload_of(question, self._rows)

    def _second_opinion(self, annotator: str) -> Pair | None:
        """A pair with fewer annotators than `overlap` that this annotator was not asked about.

        With an `error_rate`, or once answers contradict each other, only pairs whose answer is in doubt are asked of
        several people.
        """
        wanted = self._ledger.settings["overlap"]
        if wanted < 2:
            return None
        pairs = self._known.worth_second_opinions()
        if pairs is None:
            pairs = [*filter(None, map(self._pair, self)), *self._known.below_overlap]
        for pair in pairs:
            people = self._people(pair)
            first, second = self._rows.position[list(pair)].tolist()
            if len(people) < wanted and name_key(annotator) not in people and min(first, second) >= 0:
                return Pair(first, second, why="A second opinion on this pair.")
        return None

    def _check_question(self) -> Pair | None:
        """A random pair that is implied but was never asked, if a check question is due."""
        settings, view = self._ledger.settings, self._known.driver.view
        share = settings["check_share"]
        if not share:
            return None
        n_checks = self._ledger.n_checks + sum(lease.payload["check"] for lease in self)
        n_asked = len(self._ledger.records) + len(self)
        rows = np.flatnonzero(view.named)
        if n_checks + 1 > share * (n_asked + 1) or not len(rows):
            return None
        rng = np.random.default_rng([settings["random_state"], n_asked, n_checks])
        for _ in range(_DRAWS):
            first = int(rng.choice(rows))
            second = int(rng.choice(view.knowledge.rows(first)))
            pair = Pair(first, second, why="A check: the answer already follows from other answers.", check=True)
            if first != second and pair.key not in view.asked and pair.key not in view.pending:
                return pair
        return None

    def answer_of(self, annotator: str, lease: Lease) -> Record | None:
        """The answer that an annotator has given to another question about the same pair."""
        records = () if self.question(lease) is None else self._known.slots.get(self._pair(lease), ())
        key = name_key(annotator)
        return next((one for one in records if name_key(one.annotator) == key and one.question is not None), None)

    def _pair(self, lease: Lease) -> tuple[int, int] | None:
        """Ordinals of the two rows of a question. None for a question about several rows."""
        if lease.payload["kind"] == "which":
            return None
        return self._known.slot_of(lease.payload["left"], lease.payload["right"])

    def _people(self, pair: tuple[int, int] | None) -> set[str]:
        """Annotators who have answered a pair or have a lease on it, by `name_key`."""
        if pair is None:
            return set()
        asked = {name_key(lease.annotator) for lease in self if self._pair(lease) == pair}
        return asked | {name_key(record.annotator) for record in self._known.slots.get(pair, ())}

    @property
    def _ledger(self) -> Ledger:
        assert self._bound is not None
        return self._bound[0]

    @property
    def _rows(self) -> ProjectRows:
        assert self._bound is not None
        return self._bound[1]

    @property
    def _known(self) -> Known:
        assert self._bound is not None
        return self._bound[2]


def question_of(lease: Lease) -> Question:
    """Convert a lease into the `Question` that an annotator gets."""
    payload = lease.payload
    rows = payload["rows"]
    return Question(
        lease.id,
        payload["kind"],
        payload["left"],
        payload["right"],
        payload["why"],
        lease.annotator,
        lease.expires,
        tuple(payload["candidates"]),
        payload["check"],
        None if rows is None else (tuple(rows[0]), tuple(rows[1])),
    )


def payload_of(question: Pair | Which, rows: ProjectRows) -> dict[str, Any]:
    """Convert a question of the driver into database fields, with the user's row ids."""
    if isinstance(question, Which):
        row, *candidates = rows.names([question.row, *question.candidates])
        return _payload("which", row, None, question.why, candidates=candidates)
    left, right = rows.names([question.first, question.second])
    shown = None if question.rows is None else [rows.names(some[:_SHOWN]) for some in question.rows]
    kind = "pair" if shown is None else "clusters"
    return _payload(kind, left, right, question.why, check=question.check, rows=shown)


def _payload(
    kind: str, left: Any, right: Any, why: str, *, candidates: Any = (), check: bool = False, rows: Any = None
) -> dict[str, Any]:
    return {
        "kind": kind, "left": left, "right": right, "candidates": list(candidates), "why": why, "check": check,
        "rows": rows,
    }  # fmt: skip
