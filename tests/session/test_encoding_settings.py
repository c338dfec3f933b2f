"""How rows become vectors can be changed while a project lives, and changed back."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Session
from clew._registry import by_method_name
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


# -- one geometry ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_typical_rows_and_nearest_clusters_follow_the_metric(tmp_path, metric):
    """By angle, the long row belongs with the short ones on its axis; by distance, it is far from all of them."""
    rows = [[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0], [0.0, 30.0]]
    with Session.create(
        tmp_path / "p.clew", rows, n_clusters=2, metric=metric, scale="none", method="pck-means"
    ) as session:
        labels = session.labels()
        assert (labels[4] == labels[2]) == (metric == "cosine")
        if metric == "cosine":
            assert session.members(labels[4])[0] != 3  # rows 2 and 4 point the same way, row 3 is off
            new = session.add_rows([[40.0, 1.0]])[0]
            assert session.cluster_of(new) == labels[0]
            assert np.allclose(np.linalg.norm(session._state.rows.X, axis=1), 1.0)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_every_method_of_a_session_fits_with_every_metric(tmp_path, metric):
    y = np.arange(18) % 3
    rows = 6.0 * np.eye(3)[y] + np.random.default_rng(0).normal(size=(18, 3))
    with Session.create(tmp_path / "p.clew", rows, n_clusters=3, metric=metric) as session:
        session.import_answers([(0, 3, "same"), (0, 1, "different")])
        for method, kind in by_method_name("clusterer").items():
            if not kind._capabilities.vectors:
                with pytest.raises(ParameterError, match=f'"{method}" clusters (a square matrix|counts)'):
                    session.set(method=method)
                continue
            if not kind._is_installed():
                continue
            session.set(method=method)
            labels = session.fit()
            assert labels and labels.keys() <= set(session.ids), method
