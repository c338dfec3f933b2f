"""Storage of a session: an append-only table of events in SQLite or PostgreSQL.

Every writing call is one transaction: it takes the lock of the project, reads the events that others have appended,
checks, appends and commits. SQLite takes the lock with BEGIN IMMEDIATE, PostgreSQL by selecting the project's row for
update.

A SQLite project is created in the file itself. Later transactions go to the write-ahead log first. They are copied into
the file within a second, so that a copy of the file alone is a complete project.
"""

from __future__ import annotations

import functools
import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clew._tables import replacing
from clew._words import without_password
from clew.exceptions import (
    ClewError,
    FileError,
    MissingExtraError,
    NoProjectError,
    ParameterError,
    StorageError,
    UnknownOutcomeError,
)
from clew.session._events import Event, to_json

try:
    import sqlalchemy as sa
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError
except ImportError as error:
    raise MissingExtraError("Sessions need SQLAlchemy: pip install 'clew[app]'.") from error

# SQLite application id of a project file: "clew" in ASCII.
_APPLICATION = 0x636C6577
# Lock timeouts in seconds: of a SQLite file, and of a PostgreSQL server.
_PATIENCE, _SERVER_PATIENCE = 20, 5
# Seconds between a transaction and the checkpoint that copies SQLite's write-ahead log into the file.
_REST = 1.0

_tables = sa.MetaData()
_meta = sa.Table(
    "meta", _tables, sa.Column("key", sa.String(64), primary_key=True), sa.Column("value", sa.Text, nullable=False)
)
_projects = sa.Table(
    "projects",
    _tables,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("last_seq", sa.Integer, nullable=False),
    sa.Column("last_question", sa.Integer, nullable=False),
    sa.Column("lease_version", sa.Integer, nullable=False),
)
_events = sa.Table(
    "events",
    _tables,
    sa.Column("project", sa.Integer, sa.ForeignKey("projects.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("time", sa.String(40), nullable=False),
    sa.Column("annotator", sa.String(200), nullable=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("body", sa.LargeBinary),
)
_questions = sa.Table(
    "questions",
    _tables,
    sa.Column("project", sa.Integer, sa.ForeignKey("projects.id"), primary_key=True),
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("payload", sa.Text, nullable=False),
    sa.Column("annotator", sa.String(200), nullable=False),
    sa.Column("expires", sa.Float, nullable=False),
    sa.Column("answered", sa.Integer),
    sa.Column("is_open", sa.Boolean, nullable=False),
)
sa.Index("open_questions", _questions.c.project, _questions.c.is_open)

# Statements of every call are built once, because building them takes longer than running them in SQLite.
_COUNTERS = ("last_seq", "last_question", "lease_version")
_LOCK = sa.select(_projects).where(_projects.c.id == sa.bindparam("project")).with_for_update()
_ADD_EVENT = _events.insert()
_ADD_QUESTION = _questions.insert()
_COUNT = (
    _projects.update()
    .where(_projects.c.id == sa.bindparam("which"))
    .values({name: sa.bindparam(name) for name in _COUNTERS})
)


@functools.cache
def _change_question(names: tuple[str, ...]) -> sa.Update:
    chosen = (_questions.c.project == sa.bindparam("of")) & (_questions.c.id == sa.bindparam("which"))
    return _questions.update().where(chosen).values({name: sa.bindparam(name) for name in names})


def _first_schema(connection: sa.Connection) -> None:
    _tables.create_all(connection, tables=[_projects, _events, _questions])


def _guard_events(connection: sa.Connection) -> None:
    """Add triggers by which the database refuses to change or delete an event."""
    if connection.dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events "
                "BEGIN SELECT RAISE(ABORT, 'events are never changed'); END"
            )
        return
    connection.exec_driver_sql(
        "CREATE OR REPLACE FUNCTION clew_events_are_kept() RETURNS trigger AS "
        "$$ BEGIN RAISE EXCEPTION 'events are never changed'; END $$ LANGUAGE plpgsql"
    )
    connection.exec_driver_sql(
        "CREATE TRIGGER events_are_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON events "
        "FOR EACH STATEMENT EXECUTE FUNCTION clew_events_are_kept()"
    )


# Each step migrates the schema from one version to the next. A released step never changes.
MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_first_schema, _guard_events)


@dataclass(frozen=True)
class Lease:
    """A question in the database, with the annotator it is given to and the time at which this ends."""

    id: int
    payload: dict[str, Any]
    annotator: str
    expires: float
    answered: int | None
    is_open: bool


class Store:
    """One project in a database."""

    def __init__(self, engine: sa.Engine, place: str, project: int, name: str) -> None:
        self._engine, self.place, self._project, self.name = engine, place, project, name
        self._file = None if self._path is None else _identity(self._path)
        self._resting: threading.Timer | None = None

    # -- opening ---------------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, where: str | os.PathLike[str], name: str | None, first: Event) -> Store:
        """Create a project with its first event."""
        engine, place = _engine(where, must_exist=False)
        with _closing_on_error(engine), _translated(place):
            with engine.begin() as connection:
                _migrate(connection, place)
                name = name or _default_name(where)
                if connection.execute(sa.select(_projects.c.id).where(_projects.c.name == name)).first():
                    raise FileError(f'{place} holds a project "{name}" already. Open it, or choose another name.')
                project = connection.execute(
                    _projects.insert().values(name=name, last_seq=1, last_question=0, lease_version=0)
                ).inserted_primary_key
                assert project is not None
                connection.execute(_events.insert(), _row(project[0], first))
            engine.dispose()  # the next connection finds a project in the file, and uses a write-ahead log
            return cls(engine, place, project[0], name)

    @classmethod
    def open(cls, where: str | os.PathLike[str], name: str | None) -> Store:
        """Open an existing project. An older schema is migrated."""
        engine, place = _engine(where, must_exist=True)
        with _closing_on_error(engine), _translated(place):
            with engine.connect() as connection:
                connection = connection.execution_options(clew_reads=True)
                version = _version(connection, place)
                if version == 0:
                    raise NoProjectError(f"{place} holds no project. Create one first.")
                if version < len(MIGRATIONS):
                    connection.rollback()
                    with engine.begin() as writing:
                        _migrate(writing, place)
                rows = connection.execute(sa.select(_projects.c.id, _projects.c.name).order_by(_projects.c.id)).all()
            known = {str(row.name): int(row.id) for row in rows}
            if name is None and len(known) == 1:
                name = next(iter(known))
            if name is None and known:
                raise ParameterError(f"{place} holds several projects: {', '.join(known)}. Say which one: name=...")
            if name not in known:
                raise NoProjectError(f'{place} holds no project "{name}". It holds {", ".join(known) or "none"}.')
            return cls(engine, place, known[name], name)

    def close(self) -> None:
        """Close the database connections."""
        if self._resting is not None:
            self._resting.cancel()
            self._copy_log()
        self._engine.dispose()

    @property
    def folder(self) -> Path | None:
        """Folder of the project file. None for a server."""
        return None if self._path is None else self._path.resolve().parent

    @property
    def _path(self) -> Path | None:
        database = self._engine.url.database
        return Path(database) if self._engine.dialect.name == "sqlite" and database else None

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy to a SQLite file while others may go on writing. An error leaves no partial file.

        From a SQLite file all projects are copied, from a server only this one.
        """
        if self._path is not None and Path(path).exists() and os.path.samefile(self._path, path):
            raise FileError(f"{path} is the project itself. Choose another name for the copy.")
        with replacing(path) as temporary, _translated(self.place):
            if self._path is None:
                self._copy_project(temporary)
            else:
                with self._engine.connect() as source, closing(sqlite3.connect(temporary)) as target:
                    own = source.connection.driver_connection
                    assert isinstance(own, sqlite3.Connection)
                    own.backup(target)
                    target.execute("PRAGMA journal_mode=DELETE")  # a single file without a write-ahead log

    def _copy_project(self, path: Path) -> None:
        engine, _ = _sqlite(path)
        with _closing_on_error(engine), self._reading() as source, engine.begin() as target:
            _migrate(target, str(path))
            for table, column in (
                (_projects, _projects.c.id),
                (_events, _events.c.project),
                (_questions, _questions.c.project),
            ):
                rows = source.execute(sa.select(table).where(column == self._project)).mappings().all()
                if rows:
                    target.execute(table.insert(), [dict(row) for row in rows])
        engine.dispose()

    def _rest_soon(self) -> None:
        """Schedule a checkpoint of the write-ahead log in a second, unless one is scheduled."""
        if self._path is not None and (self._resting is None or not self._resting.is_alive()):
            self._resting = threading.Timer(_REST, self._copy_log)
            self._resting.daemon = True
            self._resting.start()

    def _copy_log(self) -> None:
        """Checkpoint: copy the write-ahead log into the file, as far as no other connection has to wait for it."""
        with suppress(SQLAlchemyError, sqlite3.Error), self._engine.connect() as connection:
            own = connection.connection.driver_connection
            assert isinstance(own, sqlite3.Connection)
            own.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _require_file(self) -> None:
        """Raise if the file was deleted or replaced, because SQLite would go on writing to the deleted file."""
        if self._path is not None and _identity(self._path) != self._file:
            raise StorageError(
                f"{self.place} was deleted or replaced while it was in use. Nothing was recorded: put the file back "
                "(clew backup makes copies), and open the project again."
            )

    # -- reading and writing ---------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """Open a transaction that holds the lock of the project. It commits if the block ends without an error."""
        is_committing = False
        try:
            with _translated(self.place), self._engine.begin() as connection:
                row = connection.execute(_LOCK, {"project": self._project}).one()
                transaction = Transaction(connection, self._project, row.last_seq, row.last_question, row.lease_version)
                yield transaction
                transaction.flush()
                self._require_file()
                is_committing = True
        except StorageError as error:
            if is_committing and isinstance(error.__cause__, DBAPIError) and error.__cause__.connection_invalidated:
                raise UnknownOutcomeError(
                    f"The connection to {self.place} was lost while it was recording. It is unknown whether this was "
                    "recorded. An answer can be sent again: it is never recorded twice. Read the history before you "
                    "repeat anything else."
                ) from error
            raise
        self._rest_soon()

    def versions(self) -> tuple[int, int]:
        """Number of the last event, and number of changes of leases."""
        query = sa.select(_projects.c.last_seq, _projects.c.lease_version).where(_projects.c.id == self._project)
        with self._reading() as connection:
            last_seq, lease_version = connection.execute(query).one()
        return int(last_seq), int(lease_version)

    def events(self, after: int = 0) -> list[Event]:
        """Events after a number, oldest first."""
        with self._reading() as connection:
            return _events_after(connection, self._project, after)

    def leases(self, *, only_open: bool = True) -> list[Lease]:
        """Leases, by default only those without an answer."""
        with self._reading() as connection:
            return _leases(connection, self._project, only_open)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with _translated(self.place), self._engine.connect() as connection:
            self._require_file()
            yield connection.execution_options(clew_reads=True)


class Transaction:
    """Reads and writes while the lock of a project is held.

    `flush` writes the events at the end, so that a refused call has written nothing.

    Attributes
    ----------
    appended : list of Event
        New events that the state in memory has not applied yet.
    changed : list of Lease
        Changed leases that the state in memory has not applied yet.
    """

    def __init__(
        self, connection: sa.Connection, project: int, last_seq: int, last_question: int, lease_version: int
    ) -> None:
        self._connection, self._project = connection, project
        self.last_seq, self.last_question, self.lease_version = last_seq, last_question, lease_version
        self._before = self.counters
        self._unwritten: list[Event] = []
        self.appended: list[Event] = []
        self.changed: list[Lease] = []

    def events(self, after: int) -> list[Event]:
        """Committed events after a number."""
        return _events_after(self._connection, self._project, after) if self.last_seq > after else []

    def append(self, events: Sequence[tuple[str, str, str, dict[str, Any], bytes | None]]) -> list[Event]:
        """Append events (kind, time, annotator, payload, body) to the log. The next flush writes them."""
        made = [
            Event(self.last_seq + place, kind, time, annotator, json.loads(to_json(payload)), body)
            for place, (kind, time, annotator, payload, body) in enumerate(events, start=1)
        ]
        self.last_seq += len(made)
        self._unwritten += made
        self.appended += made
        return made

    def discard(self, after: int) -> None:
        """Drop the events after a number, which are not written yet."""
        self._unwritten = [event for event in self._unwritten if event.seq <= after]
        self.last_seq, self.appended = after, []

    def leases(self) -> list[Lease]:
        """Leases without an answer."""
        return _leases(self._connection, self._project, True)

    def lease(self, question: int) -> Lease | None:
        """The lease of a question, or None."""
        query = sa.select(_questions).where(_questions.c.project == self._project, _questions.c.id == question)
        row = self._connection.execute(query).first()
        return None if row is None else _lease(row)

    def add_lease(self, payload: dict[str, Any], annotator: str, expires: float) -> Lease:
        """Add a lease with the next question number."""
        self.last_question += 1
        self.lease_version += 1
        values = {
            "project": self._project, "id": self.last_question, "payload": to_json(payload), "annotator": annotator,
            "expires": expires, "answered": None, "is_open": True,
        }  # fmt: skip
        self._connection.execute(_ADD_QUESTION, values)
        self.changed.append(Lease(self.last_question, json.loads(to_json(payload)), annotator, expires, None, True))
        return self.changed[-1]

    def change_lease(self, lease: Lease, **values: Any) -> Lease:
        """Change a lease: give the question to another annotator, close it, or open it again."""
        self.lease_version += 1
        which = {"of": self._project, "which": lease.id}
        self._connection.execute(_change_question(tuple(values)), which | values)
        self.changed.append(replace(lease, **values))
        return self.changed[-1]

    @property
    def counters(self) -> tuple[int, int, int]:
        """Numbers of the last event, the last question and the last change of a lease."""
        return self.last_seq, self.last_question, self.lease_version

    def flush(self) -> None:
        """Write the appended events and the counters."""
        if self._unwritten:
            self._connection.execute(_ADD_EVENT, [_row(self._project, one) for one in self._unwritten])
        if self.counters != self._before:
            values = dict(zip(_COUNTERS, self.counters, strict=True))
            self._connection.execute(_COUNT, {"which": self._project} | values)


def _row(project: int, event: Event) -> dict[str, Any]:
    return vars(event) | {"project": project, "payload": to_json(event.payload)}


def _events_after(connection: sa.Connection, project: int, after: int) -> list[Event]:
    columns = (_events.c[name] for name in ("seq", "kind", "time", "annotator", "payload", "body"))
    query = sa.select(*columns).where(_events.c.project == project, _events.c.seq > after).order_by(_events.c.seq)
    rows = connection.execute(query).all()
    return [
        Event(seq, kind, time, annotator, payload, body)
        for (seq, kind, time, annotator, _, body), payload in zip(rows, _payloads(rows), strict=True)
    ]


def _payloads(rows: Sequence[sa.Row[Any]]) -> list[dict[str, Any]]:
    """Decode the payloads of events in one call, so that equal keys share one string."""
    with suppress(ValueError):
        found: list[dict[str, Any]] = json.loads(f"[{','.join(row.payload for row in rows)}]")
        if len(found) == len(rows):
            return found
    return [_payload(row.payload, f"event {row.seq}") for row in rows]  # one of them is damaged


def _payload(text: str, name: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError:
        raise _DamagedError(name) from None
    return found


def _leases(connection: sa.Connection, project: int, only_open: bool) -> list[Lease]:
    query = sa.select(_questions).where(_questions.c.project == project).order_by(_questions.c.id)
    if only_open:
        query = query.where(_questions.c.is_open == sa.true())
    return [_lease(row) for row in connection.execute(query)]


def _lease(row: Any) -> Lease:
    payload = _payload(row.payload, f"question {row.id}")
    return Lease(row.id, payload, row.annotator, row.expires, row.answered, bool(row.is_open))


# -- databases ---------------------------------------------------------------------------------------------------------


def is_url(where: str | os.PathLike[str]) -> bool:
    """Whether `where` is the address of a database server and not a file."""
    return isinstance(where, str) and "://" in where


def _engine(where: str | os.PathLike[str], *, must_exist: bool) -> tuple[sa.Engine, str]:
    if is_url(where):
        return _server(str(where))
    path = Path(where)
    if path.is_dir():
        raise FileError(f"{path} is a directory. Name a file in it, such as {path / 'project.clew'}.")
    if must_exist and not path.exists():
        raise NoProjectError(f"There is no project {path}. Create one first, or check the path.")
    if not path.parent.exists():
        raise FileError(f"Cannot write {path}: the directory {path.parent} does not exist. Create it first.")
    return _sqlite(path)


def _sqlite(path: Path) -> tuple[sa.Engine, str]:
    url = sa.URL.create("sqlite", database=str(path))
    engine = sa.create_engine(url, connect_args={"timeout": _PATIENCE}, pool_size=2, max_overflow=2)
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine, str(path)


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file. None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _server(where: str) -> tuple[sa.Engine, str]:
    try:
        url = sa.make_url(where)
    except SQLAlchemyError:
        raise ParameterError(
            f"{without_password(where)!r} is not the address of a database. Expected postgresql://user@host/database."
        ) from None
    if url.get_backend_name() != "postgresql":
        raise ParameterError(
            f"{url.drivername}: projects are kept in SQLite files or in PostgreSQL (postgresql://...)."
        )
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    try:
        patience = {"options": f"-c lock_timeout={_SERVER_PATIENCE}s"}
        engine = sa.create_engine(url, pool_size=2, max_overflow=2, pool_pre_ping=True, connect_args=patience)
    except ImportError as error:
        raise MissingExtraError("PostgreSQL needs psycopg: pip install 'clew[app]'.") from error
    return engine, url.render_as_string(hide_password=True)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun below, not by the driver
    cursor = connection.cursor()
    for setting in ("synchronous=FULL", "foreign_keys=ON", f"busy_timeout={_PATIENCE * 1000}"):
        cursor.execute(f"PRAGMA {setting}")
    if cursor.execute("PRAGMA page_count").fetchone()[0]:  # a new project is written to the file itself
        cursor.execute("PRAGMA journal_mode=WAL")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    reads = connection.get_execution_options().get("clew_reads")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _default_name(where: str | os.PathLike[str]) -> str:
    return "project" if is_url(where) else Path(where).stem


def _version(connection: sa.Connection, place: str) -> int:
    """Version of the schema, 0 for an empty database. Raises if it is not a project, or from a newer clew."""
    inspector = sa.inspect(connection)
    names = inspector.get_table_names()
    if "meta" not in names or "events" not in names:
        if names and connection.dialect.name == "sqlite":
            raise FileError(f"{place} is not a clew project: it is a database of another program.")
        if connection.dialect.name == "sqlite" and os.path.getsize(str(connection.engine.url.database)):
            raise FileError(
                f"{place} has lost its content: it was copied or moved without the file {place}-wal beside it. "
                "Put that file back, or restore a copy made with clew backup. To start again, delete the file."
            )
        return 0
    found = connection.execute(sa.select(_meta.c.value).where(_meta.c.key == "schema_version")).scalar()
    if found is None:
        raise FileError(f"{place} is not a clew project: its version is not recorded.")
    if int(found) > len(MIGRATIONS):
        raise FileError(
            f"{place} was written by a newer clew (schema {found}; this one reads {len(MIGRATIONS)}). Update clew."
        )
    return int(found)


def _migrate(connection: sa.Connection, place: str) -> None:
    """Migrate the schema to the latest version, in the open transaction."""
    if connection.dialect.name == "postgresql":  # two first clients must not create the tables at once
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_APPLICATION})")
    version = _version(connection, place)
    if version == 0:
        _meta.create(connection, checkfirst=True)
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(f"PRAGMA application_id={_APPLICATION}")
    for step in MIGRATIONS[version:]:
        step(connection)
    if version < len(MIGRATIONS):
        connection.execute(_meta.delete().where(_meta.c.key == "schema_version"))
        connection.execute(_meta.insert().values(key="schema_version", value=str(len(MIGRATIONS))))


@contextmanager
def _closing_on_error(engine: sa.Engine) -> Iterator[None]:
    try:
        yield
    except BaseException:
        engine.dispose()
        raise


class _DamagedError(Exception):
    """An event or a question that cannot be decoded."""


@contextmanager
def _translated(place: str) -> Iterator[None]:
    """Translate database errors into one sentence. Nothing was recorded when such an error is raised."""
    try:
        yield
    except ClewError:
        raise
    except DBAPIError as error:
        sentence, is_full = _sentence(place, str(error.orig or error))
        raise StorageError(sentence, is_full) from error
    except _DamagedError as error:
        raise StorageError(f"{place} is damaged: {error} cannot be read. Restore a copy.") from None
    except SQLAlchemyError as error:
        raise StorageError(f"{place}: {' '.join(str(error).split())}. Nothing was recorded.") from error


_FULL = "The disk is full: {place} cannot grow. Nothing was recorded; free some space and try again."
_SENTENCES = (
    ("file is not a database", "{place} is not a clew project: it is not an SQLite file."),
    ("malformed", "{place} is damaged: SQLite cannot read it. Restore a copy."),
    ("readonly", "{place} is read-only. Nothing was recorded: make the file and its folder writable."),
    ("read-only", "{place} is read-only. Nothing was recorded: make it writable."),
    ("full", _FULL),
    ("no space", _FULL),
    ("disk i/o", "{place} cannot be written (disk error). Nothing was recorded; check the disk and try again."),
    ("unable to open", "Cannot open {place}: check the path, and that the file and its folder may be written."),
    ("lock timeout", "{place} is busy: somebody has held it for {server} seconds. Nothing was recorded; try again."),
    ("locked", "{place} is busy: another program has held it for {patience} seconds. Nothing was recorded; try again."),
    ("connect", "Cannot reach {place}. Nothing was recorded; check the server and its address."),
)


def _sentence(place: str, message: str) -> tuple[str, bool]:
    """The sentence for a message of the database, and whether the disk is full."""
    lowered = message.lower()
    for mark, sentence in _SENTENCES:
        if mark in lowered:
            return sentence.format(place=place, patience=_PATIENCE, server=_SERVER_PATIENCE), sentence is _FULL
    return f"{place}: {' '.join(message.split())}. Nothing was recorded.", False
