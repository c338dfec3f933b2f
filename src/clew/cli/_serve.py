"""`clew serve`: a project over HTTP, on this machine unless told otherwise."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from clew.cli import _exits, _project


@dataclass(frozen=True)
class Door:
    """Where and for whom the project is served."""

    host: str
    port: int | None
    token: str | None
    hosts: list[str]
    allow_remote: bool
    browser: bool


def run(request: _project.Request, door: Door) -> None:
    """Open or begin the project and serve it until it is stopped."""
    from clew.web import serve

    with _project.opened_or_begun(request) as session:
        serve(session, **vars(door), announce=_announce)
    _exits.say("stopped", "every answer is kept; the same command goes on", "bold")


def _announce(address: str) -> None:
    typer.echo(f"clew is at {address}\nCtrl-C stops it; every answer is kept.")
