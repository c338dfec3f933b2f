"""What contradicts what: each conflict with the chain of answers and corrections against it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from clew.active import DIFFERENT, SAME, Answer, Pair
from clew.active._questions import _said
from clew.constraints import Constraints
from clew.session._corrections import Correction
from clew.session._ledger import Record
from clew.session._results import Conflict, Link
from clew.session._state import State, disagree

_GIVEN = "given at the start"


def conflicts(state: State) -> list[Conflict]:
    """Everything that waits to be resolved, oldest first."""
    waiting = [
        source[1][-1]
        for entry, source in zip(state.driver.answers, state.sources, strict=True)
        if entry.conflict and source[0] == "answer"
    ]
    found = [conflict_of(state, seq) for seq in (*waiting, *state.quarantined)]
    found += [_disagreement(state, records) for records in state.slots.values() if disagree(records)]
    return sorted((one for one in found if one is not None), key=lambda one: one.id)


def conflict_of(state: State, seq: int, proposed: Correction | None = None) -> Conflict | None:
    """The conflict of one event, or of a correction that is only proposed; None if it agrees with the rest."""
    record = state.ledger.records.get(seq)
    if record is not None and record.kind != "which" and disagree(state.slots[state._slot(record)]):
        return _disagreement(state, state.slots[state._slot(record)])
    said = _said_by(state, seq, proposed)
    used = state.driver.constraints | _as_constraints(said, len(state.rows.present))
    found = used.conflicts(limit=1)
    if not found:
        return None
    kind = "answer" if record is not None else "correction"
    chain = found[0].chain
    said_by = dict(_provenance(state))
    for pair, answer in said:
        said_by.setdefault(pair.key, []).append((seq, answer))
    links = [_link(state, one, two, SAME, said_by, proposed) for one, two in itertools.pairwise(chain)]
    links.append(_link(state, chain[-1], chain[0], DIFFERENT, said_by, proposed))
    answers = tuple(sorted({event for link in links for event in link.events if event in state.ledger.records}))
    names = tuple(state.rows.names(chain))
    against = "; ".join(f"{link.left} and {link.right} are {link.answer} ({link.said_by})" for link in links)
    what = f"Answer {seq}" if kind == "answer" else "This correction" if proposed else f"Correction {seq}"
    message = (
        f"{what} contradicts what is known: {against}. Change one of these, keep it as a preference, or say unsure."
    )
    return Conflict(seq, kind, message, names, tuple(links), answers)


def _disagreement(state: State, records: list[Record]) -> Conflict:
    left, right = records[0].left, records[0].right
    links = tuple(
        Link(left, right, record.answer, (record.id,), _who(state, record.id))
        for record in records
        if record.answer != "unsure" and not record.aside
    )
    told = "; ".join(f"{link.answer} ({link.said_by})" for link in links)
    message = f"People disagree about {left} and {right}: {told}. It is not used until somebody decides."
    return Conflict(records[-1].id, "disagreement", message, (left, right), links, tuple(one.id for one in records))


def _said_by(state: State, seq: int, proposed: Correction | None) -> list[tuple[Pair, Answer]]:
    if proposed is not None:
        return proposed.pairs(state.rows.position)
    if seq in state.quarantined:
        correction = next(one for one in state.corrections() if one.seq == seq)
        return correction.pairs(state.rows.position)
    for entry, source in zip(state.driver.answers, state.sources, strict=True):
        if source[0] == "answer" and seq in source[1]:
            return _said(entry) if entry.conflict else []
    return []


def _as_constraints(said: list[tuple[Pair, Answer]], n_rows: int) -> Constraints:
    return Constraints(
        [pair.key for pair, answer in said if answer is SAME],
        [pair.key for pair, answer in said if answer is DIFFERENT],
        n_samples=n_rows,
    )


def _provenance(state: State) -> Iterator[tuple[tuple[int, int], list[tuple[int, Answer]]]]:
    """For each pair stated and in use: the events that say so."""
    found: dict[tuple[int, int], list[tuple[int, Answer]]] = {}
    for entry, (_, events) in zip(state.driver.answers, state.sources, strict=True):
        if not entry.conflict:
            for pair, answer in _said(entry):
                found.setdefault(pair.key, []).extend((event, answer) for event in events)
    yield from found.items()


def provenance(state: State, first: int, second: int) -> list[int]:
    """The events that speak about two positions."""
    key = Pair(first, second).key
    return [event for event, _ in dict(_provenance(state)).get(key, [])]


def _link(
    state: State, one: int, two: int, answer: Answer, said_by: dict[Any, list[tuple[int, Answer]]],
    proposed: Correction | None,
) -> Link:  # fmt: skip
    left, right = state.rows.names([one, two])
    events = [event for event, says in said_by.get(Pair(one, two).key, []) if says is answer]
    words = ", ".join(_who(state, event) for event in events) if events else _GIVEN
    return Link(left, right, answer.value, tuple(event for event in events if event), words)


def _who(state: State, seq: int) -> str:
    if not seq:
        return "this correction"
    event = state.ledger.event(seq)
    what = f"{event.payload['kind']}, correction {seq}" if event.kind == "correction" else f"answer {seq}"
    return f"{what} by {event.annotator}, {event.time[:16].replace('T', ' ')}"
