"""The database: versions, other people's files, failures, several writers, events that nobody can change."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import numpy as np
import pytest
import sqlalchemy as sa

from clew import Session
from clew.exceptions import ClewError, FileError, ParameterError, StorageError
from clew.session import _store
from tests.session.helpers import blobs, everything, told

X, Y = blobs(n=24)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request):
    """Of `make test`, these tests run on both databases."""
    return request.getfixturevalue(f"{request.param}_url")


def engine_of(session):
    return session._project.store._engine


@pytest.mark.parametrize(
    "change", ["UPDATE events SET kind='x'", "DELETE FROM events", "UPDATE events SET payload='{}' WHERE seq=1"]
)
def test_the_database_refuses_to_change_events(store_url, change):
    with Session.create(store_url, X, n_clusters=3) as session:
        told(session, Y, 2)
        before = everything(session)
        with (
            pytest.raises(sa.exc.DBAPIError, match="events are never changed"),
            engine_of(session).begin() as connection,
        ):
            connection.exec_driver_sql(change)
    with Session.open(store_url) as session:
        assert everything(session) == before


def test_a_project_of_version_1_is_brought_up_to_date(store_url, monkeypatch):
    with monkeypatch.context() as then:
        then.setattr(_store, "MIGRATIONS", _store.MIGRATIONS[:1])
        with Session.create(store_url, X, n_clusters=3) as session:
            told(session, Y, 5)
            before = everything(session)
    with Session.open(store_url) as session:
        assert everything(session) == before
        with pytest.raises(sa.exc.DBAPIError, match="never changed"), engine_of(session).begin() as connection:
            connection.exec_driver_sql("DELETE FROM events")


def test_a_project_from_the_future_is_refused(store_url, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr(_store, "MIGRATIONS", (*_store.MIGRATIONS, lambda connection: None))
        Session.create(store_url, X).close()
    with pytest.raises(FileError, match=r"written by a newer clew \(schema 3; this one reads 2\). Update clew"):
        Session.open(store_url)


def test_a_failed_upgrade_changes_nothing(store_url, monkeypatch):
    Session.create(store_url, X).close()

    def wrong(connection):
        connection.exec_driver_sql("CREATE TABLE half_done (x INTEGER)")
        raise ClewError("stop")

    with monkeypatch.context() as later:
        later.setattr(_store, "MIGRATIONS", (*_store.MIGRATIONS, wrong))
        with pytest.raises(ClewError, match="stop"):
            Session.open(store_url)
    with Session.open(store_url) as session:
        assert "half_done" not in sa.inspect(engine_of(session)).get_table_names()


def test_several_projects_in_one_database(store_url):
    Session.create(store_url, X, name="one").close()
    Session.create(store_url, X[:10], name="two").close()
    with pytest.raises(FileError, match='holds a project "one" already'):
        Session.create(store_url, X, name="one")
    with pytest.raises(ParameterError, match="several projects: one, two"):
        Session.open(store_url)
    with pytest.raises(FileError, match=r'no project "three". It holds one, two'):
        Session.open(store_url, name="three")
    with Session.open(store_url, name="two") as session:
        assert len(session.labels()) == 10


def test_files_that_are_no_projects(tmp_path):
    text = tmp_path / "text.clew"
    text.write_text("hello, this is no database at all" * 100)
    with pytest.raises(FileError, match="is not a clew project: it is not an SQLite file"):
        Session.open(text)
    with pytest.raises(FileError, match="not an SQLite file"):
        Session.create(text, X)
    assert text.read_text().startswith("hello")
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE birds (name TEXT)")
    connection.close()
    for door in (lambda: Session.open(other), lambda: Session.create(other, X)):
        with pytest.raises(FileError, match="database of another program"):
            door()
    with pytest.raises(FileError, match="There is no project"):
        Session.open(tmp_path / "none.clew")
    with pytest.raises(FileError, match="is a directory"):
        Session.create(tmp_path, X)
    with pytest.raises(FileError, match="does not exist"):
        Session.create(tmp_path / "no" / "p.clew", X)
    with pytest.raises(ParameterError, match=r"mysql: projects are kept in SQLite files or in PostgreSQL"):
        Session.create("mysql://me@there/db", X)


@pytest.mark.parametrize("payload", ["", "{", "{}, {}", "[{}], []"])
def test_an_event_or_a_question_that_cannot_be_read_is_named(tmp_path, payload):
    path = tmp_path / "project.clew"
    with Session.create(path, X, n_clusters=3) as session:
        told(session, Y, 3)
        event, question = session.version - 1, session.ask().id
    changes = (
        (f"question {question}", "UPDATE questions SET payload=? WHERE id=?", question),
        (f"event {event}", "UPDATE events SET payload=? WHERE seq=?", event),
    )
    for name, change, number in changes:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("DROP TRIGGER IF EXISTS events_no_update")
            connection.execute(change, (payload, number))
        with pytest.raises(StorageError, match=rf"project\.clew is damaged: {name} cannot be read\. Restore a copy"):
            Session.open(path)


def test_bad_data_leaves_no_file_behind(tmp_path):
    with pytest.raises(ClewError):
        Session.create(tmp_path / "p.clew", [[np.nan], [1.0]])
    with pytest.raises(ParameterError, match="n_clusters=9, but there are 2 rows"):
        Session.create(tmp_path / "p.clew", [[0.0], [1.0]], n_clusters=9)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_and_memory_stays_with_the_log(tmp_path):
    path = tmp_path / "p.clew"
    with Session.create(path, X, n_clusters=3) as session:
        told(session, Y, 3)
        question, before = session.ask(), everything(session)
        with engine_of(session).connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        limit = f"PRAGMA max_page_count={pages}"
        listen = lambda connection: connection.exec_driver_sql(limit)  # noqa: E731
        sa.event.listen(engine_of(session), "begin", listen)
        with pytest.raises(FileError, match=r"The disk is full: .*p.clew cannot grow. Nothing was recorded"):
            session.tell(question, "same", comment="x" * 100_000)
        assert everything(session) == before
        sa.event.remove(engine_of(session), "begin", listen)
        limit = "PRAGMA max_page_count=100000"
        with engine_of(session).connect() as connection:
            connection.exec_driver_sql(limit)
        assert session.tell(question, "same").id == session.version
    assert not os.path.exists(f"{path}-wal")


def test_a_read_only_database_is_told_and_memory_stays_with_the_log(tmp_path):
    with Session.create(tmp_path / "p.clew", X, n_clusters=3) as session:
        question, before = session.ask(), everything(session)
        read_only = lambda connection: connection.exec_driver_sql("PRAGMA query_only=ON")  # noqa: E731
        sa.event.listen(engine_of(session), "begin", read_only)
        for call in (
            lambda: session.ask(),
            lambda: session.tell(question, "same"),
            lambda: session.fit(),
            lambda: session.add_rows(X[:1]),
            lambda: session.set(n_clusters=2),
        ):
            with pytest.raises(FileError, match=r"is read-only. Nothing was recorded"):
                call()
            assert everything(session) == before
        sa.event.remove(engine_of(session), "begin", read_only)


@pytest.mark.parametrize("step", ["INSERT INTO events", "UPDATE questions", "UPDATE projects", "COMMIT"])
def test_a_failure_at_any_step_of_an_answer_changes_nothing(store_url, step):
    with Session.create(store_url, X, n_clusters=3) as session:
        told(session, Y, 3)
        question, before = session.ask(), everything(session)

        def fail(connection, cursor, statement, parameters, context, many):
            if statement.startswith(step):
                raise RuntimeError("the plug is pulled")

        def fail_commit(connection):
            raise RuntimeError("the plug is pulled")

        listener = ("commit", fail_commit) if step == "COMMIT" else ("before_cursor_execute", fail)
        sa.event.listen(engine_of(session), *listener)
        with pytest.raises(RuntimeError, match="plug"):
            session.tell(question, "same")
        assert everything(session) == before
        sa.event.remove(engine_of(session), *listener)
        with Session.open(store_url) as other:
            assert everything(other) == before
        assert session.tell(question, "same").id == before["history"][-1][0] + 1


def test_a_failed_ask_gives_the_question_back(store_url):
    with Session.create(store_url, X, n_clusters=3) as session:
        before = everything(session)

        def fail(connection):
            raise RuntimeError("the plug is pulled")

        sa.event.listen(engine_of(session), "commit", fail)
        with pytest.raises(RuntimeError, match="plug"):
            session.ask()
        sa.event.remove(engine_of(session), "commit", fail)
        asked = session.ask()
        assert before["pending"] == []
        assert [one.id for one in session.pending()] == [asked.id]
        assert len(session._state.known.driver.view.pending) == 1


def test_two_sessions_see_what_the_other_wrote(store_url):
    with Session.create(store_url, X, n_clusters=3) as one, Session.open(store_url) as two:
        first = one.ask("ann")
        second = two.ask("bob")
        assert {first.left, first.right} != {second.left, second.right}
        one.tell(first, "different")
        assert two.tell(second, "different").id == 3
        assert two.tell(first.id, "different").id == 2  # answered in the other process: the same
        with pytest.raises(ParameterError, match="To change that, revise answer"):
            two.tell(first.id, "same")
        one.fit()
        assert two.refresh() == one.version
        assert two.labels(refit=False) == one.labels(refit=False)
        merged = one.split(
            0,
            [
                row
                for row, cluster in one.labels().items()
                if cluster == 0 and row not in (first.left, first.right, second.left, second.right)
            ][:2],
        )
        assert merged.conflict is None
        two.ask("bob")
        assert everything(two)["labels"] == everything(one)["labels"]


def test_threads_share_a_session(store_url):
    with Session.create(store_url, X, n_clusters=3) as session:
        seen, errors = [], []

        def work(name):
            try:
                for _ in range(6):
                    question = session.ask(name)
                    if question is None:
                        return
                    seen.append(frozenset((question.left, question.right)))
                    session.tell(question, "same" if Y[question.left] == Y[question.right] else "different")
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(f"person {n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(seen) == len(set(seen)) == len(session.answers())
        before = everything(session)
    with Session.open(store_url) as again:
        assert everything(again) == before


def test_a_fit_runs_beside_answers_and_comes_too_late_after_a_correction(store_url):
    with Session.create(store_url, X, n_clusters=3) as session:
        told(session, Y, 6)
        plan = session.plan_fit()
        told(session, Y, 2)
        assert session.adopt(plan.run())
        assert session.progress().stale
        late = session.plan_fit().run()
        row = next(row for row in range(24) if not any(row in (one.left, one.right) for one in session.answers()))
        session.move(row)
        assert not session.adopt(late)
        assert session.labels(refit=False)[row] == 3


def test_without_sqlalchemy_one_line_names_the_extra():
    code = """
import sys
sys.modules["sqlalchemy"] = None
import clew
try:
    clew.Session
except ImportError as error:
    print(type(error).__name__, error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "MissingExtraError Sessions need SQLAlchemy: pip install 'clew[app]'."
