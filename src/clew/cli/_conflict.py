"""Resolve a contradiction on the terminal: show the chain of answers that proves it, and the possible choices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clew.cli._words import conflict_heading, link_words
from clew.exceptions import ClewError

if TYPE_CHECKING:
    from clew import Session
    from clew.cli._keys import Keyboard
    from clew.session import Conflict

# Keys of the dialogue and the matching argument `how` of `Session.resolve`.
_HOW = {"p": "soft", "u": "unsure", "space": "unsure", "r": "repair"}


def changeable(conflict: Conflict) -> list[int]:
    """Return the answers that can be changed and the corrections that can be undone, in the order of the chain."""
    return list(dict.fromkeys(event for link in conflict.links for event in link.events))


def choices(conflict: Conflict) -> str:
    """Return the arguments of ``clew correct PROJECT resolve NUMBER`` that can resolve a conflict."""
    order = changeable(conflict)
    changes = [f"change {event}" for event in order if event in conflict.answers]
    withdrawals = [f"withdraw {event}" for event in order if event in conflict.corrections]
    return " | ".join([*changes, *withdrawals, "soft", "unsure"])


def chain_table(conflict: Conflict, *, numbered: bool) -> Table:
    """Return the steps of a conflict as a table; with `numbered`, steps that can be changed have a number."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(style="bold", justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    order = changeable(conflict)
    for link in conflict.links:
        own = [event for event in link.events if event in order]
        numbers = " ".join(str(order.index(event) + 1) for event in own) if numbered else ""
        is_wrong = conflict.kind == "disagreement" and not set(link.events).isdisjoint(conflict.cheapest)
        said_by = Text.assemble(link.said_by, (", probably wrong", "yellow") if is_wrong else "")
        table.add_row(numbers or "•", Text(link_words(link)), said_by)
    return table


def settle(session: Session, conflict: Conflict, keys: Keyboard, console: Console, annotator: str) -> bool:
    """Show a conflict and resolve it as the annotator chooses; False if the annotator postpones it."""
    console.print(Text(conflict_heading(conflict), "bold red"))
    console.print(chain_table(conflict, numbered=True))
    order = changeable(conflict)
    unsure = {"correction": "undo it", "disagreement": "mark all unsure"}.get(conflict.kind, "mark the last one unsure")
    console.print(
        "[bold]1–9[/bold] change that answer, or undo that correction   [bold]P[/bold] keep all as preferences   "
        f"[bold]Space[/bold] {unsure}   [bold]L[/bold] later"
    )
    if conflict.cheapest:
        console.print(Text.assemble(("R", "bold"), f" cheapest repair: {_repair_words(conflict, order)}"))
    while (key := keys.key()) not in (None, "l", "q", "later"):
        try:
            if key in _HOW:
                session.resolve(conflict, _HOW[key], annotator=annotator)
            elif key.isdecimal() and 0 < int(key) <= len(order):
                _give_way(session, conflict, order[int(key) - 1], annotator)
            else:
                console.print("Press a number, R, P, Space or L.", style="yellow")
                continue
        except ClewError as error:
            console.print(Text(str(error), "yellow"))
            continue
        left = [one for one in session.conflicts() if one.id == conflict.id]
        console.print("Resolved." if not left else "Recorded, but a contradiction remains:", style="bold")
        return settle(session, left[0], keys, console, annotator) if left else True
    waits = "not used" if conflict.kind == "correction" else "not certain"
    console.print(f"Postponed: it is recorded, but {waits} until the conflict is resolved.", style="dim")
    return False


def _repair_words(conflict: Conflict, order: list[int]) -> str:
    """Describe the cheapest repair of a conflict, with the numbers of the table if they are in it."""
    words = []
    for event in conflict.cheapest:
        name = f"number {order.index(event) + 1}" if event in order else f"event {event}"
        words.append(f"undo {name}" if event in conflict.corrections else f"change {name}")
    return ", ".join(words)


def _give_way(session: Session, conflict: Conflict, event: int, annotator: str) -> None:
    """Change an answer of a conflict, or undo one of its corrections."""
    if event in conflict.corrections:
        session.resolve(conflict, "withdraw", correction=event, annotator=annotator)
    else:
        session.resolve(conflict, "change", answer_id=event, annotator=annotator)
