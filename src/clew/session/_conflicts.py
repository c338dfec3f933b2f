"""What contradicts what: each conflict with the chain of answers and corrections against it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from clew.active import DIFFERENT, SAME, Answer, Pair
from clew.active._questions import said_in
from clew.constraints import Constraints
from clew.session._corrections import Correction, in_force
from clew.session._ledger import Record
from clew.session._results import Conflict, Link
from clew.session._state import State, disagree

# What is said about pairs of positions: the events, and what each says.
Said = dict[tuple[int, int], list[tuple[int, Answer]]]

_GIVEN = "given at the start"


_WORDS = {"same": "the same", "different": "different"}


def conflicts(state: State) -> list[Conflict]:
    """Everything that waits to be resolved, oldest first."""
    waiting = [
        source[1][-1]
        for entry, source in zip(state.driver.answers, state.sources, strict=True)
        if entry.conflict and source[0] == "answer"
    ]
    found = [conflict_of(state, seq) for seq in (*waiting, *state.quarantined)]
    found += [_disagreement(state, records) for records in state.slots.values() if disagree(records)]
    return sorted(found, key=lambda one: one.id)


def conflict_of(state: State, seq: int, proposed: Correction | None = None) -> Conflict:
    """The conflict of an event that waits, or of a correction that is only proposed."""
    record = state.ledger.records.get(seq)
    if record is not None and record.kind != "which" and disagree(state.slots[state.slot(record)]):
        return _disagreement(state, state.slots[state.slot(record)])
    kind = "correction" if record is None else "answer"
    what = f"Answer {seq}" if record is not None else "This correction" if proposed else f"Correction {seq}"
    said = _with_answer(state, seq) if record is not None else _with_correction(state, seq, proposed)
    found = _as_constraints(state, said).conflicts(limit=1)
    if not found:  # what it contradicts waits as well
        return Conflict(seq, kind, f"{what} contradicts others that wait. Resolve those first.", (), (), ())
    chain = found[0].chain
    links = [_link(state, one, two, SAME, said) for one, two in itertools.pairwise(chain)]
    links.append(_link(state, chain[-1], chain[0], DIFFERENT, said))
    answers = tuple(sorted({event for link in links for event in link.events if event in state.ledger.records}))
    against = "; ".join(f"{link.left} and {link.right} are {_WORDS[link.answer]} ({link.said_by})" for link in links)
    remedy = "Change one of these, keep it as a preference, or say unsure."
    message = f"{what} contradicts what is known: {against}. {remedy}"
    return Conflict(seq, kind, message, tuple(state.rows.names(chain)), tuple(links), answers)


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


def _in_use(state: State, *kinds: str) -> Said:
    """The pairs stated by answers or corrections that are in use, and the events that say so."""
    found: Said = {}
    for entry, (kind, events) in zip(state.driver.answers, state.sources, strict=True):
        if kind in kinds and not entry.conflict:
            _add(found, said_in(entry), events)
    return found


def _with_answer(state: State, seq: int) -> Said:
    """Everything in use, and an answer that waits."""
    found = _in_use(state, "answer", "correction")
    for entry, (kind, events) in zip(state.driver.answers, state.sources, strict=True):
        if kind == "answer" and seq in events and entry.conflict:
            _add(found, said_in(entry), events)
    return found


def _with_correction(state: State, seq: int, proposed: Correction | None) -> Said:
    """Everything in use, and a correction that waits or is proposed: earlier ones give way to it."""
    waiting = state.quarantined - {seq}
    corrections = [one for one in state.corrections() if one.seq not in waiting]
    found = _in_use(state, "answer")
    for correction in in_force([*corrections, *([] if proposed is None else [proposed])]):
        _add(found, correction.pairs(state.rows.position), (correction.seq,))
    return found


def _add(found: Said, pairs: Iterable[tuple[Pair, Answer]], events: tuple[int, ...]) -> None:
    for pair, answer in pairs:
        found.setdefault(pair.key, []).extend((event, answer) for event in events)


def _as_constraints(state: State, said: Said) -> Constraints:
    must, cannot = (
        [pair for pair, told in said.items() if any(says is answer for _, says in told)] for answer in (SAME, DIFFERENT)
    )
    return state.prior | Constraints(must, cannot, n_samples=len(state.rows.present))


def provenance(state: State, first: int, second: int) -> list[int]:
    """The events in use that speak about two positions."""
    told = _in_use(state, "answer", "correction").get(Pair(first, second).key, [])
    return [event for event, _ in told]


def _link(state: State, one: int, two: int, answer: Answer, said: Said) -> Link:
    left, right = state.rows.names([one, two])
    events = [event for event, says in said.get(Pair(one, two).key, []) if says is answer]
    words = ", ".join(_who(state, event) for event in events) if events else _GIVEN
    return Link(left, right, answer.value, tuple(event for event in events if event), words)


def _who(state: State, seq: int) -> str:
    if not seq:
        return "this correction"
    event = state.ledger.event(seq)
    what = f"{event.payload['kind']}, correction {seq}" if event.kind == "correction" else f"answer {seq}"
    return f"{what} by {event.annotator}, {event.time[:16].replace('T', ' ')}"
