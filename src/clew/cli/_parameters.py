"""Constructor parameters of a method as flags, read from its signature: `--max-iter 50`, `--no-entailed`."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.exceptions import ParameterError

# Words on the command line that stand for Python values.
_WORDS: Mapping[str, Any] = {"none": None, "true": True, "false": False}


def signature_of(estimator: Any) -> dict[str, Any]:
    """Return the constructor parameters of an estimator with their defaults, if a shell can give them a value."""
    parameters = inspect.signature(estimator).parameters.values()
    allowed = estimator._parameters
    return {one.name: one.default for one in parameters if allowed[one.name].in_shell}


def flag_of(name: str) -> str:
    """Return the flag of a parameter: `--max-iter` for `max_iter`."""
    return f"--{name.replace('_', '-')}"


def split_arguments(
    arguments: Sequence[str], method: str, defaults: Mapping[str, Any], own_flags: Iterable[str]
) -> tuple[list[str], dict[str, Any]]:
    """Split the remaining words of a command line into plain arguments and parameters of the method.

    Parameters
    ----------
    arguments : words in the order they were typed, without the flags of the command itself
    method : name of the method, for messages
    defaults : its parameters with their defaults; a parameter with a boolean default is a flag without a value
    own_flags : the flags of the command, for suggestions
    """
    flags = {flag_of(name): name for name in defaults}
    switches = {name for name, default in defaults.items() if isinstance(default, bool)}
    negations = {flag_of(f"no_{name}"): name for name in switches}
    words: list[str] = []
    values: dict[str, Any] = {}
    rest = iter(arguments)
    for argument in rest:
        flag, has_value, value = argument.partition("=")
        if not argument.startswith("-") or argument == "-":
            words.append(argument)
        elif flag in negations and not has_value:
            values[negations[flag]] = False
        elif flag not in flags:
            raise ParameterError(_unknown_flag(flag, method, [*flags, *negations], own_flags))
        elif flags[flag] in switches and not has_value:
            values[flags[flag]] = True
        else:
            if not has_value:
                value = next(rest, "")
            if not value or value.startswith("--"):
                raise ParameterError(f"{flag} of {method} needs a value: {flag} VALUE.")
            values[flags[flag]] = parse_value(value)
    return words, values


def parse_value(text: str) -> Any:
    """Parse a word as a number, none, true, false or a list a,b,c; any other word stays text."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if "," in text:
        return [parse_value(part) for part in text.split(",")]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _unknown_flag(flag: str, method: str, flags: Sequence[str], own_flags: Iterable[str]) -> str:
    close = difflib.get_close_matches(flag, [*flags, *own_flags], n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    takes = f"{method} takes {', '.join(flags)}."
    return f"{flag} is neither a flag of this command nor a parameter of {method}.{hint} {takes}"
