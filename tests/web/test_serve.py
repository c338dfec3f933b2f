"""The real command, as people start it."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from clew import Session
from clew.web import _serve
from clew.web._tokens import token_of
from tests.command import type_in


class Server:
    """`clew serve` in a process of its own."""

    def __init__(self, folder, *words, before=""):
        command = [sys.executable, "-c", f"{before}\nfrom clew.cli import main; main()", "serve", *map(str, words)]
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--no-browser"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
        line = self.process.stdout.readline()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S+)", line)
        assert found, (line, self.process.communicate())
        self.address, self.token = found.groups()
        self.client = httpx2.Client(
            base_url=self.address, headers={"Authorization": f"Bearer {self.token}"}, timeout=60
        )

    def stop(self, how=signal.SIGTERM):
        self.client.close()
        self.process.send_signal(how)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


def test_answers_outlive_the_server(tmp_path, table):
    first = Server(tmp_path, table.name, "--id", "name", "-k", 3)
    assert len(first.token) > 40
    question = first.client.post("/api/questions/next", json={"annotator": "ann"}).json()
    body = {"question": question["id"], "answer": "unsure", "annotator": "ann"}
    assert first.client.post("/api/answers", json=body).status_code == 201
    code, err = first.stop()
    assert code == 0 and "Traceback" not in err and "stopped" in err
    second = Server(tmp_path, "data.clew")
    try:
        assert second.token == first.token
        assert second.client.post("/api/answers", json=body).status_code == 201  # told again: nothing changes
        assert second.client.get("/api/progress").json()["answered"] == 1
        page = httpx2.get(f"{second.address}/?token={second.token}", follow_redirects=False)
        assert page.status_code == 303
    finally:
        code, _ = second.stop(signal.SIGINT)
    assert code == 0
    with Session.open(tmp_path / "data.clew") as session:
        assert [record.annotator for record in session.answers()] == ["ann"]


STUCK = """
import clew.active, numpy as np

class Stuck(clew.active.Strategy):
    def __call__(self, view, rng: np.random.Generator):
        while view.unplaced().size:
            pass
        yield

clew.active.Stuck = Stuck
clew.active.__all__.append("Stuck")
"""


def test_a_strategy_that_never_asks_is_stopped_and_the_server_stays_up(tmp_path, table):
    server = Server(tmp_path, table.name, "--id", "name", "-k", 3, before=STUCK)
    try:
        question = server.client.post("/api/questions/next", json={"annotator": "ann"}).json()
        assert server.client.put("/api/settings", json={"strategy": "stuck"}).status_code == 200
        for _ in range(2):
            refused = server.client.post("/api/questions/next", json={"annotator": "bob"})
            assert refused.status_code == 500
            assert "The strategy Stuck looked 10,000 times" in refused.json()["error"]
        body = {"question": question["id"], "answer": "same", "annotator": "ann"}
        assert server.client.post("/api/answers", json=body).status_code == 201
        assert server.client.get("/api/progress").json()["answered"] == 1
        assert len(server.client.get("/api/labels").json()) == 12
        assert server.client.put("/api/settings", json={"strategy": "min-max"}).status_code == 200
        assert server.client.post("/api/questions/next", json={"annotator": "bob"}).json() is not None
        assert server.client.put("/api/settings", json={"strategy": "stuck"}).status_code == 200
    finally:
        code, err = server.stop()
    assert code == 0 and "Traceback" not in err


def test_a_project_keeps_its_token_until_a_new_one_is_asked_for(session, table, tmp_path, state_home):
    first = token_of(session.project_id)
    assert len(first) > 40 and token_of(session.project_id) == first
    with Session.create(tmp_path / "other.clew", table, id_column="name") as other:
        assert token_of(other.project_id) != first
        other.close()
        (tmp_path / "other.clew").rename(tmp_path / "moved.clew")
        with Session.open(tmp_path / "moved.clew") as moved:
            assert moved.project_id == other.project_id != session.project_id
    second = token_of(session.project_id, renew=True)
    assert second != first and token_of(session.project_id) == second
    kept = state_home / "tokens" / session.project_id
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.parent.stat().st_mode & 0o777 == 0o700
    kept.chmod(0o644)
    assert token_of(session.project_id) != second  # somebody else may have read it


def test_a_token_that_cannot_be_kept_holds_for_one_run(session, state_home, caplog):
    state_home.parent.mkdir()
    state_home.write_text("a file in the way")
    assert len(token_of(session.project_id)) > 40
    assert "valid for this run only" in caplog.text


def test_the_command_line_of_the_browser_does_not_show_the_token(state_home, monkeypatch):
    opened = []
    monkeypatch.setattr(_serve.webbrowser, "open", opened.append)
    _serve._show("http://127.0.0.1:8765/?token=secret&more")
    (path,) = (state_home / "open").iterdir()
    assert opened == [path.as_uri()] and "secret" not in opened[0]
    assert path.stat().st_mode & 0o777 == 0o600 and "?token=secret&amp;more" in path.read_text()
    _serve.remove_opening_file()
    assert not path.exists()


@pytest.fixture
def clew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: type_in("serve", *words, "--no-browser")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.csv"], "nothing.csv"),
        (["nothing.clew"], "There is no project nothing.clew."),
        (["data.csv", "--id", "nobody"], "nobody"),
        (["data.csv", "--id", "name", "--host", "0.0.0.0"], "--allow-remote"),
        (["data.csv", "--id", "name", "--host", "0.0.0.0", "--allow-remote", "--token", "short"], "guessed"),
        (["data.csv", "--id", "name", "--token", "two words"], "token"),
        (["data.csv", "--id", "name", "--token", "chosen", "--new-token"], "not both"),
        (["data.csv", "--id", "name", "--strategy", "magic"], "magic"),
        (["data.csv", "--id", "name", "--host", "nowhere.invalid", "--allow-remote"], "Cannot listen"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(clew, table, words, sentence):
    result = clew(*words)
    assert result.exit_code == 2
    assert sentence in result.stderr and "Traceback" not in result.output


HANGS = """
import threading
import clew.active, numpy as np
from clew.session._clustering import FitPlan

class Hangs(clew.active.Strategy):
    def __call__(self, view, rng: np.random.Generator):
        while True:
            pass
        yield

clew.active.Hangs = Hangs
clew.active.__all__.append("Hangs")
run = FitPlan.run
FitPlan.run = lambda self, *report: threading.Event().wait() if self.n_clusters == 2 else run(self, *report)
"""


@pytest.mark.parametrize(
    ("settings", "method", "path", "how", "status"),
    [
        pytest.param({"strategy": "hangs"}, "POST", "/api/questions/next", signal.SIGTERM, 504, id="a question"),
        pytest.param({"n_clusters": 2}, "GET", "/api/labels", signal.SIGINT, 503, id="a fit", marks=pytest.mark.slow),
    ],
)
def test_a_server_stops_in_seconds_whatever_is_under_way(tmp_path, table, settings, method, path, how, status):
    server = Server(tmp_path, table.name, "--id", "name", "-k", 3, before=HANGS)
    with ThreadPoolExecutor(2) as pool:
        try:
            assert server.client.put("/api/settings", json=settings).status_code == 200
            body = {"json": {}} if method == "POST" else {}
            waiting = pool.submit(
                httpx2.request, method, server.address + path, headers=server.client.headers, timeout=60, **body
            )
            with pytest.raises(TimeoutError):
                waiting.result(1)
            start = time.monotonic()
        finally:
            code, err = server.stop(how)
        assert time.monotonic() - start < 25
        assert code == 0 and "Traceback" not in err
        response = waiting.result(60)
    assert response.status_code == status and "stopped" in response.json()["error"]
    with Session.open(tmp_path / "data.clew") as session:
        assert session.history()[-1].kind in ("setting", "fit")
