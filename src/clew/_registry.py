"""Find all estimators in the families, so that there is no second list."""

from __future__ import annotations

import difflib
import os
from typing import Any

from clew._base import ConstrainedEstimator, Role, all_estimators
from clew._persistence import State, read_state
from clew.exceptions import FileError, ParameterError


def method_name(cls: type[ConstrainedEstimator]) -> str:
    """The name of a method in the shell, which is the name of its file: ``COPKMeans`` is ``cop-kmeans``."""
    return cls.__module__.rpartition(".")[2].removeprefix("_").replace("_", "-")


def by_method_name(role: Role | None = None) -> dict[str, type[ConstrainedEstimator]]:
    """Estimators of a role, or of all roles, by their name in the shell."""
    return {method_name(cls): cls for cls in all_estimators(role)}


def find_method(name: str, role: Role | None = None) -> str:
    """The listed name of a method, given in any spelling: ``COPKMeans``, ``copk-means``, ``cop_kmeans``.

    Raises if the method has another role than `role`.
    """
    every, fitting = by_method_name(), list(by_method_name(role))
    found = next((known for known in every if _letters(known) == _letters(name)), None)
    if found is None:
        close = difflib.get_close_matches(name, fitting, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise ParameterError(f'There is no method "{name}".{hint} There are {", ".join(sorted(fitting))}.')
    if found not in fitting:
        has = every[found]._role
        choices = ", ".join(sorted(fitting))
        raise ParameterError(f"{found} is {_with_article(has)}, and {_with_article(role)} is needed: one of {choices}.")
    return found


def _with_article(role: Role | None) -> str:
    return f"an {role}" if role == "alternative clusterer" else f"a {role}"


def _letters(name: str) -> str:
    return name.replace("-", "").replace("_", "").casefold()


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save` wrote. Arrays and JSON only: nothing in the file is executed."""
    return _built(path, read_state(path))


def _built(path: str | os.PathLike[str], value: Any) -> Any:
    """Build estimators from their states, inner ones first; other values stay unchanged."""
    if isinstance(value, list):
        return [_built(path, one) for one in value]
    if not isinstance(value, State):
        return value
    known = {cls.__name__: cls for cls in all_estimators()}
    if value.name not in known:
        raise FileError(f"{path} holds a {value.name!r}, which this version of clew does not have. Update clew.")
    params, learned = (
        {name: _built(path, one) for name, one in part.items()} for part in (value.params, value.learned)
    )
    return known[value.name]._from_state(path, State(value.name, params, learned))
