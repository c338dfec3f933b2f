"""`clew methods`: list the clustering methods, explain one, or say which suit a table."""

from __future__ import annotations

import inspect
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from clew._base import ROLES, Role
from clew._registry import by_method_name, find_method
from clew.cli import _render
from clew.cli._formulas import plain_formula
from clew.cli._parameters import flag_of, signature_of
from clew.cli._progress import progress
from clew.cli._reading import Reading
from clew.constraints import Constraints
from clew.exceptions import ParameterError

_COLOURS = {"yes": "green", "with care": "yellow", "no": "dim"}

# Parameters with a flag, default or description that differs from Python: flag, default, description.
_IN_THE_SHELL = {
    "n_clusters": ("-k, --n-clusters", "none", "Number of clusters. Some methods also take auto, or need none."),
    "random_state": ("--random-state", "0", "Random seed. The same seed gives the same result."),
}


def run(name: str | None, constraints: Path | None = None, *, as_json: bool = False) -> None:
    """List the methods, or explain one."""
    for flag, is_given in (("--constraints", constraints is not None), ("--json", as_json)):
        if is_given:
            raise ParameterError(f"{flag} goes with --for DATA, which says which methods suit a table.")
    if name is None:
        _list()
    else:
        found = chosen_method(name)
        _explain(found, by_method_name()[found])


def run_for(name: str | None, reading: Reading, constraints: Path | None, *, as_json: bool) -> None:
    """Read a table and its constraints, and print which methods suit them, with reasons."""
    from clew.audit import advise_methods  # audits take long to load, and `clew cluster` needs this module

    if name is not None:
        raise ParameterError(f"clew methods explains {name}, or says what suits a table: leave out {name} or --for.")
    with progress(f"reading {reading.name}", quiet=as_json):
        table = reading.table()
        vectors = reading.vectors(table)
        ids = None if reading.id_column is None else table.ids(reading.id_column)
        known = None
        if constraints is not None:
            known = Constraints.from_file(constraints, ids=ids, n_samples=table.n_rows, table=table.rows(ids))
    advice = advise_methods(vectors.X, known, random_state=reading.random_state)
    if as_json:
        _render.print_json({"facts": asdict(advice.facts) | {"shape": advice.facts.shape}, "methods": advice.table()})
        return
    console = _render.console()
    console.print(Text(str(advice.facts)))
    suited = _table("method", "suits", "why")
    for one in advice.methods:
        suited.add_row(one.method, Text(one.suits, style=_COLOURS[one.suits]), Text(" ".join(one.reasons)))
    console.print(suited)
    console.print("\nMore about one: [cyan]clew methods NAME[/cyan]   use it: [cyan]clew cluster -m NAME[/cyan]")


def chosen_method(name: str, role: Role | None = None) -> str:
    """Return the listed name of a method, and print a notice if its name of an earlier version was typed."""
    found = find_method(name, role)
    if name != found and name.islower() and "-" in name:
        typer.echo(f"{name} is called {found} now.", err=True)
    return found


def _list() -> None:
    console = _render.console()
    words = _table("method", "in Python", "what it does")
    abilities = _table("method", "labels", "must-link", "cannot-link", "sparse", "weights")
    for name, kind in sorted(by_method_name("clusterer").items()):
        can = kind().capabilities
        words.add_row(name, kind.__name__, Text(sections(kind)[""].partition("\n")[0]))
        flags = ["yes" if able else "-" for able in (can.sparse, can.sample_weight)]
        abilities.add_row(name, can.labels, can.must_link, can.cannot_link, *flags)
    console.print(words)
    console.print(abilities)
    console.print("hard: always satisfied, or an error says why   soft: may be violated at a cost")
    console.print("seeds: only initialise the clusters            ignored: not used")
    for role in ROLES[1:]:
        _list_others(console, role)
    console.print("\nMore about one: [cyan]clew methods NAME[/cyan]   use it: [cyan]clew cluster -m NAME[/cyan]")


def _list_others(console: Console, role: Role) -> None:
    """Name the methods of another role, if there are any."""
    methods = sorted(by_method_name(role).items())
    if not methods:
        return
    in_shell = role == "alternative clusterer"
    table = _table(role, "in Python" if in_shell else "in Python only", "what it does")
    for name, kind in methods:
        table.add_row(name, kind.__name__, Text(sections(kind)[""].partition("\n")[0]))
    console.print()
    console.print(table)
    if in_shell:
        console.print("use it: [cyan]clew cluster --unlike FILE -m NAME[/cyan]")


def _explain(name: str, kind: Any) -> None:
    console = _render.console()
    text = sections(kind)
    console.print(Text.assemble((name, "bold cyan"), f", {kind.__name__} in Python"))
    _print_prose(console, text[""])
    told = parameters(text.get("Parameters", ""))
    table = _table("flag", "default", "meaning")
    for parameter, default in signature_of(kind).items():
        flag, shown = flag_of(parameter), str(default).lower()
        if isinstance(default, bool):
            flag += f"\n{flag_of(f'no_{parameter}')}"
        table.add_row(*_IN_THE_SHELL.get(parameter, (flag, shown, Text(told.get(parameter, "")))))
    console.print(table)
    for section in ("Notes", "References"):
        if section in text:
            console.print(section, style="bold")
            _print_prose(console, text[section])
    console.print(f"In Python: [cyan]help(clew.{kind.__name__})[/cyan]")


def sections(kind: Any) -> dict[str, str]:
    """Split a numpy-style docstring by its headings; the text before the first heading has the key ""."""
    parts = re.split(r"(?m)^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(kind) or "")
    return {"": parts[0].strip()} | {
        heading: body.strip("\n") for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def parameters(text: str) -> dict[str, str]:
    """Return the description of each parameter of a Parameters section, or its type if it has no description."""
    told: dict[str, str] = {}
    for entry in re.split(r"(?m)^(?=\S)", text):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        kind = re.sub(r",? default=.*", "", kind)
        for parameter in names.split(", "):
            told[parameter.strip()] = _without_marks(" ".join(body.split()) or kind)
    return told


def _print_prose(console: Console, text: str) -> None:
    """Print paragraphs wrapped to the width of the terminal, and formulas without wrapping."""
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.startswith(".. math::"):
            console.print(Padding(Text(plain_formula(inspect.cleandoc(paragraph.removeprefix(".. math::")))), (0, 4)))
        else:
            console.print(Text(_without_marks(" ".join(paragraph.split()))))
        console.print()


def _without_marks(text: str) -> str:
    """Remove reStructuredText markup, and convert inline formulas to Unicode."""
    pieces = re.split(r":math:`([^`]*)`", text)
    pieces[1::2] = [plain_formula(formula) for formula in pieces[1::2]]
    pieces[::2] = [re.sub(r"^\.\. (?=\[)|`+|(?<=\])_", "", prose) for prose in pieces[::2]]
    return "".join(pieces)


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column(headings[0], style="cyan", no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading)
    return table
