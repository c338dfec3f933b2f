"""Settings of a session, and validation of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from clew._registry import by_method_name, find_method
from clew._validation import ERROR_RATE, NONE, check_parameters, integer, number, words
from clew.active._questions import MOST_CHECKS
from clew.exceptions import ParameterError
from clew.session._strategies import strategy_setting

# Settings that change the encoding of rows as vectors.
ENCODING = ("columns", "scale", "text")
# Settings that change the clusters. After such a change all clusters are fitted again, even corrected ones.
MAKING = ("n_clusters", "groups", "method", "metric", *ENCODING)
# Settings that `Session.set` can change.
SETTABLE = (
    "n_clusters", "groups", "method", "strategy", "overlap", "lease_seconds", "check_share", "error_rate",
    "random_state", "metric", *ENCODING,
)  # fmt: skip
SCALES = ("auto", "standard", "minmax", "robust", "none")
GROUPS = ("auto", "large", "small")
METRICS = ("auto", "euclidean", "cosine")
TEXTS = ("auto", "tfidf", "embeddings", "none")
_ALLOWED = {
    "n_clusters": integer(1) | NONE,
    "groups": words(*GROUPS) | NONE,
    "overlap": integer(1),
    "lease_seconds": number(0),
    "check_share": number(0, MOST_CHECKS) | NONE,
    "error_rate": ERROR_RATE | NONE,
    "random_state": integer(0),
    "metric": words(*METRICS),
    "scale": words(*SCALES),
    "text": words(*TEXTS),
}


class _Given:
    def __init__(self, values: dict[str, Any]) -> None:
        vars(self).update(values)


_Given.__name__ = "Session"  # the name in error messages


def checked(values: dict[str, Any]) -> dict[str, Any]:
    """Validate settings and convert them for the log. Raises if one is out of range."""
    unknown = [name for name in values if name not in SETTABLE]
    if unknown or not values:
        raise ParameterError(f"set: expected some of {', '.join(SETTABLE)}, got {', '.join(values) or 'none'}.")
    check_parameters(_Given(values), {name: allowed for name, allowed in _ALLOWED.items() if name in values})
    if values.get("method") is not None:
        name = find_method(str(values["method"]), "clusterer")
        kind = by_method_name("clusterer")[name]
        can = kind._capabilities
        if not can.vectors:
            taken = "counts" if can.counts else "a square matrix"
            raise ParameterError(f'"{name}" clusters {taken}, but a session clusters vectors. Choose another method.')
        if not kind._is_installed():
            raise ParameterError(f"\"{name}\" needs an extra that is missing: pip install 'clew[{can.extra}]'.")
        values = values | {"method": name}
    if values.get("columns") is not None:
        values = values | {"columns": _column_names(values["columns"])}
    if "strategy" in values:
        values = values | {"strategy": strategy_setting(values["strategy"])}
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}


def offered_methods(kinds: Iterable[str]) -> list[str]:
    """Names of the clusterers of vectors that suit columns of these kinds: networks are for images and texts."""
    for_network = any(kind in ("image", "text", "vector") for kind in kinds)
    return [
        name
        for name, cls in by_method_name("clusterer").items()
        if cls._capabilities.vectors and cls._is_installed() and (for_network or not cls._capabilities.embeds)
    ]


def check_groups(settings: dict[str, Any]) -> None:
    """Refuse a number of clusters together with small groups, whose number follows from the answers."""
    if settings.get("groups") == "small" and settings["n_clusters"] is not None:
        raise ParameterError(
            f'groups="small" and n_clusters={settings["n_clusters"]}: the number of small groups follows from the '
            "answers. Leave out one of them."
        )


def _column_names(columns: Any) -> list[str]:
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise ParameterError(f"columns={columns!r}: expected a list of names, or None for all that can be used.")
    return [str(name) for name in columns]


def check_word(name: str, value: Any, known: Sequence[str]) -> None:
    """Raise if a value is not one of the known words."""
    if value not in known:
        raise ParameterError(f"{name}={value!r}: expected {', '.join(map(repr, known[:-1]))} or {known[-1]!r}.")


def check_confidence(confidence: Any) -> float:
    """Validate a confidence: a number in (0, 1]."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float | np.number) or not 0 < confidence <= 1:
        raise ParameterError(f"confidence={confidence!r}: expected a number in (0, 1].")
    return float(confidence)


def check_name(annotator: Any) -> str:
    """Validate the name of an annotator."""
    if not _is_text(annotator) or not annotator.strip() or len(annotator) > 200:
        raise ParameterError(f"annotator={annotator!r}: expected a name of 1 to 200 characters.")
    return annotator


def check_text(name: str, value: Any) -> str | None:
    """Validate a text, or None."""
    if value is None:
        return None
    if not _is_text(value):
        raise ParameterError(f"{name}={value!r}: expected text.")
    return str(value)


def _is_text(value: Any) -> bool:
    """Whether every database can store the text: no NUL character, and no half of a surrogate pair."""
    return isinstance(value, str) and "\0" not in value and _is_utf8(value)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_seconds(seconds: Any) -> float | None:
    """Validate a number of seconds, or None."""
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
    """Validate a cluster id."""
    if isinstance(cluster, bool) or not isinstance(cluster, int | np.integer):
        raise ParameterError(f"{cluster!r} is not a cluster id: expected an integer.")
    return int(cluster)


def utc(seconds: float) -> str:
    """Format a time in seconds since 1970 for the log, as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
