"""What the log holds: events, appended and never changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

# What a person can take back with `undo`; the rest is bookkeeping.
UNDOABLE = frozenset({"answer", "import", "revise", "confirm", "resolve", "correction", "name", "setting"})
# What changes nothing about the rows.
SILENT = frozenset({"fit", "name", "confirm"})


@dataclass(frozen=True)
class Event:
    """One line of the log.

    Attributes
    ----------
    seq : int
        Its number in the project, from 1 on without gaps.
    kind : str
        create, rows_added, answer, revise, confirm, undo, import, resolve, correction, setting, name or fit.
    time : str
        UTC, as ISO 8601.
    annotator : str
    payload : dict
        What happened, in the user's ids.
    body : bytes or None
        Arrays that go with it: row ids and hashes, labels.
    """

    seq: int
    kind: str
    time: str
    annotator: str
    payload: dict[str, Any]
    body: bytes | None = field(default=None, repr=False)


def to_json(value: Any) -> str:
    """JSON as the log holds it; numpy scalars become plain numbers."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
