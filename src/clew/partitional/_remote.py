"""Open rows that are not in memory."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from clew.datasets import open_rows
from clew.datasets._stored import is_dask
from clew.partitional._geometry import chunks_of


def open_remote(X: Any) -> Any:
    """Open the rows. The result has a shape, a type, names of columns, and passes over the chunks."""
    if hasattr(X, "map_chunks"):
        return X
    if is_dask(X):
        # Imported by name, because the package is in a higher layer and extends this one.
        return import_module("clew.distributed").DaskRows.of(X)
    return open_rows(X)


def as_array(labels: Any, rows: Any = None) -> Any:
    """Labels as an array: of Dask if they, or their rows, are on other machines."""
    if hasattr(labels, "array"):
        return labels.array()
    return rows.aligned(labels) if hasattr(rows, "aligned") else labels


def predicted(model: Any, X: Any) -> Any:
    """Labels of rows outside memory by a fitted model's `predict`: a Dask array for Dask rows, else an array."""
    if is_dask(X):
        return import_module("clew.distributed").map_predict(model, X)
    rows = open_remote(X)
    try:
        return np.concatenate([model.predict(chunk.rows()) for chunk in chunks_of(rows)])
    finally:
        rows.close()
