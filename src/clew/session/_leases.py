"""Who is asked what: questions are given to one person for a time, and nobody else is asked meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.active import Pair, Which
from clew.session._results import Question
from clew.session._state import State
from clew.session._store import Lease
from clew.session._table import Rows

# Rows shown of each cluster in a question about clusters.
_SHOWN = 6
# Draws before a check question is given up: most rows have none.
_DRAWS = 20


def question_of(lease: Lease) -> Question:
    """A lease as people get it."""
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


def payload_of(question: Pair | Which, rows: Rows) -> dict[str, Any]:
    """A question of the driver as the database holds it, in the user's ids."""
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


def pair_of(lease: Lease, state: State) -> tuple[int, int] | None:
    """The two rows, by ordinal; None for a question about several."""
    if lease.payload["kind"] == "which":
        return None
    return state.slot_of(lease.payload["left"], lease.payload["right"])


def is_worth_asking(lease: Lease, state: State) -> bool:
    """Whether an answer would still tell something: rows are there, nothing is decided, or it is a check."""
    question = state.driver_question(lease)
    if question is None:
        return False
    known = state.driver.view.known
    if isinstance(question, Which):
        return any(known(question.row, one) is None for one in question.candidates)
    pair = pair_of(lease, state)
    return question.check or pair in state.thin or (pair not in state.slots and known(*question.key) is None)


def people_of(pair: tuple[int, int] | None, state: State) -> set[str]:
    """Who has answered a pair or is asked about it."""
    if pair is None:
        return set()
    asked = {lease.annotator for lease in state.leases.values() if pair_of(lease, state) == pair}
    return asked | {record.annotator for record in state.slots.get(pair, ())}


def expired(state: State, annotator: str, now: float) -> tuple[Lease | None, list[Lease]]:
    """A question whose time is over, for somebody else to answer; and those that nobody needs to answer any more."""
    useless = []
    for lease in state.leases.values():
        if lease.expires > now:
            continue
        if not is_worth_asking(lease, state):
            useless.append(lease)
        elif lease.annotator == annotator or annotator not in people_of(pair_of(lease, state), state):
            return lease, useless
    return None, useless


def second_opinion(state: State, annotator: str) -> dict[str, Any] | None:
    """A pair about which fewer people than wanted were asked, and this one was not."""
    wanted = state.settings["overlap"]
    if wanted < 2:
        return None
    for pair in (*filter(None, (pair_of(lease, state) for lease in state.leases.values())), *state.thin):
        people = people_of(pair, state)
        if len(people) < wanted and annotator not in people and min(state.rows.position[list(pair)]) >= 0:
            ids = state.rows.ids
            return _payload("pair", ids[pair[0]], ids[pair[1]], "A second opinion on this pair.")
    return None


def check_question(state: State) -> Pair | None:
    """A pair that is implied but was never asked, where checks are wanted and due."""
    share = state.settings["check_share"]
    if not share:
        return None
    records = state.ledger.records
    n_checks = state.ledger.n_checks + sum(lease.payload["check"] for lease in state.leases.values())
    n_asked = len(records) + len(state.leases)
    view = state.driver.view
    rows = np.flatnonzero(view.named)
    if n_checks + 1 > share * (n_asked + 1) or not len(rows):
        return None
    rng = np.random.default_rng([state.settings["random_state"], n_asked, n_checks])
    for _ in range(_DRAWS):
        first = int(rng.choice(rows))
        second = int(rng.choice(view.knowledge.rows(first)))
        pair = Pair(first, second, why="A check of what follows from other answers.", check=True)
        if first != second and pair.key not in view.asked and pair.key not in view.pending:
            return pair
    return None
