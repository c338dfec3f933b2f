"""`clew serve`: serve a project over HTTP, by default only to this machine."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from clew.cli import _exits, _project


@dataclass(frozen=True)
class ServerOptions:
    """Address, token and access rules of the server."""

    host: str
    port: int | None
    token: str | None
    new_token: bool
    hosts: list[str]
    allow_remote: bool
    browser: bool


def run(request: _project.ProjectRequest, options: ServerOptions) -> None:
    """Open or create the project and serve it until Ctrl-C."""
    from clew.web import serve

    with _project.opened_or_begun(request) as session:
        serve(session, **vars(options), announce=_announce)
    _exits.say("stopped", "every answer is saved; the same command continues", "bold")


def _announce(address: str) -> None:
    typer.echo(f"clew is at {address}\nCtrl-C stops it. Every answer is saved.")
