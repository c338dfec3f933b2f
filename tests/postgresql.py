"""A PostgreSQL server of the tests' own: on loopback, in a temporary directory, under a user that is not root."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import psycopg

# Answers are committed thousands of times; what a power cut would do to PostgreSQL is not what is tested.
_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=32MB", "max_connections=60")
_PATIENCE = 60.0


class NoServerError(RuntimeError):
    """PostgreSQL cannot be started here; the message says what is missing."""


class Server:
    """A running server. It ends with `stop`, and by itself when the process that started it is gone."""

    def __init__(self) -> None:
        self._programs = _programs()
        self._as_user, owner = _other_user()
        self._password = secrets.token_urlsafe()
        self._numbers = count(1)
        self._folder = Path(tempfile.mkdtemp(prefix="clew-postgresql-"))
        try:
            if owner is not None:
                os.chown(self._folder, owner.pw_uid, owner.pw_gid)
            self._initialise()
            self._start()
        except BaseException:
            self.stop()
            raise

    def _initialise(self) -> None:
        secret = self._folder / "password"
        secret.write_text(self._password)
        secret.chmod(0o644)  # of a server on loopback that lives for one run, in a directory of its user
        self._run(
            "initdb", "--pgdata", self._data, "--username", "clew", "--pwfile", str(secret), "--auth", "scram-sha-256",
            "--encoding", "UTF8", "--no-locale", "--no-sync",
        )  # fmt: skip
        secret.unlink()

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_user, str(self._programs / program), *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True)
        if done.returncode:
            raise NoServerError(f"{program} failed: {done.stderr.strip()}")

    def _start(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        settings = (*_SETTINGS, "listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories=")
        command = [*self._as_user, str(self._programs / "postgres"), "-D", self._data]
        log = (self._folder / "log").open("w")
        with log:
            self.process = subprocess.Popen(
                [*command, *(word for setting in settings for word in ("-c", setting))],
                cwd=self._folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    log = (self._folder / "log").read_text()
                    raise NoServerError(f"PostgreSQL did not start: {error}\n{log}") from None
                time.sleep(0.02)

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def url(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://clew:{self._password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The name of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def drop(self, database: str) -> None:
        """Remove a database, also while somebody is connected."""
        self.execute(f"DROP DATABASE {database} WITH (FORCE)")

    def execute(self, statement: str) -> None:
        """Run a statement as the administrator."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def stop(self) -> None:
        """End the server and remove its files."""
        process = getattr(self, "process", None)
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _programs() -> Path:
    """Where the programs of the newest PostgreSQL are."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    if on_path is not None:
        found.append(Path(on_path))
    if not found:
        raise NoServerError("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return found[-1].parent


def _other_user() -> tuple[list[str], pwd.struct_passwd | None]:
    """How a command is run as somebody who is not root, and who that is; None if we are not root ourselves.

    The signal ends the server when we are killed: a plain child would go on.
    """
    setpriv = shutil.which("setpriv")
    if os.geteuid():
        return ([setpriv, "--pdeathsig", "INT"] if setpriv else []), None
    if setpriv is None:
        raise NoServerError("PostgreSQL refuses to run as root, and setpriv (util-linux) is not installed")
    user = next((one for one in pwd.getpwall() if one.pw_name == "postgres"), None) or pwd.getpwnam("nobody")
    who = ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
    return [setpriv, *who, "--pdeathsig", "INT"], user
