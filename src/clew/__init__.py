"""clew: clustering with what people know.

Public names resolve on first use, so that importing clew costs little and loads no optional part.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from clew._version import __version__

if TYPE_CHECKING:
    from clew._registry import load
    from clew.constraints import Constraints
    from clew.partitional import (
        CVQE,
        LCVQE,
        ConstrainedKMeans,
        COPKMeans,
        HMRFKMeans,
        IGKMeans,
        MPCKMeans,
        PCKMeans,
        SeededKMeans,
    )
    from clew.session import Session

_HOMES = {
    "COPKMeans": "partitional",
    "CVQE": "partitional",
    "ConstrainedKMeans": "partitional",
    "Constraints": "constraints",
    "HMRFKMeans": "partitional",
    "IGKMeans": "partitional",
    "LCVQE": "partitional",
    "MPCKMeans": "partitional",
    "PCKMeans": "partitional",
    "SeededKMeans": "partitional",
    "Session": "session",
    "load": "_registry",
}

__all__ = [
    "CVQE",
    "LCVQE",
    "COPKMeans",
    "ConstrainedKMeans",
    "Constraints",
    "HMRFKMeans",
    "IGKMeans",
    "MPCKMeans",
    "PCKMeans",
    "SeededKMeans",
    "Session",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'clew' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"clew.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
