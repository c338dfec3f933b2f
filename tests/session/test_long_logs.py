"""What a call costs does not grow with the log: entries that the driver takes in again, and chains that are built."""

from __future__ import annotations

import gc
import shutil
from itertools import combinations

import numpy as np
import pytest

from clew import Session
from clew.active import _questions
from clew.exceptions import FileError
from clew.session import _conflicts
from tests.session.helpers import everything

N_ROWS, N_NAMED = 60, 40  # answers name the first rows; corrections are about the others
SIZES = (50, 300)
Y = np.arange(N_ROWS) % 4
X = 10.0 * Y[:, None] + np.arange(N_ROWS)[:, None] / 100


@pytest.fixture(scope="module", params=[None, 4], ids=["k unknown", "k given"])
def projects(request, tmp_path_factory):
    """Projects with few and with many answers."""
    paths = [tmp_path_factory.mktemp("projects") / f"{n_answers}.clew" for n_answers in SIZES]
    for path, n_answers in zip(paths, SIZES, strict=True):
        make(path, n_answers, request.param)
    return paths


def make(path, n_answers, n_clusters):
    """Answers that never compare the first two groups, so that these can be merged."""
    rng = np.random.default_rng(0)
    pairs = [(a, b) for a, b in combinations(range(N_NAMED), 2) if {Y[a], Y[b]} != {0, 1}]
    pairs = rng.permutation(pairs)[: n_answers + 3].tolist()
    said = [(a, b, "same" if Y[a] == Y[b] else "different") for a, b in pairs]
    with Session.create(path, X, n_clusters=n_clusters) as session:
        session.import_answers(said[:n_answers], annotator="ann")
        session.fit()
        for one in said[n_answers:]:
            session.import_answers([one], annotator="bob")


def cluster(session, row):
    return session.labels(refit=False)[row]


CALLS = {
    "undo": lambda s: s.undo(),
    "undo twice": lambda s: (s.undo(), s.undo()),
    "revise the last": lambda s: s.revise(s.answers()[-1].id, "unsure"),
    "confirm an early one": lambda s: s.confirm(s.answers()[0].id),
    "second opinion on an early one": lambda s: s.import_answers(
        [(s.answers()[0].left, s.answers()[0].right, s.answers()[0].answer)], annotator="cyd"
    ),
    "never": lambda s: s.never(rows=[0, 1]),
    "never, taken back": lambda s: (s.never(rows=[0, 1]), s.undo()),
    "never, clusters": lambda s: s.never(clusters=[cluster(s, 0), cluster(s, 1)]),
    "move": lambda s: s.move(59, cluster(s, 58)),
    "move out, taken back": lambda s: (s.move(59, None), s.undo()),
    "split": lambda s: s.split(cluster(s, 40), [40, 44]),
    "split, taken back": lambda s: (s.split(cluster(s, 40), [40, 44]), s.undo()),
    "split, previewed": lambda s: s.preview("split", cluster(s, 40), [40, 44]),
    "merge": lambda s: s.merge(cluster(s, 0), cluster(s, 1)),
    "merge, taken back": lambda s: (s.merge(cluster(s, 0), cluster(s, 1)), s.undo()),
    "merge that contradicts": lambda s: s.merge(cluster(s, 0), cluster(s, 2)),
    "name": lambda s: (s.name_cluster(cluster(s, 0), "x"), s.undo()),
    "ask, tell and progress": lambda s: (s.tell(s.ask(), "unsure"), s.progress()),
}
# A correction is tried, taken back and made; if it contradicts, it is tried once more.
MOST_TAKEN = 4


# Entries hold the vote of every person, so that a second one rewrites the log from its pair on.
REWRITES = {"second opinion on an early one"}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_in_a_bounded_number_of_entries_again(projects, tmp_path, monkeypatch, name):
    taken, plain = [], _questions._take
    monkeypatch.setattr(_questions, "_take", lambda view, entry: taken.append(entry) or plain(view, entry))
    for project, n_answers in zip(projects, SIZES, strict=True):
        path = shutil.copy(project, tmp_path)
        with Session.open(path) as session:
            assert len(taken) >= n_answers
            taken.clear()
            CALLS[name](session)
            assert len(taken) <= MOST_TAKEN + n_answers * (name in REWRITES)
            now = everything(session)
        if n_answers == min(SIZES):
            with Session.open(path) as again:
                assert everything(again) == now
        taken.clear()


def test_progress_counts_conflicts_without_their_chains(tmp_path, monkeypatch):
    with Session.create(tmp_path / "p.clew", X, overlap=2) as session:
        session.import_answers([(0, 4, "same"), (4, 8, "same"), (1, 5, "same"), (0, 1, "different")], annotator="ann")
        session.import_answers([(0, 8, "different"), (4, 5, "same")], annotator="bob")  # two contradictions
        session.import_answers([(1, 5, "different")], annotator="bob")  # and a disagreement
        session.fit()
        session.never(rows=[0, 4])
        expected = len(session.conflicts())
        assert expected >= 3
        monkeypatch.setattr(_conflicts.Conflicts, "of", lambda *_: pytest.fail("a chain was built"))
        assert session.progress().conflicts == expected


def test_answers_that_are_read_again_give_what_they_gave_one_by_one(tmp_path):
    """With opposite answers of two people, contradictions, unsure answers, and names that differ in case."""
    rng = np.random.default_rng(0)
    with Session.create(tmp_path / "one.clew", X, n_clusters=4) as session:
        for place in range(150):
            a, b = rng.choice(N_NAMED, 2, replace=False).tolist()
            says = rng.choice(["same" if Y[a] == Y[b] else "different", "unsure", "same"], p=[0.8, 0.1, 0.1])
            session.import_answers([(a, b, str(says))], annotator=("ann", "Ann", "bob")[place % 3])
        session.import_answers([(45, 49, "same")], annotator="ann")
        session.import_answers([(45, 49, "different")], annotator="bob")
        before, view = everything(session), session._state.known.driver.view
        assert session.conflicts() and view.n_disputed and view.n_contradictions
    with Session.open(tmp_path / "one.clew") as again:
        assert everything(again) == before
        other = again._state.known.driver.view
        assert other.annotators == view.annotators == ["ann", "bob"]
        for name in ("said", "placed", "named", "questioned"):
            assert np.array_equal(getattr(other, name), getattr(view, name))
        assert [one.rows.tolist() for one in other.neighbourhoods] == [one.rows.tolist() for one in view.neighbourhoods]
        for one, two in zip(other.answer_arrays, view.answer_arrays, strict=True):
            assert np.array_equal(one, two)


def test_garbage_is_collected_after_opening_as_before(tmp_path):
    Session.create(tmp_path / "toy.clew", X).close()
    for before in (True, False):
        (gc.enable if before else gc.disable)()
        try:
            with Session.open(tmp_path / "toy.clew"):
                assert gc.isenabled() == before
            with pytest.raises(FileError):
                Session.open(tmp_path / "toy.clew", tmp_path / "missing.csv")
            assert gc.isenabled() == before
        finally:
            gc.enable()


def test_what_was_read_is_old_for_the_garbage_collector_and_frozen_objects_stay_frozen(tmp_path):
    Session.create(tmp_path / "toy.clew", X).close()
    are_frozen = gc.get_freeze_count() > 0
    try:
        gc.unfreeze()
        with Session.open(tmp_path / "toy.clew") as session:
            assert gc.get_freeze_count() == 0
            assert any(one is session._state for one in gc.get_objects(generation=2))
        gc.freeze()
        n_frozen = gc.get_freeze_count()
        with Session.open(tmp_path / "toy.clew"):
            assert gc.get_freeze_count() > n_frozen / 2  # a few objects have gone
    finally:
        gc.unfreeze()
        if are_frozen:
            gc.freeze()
