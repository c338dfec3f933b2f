"""Imported rows with confidence 1 and no annotator are facts: they hold whatever people answer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from clew import Session
from clew.active import Questions
from clew.constraints import AnswerRecord, read_answers, write_answers
from clew.exceptions import ContradictoryConstraintsError, UnusedKnowledgeWarning
from tests.session.helpers import blobs, everything

# Rows 0, 3 and 6 are in one of the three groups of `blobs`, rows 1 and 4 in another one.
FACTS = "id_1,id_2,answer,confidence\n0,1,same,1\n0,3,different,1.0\n"


@pytest.fixture
def session(tmp_path):
    X, _ = blobs()
    with Session.create(tmp_path / "project.clew", X, n_clusters=3, error_rate=0.2) as session:
        yield session


def written(tmp_path, text, name="facts.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def holds(session):
    labels = session.labels()
    return labels[0] == labels[1] and labels[0] != labels[3]


def test_facts_hold_against_all_answers(session, tmp_path):
    session.import_answers([(0, 1, "different"), (0, 3, "same"), (0, 6, "same"), (1, 4, "same")], annotator="ann")
    assert not holds(session)
    assert session.import_answers(written(tmp_path, FACTS)) == 2
    assert [one.certain for one in session.answers()] == [False] * 4 + [True] * 2
    assert holds(session)
    quarantined = [one.id for one in session.conflicts()]
    assert quarantined == [answer.id for answer in session.answers()[:2]]
    assert [person.annotator for person in session.agreement().people] == ["ann"]


def test_facts_hold_while_answers_are_facts_too(tmp_path):
    X, _ = blobs()
    with Session.create(tmp_path / "plain.clew", X, n_clusters=3) as session:
        session.import_answers([(0, 1, "different")], annotator="ann")
        session.import_answers(written(tmp_path, FACTS))
        assert holds(session)
        assert len(session.conflicts()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "id_1,id_2,answer\n0,1,same\n0,3,different\n",
        "id_1,id_2,answer,confidence\n0,1,same,\n0,3,different,\n",
        "id_1,id_2,answer,confidence\n0,1,same,0.99\n0,3,different,0.99\n",
        "id_1,id_2,answer,confidence,annotator\n0,1,same,1,bob\n0,3,different,1,bob\n",
    ],
    ids=["no column", "empty", "below 1", "annotator"],
)
def test_other_rows_are_answers(session, tmp_path, text):
    session.import_answers(written(tmp_path, text))
    assert not any(one.certain for one in session.answers())


def test_rows_are_answers_of_the_given_annotator(session, tmp_path):
    session.import_answers(written(tmp_path, FACTS), annotator="bob")
    assert [(one.annotator, one.certain) for one in session.answers()] == [("bob", False)] * 2


def test_facts_that_contradict_each_other_are_refused(session, tmp_path):
    session.import_answers(written(tmp_path, FACTS))
    before = everything(session)
    bad = "id_1,id_2,answer,confidence\n5,8,same,1\n1,3,same,1\n"
    with pytest.raises(ContradictoryConstraintsError, match=r"3 = 1 = 0|0 = 1 = 3"):
        session.import_answers(written(tmp_path, bad, "bad.csv"))
    assert everything(session) == before


def test_facts_that_contradict_given_constraints_are_refused(tmp_path):
    X, _ = blobs()
    with Session.create(tmp_path / "p.clew", X, n_clusters=3, constraints={"cannot_link": [(0, 1)]}) as session:
        with pytest.raises(ContradictoryConstraintsError, match="Nothing was imported"):
            session.import_answers(written(tmp_path, FACTS))
        assert session.answers() == []


def test_facts_that_contradict_corrections_are_refused(tmp_path):
    X, _ = blobs()
    with Session.create(tmp_path / "p.clew", X, n_clusters=3) as session:
        labels = session.labels()
        session.merge(labels[0], labels[1])
        before = everything(session)
        with pytest.raises(ContradictoryConstraintsError, match=r"by facts and corrections\. Nothing .* Undo the corr"):
            session.import_answers(written(tmp_path, "id_1,id_2,answer,confidence\n0,1,different,1\n"))
        assert everything(session) == before


@pytest.mark.parametrize("method", ["pck-means", "soft-group-mixture"])
def test_facts_hold_with_every_method(tmp_path, method):
    X, _ = blobs()
    facts = [{"id_1": 0, "id_2": row, "answer": "different", "confidence": 1} for row in (3, 6, 9)]
    with Session.create(tmp_path / "p.clew", X, n_clusters=3, method=method) as session:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnusedKnowledgeWarning)  # the mixture ignores cannot-links
            session.import_answers(facts)
            session.import_answers([(0, 3, "same"), (0, 6, "same")], annotator="ann")
            labels = session.labels()
        assert labels[0] not in {labels[row] for row in (3, 6, 9)}
        assert labels[3] == labels[6] == labels[9]


def test_given_labels_hold_after_a_correction_although_answers_disagree(tmp_path):
    X, _ = blobs()
    given = np.full(len(X), -1)
    given[[0, 3, 6]], given[[1, 4]] = 0, 1
    with Session.create(tmp_path / "p.clew", X, n_clusters=3, error_rate=0.1, constraints=given) as session:
        labels = session.labels()
        session.move(2, labels[1])
        session.import_answers([(0, row, "different") for row in range(9, 27, 3)], annotator="ann")
        session.import_answers([(0, row, "same") for row in (7, 10, 13)], annotator="ann")
        labels = session.labels()
        assert labels[0] == labels[3] == labels[6] != labels[1]
        assert labels[1] == labels[4]


def test_a_conflict_names_a_fact_and_not_a_person(session, tmp_path):
    session.import_answers(written(tmp_path, FACTS))
    session.import_answers([(0, 1, "different")], annotator="ann")
    assert "(imported fact 3, " in session.conflicts()[0].message


def test_a_mixed_file_undone_and_reopened(session, tmp_path):
    mixed = FACTS + "2,5,same,0.9\n"
    session.import_answers([(0, 1, "different")], annotator="ann")
    before = everything(session)
    session.import_answers(written(tmp_path, mixed))
    session.labels()
    with Session.open(tmp_path / "project.clew") as again:
        found, expected = everything(again), everything(session)
    assert found == expected
    session.undo()
    after = everything(session)
    for same in ("answers", "relations", "conflicts", "must", "cannot", "sources"):
        assert after[same] == before[same], same


def test_a_revised_fact_is_an_answer(session, tmp_path):
    session.import_answers(written(tmp_path, FACTS))
    fact = session.answers()[0]
    for answer in ("different", "same", "different"):
        session.revise(fact.id, answer)
        assert session._state.known.driver.view.known(0, 1).value == answer
    assert not session.answers()[0].certain


def test_export_and_import_keep_facts_and_answers_apart(session, tmp_path):
    session.import_answers(written(tmp_path, FACTS))
    session.import_answers([(2, 5, "same")], annotator="ann")
    session.import_answers([(5, 8, "same")])
    path = tmp_path / "log.csv"
    session.export("answers", path)
    X, _ = blobs()
    with Session.create(tmp_path / "copy.clew", X, n_clusters=3, error_rate=0.2) as copy:
        assert copy.import_answers(path) == 4
        assert [one.certain for one in copy.answers()] == [True, True, False, False]
        assert copy.import_answers(path) == 0


def test_written_answers_without_annotators_do_not_become_facts(tmp_path):
    path = tmp_path / "answers.csv"
    given = [AnswerRecord(0, 1, "same"), AnswerRecord(0, 3, "different", certain=True), AnswerRecord(2, 5, "same", 0.7)]
    write_answers(path, given)
    found = read_answers(path)
    assert [one.certain for one in found] == [False, True, False]
    assert [one.confidence for one in found] == [1.0, 1.0, 0.7]


def test_a_replayed_fact_holds_although_answers_contradict_it():
    X, _ = blobs()
    questions = Questions(X, n_clusters=3, error_rate=0.2, random_state=0)
    answers = [((0, 1), "different"), ((0, 3), "same"), ((3, 6), "same")]
    questions.replay([*answers, AnswerRecord(0, 1, "same", certain=True)])
    labels = questions.labels()
    assert labels[0] == labels[1]
    assert np.unique(labels).size == 3
