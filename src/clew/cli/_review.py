"""`clew review`: list contradictions and suspicious answers."""

from __future__ import annotations

from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from clew.cli import _render
from clew.cli._cards import shown
from clew.cli._conflict import chain_table, choices
from clew.cli._progress import progress
from clew.cli._project import opened, typed
from clew.cli._words import conflict_heading


def run(
    project: str, most: int, name: str | None, data: str | None, as_json: bool, *, quick: bool, model: str | None
) -> None:
    """Print the conflicts, then the suspicious answers, most suspicious first."""
    with opened(project, name, data) as session, progress(f"reviewing {session.name}"):
        session.labels()
        conflicts, items = session.conflicts(), session.review(quick=quick, model=model)
    if as_json:
        _render.print_json(
            {"conflicts": [asdict(one) for one in conflicts], "answers": [asdict(item) for item in items]}
        )
        return
    console, project = _render.console(), typed(project, name)
    if not conflicts and not items:
        console.print("Nothing looks wrong.", style="bold green")
        return
    for conflict in conflicts[:most]:
        console.print(Text(f"{conflict.id}  {conflict_heading(conflict)}", "bold red"))
        console.print(chain_table(conflict, numbered=False))
        console.print(Text(f"clew correct {project} resolve {conflict.id} {choices(conflict)}", "dim"), soft_wrap=True)
        console.print()
    if len(conflicts) > most:
        console.print(f"and {_render.counted(len(conflicts) - most, 'more conflict')}.")
    if items:
        console.print(_table(items[:most]))
        for sentence in (
            f"To change one:  clew correct {project} answer NUMBER same | different | unsure",
            f"To confirm one: clew correct {project} keep NUMBER",
        ):
            console.print(Text(sentence, "dim"), soft_wrap=True)
    if len(items) > most:
        console.print(f"and {_render.counted(len(items) - most, 'more answer')}; -n {len(items)} shows all.")


def _table(items: list) -> Table:  # type: ignore[type-arg]
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("answer", justify="right", no_wrap=True)
    table.add_column("rows", overflow="fold")
    table.add_column("said", no_wrap=True)
    table.add_column("likely", no_wrap=True)
    table.add_column("suspicion", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for item in items:
        why = " ".join(item.reasons)
        table.add_row(
            str(item.answer_id),
            Text(f"{shown(item.left)} – {shown(item.right)}"),
            item.answer,
            Text(item.likely, "" if item.likely == item.answer else "bold yellow"),
            f"{item.suspicion:.0%}",
            Text(f"{why} ({item.annotator}, {item.time[:10]})"),
        )
    return table
