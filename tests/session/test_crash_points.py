"""If any step of a transaction fails, memory agrees with the log, and the same call works afterwards."""

import threading
from contextlib import contextmanager
from itertools import count

import pytest
import sqlalchemy as sa

from clew import Session
from clew.exceptions import StorageError

ROWS = [[x + dx, y] for x, y in ((0.0, 0.0), (9.0, 0.0), (0.0, 9.0)) for dx in (0.0, 0.1, 0.2, 0.3)]


def truth(question):
    return "same" if question.left // 4 == question.right // 4 else "different"


@pytest.fixture
def session(store_url):
    """Three groups of four, clustered, with answers, a correction, questions that wait, and a fit that is due."""
    with Session.create(store_url, ROWS, n_clusters=3) as session:
        for _ in range(4):
            question = session.ask("ann")
            session.tell(question, truth(question))
        session.fit()
        session.never(rows=[3, 7])
        session.ask("bob", n=2)
        session.set(n_clusters=4)
        yield session


def seen(session):
    """All that a session shows, and what its driver holds back."""
    state = session._state
    return {
        "history": [(one.seq, one.kind, one.time, one.annotator, one.payload, one.body) for one in session.history()],
        "answers": session.answers(),
        "labels": session.labels(refit=False),
        "pending": sorted(session.pending(), key=lambda one: one.id),
        "held back": set(state.known.driver.view.pending),
        "asked": set(state.known.driver.view.asked),
        "conflicts": session.conflicts(),
        "settings": session.settings,
        "groups": sorted(sorted(state.known.driver.view.knowledge.rows(row).tolist()) for row in range(len(ROWS))),
    }


def logged(url):
    """The same, read from the database."""
    with Session.open(url) as session:
        return seen(session)


def waiting(session):
    return session.pending()[0]


CALLS = {
    "ask": lambda session: session.ask("cyd"),
    "ask for several": lambda session: session.ask("cyd", n=3),
    "ask when time is over": lambda session: _later(session).ask("cyd", n=3),
    "tell": lambda session: session.tell(waiting(session), truth(waiting(session)), seconds=1.5),
    "undo": lambda session: session.undo("ann"),
    "undo a correction": lambda session: session.undo(),
    "revise": lambda session: session.revise(session.answers()[0].id, "unsure"),
    "merge": lambda session: session.merge(*sorted(set(session.labels(refit=False).values()))[:2]),
    "split": lambda session: session.split(session.labels(refit=False)[0], [0, 1]),
    "move": lambda session: session.move(5, session.labels(refit=False)[0]),
    "never": lambda session: session.never(rows=[1, 8]),
    "name": lambda session: session.name_cluster(session.labels(refit=False)[0], "first"),
    "regroup": lambda session: session.regroup("other", refit=False),
    "set": lambda session: session.set(n_clusters=5),
    "add rows": lambda session: session.add_rows([[9.5, 0.5]]),
    "import": lambda session: session.import_answers([(8, 9, "same"), (8, 10, "same")]),
    "fit": lambda session: session.fit(),
}


def _later(session):
    session._project.clock = lambda: max(one.expires for one in session.pending()) + 1.0
    return session


@contextmanager
def failing(session, step, *, after_commit=False):
    """Let the statement of this number fail, counted from 0; the last one is the commit."""
    dialect = session._project.store._engine.dialect
    numbers, plain_commit = count(), dialect.do_commit

    def check():
        if next(numbers) == step:
            raise dialect.dbapi.OperationalError("database or disk is full")

    def execute(*_):
        if not after_commit:
            check()

    def commit(connection):
        if not after_commit:
            check()
        plain_commit(connection)
        if after_commit:
            check()

    names = ("do_execute", "do_executemany", "do_execute_no_params")
    for name in names:
        sa.event.listen(dialect, name, execute)
    dialect.do_commit = commit
    try:
        yield
    finally:
        del dialect.do_commit
        for name in names:
            sa.event.remove(dialect, name, execute)


def failed(session, step, call):
    """What a call says when this step of it fails; None if it has no such step."""
    try:
        with failing(session, step):
            call(session)
    except StorageError as error:
        return error
    return None


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_step_that_fails_leaves_memory_as_the_log_is(session, store_url, call):
    before = seen(session)
    for step in range(100):
        problem = failed(session, step, call)
        if problem is None:
            break
        assert problem.is_full
        assert "Nothing was recorded" in str(problem)
        assert seen(session) == before
        if step == 3:
            assert logged(store_url) == before
    assert step >= 4  # to begin, to look, to write, to count, to commit
    assert seen(session) == logged(store_url) != before


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_commit_of_which_no_word_came_back_is_taken_in_later(session, store_url, call):
    before = seen(session)
    with pytest.raises(StorageError), failing(session, 0, after_commit=True):
        call(session)
    session.refresh()
    assert seen(session) == logged(store_url) != before


def test_an_answer_whose_commit_no_word_came_back_of_is_told_again(session, store_url):
    question = waiting(session)
    with pytest.raises(StorageError), failing(session, 0, after_commit=True):
        session.tell(question, truth(question))
    told = session.tell(question, truth(question))
    assert [one.id for one in session.answers() if one.question == question.id] == [told.id]
    assert seen(session) == logged(store_url)


def test_threads_that_share_a_session_take_in_every_event_once(store_url, monkeypatch):
    """A thread that is held up between its commit and its return finds nothing taken in by another."""
    with Session.create(store_url, ROWS, n_clusters=3) as session:
        begun, apply = threading.Event(), session._state.apply

        def slow_apply(event):
            if event.annotator == "ann":
                begun.set()
                other.join(0.2)  # it must wait for us; without a lock it would be done
            apply(event)

        monkeypatch.setattr(session._state, "apply", slow_apply)
        question = session.ask("ann")
        other = threading.Thread(target=lambda: (begun.wait(), session.ask("bob")))
        other.start()
        session.tell(question, truth(question))
        other.join()
        assert [event.seq for event in session.history()] == [1, 2]
        assert len(session.answers()) == 1
        assert seen(session) == logged(store_url)
