"""`clew methods`: what there is to choose from."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from clew._registry import by_method_name
from clew.cli import _render
from clew.cli._parameters import flag_of, signature_of
from clew.exceptions import ParameterError


def run(name: str | None) -> None:
    """List the methods, or explain one."""
    if name is None:
        _list()
    else:
        _explain(name, find_method(name))


def find_method(name: str) -> Any:
    """Give the estimator class of a method name."""
    methods = by_method_name()
    if name not in methods:
        close = difflib.get_close_matches(name, methods, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ParameterError(f'There is no method "{name}".{hint} There are {", ".join(sorted(methods))}.')
    return methods[name]


def _list() -> None:
    console = _render.console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("method", style="cyan", no_wrap=True)
    table.add_column("what it does", ratio=1)
    for heading in ("labels", "must-link", "cannot-link"):
        table.add_column(heading)
    for heading in ("sparse", "weights"):
        table.add_column(heading, justify="center")
    for name, kind in sorted(by_method_name().items()):
        can = kind._capabilities
        table.add_row(
            name,
            Text(_first_line(kind)),
            can.labels,
            can.must_link,
            can.cannot_link,
            _tick(can.sparse),
            _tick(can.sample_weight),
        )
    console.print(table)
    console.print("hard: always kept or refused with the reason; soft: kept at a price; seeds: used to start from.")
    console.print("Parameters of one: [cyan]clew methods NAME[/cyan]. Use it: [cyan]clew cluster -m NAME[/cyan].")


def _explain(name: str, kind: Any) -> None:
    console = _render.console()
    console.print(Text.assemble((name, "bold cyan"), f"  (clew.{kind.__name__} in Python)"))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), header_style="bold")
    table.add_column("flag", style="cyan", no_wrap=True)
    table.add_column("default")
    for parameter, default in signature_of(kind).items():
        flag = "-k, --n-clusters" if parameter == "n_clusters" else flag_of(parameter)
        if isinstance(default, bool):
            flag += f" / {flag_of(f'no_{parameter}')}"
        shown = "0 in the shell, none in Python" if parameter == "random_state" else str(default).lower()
        table.add_row(flag, "required in the shell" if parameter == "n_clusters" else shown)
    console.print(Text(inspect.getdoc(kind) or ""))
    console.print(table)


def _first_line(kind: Any) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def _tick(value: bool) -> str:
    return "yes" if value else "-"
