"""Ask questions, record answers, revise them and resolve conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew._words import name_key
from clew.active import SAME, Answer, Auto, Pair
from clew.constraints import key_of
from clew.exceptions import AnsweredError, NotFoundError, ParameterError
from clew.session._events import UNDOABLE, Event
from clew.session._leases import question_of
from clew.session._ledger import Record
from clew.session._project import ProjectLog
from clew.session._results import Conflict, Question, Told
from clew.session._settings import check_confidence, check_name, check_seconds, check_text, check_word
from clew.session._state import SessionState
from clew.session._store import Lease, Transaction
from clew.session._strategies import ONE_SIDED, has_small_groups, next_strategy, strategy_in

# Confidence of answers that become soft constraints when a conflict is resolved with "soft".
_PREFERENCE = 0.5


class Asking:
    """The part of a session that asks questions and records answers. `Session` documents its methods."""

    def __init__(self, project: ProjectLog) -> None:
        self._project = project

    @property
    def _state(self) -> SessionState:
        return self._project.state

    def ask(self, annotator: str = "me", *, n: int | None = None) -> Any:
        """Return the next question for an annotator, or None if none is left. With `n`: a list of up to n questions."""
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
            raise ParameterError(f"n={n!r} in ask: expected an integer >= 1.")
        check_name(annotator)
        found: list[Question] = []
        with self._project.writing() as transaction:
            while len(found) < (n or 1):
                lease = self._next_lease(transaction, annotator)
                if lease is None:
                    break
                self._project.mark_ahead()
                self._state.leases.change([lease])
                found.append(question_of(lease))
        if n is None:
            return found[0] if found else None
        return found

    def _next_lease(self, transaction: Transaction, annotator: str) -> Lease | None:
        leases, now = self._state.leases, self._project.clock()
        expires = now + self._state.ledger.settings["lease_seconds"]
        again, useless = leases.expired(annotator, now)
        for lease in useless:
            self._project.mark_ahead()
            transaction.change_lease(lease, is_open=False)
            leases.drop(lease)
        if again is not None:
            return transaction.change_lease(again, annotator=annotator, expires=expires)
        payload = leases.next_payload(annotator)
        if payload is None:
            return None
        self._project.mark_ahead()  # the driver may have a pending question that is not yet committed
        return transaction.add_lease(payload, annotator, expires)

    # -- answering -------------------------------------------------------------------------------------------------

    def tell(
        self,
        question: Question | int,
        answer: Any,
        *,
        annotator: str | None = None,
        seconds: float | None = None,
        confidence: float = 1.0,
        comment: str | None = None,
        flag: bool = False,
        about: Sequence[Any] | None = None,
    ) -> Told:
        """Record the answer to a question. The answer is committed when the call returns."""
        given = {
            "confidence": check_confidence(confidence), "seconds": check_seconds(seconds),
            "comment": check_text("comment", comment), "flag": bool(flag),
        }  # fmt: skip
        number = question.id if isinstance(question, Question) else question
        if about is None and isinstance(question, Question):
            about = question.left, question.right
        turn = None
        with self._project.writing() as transaction:
            lease = self._lease(transaction, number)
            _check_rows(lease, about)
            said = _read_answer(lease.payload, answer)
            if lease.answered is not None:
                return self._told_before(lease, said)
            who = check_name(lease.annotator if annotator is None else annotator)
            before = self._state.leases.answer_of(who, lease)
            if before is not None:  # to an earlier question about this pair, which had expired and came again
                lease = transaction.change_lease(lease, answered=before.id, is_open=False)
                return self._told_before(lease, said)
            payload = {
                **said, **given, "question": lease.id, "check": lease.payload["check"],
                "expected": self._expected(lease), "implied": self._following(lease, said),
            }  # fmt: skip
            answer_id = self._project.append(transaction, "answer", who, payload).seq
            transaction.change_lease(lease, answered=answer_id, is_open=False)
            turn = self._turn(said["answer"], who)
            if turn is not None:
                self._project.append(transaction, "setting", "", turn)
        return self._told(answer_id, None if turn is None else turn["reason"])

    def _lease(self, transaction: Transaction, number: Any) -> Lease:
        lease = self._state.leases.get(number)
        if lease is None and isinstance(number, int) and 0 < number <= transaction.last_question:
            lease = transaction.lease(number)
        if lease is None:
            raise NotFoundError(f"There is no question {number!r}. Answer one that was asked.")
        return lease

    def _told_before(self, lease: Lease, said: dict[str, Any]) -> Told:
        assert lease.answered is not None
        before = self._state.ledger.first_answer(lease.answered)
        is_other_row = said["kind"] == "which" and key_of(before.right) != key_of(said["right"])
        if before.answer != said["answer"] or is_other_row:
            raise AnsweredError(
                f"Question {lease.id} was answered {before.answer!r} by {before.annotator}. "
                f"To change that, revise answer {before.id}."
            )
        return self._told(before.id)

    def _told(self, seq: int, note: str | None = None) -> Told:
        with self._project.reading():
            event = self._state.ledger.event(seq)
            conflict = self._state.conflicts.of(seq, priced=False) if seq in self._state.known.conflicting else None
            return Told(seq, event.payload["implied"], conflict, note)

    def _expected(self, lease: Lease) -> str | None:
        """The answer that the current clusters predict."""
        if lease.payload["kind"] == "which":
            return None
        rows = self._state.rows.ordinals((lease.payload["left"], lease.payload["right"]))
        one, two = self._state.labelling.labels[rows]
        return None if min(one, two) < 0 else "same" if one == two else "different"

    def _following(self, lease: Lease, said: dict[str, Any]) -> int:
        """Number of further pairs that an answer decides, among rows with answers."""
        question = self._state.leases.question(lease)
        if not isinstance(question, Pair) or said["answer"] == "unsure":
            return 0
        answer = Answer(said["answer"])
        knowledge = self._state.known.driver.view.knowledge
        return max(knowledge.n_decided_by(*question.key, answer, among_answered=True) - 1, 0)

    def _turn(self, answer: str, annotator: str) -> dict[str, Any] | None:
        """Switch strategy after too many "different" of one annotator in a row, and back when answers are mixed again.

        A strategy that the user chose is kept.
        """
        ledger = self._state.ledger
        chosen, now = ledger.settings["strategy"], strategy_in(ledger.settings)["name"]
        if not (chosen is None or chosen.get("automatic")):
            return None
        own, everybody = ([answer, *ledger.answers_since_setting(ONE_SIDED - 1, name)] for name in (annotator, ""))
        is_one_sided = len(own) == ONE_SIDED and set(own) == {"different"}
        is_mixed_again = chosen is not None and len(everybody) == ONE_SIDED and set(everybody) != {"different"}
        if not (is_one_sided or is_mixed_again) or self._groups_are_small():
            return None  # most near pairs of records are different, so no other strategy would ask better
        if is_mixed_again:
            return {"settings": {"strategy": None}, "reason": "Answers are mixed again: the usual strategy asks now."}
        name = next_strategy(now)
        reason = f'{ONE_SIDED} answers in a row were "different": {name} asks now instead of {now}.'
        return {"settings": {"strategy": {"name": name, "parameters": {}, "automatic": True}}, "reason": reason}

    def _groups_are_small(self) -> bool:
        """Whether there are many groups, or the default strategy is about to find out."""
        driver = self._state.known.driver
        if isinstance(driver.strategy, Auto) and (
            driver.strategy.comparison_pair(driver.view) is not None or driver.strategy.has_many_groups(driver.view)
        ):
            return True
        return has_small_groups(self._state.ledger.settings, driver)

    # -- undoing and revising --------------------------------------------------------------------------------------

    def undo(self, annotator: str | None = None) -> Event | None:
        """Undo the last event of any annotator, or of one annotator. Returns the undone event, or None."""
        with self._project.writing(mends=True) as transaction:
            target = self._last_undoable(None if annotator is None else check_name(annotator))
            if target is None:
                return None
            who, payload = annotator or target.annotator, {"undoes": target.seq}
            self._project.append(transaction, "undo", who, payload | self._moves("undo", payload))
            question = target.payload.get("question") if target.kind == "answer" else None
            lease = None if question is None else transaction.lease(question)
            if lease is not None:
                expires = self._project.clock() + self._state.ledger.settings["lease_seconds"]
                transaction.change_lease(lease, answered=None, is_open=True, expires=expires)
        return target

    def _moves(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        """The rows that move when corrections are taken back, for the payload of the event."""
        if self._state.problem is not None:
            return {}
        moves = self._state.effects.of_taking_back(Event(0, kind, "", "", payload))
        return {} if moves is None else {"moves": moves}

    def _last_undoable(self, annotator: str | None) -> Event | None:
        ledger = self._state.ledger
        for event in reversed(ledger.events):
            said = event.kind in UNDOABLE and event.annotator  # events by the session itself have no annotator
            if not said or event.seq in ledger.undone or event.payload.get("batch") is not None:
                continue
            if annotator is None or name_key(event.annotator) == name_key(annotator):
                return event
        return None

    def revise(
        self,
        answer_id: int,
        answer: Any,
        *,
        annotator: str = "me",
        confidence: float | None = None,
        comment: str | None = None,
    ) -> Told:
        """Change an earlier answer. The log keeps both versions."""
        check_name(annotator)
        change: dict[str, Any] = {} if confidence is None else {"confidence": check_confidence(confidence)}
        change |= {} if comment is None else {"comment": check_text("comment", comment)}
        with self._project.writing() as transaction:
            change = self._change(answer_id, answer) | change
            self._project.append(transaction, "revise", annotator, {"changes": [change]})
        return self._told(answer_id)

    def confirm(self, answer_id: int, *, annotator: str = "me") -> Record:
        """Confirm an answer after a second look. `review` then lists it only if it is part of a conflict."""
        check_name(annotator)
        with self._project.writing() as transaction:
            self._record(answer_id)
            self._project.append(transaction, "confirm", annotator, {"changes": [{"answer_id": answer_id}]})
        return self._record(answer_id)

    def _record(self, answer_id: Any) -> Record:
        record = self._state.ledger.records.get(answer_id)
        if record is None:
            raise NotFoundError(f"There is no answer {answer_id!r}. The history lists all answers.")
        return record

    def _change(self, answer_id: Any, answer: Any) -> dict[str, Any]:
        record = self._record(answer_id)
        said = _read_answer(vars(record), answer)
        return {"answer_id": answer_id, "answer": said["answer"], "right": said["right"]}

    # -- conflicts -------------------------------------------------------------------------------------------------

    def conflicts(self) -> list[Conflict]:
        """All contradictions and disagreements that are not resolved yet."""
        with self._project.reading():
            return self._state.conflicts.all()

    def resolve(
        self,
        conflict: Conflict | int,
        how: str,
        *,
        answer_id: int | None = None,
        answer: Any = None,
        correction: int | None = None,
        annotator: str = "me",
    ) -> list[Conflict]:
        """Resolve a conflict. Returns the remaining conflicts."""
        check_word("how", how, ("change", "withdraw", "soft", "unsure", "repair"))
        check_name(annotator)
        with self._project.writing() as transaction:
            seq = conflict.id if isinstance(conflict, Conflict) else conflict
            if seq not in self._state.conflicts.ids():
                raise NotFoundError(
                    f"There is no conflict {seq!r}. `clew review` and `Session.conflicts` list the conflicts."
                )
            found = self._state.conflicts.of(seq)
            if how == "withdraw":
                changes = [{"answer_id": _withdrawn(found, correction), "answer": "unsure"}]
            else:
                changes = self._resolving(found, how, answer_id, answer)
            payload = {"conflict": seq, "how": how, "changes": changes}
            self._project.append(transaction, "resolve", annotator, payload | self._moves("resolve", payload))
        return self.conflicts()

    def _resolving(self, found: Conflict, how: str, answer_id: int | None, answer: Any) -> list[dict[str, Any]]:
        records = self._state.ledger.records
        if how == "repair":
            if not found.cheapest:
                raise ParameterError(f"No repair of conflict {found.id} is cheaper than the others. Choose an answer.")
            return [self._giving_way(event) for event in found.cheapest]
        if how == "change":
            target = found.id if answer_id is None else answer_id
            if target not in records or target not in (*found.answers, found.id):
                known = ", ".join(map(str, found.answers))
                raise ParameterError(f"Answer {target!r} is not part of conflict {found.id}. Its answers: {known}.")
            if answer is None and records[target].kind == "which":
                raise ParameterError(f"Answer {target} chose among several rows. Say the new answer: answer=...")
            opposite = "different" if records[target].answer == "same" else "same"
            return [self._change(target, opposite if answer is None else answer)]
        if found.kind == "disagreement" and how == "unsure":
            return [{"answer_id": one, "answer": "unsure"} for one in found.answers]
        if how == "unsure":
            return [{"answer_id": found.id, "answer": "unsure"}]
        if not found.answers:
            raise ParameterError(f"Conflict {found.id} has no answer that could be changed. Use how='unsure'.")
        return [{"answer_id": one, "aside": True, "confidence": _PREFERENCE} for one in found.answers]

    def _giving_way(self, event: int) -> dict[str, Any]:
        """The change of an event in a repair: the opposite answer, or "unsure" for a correction or choice of rows."""
        record = self._state.ledger.records.get(event)
        if record is None:
            return {"answer_id": event, "answer": "unsure"}
        if record.kind == "which":
            return self._change(event, "unsure")
        return self._change(event, "different" if record.answer == "same" else "same")


def _withdrawn(found: Conflict, correction: int | None) -> int:
    """The correction of a conflict to take back: the given one, or the only one."""
    known = ", ".join(map(str, found.corrections)) or "none"
    if correction is None and len(found.corrections) != 1:
        raise ParameterError(f"Say which correction of conflict {found.id} to take back. Its corrections: {known}.")
    chosen = found.corrections[0] if correction is None else correction
    if chosen not in found.corrections:
        raise ParameterError(f"Correction {chosen!r} is not part of conflict {found.id}. Its corrections: {known}.")
    return chosen


def _check_rows(lease: Lease, about: Sequence[Any] | None) -> None:
    """Raise if an answer is about other rows than its question."""
    asked = lease.payload["left"], lease.payload["right"]
    if about is not None and [key_of(row) for row in about] != [key_of(row) for row in asked]:
        shown, known = (" and ".join(str(row) for row in rows if row is not None) for rows in (about, asked))
        raise NotFoundError(
            f"Question {lease.id} of this project is about {known}, not about {shown}. The answer was not recorded: "
            "it belongs to another project, or to another copy of this one."
        )


def _read_answer(question: dict[str, Any], answer: Any) -> dict[str, Any]:
    """Parse an answer to a question into event fields, with the user's row ids."""
    said = {"kind": question["kind"], "left": question["left"], "right": question["right"]}
    if question["kind"] != "which":
        return said | {"answer": Answer.of(answer).value}
    candidates = {key_of(name): name for name in question["candidates"]}
    said |= {"candidates": list(question["candidates"]), "right": None}
    if not isinstance(answer, Answer) and key_of(answer) in candidates:
        return said | {"right": candidates[key_of(answer)], "answer": "same"}
    word = Answer.of("different" if str(answer).strip().casefold() == "none" else answer)
    if word is SAME:
        raise ParameterError(f"Say which row it is the same as: one of {list(question['candidates'])}.")
    return said | {"answer": word.value}
