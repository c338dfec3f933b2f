"""A disk that is full and a file that cannot be written: a clear sentence, nothing lost, and on it goes afterwards."""

import os
import shutil
import subprocess

import numpy as np
import pytest
import sqlalchemy as sa

from clew import Session
from clew.exceptions import StorageError
from tests.server import Client, QuickServer, write_table


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Sixty rows in three groups, on another disk."""
    X = 9.0 * np.eye(3)[np.arange(60) % 3] + np.random.default_rng(0).normal(size=(60, 3))
    return write_table(tmp_path_factory.mktemp("data") / "data.csv", X)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of half a megabyte, in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    done = _mount("-t", "tmpfs", "-o", "size=512k", "tmpfs", place)
    if done.returncode:
        pytest.skip(f"A disk of a given size needs the right to mount one: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def _mount(*words):
    if shutil.which("mount") is None:
        return subprocess.CompletedProcess(words, 1, "", "there is no mount")
    return subprocess.run(["mount", *map(os.fspath, words)], capture_output=True, text=True)


def fill(disk):
    """Use up the space there is; gives the file that took it."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return filler


def arguments(table, disk):
    return table, "--id", "name", "-k", "3", "--project", disk / "kept.clew"


def answer(client):
    """Ask and answer; gives the question, the status and what was said about it."""
    status, question = client.post("/api/questions/next", annotator="ann")
    if status != 200:
        return None, status, question
    body = {"question": question["id"], "answer": "unsure", "annotator": "ann", "comment": "x" * 2000}
    return body, *client.post("/api/answers", **body)


def test_a_full_disk_under_the_server(table, small_disk):
    kept = {}
    with QuickServer(*arguments(table, small_disk)) as server:
        client = Client(server.host)
        for _ in range(3):
            body, status, told = answer(client)
            assert status == 201
            kept[body["question"]] = told["id"]
        filler = fill(small_disk)
        for _ in range(500):  # the log may have pages left over
            body, status, told = answer(client)
            if status not in (200, 201):
                break
            kept[body["question"]] = told["id"]
        assert status == 507
        assert "The disk is full" in told["error"] and "kept.clew" in told["error"]
        assert "free some space" in told["error"]
        assert {one["question"]: one["id"] for one in client.get("/api/answers")} == kept

        filler.unlink()
        if body is not None:
            status, told = client.post("/api/answers", **body)
            assert status == 201
            kept[body["question"]] = told["id"]
        body, status, told = answer(client)
        assert status == 201
        kept[body["question"]] = told["id"]
        client.close()
        server.kill()
    with Session.open(small_disk / "kept.clew") as session:
        assert {one.question: one.id for one in session.answers()} == kept


def test_a_project_cannot_begin_on_a_full_disk(table, small_disk):
    filler = fill(small_disk)
    with pytest.raises(RuntimeError, match=r"error: .*[Tt]he disk is full.*kept\.clew") as caught:
        QuickServer(*arguments(table, small_disk))
    assert "Traceback" not in str(caught.value)
    filler.unlink()
    with QuickServer(*arguments(table, small_disk)) as server:
        assert server.stop() == 0


def test_a_project_on_a_disk_that_cannot_be_written(table, small_disk):
    place = small_disk / "kept.clew"
    with Session.create(place, table, id_column="name", n_clusters=3) as session:
        told = session.tell(session.ask("ann"), "same")
    assert _mount("-o", "remount,ro", small_disk).returncode == 0
    try:
        with pytest.raises(RuntimeError, match=r"error: Cannot open .*kept\.clew.* may be written") as caught:
            QuickServer(*arguments(table, small_disk))
        assert "Traceback" not in str(caught.value)
        with pytest.raises(StorageError, match=r"kept\.clew.* the file and its folder may be written"):
            Session.open(place)
    finally:
        assert _mount("-o", "remount,rw", small_disk).returncode == 0
    with Session.open(place) as session:
        assert [one.id for one in session.answers()] == [told.id]


def test_a_database_that_may_not_grow(table, tmp_path):
    """SQLite's own limit, for where no disk can be mounted."""
    with Session.create(tmp_path / "kept.clew", table, id_column="name", n_clusters=3) as session:
        engine = session._project.store._engine
        with engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        engine.dispose()  # connections made from now on have the limit

        @sa.event.listens_for(engine, "connect")
        def limit(connection, _record):
            connection.execute(f"PRAGMA max_page_count={pages + 4}")

        told = []

        def go_on():
            while True:
                told.append(session.tell(session.ask("ann"), "unsure", comment="x" * 2000).id)

        with pytest.raises(StorageError, match="The disk is full") as caught:
            go_on()
        assert caught.value.is_full
        assert told and [one.id for one in session.answers()] == told
        sa.event.remove(engine, "connect", limit)
        engine.dispose()
        told += [session.tell(session.pending()[0] if session.pending() else session.ask("ann"), "unsure").id]
    with Session.open(tmp_path / "kept.clew") as session:
        assert [one.id for one in session.answers()] == told
