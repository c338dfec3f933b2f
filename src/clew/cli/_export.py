"""`clew export`: labels, constraints or answers of a project as a file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from clew.cli import _exits, _render
from clew.cli._progress import progress
from clew.cli._project import opened, place_of
from clew.datasets import check_writable
from clew.exceptions import ParameterError

if TYPE_CHECKING:
    from clew import Session


def run(project: str, what: str, output: str | None, name: str | None, data: str | None) -> None:
    """Write the file, or csv to stdout."""
    path = None if output in (None, "-") else Path(str(output))
    if path is not None:
        if path.exists() and Path(place_of(project)).exists() and path.samefile(place_of(project)):
            raise ParameterError(f"-o {path} would overwrite the project. Choose another name.")
        check_writable(path)
    with opened(project, name, data) as session, progress(f"clusters of {session.name}"):
        if path is None:
            text = _as_csv(session, what)
        else:
            session.export(what, path)
        notes = session.progress().notes if what == "labels" else ()
    for note in notes:
        _exits.say("note", note, "yellow")
    if path is None:
        sys.stdout.write(text)
    else:
        _exits.written.append(path)
        _render.console(stderr=True).print(f"{what} written to {path}", markup=False)


def _as_csv(session: Session, what: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{what}.csv")
        session.export(what, path)
        with open(path, encoding="utf-8", newline="") as stream:
            return stream.read()
