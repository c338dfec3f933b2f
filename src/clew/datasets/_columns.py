"""What a column is: a number, a category, a date, a text, a vector, images, or nothing to cluster by."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clew.datasets._as_table import IMAGES
from clew.datasets._read import MISSING

# Names under which tables keep their row ids; as a measurement they would drown the others.
ID_NAMES = frozenset({"id", "ids", "index", "key", "row", "uid", "uuid", "guid", "unique_id"})
_ID_ENDING = re.compile(r"(?:[_\-.\s](?:id|uid|uuid|guid|key)|[a-z]I[dD])$")
# "A-017", "ticket 12", "9f3c…": a running number or a hash, not something two rows could share.
_NUMBERED = re.compile(r"^(\D{0,20})\d+$")
_HASH = re.compile(r"^(?=.*\d)[0-9a-f]{8,}(?:-?[0-9a-f]+)*$", re.IGNORECASE)

# Up to so many different values are categories, if rows share them: more would be one dimension each.
MOST_CATEGORIES = 30

# Tried in turn, whole columns at a time; which of the two with slashes it was is said in the description.
_DATES = ("iso", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M",
          "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M")  # fmt: skip


# Signs around a number, and the ways to group its digits: which sign groups, and which is the decimal point.
_SIGNS = re.compile(r"^[€$£¥]\s*|\s*[€$£¥%]$")
_NUMBERS = (
    (re.compile(r"^[+-]?\d+(?:\.\d+)?$"), "_", ".", ""),
    (re.compile(r"^[+-]?\d{1,3}(?:,\d{3})*(?:\.\d+)?$"), ",", ".", "a comma groups thousands"),
    (re.compile(r"^[+-]?\d{1,3}(?:\.\d{3})*(?:,\d+)?$"), ".", ",", "decimal comma"),
    (re.compile(r"^[+-]?\d+(?:,\d+)?$"), ".", ",", "decimal comma"),
)


@dataclass(frozen=True)
class Column:
    """A column as it is understood.

    Attributes
    ----------
    name : str
    kind : str
        "number", "category", "date", "text", "vector", "image" or "left out".
    values : array
        Floats with NaN for numbers and dates; text with "" for categories, texts and images; 2-D for vectors.
    note : str
        How a number or a date is written, where it is not the usual way; why it is left out.
    """

    name: str
    kind: str
    values: Any
    note: str = ""


def understood(name: str, values: Any, *, chosen: bool) -> Column:
    """Decide what a column is; one that the user chose is not taken for ids."""
    if sparse.issparse(values) or values.ndim == 2:
        return Column(name, "vector", values)
    if values.dtype == bool:
        values = np.where(values, "yes", "no").astype(object)
    if values.dtype != object:
        return _numeric(name, np.asarray(values), chosen)
    cells = [cell.strip() for cell in values.tolist()]
    cells = ["" if cell.lower() in MISSING else cell for cell in cells]
    known = [cell for cell in cells if cell]
    distinct = set(known)
    if not known:
        return Column(name, "left out", values, "it has no values")
    if len(distinct) == 1:
        return Column(name, "left out", values, "it has one value only")
    text = np.array(cells, dtype=object)
    if all(cell.lower().endswith(IMAGES) for cell in known):
        return Column(name, "image", text)
    vectors = _json_vectors(cells) if known[0].startswith("[") else None
    if vectors is not None:
        return Column(name, "vector", vectors)
    for kind, found in (("number", _written_numbers(cells, known)), ("date", _dates(cells, known))):
        if found is not None:
            return Column(name, kind, *found)
    if not chosen and len(distinct) == len(cells) and _names_rows(name, known):
        return Column(name, "left out", values, "it names the rows")
    if len(distinct) <= MOST_CATEGORIES and 2 * len(distinct) <= len(known):
        return Column(name, "category", text)
    return Column(name, "text", text)


def is_id_name(name: str) -> bool:
    """Whether a column of this name usually holds ids."""
    return name.lower() in ID_NAMES or _ID_ENDING.search(name) is not None


def _numeric(name: str, values: NDArray[Any], chosen: bool) -> Column:
    numbers = values.astype(np.float64)
    known = numbers[~np.isnan(numbers)]
    if not known.size:
        return Column(name, "left out", numbers, "it has no values")
    if (known == known[0]).all():
        return Column(name, "left out", numbers, "it has one value only")
    if not chosen and is_id_name(name) and len(known) == len(numbers) == len(np.unique(values)):
        return Column(name, "left out", values, "it names the rows")
    return Column(name, "number", numbers)


def _names_rows(name: str, known: list[str]) -> bool:
    if is_id_name(name):
        return not any(" " in cell for cell in known)
    if all(_HASH.match(cell) for cell in known):
        return True
    prefixes = {match[1] if (match := _NUMBERED.match(cell)) else None for cell in known}
    return len(prefixes) == 1 and None not in prefixes


def _json_vectors(cells: list[str]) -> NDArray[np.float64] | None:
    """The numbers in cells such as ``[0.1, 0.2]``; None if some cell is something else."""
    try:
        vectors = np.array([json.loads(cell) for cell in cells], dtype=np.float64)
    except (ValueError, TypeError):
        return None
    return vectors if vectors.ndim == 2 else None


def _written_numbers(cells: list[str], known: list[str]) -> tuple[NDArray[np.float64], str] | None:
    """Numbers as people write them: 1.234,5 or 1,234.5, with a currency or a percent sign; None for other cells."""
    plain = {cell: _SIGNS.sub("", cell).replace("−", "-") for cell in known}
    for pattern, grouping, point, note in _NUMBERS:
        if all(pattern.match(text) for text in plain.values()):
            numbers = {cell: float(text.replace(grouping, "").replace(point, ".")) for cell, text in plain.items()}
            return np.array([numbers.get(cell, np.nan) for cell in cells]), note
    return None


def _dates(cells: list[str], known: list[str]) -> tuple[NDArray[np.float64], str] | None:
    for form in _DATES:
        # A few cells first: most columns are no dates, and parsing is slow.
        if all(_seconds(cell, form) is not None for cell in known[:20]):
            seconds = [_seconds(cell, form) if cell else np.nan for cell in cells]
            if None not in seconds:
                return np.array(seconds, dtype=np.float64), "" if form == "iso" else form
    return None


def _seconds(cell: str, form: str) -> float | None:
    """Seconds since 1970 in UTC; None if the cell is no date of this form."""
    try:
        if form != "iso":
            moment = datetime.strptime(cell, form)
        elif len(cell) >= 8 and cell[4:5] == "-":
            moment = datetime.fromisoformat(cell)
        else:
            return None
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
