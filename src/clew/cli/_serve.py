"""`clew serve`: a project over HTTP, on this machine unless told otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clew.cli import _exits
from clew.cli._progress import progress
from clew.exceptions import FileError

if TYPE_CHECKING:
    from clew import Session


@dataclass(frozen=True)
class Request:
    """What the command line says."""

    data: str
    project: str | None
    name: str | None
    id_column: str | None
    settings: dict[str, Any]
    host: str
    port: int | None
    token: str | None
    hosts: list[str]
    allow_remote: bool
    browser: bool


def run(request: Request) -> None:
    """Open or begin the project and serve it until it is stopped."""
    from clew.web import serve

    with _session(request) as session:
        serve(
            session, host=request.host, port=request.port, token=request.token, hosts=request.hosts,
            allow_remote=request.allow_remote, files=_folder(request.data), browser=request.browser,
            announce=lambda address: typer.echo(f"clew is at {address}\nCtrl-C stops it; every answer is kept."),
        )  # fmt: skip
    _exits.say("stopped", "every answer is kept; the same command goes on", "bold", separator=": ")


def _folder(data: str) -> Path | None:
    return None if "://" in data else Path(data).resolve().parent


def _session(request: Request) -> Session:
    """The project if it is there, with the settings that were named; else a new one."""
    from clew import Session

    place = _place(request)
    session = _found(place, request)
    if session is not None:
        if session.changes:
            _exits.say("note", str(session.changes), "yellow")
        _change(session, request.settings)
        return session
    with progress(f"reading {Path(request.data).name}"):
        return Session.create(place, request.data, name=request.name, id_column=request.id_column, **request.settings)


def _place(request: Request) -> str:
    """Where the project is: named, the data itself, or a file beside the data."""
    is_project = "://" in request.data or request.data.endswith(".clew")
    return request.project or (request.data if is_project else str(Path(request.data).with_suffix(".clew")))


def _found(place: str, request: Request) -> Session | None:
    """The project if it is there; None for a database that holds none, as after a start that was cut short."""
    from clew import Session

    data = None if place == request.data else request.data
    if "://" not in place and not Path(place).exists():
        if data is None:
            raise FileError(f"There is no project {place}. Begin one with its data: clew serve DATA.")
        return None
    try:
        with progress(f"opening {Path(place).name}"):
            return Session.open(place, data, name=request.name)
    except FileError as error:
        if data is None or "holds no project" not in str(error):
            raise
        return None


def _change(session: Session, settings: dict[str, Any]) -> None:
    now = session.settings
    now["strategy"] = (now["strategy"] or {}).get("name")
    changed = {name: value for name, value in settings.items() if now[name] != value}
    if changed:
        session.set(**changed)
