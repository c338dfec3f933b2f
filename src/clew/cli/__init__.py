"""The `clew` command: parse, call the public API, print.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | the constraints contradict each other or are infeasible |
| 2 | bad input |
| 3 | neither a solution nor a proof of infeasibility within the work limit |
| 70 | a bug in clew |
| 130 | stopped with Ctrl-C |
"""

import sys
from collections.abc import Callable

__all__ = ["main"]


def main() -> None:
    """Run the `clew` command on the arguments of the process."""
    try:
        _load()()
    except KeyboardInterrupt:  # while modules load; later the command reports which files it has written
        sys.stderr.write("stopped; nothing was written\n")
        raise SystemExit(130) from None


def _load() -> Callable[[], None]:
    try:
        from clew.cli._app import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "clew":
            raise
        sys.stderr.write("error: The clew command needs typer and rich: pip install 'clew[cli]'.\n")
        raise SystemExit(2) from None
    return app
