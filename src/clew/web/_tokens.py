"""Store the token of a project on this machine, and a file that opens the page without showing the token.

Both are files that only the user can read, in the folder for the state of programs. The token is not in the project,
because people send projects to each other.
"""

from __future__ import annotations

import contextlib
import html
import logging
import os
import sys
from pathlib import Path

from clew.web._security import LEAST_REMOTE_TOKEN, new_token

_LOGGER = logging.getLogger("clew.web")
_OPENING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>clew</title>
<meta http-equiv="refresh" content="0; url={address}">
<p><a href="{address}">Open clew</a></p>
</html>
"""


def state_folder() -> Path:
    """The user's folder for the state of programs: ``$XDG_STATE_HOME/clew`` or its equivalent."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "clew"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "clew"


def token_of(project: str, *, renew: bool = False) -> str:
    """The stored token of a project. It is made on first use, and replaced with `renew`.

    A token file that other users could read is replaced. If the file cannot be written, the token is valid for this run
    only.
    """
    path = state_folder() / "tokens" / project
    if not renew and (kept := _read_own(path)) is not None:
        return kept
    token = new_token()
    try:
        _write_own(path, token)
    except OSError as error:
        _LOGGER.warning(
            "Cannot write %s (%s): the token is valid for this run only. Open pages will ask for the next one. "
            "To keep one, pass --token.", path, error.strerror or error,
        )  # fmt: skip
    return token


def opening_file(address: str) -> Path:
    """Write a local page that redirects to an address. Only its path is on the command line of the browser."""
    path = _opening_path()
    _write_own(path, _OPENING.format(address=html.escape(address)))
    return path


def remove_opening_file() -> None:
    """Delete the local page when the server stops."""
    with contextlib.suppress(OSError):
        _opening_path().unlink(missing_ok=True)


def _opening_path() -> Path:
    return state_folder() / "open" / f"{os.getpid()}.html"


def _read_own(path: Path) -> str | None:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        token = path.read_text(encoding="ascii").strip()
        is_private = sys.platform == "win32" or (path.stat().st_mode & 0o077 == 0 and path.stat().st_uid == os.getuid())
        if is_private and len(token) >= LEAST_REMOTE_TOKEN:
            return token
    return None


def _write_own(path: Path, text: str) -> None:
    """Write a file that only the user can read, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(new, path)
