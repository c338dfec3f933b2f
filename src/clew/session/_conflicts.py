"""Conflicts: unused answers and corrections, each with the chain of answers and corrections that it contradicts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from clew.active import DIFFERENT, SAME, Answer, Pair
from clew.active._log import said_in
from clew.constraints import Constraints
from clew.exceptions import ConstraintError
from clew.session._corrections import Correction, in_force
from clew.session._known import Known, disagree
from clew.session._ledger import Ledger, Record
from clew.session._results import Conflict, Link
from clew.session._table import ProjectRows

# Pair of row positions → list of (event number, answer that the event gives).
Said = dict[tuple[int, int], list[tuple[int, Answer]]]

_GIVEN = "given at the start"

# Prices of a repair. A correction or an imported fact is deliberate. An answer that the clusters did not predict is
# more likely wrong. Where answers are evidence, the posterior has the probability instead. A confirmed answer is more
# likely right. An unused answer is a little cheaper, to break ties.
_CERTAIN_PRICE, _UNEXPECTED, _CONFIRMED, _UNUSED = 2.0, 0.75, 2.0, 1 - 1e-6

_WORDS = {"same": "the same", "different": "different"}


class Conflicts:
    """The conflicts between the answers and corrections of a project that nobody has resolved, as they are now."""

    def __init__(self, ledger: Ledger, rows: ProjectRows, known: Known) -> None:
        self._ledger, self._rows, self._known = ledger, rows, known

    @cached_property
    def _right(self) -> dict[int, float]:
        """Probability that each answer is right; empty while answers are facts."""
        return self._known.answers_right()

    def all(self) -> list[Conflict]:
        """All unresolved conflicts, oldest first."""
        return [self.of(seq) for seq in self.ids()]

    def ids(self) -> list[int]:
        """Event numbers of all unresolved conflicts, oldest first."""
        waiting = [events[-1] for _, events in self._known.waiting.values()]
        return sorted(
            [*waiting, *self._known.quarantined, *(self._known.slots[slot][-1].id for slot in self._known.disputed)]
        )

    def of(self, seq: int, proposed: Correction | None = None, *, priced: bool = True) -> Conflict:
        """The conflict of an unused event, or of a proposed correction; unless priced, without its cheapest repair."""
        record = self._ledger.records.get(seq)
        if record is not None and record.kind != "which" and disagree(self._known.slots[self._known.slot(record)]):
            return self._disagreement(self._known.slots[self._known.slot(record)], priced)
        kind = "correction" if record is None else "answer"
        what = f"Answer {seq}" if record is not None else "This correction" if proposed else f"Correction {seq}"
        said = self._with_answer(seq) if record is not None else self._with_correction(seq, proposed)
        found = self._as_constraints(said).conflicts(limit=1)
        if not found:  # the events it contradicts are unused as well
            own = () if record is not None or proposed is not None else (seq,)
            return Conflict(seq, kind, f"{what} contradicts others in conflict. Resolve them first.", (), (), (), own)
        chain = found[0].chain
        links = [self._link(one, two, SAME, said) for one, two in itertools.pairwise(chain)]
        links.append(self._link(chain[-1], chain[0], DIFFERENT, said))
        events = sorted({event for link in links for event in link.events})
        answers = tuple(event for event in events if event in self._ledger.records)
        corrections = tuple(event for event in events if event not in self._ledger.records)
        against = "; ".join(
            f"{link.left} and {link.right} are {_WORDS[link.answer]} ({link.said_by})" for link in links
        )
        remedy = "Change or take back one of these, keep it as a preference, or say unsure."
        message = f"{what} contradicts what is known: {against}. {remedy}"
        cheapest = self._cheapest(said, seq) if priced and proposed is None else ()
        return Conflict(
            seq, kind, message, tuple(self._rows.names(chain)), tuple(links), answers, corrections, cheapest
        )

    def _disagreement(self, records: list[Record], priced: bool) -> Conflict:
        left, right = records[0].left, records[0].right
        links = tuple(
            Link(left, right, record.answer, (record.id,), self._who(record.id))
            for record in records
            if record.answer != "unsure" and not record.aside
        )
        cheapest = self._likely_wrong(links) if priced else ()
        rest = "Neither answer is certain until somebody decides."
        if cheapest and self._right:
            likely = next(link.answer for link in links if link.events[0] not in cheapest)
            rest = f"Probably they are {_WORDS[likely]}."
        told = "; ".join(f"{link.answer} ({link.said_by})" for link in links)
        message = f"People disagree about {left} and {right}: {told}. {rest}"
        answers = tuple(one.id for one in records)
        return Conflict(records[-1].id, "disagreement", message, (left, right), links, answers, cheapest=cheapest)

    def _likely_wrong(self, links: tuple[Link, ...]) -> tuple[int, ...]:
        """The answers about one pair that are cheaper to change than the opposite ones; empty if neither are."""
        prices = {link.answer: 0.0 for link in links}
        for link in links:
            prices[link.answer] += self._price(link.events[0])
        low = min(prices, key=lambda answer: prices[answer])
        if list(prices.values()).count(prices[low]) > 1:
            return ()
        return tuple(event for link in links if link.answer == low for event in link.events)

    def _in_use(self, *kinds: str) -> Said:
        """Pairs decided by answers or corrections in use, with their events."""
        found: Said = {}
        for entry, (kind, events) in zip(self._known.driver.answers, self._known.sources, strict=True):
            if kind in kinds and not entry.conflict:
                _add(found, said_in(entry), events)
        return found

    def _with_answer(self, seq: int) -> Said:
        """Pairs decided by all events in use and by one unused answer."""
        found = self._in_use("answer", "correction")
        for entry, (kind, events) in zip(self._known.driver.answers, self._known.sources, strict=True):
            if kind == "answer" and seq in events and entry.conflict:
                _add(found, said_in(entry), events)
        return found

    def _with_correction(self, seq: int, proposed: Correction | None) -> Said:
        """Pairs decided by all events in use and by an unused or proposed correction, which overrides earlier ones."""
        waiting = self._known.quarantined - {seq}
        corrections = [one for one in self._known.corrections() if one.seq not in waiting]
        found = self._in_use("answer")
        for correction in in_force([*corrections, *([] if proposed is None else [proposed])]):
            _add(found, correction.pairs(self._rows.position), (correction.seq,))
        return found

    def _as_constraints(self, said: Said) -> Constraints:
        must, cannot = (_pairs(said, answer) for answer in (SAME, DIFFERENT))
        return self._known.prior | Constraints(must, cannot, n_samples=len(self._rows.present))

    def _cheapest(self, said: Said, seq: int) -> tuple[int, ...]:
        """The events to drop, chosen by `Constraints.repair`. Constraints from the start of the project are kept.

        Of two repairs at the same price, the one that drops the unused event is taken.
        """

        def price(answer: Answer) -> list[float]:
            return [
                sum(
                    self._price(event) * (_UNUSED if event == seq else 1.0)
                    for event, says in said[pair]
                    if says is answer
                )
                for pair in _pairs(said, answer)
            ]

        prior = self._known.prior
        prices: dict[str, Any] = {
            "must_link": [np.inf] * len(prior.must_link) + price(SAME),
            "cannot_link": [np.inf] * len(prior.cannot_link) + price(DIFFERENT),
        }
        for kind in ("label", "must_group", "cannot_group"):
            given = getattr(prior, f"{kind}s")
            if given is not None and (given >= 0).any():
                prices[kind] = np.inf
        known = self._as_constraints(said)
        try:
            dropped = known.repair(max(known.n_rows, 1), prices).dropped
        except ConstraintError:  # the constraints from the start contradict each other
            return ()
        found = set()
        for one in dropped:
            answer = SAME if one.kind == "must_link" else DIFFERENT
            pair = tuple(sorted(getattr(known, one.kind)[one.index].tolist()))
            found |= {event for event, says in said[pair] if says is answer}
        return tuple(sorted(found))

    def _price(self, seq: int) -> float:
        """Price of an event: its confidence times the probability that it is right; higher if it was confirmed."""
        record = self._ledger.records.get(seq)
        if record is None or record.certain:
            return _CERTAIN_PRICE
        right = self._right.get(seq, _UNEXPECTED if record.expected not in (None, record.answer) else 1.0)
        return record.confidence * right * (_CONFIRMED if record.confirmed else 1.0)

    def provenance(self, first: int, second: int) -> list[int]:
        """The events in use that imply the relation between two row positions."""
        told = self._in_use("answer", "correction").get(Pair(first, second).key, [])
        return [event for event, _ in told]

    def _link(self, one: int, two: int, answer: Answer, said: Said) -> Link:
        left, right = self._rows.names([one, two])
        events = [event for event, says in said.get(Pair(one, two).key, []) if says is answer]
        words = ", ".join(self._who(event) for event in events) if events else self._given(one, two)
        return Link(left, right, answer.value, tuple(event for event in events if event), words)

    def _given(self, one: int, two: int) -> str:
        """Why a pair is decided without an answer or a correction: by its source, or by the given constraints."""
        sources = self._rows.sources
        if sources is None or not sources[one] or sources[one] != sources[two]:
            return _GIVEN
        return f'both are from the source "{sources[one]}"'

    def _who(self, seq: int) -> str:
        if not seq:
            return "this correction"
        event, record = self._ledger.event(seq), self._ledger.records.get(seq)
        when = event.time[:16].replace("T", " ")
        if record is not None and record.certain:
            return f"imported fact {seq}, {when}"
        what = f"{event.payload['kind']}, correction {seq}" if event.kind == "correction" else f"answer {seq}"
        return f"{what} by {event.annotator}, {when}"


def _add(found: Said, pairs: Iterable[tuple[Pair, Answer]], events: tuple[int, ...]) -> None:
    for pair, answer in pairs:
        found.setdefault(pair.key, []).extend((event, answer) for event in events)


def _pairs(said: Said, answer: Answer) -> list[tuple[int, int]]:
    return [pair for pair, told in said.items() if any(says is answer for _, says in told)]
