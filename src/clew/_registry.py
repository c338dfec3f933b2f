"""Which estimators there are: read from the families, so that there is no second list."""

from __future__ import annotations

import importlib
import os
import re

from clew._base import ConstrainedClusterer
from clew._persistence import read_state
from clew.exceptions import FileError

FAMILIES = ("partitional", "graph")


def all_estimators() -> list[type[ConstrainedClusterer]]:
    """Every estimator class, family by family, each in the order of its family's `__all__`."""
    found = []
    for family in FAMILIES:
        module = importlib.import_module(f"clew.{family}")
        found += [getattr(module, name) for name in module.__all__]
    return found


def method_name(cls: type[ConstrainedClusterer]) -> str:
    """The class name in kebab case, as the shell has it: ``PCKMeans`` is ``pck-means``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__).lower()


def by_method_name() -> dict[str, type[ConstrainedClusterer]]:
    """Estimators by their name in the shell."""
    return {method_name(cls): cls for cls in all_estimators()}


def load(path: str | os.PathLike[str]) -> ConstrainedClusterer:
    """Read an estimator that `save` wrote. Arrays and JSON only: nothing in the file is executed."""
    name, params, learned = read_state(path)
    known = {cls.__name__: cls for cls in all_estimators()}
    if name not in known:
        raise FileError(f"{path} holds a {name!r}, which this version of clew does not have. Update clew.")
    try:
        estimator = known[name](**params)
    except TypeError:
        raise FileError(f"{path} holds parameters that {name} does not have. Update clew.") from None
    for attribute, value in learned.items():
        setattr(estimator, attribute, value)
    return estimator
