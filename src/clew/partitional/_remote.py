"""Rows that are not in memory: which arguments of `fit` mean them, and how they are opened."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from clew.datasets import is_stored, open_rows


def is_remote(X: Any) -> bool:
    """Whether X names or holds rows outside memory: files, batches, or a Dask collection."""
    return is_stored(X) or _is_dask(X) or hasattr(X, "map_chunks")


def open_remote(X: Any) -> Any:
    """The rows, with a shape, a type, names of columns, and passes over their chunks."""
    if hasattr(X, "map_chunks"):
        return X
    if _is_dask(X):
        # By name: the package is in a layer above, and exists to plug into this one.
        return import_module("clew.distributed").DaskRows.of(X)
    return open_rows(X)


def _is_dask(X: Any) -> bool:
    return "dask" in sys.modules and hasattr(X, "__dask_graph__")
