"""Show a progress line on the terminal, updated from the log records of the solvers."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status
from rich.text import Text

_LOGGER = logging.getLogger("clew")
_BAR_WIDTH = 30


class _Rounds(logging.Handler):
    """Log handler that shows the iteration ("round") of each record."""

    def __init__(self, status: Status, what: str) -> None:
        super().__init__(level=logging.DEBUG)
        self._status = status
        self._what = what
        self._has_stages = False

    def emit(self, record: logging.LogRecord) -> None:
        """Update the progress line; ignore records without a round."""
        told = vars(record)
        if "rows_read" in told:
            self._status.update(Text(f"{self._what}: {_bar(told['rows_read'], told.get('n_rows'))}"))
            return
        self._has_stages |= "stage" in told
        if "round" not in told or (self._has_stages and "stage" not in told):
            return  # with stages, a round without a stage is that of another method, such as k-means in an embedding
        stage = f" {told['stage']}," if "stage" in told else ""
        line = f"{self._what}:{stage} round {told['round']}"
        if told.get("seconds_left") is not None:  # without the objective: the line has to fit in 80 columns
            line += f" of {told['max_iter']}, up to {duration(told['seconds_left'])} left"
        else:
            if told.get("max_iter") is not None:
                line += f" of at most {told['max_iter']}"
            if told.get("objective") is not None:
                line += f", objective {told['objective']:.6g}"
        self._status.update(Text(line))


def duration(seconds: float) -> str:
    """Give a time in the unit that people would use: seconds, minutes or hours."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def _bar(done: int, total: int | None) -> str:
    """A bar for rows that were read, with their number."""
    if not total:
        return f"{done:,} rows"
    share = min(done / total, 1.0)
    filled = round(share * _BAR_WIDTH)
    return f"{'━' * filled}{'╌' * (_BAR_WIDTH - filled)} {share:4.0%} of {total:,} rows"


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show `what` with the current round on stderr, if stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    level, propagate = _LOGGER.level, _LOGGER.propagate
    with Console(stderr=True).status(Text(what)) as status:
        handler = _Rounds(status, what)
        _LOGGER.addHandler(handler)
        _LOGGER.setLevel(logging.DEBUG)
        _LOGGER.propagate = False
        try:
            yield
        finally:
            _LOGGER.removeHandler(handler)
            _LOGGER.setLevel(level)
            _LOGGER.propagate = propagate
