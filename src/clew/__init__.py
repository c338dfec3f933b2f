"""clew: clustering with constraints that people give.

Public names resolve on first use, so that importing clew is fast and loads no optional part. An estimator is listed in
one place, the `__all__` of its family. This module, the registry, the shell and the docs read it from there.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from clew._version import __version__ as __version__

if TYPE_CHECKING:
    from clew._registry import load as load
    from clew.alternative import *  # noqa: F403
    from clew.constraints import Constraints as Constraints
    from clew.deep import *  # noqa: F403
    from clew.density import *  # noqa: F403
    from clew.graph import *  # noqa: F403
    from clew.graph._cluster_edges import cluster_edges as cluster_edges
    from clew.hierarchical import *  # noqa: F403
    from clew.matching import *  # noqa: F403
    from clew.medoids import *  # noqa: F403
    from clew.metric import *  # noqa: F403
    from clew.metric._metric_learn_adapter import MetricLearnAdapter as MetricLearnAdapter
    from clew.mixture import *  # noqa: F403
    from clew.partitional import *  # noqa: F403
    from clew.session import Session as Session

_HOMES = {
    "Constraints": "constraints",
    "MetricLearnAdapter": "metric._metric_learn_adapter",
    "Session": "session",
    "cluster_edges": "graph._cluster_edges",
    "load": "_registry",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        value: Any = sorted([*_HOMES, "__version__", *_estimator_names()])
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"clew.{_HOMES[name]}"), name)
    elif name.startswith("_") or (family := _family_of(name)) is None:
        raise AttributeError(f"module 'clew' has no attribute {name!r}")
    else:
        value = getattr(family, name)
    globals()[name] = value
    return value


def _family_of(name: str) -> Any:
    """The first family that exports a name; later families are not imported."""
    from clew._families import families

    return next((family for family in families() if name in family.__all__), None)


def _estimator_names() -> list[str]:
    from clew._families import families

    return [name for family in families() for name in family.__all__]


def __dir__() -> list[str]:
    return list(__getattr__("__all__"))
