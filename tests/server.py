"""The real server in a process of its own, and a small client that speaks to it."""

from __future__ import annotations

import ctypes
import http.client
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "a-token-for-tests-of-the-server"
# What the server imports before it accepts connections.
_PRELOADED = (
    "clew.cli._app", "clew.cli._serve", "clew.web._app", "clew.session", "clew.active", "clew.audit",
    "fastapi.openapi.utils", "uvicorn.protocols.http.auto", "uvicorn.loops.auto", "uvicorn.lifespan.on", "uvloop",
    "sqlalchemy.dialects.sqlite", "webbrowser", "mimetypes",
)  # fmt: skip


class GoneError(ConnectionError):
    """The server did not answer: whether it did what was asked is unknown."""


class Server:
    """`clew serve` with these arguments, from when it accepts connections until it is stopped or killed.

    Attributes
    ----------
    host, token : str
        Where it listens, and what it wants to see.
    port, pid : int
    page : str
        What a browser opens.
    """

    def __init__(self, *arguments: str | os.PathLike[str], port: int = 0, token: str = TOKEN) -> None:
        self._errors = tempfile.NamedTemporaryFile("w+")  # noqa: SIM115  closed by `_end`
        words = [*map(os.fspath, arguments), "--port", str(port), "--token", token, "--no-browser"]
        with self._started(words) as output:
            said = output.readline().split()
        if not said:
            self._wait()
            problem = self.said()
            self._errors.close()
            raise RuntimeError(f"The server did not start: {problem}")
        address = urlsplit(said[-1])
        self.host, self.token = address.netloc, parse_qs(address.query)["token"][0]
        assert address.port is not None
        self.port, self.page = address.port, f"http://{self.host}/?token={self.token}"

    def _started(self, words: list[str]) -> IO[str]:
        """Start the process; gives what it prints."""
        command = [sys.executable, "-c", "from clew.cli import main; main()", "serve", *words]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors, text=True)
        self.pid = self._process.pid
        assert self._process.stdout is not None
        return self._process.stdout

    def _wait(self) -> int:
        return self._process.wait()

    def said(self) -> str:
        """What the server wrote about its troubles so far."""
        self._errors.seek(0)
        return self._errors.read()

    def kill(self) -> None:
        """End it at once, whatever it does: SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to end, and give its exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        os.kill(self.pid, how)
        status = self._wait()
        self._errors.close()
        return status

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._errors.closed:
            self.kill()


class QuickServer(Server):
    """The same server, forked from a process that has imported everything: many starts in little time."""

    def _started(self, words: list[str]) -> IO[str]:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.server", *_PRELOADED])
        output, its_output = context.Pipe(duplex=False)
        self._fork = context.Process(target=_serve_here, args=(words, its_output, self._errors.name), daemon=True)
        self._fork.start()
        its_output.close()
        self.pid = self._fork.pid
        with output:
            return os.fdopen(os.dup(output.fileno()))

    def _wait(self) -> int:
        self._fork.join()
        status = self._fork.exitcode
        self._fork.close()
        return status


def _serve_here(words: list[str], output: Connection, errors: str) -> None:
    """Be the server, in a process that was forked for it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: nothing stays when the tests are killed
    os.dup2(output.fileno(), 1)
    with open(errors, "a") as file:
        os.dup2(file.fileno(), 2)
    sys.argv = ["clew", "serve", *words]
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    from clew.cli import main

    main()


class Client:
    """One connection that is kept open."""

    def __init__(self, host: str, token: str = TOKEN, timeout: float = 60.0) -> None:
        self._connection = http.client.HTTPConnection(host, timeout=timeout)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            self._connection.request(method, path, data, self._headers)
            answer = self._connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise GoneError(str(error)) from error

    def get(self, path: str) -> Any:
        """What a path holds; it must be there."""
        status, found = self.ask("GET", path)
        if status != 200:
            raise AssertionError(f"GET {path}: {status} {found}")
        return found

    def post(self, path: str, **body: Any) -> tuple[int, Any]:
        """Status and JSON after sending these fields."""
        return self.ask("POST", path, body)

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def write_table(path: Path, X: Any) -> Path:
    """Rows named r0, r1, … as csv."""
    names = ",".join(f"x{column}" for column in range(X.shape[1]))
    lines = (f"r{row}," + ",".join(f"{value:.6g}" for value in values) for row, values in enumerate(X))
    path.write_text("\n".join([f"name,{names}", *lines]) + "\n", encoding="utf-8")
    return path
