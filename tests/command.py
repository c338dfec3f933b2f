"""The `clew` command in this process."""

from __future__ import annotations

from functools import cache
from unittest import mock

from typer import testing
from typer.main import get_command

from clew.cli._app import app

# Typer builds the whole command anew at every call, which takes longer than most commands of the tests run.
_built = cache(get_command)


def type_in(*words, keys=None):
    """Run `clew` with these words; `keys` is what the person types at the prompts."""
    with mock.patch.object(testing, "_get_command", _built):
        return testing.CliRunner().invoke(app, [str(word) for word in words], prog_name="clew", input=keys)
