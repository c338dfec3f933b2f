"""`Session`: the loop of asking, answering and correcting, kept in a log that nothing is lost from."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from clew._validation import check_parameters, integer, number
from clew.active import SAME, Answer, Pair, Which
from clew.active._view import mean_row, squared_distances
from clew.constraints import Constraints, key_of
from clew.constraints._records import records_of
from clew.datasets import Table
from clew.exceptions import FileError, ParameterError
from clew.session import _conflicts, _export
from clew.session._agreement import Agreement, agreement
from clew.session._clustering import FitPlan, FitResult, check_method
from clew.session._corrections import KINDS, Correction, never_rows
from clew.session._events import UNDOABLE, Event
from clew.session._import import Imported, answers_in
from clew.session._ledger import Ledger, Record
from clew.session._results import Cluster, Conflict, Corrected, Progress, Question, ReviewItem, Told
from clew.session._review import review
from clew.session._state import State, packed_labels
from clew.session._store import Lease, Store, Transaction, is_url
from clew.session._strategies import ONE_SIDED, next_strategy, strategy_setting
from clew.session._table import (
    Changes,
    encoded,
    ids_of,
    like,
    packed_rows,
    reference,
    referenced,
    row_hashes,
    table_of,
    unpacked_rows,
)

# Confidence of answers that a resolved conflict keeps as preferences.
_PREFERENCE = 0.5
# Rows shown for a cluster.
_SHOWN = 6
_SETTABLE = ("n_clusters", "method", "strategy", "overlap", "lease_seconds", "check_share", "random_state", "metric")
_SCALES = ("auto", "standard", "none")
_METRICS = ("euclidean", "cosine")


class Session:
    """Questions, answers and corrections about one table, kept for good.

    `Session.create` begins a project, `Session.open` goes on with it. Everything said is appended to a log, in a
    SQLite file or a PostgreSQL database, before a call returns; clusters are derived from it. Several processes and
    threads may use one project at once.

    Examples
    --------
    >>> from clew import Session
    >>> with Session.create("toy.clew", [[0.0], [0.1], [5.0], [5.1]], n_clusters=2) as session:
    ...     while (question := session.ask()) is not None:
    ...         same = (question.left < 2) == (question.right < 2)
    ...         told = session.tell(question, "same" if same else "different")
    ...     session.labels()
    {0: 0, 1: 0, 2: 1, 3: 1}
    >>> with Session.open("toy.clew") as session:
    ...     session.progress().answered
    2
    """

    def __init__(self, store: Store, data: Any = None) -> None:
        self._store, self._data = store, data
        self._lock = threading.RLock()
        self._clock: Callable[[], float] = time.time
        self._open: dict[int, Lease] | None = None
        self._lease_version = -1
        self._closed = False
        self._state = State(store.events(), self._read_base)
        self._sync_leases(store.leases(), -1)

    # -- opening ---------------------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path_or_url: str | os.PathLike[str],
        data: Any,
        *,
        name: str | None = None,
        id_column: str | None = None,
        columns: Sequence[str] | None = None,
        n_clusters: int | None = None,
        method: str | None = None,
        strategy: Any = None,
        scale: str = "auto",
        metric: str = "euclidean",
        constraints: Any = None,
        overlap: int = 1,
        lease_seconds: float = 600,
        check_share: float = 0.0,
        random_state: int = 0,
    ) -> Self:
        """Begin a project.

        Parameters
        ----------
        path_or_url : path or str
            A new SQLite file, usually NAME.clew, or ``postgresql://user@host/database``.
        data : path, frame, array or sparse matrix
            A file is referred to, not copied. Data that is in no file is kept in the project.
        name : str, optional
            The project's name; that of the file unless given.
        id_column : str, optional
            Names the rows. Without it rows are known by their position in the data.
        columns : sequence of str, optional
            The columns to cluster by.
        n_clusters : int, optional
            Where it is known.
        method : str, optional
            An estimator by its name in the shell, such as "pck-means"; unless given, every certain answer and
            correction holds.
        strategy : str or Strategy, optional
            What to ask, such as "min-max"; unless given, the best for whether `n_clusters` is known.
        scale : {"auto", "standard", "none"}, default="auto"
        metric : {"euclidean", "cosine"}, default="euclidean"
        constraints : optional
            What is known beforehand, in any form `Constraints.of` takes; pairs in dicts, frames and files are ids.
        overlap : int, default=1
            How many people are asked about each pair.
        lease_seconds : float, default=600
            After this time a question without an answer may go to somebody else.
        check_share : float, default=0.0
            Share of questions about what is implied already, to find errors; at most 0.05.
        random_state : int, default=0
        """
        given = {
            "n_clusters": n_clusters, "method": method, "strategy": strategy_setting(strategy), "overlap": overlap,
            "lease_seconds": lease_seconds, "check_share": check_share, "random_state": random_state, "metric": metric,
        }  # fmt: skip
        _check_settings(given)
        _check_word("scale", scale, _SCALES)
        table = table_of(data, id_column)
        ids = ids_of(table, id_column)
        names = list(table.values)
        for column in columns or ():
            table.column(column)
        settings = given | {
            "id_column": id_column, "columns": None if columns is None else list(columns), "scale": scale,
            "table_columns": names,
        }  # fmt: skip
        encoded(table, settings)
        if n_clusters is not None and n_clusters > table.n_rows:
            raise ParameterError(f"n_clusters={n_clusters}, but there are {table.n_rows} rows. Lower n_clusters.")
        known = Constraints.of(constraints, n_samples=table.n_rows, ids=np.array(ids, dtype=object))
        known.require_consistent()
        folder = None if is_url(path_or_url) else Path(path_or_url).resolve().parent
        where = reference(data, folder)
        payload = {"settings": settings, "data": where, "prior": _prior(known)}
        body = packed_rows(ids, row_hashes(table, names), table if where is None else None)
        store = Store.create(path_or_url, name, (_now(time.time()), payload, body))
        return cls(store, None if where is None else table)

    @classmethod
    def open(cls, path_or_url: str | os.PathLike[str], data: Any = None, *, name: str | None = None) -> Self:
        """Go on with a project.

        Parameters
        ----------
        path_or_url : path or str
        data : path, frame or array, optional
            Where the data is now; unless given, the file the project refers to. `changes` says what differs.
        name : str, optional
            Which project, where a database holds several.
        """
        store = Store.open(path_or_url, name)
        try:
            return cls(store, data)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Let go of the project; what was acknowledged is safe in any case."""
        with self._lock:
            self._closed = True
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self._store.name!r} in {self._store.place}, {self.version} events>"

    def _read_base(self, ledger: Ledger) -> Table:
        created = ledger.events[0]
        settings, _ = ledger.settings()
        if self._data is not None:
            return table_of(self._data, settings["id_column"])
        where = created.payload["data"]
        if where is not None:
            return table_of(referenced(where, self._store.folder), settings["id_column"])
        table = unpacked_rows(created.body or b"")[2]
        assert table is not None
        return table

    # -- transactions ----------------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        with self._lock:
            self._require_open()
            with self._store.writing() as transaction:
                for event in transaction.events(self.version):
                    self._state.apply(event)
                if transaction.lease_version != self._lease_version:
                    self._sync_leases(transaction.leases(), transaction.lease_version)
                yield transaction
            self._lease_version = transaction.lease_version

    def _append(
        self, transaction: Transaction, kind: str, annotator: str, *payloads: dict[str, Any], body: bytes | None = None
    ) -> list[Event]:
        now = _now(self._clock())
        return transaction.append([(kind, now, annotator, payload, body) for payload in payloads])

    def _apply(self, events: list[Event]) -> None:
        """Own events, once they are committed."""
        for event in events:
            self._state.apply(event)
            self._restore_pending(event)

    def _restore_pending(self, event: Event) -> None:
        """A rebuilt driver has forgotten who was asked what."""
        if event.kind != "answer":
            self._hold_open()

    def _require_open(self) -> None:
        if self._closed:
            raise FileError("This session is closed. Open it again with Session.open.")

    def refresh(self) -> int:
        """Take in what other processes have written; gives the version."""
        with self._lock:
            self._require_open()
            fresh = self._store.events(self.version)
            for event in fresh:
                self._state.apply(event)
            if fresh:
                self._sync_leases(self._store.leases(), -1)
            return self.version

    # -- asking ----------------------------------------------------------------------------------------------------

    def ask(self, annotator: str = "me", *, n: int | None = None) -> Any:
        """The next question for a person, or None when nothing is left; with `n`, a list of up to n.

        A question belongs to the person for `lease_seconds`; without an answer it then goes to the next who asks. It is
        recorded before it is returned.
        """
        if n is not None and (not isinstance(n, int) or n < 1):
            raise ParameterError(f"n={n!r} in ask: expected an integer >= 1.")
        _check_name(annotator)
        found: list[Question] = []
        with self._writing() as transaction:
            drawn: list[Any] = []
            try:
                while len(found) < (n or 1) and (one := self._next(transaction, annotator, drawn)) is not None:
                    found.append(one)
            except BaseException:
                for question in drawn:
                    self._state.driver.release(question)
                self._lease_version = -1
                raise
        if n is None:
            return found[0] if found else None
        return found

    def _next(self, transaction: Transaction, annotator: str, drawn: list[Any]) -> Question | None:
        expires = self._clock() + self._state.settings["lease_seconds"]
        again = self._expired(transaction, annotator)
        if again is not None:
            transaction.change_lease(again.id, annotator=annotator, expires=expires)
            lease = Lease(again.id, again.payload, annotator, expires, None, True)
        else:
            payload = self._second_opinion(annotator) or self._fresh(drawn)
            if payload is None:
                return None
            lease = transaction.add_lease(payload, annotator, expires)
        self._leases[lease.id] = lease
        return _question(lease)

    @property
    def _leases(self) -> dict[int, Lease]:
        assert self._open is not None
        return self._open

    def _expired(self, transaction: Transaction, annotator: str) -> Lease | None:
        """A question whose time is over and that is still worth asking; others are closed."""
        now = self._clock()
        for lease in list(self._leases.values()):
            if lease.expires > now:
                continue
            if not self._is_worth_asking(lease):
                transaction.change_lease(lease.id, is_open=False)
                self._drop(lease)
            elif lease.annotator == annotator or annotator not in self._people_of(lease):
                return lease
        return None

    def _is_worth_asking(self, lease: Lease) -> bool:
        question = self._driver_question(lease)
        if question is None:
            return False
        if lease.payload["check"] or self._state.settings["overlap"] > 1:
            return True
        view = self._state.driver.view
        if isinstance(question, Pair):
            return view.known(*question.key) is None
        return any(view.known(question.row, one) is None for one in question.candidates)

    def _people_of(self, lease: Lease) -> set[str]:
        """Who has answered, or is asked, the same pair."""
        key = _pair_key(lease.payload)
        others = {one.annotator for one in self._leases.values() if _pair_key(one.payload) == key}
        return others | self._answered_by(key)

    def _answered_by(self, key: Any) -> set[str]:
        if key is None:
            return set()
        slot = tuple(sorted(self._state.ordinal[one] for one in key))
        return {record.annotator for record in self._state.slots.get(slot, ())}

    def _second_opinion(self, annotator: str) -> dict[str, Any] | None:
        """A pair that fewer people than wanted were asked about, and this one was not."""
        wanted = self._state.settings["overlap"]
        if wanted < 2:
            return None
        asked: dict[Any, tuple[dict[str, Any], set[str]]] = {}
        for lease in self._leases.values():
            asked.setdefault(_pair_key(lease.payload), (lease.payload, set()))[1].add(lease.annotator)
        for slot, records in self._state.slots.items():
            record = records[0]
            if record.kind == "which" or record.question is None:
                continue
            key = frozenset((key_of(record.left), key_of(record.right)))
            payload = {
                "kind": "pair", "left": record.left, "right": record.right, "candidates": [], "check": record.check,
                "why": "A second opinion.", "rows": None,
            }  # fmt: skip
            people = asked.setdefault(key, (payload, set()))[1]
            people |= {one.annotator for one in self._state.slots[slot]}
        for key, (payload, people) in asked.items():
            if key is not None and len(people) < wanted and annotator not in people:
                return payload
        return None

    def _fresh(self, drawn: list[Any]) -> dict[str, Any] | None:
        check = self._check_question()
        question = check or self._state.driver.ask()
        if question is None:
            return None
        if check is not None:
            self._state.driver.hold(check)
        drawn.append(question)
        return self._payload(question)

    def _check_question(self) -> Pair | None:
        """A pair that is implied but was never asked, where checks are wanted and due."""
        share = self._state.settings["check_share"]
        records = self._state.ledger.records.values()
        n_checks = sum(one.check for one in records) + sum(one.payload["check"] for one in self._leases.values())
        n_asked = len(records) + len(self._leases)
        if n_checks + 1 > share * (n_asked + 1):
            return None
        view = self._state.driver.view
        rng = np.random.default_rng([self._state.settings["random_state"], n_asked, n_checks])
        rows = sorted({row for pair in view.asked for row in pair})
        for _ in range(20):
            first = int(rng.choice(rows))
            second = int(rng.choice(view.knowledge.rows(first)))
            pair = Pair(first, second, why="A check of what follows from other answers.", check=True)
            if first != second and pair.key not in view.asked and pair.key not in view.pending:
                return pair
        return None

    def _payload(self, question: Any) -> dict[str, Any]:
        names = self._state.rows.names
        if isinstance(question, Which):
            row, *candidates = names([question.row, *question.candidates])
            return {"kind": "which", "left": row, "right": None, "candidates": candidates, "why": question.why,
                    "check": False, "rows": None}  # fmt: skip
        left, right = names([question.first, question.second])
        rows = None if question.rows is None else [names(some[:_SHOWN]) for some in question.rows]
        return {"kind": "pair" if rows is None else "clusters", "left": left, "right": right, "candidates": [],
                "why": question.why, "check": question.check, "rows": rows}  # fmt: skip

    def _driver_question(self, lease: Lease) -> Pair | Which | None:
        """A leased question in the driver's terms; None if a row is missing now."""
        payload, rows = lease.payload, self._state.rows
        names = [payload["left"], *(payload["candidates"] if payload["kind"] == "which" else [payload["right"]])]
        places = [int(rows.position[self._state.ordinal[key_of(name)]]) for name in names]
        if min(places) < 0:
            return None
        if payload["kind"] == "which":
            return Which(places[0], tuple(places[1:]), payload["why"])
        return Pair(places[0], places[1], payload["why"], payload["check"])

    def _sync_leases(self, leases: list[Lease], version: int) -> None:
        """The open questions as the database has them."""
        for lease in (self._open or {}).values():
            question = self._driver_question(lease)
            if question is not None:
                self._state.driver.release(question)
        self._open = {lease.id: lease for lease in leases}
        self._lease_version = version
        self._hold_open()

    def _hold_open(self) -> None:
        for lease in self._leases.values():
            question = self._driver_question(lease)
            if question is not None:
                self._state.driver.hold(question)

    def _drop(self, lease: Lease) -> None:
        self._leases.pop(lease.id, None)
        question = self._driver_question(lease)
        if question is not None and all(
            _pair_key(one.payload) != _pair_key(lease.payload) for one in self._leases.values()
        ):
            self._state.driver.release(question)

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
        number_of = question.id if isinstance(question, Question) else question
        _check_confidence(confidence)
        with self._writing() as transaction:
            lease = self._leases.get(number_of) or transaction.lease(number_of)
            if lease is None:
                raise ParameterError(f"There is no question {number_of!r}. Answer what ask() returned.")
            said = self._read_answer(lease, answer)
            if lease.answered is not None:
                return self._told_before(lease, said)
            who = lease.annotator if annotator is None else annotator
            _check_name(who)
            payload = {
                **said, "question": lease.id, "confidence": float(confidence), "seconds": _seconds(seconds),
                "comment": comment, "flag": bool(flag), "check": lease.payload["check"],
                "expected": self._expected(lease), "implied": self._following(lease, said),
            }  # fmt: skip
            events = self._append(transaction, "answer", who, payload)
            transaction.change_lease(lease.id, answered=events[0].seq, is_open=False)
            turn = self._turn(said)
            if turn is not None:
                events += self._append(transaction, "setting", "", turn)
        self._leases.pop(lease.id, None)
        self._apply(events)
        return self._told(events[0].seq, None if turn is None else turn["reason"])

    def _told_before(self, lease: Lease, said: dict[str, Any]) -> Told:
        assert lease.answered is not None
        before = self._state.ledger.records.get(lease.answered)
        if before is None or (before.answer, key_of(before.right)) != (said["answer"], key_of(said["right"])):
            raise ParameterError(
                f"Question {lease.id} was answered {before.answer if before else 'before'!r}: answer {lease.answered}. "
                f"To change it: revise({lease.answered}, ...)."
            )
        return self._told(lease.answered)

    def _told(self, seq: int, note: str | None = None) -> Told:
        event = self._state.ledger.event(seq)
        assert event is not None
        return Told(seq, event.payload["implied"], self._conflict(seq), note)

    def _conflict(self, seq: int) -> Conflict | None:
        return _conflicts.conflict_of(self._state, seq)

    def _read_answer(self, lease: Lease, answer: Any) -> dict[str, Any]:
        """What an answer says, in the user's ids."""
        payload = lease.payload
        said = {"kind": payload["kind"], "left": payload["left"], "right": payload["right"]}
        if payload["kind"] != "which":
            return said | {"answer": Answer.of(answer).value}
        chosen = {key_of(name): name for name in payload["candidates"]}
        said["candidates"] = payload["candidates"]
        if not isinstance(answer, Answer) and key_of(answer) in chosen:
            return said | {"right": chosen[key_of(answer)], "answer": "same"}
        word = Answer.of("different" if str(answer).strip().casefold() == "none" else answer)
        if word is SAME:
            raise ParameterError(f"Say which row it is the same as: one of {payload['candidates']}.")
        return said | {"answer": word.value}

    def _expected(self, lease: Lease) -> str | None:
        if lease.payload["kind"] == "which":
            return None
        labels = self._state.labels[[self._state.ordinal[key_of(lease.payload[side])] for side in ("left", "right")]]
        return None if labels.min() < 0 else "same" if labels[0] == labels[1] else "different"

    def _following(self, lease: Lease, said: dict[str, Any]) -> int:
        question = self._driver_question(lease)
        if not isinstance(question, Pair):
            return 0
        return self._state.n_following(question.first, question.second, Answer(said["answer"]))

    def _turn(self, said: dict[str, Any]) -> dict[str, Any] | None:
        """Another strategy after too many "different" in a row, unless somebody chose this one."""
        state = self._state
        chosen = state.settings["strategy"]
        if said["answer"] != "different" or not (chosen is None or chosen.get("automatic")):
            return None
        run = 1
        for event in reversed(state.ledger.events):
            if run >= ONE_SIDED or event.kind == "setting":
                break
            if event.kind == "answer" and event.seq not in state.ledger.undone:
                if event.payload["answer"] != "different":
                    break
                run += 1
        if run < ONE_SIDED:
            return None
        name = next_strategy(state.strategy)
        return {
            "settings": {"strategy": {"name": name, "parameters": {}, "automatic": True}},
            "reason": f'{ONE_SIDED} answers in a row were "different": {name} asks now instead of {state.strategy}.',
        }

    # -- changing one's mind ---------------------------------------------------------------------------------------

    def undo(self, annotator: str | None = None) -> Event | None:
        """Take back the last thing said, by anybody or by one person; gives the event undone, None if there is none.

        The question of an answer that is taken back is open again and with the same person. Undoing again goes further
        back.
        """
        with self._writing() as transaction:
            target = self._last_undoable(annotator)
            if target is None:
                return None
            events = self._append(transaction, "undo", annotator or target.annotator, {"undoes": target.seq})
            question = target.payload.get("question") if target.kind == "answer" else None
            lease = None if question is None else transaction.lease(question)
            if lease is not None:
                expires = self._clock() + self._state.settings["lease_seconds"]
                transaction.change_lease(lease.id, answered=None, is_open=True, expires=expires)
                lease = Lease(lease.id, lease.payload, lease.annotator, expires, None, True)
        if lease is not None:
            self._leases[lease.id] = lease
        self._apply(events)
        return target

    def _last_undoable(self, annotator: str | None) -> Event | None:
        ledger = self._state.ledger
        for event in reversed(ledger.events):
            if event.kind not in UNDOABLE or event.seq in ledger.undone or event.payload.get("batch") is not None:
                continue
            if event.payload.get("settings", {}).get("strategy", {}) and event.annotator == "":
                continue  # nobody said it: the session chose another strategy itself
            if annotator is None or event.annotator == annotator:
                return event
        return None

    def revise(
        self, answer_id: int, answer: Any, *, annotator: str = "me", confidence: float | None = None,
        comment: str | None = None,
    ) -> Told:  # fmt: skip
        """Change an earlier answer; the log keeps both."""
        _check_name(annotator)
        if confidence is not None:
            _check_confidence(confidence)
        with self._writing() as transaction:
            change = self._change(answer_id, answer)
            change |= {} if confidence is None else {"confidence": float(confidence)}
            change |= {} if comment is None else {"comment": comment}
            events = self._append(transaction, "revise", annotator, {"changes": [change]})
        self._apply(events)
        return self._told(answer_id)

    def _change(self, answer_id: int, answer: Any) -> dict[str, Any]:
        record = self._state.ledger.records.get(answer_id)
        if record is None:
            raise ParameterError(f"There is no answer {answer_id!r} to revise. answers() lists them.")
        payload = {"kind": record.kind, "left": record.left, "right": record.right,
                   "candidates": list(record.candidates)}  # fmt: skip
        said = self._read_answer(Lease(0, payload, "", 0.0, None, True), answer)
        return {"answer_id": answer_id, "answer": said["answer"], "right": said["right"]}

    def resolve(
        self, conflict: Conflict | int, how: str, *, answer_id: int | None = None, answer: Any = None,
        annotator: str = "me",
    ) -> list[Conflict]:  # fmt: skip
        """Settle a conflict; gives those that are left.

        Parameters
        ----------
        conflict : Conflict or int
            One of `conflicts()`, or its id.
        how : {"change", "soft", "unsure"}
            change one answer (`answer_id`, and the new `answer`, by default the opposite); keep all its answers as
            preferences that clusters follow where it is cheap; or take what waits for "unsure": a correction is then
            withdrawn.
        """
        _check_word("how", how, ("change", "soft", "unsure"))
        _check_name(annotator)
        with self._writing() as transaction:
            seq = conflict.id if isinstance(conflict, Conflict) else conflict
            found = next((one for one in _conflicts.conflicts(self._state) if one.id == seq), None)
            if found is None:
                raise ParameterError(f"There is no conflict {seq!r}. conflicts() lists them.")
            changes = self._resolving(found, how, answer_id, answer)
            events = self._append(transaction, "resolve", annotator, {"conflict": seq, "how": how, "changes": changes})
        self._apply(events)
        return self.conflicts()

    def _resolving(self, found: Conflict, how: str, answer_id: int | None, answer: Any) -> list[dict[str, Any]]:
        records = self._state.ledger.records
        if how == "change":
            target = found.id if answer_id is None else answer_id
            if target not in records or target not in (*found.answers, found.id):
                raise ParameterError(
                    f"Answer {target!r} is not part of conflict {found.id}. Its answers: {found.answers}."
                )
            opposite = "different" if records[target].answer == "same" else "same"
            return [self._change(target, opposite if answer is None else answer)]
        if how == "soft":
            return [{"answer_id": one, "aside": True, "confidence": _PREFERENCE} for one in found.answers]
        if found.kind == "disagreement":
            return [{"answer_id": one, "answer": "unsure"} for one in found.answers]
        return [{"answer_id": found.id, "answer": "unsure"}]

    # -- correcting ------------------------------------------------------------------------------------------------

    def merge(self, cluster: int, other: int, *, annotator: str = "me") -> Corrected:
        """Two clusters are one: all their rows stay together in every later fit. The first keeps its id."""
        return self._correct(annotator, "merge", cluster, other)

    def split(self, cluster: int, rows: Sequence[Any], *, annotator: str = "me") -> Corrected:
        """Some rows of a cluster become one of their own, which gets a new id."""
        return self._correct(annotator, "split", cluster, rows)

    def move(self, row: Any, cluster: int | None = None, *, annotator: str = "me") -> Corrected:
        """A row belongs to another cluster, or (None) out of its own into one by itself."""
        return self._correct(annotator, "move", row, cluster)

    def never(self, *, clusters: Sequence[int] | None = None, rows: Sequence[Any] | None = None,
              annotator: str = "me") -> Corrected:  # fmt: skip
        """Two clusters, or two rows, are never together."""
        return self._correct(annotator, "never", clusters, rows)

    def preview(self, kind: str, *args: Any, **named: Any) -> Corrected:
        """What a correction would change, without making it: ``preview("merge", 0, 3)``."""
        _check_word("kind", kind, KINDS)
        with self._lock:
            self._require_open()
            self._require_clusters()
            proposed = self._proposed(kind, *_arguments(kind, args, named))
            return self._corrected(None, proposed, self._state.conflicts_with(proposed))

    def _correct(self, annotator: str, kind: str, *args: Any) -> Corrected:
        _check_name(annotator)
        self._require_clusters()
        with self._writing() as transaction:
            proposed = self._proposed(kind, *args)
            contradicts = self._state.conflicts_with(proposed)
            preview = self._corrected(None, proposed, contradicts)
            payload = proposed.payload(self._state.rows.ids) | {"conflict": contradicts}
            events = self._append(transaction, "correction", annotator, payload)
        self._apply(events)
        conflict = self._conflict(events[0].seq) if contradicts else None
        return Corrected(events[0].seq, preview.changed, preview.cluster, conflict)

    def _proposed(self, kind: str, *args: Any) -> Correction:
        state, find = self._state, self._state.rows.find_present
        clusters, new_id = state.clusters, state.next_cluster

        def ordinal(name: Any) -> int:
            find(name)
            return state.rows.find(name)

        if kind == "merge":
            return clusters.merge(*map(_cluster_id, args))
        if kind == "split":
            if isinstance(args[1], str | bytes) or not isinstance(args[1], Sequence | np.ndarray | set):
                raise ParameterError(f"rows={args[1]!r} in split: expected a list of row ids.")
            return clusters.split(_cluster_id(args[0]), [ordinal(name) for name in args[1]], new_id)
        if kind == "move":
            return clusters.move(ordinal(args[0]), None if args[1] is None else _cluster_id(args[1]), new_id)
        between, rows = args
        if (between is None) == (rows is None) or len(between if rows is None else rows) != 2:
            raise ParameterError("never: give two clusters (clusters=[0, 3]) or two rows (rows=['a', 'b']).")
        if rows is not None:
            return never_rows(*map(ordinal, rows))
        return clusters.never(*map(_cluster_id, between))

    def _corrected(self, seq: int | None, proposed: Correction, contradicts: bool) -> Corrected:
        ids = self._state.rows.ids
        if contradicts:
            return Corrected(seq, {}, None, _conflicts.conflict_of(self._state, 0, proposed))
        changed = {ids[row]: (before, after) for rows, before, after in proposed.changes for row in rows}
        return Corrected(seq, changed, proposed.changes[0][2] if proposed.changes else None)

    def _require_clusters(self) -> None:
        if not self._state.fitted_version:
            self.fit()

    # -- clusters --------------------------------------------------------------------------------------------------

    def plan_fit(self) -> FitPlan:
        """All that a fit needs now; its `run` may go on in another thread while people answer."""
        with self._lock:
            self._require_open()
            self.refresh()
            return self._state.plan()

    def adopt(self, result: FitResult) -> bool:
        """Make the result of a plan the clusters; False if it came too late, after a correction or new rows."""
        with self._writing() as transaction:
            state = self._state
            late = ("correction", "undo", "rows_added", "setting")
            if any(event.kind in late for event in state.ledger.events[result.version :]):
                return False
            labels, next_cluster = state.identified(result)
            if state.fitted_version and np.array_equal(labels, state.labels) and result.notes == state.notes:
                state.fitted_version = max(state.fitted_version, result.version)
                return True
            payload = {
                "version": result.version, "next_cluster": next_cluster, "notes": list(result.notes),
                "clusters": len(np.unique(labels[result.rows])),
            }  # fmt: skip
            events = self._append(transaction, "fit", "", payload, body=packed_labels(labels))
        self._apply(events)
        return True

    def fit(self) -> dict[Any, int]:
        """Cluster anew with everything said so far; ids of clusters that stay are kept."""
        while not self.adopt(self.plan_fit().run()):
            pass
        return self.labels(refit=False)

    def labels(self, *, refit: bool = True) -> dict[Any, int]:
        """Cluster id of each row that is present; fits first if something was said since, unless `refit` is False."""
        with self._lock:
            self._require_open()
            if refit and self._state.is_stale:
                self.fit()
            state = self._state
            return {state.rows.ids[row]: int(state.labels[row]) for row in state.rows.present if state.labels[row] >= 0}

    def clusters(self, *, refit: bool = True) -> list[Cluster]:
        """The clusters by id, with typical and borderline rows."""
        with self._lock:
            self.labels(refit=refit)
            state = self._state
            X, present = state.rows.X, state.rows.present
            labels, names = state.labels[present], state.ledger.names()
            ids = np.unique(labels[labels >= 0])
            if not len(ids):
                return []
            centers = np.array([mean_row(X, np.flatnonzero(labels == one)) for one in ids])
            found = []
            for place, cluster in enumerate(ids.tolist()):
                rows = np.flatnonzero(labels == cluster)
                far = squared_distances(X, rows, centers)
                own = far[:, place].copy()
                far[:, place] = np.inf
                typical = rows[np.argsort(own, kind="stable")[:_SHOWN]]
                doubt = np.argsort(far.min(axis=1) - own, kind="stable")[:_SHOWN] if len(ids) > 1 else np.array([], int)
                found.append(
                    Cluster(
                        cluster, names.get(cluster), len(rows), state.rows.names(typical), state.rows.names(rows[doubt])
                    )
                )
            return found

    def name_cluster(self, cluster: int, name: str, *, annotator: str = "me") -> None:
        """Give a cluster a name, which stays with its id; an empty name takes it away."""
        _check_name(annotator)
        self._require_clusters()
        with self._writing() as transaction:
            self._state.clusters.rows(_cluster_id(cluster))
            events = self._append(transaction, "name", annotator, {"cluster": int(cluster), "name": str(name)})
        self._apply(events)

    def set(self, *, annotator: str = "me", **settings: Any) -> None:
        """Change settings: n_clusters, method, strategy, metric, overlap, lease_seconds, check_share, random_state."""
        unknown = [name for name in settings if name not in _SETTABLE]
        if unknown or not settings:
            raise ParameterError(f"set: expected some of {', '.join(_SETTABLE)}, got {', '.join(settings) or 'none'}.")
        if "strategy" in settings:
            settings["strategy"] = strategy_setting(settings["strategy"])
        with self._writing() as transaction:
            _check_settings({name: self._state.settings[name] for name in _SETTABLE} | settings)
            events = self._append(transaction, "setting", annotator, {"settings": settings, "reason": None})
        self._apply(events)

    # -- data and answers in and out -------------------------------------------------------------------------------

    def add_rows(self, data: Any = None, *, annotator: str = "me") -> list[Any]:
        """Take in new rows; each joins the cluster nearest to it until the next fit. Gives their ids.

        Parameters
        ----------
        data : path, frame or array, optional
            Rows with the columns of the project; they are kept in the log. Unless given, rows that were appended to the
            data file since.
        """
        with self._writing() as transaction:
            state = self._state
            settings = state.settings
            columns, id_column = settings["table_columns"], settings["id_column"]
            if data is None:
                table = self._read_base(state.ledger)
                fresh = [row for row, name in enumerate(ids_of(table, id_column)) if key_of(name) not in state.ordinal]
                if not fresh:
                    return []
                ids = [ids_of(table, id_column)[row] for row in fresh]
                hashes = row_hashes(table, columns)[fresh]
                body = packed_rows(ids, hashes, None)
            else:
                table = like(table_of(data, id_column), columns, id_column)
                ids = (
                    ids_of(table, id_column)
                    if id_column
                    else [f"new-{len(state.rows.ids) + row}" for row in range(table.n_rows)]
                )
                twice = [name for name in ids if key_of(name) in state.ordinal]
                if twice:
                    raise ParameterError(f"Row {twice[0]!r} is known already. New rows need ids of their own.")
                body = packed_rows(ids, row_hashes(table, columns), table)
            clusters = self._nearest_clusters(body, len(ids))
            payload = {"ids": ids, "clusters": clusters, "from_file": data is None}
            events = self._append(transaction, "rows_added", annotator, payload, body=body)
        self._apply(events)
        self._sync_leases(self._store.leases(), -1)
        return ids

    def _nearest_clusters(self, body: bytes, n_new: int) -> list[int]:
        """The cluster nearest to each new row, with all rows encoded together; -1 while there are none."""
        state = self._state
        if not state.fitted_version:
            return [-1] * n_new
        grown = state.with_rows(body)
        labels = np.concatenate([state.labels, np.full(n_new, -1)])[grown.present]
        clusters = np.unique(labels[labels >= 0])
        centers = np.array([mean_row(grown.X, np.flatnonzero(labels == one)) for one in clusters])
        new = grown.position[len(state.labels) :]
        return clusters[squared_distances(grown.X, new, centers).argmin(axis=1)].tolist()

    def import_answers(self, answers: Any, *, annotator: str | None = None) -> int:
        """Take in answers from elsewhere; gives how many were new.

        Parameters
        ----------
        answers : path or records
            A file with columns ``id_1, id_2, answer[, confidence, annotator, time, seconds, comment]``, or such
            records as dicts or tuples.
        annotator : str, optional
            Who gave them, where they do not say.
        """
        found, source = answers_in(answers)
        with self._writing() as transaction:
            have = {self._identity(one) for one in self._state.ledger.records.values()}
            payloads = []
            for one in found:
                who = one.annotator or annotator or "import"
                payload = self._imported(one, source)
                identity = (*_unordered(one.left, one.right), one.answer, who)
                if identity not in have:
                    have.add(identity)
                    payloads.append((who, payload))
            if not payloads:
                return 0
            header = {"source": source, "count": len(payloads)}
            events = self._append(transaction, "import", annotator or "import", header)
            now = _now(self._clock())
            events += transaction.append(
                [("answer", now, who, payload | {"batch": events[0].seq}, None) for who, payload in payloads]
            )
        self._apply_batch(events)
        return len(payloads)

    def _apply_batch(self, events: list[Event]) -> None:
        for event in events:
            self._state.apply(event)
        self._hold_open()

    def _imported(self, one: Imported, source: str) -> dict[str, Any]:
        rows = self._state.rows
        left, right = rows.ids[rows.find(one.left)], rows.ids[rows.find(one.right)]
        if key_of(left) == key_of(right):
            raise ParameterError(f"An answer names row {left!r} twice. Remove it.")
        _check_confidence(one.confidence)
        payload = {
            "kind": "pair", "left": left, "right": right, "answer": one.answer, "confidence": one.confidence,
            "seconds": one.seconds, "comment": one.comment, "source": source, "implied": 0,
        }  # fmt: skip
        return payload | ({} if one.time is None else {"time": one.time})

    @staticmethod
    def _identity(record: Record) -> tuple[Any, ...]:
        return (*_unordered(record.left, record.right), record.answer, record.annotator)

    def export(self, what: str, path: str | os.PathLike[str]) -> None:
        """Write "labels", "constraints" or "answers" as csv, tsv, jsonl or parquet, whole or not at all."""
        with self._lock:
            if what == "labels":
                self.labels()
            _export.export(self._state, what, path)

    # -- looking ---------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The number of the last event this session knows."""
        return self._state.ledger.version

    @property
    def name(self) -> str:
        """The name of the project."""
        return self._store.name

    @property
    def settings(self) -> dict[str, Any]:
        """The settings as they are now."""
        return dict(self._state.settings)

    @property
    def ids(self) -> list[Any]:
        """Ids of the rows that are present."""
        return self._state.rows.names(range(len(self._state.rows.present)))

    @property
    def changes(self) -> Changes:
        """What differs between the data and what the project knows of it."""
        return self._state.rows.changes

    @property
    def constraints(self) -> Constraints:
        """What a fit gets, about the present rows, with their ids."""
        with self._lock:
            return self._state.constraints()._replace(ids=np.array(self.ids, dtype=object))

    def row(self, row: Any) -> dict[str, Any]:
        """The user's values of a row."""
        with self._lock:
            return self._state.rows.values(row)

    def answers(self) -> list[Record]:
        """Answers in effect, oldest first."""
        with self._lock:
            return self._state.ledger.answers()

    def history(self) -> list[Event]:
        """Everything that happened, oldest first."""
        with self._lock:
            return list(self._state.ledger.events)

    def pending(self) -> list[Question]:
        """Questions that wait for an answer."""
        with self._lock:
            return [_question(lease) for lease in self._leases.values()]

    def conflicts(self) -> list[Conflict]:
        """What contradicts what, and disagreements; each waits, out of use, to be resolved."""
        with self._lock:
            return _conflicts.conflicts(self._state)

    def review(self) -> list[ReviewItem]:
        """Answers worth a second look, the most suspicious first."""
        with self._lock:
            return review(self._state)

    def agreement(self) -> Agreement:
        """How people agree about pairs that were answered more than once."""
        with self._lock:
            return agreement(self._state.slots.values())

    def provenance(self, pair: Sequence[Any]) -> list[Event]:
        """The answers and corrections in use that speak about two rows."""
        with self._lock:
            first, second = (self._state.rows.find_present(name) for name in pair)
            events = (self._state.ledger.event(seq) for seq in _conflicts.provenance(self._state, first, second))
            return [event for event in events if event is not None]

    def progress(self) -> Progress:
        """Where things stand, and whether it is time to stop."""
        with self._lock:
            state = self._state
            now = state.driver.progress()
            records = state.ledger.answers()
            times = [record.seconds for record in records if record.seconds is not None]
            labels = state.labels[state.rows.present]
            return Progress(
                answered=len(records),
                unsure=sum(record.answer == "unsure" for record in records),
                implied=now.implied,
                groups=now.neighbourhoods,
                n_rows=len(state.rows.present),
                n_clusters=len(np.unique(labels[labels >= 0])),
                conflicts=len(self.conflicts()),
                pending=len(self._leases),
                expected_gain=now.expected_gain,
                can_stop=now.can_stop,
                reason=now.reason,
                strategy=state.strategy,
                seconds=float(np.median(times)) if times else None,
                stale=state.is_stale,
                version=self.version,
                notes=state.notes,
            )


# -- small checks ------------------------------------------------------------------------------------------------------


class _Settings:
    def __init__(self, values: dict[str, Any]) -> None:
        vars(self).update(values)


_Settings.__name__ = "Session"


def _check_settings(values: dict[str, Any]) -> None:
    allowed = {
        "overlap": integer(1), "lease_seconds": number(0), "check_share": number(0, 0.05), "random_state": integer(0),
    }  # fmt: skip
    if values["n_clusters"] is not None:
        allowed["n_clusters"] = integer(1)
    check_parameters(_Settings(values), allowed)
    _check_word("metric", values["metric"], _METRICS)
    check_method(values["method"])


def _check_word(name: str, value: Any, known: Sequence[str]) -> None:
    if value not in known:
        raise ParameterError(f"{name}={value!r}: expected {', '.join(map(repr, known[:-1]))} or {known[-1]!r}.")


def _check_confidence(confidence: Any) -> None:
    if not isinstance(confidence, int | float | np.number) or not 0 < confidence <= 1:
        raise ParameterError(f"confidence={confidence!r}: expected a number in (0, 1].")


def _check_name(annotator: Any) -> None:
    if not isinstance(annotator, str) or not annotator.strip() or len(annotator) > 200:
        raise ParameterError(f"annotator={annotator!r}: expected a name of 1 to 200 characters.")


def _seconds(seconds: Any) -> float | None:
    if seconds is None:
        return None
    if not isinstance(seconds, int | float | np.number) or not 0 <= float(seconds) < float("inf"):
        raise ParameterError(f"seconds={seconds!r}: expected a number >= 0.")
    return float(seconds)


def _cluster_id(cluster: Any) -> int:
    if isinstance(cluster, bool) or not isinstance(cluster, int | np.integer):
        raise ParameterError(f"{cluster!r} is no cluster id: expected an integer.")
    return int(cluster)


def _arguments(kind: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    names = {"merge": ("cluster", "other"), "split": ("cluster", "rows"), "move": ("row", "cluster"),
             "never": ("clusters", "rows")}[kind]  # fmt: skip
    values = dict(zip(names, args, strict=False)) | named
    if set(values) - set(names):
        raise ParameterError(f"preview({kind!r}): expected {names[0]} and {names[1]}.")
    return values.get(names[0]), values.get(names[1])


def _question(lease: Lease) -> Question:
    payload = lease.payload
    rows = payload["rows"]
    return Question(
        lease.id, payload["kind"], payload["left"], payload["right"], payload["why"], lease.annotator, lease.expires,
        tuple(payload["candidates"]), payload["check"],
        None if rows is None else (tuple(rows[0]), tuple(rows[1])),
    )  # fmt: skip


def _pair_key(payload: dict[str, Any]) -> frozenset[str] | None:
    if payload["kind"] == "which":
        return None
    return frozenset((key_of(payload["left"]), key_of(payload["right"])))


def _unordered(left: Any, right: Any) -> tuple[str, str]:
    one, two = sorted((key_of(left), key_of(right)))
    return one, two


def _prior(known: Constraints) -> dict[str, list[Any]] | None:
    if not known:
        return None
    columns = records_of(known)
    kept = [place for place, answer in enumerate(columns["answer"]) if answer != "rows"]
    return {name: [values[place] for place in kept] for name, values in columns.items()}


def _now(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
