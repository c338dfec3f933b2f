"""Whatever a call refuses leaves no event; and a project that cannot be clustered still opens and can be mended."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest

from clew import Session
from clew.exceptions import ClewError, DataError, NotFoundError
from clew.session._events import Event
from clew.session._table import packed_rows, row_hashes, table_of
from tests.session.helpers import everything, reopened

COLUMNS = ["id", "x", "y", "wide"]


def rows_of(n=12):
    return [[f"r{i}", 10.0 * (i % 3) + 0.1 * i, float(i % 3), 1e200 if i == 4 else 1.0] for i in range(n)]


def write(path, rows, columns=COLUMNS):
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows([columns, *rows])
    return path


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "rows.csv", rows_of())


@pytest.fixture
def session(tmp_path, table):
    """Twelve rows in three groups; one column that is not used holds a number whose square overflows."""
    with Session.create(tmp_path / "p.clew", table, id_column="id", columns=["x", "y"], n_clusters=3) as session:
        for _ in range(3):
            question = session.ask()
            same = int(question.left[1:]) % 3 == int(question.right[1:]) % 3
            session.tell(question, "same" if same else "different")
        session.fit()
        session.never(rows=["r0", "r1"])
        session.ask("bob")
        yield session


def row(name="new", x=1.0, y=2.0, wide=1.0):
    return [dict(zip(COLUMNS, (name, x, y, wide), strict=True))]


def rescan(*new, columns=COLUMNS, drop=0):
    """Add the rows that were appended to the file."""

    def call(session):
        rows = [one[: len(columns)] for one in (*rows_of()[drop:], *new)]
        write(session.folder / "rows.csv", rows, columns)
        session.add_rows()

    return call


def first(session):
    return session.pending()[0]


def cluster(session):
    return min(session.labels(refit=False).values())


REFUSED = {
    "add a number too large": lambda s: s.add_rows(row(x=1e200)),
    "add a missing number": lambda s: s.add_rows(row(x=np.inf)),
    "add an id that is known": lambda s: s.add_rows(row("r3")),
    "add an id that is known but for spaces": lambda s: s.add_rows(row(" r3 ")),
    "add an id twice but for spaces": lambda s: s.add_rows([*row("new"), *row("new ")]),
    "add without a column": lambda s: s.add_rows([{"id": "new", "x": 1.0}]),
    "add something that is no table": lambda s: s.add_rows(7),
    "add by nobody": lambda s: s.add_rows(row(), annotator=""),
    "rescan a number too large": rescan(["new", 1e200, 1.0, 1.0]),
    "rescan an id twice but for spaces": rescan(["r3 ", 1.0, 1.0, 1.0]),
    "rescan without a column": rescan(["new", 1.0], columns=COLUMNS[:2]),
    "rescan a file without ids": rescan(["new", 1.0], columns=["name", "x"]),
    "set a column too large": lambda s: s.set(columns=["x", "wide"]),
    "set all columns": lambda s: s.set(columns=None),
    "set a column that is not there": lambda s: s.set(columns=["nope"]),
    "set scale": lambda s: s.set(columns=["wide"], scale="standard"),
    "set an unknown scale": lambda s: s.set(scale="nope"),
    "set too many clusters": lambda s: s.set(n_clusters=99),
    "set no clusters": lambda s: s.set(n_clusters=0),
    "set an unknown method": lambda s: s.set(method="nope"),
    "set an unknown strategy": lambda s: s.set(strategy="nope"),
    "set an unknown setting": lambda s: s.set(nope=1),
    "ask by nobody": lambda s: s.ask(" "),
    "ask for none": lambda s: s.ask(n=0),
    "tell an unknown question": lambda s: s.tell(99, "same"),
    "tell an unknown answer": lambda s: s.tell(first(s), "perhaps"),
    "tell too sure": lambda s: s.tell(first(s), "same", confidence=2),
    "tell in no time": lambda s: s.tell(first(s), "same", seconds=-1),
    "tell a comment that is no text": lambda s: s.tell(first(s), "same", comment=b"x"),
    "tell half a character": lambda s: s.tell(first(s), "same", comment="\ud800"),
    "tell by half a character": lambda s: s.tell(first(s), "same", annotator="\ud800"),
    "tell another answer": lambda s: s.tell(1, "unsure"),
    "undo by nobody": lambda s: s.undo(""),
    "revise an unknown answer": lambda s: s.revise(99, "same"),
    "revise to an unknown answer": lambda s: s.revise(s.answers()[0].id, "perhaps"),
    "confirm an unknown answer": lambda s: s.confirm(99),
    "resolve an unknown conflict": lambda s: s.resolve(99, "soft"),
    "import an unknown row": lambda s: s.import_answers([("r0", "r1", "same"), ("r0", "nope", "same")]),
    "import a row with itself": lambda s: s.import_answers([("r2", "r5", "same"), ("r3", "r3 ", "same")]),
    "import an unknown answer": lambda s: s.import_answers([("r0", "r1", "perhaps")]),
    "import too sure": lambda s: s.import_answers([{"id_1": "r0", "id_2": "r2", "answer": "same", "confidence": 2}]),
    "merge a cluster with itself": lambda s: s.merge(cluster(s), cluster(s)),
    "merge an unknown cluster": lambda s: s.merge(cluster(s), 99),
    "split off all rows": lambda s: s.split(cluster(s), s.members(cluster(s))),
    "split off an unknown row": lambda s: s.split(cluster(s), ["nope"]),
    "move an unknown row": lambda s: s.move("nope"),
    "move a row to where it is": lambda s: s.move("r0", s.cluster_of("r0")),
    "never a row with itself": lambda s: s.never(rows=["r0", "r0"]),
    "name an unknown cluster": lambda s: s.name_cluster(99, "x"),
    "name a cluster with a NUL": lambda s: s.name_cluster(cluster(s), "x\0"),
}


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_a_refused_call_leaves_no_event(session, tmp_path, call):
    before = everything(session)
    with pytest.raises(ClewError):
        call(session)
    assert everything(session) == before
    with session.together():  # what comes with it is recorded all the same
        with pytest.raises(ClewError):
            call(session)
        session.tell(first(session), "unsure")
    assert [event[:2] for event in everything(session)["history"][len(before["history"]) :]] == [(7, "answer")]
    write(session.folder / "rows.csv", rows_of())
    now = everything(session)
    again = reopened(session, tmp_path / "p.clew")
    assert everything(again) == now
    again.ask("cyd")
    assert len(again.labels()) == 12
    again.close()


def test_a_number_too_large_is_told_with_the_file_that_holds_it(session, tmp_path):
    new = write(tmp_path / "new.csv", [["new", 1e200, 1.0, 1.0]])
    with pytest.raises(DataError, match=r'Column "x" of .*new\.csv holds 1e\+200'):
        session.add_rows(new)


def test_rows_that_were_added_can_be_taken_back_and_added_again(session, table, tmp_path):
    before = session.labels()
    session.add_rows(row("new", x=10.0, y=1.0))
    assert session.labels()["new"] == before["r1"]
    session.import_answers([("new", "r2", "same")])
    assert session.labels()["new"] == before["r2"]
    for _ in range(2):
        session.undo()
    assert session.labels() == before
    assert not session.changes
    with pytest.raises(NotFoundError, match="no row 'new'"):
        session.row("new")
    session.add_rows(row("other", x=20.0, y=2.0))
    session.add_rows(row("new", x=20.0, y=2.0))
    assert session.labels()["new"] == session.labels()["other"] == before["r2"]
    now = everything(session)
    with Session.open(tmp_path / "p.clew") as again:
        assert everything(again) == now


def test_answers_about_rows_taken_back_wait_for_them(session):
    session.add_rows(row("new"), annotator="ann")
    session.import_answers([("new", "r2", "same")], annotator="bob")
    session.undo("ann")
    assert "new" not in session.labels()
    assert session.answers()[-1].left == "new"
    session.add_rows(row("new"), annotator="ann")
    assert session.labels()["new"] == session.labels()["r2"]


@pytest.fixture
def broken(session, tmp_path):
    """A project with rows in its log that cannot become vectors, as earlier versions may have written it."""
    columns = session.settings["table_columns"]
    new = table_of(row(x=1e200), "id")
    body = packed_rows(["new"], row_hashes(new, columns), new)
    with session._project.store.writing() as transaction:
        payload = {"ids": ["new"], "clusters": [0], "from_file": False}
        transaction.append([("rows_added", "2026-01-01T00:00:00.000+00:00", "ann", payload, body)])
    before = session.answers()
    again = reopened(session, tmp_path / "p.clew")
    yield again, before
    again.close()


def test_a_project_that_cannot_be_clustered_opens_and_can_be_mended(broken, tmp_path):
    session, answers = broken
    assert 'Column "x"' in session.problem
    assert session.answers() == answers
    session.export("answers", tmp_path / "answers.csv")
    assert len((tmp_path / "answers.csv").read_text().splitlines()) == 4
    n_events = len(session.history())
    for call in (
        lambda: session.labels(),
        lambda: session.ask(),
        lambda: session.tell(first(session), "same"),
        lambda: session.revise(answers[0].id, "unsure"),
        lambda: session.import_answers([("r0", "r3", "same")]),
        lambda: session.merge(0, 1),
        lambda: session.add_rows(row("more")),
        lambda: session.progress(),
        lambda: session.changes,
    ):
        with pytest.raises(DataError, match=r'Column "x" of .* holds 1e\+200'):
            call()
    assert len(session.history()) == n_events
    assert session.undo().kind == "rows_added"
    assert session.problem is None
    assert len(session.labels()) == 12


def test_settings_mend_a_project_too(broken):
    session, _ = broken
    session.set(columns=["y"])
    assert session.problem is None
    assert len(session.labels()) == 13
    with pytest.raises(DataError, match='Column "x"'):
        session.undo()  # back to what cannot be clustered: refused
    assert len(session.labels()) == 13


def test_events_of_another_process_that_cannot_be_clustered_are_told(session, tmp_path):
    with Session.open(tmp_path / "p.clew") as other:
        event = Event(0, "setting", "", "ann", {"settings": {"columns": ["wide"]}, "reason": None})
        with other._project.store.writing() as transaction:
            transaction.append([(event.kind, event.time, event.annotator, event.payload, None)])
    session.refresh()
    assert 'Column "wide"' in session.problem
    session.undo()
    assert session.problem is None


def test_ids_that_differ_in_spaces_only_are_refused(tmp_path):
    rows = [["q1", 0.0], ["q1 ", 1.0], ["q2", 5.0]]
    path = write(tmp_path / "t.csv", rows, ["id", "x"])
    with pytest.raises(DataError, match=r"'q1' \(row 0\) and 'q1 ' \(row 1\).*one id"):
        Session.create(tmp_path / "q.clew", path, id_column="id")
    assert not (tmp_path / "q.clew").exists()


@pytest.mark.parametrize("order", [[1, 0, 2, 3, 4], [4, 3, 2, 1, 0], [1, 2, 3, 4], [0, 2, 3, 4, 1]])
def test_rows_in_another_order_are_refused_where_they_have_no_ids(tmp_path, order):
    X = np.arange(10.0).reshape(5, 2)
    np.save(tmp_path / "x.npy", X)
    Session.create(tmp_path / "p.clew", tmp_path / "x.npy").close()
    np.save(tmp_path / "x.npy", X[order])
    with Session.open(tmp_path / "p.clew") as session:
        assert "in another order than before" in session.problem
        with pytest.raises(DataError, match=r"was row \d.*Restore the order, or create a new project"):
            session.ask()
    np.save(tmp_path / "x.npy", X)
    with Session.open(tmp_path / "p.clew") as session:
        assert session.problem is None


def test_other_values_and_rows_at_the_end_are_no_other_order(tmp_path):
    X = np.arange(10.0).reshape(5, 2)
    np.save(tmp_path / "x.npy", X)
    Session.create(tmp_path / "p.clew", tmp_path / "x.npy").close()
    changed = np.vstack([X[:4], [[7.5, 7.5]], X[:1]])
    np.save(tmp_path / "x.npy", changed)
    with Session.open(tmp_path / "p.clew") as session:
        assert (session.changes.changed, session.changes.added) == ([4], [5])


def test_rows_of_another_width_are_refused(tmp_path):
    with Session.create(tmp_path / "p.clew", np.arange(12.0).reshape(4, 3)) as session:
        with pytest.raises(DataError, match=r'"X" has 2 numbers per row in the data, but 3 numbers in the project'):
            session.add_rows(np.zeros((1, 2)))
        assert len(session.labels()) == 4


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------

INTERRUPTED = {
    "ask": lambda s: s.ask("cyd", n=2),
    "tell": lambda s: s.tell(first(s), "different"),
    "undo": lambda s: s.undo(),
    "merge": lambda s: s.merge(*sorted(set(s.labels(refit=False).values()))[:2]),
    "set": lambda s: s.set(scale="standard"),
    "add": lambda s: s.add_rows(row()),
    "import": lambda s: s.import_answers([("r0", "r3", "same"), ("r0", "r6", "same")]),
    "progress": lambda s: s.progress(),
    "fit": lambda s: s.fit(),
}
# Where a signal is let in: the session, the driver, and the context managers between them.
_DRIVER = ("_questions", "_log", "_view", "_knowledge")
_OURS = ("/clew/session/", *(f"/clew/active/{name}" for name in _DRIVER), "/contextlib.py")


def interrupted(call, at):
    """Make a call with Ctrl-C at this line of it, counted from 0; gives the number of lines that it ran."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if not any(part in frame.f_code.co_filename for part in _OURS):
            return None
        if event == "line":
            seen += 1
            if seen == at + 1:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return seen


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("call", INTERRUPTED.values(), ids=INTERRUPTED)
def test_after_ctrl_c_memory_is_what_the_log_says(session, tmp_path, call, seed):
    rng = np.random.default_rng(seed)
    n_lines = 400
    for _ in range(8):
        n_lines = interrupted(lambda: call(session), int(rng.integers(n_lines)))
        session.problem  # noqa: B018  any call falls back to the log
        with Session.open(tmp_path / "p.clew") as other:
            assert everything(session) == everything(other)
    call(session)
