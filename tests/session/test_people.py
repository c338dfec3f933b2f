"""Several people: the spelling of names, and questions that two people have at once."""

from __future__ import annotations

import pytest

from clew import Session
from tests.session.helpers import blobs, everything, reopened


@pytest.fixture
def session(tmp_path):
    X, _ = blobs()
    with Session.create(tmp_path / "project.clew", X, n_clusters=3, overlap=2, lease_seconds=100) as session:
        yield session


def test_a_person_undoes_answers_under_another_spelling(session):
    session.tell(session.ask("Ann"), "different")
    session.tell(session.ask("bob"), "different")
    undone = session.undo("ann ")
    assert undone is not None
    assert undone.annotator == "Ann"
    assert [one.annotator for one in session.answers()] == ["bob"]


def test_an_expired_question_goes_back_to_its_person_under_another_spelling(session, monkeypatch):
    question = session.ask("Ann")
    later = session._project.clock() + 1000
    monkeypatch.setattr(session._project, "clock", lambda: later)
    assert session.ask("ann").id == question.id


def test_an_imported_answer_is_known_under_another_spelling(session):
    assert session.import_answers([(0, 3, "same")], annotator="Ann") == 1
    assert session.import_answers([(3, 0, "same")], annotator="ANN") == 0
    assert session.import_answers([(3, 0, "different")], annotator="ANN") == 1


@pytest.mark.parametrize("imported", [False, True])
def test_a_pair_that_somebody_still_has_stays_pending(session, tmp_path, imported):
    first, second = session.ask("Ann"), session.ask("bob")  # a second opinion about the same pair
    assert {first.left, first.right} == {second.left, second.right}
    if imported:
        session.import_answers([(first.left, first.right, "different")], annotator="Cy")
    else:
        session.tell(first, "different")
    assert_the_same_when_it_is_opened_again(session, tmp_path / "project.clew")


def test_a_second_opinion_about_an_answered_pair_is_pending(tmp_path):
    X, _ = blobs()
    with Session.create(tmp_path / "project.clew", X, overlap=2, strategy="random-pairs") as session:
        session.tell(session.ask("Ann"), "different")
        assert session.ask("bob").why == "A second opinion on this pair."
        assert_the_same_when_it_is_opened_again(session, tmp_path / "project.clew")


def assert_the_same_when_it_is_opened_again(session, path):
    """The one pending question of the driver, and the next one, which may be random."""
    driver = session._state.known.driver
    before, pending, question = everything(session), driver.pending, driver._look_ahead()
    assert len(pending) == 1
    with reopened(session, path) as again:
        driver = again._state.known.driver
        assert (everything(again), driver.pending, driver._look_ahead()) == (before, pending, question)
