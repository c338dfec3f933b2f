"""Build columns from Python values of JSON, records and frames."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.exceptions import DataError


def columns_of(source: str, records: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Build columns from one object per row; a field that a row lacks is a missing value."""
    names = dict.fromkeys(name for record in records for name in record)
    check_unicode(source, "the names of the columns", [str(name) for name in names])
    return {str(name): column_of(source, str(name), [record.get(name) for record in records]) for name in names}


def column_of(source: str, name: str, cells: list[Any]) -> NDArray[Any]:
    """Build a column from Python values: numbers, booleans, vectors, or else text."""
    known = [cell for cell in cells if not _is_missing(cell)]
    if known and all(isinstance(cell, bool | np.bool_) for cell in known):
        if len(known) == len(cells):
            return np.array(cells, dtype=bool)
    elif all(isinstance(cell, int | float | np.number) and not isinstance(cell, bool) for cell in known):
        if len(known) == len(cells) and all(isinstance(cell, int) and abs(cell) < 2**63 for cell in cells):
            return np.array(cells, dtype=np.int64)
        return _floats(source, name, cells)
    elif all(isinstance(cell, list | tuple | np.ndarray) for cell in known):
        return _vectors(source, name, cells)
    texts = [_as_text(cell) for cell in cells]
    check_unicode(source, f'column "{name}"', texts)
    return np.array(texts, dtype=object)


def check_unicode(source: str, where: str, texts: Sequence[str]) -> None:
    """Raise if a text has unpaired surrogates, which files and databases cannot store."""
    for row, text in enumerate(texts):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"{source}: {where} holds a text that is not Unicode (a lone surrogate) at {row}: {text[:40]!a}. "
                "Write the file again as UTF-8."
            ) from None


def _floats(source: str, name: str, cells: list[Any]) -> NDArray[np.float64]:
    try:
        return np.array([np.nan if _is_missing(cell) else float(cell) for cell in cells])
    except OverflowError:
        raise DataError(f'Column "{name}" of {source} holds a whole number too large for a float.') from None


def _vectors(source: str, name: str, cells: list[Any]) -> NDArray[Any]:
    lengths = [0 if _is_missing(cell) else len(cell) for cell in cells]
    if not any(lengths):
        raise DataError(f'Column "{name}" of {source} holds empty lists only. Leave the column out.')
    odd = next((row for row, length in enumerate(lengths) if length != lengths[0] or not length), None)
    if odd is not None:
        raise DataError(
            f'Column "{name}" of {source} must hold lists of one length, but row {odd} has {lengths[odd]} numbers and '
            f"row 0 has {lengths[0]}."
        )
    try:
        vectors = np.array([[np.nan if part is None else part for part in cell] for cell in cells], dtype=np.float64)
        if vectors.ndim != 2:
            raise ValueError
        return vectors
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f'Column "{name}" of {source} holds lists that are not lists of numbers. Write each list as '
            "numbers, or the whole cell as text."
        ) from None


def _as_text(cell: Any) -> str:
    if _is_missing(cell):
        return ""
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, Mapping | list) else str(cell)


def _is_missing(cell: Any) -> bool:
    return cell is None or cell is np.ma.masked or (isinstance(cell, float | np.floating) and bool(cell != cell))
