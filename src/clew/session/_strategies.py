"""Query strategies by name."""

from __future__ import annotations

import inspect
import re
from typing import Any

import clew.active
from clew.active import Auto, Questions, Strategy
from clew.exceptions import ParameterError

# After this many "different" answers of one annotator in a row another strategy takes over, because annotators tire of
# such questions.
ONE_SIDED = 20


def strategies() -> dict[str, type]:
    """Strategies by name: the class name in kebab case."""
    found = {}
    for name in clew.active.__all__:
        cls = getattr(clew.active, name)
        if inspect.isclass(cls) and cls is not Strategy and Strategy in cls.__mro__:
            found[_name(cls)] = cls
    return found


def _name(cls: type) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()


def default_strategy() -> str:
    """Name of the default strategy."""
    return _name(Auto)


def strategy_in(settings: dict[str, Any]) -> dict[str, Any]:
    """The strategy that settings choose, with its parameters."""
    return settings["strategy"] or usual_strategy(settings)


def usual_strategy(settings: dict[str, Any]) -> dict[str, Any]:
    """The default strategy, for groups of the size that settings expect."""
    return {"name": default_strategy(), "parameters": {"groups": settings.get("groups") or "auto"}}


def lasting_strategy(settings: dict[str, Any]) -> Strategy:
    """The strategy whose own clusterer makes the labels and whose model doubts answers.

    It is the chosen strategy, or the default. A temporary strategy, which only asks for a while, does neither.
    """
    chosen = settings["strategy"] or {"automatic": True}
    return made(usual_strategy(settings) if chosen.get("automatic") else chosen)


def has_small_groups(settings: dict[str, Any], driver: Questions) -> bool:
    """Whether there are very many groups of few rows: the user says so, or the default strategy has found out.

    Logs of earlier versions do not have the setting.
    """
    if settings.get("groups") == "small":
        return True
    return isinstance(driver.strategy, Auto) and driver.strategy.has_small_groups(driver.view)


def next_strategy(name: str) -> str:
    """Name of the strategy that takes over when answers are one-sided: the next of three in turn."""
    turns = ["auto", "super-instances", "ability-to-separate"]
    return turns[(turns.index(name) + 1) % len(turns)] if name in turns else turns[0]


def strategy_setting(strategy: Any) -> Any:
    """Convert a strategy for the log: None, a name, or a name with parameters."""
    if strategy is None:
        return None
    if isinstance(strategy, dict):
        made(strategy)
        return strategy
    if isinstance(strategy, str):
        made({"name": strategy, "parameters": {}})
        return {"name": strategy, "parameters": {}}
    names = {cls: name for name, cls in strategies().items()}
    if type(strategy) not in names:
        raise ParameterError(f"strategy={strategy!r}: expected one of {', '.join(strategies())}.")
    parameters = inspect.signature(type(strategy)).parameters
    return {"name": names[type(strategy)], "parameters": {name: getattr(strategy, name) for name in parameters}}


def made(setting: dict[str, Any]) -> Strategy:
    """Make the strategy that a setting describes."""
    known = strategies()
    if setting["name"] not in known:
        raise ParameterError(f"strategy={setting['name']!r}: expected one of {', '.join(known)}.")
    return known[setting["name"]](**setting["parameters"])
