"""The `clew` command: parse, call the public API, print.

Exit codes: 0 fine; 1 the answer is no (contradictory or infeasible); 2 bad input; 3 neither a solution nor a
proof within the work limit; 70 a bug in clew; 130 stopped with Ctrl-C.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the `clew` command on the arguments of the process."""
    try:
        from clew.cli._app import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "clew":
            raise
        sys.stderr.write("error: The clew command needs typer and rich: pip install 'clew[cli]'.\n")
        raise SystemExit(2) from None
    app()
