"""The `clew` command: parse, call the public API, print.

Exit codes: 0 fine; 1 the answer is no (contradictory or infeasible); 2 bad input; 3 neither a solution nor a
proof within the work limit; 70 a bug in clew; 130 stopped with Ctrl-C.
"""

import sys
from collections.abc import Callable

__all__ = ["main"]


def main() -> None:
    """Run the `clew` command on the arguments of the process."""
    try:
        _load()()
    except KeyboardInterrupt:  # while modules load; commands say themselves what they have written
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
