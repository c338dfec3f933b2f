"""`clew backup`: copy a project to a new file."""

from __future__ import annotations

from pathlib import Path

from clew.cli import _exits, _render
from clew.cli._progress import progress
from clew.cli._project import SUFFIX, opened, place_of
from clew.exceptions import ParameterError


def run(project: str, file: Path, name: str | None, *, force: bool) -> None:
    """Write the copy and print its path."""
    if file.suffix != SUFFIX:
        raise ParameterError(f"{file}: a copy of a project is a {SUFFIX} file. Call it {file.with_suffix(SUFFIX)}.")
    place = Path(place_of(project))
    is_itself = file.exists() and place.exists() and file.samefile(place)
    if file.exists() and not is_itself and not force:
        raise ParameterError(f"{file} exists already. Choose another name, or replace it with --force.")
    with opened(project, name, tell=False) as session, progress(f"copying {session.name}"):
        session.backup(file)
        n_answers = len(session.answers())
    _exits.written.append(file)
    _render.console(stderr=True).print(f"{_render.counted(n_answers, 'answer')} copied to {file}", markup=False)
