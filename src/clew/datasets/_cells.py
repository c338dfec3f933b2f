"""Columns from Python values, as JSON, records and frames hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.exceptions import DataError


def columns_of(source: str, records: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """Columns from one object per row; a name that a row lacks is a missing value there."""
    names = dict.fromkeys(name for record in records for name in record)
    return {str(name): column_of(source, str(name), [record.get(name) for record in records]) for name in names}


def column_of(source: str, name: str, cells: list[Any]) -> NDArray[Any]:
    """One column from Python values: numbers, truth values, vectors, or else text."""
    known = [cell for cell in cells if not _is_missing(cell)]
    if known and all(isinstance(cell, bool | np.bool_) for cell in known):
        if len(known) == len(cells):
            return np.array(cells, dtype=bool)
    elif all(isinstance(cell, int | float | np.number) and not isinstance(cell, bool) for cell in known):
        if len(known) == len(cells) and all(isinstance(cell, int) and abs(cell) < 2**63 for cell in cells):
            return np.array(cells, dtype=np.int64)
        return np.array([np.nan if _is_missing(cell) else float(cell) for cell in cells])
    elif all(isinstance(cell, list | tuple | np.ndarray) for cell in known):
        return _vectors(source, name, cells)
    return np.array([_as_text(cell) for cell in cells], dtype=object)


def _vectors(source: str, name: str, cells: list[Any]) -> NDArray[Any]:
    lengths = [0 if _is_missing(cell) else len(cell) for cell in cells]
    odd = next((row for row, length in enumerate(lengths) if length != lengths[0] or not length), None)
    if odd is not None:
        raise DataError(
            f'Column "{name}" of {source} must hold lists of one length, but row {odd} has {lengths[odd]} numbers and '
            f"row 0 has {lengths[0]}."
        )
    try:
        return np.array([[np.nan if part is None else part for part in cell] for cell in cells], dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f'Column "{name}" of {source} holds lists that are not lists of numbers.') from None


def _as_text(cell: Any) -> str:
    if _is_missing(cell):
        return ""
    return json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, Mapping | list) else str(cell)


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float | np.floating) and bool(cell != cell))
