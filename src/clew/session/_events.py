"""Events of the log. Events are appended and never changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

# Kinds of events that `undo` can take back.
UNDOABLE = frozenset(
    {"answer", "import", "revise", "confirm", "resolve", "correction", "name", "setting", "rows_added", "grouping"}
)
# Kinds of events that add no constraint and no row.
SILENT = frozenset({"fit", "name", "confirm", "grouping"})


@dataclass(frozen=True)
class Event:
    """One entry of the log.

    Attributes
    ----------
    seq : int
        Number of the event in the project, from 1 on without gaps.
    kind : str
        create, rows_added, answer, revise, confirm, undo, import, resolve, correction, setting, name, grouping or fit.
    time : str
        UTC, as ISO 8601.
    annotator : str
    payload : dict
        Details of the event, with the user's row ids.
    body : bytes or None
        Arrays of the event: row ids and hashes, or labels.
    """

    seq: int
    kind: str
    time: str
    annotator: str
    payload: dict[str, Any]
    body: bytes | None = field(default=None, repr=False)


def to_json(value: Any) -> str:
    """Serialise a value as JSON for the log. NumPy scalars become plain numbers."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=plain)


def plain(value: Any) -> Any:
    """Convert a NumPy scalar into a value that JSON can hold."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
