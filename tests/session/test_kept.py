"""A correction changes the rows of its preview and no others, at once and for good; only answers move more."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Session
from clew.exceptions import ParameterError
from tests.session.helpers import blobs, partition, reopened, told

X, Y = blobs(n=40, k=4, gap=4.0)
PEOPLE = ["ann", "bob", "cyd"]


def table_of(rows):
    return [{"row": place, "x": float(x), "y": float(y)} for place, (x, y) in enumerate(rows)]


class Person:
    """Somebody who works on a project, and expects it to do what it says.

    Rows are named by their position; `y` has their true groups. `heard` says that something was said since the last fit
    that may move rows beside those of corrections.
    """

    def __init__(self, session, url, rng, y):
        self.session, self.url, self.rng, self.y = session, url, rng, dict(enumerate(y.tolist()))
        session.labels()
        self.heard = False

    def pair(self):
        return self.rng.choice(self.session.ids, 2, replace=False).tolist()

    def correct(self):
        clusters = partition(self.session.labels(refit=False))
        one, two = self.rng.choice(sorted(clusters), 2).tolist()
        rows = sorted(clusters[one])
        some = self.rng.choice(rows, self.rng.integers(1, len(rows) + 1), replace=False).tolist()
        row, other = self.rng.choice(self.session.ids, 2).tolist()
        kind, arguments = [
            ("merge", {"cluster": one, "other": two}),
            ("split", {"cluster": one, "rows": some}),
            ("move", {"row": row, "cluster": two}),
            ("move", {"row": row, "cluster": None}),
            ("never", {"clusters": [one, two]}),
            ("never", {"rows": [row, other]}),
        ][self.rng.integers(6)]
        before = self.session.labels(refit=False)
        try:
            preview = self.session.preview(kind, **arguments)
        except ParameterError:
            return
        assert self.session.labels(refit=False) == before
        done = getattr(self.session, kind)(**arguments, annotator=str(self.rng.choice(PEOPLE)))
        assert (done.changed, done.cluster) == (preview.changed, preview.cluster)
        after = self.session.labels(refit=False)
        assert after == before | {row: after for row, (_, after) in done.changed.items()}

    def undo(self):
        """Take back the last thing that somebody did, perhaps an old correction."""
        before, unused = self.session.labels(refit=False), set(self.session._state.known.quarantined)
        taken_back = self.session.undo(str(self.rng.choice(PEOPLE)))
        after = self.session.labels(refit=False)
        if taken_back is None:
            assert after == before
            return
        if taken_back.kind != "correction":
            self.heard = True
            return
        state = self.session._state
        live = [event for event in state.ledger.corrections() if event.seq not in state.known.quarantined]
        later = [event.payload for event in live if event.seq > taken_back.seq]
        put = {row for one in later for rows, _, _ in one["changes"] for row in rows}
        put |= {row for one in later for rows in one["stars"] for row in rows}
        known = self.session.constraints
        spoken = {self.session.ids[row] for row in np.concatenate([known.must_link, known.cannot_link]).ravel()}
        changes = [] if taken_back.payload["conflict"] else taken_back.payload["changes"]
        back = {row: old for rows, old, new in changes for row in rows if before.get(row) == new and row not in put}
        moved = {row for row in before if after[row] != before[row]}
        assert moved <= back.keys() | spoken
        assert all(after[row] == old for row, old in back.items() if row not in spoken)
        self.heard |= unused != state.known.quarantined  # a correction that waited is used from the next fit on

    def agree(self):
        """Answers that the clusters follow already."""
        labels = self.session.labels(refit=False)
        one, two = self.pair()
        self.session.import_answers([(one, two, "same" if labels[one] == labels[two] else "different")])

    def answer(self):
        """Answers from the truth, whatever the clusters are."""
        one, two = self.pair()
        self.session.import_answers([(one, two, "same" if self.y[one] == self.y[two] else "different")])
        self.heard = True

    def guess(self):
        """Answers that may be wrong, and say so."""
        one, two = self.pair()
        said = {"id_1": one, "id_2": two, "answer": str(self.rng.choice(["same", "different"])), "confidence": 0.7}
        self.session.import_answers([said], annotator=str(self.rng.choice(PEOPLE)))
        self.heard = True

    def revise(self):
        answers = [one.id for one in self.session.answers() if one.kind == "pair"]
        if answers:
            self.session.revise(int(self.rng.choice(answers)), str(self.rng.choice(["same", "different", "unsure"])))
            self.heard = True

    def resolve(self):
        """Settle a contradiction in some way, perhaps by taking a correction back."""
        conflicts = self.session.conflicts()
        how = str(self.rng.choice(["change", "withdraw", "soft", "unsure", "repair"]))
        if conflicts:
            try:
                self.session.resolve(conflicts[self.rng.integers(len(conflicts))], how)
            except ParameterError:
                return
            self.heard = True

    def set(self):
        self.session.set(n_clusters=[None, 1, 3, 8][self.rng.integers(4)])
        self.heard = True

    def grow(self):
        """Add rows; the others stay where they are."""
        before, new = self.session.labels(refit=False), max(self.y) + 1
        self.session.add_rows([{"row": new, "x": 4 * self.rng.normal(), "y": 4 * self.rng.normal()}], annotator="cyd")
        self.y[new] = 0
        after = self.session.labels(refit=False)
        assert before == {row: after[row] for row in before}

    def fit(self):
        is_settled = not self.session.is_stale
        before, after = self.session.labels(refit=False), self.session.fit()
        said = self.session._state.known.binding()
        if is_settled or (said and not self.heard):
            assert after == before
        self.heard = False
        clusters = np.array([after[row] for row in self.session.ids])
        certain = said if self.session.settings["method"] else self.session.constraints.at_least(1.0)
        assert [len(some) for some in certain.violations(clusters)] == [0, 0]
        n_clusters, asked = len(set(after.values())), self.session._state.known.driver.n_clusters
        notes = self.session.progress().notes
        assert asked in (None, n_clusters) or any(f"{n_clusters} clusters instead of {asked}: " in one for one in notes)
        assert self.session.fit() == after

    def restart(self):
        before = self.session.labels(refit=False)
        self.session = reopened(self.session, self.url)
        assert self.session.labels(refit=False) == before


STEPS = ["correct", "correct", "undo", "fit", "agree", "answer", "restart"]
MORE_STEPS = [*STEPS, "correct", "fit", "guess", "revise", "resolve", "set", "grow"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("method", [None, "pck-means"])
@pytest.mark.parametrize("n_clusters", [2, 4, 9, None])
@pytest.mark.parametrize("number", range(3))
def test_corrections_fits_answers_and_restarts_in_any_order(tmp_path, seed, number, n_clusters, method):
    rng, steps = np.random.default_rng([seed, number]), MORE_STEPS if number == 2 else STEPS
    url = str(tmp_path / "project.clew")
    session = Session.create(url, table_of(X), id_column="row", scale="none", n_clusters=n_clusters, method=method)
    told(session, Y, 6)
    person = Person(session, url, rng, Y)
    for step in ["correct", *rng.choice(steps, 18), "fit"]:
        getattr(person, step)()
    person.session.close()


@pytest.mark.slow
@pytest.mark.parametrize("n_clusters", [9, 6, 3])
def test_the_same_with_twenty_thousand_rows(tmp_path, seed, n_clusters):
    rng = np.random.default_rng([seed, n_clusters])
    y = rng.integers(0, 6, 20_000)
    rows = rng.normal(size=(20_000, 2)) + 6 * rng.normal(size=(6, 2))[y]
    url = str(tmp_path / "project.clew")
    session = Session.create(url, table_of(rows), id_column="row", scale="none", n_clusters=n_clusters)
    told(session, y, 6)
    person = Person(session, url, rng, y)
    for step in ["correct", "fit", *rng.choice(STEPS, 6), "correct", "fit"]:
        getattr(person, step)()
    person.session.close()


def test_a_correction_of_a_large_table_moves_its_rows_alone(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 20_000)
    rows = rng.normal(size=(20_000, 4)) + 4 * rng.normal(size=(6, 4))[y]
    with Session.create(tmp_path / "large.clew", rows, n_clusters=8) as session:
        told(session, y, 12)
        before = session.labels()
        for _ in range(2):
            clusters = partition(session.labels(refit=False))
            largest = max(clusters, key=lambda one: len(clusters[one]))
            named = {row for one in session.answers() for row in (one.left, one.right)}
            made = session.split(largest, sorted(clusters[largest] - named)[:2])
            before |= dict.fromkeys(made.changed, made.cluster)
            assert len(made.changed) == 2 and session.fit() == before
        small = sorted(clusters, key=lambda one: len(clusters[one]))
        pairs = [(one, two) for one in small for two in small if one < two]
        one, two = next(pair for pair in pairs if session.preview("merge", *pair).conflict is None)
        made = session.merge(one, two)
        before |= dict.fromkeys(made.changed, one)
        assert session.fit() == before


def grouped(labels):
    return {frozenset(rows) for rows in partition(labels).values()}


@pytest.fixture
def session(tmp_path):
    """Four clusters of ten rows: 0, 4, 8, ... and so on."""
    y = np.arange(40) % 4
    rows = 100.0 * y[:, None] + np.arange(40)[:, None] / 10
    with Session.create(tmp_path / "project.clew", rows, n_clusters=4) as session:
        told(session, y, 6)
        session.labels()
        yield session


def cluster(session, row):
    return session.labels(refit=False)[row]


def test_an_old_correction_is_undone_as_if_it_had_never_been_made(session):
    """Corrections about other rows, made since, hold; a fit moves nothing more."""
    session.split(cluster(session, 1), [1, 5], annotator="bob")
    expected = session.split(cluster(session, 2), [2, 6]), session.labels(refit=False)
    session.undo(), session.undo()
    session.merge(cluster(session, 0), cluster(session, 3), annotator="ann")
    session.split(cluster(session, 1), [1, 5], annotator="bob")
    session.split(cluster(session, 2), [2, 6])
    assert session.undo("ann").payload["kind"] == "merge"
    assert grouped(session.labels(refit=False)) == grouped(expected[1])
    before = session.labels(refit=False)
    assert session.fit() == before


def test_a_later_correction_keeps_what_it_said_when_an_older_one_is_undone(session, tmp_path):
    made = session.split(cluster(session, 0), [0, 4], annotator="ann")
    session.merge(made.cluster, cluster(session, 3), annotator="bob")  # 0 and 4 are with 3, 7, 11, ...
    before = session.labels(refit=False)
    assert session.undo("ann").seq == made.id
    assert session.labels(refit=False) == before == session.fit()
    again = Session.open(str(tmp_path / "project.clew"))
    assert again.labels(refit=False) == before
    again.close()


def test_a_split_since_does_not_hold_up_the_undo_of_a_merge(session):
    """The rows that a split leaves behind are apart from the picked ones; nobody said that they are together."""
    before = grouped(session.labels(refit=False))
    session.merge(cluster(session, 0), cluster(session, 3), annotator="ann")
    session.split(cluster(session, 0), [0], annotator="bob")
    session.undo("ann")
    expected = {one - {0} for one in before} | {frozenset({0})}
    assert grouped(session.labels(refit=False)) == expected
    assert grouped(session.fit()) == expected


def test_labels_are_up_to_date_after_a_fit_that_changes_nothing(store_url):
    """A correction that is undone, then a fit: neither this session nor the next one calls the labels stale."""
    X, y = blobs()
    with Session.create(store_url, X, n_clusters=3) as session:
        told(session, y, 5)
        before = session.labels()
        clusters = sorted(set(before.values()))
        session.merge(clusters[0], clusters[1])
        session.undo()
        assert session.progress().stale
        assert session.labels() == before
        assert not session.progress().stale
    with Session.open(store_url) as session:
        assert not session.progress().stale
        version = session.version
        assert session.fit() == before
        assert session.version == version
