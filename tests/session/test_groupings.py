"""Other ways to group the rows: kept under a name, in the log, beside the clusters."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from clew import Session
from clew.evaluation import same_partition
from clew.exceptions import DataError, ParameterError
from tests.session.helpers import everything


def corners(n_each=6, seed=0):
    """Rows in eight corners of a box: three groupings, the first by the largest distances."""
    rng = np.random.default_rng(seed)
    place = np.repeat(np.arange(8), n_each)
    bits = np.column_stack([place & 1, place >> 1 & 1, place >> 2])
    return bits * [12.0, 8.0, 5.0] + rng.normal(scale=0.3, size=(len(place), 3)), bits.T


@pytest.fixture
def project(store_url):
    X, groupings = corners()
    with Session.create(store_url, X, n_clusters=2, method="pck-means", scale="none") as session:
        session.labels()
        yield session, groupings, store_url


def as_list(labels):
    return [labels[row] for row in sorted(labels)]


def test_another_grouping_is_found_kept_and_still_there_after_a_restart(project):
    session, (first, second, third), place = project
    assert same_partition(as_list(session.labels()), first)
    made = session.regroup("by height", annotator="ann")
    assert (made.name, made.annotator, made.method) == ("by height", "ann", "cond-ens")
    assert same_partition(as_list(session.grouping_labels("by height")), second)
    assert made.likeness < 0.01
    assert [group.size for group in made.groups] == [24, 24]
    assert all(len(group.typical) == 6 for group in made.groups)
    assert np.sum(made.overlap, axis=0).tolist() == [24, 24] and made.clusters == [0, 1]
    again = session.regroup()  # unlike the clusters and unlike the first one
    assert again.name == "another way"
    assert same_partition(as_list(session.grouping_labels("another way")), third)
    with Session.open(place) as reopened:
        assert reopened.groupings() == session.groupings() == [made, again]
        assert reopened.grouping_labels("by height") == session.grouping_labels("by height")
    assert session.history()[-1].kind == "grouping"


def test_the_clusters_of_the_project_are_not_disturbed(project):
    session, _, _ = project
    before = {key: value for key, value in everything(session).items() if key != "history"}
    question, said = session.ask(), session.said_version
    session.regroup()
    session.remove_grouping("another way")
    assert session.said_version == said
    assert not session.is_stale
    assert session.tell(question, "same") is not None  # the question is still open
    session.undo()
    after = {key: value for key, value in everything(session).items() if key != "history"}
    for key in ("labels", "answers", "settings", "names", "relations", "must", "cannot"):
        assert after[key] == before[key]


def test_removing_and_undoing(project):
    session, _, _ = project
    session.regroup("one")
    session.remove_grouping("one")
    assert session.groupings() == []
    assert session.undo().kind == "grouping"
    assert [one.name for one in session.groupings()] == ["one"]
    session.undo()
    assert session.groupings() == []
    assert session.regroup("one").name == "one"


def test_rows_that_are_added_later_are_left_out_and_do_not_stop_the_next_grouping(project, tmp_path):
    session, (_, second, _), _ = project
    session.regroup("one")
    new = session.add_rows(np.array([[0.0, 8.0, 0.0], [12.0, 0.0, 5.0]]))
    labels = session.grouping_labels("one")
    assert len(labels) == 48 and not set(new) & set(labels)
    assert same_partition(as_list(labels), second)
    assert len(session.grouping_labels(session.regroup("two").name)) == 50
    session.export("groupings", tmp_path / "all.csv")
    records = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert list(records[0]) == ["id", "cluster", "one", "two"]
    assert [record["one"] for record in records[-2:]] == ["-1", "-1"]


def test_wrong_input_is_refused_and_leaves_no_event(project, tmp_path):
    session, _, _ = project
    session.regroup("one", n_clusters=3)
    version = session.version
    for call, message in (
        (lambda: session.regroup("one"), "There is a grouping 'one' already. Choose another name, or remove it"),
        (lambda: session.regroup(" "), "name=' ': expected 1 to 200 characters"),
        (lambda: session.regroup(7), "name=7: expected text"),
        (lambda: session.regroup(method="pck-means"), "an alternative clusterer is needed: one of cond-ens"),
        (lambda: session.regroup(n_clusters=0), "n_clusters=0 in CondEns: expected an integer >= 1"),
        (lambda: session.remove_grouping("two"), "There is no grouping 'two'. There are 'one'"),
        (lambda: session.grouping_labels("two"), "There is no grouping 'two'. There are 'one'"),
        (lambda: session.regroup(annotator=""), "annotator=''"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
    with pytest.raises(DataError, match="n_clusters=99, but X has n_samples=48 rows"):
        session.regroup(n_clusters=99)
    assert session.version == version
    with Session.create(tmp_path / "one.clew", np.zeros((4, 1)), n_clusters=1) as small:
        with pytest.raises(DataError, match="fewer than two clusters, so every grouping is unlike them"):
            small.regroup()
        with pytest.raises(ParameterError, match=r"There is no grouping 'x'\. There is none yet"):
            small.grouping_labels("x")
    records = {"name": np.array(["ann", "anne", "bob", "bobb"], dtype=object)}
    with (
        Session.create(tmp_path / "records.clew", records, groups="small") as many,
        pytest.raises(ParameterError, match="The project has small groups, and another grouping needs few large"),
    ):
        many.regroup()
