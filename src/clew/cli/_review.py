"""`clew review`: list contradictions and suspicious answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from clew.cli import _render
from clew.cli._cards import shown
from clew.cli._conflict import chain_table, choices
from clew.cli._progress import progress
from clew.cli._project import opened, typed
from clew.cli._words import conflict_heading

if TYPE_CHECKING:
    from clew.session import ReviewItem


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
        for item in items[:most]:
            _tell_item(item)
        for sentence in (
            f"To change one:  clew correct {project} answer NUMBER same | different | unsure",
            f"To confirm one: clew correct {project} keep NUMBER",
        ):
            console.print(Text(sentence, "dim"), soft_wrap=True)
    if len(items) > most:
        n_wrong = sum(item.likely != item.answer for item in items[most:])
        likely = f", {n_wrong:,} of them more likely wrong than right" if n_wrong else ""
        console.print(f"and {_render.counted(len(items) - most, 'more answer')}{likely}; -n {len(items)} shows all.")


def _tell_item(item: ReviewItem) -> None:
    """Print an answer, the likely right one and the suspicion in one line, and the reasons below it."""
    console = _render.console()
    likely = "" if item.likely == item.answer else f", likely {item.likely}"
    heading = Text.assemble(
        (f"{item.answer_id}  ", "bold"), (f"{shown(item.left)} – {shown(item.right)}", "cyan"),
        f"  {item.annotator} said {item.answer}", (likely, "bold yellow"), f", suspicion {item.suspicion:.0%}",
    )  # fmt: skip
    console.print(heading)
    console.print(Padding(Text(" ".join(item.reasons), "dim"), (0, 0, 1, len(f"{item.answer_id}") + 2)))
