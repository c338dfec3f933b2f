"""Error messages and exit codes of the commands."""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

import typer
from rich.console import Console
from rich.text import Text

from clew.exceptions import (
    ClewError,
    ContradictoryConstraintsError,
    InfeasibleConstraintsError,
    MissingExtraError,
    WorkLimitError,
)

NO = 1
BAD_INPUT = 2
WORK_LIMIT = 3
BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

P = ParamSpec("P")

# Files that this command has finished writing, for the message after Ctrl-C.
written: list[Path] = []


def command(function: Callable[P, None]) -> Callable[P, None]:
    """Make a command report every error as one sentence and an exit code instead of a traceback."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        written.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = lambda message, *_args, **_kwargs: say("warning", str(message), "yellow")
            try:
                function(*args, **kwargs)
            except KeyboardInterrupt:
                done = f"written: {', '.join(map(str, written))}" if written else "nothing was written"
                say("stopped", done, "yellow", separator="; ")
                raise typer.Exit(INTERRUPTED) from None
            except (ContradictoryConstraintsError, InfeasibleConstraintsError) as error:
                raise _failure(error, NO) from None
            except WorkLimitError as error:
                raise _failure(error, WORK_LIMIT) from None
            except BrokenPipeError:
                # The reader closed the pipe. Without this, Python would fail again when it closes stdout.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(BROKEN_PIPE) from None
            except (ClewError, MissingExtraError, OSError) as error:
                raise _failure(error, BAD_INPUT) from None
            except MemoryError as error:
                say("error", f"Not enough memory. {error}".rstrip())
                raise typer.Exit(BAD_INPUT) from None
            except typer.Exit:
                raise
            except Exception as error:
                if os.environ.get("CLEW_DEBUG"):
                    raise
                what = " ".join(f"{type(error).__name__}: {error}".split())
                say(
                    "error",
                    f"This is a bug in clew ({what}). Please report the command; CLEW_DEBUG=1 shows more.",
                )
                raise typer.Exit(BUG) from None

    return guarded


def say(word: str, sentence: str, style: str = "bold red", separator: str = ": ") -> None:
    """Print one line on stderr, without wrapping, so that it can be searched for."""
    line = Text.assemble((word, style), separator, sentence)
    Console(stderr=True).print(line, soft_wrap=True, highlight=False)


def _failure(error: BaseException, code: int) -> typer.Exit:
    known = isinstance(error, OSError) and error.filename is not None and error.strerror
    say("error", f"{error.filename}: {error.strerror}." if known else str(error))  # type: ignore[attr-defined]
    return typer.Exit(code)
