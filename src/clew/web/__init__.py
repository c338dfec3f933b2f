"""A session over HTTP: routes for scripts, a page for people.

Needs the extra ``app``.
"""

from clew.web._app import create_app
from clew.web._serve import serve

__all__ = ["create_app", "serve"]
