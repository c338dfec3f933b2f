"""The families of estimators: packages whose `__all__` lists one estimator class after another."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType

FAMILIES = (
    "partitional",
    "medoids",
    "hierarchical",
    "graph",
    "density",
    "mixture",
    "matching",
    "metric",
    "alternative",
    "deep",
)


def families() -> Iterator[ModuleType]:
    """Each family's package, imported when the iteration reaches it."""
    return (importlib.import_module(f"clew.{name}") for name in FAMILIES)
