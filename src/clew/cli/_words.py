"""Describe events, answers and conflicts in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.cli import _render
from clew.cli._cards import shown

if TYPE_CHECKING:
    from clew.session import Conflict, Event, Link


def event_words(event: Event) -> str:
    """Describe an event of the log."""
    told = event.payload
    if event.kind == "answer":
        return f"answer {event.seq}, {answer_words(told)}"
    if event.kind == "correction":
        return f"correction {event.seq}, a {told['kind']}"
    if event.kind == "import":
        return f"the import of {_render.counted(told['count'], 'answer')} from {shown(told['source'])}"
    if event.kind == "name":
        return f"the name {shown(told['name'])!r} of cluster {told['cluster']}"
    if event.kind == "setting":
        return "the setting " + ", ".join(f"{name}={value}" for name, value in told["settings"].items())
    if event.kind == "rows_added":
        return f"the addition of {_render.counted(len(told['ids']), 'row')}"
    if event.kind == "revise":
        return f"the change of answer {told['changes'][0]['answer_id']}"
    if event.kind == "confirm":
        return f"the confirmation of answer {told['changes'][0]['answer_id']}"
    return f"the resolution of conflict {told['conflict']}"


def answer_words(said: Any) -> str:
    """Describe an answer, given the payload of its event."""
    left, right, answer = shown(said["left"]), said.get("right"), said["answer"]
    if said.get("kind") == "which":
        among = ", ".join(map(shown, said["candidates"]))
        if answer == "same":
            return f"{left} belongs with {shown(right)}"
        return f"{left} belongs with none of {among}" if answer == "different" else f"unsure where {left} belongs"
    return f"{left} and {shown(right)}: {answer}"


def link_words(link: Link) -> str:
    """Describe one step of a conflict."""
    return f"{shown(link.left)} and {shown(link.right)} are {'the same' if link.answer == 'same' else link.answer}"


def conflict_heading(conflict: Conflict) -> str:
    """Return the heading of a conflict, by its kind."""
    if conflict.kind == "disagreement":
        return f"People disagree about {shown(conflict.chain[0])} and {shown(conflict.chain[1])}:"
    what = {"answer": f"Answer {conflict.id}", "correction": f"Correction {conflict.id}"}[conflict.kind]
    return f"{what} contradicts earlier answers or corrections:"
