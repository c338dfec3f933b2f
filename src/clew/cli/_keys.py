"""Read answers from the keyboard: single keys on a terminal, lines if the input is piped."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator
from typing import Protocol

# Escape sequences that a terminal sends for the arrow keys.
_SEQUENCES = {"\x1b[C": "right", "\x1bOC": "right", "\x1b[D": "left", "\x1bOD": "left"}
_NAMES = {" ": "space", "\x7f": "backspace", "\x08": "backspace", "\r": "enter", "\n": "enter"}
# Seconds to wait for the rest of an escape sequence after its first byte.
_SEQUENCE_WAIT = 0.05


class Keyboard(Protocol):
    """A source of answers: a terminal or piped input."""

    # Whether a person types, so that the duration of an answer is worth recording.
    is_live: bool

    def key(self) -> str | None:
        """Return the next key: a letter, "space", "enter", "backspace", "left", "right"; None at the end."""

    def line(self) -> str | None:
        """Return a line of text; None at the end."""


class Terminal:
    """Single keys from a terminal. Ctrl-C interrupts as usual."""

    is_live = True

    def __init__(self, file: int) -> None:
        self._file = file
        self._held = b""

    def key(self) -> str | None:
        """Return the next key; None after Ctrl-D or after the terminal was closed."""
        while True:
            text = self._character()
            if text in ("", "\x04"):
                return None
            if text == "\x1b":
                found = _SEQUENCES.get(text + self._rest_of_sequence())
                if found is None:
                    continue
                return found
            return _NAMES.get(text, text.casefold())

    def line(self) -> str | None:
        """Return a line of text, echoed while it is typed; None after Escape or Ctrl-D."""
        text = ""
        while (character := self._character()) not in ("\r", "\n"):
            if character in ("", "\x04", "\x1b"):
                if character == "\x1b":
                    self._rest_of_sequence()
                _echo("\n")
                return None
            if character in ("\x7f", "\x08"):
                _echo("\b \b" if text else "")
                text = text[:-1]
            elif character.isprintable():
                _echo(character)
                text += character
        _echo("\n")
        return text.strip()

    def _character(self) -> str:
        data = self._byte()
        while data:
            try:
                return data.decode()
            except UnicodeDecodeError:
                more = self._byte() if len(data) < 4 else b""
                if not more:
                    return "\N{REPLACEMENT CHARACTER}"
                data += more
        return ""

    def _byte(self) -> bytes:
        if not self._held:
            try:
                self._held = os.read(self._file, 1024)
            except OSError:  # the terminal was closed
                return b""
        byte, self._held = self._held[:1], self._held[1:]
        return byte

    def _rest_of_sequence(self) -> str:
        rest = ""
        while len(rest) < 2 and (self._held or select.select([self._file], [], [], _SEQUENCE_WAIT)[0]):
            byte = self._byte()
            if not byte:
                break
            rest += byte.decode(errors="replace")
        return rest


class Lines:
    """Keys and texts from piped input, one per line. Empty lines are skipped."""

    is_live = False

    def __init__(self) -> None:
        self._rest: str | None = None

    def key(self) -> str | None:
        """Return the first word of the next line; the rest of the line is stored for `line`."""
        for text in iter(sys.stdin.readline, ""):
            words = text.strip()
            if words or text.strip("\r\n"):
                first, _, rest = words.partition(" ")
                self._rest = rest.strip() or None
                return first.casefold() if first else "space"
        return None

    def line(self) -> str | None:
        """Return the rest of the last key's line, or the next line if that rest is empty."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return rest
        return sys.stdin.readline().strip() or None


@contextlib.contextmanager
def keyboard() -> Iterator[Keyboard]:
    """Read single keys from the terminal and restore its mode at the end; without a terminal, read lines."""
    try:
        import termios
        import tty
    except ImportError:  # Windows has no termios
        yield Lines()
        return
    if not sys.stdin.isatty():
        yield Lines()
        return
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    try:
        tty.setcbreak(file, termios.TCSADRAIN)  # keys typed ahead are kept
        yield Terminal(file)
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _echo(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
