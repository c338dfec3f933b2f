"""`clew methods`: what there is to choose from."""

from __future__ import annotations

import difflib
import inspect
import re
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from clew._registry import by_method_name
from clew.cli import _render
from clew.cli._parameters import flag_of, signature_of
from clew.exceptions import ParameterError

# Parameters that the shell treats in its own way.
_IN_THE_SHELL = {
    "n_clusters": ("-k, --n-clusters", "none", "Number of clusters (auto: found, by some); always given."),
    "random_state": ("--random-state", "0", "The seed; fixed, so that a command repeats itself."),
}


def run(name: str | None) -> None:
    """List the methods, or explain one."""
    if name is None:
        _list()
    else:
        _explain(name, find_method(name))


def find_method(name: str) -> Any:
    """Give the estimator class of a method name, however it is hyphenated (cop-kmeans, COPKMeans)."""
    return by_method_name()[method_name(name)]


def method_name(name: str) -> str:
    """Give the name of a method as it is listed, however it is hyphenated."""
    methods = by_method_name()
    name = next((known for known in methods if _plain(known) == _plain(name)), name)
    if name not in methods:
        close = difflib.get_close_matches(name, methods, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ParameterError(f'There is no method "{name}".{hint} There are {", ".join(sorted(methods))}.')
    return name


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()


def _list() -> None:
    console = _render.console()
    words = _table("method", "in Python", "what it does")
    abilities = _table("method", "labels", "must-link", "cannot-link", "sparse", "weights")
    for name, kind in sorted(by_method_name().items()):
        can = kind._capabilities
        words.add_row(name, kind.__name__, Text(sections(kind)[""].partition("\n")[0]))
        flags = ["yes" if able else "-" for able in (can.sparse, can.sample_weight)]
        abilities.add_row(name, can.labels, can.must_link, can.cannot_link, *flags)
    console.print(words)
    console.print(abilities)
    console.print("hard: holds, or is refused with the reason   soft: may break at a price")
    console.print("seeds: says where clusters start             ignored: not used")
    console.print("\nMore about one: [cyan]clew methods NAME[/cyan]   use it: [cyan]clew cluster -m NAME[/cyan]")


def _explain(name: str, kind: Any) -> None:
    console = _render.console()
    text = sections(kind)
    console.print(Text.assemble((name, "bold cyan"), f", {kind.__name__} in Python"))
    _print_prose(console, text[""])
    told = parameters(text.get("Parameters", ""))
    table = _table("flag", "default", "what it says")
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
    """Split a numpy-style docstring by its headings; what comes before the first is under the empty name."""
    parts = re.split(r"(?m)^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(kind) or "")
    return {"": parts[0].strip()} | {
        heading: body.strip("\n") for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def parameters(text: str) -> dict[str, str]:
    """Give what a Parameters section says of each: its description, or its type where there is none."""
    told: dict[str, str] = {}
    for entry in re.split(r"(?m)^(?=\S)", text):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        kind = re.sub(r",? default=.*", "", kind)
        for parameter in names.split(", "):
            told[parameter.strip()] = _without_marks(" ".join(body.split()) or kind)
    return told


def _print_prose(console: Console, text: str) -> None:
    """Fold paragraphs to the width of the terminal; formulas stay as they are."""
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.startswith(".. math::"):
            console.print(Padding(Text(inspect.cleandoc(paragraph.removeprefix(".. math::"))), (0, 4)))
        else:
            console.print(Text(_without_marks(" ".join(paragraph.split()))))
        console.print()


def _without_marks(text: str) -> str:
    """Leave out the marks of reStructuredText."""
    return re.sub(r"^\.\. (?=\[)|`+|(?<=\])_", "", text)


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column(headings[0], style="cyan", no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading)
    return table
