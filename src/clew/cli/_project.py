"""Find, open or create the project of a command: a file next to the data, or a database."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew._words import without_password
from clew.cli import _exits
from clew.cli._methods import chosen_method
from clew.cli._progress import progress
from clew.cli._reading import column_names, tell_columns
from clew.exceptions import DataError, FileError, NoProjectError, ParameterError

if TYPE_CHECKING:
    from clew import Session

SUFFIX = ".clew"
# Settings that cannot change, because answers refer to rows by their ids, and rely on one row of each source.
_FIXED = {"id_column": "--id", "source": "--source"}


@dataclass(frozen=True)
class ProjectRequest:
    """Flags of a command that opens or creates a project; None for a flag that was not given."""

    data: str
    project: str | None = None
    name: str | None = None
    id_column: str | None = None
    columns: str | None = None
    scale: str | None = None
    text: str | None = None
    constraints: Path | None = None
    source: str | None = None
    n_clusters: int | None = None
    groups: str | None = None
    method: str | None = None
    strategy: str | None = None
    metric: str | None = None
    overlap: int | None = None
    error_rate: float | None = None
    random_state: int | None = None

    @property
    def place(self) -> str:
        """Path or database address of the project."""
        return self.project or place_of(self.data)

    @property
    def project_name(self) -> str | None:
        """The name of the project. In a database, which can hold many projects, it defaults to the name of the data."""
        if self.name is None and "://" in self.place and not is_project(self.data):
            return Path(self.data).stem
        return self.name

    @property
    def typed(self) -> str:
        """The words that name this project on the command line, for suggested commands."""
        return typed(self.place, self.project_name)

    def settings(self) -> dict[str, Any]:
        """The settings that were given by flags."""
        columns = None if self.columns is None else column_names(self.columns)
        method = None if self.method is None else chosen_method(self.method)
        names = (
            "id_column", "source", "scale", "text", "n_clusters", "groups", "strategy", "metric", "overlap",
            "error_rate", "random_state",
        )  # fmt: skip
        found = {"columns": columns, "method": method} | {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


def is_project(word: str) -> bool:
    """Whether a word names a project (a .clew file or a database) and not data."""
    return "://" in word or Path(word).suffix == SUFFIX


def place_of(word: str) -> str:
    """Return the project that a word names, directly or as the data file next to it."""
    if is_project(word):
        return word
    path = Path(word)
    return str(path.with_suffix(SUFFIX) if path.suffix and not path.is_dir() else path.with_name(path.name + SUFFIX))


@contextmanager
def opened(word: str, name: str | None = None, data: str | None = None, *, tell: bool = True) -> Iterator[Session]:
    """Open the project of a `PROJECT` argument and, with `tell`, report whether its data has changed."""
    place = place_of(word)
    if "://" not in place and not Path(place).exists():
        raise FileError(f"There is no project {place}. Create one with clew ask DATA.")
    from clew import Session

    with progress(f"opening {without_password(place)}"):
        session = Session.open(place, data, name=name)
    with session:
        if tell:
            tell_changes(session, typed(word, name))
        yield session


@contextmanager
def opened_or_begun(request: ProjectRequest) -> Iterator[Session]:
    """Open the project of a data file or create one, and apply the settings given by flags."""
    with _found(request) or _begun(request) as session:
        yield session


def _found(request: ProjectRequest) -> Session | None:
    """Return the project, if it exists, with the settings given by flags."""
    from clew import Session

    place = request.place
    data = None if is_project(request.data) else request.data
    try:
        with progress(f"opening {without_password(place)}"):
            session = Session.open(place, data, name=request.project_name)
    except NoProjectError:
        return None  # not created yet, or its creation was interrupted
    try:
        if session.problem is None:
            tell_changes(session, request.typed)
        _change_settings(session, request)
        if session.problem is not None:
            raise DataError(f"{session.problem} {_way_out(request.typed)}")
    except BaseException:
        session.close()
        raise
    return session


def _begun(request: ProjectRequest) -> Session:
    from clew import Session

    if is_project(request.data):
        raise FileError(f"There is no project {request.data}. Create it from its data: clew ask DATA.")
    with progress(f"reading {Path(request.data).name}"):
        session = Session.create(
            request.place,
            request.data,
            name=request.project_name,
            constraints=request.constraints,
            **request.settings(),
        )
    tell_columns(session.describe())
    return session


def tell_changes(session: Session, project: str) -> None:
    """Report on stderr how the data file differs from the project's rows, or why there are no clusters."""
    if session.problem is not None:
        _exits.say("note", f"{session.problem} {_way_out(project)}", "yellow")
        return
    changes = session.changes
    if not changes:
        return
    advice = f" To add the new rows: clew add {project}." if changes.added else ""
    _exits.say("note", f"{changes}{advice}", "yellow")


def _way_out(project: str) -> str:
    return (
        f"Every answer is saved: clew export {project} answers writes them, "
        f"clew correct {project} undo undoes the last change."
    )


def _change_settings(session: Session, request: ProjectRequest) -> None:
    """Apply the settings given by flags; refuse a setting that cannot change in an existing project."""
    now = session.settings
    changed = {}
    for name, value in request.settings().items():
        before = now.get(name)
        if name == "strategy" and before is not None:
            before = before["name"]
        if value == before:
            continue
        if name in _FIXED:
            raise ParameterError(
                f"{_FIXED[name]} {value}: this project began with {_said(before)}, which cannot change. "
                "Leave it out, or create another project with --project FILE."
            )
        changed[name] = value
    if changed:
        session.set(**changed)
        _exits.say("changed", ", ".join(f"{name} is now {_said(value)}" for name, value in changed.items()), "bold")
    if request.constraints is not None:
        sentence = (
            "--constraints is read only when a project is created. To add answers later: clew import PROJECT FILE."
        )
        _exits.say("note", sentence, "yellow")


def _said(value: Any) -> str:
    if value is None:
        return "none"
    return ",".join(value) if isinstance(value, list) else str(value)


def typed(word: str, name: str | None) -> str:
    """Return a project as it would be typed in another command."""
    named = "" if name is None else f" --name {shlex.quote(name)}"
    return f"{shlex.quote(without_password(word))}{named}"
