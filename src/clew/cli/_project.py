"""Where a project is: a file beside the data, or a database; opened, or begun on first use."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.cli import _exits
from clew.cli._methods import method_name
from clew.cli._progress import progress
from clew.exceptions import FileError, NoProjectError, ParameterError

if TYPE_CHECKING:
    from clew import Session

SUFFIX = ".clew"
# Columns whose reading is told before the rest is only counted.
_MOST_COLUMNS = 12


@dataclass(frozen=True)
class Request:
    """What the command line says about a project; None where it says nothing."""

    data: str
    project: str | None = None
    name: str | None = None
    id_column: str | None = None
    columns: str | None = None
    scale: str | None = None
    text: str | None = None
    constraints: Path | None = None
    n_clusters: int | None = None
    method: str | None = None
    strategy: str | None = None
    metric: str | None = None
    overlap: int | None = None
    random_state: int | None = None

    @property
    def place(self) -> str:
        """Where the project is."""
        return self.project or place_of(self.data)

    @property
    def project_name(self) -> str | None:
        """The name of the project; in a database, where many share one place, that of the data unless given."""
        if self.name is None and "://" in self.place and not is_project(self.data):
            return Path(self.data).stem
        return self.name

    @property
    def typed(self) -> str:
        """The project as it is typed in another command."""
        return typed(self.place, self.project_name)

    def settings(self) -> dict[str, Any]:
        """Give the settings that were named."""
        columns = None if self.columns is None else [name.strip() for name in self.columns.split(",") if name.strip()]
        method = None if self.method is None else method_name(self.method)
        names = ("id_column", "scale", "text", "n_clusters", "strategy", "metric", "overlap", "random_state")
        found = {"columns": columns, "method": method} | {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


def is_project(word: str) -> bool:
    """Whether a word names a project rather than data: a file called .clew, or a database."""
    return "://" in word or Path(word).suffix == SUFFIX


def place_of(word: str) -> str:
    """Give the project that a word stands for: itself, or the file beside the data it names."""
    if is_project(word):
        return word
    path = Path(word)
    return str(path.with_suffix(SUFFIX) if path.suffix and not path.is_dir() else path.with_name(path.name + SUFFIX))


@contextmanager
def opened(word: str, name: str | None = None, data: str | None = None, *, tell: bool = True) -> Iterator[Session]:
    """Open the project of a `PROJECT` argument, and say (unless told not to) if its data has changed."""
    place = place_of(word)
    if "://" not in place and not Path(place).exists():
        raise FileError(f"There is no project {place}. Begin one with clew ask DATA.")
    from clew import Session

    with progress(f"opening {shown_place(place)}"):
        session = Session.open(place, data, name=name)
    with session:
        if tell:
            tell_changes(session, typed(word, name))
        yield session


@contextmanager
def opened_or_begun(request: Request) -> Iterator[Session]:
    """Open the project of some data, or begin one; settings that were named are then in force."""
    with _found(request) or _begun(request) as session:
        yield session


def _found(request: Request) -> Session | None:
    """The project if it is there, with the settings that were named."""
    from clew import Session

    place = request.place
    data = None if is_project(request.data) else request.data
    try:
        with progress(f"opening {shown_place(place)}"):
            session = Session.open(place, data, name=request.project_name)
    except NoProjectError:
        return None  # not begun yet, or cut short when it was
    try:
        tell_changes(session, request.typed)
        _change_settings(session, request)
    except BaseException:
        session.close()
        raise
    return session


def _begun(request: Request) -> Session:
    from clew import Session

    if is_project(request.data):
        raise FileError(f"There is no project {request.data}. Begin one with its data: clew ask DATA.")
    with progress(f"reading {Path(request.data).name}"):
        session = Session.create(
            request.place,
            request.data,
            name=request.project_name,
            constraints=request.constraints,
            **request.settings(),
        )
    _exits.say("columns", f"read as\n{_first_lines(session.describe())}", "bold")
    return session


def _first_lines(table: str) -> str:
    heading, *lines = table.splitlines()
    more = len(lines) - _MOST_COLUMNS
    return "\n".join([heading, *lines[:_MOST_COLUMNS], *([f"and {more} more columns"] if more > 0 else [])])


def tell_changes(session: Session, project: str) -> None:
    """Say on stderr what differs between the data and what the project knows of it."""
    changes = session.changes
    if not changes:
        return
    advice = f" To take in the new rows: clew add {project}." if changes.added else ""
    _exits.say("note", f"{changes}{advice}", "yellow")


def _change_settings(session: Session, request: Request) -> None:
    """Named settings that differ: those that can change do, others are refused."""
    now = session.settings
    changed = {}
    for name, value in request.settings().items():
        before = now[name]
        if name == "strategy" and before is not None:
            before = before["name"]
        if value == before:
            continue
        if name == "id_column":  # answers are about rows by their ids
            raise ParameterError(
                f"--id {value}: this project began with {_said(before)}, which cannot change. "
                "Leave it out, or begin another project with --project FILE."
            )
        changed[name] = value
    if changed:
        session.set(**changed)
        _exits.say("changed", ", ".join(f"{name} is now {_said(value)}" for name, value in changed.items()), "bold")
    if request.constraints is not None:
        sentence = "--constraints is read when a project begins. To take in more answers: clew import PROJECT FILE."
        _exits.say("note", sentence, "yellow")


def _said(value: Any) -> str:
    if value is None:
        return "none"
    return ",".join(value) if isinstance(value, list) else str(value)


def shown_place(place: str) -> str:
    """Give a place without the password of a database."""
    return re.sub(r"(?<=://)([^/@:]*):.*@", r"\1@", place)


def typed(word: str, name: str | None) -> str:
    """Give a project as it is typed in another command."""
    named = "" if name is None else f" --name {shlex.quote(name)}"
    return f"{shlex.quote(shown_place(word))}{named}"
