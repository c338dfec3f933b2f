"""A project is one file: copies of it, files that are gone, and servers that do not answer."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time

import pytest
import sqlalchemy as sa

from clew import Session
from clew.exceptions import FileError, NoProjectError, StorageError, UnknownOutcomeError
from clew.session import _store
from tests.session.helpers import blobs, everything, told

X, Y = blobs(n=24)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "p.clew"


def waited(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


def answers_in(path):
    """The answers in a copy of the file alone."""
    copy = path.with_name("copy.clew")
    shutil.copy(path, copy)
    with Session.open(copy) as session:
        return session.answers()


def test_a_copy_of_the_file_alone_is_the_project_when_nobody_writes(path, monkeypatch):
    monkeypatch.setattr(_store, "_REST", 0.05)
    with Session.create(path, X, n_clusters=3) as session:
        assert answers_in(path) == []
        told(session, Y, 8)
        session.fit()
        assert waited(lambda: answers_in(path) == session.answers())
        told(session, Y, 1)
        assert waited(lambda: answers_in(path) == session.answers())


def test_a_copy_of_the_file_alone_is_the_project_after_closing(path):
    with Session.create(path, X, n_clusters=3) as other:
        with Session.open(path) as session:
            told(session, Y, 5)
        assert answers_in(path) == session._state.ledger.answers()
        assert other.refresh() == 6


def test_a_file_that_lost_its_log_is_not_begun_anew(path):
    """As versions before this one left it behind: the first page in the file, all the rest in the log."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    assert path.stat().st_size == 4096
    for door in (lambda: Session.open(path), lambda: Session.create(path, X)):
        with pytest.raises(FileError, match=r"has lost its content.*-wal") as caught:
            door()
        assert not isinstance(caught.value, NoProjectError)  # the shell begins a project where there is none


def test_a_project_that_was_cut_short_at_its_start_is_begun(path):
    path.touch()
    with pytest.raises(NoProjectError):
        Session.open(path)
    with Session.create(path, X) as session:
        assert len(session.labels()) == 24


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_deleted_is_noticed(path, replaced):
    with Session.create(path, X, n_clusters=3) as session:
        question = session.ask()
        n_answers = len(session.answers())
        copy = path.with_name("kept.clew")
        session.backup(copy)
        path.unlink()
        if replaced:
            shutil.copy(copy, path)
        for call in (lambda: session.tell(question, "same"), lambda: session.ask(), lambda: session.refresh()):
            with pytest.raises(StorageError, match=r"p.clew was deleted or replaced while it was in use. Nothing was"):
                call()
    if replaced:
        with Session.open(path) as session:
            assert len(session.answers()) == n_answers
            session.tell(question.id, "same")


def test_a_backup_is_the_project(store_url, tmp_path):
    copy = tmp_path / "copies" / "copy.clew"
    with Session.create(store_url, X, n_clusters=3) as session:
        told(session, Y, 6)
        session.fit()
        session.ask("bob")
        with pytest.raises(FileError, match="does not exist"):
            session.backup(copy)
        copy.parent.mkdir()
        session.backup(copy)
        told(session, Y, 1)
        session.backup(copy)  # again: the newer copy takes the place of the older one
        now = everything(session)
    assert [one.name for one in copy.parent.iterdir()] == ["copy.clew"]
    with Session.open(copy) as other:
        assert everything(other) == now
        told(other, Y, 1)


def test_a_backup_over_the_project_itself_is_refused(path):
    with Session.create(path, X) as session:
        with pytest.raises(FileError, match="is the project itself"):
            session.backup(path)
        assert len(session.labels()) == 24


def test_a_backup_while_others_answer_is_whole(path, tmp_path):
    with Session.create(path, X, n_clusters=3) as session:
        worker = threading.Thread(target=lambda: told(session, Y, 12))
        worker.start()
        counts = []
        for number in range(4):
            session.backup(tmp_path / f"{number}.clew")
            with Session.open(tmp_path / f"{number}.clew") as copy:
                counts.append(len(copy.answers()))
        worker.join()
        assert counts == sorted(counts)


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def test_who_waits_too_long_for_a_lock_is_told_and_others_go_on(postgresql_url, monkeypatch):
    monkeypatch.setattr(_store, "_SERVER_PATIENCE", 1)
    with Session.create(postgresql_url, X, n_clusters=3) as session:
        question, before = session.ask(), everything(session)
        with session._project.store._engine.begin() as somebody:
            somebody.execute(sa.text("SELECT * FROM projects FOR UPDATE"))
            with pytest.raises(StorageError, match=r"somebody has held it for 1 seconds. Nothing was"):
                session.tell(question, "same")
            assert everything(session) == before
        assert session.tell(question, "same").id == 2


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_connection_lost_at_the_commit_leaves_it_unknown(postgresql_url, done):
    with Session.create(postgresql_url, X, n_clusters=3) as session:
        question = session.ask()
        dialect = session._project.store._engine.dialect
        plain_commit = dialect.do_commit

        def commit(connection):
            if done:
                plain_commit(connection)
            with sa.create_engine(session._project.store._engine.url, poolclass=sa.NullPool).connect() as other:
                number = connection.driver_connection.info.backend_pid
                other.execute(sa.text("SELECT pg_terminate_backend(:number)"), {"number": number})
            connection.execute("SELECT 1")

        dialect.do_commit = commit
        try:
            with pytest.raises(UnknownOutcomeError, match=r"unknown whether this was recorded.*can be sent again"):
                session.tell(question, "same")
        finally:
            del dialect.do_commit
        assert len(session.answers()) == done
        assert session.tell(question, "same").id == 2
        assert len(session.answers()) == 1
