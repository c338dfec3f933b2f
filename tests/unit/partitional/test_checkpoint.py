"""A fit that stops between two rounds continues to the result that it would have had."""

from __future__ import annotations

import numpy as np
import pytest

from clew import ConstrainedKMeans, Constraints, COPKMeans, IGKMeans, PCKMeans, SeededKMeans
from clew.exceptions import ClewWarning, FileError
from clew.partitional._checkpoint import Checkpoint, FitStopped, checkpointed


class StopAfter(Checkpoint):
    """Asks to stop after some rounds."""

    def __init__(self, path, about, n_rounds):
        super().__init__(path, about)
        self._left, self.has_resumed = n_rounds, False

    def begin_run(self):
        saved = super().begin_run()
        self.has_resumed |= saved is not None
        return saved

    def round_done(self, state):
        self._left -= 1
        self.stop_requested = self._left == 0
        super().round_done(state)


@pytest.mark.parametrize("method", [SeededKMeans, ConstrainedKMeans, COPKMeans, PCKMeans, IGKMeans])
@pytest.mark.parametrize("n_init", [1, 3])
def test_a_fit_that_stopped_twice_ends_like_one_that_did_not(tmp_path, method, n_init):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) + 2
    known = Constraints.sample(rng.integers(0, 4, 400), 60, balance=0.5, random_state=0)

    def model():
        return method(4, n_init=n_init, tol=0, random_state=0)

    expected = model().fit(X, constraints=known)
    path, n_stops = tmp_path / "checkpoint.npz", 0
    for n_rounds in (2, 3, 10**6):
        checkpoint = StopAfter(path, {"k": 4}, n_rounds)
        try:
            with checkpointed(checkpoint):
                found = model().fit(X, constraints=known)
        except FitStopped:
            n_stops += 1
    assert n_stops == 2
    assert checkpoint.has_resumed
    assert (found.labels_ == expected.labels_).all()
    assert (found.cluster_centers_ == expected.cluster_centers_).all()
    assert found.objective_history_.tolist() == expected.objective_history_.tolist()
    assert found.n_iter_ == expected.n_iter_
    with pytest.raises(FileError, match="checkpoint of another fit: k was 4, and is 5"):
        Checkpoint(path, {"k": 5})
    path.write_text("nonsense")
    with pytest.raises(FileError, match="is not a checkpoint"):
        Checkpoint(path, {"k": 4})


class KilledAfter(Checkpoint):
    """Writes every round, and ends the fit after some without asking."""

    def __init__(self, path, n_rounds):
        super().__init__(path, {}, every=0)
        self._left = n_rounds

    def round_done(self, state):
        super().round_done(state)
        self._left -= 1
        if self._left == 0:
            raise SystemError("killed")


def test_a_killed_fit_continues_after_the_last_state_that_was_written(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 3))

    def model():
        return PCKMeans(5, n_init=1, tol=0, random_state=0)

    expected = model().fit(X)
    for n_rounds in (3, 2):
        with pytest.raises(SystemError, match="killed"), checkpointed(KilledAfter(tmp_path / "state", n_rounds)):
            model().fit(X)
    checkpoint = Checkpoint(tmp_path / "state", {})
    assert checkpoint.saved_rounds == 5
    with checkpointed(checkpoint):
        found = model().fit(X)
    assert (found.labels_ == expected.labels_).all()
    assert found.objective_history_.tolist() == expected.objective_history_.tolist()


def test_a_state_that_cannot_be_written_does_not_end_the_fit_unless_a_stop_was_requested(tmp_path):
    X = np.random.default_rng(0).normal(size=(400, 3))
    model = PCKMeans(5, n_init=1, tol=0, random_state=0)
    checkpoint = Checkpoint(tmp_path / "missing" / "state", {}, every=0)
    goes_on = pytest.warns(ClewWarning, match=r"Cannot write .*missing does not exist.*The fit goes on")
    with goes_on, checkpointed(checkpoint):
        found = model.fit(X).labels_
    assert (found == PCKMeans(5, n_init=1, tol=0, random_state=0).fit(X).labels_).all()
    checkpoint = Checkpoint(tmp_path / "missing" / "state", {})
    checkpoint.stop_requested = True
    with pytest.raises(FileError, match="Cannot write"), checkpointed(checkpoint):
        model.fit(X)
