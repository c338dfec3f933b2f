"""Serve a session over HTTP: an API for scripts and a page for people.

Needs the extra ``app``.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.web._app import create_app as create_app
    from clew.web._serve import serve as serve

__all__ = ["create_app", "serve"]

# Resolved on first use, so that background processes do not import the server.
_HOMES = {"create_app": "_app", "serve": "_serve"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'clew.web' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"clew.web.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
