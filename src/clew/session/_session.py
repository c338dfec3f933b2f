"""`Session`: the loop of asking, answering and correcting, kept in a log that nothing is lost from."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from clew.constraints import Constraints
from clew.constraints._records import records_of
from clew.exceptions import ParameterError
from clew.session import _conflicts
from clew.session._agreement import Agreement, agreement
from clew.session._asking import Asking
from clew.session._events import Event, to_json
from clew.session._exchange import Exchanging
from clew.session._leases import is_worth_asking, question_of
from clew.session._ledger import Record
from clew.session._results import Progress, Question, ReviewItem
from clew.session._review import ReviewPlan, plan_review, quick_review
from clew.session._settings import SCALES, TEXTS, check_cluster, check_name, check_word, checked, utc
from clew.session._state import State
from clew.session._store import Store, is_url
from clew.session._table import Changes, ids_of, packed_rows, reference, referenced, row_hashes, table_of


class Session(Asking, Exchanging):
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
    3
    """

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
        text: str = "auto",
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
        scale, text : str, default="auto"
            How columns become numbers, see `clew.datasets.encode`; `describe` tells what became of them.
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
        given = checked(
            {
                "n_clusters": n_clusters, "method": method, "strategy": strategy, "overlap": overlap, "metric": metric,
                "lease_seconds": lease_seconds, "check_share": check_share, "random_state": random_state,
            }
        )  # fmt: skip
        check_word("scale", scale, SCALES)
        check_word("text", text, TEXTS)
        table = table_of(data, id_column)
        ids = ids_of(table, id_column)
        names = list(table.values)
        settings = given | {
            "id_column": id_column,
            "columns": None if columns is None else list(columns),
            "scale": scale,
            "text": text,
            "table_columns": names,
        }
        if n_clusters is not None and n_clusters > table.n_rows:
            raise ParameterError(f"n_clusters={n_clusters}, but there are {table.n_rows} rows. Lower n_clusters.")
        known = Constraints.of(constraints, n_samples=table.n_rows, ids=np.array(ids, dtype=object))
        known.require_consistent()
        where = reference(data, None if is_url(path_or_url) else Path(path_or_url).resolve().parent)
        payload = {"settings": settings, "data": where, "prior": _records(known)}
        body = packed_rows(ids, row_hashes(table, names), table if where is None else None)
        first = Event(1, "create", utc(time.time()), "", json.loads(to_json(payload)), body)
        state = State([first], lambda _: table, [])  # what cannot be clustered is refused before anything is written
        return cls(Store.create(path_or_url, name, first), state=state)

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
            session = cls(store, data)
            session._remember_data()
            return session
        except BaseException:
            store.close()
            raise

    def _remember_data(self) -> None:
        """A data file that is somewhere else now is found there from now on."""
        where = reference(self._data, self._store.folder)
        if where is None or where == self._state.ledger.data():
            return
        with self._writing() as transaction:
            payload = {"settings": {}, "data": where, "reason": None}
            self._append(transaction, "setting", "", payload)

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
        return f"<Session {self._store.name!r} in {self._store.place}, {self._version} events>"

    def refresh(self) -> int:
        """Take in what other processes have written; gives the version."""
        with self._reading():
            last_seq, lease_version = self._store.versions()
            if last_seq != self._version:
                self._catch_up(self._store.events(self._version))
            if lease_version != self._lease_version:
                self._state.take_leases(self._store.leases())
                self._lease_version = lease_version
            return self._version

    def set(self, *, annotator: str = "me", **settings: Any) -> None:
        """Change settings.

        n_clusters, method, strategy, metric, overlap, lease_seconds, check_share, random_state; and how rows become
        vectors: columns, scale, text.
        """
        check_name(annotator)
        values = checked(settings)
        with self._writing() as transaction:
            n_rows = len(self._state.rows.present)
            if (values.get("n_clusters") or 1) > n_rows:
                raise ParameterError(
                    f"n_clusters={values['n_clusters']}, but there are {n_rows} rows. Lower n_clusters."
                )
            self._state.require_encodable(values)
            self._append(transaction, "setting", annotator, {"settings": values, "reason": None})

    # -- looking ---------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The number of the last event this session knows."""
        return self._version

    @property
    def said_version(self) -> int:
        """The number of the last event that says something about the rows: not a fit, a name or a confirmation."""
        with self._reading():
            return self._state.said_version

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
    def folder(self) -> Path | None:
        """Where file names in cells start: the folder of the data; None if the project keeps the data itself."""
        where = self._state.ledger.data()
        if where is None:
            return None
        path = referenced(where, self._store.folder)
        return path if path.is_dir() else path.parent

    @property
    def changes(self) -> Changes:
        """What differs between the data and what the project knows of it."""
        return self._state.rows.changes

    @property
    def constraints(self) -> Constraints:
        """What a fit gets, about the present rows, with their ids."""
        with self._reading():
            return self._state.constraints()._replace(ids=np.array(self.ids, dtype=object))

    def row(self, row: Any) -> dict[str, Any]:
        """The user's values of a row."""
        with self._reading():
            return self._state.rows.values(row)

    def cluster_of(self, row: Any) -> int | None:
        """The cluster a row is in now; None while there are none."""
        with self._reading():
            label = int(self._state.labels[self._state.rows.find(row)])
            return None if label < 0 else label

    def members(self, cluster: int) -> list[Any]:
        """The rows of a cluster, the most typical first."""
        with self._reading():
            return [self._state.rows.ids[row] for row in self._state.clusters.rows(check_cluster(cluster))]

    @property
    def is_stale(self) -> bool:
        """Whether something was said since the clusters were made."""
        with self._reading():
            return self._state.is_stale

    def describe(self) -> str:
        """What became of each column, and how much it weighs."""
        with self._reading():
            return self._state.rows.encoded.describe()

    def answers(self) -> list[Record]:
        """Answers in effect, oldest first."""
        with self._reading():
            return self._state.ledger.answers()

    def history(self) -> list[Event]:
        """Everything that happened, oldest first."""
        with self._reading():
            return list(self._state.ledger.events)

    def pending(self) -> list[Question]:
        """Questions that wait for an answer."""
        with self._reading():
            return [question_of(lease) for lease in self._state.leases.values()]

    def worth_asking(self, question: Question | int) -> bool:
        """Whether a question still waits for an answer that does not follow from others."""
        with self._reading():
            lease = self._state.leases.get(question.id if isinstance(question, Question) else question)
            return lease is not None and is_worth_asking(lease, self._state)

    def review(self, *, quick: bool = False) -> list[ReviewItem]:
        """Answers worth a second look, the most suspicious first, with reasons and the likely right answer.

        Takes seconds: `clew.audit.review` weighs what the rows and all other answers say. With `quick`, milliseconds:
        answers that the present clusters break or pay for. Both list contradictions, disagreements and flags, and leave
        out what somebody looked at again and kept (`confirm`).
        """
        if not quick:
            return self.plan_review().run()
        with self._reading():
            return quick_review(self._state)

    def plan_review(self) -> ReviewPlan:
        """A review whose `run` needs neither the session nor its lock; it can be pickled."""
        with self._reading():
            return plan_review(self._state)

    def agreement(self) -> Agreement:
        """How people agree about pairs that were answered more than once."""
        with self._reading():
            return agreement(self._state.slots.values())

    def provenance(self, pair: Sequence[Any]) -> list[Event]:
        """The answers and corrections in use that speak about two rows."""
        with self._reading():
            first, second = (self._state.rows.find_present(name) for name in pair)
            return [self._state.ledger.event(seq) for seq in _conflicts.provenance(self._state, first, second)]

    def progress(self) -> Progress:
        """Where things stand, and whether it is time to stop."""
        with self._reading():
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
                conflicts=len(self.conflicts()) if state.conflicting else 0,
                pending=len(self._state.leases),
                expected_gain=now.expected_gain,
                can_stop=now.can_stop,
                reason=now.reason,
                strategy=state.strategy,
                seconds=float(np.median(times)) if times else None,
                stale=state.is_stale,
                version=self._version,
                notes=state.notes,
            )


def _records(known: Constraints) -> dict[str, list[Any]] | None:
    """Prior knowledge as the log holds it, in the user's ids."""
    if not known:
        return None
    columns = records_of(known)
    kept = [place for place, answer in enumerate(columns["answer"]) if answer != "rows"]
    return {name: [values[place] for place in kept] for name, values in columns.items()}
