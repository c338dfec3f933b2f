"""The real command, as people start it."""

import os
import re
import signal
import subprocess
import sys

import httpx2
import pytest
from typer.testing import CliRunner

from clew import Session
from clew.cli._app import app


class Server:
    """`clew serve` in a process of its own."""

    def __init__(self, folder, *words):
        command = [sys.executable, "-c", "from clew.cli import main; main()", "serve", *map(str, words)]
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
    second = Server(tmp_path, "data.clew", "--token", "chosen")
    try:
        assert second.token == "chosen"
        assert second.client.post("/api/answers", json=body).status_code == 201  # told again: nothing changes
        assert second.client.get("/api/progress").json()["answered"] == 1
        page = httpx2.get(f"{second.address}/?token=chosen", follow_redirects=False)
        assert page.status_code == 303
    finally:
        code, _ = second.stop(signal.SIGINT)
    assert code == 0
    with Session.open(tmp_path / "data.clew") as session:
        assert [record.annotator for record in session.answers()] == ["ann"]


@pytest.fixture
def clew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: CliRunner().invoke(app, ["serve", *words, "--no-browser"], prog_name="clew")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.csv"], "nothing.csv"),
        (["nothing.clew"], "There is no project nothing.clew."),
        (["data.csv", "--id", "nobody"], "nobody"),
        (["data.csv", "--id", "name", "--host", "0.0.0.0"], "--allow-remote"),
        (["data.csv", "--id", "name", "--host", "0.0.0.0", "--allow-remote", "--token", "short"], "guessed"),
        (["data.csv", "--id", "name", "--token", "two words"], "token"),
        (["data.csv", "--id", "name", "--strategy", "magic"], "magic"),
        (["data.csv", "--id", "name", "--host", "nowhere.invalid", "--allow-remote"], "Cannot listen"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(clew, table, words, sentence):
    result = clew(*words)
    assert result.exit_code == 2
    assert sentence in result.stderr and "Traceback" not in result.output
