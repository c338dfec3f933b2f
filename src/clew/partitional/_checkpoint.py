"""Stop a fit between two rounds, and continue it later with the same result.

Fits inside `checkpointed` can be asked to stop. At the end of the current round, the state of the rounds is then
written to a file, and `FitStopped` is raised. A later fit with the same data and parameters replays the random draws
and the starts before the interrupted one, and continues with the next round.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from clew._tables import replacing
from clew.exceptions import FileError

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
    """The file of the state, a description of the fit, and whether a stop was requested."""

    def __init__(self, path: str | Path, about: dict[str, Any]) -> None:
        self.path, self.about = Path(path), json.loads(json.dumps(about, default=str))
        self.stop_requested = False
        self.rng: np.random.Generator | None = None
        self.resumed_rounds = 0
        self._n_runs = 0
        self._saved = self._read() if self.path.exists() else None

    def begin_run(self) -> SavedRound | None:
        """Count a run of the rounds; return the state to continue from, if this is the one that was interrupted."""
        self._n_runs += 1
        saved = self._saved
        if saved is None or saved.run != self._n_runs - 1 or self.rng is None:
            return None
        self.rng.bit_generator.state = json.loads(saved.random)
        self.resumed_rounds = len(saved.history)
        return saved

    def round_done(self, state: dict[str, Any]) -> None:
        """Write the state and raise `FitStopped`, if a stop was requested."""
        if not self.stop_requested or self.rng is None:
            return
        arrays = {**state, "run": self._n_runs - 1, "random": json.dumps(self.rng.bit_generator.state)}
        with replacing(self.path) as temporary, open(temporary, "wb") as file:
            np.savez(file, about=json.dumps(self.about), **arrays)
        raise FitStopped(self.path, len(state["history"]))

    def _read(self) -> SavedRound:
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                about = json.loads(str(stored["about"]))
                arrays = {name: stored[name] for name in SavedRound._fields}
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise FileError(f"{self.path} is not a checkpoint of a fit ({error}). Delete it to start again.") from None
        for name in {**about, **self.about}:
            if about.get(name) != self.about.get(name):
                raise FileError(
                    f"{self.path} is a checkpoint of another fit: {name} was {about.get(name)}, and is "
                    f"{self.about.get(name)}. Delete it to start again, or repeat that command."
                )
        return SavedRound(**{**arrays, "run": int(arrays["run"]), "random": str(arrays["random"])})


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
