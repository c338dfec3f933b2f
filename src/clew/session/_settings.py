"""Settings of a session and the small checks of what people give."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from clew._validation import NONE, check_parameters, integer, number, words
from clew.exceptions import ParameterError
from clew.session._clustering import check_method
from clew.session._strategies import strategy_setting

# What decides how rows become vectors.
ENCODING = ("columns", "scale", "text")
# What can be changed while a project lives.
SETTABLE = (
    "n_clusters", "method", "strategy", "overlap", "lease_seconds", "check_share", "random_state", "metric", *ENCODING,
)  # fmt: skip
SCALES = ("auto", "standard", "minmax", "robust", "none")
TEXTS = ("auto", "tfidf", "embeddings", "none")
_ALLOWED = {
    "n_clusters": integer(1) | NONE,
    "overlap": integer(1),
    "lease_seconds": number(0),
    "check_share": number(0, 0.05),
    "random_state": integer(0),
    "metric": words("euclidean", "cosine"),
    "scale": words(*SCALES),
    "text": words(*TEXTS),
}


class _Given:
    def __init__(self, values: dict[str, Any]) -> None:
        vars(self).update(values)


_Given.__name__ = "Session"  # as errors name it


def checked(values: dict[str, Any]) -> dict[str, Any]:
    """Settings as the log holds them; refused where one is out of range."""
    unknown = [name for name in values if name not in SETTABLE]
    if unknown or not values:
        raise ParameterError(f"set: expected some of {', '.join(SETTABLE)}, got {', '.join(values) or 'none'}.")
    check_parameters(_Given(values), {name: allowed for name, allowed in _ALLOWED.items() if name in values})
    check_method(values.get("method"))
    if values.get("columns") is not None:
        values = values | {"columns": _column_names(values["columns"])}
    if "strategy" in values:
        values = values | {"strategy": strategy_setting(values["strategy"])}
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}


def _column_names(columns: Any) -> list[str]:
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise ParameterError(f"columns={columns!r}: expected a list of names, or None for all that can be used.")
    return [str(name) for name in columns]


def check_word(name: str, value: Any, known: Sequence[str]) -> None:
    """Refuse anything but one of some words."""
    if value not in known:
        raise ParameterError(f"{name}={value!r}: expected {', '.join(map(repr, known[:-1]))} or {known[-1]!r}.")


def check_confidence(confidence: Any) -> float:
    """A number in (0, 1]."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float | np.number) or not 0 < confidence <= 1:
        raise ParameterError(f"confidence={confidence!r}: expected a number in (0, 1].")
    return float(confidence)


def check_name(annotator: Any) -> str:
    """The name of a person."""
    if not isinstance(annotator, str) or not annotator.strip() or len(annotator) > 200 or "\0" in annotator:
        raise ParameterError(f"annotator={annotator!r}: expected a name of 1 to 200 characters.")
    return annotator


def check_text(name: str, value: Any) -> str | None:
    """A text, or None."""
    if value is None:
        return None
    if not isinstance(value, str) or "\0" in value:
        raise ParameterError(f"{name}={value!r}: expected text.")
    return value


def check_seconds(seconds: Any) -> float | None:
    """A time, or None."""
    if seconds is None:
        return None
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float | np.number)
        or not 0 <= float(seconds) < np.inf
    ):
        raise ParameterError(f"seconds={seconds!r}: expected a number >= 0.")
    return float(seconds)


def check_cluster(cluster: Any) -> int:
    """A cluster id."""
    if isinstance(cluster, bool) or not isinstance(cluster, int | np.integer):
        raise ParameterError(f"{cluster!r} is no cluster id: expected an integer.")
    return int(cluster)


def utc(seconds: float) -> str:
    """A moment as the log holds it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
