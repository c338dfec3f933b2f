"""A column of sources: a cluster has at most one row of each, whatever is chosen, added or moved."""

from __future__ import annotations

import pandas as pd
import pytest

from clew import Session
from clew.exceptions import DataError
from tests.session.helpers import blobs

SOURCES = ["A", "B", "C", ""]


def table(n=24):
    X, _ = blobs(n=n)
    return pd.DataFrame({"id": [f"r{row}" for row in range(n)], "x": X[:, 0], "y": X[:, 1], "list": (SOURCES * n)[:n]})


def clashes(labels, data):
    """Pairs of cluster and source that occur twice."""
    source_of = data.set_index("id")["list"]
    found = [(cluster, source_of[row]) for row, cluster in labels.items() if source_of[row]]
    return len(found) - len(set(found))


@pytest.mark.parametrize("method", [None, "pck-means"])
@pytest.mark.parametrize("n_clusters", [None, 10])
def test_sources_hold_for_fits_new_rows_and_corrections(tmp_path, method, n_clusters):
    data = table()
    with Session.create(
        tmp_path / "p.clew", data, id_column="id", source="list", method=method, n_clusters=n_clusters
    ) as session:
        labels = session.labels()
        assert clashes(labels, data) == 0
        new = pd.DataFrame(
            {"id": ["n1", "n2", "n3"], "x": [data.x[0]] * 3, "y": [data.y[0]] * 3, "list": ["A", "A", ""]}
        )
        session.add_rows(new)
        everyone = pd.concat([data, new])
        assert clashes(session.labels(refit=False), everyone) == 0
        assert clashes(session.fit(), everyone) == 0
        session.move("r4", session.cluster_of("r0"))  # both are of A
        assert clashes(session.labels(refit=False), everyone) == 0
        assert clashes(session.fit(), everyone) == 0


def test_a_new_row_joins_the_nearest_cluster_without_its_source(tmp_path):
    data = pd.DataFrame({"id": list("abcd"), "x": [0.0, 0.1, 5.0, 9.0], "list": ["A", "B", "B", "A"]})
    apart = {"must_link": [("a", "b")], "cannot_link": [("a", "c"), ("c", "d"), ("a", "d")]}
    with Session.create(tmp_path / "p.clew", data, id_column="id", source="list", constraints=apart) as session:
        labels = session.labels()
        session.add_rows(pd.DataFrame({"id": ["e", "f"], "x": [0.0, 0.0], "list": ["A", ""]}))
        after = session.labels(refit=False)
        assert (after["e"], after["f"]) == (labels["c"], labels["a"])


def test_a_conflict_with_a_source_says_so(tmp_path):
    with Session.create(tmp_path / "p.clew", table(), id_column="id", source="list", n_clusters=10) as session:
        session.import_answers([("r0", "r4", "same")], annotator="ann")
        assert 'r0 are different (both are from the source "A")' in session.conflicts()[0].message


def test_a_lost_column_of_sources_is_an_error(tmp_path):
    data, path = table(), tmp_path / "data.csv"
    data.to_csv(path, index=False)
    Session.create(tmp_path / "p.clew", path, id_column="id", source="list", n_clusters=10).close()
    data.drop(columns="list").to_csv(path, index=False)
    with Session.open(tmp_path / "p.clew") as session, pytest.raises(DataError, match='has no column "list" any more'):
        session.labels()
    data.to_csv(path, index=False)
    with Session.open(tmp_path / "p.clew") as session:
        assert clashes(session.labels(), data) == 0
