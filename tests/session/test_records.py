"""One record type for answers: files, questions, sessions and audits say the same with it."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Session
from clew.active import Answered, Pair, Questions, Which
from clew.audit import review
from clew.constraints import AnswerRecord, Said, read_answers, write_answers
from clew.exceptions import ConstraintError
from tests.session.helpers import blobs

X, Y = blobs(n=24)
NAMES = [f"row {place}" for place in range(len(X))]
PAIRS = [(0, 3), (1, 4), (2, 5), (0, 1), (4, 5), (6, 9), (7, 8)]


def says(one, two):
    return "same" if (Y[one] == Y[two]) != ((one, two) == (1, 4)) else "different"  # one answer is wrong


ANSWERS = [(pair, says(*pair), 0.9, "ann", "then") for pair in PAIRS]
RECORDS = [AnswerRecord(NAMES[a], NAMES[b], word, 0.9, "ann", "then") for (a, b), word, *_ in ANSWERS]


def doubts(found):
    return [(one.index, one.rows, one.answer, one.suspicion, one.annotator, one.time) for one in found.doubts]


def test_a_review_takes_tuples_files_and_sessions_alike(tmp_path):
    expected = doubts(review(X, ANSWERS, 3, ids=NAMES))
    assert expected[0][:2] == (1, ("row 1", "row 4"))
    write_answers(tmp_path / "answers.csv", RECORDS)
    assert doubts(review(X, read_answers(tmp_path / "answers.csv"), 3, ids=NAMES)) == expected
    table = {"name": np.array(NAMES, dtype=object), "x": X[:, 0], "y": X[:, 1]}
    with Session.create(tmp_path / "p.clew", table, id_column="name") as session:
        session.import_answers(RECORDS)
        assert doubts(review(X, session.answers(), 3, ids=NAMES)) == expected


def test_a_review_takes_the_answers_of_questions():
    questions = Questions(X, n_clusters=3, random_state=0)
    questions.replay([AnswerRecord(*pair, says(*pair)) for pair in PAIRS])
    assert [entry.question for entry in questions.answers] == [Pair(*pair) for pair in PAIRS]
    found = review(X, questions.answers, 3, ids=NAMES)  # positions, whatever the ids are
    plain = review(X, [(pair, says(*pair)) for pair in PAIRS], 3, ids=NAMES)
    assert doubts(found) == doubts(plain)


def test_a_choice_among_rows_is_one_record_for_each_candidate(tmp_path):
    chosen = Answered(Which(0, (3, 1)), 3, 0.8)
    assert chosen.records() == [AnswerRecord(0, 3, "same", 0.8), AnswerRecord(0, 1, "different", 0.8)]
    assert [one.index for one in review(X, [chosen], 3).doubts] == [0, 0]


def test_check_questions_are_known_as_such():
    assert Answered(Pair(0, 3, check=True), "same").check
    assert not AnswerRecord(0, 3, "same").check
    assert isinstance(AnswerRecord(0, 3, "same"), Said)


@pytest.mark.parametrize("ids", [NAMES, None])
def test_a_record_about_an_unknown_row_is_refused_by_name(ids):
    with pytest.raises(ConstraintError, match=r"answers\[1\] is about rows 'row 1' and 'nobody'"):
        review(
            X,
            [AnswerRecord(*(NAMES[:2] if ids else (0, 1)), "same"), AnswerRecord("row 1", "nobody", "same")],
            3,
            ids=ids,
        )


def test_a_session_takes_a_frame_of_answers_like_a_file(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([vars(one) for one in RECORDS])
    table = {"name": np.array(NAMES, dtype=object), "x": X[:, 0], "y": X[:, 1]}
    with Session.create(tmp_path / "p.clew", table, id_column="name") as session:
        assert session.import_answers(frame) == len(RECORDS)
        assert session.import_answers(RECORDS) == 0
        with pytest.raises(ConstraintError, match=r"The frame .*answer"):
            session.import_answers(frame[["id_1", "id_2"]])
    assert [(one.id_1, one.id_2, one.answer) for one in read_answers(frame)] == [
        (one.id_1, one.id_2, one.answer) for one in RECORDS
    ]
