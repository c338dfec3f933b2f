"""How rows become vectors can be changed while a project lives, and changed back."""

from __future__ import annotations

import pytest

from clew import Session
from clew.exceptions import DataError, ParameterError

# By x there are two groups, by y two others.
TABLE = "name,x,y,word\n" + "".join(f"r{row},{row % 2 * 10 + row / 50},{row // 4 * 10},w{row}\n" for row in range(8))


@pytest.fixture
def session(tmp_path):
    (tmp_path / "data.csv").write_text(TABLE)
    with Session.create(
        tmp_path / "toy.clew", tmp_path / "data.csv", id_column="name", columns=["x"], n_clusters=2
    ) as one:
        yield one


def groups(session):
    labels = session.labels()
    return {frozenset(row for row in labels if labels[row] == cluster) for cluster in set(labels.values())}


BY_X = {frozenset({"r0", "r2", "r4", "r6"}), frozenset({"r1", "r3", "r5", "r7"})}
BY_Y = {frozenset({"r0", "r1", "r2", "r3"}), frozenset({"r4", "r5", "r6", "r7"})}


def test_other_columns_make_other_clusters_and_undo_brings_the_first_back(session, tmp_path):
    assert groups(session) == BY_X
    session.set(columns=["y"])
    assert groups(session) == BY_Y
    with Session.open(tmp_path / "toy.clew") as again:
        assert again.settings["columns"] == ["y"]
        assert groups(again) == BY_Y
    session.undo()
    assert groups(session) == BY_X


def test_answers_hold_whatever_the_columns(session):
    question = session.ask()
    session.tell(question, "same")
    session.set(columns=["y"], scale="none")
    labels = session.labels()
    assert labels[question.left] == labels[question.right]


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"columns": ["z"]}, (DataError, ParameterError)),
        ({"columns": []}, ParameterError),
        ({"columns": "x"}, ParameterError),
        ({"scale": "huge"}, ParameterError),
        ({"text": "poetry"}, ParameterError),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(session, settings, error):
    before = session.version
    with pytest.raises(error):
        session.set(**settings)
    assert session.version == before
    assert groups(session) == BY_X
