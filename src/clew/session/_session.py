"""`Session`: ask, answer and correct clusters, with every event stored in a durable log."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from clew.constraints import AnswerRecord, Constraints
from clew.constraints._records import records_of
from clew.datasets import Table
from clew.datasets._as_table import id_column_of
from clew.datasets._read import checked_sources
from clew.exceptions import ParameterError
from clew.session._agreement import Agreement, agreement
from clew.session._asking import Asking
from clew.session._clustering import FitPlan, FitResult, PlacedRows
from clew.session._correcting import Correcting
from clew.session._events import Event, to_json
from clew.session._exchanging import Exchanging
from clew.session._export import export
from clew.session._leases import question_of
from clew.session._ledger import Record
from clew.session._project import ProjectLog
from clew.session._regrouping import Regrouping
from clew.session._results import Cluster, Conflict, Corrected, Grouping, Progress, Question, ReviewItem, Told
from clew.session._review import ReviewPlan
from clew.session._settings import (
    MAKING,
    SCALES,
    TEXTS,
    check_cluster,
    check_groups,
    check_name,
    check_word,
    checked,
    offered_methods,
    utc,
)
from clew.session._state import SessionState
from clew.session._store import Store, is_url
from clew.session._strategies import has_small_groups, strategy_in
from clew.session._table import Changes, ids_of, packed_rows, reference, referenced, row_hashes, table_of

# Largest number of seconds that `Session.close` waits for calls of other threads.
_PATIENCE = 2.0


class Session:
    """A project: questions, answers and corrections about one table, stored in a durable log.

    `Session.create` starts a project, and `Session.open` opens it again. Every answer and correction is appended to a
    log, in a SQLite file or a PostgreSQL database, before the call returns. Clusters are derived from the log. Several
    processes and threads may use one project at once.

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

    def __init__(self, project: ProjectLog) -> None:
        self._project = project
        self._asking, self._correcting, self._exchanging = Asking(project), Correcting(project), Exchanging(project)
        self._regrouping = Regrouping(project)

    @property
    def _state(self) -> SessionState:
        return self._project.state

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
        groups: str | None = None,
        method: str | None = None,
        strategy: Any = None,
        scale: str = "auto",
        text: str = "auto",
        metric: str = "auto",
        constraints: Any = None,
        source: str | None = None,
        overlap: int = 1,
        lease_seconds: float = 600,
        check_share: float | None = None,
        error_rate: float | None = None,
        random_state: int = 0,
    ) -> Self:
        """Create a project.

        Parameters
        ----------
        path_or_url : path or str
            A new SQLite file, usually NAME.clew, or ``postgresql://user@host/database``.
        data : path, frame, array or sparse matrix
            The project refers to a file by its path and does not copy it. Other data is stored in the project.
        name : str, optional
            Name of the project. Default: the name of the file.
        id_column : str, optional
            Column with the ids of the rows. Without it, rows are identified by their position in the data, or by their
            file names in a folder of images.
        columns : sequence of str, optional
            The columns to cluster by.
        n_clusters : int, optional
            Number of clusters, if it is known.
        groups : {"auto", "large", "small"}, optional
            "small" for very many groups of few rows, such as duplicate records. Their columns are then compared as
            text, numbers and dates, and a new row may start a group of its own. Default: "auto", the
            data or the first answers decide.
        method : str, optional
            Name of an estimator on the command line, such as "pck-means". Default: a method that satisfies every
            correction, and every certain answer while answers are facts.
        strategy : str or Strategy, optional
            Query strategy, such as "min-max". Default: "auto".
        scale, text : str, default="auto"
            Encoding of the columns, see `clew.datasets.encode`. `describe` shows the result.
        metric : {"auto", "euclidean", "cosine"}, default="auto"
            "auto" is cosine if text columns weigh more than all other columns, and Euclidean otherwise.
        constraints : optional
            Prior constraints, in any form that `Constraints.of` takes. Pairs in dicts, frames and files are row ids.
        source : str, optional
            A column that says which list each row comes from. A cluster has at most one row of each list. Rows without
            a value are free. The column is not compared, unless `columns` names it.
        overlap : int, default=1
            Number of annotators who are asked about each pair. With an `error_rate`, or once answers contradict each
            other, only pairs whose answer is in doubt are asked of more than one annotator.
        lease_seconds : float, default=600
            Time after which another annotator may get a question without an answer.
        check_share : float, optional
            Share of check questions, whose answers are already implied, to find errors: from 0 (none) to 0.05.
            Default: only the check questions of the strategy, which `Auto` asks if an answer looks wrong, at most 0.05.
        error_rate : float, optional
            Expected share of wrong answers, from 0 to below 0.5. Every answer is then weighed against all others, and
            second opinions are asked where they pay. Default: answers are facts until some contradict each other.
        random_state : int, default=0
        """
        given = checked(
            {
                "n_clusters": n_clusters, "groups": groups, "method": method, "strategy": strategy,
                "overlap": overlap, "metric": metric, "lease_seconds": lease_seconds,
                "check_share": check_share, "error_rate": error_rate, "random_state": random_state,
            }
        )  # fmt: skip
        check_groups(given)
        check_word("scale", scale, SCALES)
        check_word("text", text, TEXTS)
        if id_column is None and isinstance(data, str | os.PathLike):
            id_column = id_column_of(data)
        table = table_of(data, id_column)
        ids = ids_of(table, id_column)
        names = list(table.values)
        settings = given | {
            "id_column": id_column,
            "source": source,
            "columns": None if columns is None else list(columns),
            "scale": scale,
            "text": text,
            "table_columns": names,
        }
        if n_clusters is not None and n_clusters > table.n_rows:
            raise ParameterError(f"n_clusters={n_clusters}, but there are {table.n_rows} rows. Lower n_clusters.")
        known = Constraints.of(constraints, n_samples=table.n_rows, ids=np.array(ids, dtype=object)).numbered()
        apart = None if source is None else checked_sources(table, source)
        (known | Constraints(cannot_groups=apart, n_samples=table.n_rows)).require_consistent()
        where = reference(data, None if is_url(path_or_url) else Path(path_or_url).resolve().parent)
        payload = {"settings": settings, "data": where, "prior": _records(known)}
        body = packed_rows(ids, row_hashes(table, names), table if where is None else None)
        first = Event(1, "create", utc(time.time()), "", json.loads(to_json(payload)), body)
        state = SessionState([first], lambda _: table, [])
        if state.problem is not None:  # refuse data that cannot be clustered before anything is written
            raise state.problem
        return cls(ProjectLog(Store.create(path_or_url, name, first), state=state))

    @classmethod
    def open(cls, path_or_url: str | os.PathLike[str], data: Any = None, *, name: str | None = None) -> Self:
        """Open an existing project.

        Parameters
        ----------
        path_or_url : path or str
        data : path, frame or array, optional
            The data, if it has moved. Default: the file that the project refers to. `changes` lists the differences.
        name : str, optional
            Name of the project, if the database holds several.
        """
        store = Store.open(path_or_url, name)
        try:
            project = ProjectLog(store, data)
            project.remember_data()
            return cls(project)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Close the project. Every call that has returned is already committed.

        Running calls of other threads have a few seconds to finish. After that the database stays open for them.
        """
        self._project.close(_PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self._project.store.name!r} in {self._project.store.place}, {self.version} events>"

    def refresh(self) -> int:
        """Read the events that other processes have written. Returns the version."""
        return self._project.refresh()

    def set(self, *, annotator: str = "me", **settings: Any) -> None:
        """Change settings.

        Settings: n_clusters, groups, method, strategy, metric, overlap, lease_seconds, check_share, error_rate,
        random_state, and the encoding of rows as vectors: columns, scale, text.
        """
        check_name(annotator)
        values = checked(settings)
        with self._project.writing(mends=True) as transaction:
            if values.get("n_clusters") is not None and values["n_clusters"] > (
                n_rows := len(self._state.rows.present)
            ):
                raise ParameterError(
                    f"n_clusters={values['n_clusters']}, but there are {n_rows} rows. Lower n_clusters."
                )
            check_groups(self._state.ledger.settings | values)
            remakes = any(self._differs(name, values[name]) for name in MAKING if name in values)
            payload = {"settings": values, "reason": None, "remakes": remakes}
            self._project.append(transaction, "setting", annotator, payload)

    def _differs(self, name: str, value: Any) -> bool:
        """Whether a value differs from the current setting. For `n_clusters`, corrections are counted."""
        now = self._state.ledger.settings.get(name)
        counted = name == "n_clusters" and value is not None and now is not None
        return bool(value != (self._state.known.driver.n_clusters if counted else now))

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """Number of the last event that this session has read."""
        return self._project.version

    @property
    def said_version(self) -> int:
        """Number of the last event that is not a fit, a name, a confirmation or another grouping."""
        with self._project.reading():
            return self._state.ledger.said_version

    @property
    def name(self) -> str:
        """The name of the project."""
        return self._project.store.name

    @property
    def problem(self) -> str | None:
        """The reason why the log and the data cannot be turned into clusters. None if they can.

        Such a project can still be read: `answers`, `history` and `export("answers", ...)` work. To repair it, undo the
        last events with `undo` or change settings with `set`.
        """
        with self._project.reading():
            return None if self._state.problem is None else str(self._state.problem)

    @property
    def project_id(self) -> str:
        """Unique id of the project: a hash of its name and of the first event of its log.

        Moving the file does not change the id. A copy of the file has the same id.
        """
        first = self._state.ledger.event(1)
        head = "\n".join((self.name, first.time, to_json(first.payload)))
        return hashlib.sha256(head.encode() + (first.body or b"")).hexdigest()[:32]

    @property
    def settings(self) -> dict[str, Any]:
        """The current settings."""
        with self._project.reading():
            return dict(self._state.ledger.settings)

    @property
    def ids(self) -> list[Any]:
        """Ids of the rows that are present."""
        with self._project.reading():
            return self._state.rows.present_ids.tolist()

    @property
    def folder(self) -> Path | None:
        """Folder of the data, to which file names in cells are relative. None if the project stores the data."""
        where = self._state.ledger.data()
        if where is None:
            return None
        path = referenced(where, self._project.store.folder)
        return path if path.is_dir() else path.parent

    @property
    def changes(self) -> Changes:
        """Differences between the data now and the data that the project has recorded."""
        with self._project.reading():
            return self._state.rows.changes

    @property
    def constraints(self) -> Constraints:
        """The constraints that a fit uses, about the present rows, with their ids."""
        with self._project.reading():
            return self._state.known.constraints()._replace(ids=np.array(self.ids, dtype=object))

    def row(self, row: Any) -> dict[str, Any]:
        """Values of a row, as in the user's table."""
        with self._project.reading():
            return self._state.rows.values(row)

    def cluster_of(self, row: Any) -> int | None:
        """Current cluster of a row. None while there are no clusters."""
        with self._project.reading():
            label = int(self._state.labelling.labels[self._state.rows.find(row)])
            return None if label < 0 else label

    def probability_of(self, row: Any) -> float | None:
        """Probability of a row's cluster, as in `probabilities`. None if it has none."""
        with self._project.reading():
            rows = self._state.rows
            position = int(rows.position[rows.find(row)])
            found = math.nan if position < 0 else float(self._state.probability()[position])
            return None if math.isnan(found) else found

    def members(self, cluster: int) -> list[Any]:
        """The rows of a cluster, most typical first."""
        with self._project.reading():
            return [self._state.rows.ids[row] for row in self._state.labelling.clusters.rows(check_cluster(cluster))]

    @property
    def is_stale(self) -> bool:
        """Whether answers or corrections came after the last fit."""
        with self._project.reading():
            return self._state.ledger.is_stale

    @property
    def has_small_groups(self) -> bool:
        """Whether there are very many groups of few rows: it was set, or the questions have found out."""
        with self._project.reading():
            return has_small_groups(self._state.ledger.settings, self._state.known.driver)

    @property
    def methods(self) -> list[str]:
        """Names of the methods that suit the columns of this table, as `set(method=...)` takes them."""
        with self._project.reading():
            return offered_methods(self._state.rows.encoded.kinds.values())

    def describe(self) -> str:
        """Describe the encoding and the weight of each column, or how small groups of records compare it."""
        with self._project.reading():
            return self._state.rows.describe(self._state.ledger.settings.get("groups"))

    @property
    def metric(self) -> str:
        """The metric in use: the setting, or the metric that "auto" chooses for these columns."""
        with self._project.reading():
            return self._state.rows.metric

    def answers(self) -> list[Record]:
        """Answers in effect, oldest first."""
        with self._project.reading():
            return self._state.ledger.answers()

    def history(self) -> list[Event]:
        """All events of the log, oldest first."""
        with self._project.reading():
            return list(self._state.ledger.events)

    def pending(self) -> list[Question]:
        """Questions without an answer."""
        with self._project.reading():
            return [question_of(lease) for lease in self._state.leases]

    def worth_asking(self, question: Question | int) -> bool:
        """Whether a question is still open and its answer is not implied."""
        with self._project.reading():
            lease = self._state.leases.get(question.id if isinstance(question, Question) else question)
            return lease is not None and self._state.leases.is_worth_asking(lease)

    def review(self, *, quick: bool = False, model: str | None = None) -> list[ReviewItem]:
        """Answers worth a second look, most suspicious first, with reasons and the most likely answer.

        The full review takes seconds: `clew.audit.review` compares each answer with the rows and all other answers.
        With `quick` it takes milliseconds and lists answers that the current clusters violate or satisfy at a cost.
        If groups are small, both ask the model of pairs of records instead, fitted without each answer in turn.
        Both list contradictions, disagreements and flagged answers, and leave out confirmed answers (`confirm`).
        `model` is the name of a method with probabilities, such as "penalized-gaussian-mixture". It is fitted to the
        rows and the answers, and its probability for each pair counts as additional evidence. Default: the method of
        the session, if it has probabilities for new rows.
        """
        if not quick:
            return self.plan_review(model).run()
        with self._project.reading():
            return self._state.reviews.quick()

    def plan_review(self, model: str | None = None) -> ReviewPlan:
        """Return a review whose `run` needs neither the session nor its lock. It can be pickled."""
        with self._project.reading():
            return self._state.reviews.plan(model)

    def agreement(self) -> Agreement:
        """Agreement of annotators about pairs that were answered more than once, and how many answers look wrong."""
        with self._project.reading():
            known = self._state.known
            return agreement(known.slots.values(), known.annotator_errors(), self._state.ledger.first_answer)

    def provenance(self, pair: Sequence[Any]) -> list[Event]:
        """The answers and corrections in use that imply the relation between two rows."""
        with self._project.reading():
            first, second = (self._state.rows.find_present(name) for name in pair)
            return [self._state.ledger.event(seq) for seq in self._state.conflicts.provenance(first, second)]

    def progress(self) -> Progress:
        """Report the progress so far, and whether it is time to stop."""
        with self._project.reading():
            state = self._state
            now = state.known.driver.progress()
            records = state.ledger.answers()
            times = [record.seconds for record in records if record.seconds is not None]
            labels = state.labelling.present
            return Progress(
                answered=len(records),
                unsure=sum(record.answer == "unsure" for record in records),
                implied=now.implied,
                groups=now.neighbourhoods,
                n_rows=len(state.rows.present),
                n_clusters=len(np.unique(labels[labels >= 0])),
                conflicts=state.known.n_conflicts,
                pending=len(state.leases),
                expected_gain=now.expected_gain,
                can_stop=now.can_stop,
                reason=now.reason,
                strategy=strategy_in(state.ledger.settings)["name"],
                seconds=float(np.median(times)) if times else None,
                stale=state.ledger.is_stale,
                version=self.version,
                notes=state.labelling.notes,
            )

    # -- asking and answering ----------------------------------------------------------------------------------------

    def ask(self, annotator: str = "me", *, n: int | None = None) -> Any:
        """Return the next question for an annotator, or None if none is left. With `n`: a list of up to n questions.

        Each call returns new questions. A question is leased to the annotator for `lease_seconds`. If it has no answer
        then, the next annotator who asks gets it. The lease is recorded before the call returns.
        """
        return self._asking.ask(annotator, n=n)

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
        """Record the answer to a question. The answer is committed when the call returns.

        The same answer sent twice is recorded once, and both calls return the same. A different answer to an answered
        question is refused; use `revise`. An answer that contradicts others is recorded, but it is no
        fact until the conflict is resolved; see `Told.conflict`.

        Parameters
        ----------
        question : Question or int
            A question that `ask` returned, or its id.
        answer : str
            same, different, unsure, or any word `Constraints` reads. For a "which" question: a row id, "none" or
            "unsure".
        annotator : str, optional
            Name of the annotator. Default: the annotator to whom the question is leased.
        seconds : float, optional
            Time the annotator took.
        confidence : float, default=1.0
            In (0, 1].
        comment : str, optional
        flag : bool, default=False
            Marks the answer for review.
        about : two row ids, optional
            `left` and `right` of the question that was shown. Default: those of `question`. If the question with this
            id is about other rows, the answer is refused, because it belongs to another project or another copy.
        """
        return self._asking.tell(
            question,
            answer,
            annotator=annotator,
            seconds=seconds,
            confidence=confidence,
            comment=comment,
            flag=flag,
            about=about,
        )

    def undo(self, annotator: str | None = None) -> Event | None:
        """Undo the last event of any annotator, or of one annotator. Returns the undone event, or None.

        If the event is an answer, its question is open again and leased to the same annotator. Each further call undoes
        one more event.
        """
        return self._asking.undo(annotator)

    def revise(
        self,
        answer_id: int,
        answer: Any,
        *,
        annotator: str = "me",
        confidence: float | None = None,
        comment: str | None = None,
    ) -> Told:
        """Change an earlier answer. The log keeps both versions.

        Parameters
        ----------
        answer_id : int
            `Told.id`, or `Record.id` of `answers()`.
        answer : str
            The new answer, in any form that `tell` takes.
        annotator : str
        confidence : float, optional
            Default: the confidence of the earlier answer.
        comment : str, optional
        """
        return self._asking.revise(answer_id, answer, annotator=annotator, confidence=confidence, comment=comment)

    def confirm(self, answer_id: int, *, annotator: str = "me") -> Record:
        """Confirm an answer after a second look. `review` then lists it only if it is part of a conflict."""
        return self._asking.confirm(answer_id, annotator=annotator)

    def conflicts(self) -> list[Conflict]:
        """All contradictions and disagreements that are not resolved yet. Their answers are no facts meanwhile."""
        return self._asking.conflicts()

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
        """Resolve a conflict. Returns the remaining conflicts.

        Parameters
        ----------
        conflict : Conflict or int
            One of `conflicts()`, or its id.
        how : {"change", "withdraw", "soft", "unsure", "repair"}
            "change" changes one answer: `answer_id`, by default the unused one. The new `answer` is the opposite unless
            given. "withdraw" takes back one correction of the conflict: `correction`, by default the only one. Its rows
            move back at once. "soft" turns all answers of the conflict into soft constraints, and applies an unused
            correction. "unsure" turns the unused answer into "unsure", and withdraws an unused correction. "repair"
            applies `Conflict.cheapest`: it changes these answers to the opposite and takes these corrections back.
        answer_id : int, optional
        answer : str, optional
        correction : int, optional
        annotator : str
        """
        return self._asking.resolve(
            conflict, how, answer_id=answer_id, answer=answer, correction=correction, annotator=annotator
        )

    # -- clusters and corrections ------------------------------------------------------------------------------------

    def plan_fit(self) -> FitPlan:
        """Return a plan with all inputs of a fit. Its `run` may go on in another thread while people answer."""
        return self._correcting.plan_fit()

    def placed_rows(self) -> PlacedRows:
        """The vectors of the present rows and their current clusters, without a fit."""
        return self._correcting.placed_rows()

    def adopt(self, result: FitResult) -> bool:
        """Use the result of a plan as the clusters. Returns False if a correction or new rows were added meanwhile."""
        return self._correcting.adopt(result)

    def is_late(self, plan: FitPlan) -> bool:
        """Whether corrections, rows or settings have changed since the plan, so that its result would be refused."""
        return self._correcting.is_late(plan)

    def fit(self) -> dict[Any, int]:
        """Cluster again with all answers and corrections. Clusters that persist keep their ids."""
        return self._correcting.fit()

    def labels(self, *, refit: bool = True) -> dict[Any, int]:
        """Cluster id of each present row. Fits first if the clusters are stale, unless `refit` is False.

        Noise of a density method is in no cluster and is left out.
        """
        return self._correcting.labels(refit=refit)

    def probabilities(self, *, refit: bool = True) -> dict[Any, float]:
        """Probability of the cluster of each present row, by row id, if the method of the session has probabilities.

        Mixtures, ``graph-propagation`` and small groups have them. Rows that corrections moved, and rows added since
        the last fit, are left out, except in small groups.
        """
        return self._correcting.probabilities(refit=refit)

    def clusters(self, *, refit: bool = True) -> list[Cluster]:
        """The clusters in order of their ids, with typical and borderline rows."""
        return self._correcting.clusters(refit=refit)

    def name_cluster(self, cluster: int, name: str, *, annotator: str = "me") -> None:
        """Name a cluster. The name belongs to the cluster id. An empty name removes it."""
        self._correcting.name_cluster(cluster, name, annotator=annotator)

    def regroup(
        self,
        name: str | None = None,
        *,
        n_clusters: int | None = None,
        method: str = "cond-ens",
        annotator: str = "me",
        refit: bool = True,
    ) -> Grouping:
        """Find another way to group the rows, unlike the clusters, and keep it under a name.

        The clusters of the project stay as they are. Answers and corrections are about these clusters, so the new
        grouping does not use them. It also differs from every grouping that is kept already.

        Parameters
        ----------
        name : str, optional
            Name of the grouping. Default: "another way", "another way 2", ...
        n_clusters : int, optional
            Number of groups. Default: the number of clusters.
        method : str, default="cond-ens"
            An alternative clusterer by its name on the command line.
        annotator : str, default="me"
        refit : bool, default=True
            Whether to fit the clusters first if they are stale.
        """
        self._correcting.labels(refit=refit)
        return self._regrouping.regroup(name, n_clusters=n_clusters, method=method, annotator=annotator)

    def groupings(self) -> list[Grouping]:
        """The other groupings that `regroup` made, oldest first."""
        return self._regrouping.groupings()

    def grouping_labels(self, name: str) -> dict[Any, int]:
        """The group of each present row by a kept grouping. Rows that were added after it was made are left out."""
        return self._regrouping.labels(name)

    def remove_grouping(self, name: str, *, annotator: str = "me") -> None:
        """Remove a kept grouping. `undo` brings it back."""
        self._regrouping.remove(name, annotator=annotator)

    def merge(self, cluster: int, other: int, *, annotator: str = "me") -> Corrected:
        """Merge two clusters. Their rows stay together in every later fit. The first cluster keeps its id."""
        return self._correcting.merge(cluster, other, annotator=annotator)

    def split(self, cluster: int, rows: Sequence[Any], *, annotator: str = "me") -> Corrected:
        """Split some rows off a cluster into a new cluster with a new id."""
        return self._correcting.split(cluster, rows, annotator=annotator)

    def move(self, row: Any, cluster: int | None = None, *, annotator: str = "me") -> Corrected:
        """Move a row to another cluster, or with None into a new cluster of its own."""
        return self._correcting.move(row, cluster, annotator=annotator)

    def never(
        self, *, clusters: Sequence[int] | None = None, rows: Sequence[Any] | None = None, annotator: str = "me"
    ) -> Corrected:
        """Keep two clusters, or two rows, apart in every later fit."""
        return self._correcting.never(clusters=clusters, rows=rows, annotator=annotator)

    def preview(self, kind: str, *args: Any, **named: Any) -> Corrected:
        """Return the changes that a correction would make, without making it: ``preview("merge", 0, 3)``."""
        return self._correcting.preview(kind, *args, **named)

    # -- rows and files ----------------------------------------------------------------------------------------------

    def add_rows(self, data: Any = None, *, annotator: str = "me") -> list[Any]:
        """Add new rows. Each row joins the nearest cluster until the next fit. Returns the ids of the new rows.

        Parameters
        ----------
        data : path, frame or array, optional
            Rows with the columns of the project, which are then stored in the log. Default: the rows that are in the
            data file but not yet in the project.
        annotator : str
        """
        return self._exchanging.add_rows(data, annotator=annotator)

    def read_rows(self, data: Any) -> Table:
        """Read rows with the columns of the project, without adding them. `add_rows` takes the table.

        Parameters
        ----------
        data : path, frame or array
        """
        return self._exchanging.read_rows(data)

    def read_answers(self, answers: Any, *, format: str | None = None) -> list[AnswerRecord]:
        """Read answers about the rows of the project, without recording them. `import_answers` takes the list.

        Parameters
        ----------
        answers, format
            As for `import_answers`.
        """
        return self._exchanging.read_answers(answers, format=format)

    def import_answers(self, answers: Any, *, annotator: str | None = None, format: str | None = None) -> int:
        """Import answers, all of them or none. Returns the number of new answers.

        Parameters
        ----------
        answers : path, frame or records
            A file or frame with the columns ``id_1, id_2, answer[, confidence, annotator, time, seconds, comment]`` or
            of another tool (see `clew.constraints.read_answers`), or records as dicts or (id_1, id_2, answer) tuples.
            A row that gives the confidence 1 and names no annotator is a fact, which holds even if answers are wrong.
            Facts that contradict each other, or the given constraints, raise an error, and nothing is imported.
        annotator : str, optional
            Annotator of the answers that name none. No row is a fact then.
        format : str, optional
            The tool that wrote the file. Default: detected from the content.
        """
        return self._exchanging.import_answers(answers, annotator=annotator, format=format)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the project to a .clew file, which can be opened like the project.

        The file is complete or not written at all. Others can answer meanwhile. A data file that the project refers to
        is not copied.
        """
        with self._project.reading():
            self._project.store.backup(path)

    def export(self, what: str, path: str | os.PathLike[str]) -> None:
        """Write "labels", "groupings", "golden", "constraints" or "answers" as csv, tsv, jsonl or parquet.

        "groupings" has the cluster of each row, and a column for each grouping that `regroup` made.
        Labels have every row. Noise of a density method is cluster -1 with the name "noise". Small groups have the
        probability that each row belongs to its group. "golden" has a row for each cluster, with the values that
        `clew.datasets.golden_records` chooses. An error leaves no partial file.
        """
        with self._project.reading():
            if what in ("labels", "groupings", "golden") and self._state.ledger.is_stale:
                self.fit()
            export(self._state, what, path)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run several calls in one transaction. All of them are committed when the block ends, or none.

        The results of the calls are durable only after the block. Twenty simultaneous answers thus take one disk write.
        """
        with self._project.together():
            yield


def _records(known: Constraints) -> dict[str, list[Any]] | None:
    """Convert prior constraints to columns for the log, with the user's row ids."""
    if not known:
        return None
    columns = records_of(known)
    kept = [place for place, answer in enumerate(columns["answer"]) if answer != "rows"]
    return {name: [values[place] for place in kept] for name, values in columns.items()}
