"""Uploaded files: large files block nobody, too large files are refused, and errors keep their messages."""

import errno
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from clew.exceptions import StorageError
from clew.session import _exchanging, _growth
from clew.web import _routes_data
from tests.web.conftest import truth


@pytest.fixture
def beside():
    """A thread for the request that takes long."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.fixture
def held_up(monkeypatch):
    """Make the first call of a function wait: gives what says that it began, and what lets it go on."""

    def waits(module, name):
        call, begun, go_on = getattr(module, name), threading.Event(), threading.Event()

        def waiting(*args, **kwargs):
            if not begun.is_set():
                begun.set()
                assert go_on.wait(60)
            return call(*args, **kwargs)

        monkeypatch.setattr(module, name, waiting)
        return begun, go_on

    return waits


def ask_and_answer(client):
    question = client.post("/api/questions/next", json={"annotator": "ann"}).json()
    body = {"question": question["id"], "answer": truth(question["left"], question["right"])}
    return client.post("/api/answers", json=body).status_code


IMPORTS = {
    "reading answers": ("/api/answers/import?name=a.csv", "id_1,id_2,answer\na,b,same\n", _exchanging, "answers_in"),
    "reading rows": ("/api/rows?name=a.csv", "name,x,y,note\nm,1,1,new\n", _growth, "table_of"),
    "packing rows": ("/api/rows?name=a.csv", "name,x,y,note\nm,1,1,new\n", _growth, "packed_rows"),
    "encoding rows": ("/api/rows?name=a.csv", "name,x,y,note\nm,1,1,new\n", _growth, "ProjectRows"),
}


@pytest.mark.parametrize("step", IMPORTS)
def test_people_go_on_while_a_file_is_taken_in(client, beside, held_up, step):
    path, content, module, name = IMPORTS[step]
    begun, go_on = held_up(module, name)
    upload = beside.submit(client.post, path, content=content)
    assert begun.wait(60)
    try:
        assert [ask_and_answer(client) for _ in range(3)] == [201] * 3
        assert client.get("/api/clusters").status_code == 200
    finally:
        go_on.set()
    response = upload.result(60)
    assert response.status_code == 201 and response.json()["count"] == 1


def test_rows_that_came_meanwhile_are_counted_with(client, session, beside, held_up):
    begun, go_on = held_up(_growth, "ProjectRows")
    upload = beside.submit(client.post, "/api/rows?name=a.csv", content="name,x,y,note\nm,1,1,new\n")
    assert begun.wait(60)
    session.add_rows([{"name": "n", "x": 9.0, "y": 1.0, "note": "other"}])
    go_on.set()
    assert upload.result(60).status_code == 201
    assert session.ids == [*"abcdefghijkl", "n", "m"]
    assert client.post("/api/rows?name=a.csv", content="name,x,y,note\nm,1,1,new\n").status_code == 400


@pytest.mark.parametrize("path", ["/api/rows", "/api/answers/import"])
def test_a_small_file_that_holds_much_is_refused(client, tmp_path, monkeypatch, path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    names = ["name", "x", "y", "note"] if path == "/api/rows" else ["id_1", "id_2", "answer"]
    table = pyarrow.table({name: ["a" * 100] * 200_000 for name in names})
    parquet.write_table(table, tmp_path / "much.parquet")
    content = (tmp_path / "much.parquet").read_bytes()
    assert len(content) < 1 << 20
    monkeypatch.setattr(_routes_data, "MOST_READ", 1 << 20)
    response = client.post(path, params={"name": "much.parquet"}, content=content)
    assert response.status_code == 413
    assert response.json()["error"].startswith("much.parquet would take") and "1 MB" in response.json()["error"]


def test_a_file_of_too_many_answers_or_rows_is_refused(client, session, monkeypatch):
    monkeypatch.setattr(_routes_data, "MOST_NEW_ANSWERS", 2)
    monkeypatch.setattr(_routes_data, "MOST_NEW_ROWS", 2)
    before = session.version
    answers = "id_1,id_2,answer\na,b,same\na,c,same\na,d,same\n"
    response = client.post("/api/answers/import?name=many.csv", content=answers)
    assert response.status_code == 413
    assert "many.csv holds 3 answers, and the server takes 2 at a time" in response.json()["error"]
    rows = "name,x,y,note\nm,1,1,n\nn,1,1,n\no,1,1,n\n"
    response = client.post("/api/rows?name=many.csv", content=rows)
    assert response.status_code == 413 and "3 rows" in response.json()["error"]
    assert session.version == before


def test_a_full_disk_is_told_as_such(client, session, monkeypatch):
    def full(*_, **__):
        raise StorageError("The disk is full.", is_full=True)

    monkeypatch.setattr(session, "import_answers", full)
    path, content = "/api/answers/import?name=a.csv", "id_1,id_2,answer\na,b,same\n"
    assert client.post(path, content=content).status_code == 507

    def no_space(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_routes_data, "open", no_space, raising=False)
    response = client.post(path, content=content)
    assert response.status_code == 507
    assert "a.csv" in response.json()["error"] and "The disk is full" in response.json()["error"]


def test_answers_remember_the_name_of_their_file(client, session):
    client.post("/api/answers/import?name=pairs.csv", content="id_1,id_2,answer\na,b,same\n")
    assert session.history()[-1].payload["source"] == "pairs.csv"
