"""Constraints that follow from distances: minimum separation and maximum diameter (survey, section 3.2.1)."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from clew.constraints._arrays import FloatArray, IntArray
from clew.exceptions import ConstraintError, DataError, ParameterError

# Number of distances in memory at a time: 32 megabytes.
_BLOCK_ENTRIES = 4_000_000


def pairs_closer_than(X: Any, delta: float, limit: int) -> IntArray:
    """All pairs at a distance strictly below `delta`."""
    points = _points(X, "delta", delta)
    tree = cKDTree(points)
    # The tree counts pairs without listing them. Its count includes each row with itself and both directions.
    count = (int(tree.count_neighbors(tree, np.nextafter(delta, 0))) - len(points)) // 2 if delta > 0 else 0
    _refuse(count, limit, f"closer than delta={delta:g}", "lower delta")
    pairs = tree.query_pairs(delta, output_type="ndarray").astype(np.int64)
    distances = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    return pairs[distances < delta]


def pairs_farther_than(X: Any, gamma: float, limit: int) -> IntArray:
    """All pairs at a distance above `gamma`."""
    points = _points(X, "gamma", gamma)
    tree = cKDTree(points)
    n = len(points)
    count = n * (n - 1) // 2 - (int(tree.count_neighbors(tree, gamma)) - n) // 2
    _refuse(count, limit, f"farther apart than gamma={gamma:g}", "raise gamma")
    found = [np.empty((0, 2), dtype=np.int64)]
    block = max(1, _BLOCK_ENTRIES // max(n, 1))
    for start in range(0, n, block):
        first, second = np.nonzero(cdist(points[start : start + block], points[start:]) > gamma)
        pairs = np.column_stack([first + start, second + start])
        found.append(pairs[pairs[:, 0] < pairs[:, 1]])
    return np.concatenate(found)


def _points(X: Any, name: str, value: Any) -> FloatArray:
    if not isinstance(value, Real) or not float(value) >= 0:
        raise ParameterError(f"{name}={value!r}: expected a distance >= 0.")
    return as_points(X)


def as_points(X: Any) -> FloatArray:
    """Validate a dense table of finite numbers."""
    try:
        points = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("X holds a value that is not a number. Encode it, or leave the column out.") from None
    if points.ndim != 2:
        raise DataError(f"X has shape {points.shape}: expected rows x columns.")
    if not np.isfinite(points).all():
        row, column = np.argwhere(~np.isfinite(points))[0].tolist()
        raise DataError(f"X contains {points[row, column]} at row {row}, column {column}. Fill it in, or drop the row.")
    return points


def _refuse(count: int, limit: int, what: str, remedy: str) -> None:
    if count > limit:
        raise ConstraintError(f"{count} pairs are {what}, more than limit={limit}. Raise limit, or {remedy}.")
