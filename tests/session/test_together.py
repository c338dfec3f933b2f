"""Calls in one transaction: one disk write, all or nothing, and memory that agrees with the log."""

from copy import deepcopy

import pytest
import sqlalchemy as sa

from clew import Session
from clew.exceptions import NotFoundError, StorageError
from tests.session.helpers import everything

ROWS = [[x + dx, y] for x, y in ((0.0, 0.0), (9.0, 0.0), (0.0, 9.0)) for dx in (0.0, 0.1, 0.2, 0.3)]


def truth(question):
    return "same" if question.left // 4 == question.right // 4 else "different"


@pytest.fixture
def session(store_url):
    with Session.create(store_url, ROWS, n_clusters=3) as session:
        yield session


def begun_and_ended(session):
    """Counts transactions."""
    seen = []
    sa.event.listen(session._project.store._engine, "commit", lambda _: seen.append("commit"))
    sa.event.listen(session._project.store._engine, "rollback", lambda _: seen.append("rollback"))
    return seen


def test_many_calls_are_one_transaction(session, store_url):
    seen = begun_and_ended(session)
    with session.together():
        questions = [session.ask(person) for person in ("ann", "bob", "cyd")]
        told = [session.tell(question, truth(question)) for question in questions]
        session.undo("cyd")
    assert seen == ["commit"]
    assert [one.id for one in told] == [2, 3, 4]
    assert [record.annotator for record in session.answers()] == ["ann", "bob"]
    now = everything(session)
    with Session.open(store_url) as other:
        assert everything(other) == now


def test_calls_see_those_before_them(session):
    with session.together():
        question = session.ask()
        first = session.tell(question, "same")
        assert session.tell(question, "same") == first
        assert session.progress().answered == 1
        assert not session.worth_asking(question)


def test_a_call_that_is_refused_leaves_the_others(session, store_url):
    with session.together():
        question = session.ask()
        with pytest.raises(NotFoundError):
            session.tell(99, "same")
        session.tell(question, "same")
    with Session.open(store_url) as other:
        assert [record.answer for record in other.answers()] == ["same"]
        assert everything(other) == everything(session)


def test_when_it_cannot_be_committed_nothing_has_happened(session, store_url):
    waiting = session.ask("ann")
    before = deepcopy(everything(session))

    def fail(_):
        raise sa.exc.OperationalError("COMMIT", {}, Exception("database or disk is full"))

    sa.event.listen(session._project.store._engine, "commit", fail)

    def calls():
        with session.together():
            session.tell(waiting, "same")
            session.ask("bob")
            session.set(n_clusters=2)

    with pytest.raises(StorageError, match="disk is full") as caught:
        calls()
    assert caught.value.is_full
    sa.event.remove(session._project.store._engine, "commit", fail)
    assert everything(session) == before
    assert session.tell(waiting, "different").id == 2
    now = everything(session)
    with Session.open(store_url) as other:
        assert everything(other) == now


def test_a_call_that_fails_half_way_takes_the_others_with_it(session, monkeypatch):
    before = deepcopy(everything(session))
    drawn = session._state.known.driver.ask

    def once():
        monkeypatch.setattr(session._state.known.driver, "ask", lambda: 1 / 0)
        return drawn()

    def calls():
        with session.together():
            session.import_answers([(0, 1, "same")])
            monkeypatch.setattr(session._state.known.driver, "ask", once)
            with pytest.raises(ZeroDivisionError):
                session.ask(n=2)

    with pytest.raises(StorageError, match="Try again"):
        calls()
    assert everything(session) == before
    assert session.ask(n=2)
