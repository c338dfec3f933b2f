"""Detect the kind of a column: number, category, date, text, vector, image, or not usable."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clew._words import counted
from clew.datasets._as_table import IMAGES
from clew.datasets._read import LEAST_CODE, MISSING
from clew.datasets._written import Written, written_dates, written_numbers
from clew.exceptions import DataError

# Why a column is left out.
NO_VALUE, ONE_VALUE, NAMES_ROWS = "it has no values", "it has one value only", "it names the rows"
# Common names of id columns. Clustering by ids would be meaningless. pandas writes an index as "Unnamed: 0".
ID_NAMES = frozenset({"id", "ids", "index", "key", "nr", "row", "uid", "uuid", "guid", "unique_id", "unnamed: 0"})
_ID_ENDING = re.compile(r"(?:[_\-.\s](?:id|uid|uuid|guid|key)|[a-z]I[dD])$")
# "A-017", "RE-2024-0012", "ticket 12", "9f3c…": serial numbers or hashes, which differ in all rows.
_DIGITS = re.compile(r"\d+")
_HASH = re.compile(r"^(?=.*\d)[0-9a-f]{8,}(?:-[0-9a-f]+)*$", re.IGNORECASE)

# Largest number of distinct values of a category, and smallest share of rows whose value occurs more than once.
MOST_CATEGORIES = 30

# Largest number of unreadable cells that a message names, and of letters of each.
MOST_NAMED, MOST_SHOWN = 3, 40

# Largest share of unreadable cells in a column of numbers or dates.
MOST_UNREADABLE = 0.1


@dataclass(frozen=True)
class Column:
    """A column and its detected kind.

    Attributes
    ----------
    name : str
    kind : str
        "number", "category", "date", "text", "vector", "image" or "left out".
    values : array
        Floats with NaN for numbers and dates; text with "" for categories, texts and images; 2-D for vectors.
    note : str
        How numbers or dates are written, if unusual; or why the column is left out.
    unreadable : dict of str to int
        Unreadable cells in a column of numbers or dates, with the number of rows of each. They count as missing.
    """

    name: str
    kind: str
    values: Any
    note: str = ""
    unreadable: Mapping[str, int] = field(default_factory=dict)

    @property
    def unreadable_words(self) -> str:
        """Describe the unreadable cells, most frequent first."""
        shown = [f'"{_shown(cell)}"' + (f" {n} times" if n > 1 else "") for cell, n in self.unreadable.items()]
        more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
        return ", ".join(shown[:MOST_NAMED]) + more


def understood(
    name: str, values: Any, *, chosen: bool, source: str = "the data", mixed_as_text: bool = False
) -> Column:
    """Detect the kind of a column. A column that the user chose is never treated as ids.

    A column of numbers or dates may have a few unreadable cells. If there are too many, the column is text with
    `mixed_as_text`; otherwise `DataError` is raised.
    """
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
        return Column(name, "left out", values, NO_VALUE)
    if len(distinct) == 1:
        return Column(name, "left out", values, ONE_VALUE)
    text = np.array(cells, dtype=object)
    if all(cell.lower().endswith(IMAGES) for cell in known):
        return Column(name, "image", text)
    vectors = _json_vectors(source, name, cells, known) if known[0].startswith("[") else None
    if vectors is not None:
        return Column(name, "vector", vectors)
    is_id = not chosen and len(distinct) == len(cells)
    written = {} if (is_id and is_id_name(name)) or _are_codes(known) else _written(cells)
    for kind, found in written.items():
        if found.share >= 1 - MOST_UNREADABLE:
            return _of_written(name, kind, found)
    if is_id and not written and _names_rows(name, known):
        return Column(name, "left out", values, NAMES_ROWS)
    spelled = _one_spelling(known)
    if len(set(spelled.values())) <= MOST_CATEGORIES and 2 * len(set(spelled.values())) <= len(known):
        return Column(name, "category", np.array([spelled.get(cell, "") for cell in cells], dtype=object))
    if written and not mixed_as_text:
        kind, found = next(iter(written.items()))
        _refuse(source, name, kind, cells, found)
    return Column(name, "text", text)


def _one_spelling(known: list[str]) -> dict[str, str]:
    """Replace each word by its most frequent spelling: yes for yes, Yes and YES."""
    spelled: dict[str, str] = {}
    for cell, _ in Counter(known).most_common():
        spelled.setdefault(cell.casefold(), cell)
    return {cell: spelled[cell.casefold()] for cell in set(known)}


def _written(cells: list[str]) -> dict[str, Written]:
    """Read the column as numbers and as dates; each is None if less than half of the cells can be read."""
    found = {"number": written_numbers(cells), "date": written_dates(cells)}
    return {kind: written for kind, written in found.items() if written is not None}


def _of_written(name: str, kind: str, written: Written) -> Column:
    known = written.values[~np.isnan(written.values)]
    if (known == known[0]).all():
        return Column(name, "left out", written.values, ONE_VALUE)
    unreadable = {**written.placeholders, **written.unreadable}
    return Column(name, kind, written.values, written.note, unreadable)


def is_id_name(name: str) -> bool:
    """Whether a column of this name usually holds ids."""
    return name.lower() in ID_NAMES or _ID_ENDING.search(name) is not None


def _numeric(name: str, values: NDArray[Any], chosen: bool) -> Column:
    numbers = values.astype(np.float64)
    known = numbers[~np.isnan(numbers)]
    if not known.size:
        return Column(name, "left out", numbers, NO_VALUE)
    if (known == known[0]).all():
        return Column(name, "left out", numbers, ONE_VALUE)
    if not chosen and is_id_name(name) and len(known) == len(numbers) == len(np.unique(values)):
        return Column(name, "left out", values, NAMES_ROWS)
    return Column(name, "number", numbers)


def _names_rows(name: str, known: list[str]) -> bool:
    if is_id_name(name):
        return not any(" " in cell for cell in known)
    if all(_HASH.match(cell) for cell in known):
        return True
    if not all(len(cell) <= MOST_SHOWN and any(sign.isdecimal() for sign in cell) for cell in known):
        return False
    shapes = {_DIGITS.sub("0", cell) for cell in known}
    lengths = {len(cell) for cell in known}
    return len(shapes) == 1 or (len(lengths) == 1 and not any(" " in cell for cell in known))


def _json_vectors(source: str, name: str, cells: list[str], known: list[str]) -> NDArray[np.float64] | None:
    """The numbers in cells such as ``[0.1, 0.2]``; None if less than half of the cells are lists of numbers."""
    vectors = [_json_vector(cell) for cell in cells]
    widths = Counter(len(vector) for vector in vectors if vector is not None)
    if not widths or 2 * sum(widths.values()) < len(known):
        return None
    width = widths.most_common(1)[0][0]
    for row, vector in enumerate(vectors):
        if vector is None or len(vector) != width:
            raise DataError(
                f'Column "{name}" of {source} holds lists of {counted(width, "number")}, but row {row} has '
                f'"{_shown(cells[row])}". Give each row such a list, or leave the column out.'
            )
    return np.array(vectors)


def _json_vector(cell: str) -> NDArray[np.float64] | None:
    if not cell.startswith("["):
        return None
    try:
        vector = np.array(json.loads(cell), dtype=np.float64)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    return vector if vector.ndim == 1 and vector.size else None


def _are_codes(known: list[str]) -> bool:
    """Whether whole numbers are codes, such as postcodes: all of the same length, some with leading zeros."""
    return (
        len(known[0]) >= LEAST_CODE
        and all(len(cell) == len(known[0]) and cell.isdecimal() for cell in known)
        and any(cell.startswith("0") for cell in known)
    )


def _refuse(source: str, name: str, kind: str, cells: list[str], written: Written) -> NoReturn:
    odd = next(iter(written.unreadable))
    n_odd = sum(written.unreadable.values())
    n_read = int((~np.isnan(written.values)).sum())
    raise DataError(
        f'Column "{name}" of {source} holds {counted(n_read, kind)}, but also {counted(n_odd, "other cell")}, such as '
        f'"{_shown(odd)}" in row {cells.index(odd)}. Leave such cells empty, or leave the column out (columns=[...], '
        "in the shell --columns a,b,c)."
    )


def _shown(cell: str) -> str:
    return cell if len(cell) <= MOST_SHOWN else f"{cell[: MOST_SHOWN - 1]}…"
