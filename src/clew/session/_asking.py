"""Asking and answering, and changing one's mind."""

from __future__ import annotations

from typing import Any

from clew.active import SAME, Answer, Pair, Which
from clew.constraints import key_of
from clew.exceptions import AnsweredError, NotFoundError, ParameterError
from clew.session import _conflicts, _leases
from clew.session._core import Core
from clew.session._events import UNDOABLE, Event
from clew.session._ledger import Record
from clew.session._results import Conflict, Question, Told
from clew.session._settings import check_confidence, check_name, check_seconds, check_text, check_word
from clew.session._store import Lease, Transaction
from clew.session._strategies import ONE_SIDED, next_strategy

# Confidence of answers that a resolved conflict keeps as preferences.
_PREFERENCE = 0.5


class Asking(Core):
    """The part of a session that asks and takes answers."""

    def ask(self, annotator: str = "me", *, n: int | None = None) -> Any:
        """The next question for a person, or None when nothing is left; with `n`, a list of up to n.

        Each call gives new questions. One belongs to the person for `lease_seconds`; without an answer it then goes to
        the next who asks. It is recorded before it is returned.
        """
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
            raise ParameterError(f"n={n!r} in ask: expected an integer >= 1.")
        check_name(annotator)
        found: list[Question] = []
        drawn: list[Pair | Which] = []
        with self._reading():
            before: list[Lease] | None = None
            try:
                with self._writing() as transaction:
                    before = list(self._state.leases.values())
                    while len(found) < (n or 1):
                        lease = self._next_lease(transaction, annotator, drawn)
                        if lease is None:
                            break
                        self._state.leases[lease.id] = lease
                        found.append(_leases.question_of(lease))
            except BaseException:
                if before is not None:  # nobody was asked after all
                    for question in drawn:
                        self._state.driver.release(question)
                    self._state.take_leases(before)
                raise
        if n is None:
            return found[0] if found else None
        return found

    def _next_lease(self, transaction: Transaction, annotator: str, drawn: list[Pair | Which]) -> Lease | None:
        state, now = self._state, self._clock()
        expires = now + state.settings["lease_seconds"]
        again, useless = _leases.expired(state, annotator, now)
        for lease in useless:
            transaction.change_lease(lease, is_open=False)
            state.drop_lease(lease)
        if again is not None:
            return transaction.change_lease(again, annotator=annotator, expires=expires)
        payload = _leases.second_opinion(state, annotator)
        if payload is None:
            question = _leases.check_question(state)
            if question is not None:
                state.driver.hold(question)
            else:
                question = state.driver.ask()
            if question is None:
                return None
            drawn.append(question)
            payload = _leases.payload_of(question, state.rows)
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
    ) -> Told:
        """Record the answer to a question; it is safe when the call returns.

        Telling the same answer again changes nothing and returns the same; another answer to an answered question is
        refused, see `revise`. An answer that contradicts others is recorded and kept out of use: see `Told.conflict`.

        Parameters
        ----------
        question : Question or int
            What `ask` gave, or its id.
        answer : str
            same, different, unsure, or any word `Constraints` reads; for a "which" question a row id, "none" or
            "unsure".
        annotator : str, optional
            Who answers; whom the question was given to unless given.
        seconds : float, optional
            How long it took.
        confidence : float, default=1.0
            In (0, 1].
        comment : str, optional
        flag : bool, default=False
            Marks the answer for review.
        """
        given = {
            "confidence": check_confidence(confidence), "seconds": check_seconds(seconds),
            "comment": check_text("comment", comment), "flag": bool(flag),
        }  # fmt: skip
        number = question.id if isinstance(question, Question) else question
        turn = None
        with self._writing() as transaction:
            lease = self._lease(transaction, number)
            said = _read_answer(lease.payload, answer)
            if lease.answered is not None:
                return self._told_before(lease, said)
            who = check_name(lease.annotator if annotator is None else annotator)
            payload = {
                **said, **given, "question": lease.id, "check": lease.payload["check"],
                "expected": self._expected(lease), "implied": self._following(lease, said),
            }  # fmt: skip
            events = self._append(transaction, "answer", who, payload)
            transaction.change_lease(lease, answered=events[0].seq, is_open=False)
            turn = self._turn(said["answer"])
            if turn is not None:
                self._append(transaction, "setting", "", turn)
        return self._told(events[0].seq, None if turn is None else turn["reason"])

    def _lease(self, transaction: Transaction, number: Any) -> Lease:
        lease = self._state.leases.get(number) if isinstance(number, int) else None
        if lease is None and isinstance(number, int) and 0 < number <= transaction.last_question:
            lease = transaction.lease(number)
        if lease is None:
            raise NotFoundError(f"There is no question {number!r}. Answer what ask() returned.")
        return lease

    def _told_before(self, lease: Lease, said: dict[str, Any]) -> Told:
        assert lease.answered is not None
        before = self._state.ledger.first_answer(lease.answered)
        if (before.answer, key_of(before.right)) != (said["answer"], key_of(said["right"])):
            raise AnsweredError(
                f"Question {lease.id} was answered {before.answer!r} by {before.annotator}: answer {before.id}. "
                f"To change it: revise({before.id}, ...)."
            )
        return self._told(before.id)

    def _told(self, seq: int, note: str | None = None) -> Told:
        with self._reading():
            event = self._state.ledger.event(seq)
            conflict = _conflicts.conflict_of(self._state, seq) if seq in self._state.conflicting else None
            return Told(seq, event.payload["implied"], conflict, note)

    def _expected(self, lease: Lease) -> str | None:
        """What the clusters foresee."""
        if lease.payload["kind"] == "which":
            return None
        one, two = self._state.labels[list(self._state.slot_of(lease.payload["left"], lease.payload["right"]))]
        return None if min(one, two) < 0 else "same" if one == two else "different"

    def _following(self, lease: Lease, said: dict[str, Any]) -> int:
        """How many more pairs an answer decides."""
        question = self._state.driver_question(lease)
        if not isinstance(question, Pair) or said["answer"] == "unsure":
            return 0
        answer = Answer(said["answer"])
        return max(self._state.driver.view.knowledge.n_decided_by(*question.key, answer) - 1, 0)

    def _turn(self, answer: str) -> dict[str, Any] | None:
        """Another strategy after too many "different" in a row, and back after a while; unless one was chosen."""
        state = self._state
        chosen = state.settings["strategy"]
        if not (chosen is None or chosen.get("automatic")):
            return None
        since = state.ledger.answers_since_setting(ONE_SIDED - 1)
        if len(since) + 1 < ONE_SIDED:
            return None
        if all(one == "different" for one in (*since, answer)):
            name = next_strategy(state.strategy)
            reason = f'{ONE_SIDED} answers in a row were "different": {name} asks now instead of {state.strategy}.'
            return {"settings": {"strategy": {"name": name, "parameters": {}, "automatic": True}}, "reason": reason}
        if chosen is not None:
            return {"settings": {"strategy": None}, "reason": "Answers are mixed again: the usual strategy asks now."}
        return None

    # -- changing one's mind ---------------------------------------------------------------------------------------

    def undo(self, annotator: str | None = None) -> Event | None:
        """Take back the last thing said, by anybody or by one person; gives the event undone, None if there is none.

        The question of an answer that is taken back is open again and with the same person. Undoing again goes further
        back.
        """
        with self._writing() as transaction:
            target = self._last_undoable(None if annotator is None else check_name(annotator))
            if target is None:
                return None
            self._append(transaction, "undo", annotator or target.annotator, {"undoes": target.seq})
            question = target.payload.get("question") if target.kind == "answer" else None
            lease = None if question is None else transaction.lease(question)
            if lease is not None:
                expires = self._clock() + self._state.settings["lease_seconds"]
                transaction.change_lease(lease, answered=None, is_open=True, expires=expires)
        return target

    def _last_undoable(self, annotator: str | None) -> Event | None:
        ledger = self._state.ledger
        for event in reversed(ledger.events):
            said = event.kind in UNDOABLE and event.annotator  # the session itself has no name
            if not said or event.seq in ledger.undone or event.payload.get("batch") is not None:
                continue
            if annotator is None or event.annotator == annotator:
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
        """Change an earlier answer; the log keeps both.

        Parameters
        ----------
        answer_id : int
            `Told.id`, or `Record.id` of `answers()`.
        answer : str
            As `tell` takes it.
        annotator : str
        confidence : float, optional
            That of the earlier answer unless given.
        comment : str, optional
        """
        check_name(annotator)
        change: dict[str, Any] = {} if confidence is None else {"confidence": check_confidence(confidence)}
        change |= {} if comment is None else {"comment": check_text("comment", comment)}
        with self._writing() as transaction:
            change = self._change(answer_id, answer) | change
            self._append(transaction, "revise", annotator, {"changes": [change]})
        return self._told(answer_id)

    def confirm(self, answer_id: int, *, annotator: str = "me") -> Record:
        """Keep an answer after a second look; `review` then leaves it alone unless it is part of a contradiction."""
        check_name(annotator)
        with self._writing() as transaction:
            self._record(answer_id)
            self._append(transaction, "confirm", annotator, {"changes": [{"answer_id": answer_id}]})
        return self._record(answer_id)

    def _record(self, answer_id: Any) -> Record:
        record = self._state.ledger.records.get(answer_id)
        if record is None:
            raise NotFoundError(f"There is no answer {answer_id!r} to revise. answers() lists them.")
        return record

    def _change(self, answer_id: Any, answer: Any) -> dict[str, Any]:
        record = self._record(answer_id)
        said = _read_answer(vars(record), answer)
        return {"answer_id": answer_id, "answer": said["answer"], "right": said["right"]}

    # -- conflicts -------------------------------------------------------------------------------------------------

    def conflicts(self) -> list[Conflict]:
        """What contradicts what, and disagreements; each waits, out of use, to be resolved."""
        with self._reading():
            return _conflicts.conflicts(self._state)

    def resolve(
        self,
        conflict: Conflict | int,
        how: str,
        *,
        answer_id: int | None = None,
        answer: Any = None,
        annotator: str = "me",
    ) -> list[Conflict]:
        """Settle a conflict; gives those that are left.

        Parameters
        ----------
        conflict : Conflict or int
            One of `conflicts()`, or its id.
        how : {"change", "soft", "unsure"}
            Change one answer (`answer_id`, by default the one that waits; the new `answer` is the opposite unless
            given); keep all its answers as preferences, which the clusters follow where that is cheap; or take what
            waits for "unsure". A correction that waits then holds after "soft", and is withdrawn by "unsure".
        answer_id : int, optional
        answer : str, optional
        annotator : str
        """
        check_word("how", how, ("change", "soft", "unsure"))
        check_name(annotator)
        with self._writing() as transaction:
            seq = conflict.id if isinstance(conflict, Conflict) else conflict
            found = next((one for one in _conflicts.conflicts(self._state) if one.id == seq), None)
            if found is None:
                raise NotFoundError(f"There is no conflict {seq!r}. conflicts() lists them.")
            changes = self._resolving(found, how, answer_id, answer)
            payload = {"conflict": seq, "how": how, "changes": changes}
            self._append(transaction, "resolve", annotator, payload)
        return self.conflicts()

    def _resolving(self, found: Conflict, how: str, answer_id: int | None, answer: Any) -> list[dict[str, Any]]:
        records = self._state.ledger.records
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
            raise ParameterError(f"No answer is part of conflict {found.id} that could give way. Say how='unsure'.")
        return [{"answer_id": one, "aside": True, "confidence": _PREFERENCE} for one in found.answers]


def _read_answer(question: dict[str, Any], answer: Any) -> dict[str, Any]:
    """What an answer to a question says, in the user's ids."""
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
