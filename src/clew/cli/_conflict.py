"""A contradiction as a dialogue: the chain that proves it, and what can be done."""

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

# Keys of the dialogue, each with what `Session.resolve` calls it.
_HOW = {"p": "soft", "u": "unsure", "space": "unsure"}


def changeable(conflict: Conflict) -> list[int]:
    """Give the answers of a conflict that can be changed, in the order of its chain."""
    events = [event for link in conflict.links for event in link.events if event in conflict.answers]
    return list(dict.fromkeys(events))


def chain_table(conflict: Conflict, *, numbered: bool) -> Table:
    """Give the steps of a conflict, those that can be changed with a number."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(style="bold", justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(style="dim", overflow="fold")
    order = changeable(conflict)
    for link in conflict.links:
        own = [event for event in link.events if event in order]
        numbers = " ".join(str(order.index(event) + 1) for event in own) if numbered else ""
        table.add_row(numbers or "•", Text(link_words(link)), Text(link.said_by))
    return table


def settle(session: Session, conflict: Conflict, keys: Keyboard, console: Console, annotator: str) -> bool:
    """Show a conflict and do what the person chooses; False if they leave it for later."""
    console.print(Text(conflict_heading(conflict), "bold red"))
    console.print(chain_table(conflict, numbered=True))
    order = changeable(conflict)
    withdrawn = "withdraw it" if conflict.kind == "correction" else "mark unsure"
    console.print(
        "[bold]1–9[/bold] change that answer   [bold]P[/bold] keep all as preferences   "
        f"[bold]Space[/bold] {withdrawn}   [bold]L[/bold] later"
    )
    while (key := keys.key()) not in (None, "l", "q", "later"):
        try:
            if key in _HOW:
                session.resolve(conflict, _HOW[key], annotator=annotator)
            elif key.isdecimal() and 0 < int(key) <= len(order):
                session.resolve(conflict, "change", answer_id=order[int(key) - 1], annotator=annotator)
            else:
                console.print("Press a number, P, Space or L.", style="yellow")
                continue
        except ClewError as error:
            console.print(Text(str(error), "yellow"))
            continue
        left = [one for one in session.conflicts() if one.id == conflict.id]
        console.print("Resolved." if not left else "Noted, but it still contradicts:", style="bold")
        return settle(session, left[0], keys, console, annotator) if left else True
    console.print("Left for later: it is kept, and not used until it is resolved.", style="dim")
    return False
