"""Stop a fit between two rounds, and continue it later with the same result.

Fits inside `checkpointed` can be asked to stop. At the end of the current round, the state of the rounds is then
written to a file, and `FitStopped` is raised. The state is also written once a minute, for fits that are killed. A
later fit with the same data and parameters replays the random draws and the starts before the interrupted one, and
continues with the next round. A fit that is complete can be kept in the same file until its results are written.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from clew._tables import replacing
from clew.exceptions import ClewWarning, FileError

# Start of the names of learned attributes in the file of a complete fit.
_LEARNED = "learned."
# Seconds between two states that are written without a request. Writing 20 million labels takes about 0.1 s.
_EVERY = 60.0
_current: ContextVar[Checkpoint | None] = ContextVar("checkpoint", default=None)


class FitStopped(Exception):  # noqa: N818  # a request that was met, not an error
    """The fit stopped after a round because of a request; the checkpoint holds its state."""

    def __init__(self, path: Path, n_rounds: int) -> None:
        super().__init__(f"{n_rounds} rounds are kept in {path}")
        self.path, self.n_rounds = path, n_rounds


class SavedRound(NamedTuple):
    """The state between two rounds, as arrays only, so that it can be stored without pickle."""

    run: int  # number of earlier runs of the rounds in this fit
    history: npt.NDArray[np.float64]
    rule: npt.NDArray[np.float64]  # number of rounds, last shift, whether it was small
    centers: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int32]
    unit_labels: npt.NDArray[np.int32]
    is_empty: npt.NDArray[np.bool_]
    sums: npt.NDArray[np.float64]
    errors: npt.NDArray[np.float64]
    masses: npt.NDArray[np.float64]
    random: str


class Checkpoint:
    """The file of the state, a description of the fit, and whether a stop was requested.

    The state is written when a stop was requested, and otherwise every `every` seconds.
    """

    def __init__(self, path: str | Path, about: dict[str, Any], every: float = _EVERY) -> None:
        self.path, self.about = Path(path), json.loads(json.dumps(about, default=str))
        self.stop_requested = False
        self.saved_rounds = 0
        """Number of rounds in the file, 0 if there is none or the fit is complete."""
        self._every, self._written = every, time.monotonic()
        self.rng: np.random.Generator | None = None
        self._n_runs = 0
        self._saved: SavedRound | None = None
        self._learned: dict[str, Any] = {}
        if self.path.exists():
            self._read()

    def restore(self, estimator: Any) -> bool:
        """Set what a complete fit has learned; return False if the file holds none."""
        for name, value in self._learned.items():
            setattr(estimator, name, value)
        return bool(self._learned)

    def keep(self, estimator: Any) -> None:
        """Write the numbers that a complete fit has learned."""
        learned = {name: np.asarray(value) for name, value in vars(estimator).items() if name.endswith("_")}
        self._write({f"{_LEARNED}{name}": value for name, value in learned.items() if value.dtype.kind in "biuf"})

    def begin_run(self) -> SavedRound | None:
        """Count a run of the rounds; return the state to continue from, if this is the one that was interrupted."""
        self._n_runs += 1
        saved = self._saved
        if saved is None or saved.run != self._n_runs - 1 or self.rng is None:
            return None
        self.rng.bit_generator.state = json.loads(saved.random)
        return saved

    def round_done(self, state: dict[str, Any]) -> None:
        """Write the state if it is time, or if a stop was requested: then also raise `FitStopped`."""
        is_time = time.monotonic() >= self._written + self._every
        if self.rng is None or not (self.stop_requested or is_time):
            return
        arrays = {**state, "run": self._n_runs - 1, "random": json.dumps(self.rng.bit_generator.state)}
        try:
            self._write(arrays)
            self.saved_rounds = len(state["history"])
        except FileError as error:
            if self.stop_requested:
                raise
            warnings.warn(f"{error} The fit goes on.", ClewWarning, stacklevel=2)
        self._written = time.monotonic()
        if self.stop_requested:
            raise FitStopped(self.path, self.saved_rounds)

    def _write(self, arrays: dict[str, Any]) -> None:
        with replacing(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, about=json.dumps(self.about), **arrays)

    def _read(self) -> None:
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                learned = {
                    name.removeprefix(_LEARNED): stored[name] for name in stored.files if name.startswith(_LEARNED)
                }
                arrays = {} if learned else {name: stored[name] for name in SavedRound._fields}
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise FileError(f"{self.path} is not a checkpoint of a fit ({error}). Delete it to start again.") from None
        for name in {**about, **self.about}:
            if about.get(name) != self.about.get(name):
                raise FileError(
                    f"{self.path} is a checkpoint of another fit: {name} was {about.get(name)}, and is "
                    f"{self.about.get(name)}. Delete it to start again, or repeat that command."
                )
        self._learned = {name: value if value.ndim else value.item() for name, value in learned.items()}
        if arrays:
            self._saved = SavedRound(**{**arrays, "run": int(arrays["run"]), "random": str(arrays["random"])})
            self.saved_rounds = len(self._saved.history)


def current_checkpoint() -> Checkpoint | None:
    """The checkpoint of the fit that is running, if it has one."""
    return _current.get()


@contextmanager
def checkpointed(checkpoint: Checkpoint) -> Iterator[Checkpoint]:
    """Let the fits inside the block stop at a checkpoint and continue from it."""
    token = _current.set(checkpoint)
    try:
        yield checkpoint
    finally:
        _current.reset(token)
