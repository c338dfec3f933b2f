"""Clusters, corrections and the map over HTTP."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from clew import Session
from clew.exceptions import ParameterError
from clew.web import _embedding
from clew.web import _views as show
from clew.web._embedding import NeighbourMap, flat


def groups(labels):
    """The clusters as sets of row names."""
    found = {}
    for row, cluster in labels.items():
        found.setdefault(cluster, set()).add(row)
    return found


def test_clusters_have_names_sizes_and_faces(client):
    clusters = client.get("/api/clusters").json()
    assert [(one["id"], one["size"], one["name"]) for one in clusters] == [(0, 4, None), (1, 4, None), (2, 4, None)]
    members = client.get("/api/clusters/1/rows").json()
    assert members[0] == clusters[1]["typical"][0] and len(members) == 4
    assert client.get("/api/clusters/1/rows?offset=1&limit=2").json() == members[1:3]
    assert client.get("/api/clusters/9/rows").status_code == 404
    named = client.patch("/api/clusters/1", json={"name": "cars"})
    assert named.status_code == 200 and named.json()[1]["name"] == "cars"
    assert client.get("/api/clusters?wait=false").json()[1]["name"] == "cars"
    assert client.patch("/api/clusters/9", json={"name": "cars"}).status_code == 404


def test_clusters_have_the_texts_of_a_typical_row_as_a_title_and_their_smallest_probability(tmp_path):
    rows = [
        {"id": 1, "list": "crm", "name": "Ann Meyer", "city": "Bonn"},
        {"id": 2, "list": "shop", "name": "Anne Meyer", "city": "unknown"},
        {"id": 3, "list": "crm", "name": "Bob Smith", "city": "Rome"},
    ]
    with Session.create(tmp_path / "p.clew", rows, id_column="id", groups="small", source="list") as session:
        session.import_answers([(1, 2, "same")])
        session.fit()
        pair, single = show.clusters(session)
    assert pair.title in ("Ann Meyer · Bonn", "Anne Meyer") and single.title == "Bob Smith · Rome"
    assert 0.5 < pair.probability <= 1 and single.probability is None


def test_labels_follow_the_answers_when_they_are_asked_to(client, session):
    before = client.get("/api/labels").json()
    session.import_answers([("a", "e", "same")])
    after = client.get("/api/labels").json()
    assert before["a"] != before["e"] and after["a"] == after["e"]


def test_a_page_shows_the_clusters_of_an_earlier_server_while_a_fit_runs(client, session, monkeypatch):
    earlier = {str(row): cluster for row, cluster in session.labels().items()}
    session.import_answers([("a", "e", "same")])
    fits = client.app.state.worker.fits
    monkeypatch.setattr(fits, "fresh", lambda: pytest.fail("a fit was waited for"))
    assert fits.count == 0 and session.is_stale
    assert client.get("/api/labels?wait=false").json() == earlier
    assert len(client.get("/api/clusters?wait=false").json()) == 3


CORRECTIONS = [
    ({"kind": "merge", "cluster": 0, "other": 1}, lambda after: after["a"] == after["e"]),
    ({"kind": "split", "cluster": 0, "rows": ["a", "b"]}, lambda after: after["a"] == after["b"] != after["c"]),
    ({"kind": "move", "row": "a", "cluster": 1}, lambda after: after["a"] == after["e"] != after["b"]),
    ({"kind": "move", "row": "a", "cluster": None}, lambda after: after["a"] != 0),
    ({"kind": "never", "clusters": [0, 1]}, lambda after: after["a"] != after["e"]),
    ({"kind": "never", "rows": ["a", "b"]}, lambda after: after["a"] != after["b"]),
]


@pytest.mark.parametrize(("body", "holds"), CORRECTIONS)
def test_a_correction_does_what_its_preview_says_and_holds(client, body, holds):
    client.get("/api/labels")
    before = client.get("/api/history").json()
    preview = client.post("/api/corrections/preview", json=body)
    assert preview.status_code == 200 and client.get("/api/history").json() == before
    done = client.post("/api/corrections", json=body | {"annotator": "ann"})
    assert done.status_code == 201
    assert done.json() | {"id": None} == preview.json() and done.json()["id"] == before[0]["seq"] + 1
    labels = client.get("/api/labels").json()
    assert holds(labels)
    for change in done.json()["changes"]:
        assert change["count"] == len(change["rows"]) and {labels[row] for row in change["rows"]} == {change["after"]}


def test_a_correction_against_an_answer_is_kept_as_a_conflict(client, session):
    session.import_answers([("a", "e", "different")], annotator="ann")
    done = client.post("/api/corrections", json={"kind": "merge", "cluster": 0, "other": 1}).json()
    assert done["conflict"]["chain"] and done["changes"] == []
    assert [one["id"] for one in client.get("/api/conflicts").json()] == [done["id"]]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "merge", "cluster": 0}, 422),
        ({"kind": "merge", "cluster": 0, "other": 0}, 400),
        ({"kind": "merge", "cluster": 0, "other": 77}, 404),
        ({"kind": "merge", "cluster": 0, "other": 1, "row": "a"}, 422),
        ({"kind": "split", "cluster": 0, "rows": []}, 422),
        ({"kind": "split", "cluster": 0, "rows": ["e"]}, 400),
        ({"kind": "move", "cluster": 0}, 422),
        ({"kind": "move", "row": "nobody", "cluster": 0}, 404),
        ({"kind": "never"}, 422),
        ({"kind": "never", "clusters": [0, 1], "rows": ["a", "b"]}, 422),
        ({"kind": "never", "rows": ["a"]}, 400),
        ({"kind": "swap"}, 422),
    ],
)
def test_corrections_that_do_not_fit(client, body, status):
    for path in ("/api/corrections", "/api/corrections/preview"):
        response = client.post(path, json=body)
        assert response.status_code == status and response.json()["error"].endswith(".")


def test_a_fit_that_fails_is_told_and_not_tried_again(client, session, monkeypatch):
    client.get("/api/labels")
    fits = client.app.state.worker.fits

    def fail(*_):
        raise ParameterError("It cannot be done.")

    monkeypatch.setattr(type(session.plan_fit()), "run", fail)
    session.import_answers([("a", "e", "same")])
    refused = client.get("/api/labels")
    assert (refused.status_code, refused.json()["error"]) == (400, "It cannot be done.")
    assert client.get("/api/progress").json()["problem"] == "It cannot be done."
    assert client.get("/api/labels?wait=false").status_code == 200
    monkeypatch.undo()
    fits._rest_until, count = 0.0, fits.count
    fits.keep_up()
    assert fits.count == count  # nothing was said since it failed
    session.import_answers([("a", "i", "different")])
    fits.keep_up()
    assert fits.count == count + 1 and fits.problem is None and not session.is_stale


def test_a_bug_in_a_fit_does_not_end_the_fits(client, session, monkeypatch, caplog):
    fits = client.app.state.worker.fits

    def fail(*_):
        raise RuntimeError("secret")

    monkeypatch.setattr(type(session.plan_fit()), "run", fail)
    fits.keep_up()
    assert "RuntimeError: secret" in caplog.text
    assert "bug" in client.get("/api/progress").json()["problem"]
    monkeypatch.undo()
    assert client.get("/api/labels").status_code == 200
    assert client.get("/api/progress").json()["problem"] is None


def test_the_map_has_a_point_a_cluster_and_an_id_for_each_row(client):
    points = client.get("/api/map")
    places = np.frombuffer(points.content, "<f4").reshape(-1, 2)
    clusters = client.get("/api/map/clusters")
    ids = client.get("/api/map/ids")
    assert ids.json() == list("abcdefghijkl") and places.shape == (12, 2) and np.abs(places).max() == 1
    labels = client.get("/api/labels").json()
    assert np.frombuffer(clusters.content, "<i4").tolist() == [labels[row] for row in ids.json()]
    assert len({answer.headers["clew-rows"] for answer in (points, clusters, ids)}) == 1
    new = "name,x,y,note\nm,20,20,new\n"
    assert client.post("/api/rows?name=new.csv", content=new).status_code == 201
    assert client.get("/api/map").headers["clew-rows"] != points.headers["clew-rows"]
    assert client.get("/api/map/ids").json()[-1] == "m"


def test_a_part_of_the_map_has_the_rows_in_it(client):
    places = np.frombuffer(client.get("/api/map").content, "<f4").reshape(-1, 2)
    box = [*np.median(places, axis=0).tolist(), 1, 1]
    some = "&".join(f"box={one}" for one in box)
    inside = ((places >= box[:2]) & (places <= box[2:])).all(axis=1)
    assert 0 < inside.sum() < len(places)
    np.testing.assert_array_equal(np.frombuffer(client.get(f"/api/map?{some}").content, "<f4"), places[inside].ravel())
    ids = client.get("/api/map/ids").json()
    assert client.get(f"/api/map/ids?{some}").json() == [ids[row] for row in np.flatnonzero(inside)]
    labels = client.get("/api/labels").json()
    clusters = np.frombuffer(client.get(f"/api/map/clusters?{some}").content, "<i4").tolist()
    assert clusters == [labels[ids[row]] for row in np.flatnonzero(inside)]
    assert client.get("/api/map?box=0&box=1").status_code == 422
    assert client.get("/api/map?box=0&box=0&box=1&box=inf").status_code == 422


def test_tiles_of_the_map_count_all_rows(client):
    content = client.get("/api/map/tiles/0/0/0").content
    n = len(content) // 10
    counts, clusters = np.frombuffer(content, "<u4", n), np.frombuffer(content, "<i4", n, 4 * n)
    assert counts.sum() == 12
    assert set(clusters.tolist()) <= set(client.get("/api/labels").json().values())
    lost = client.get("/api/map/tiles/1/0/2")
    assert lost.status_code == 404 and "Level 1 of the map has 2 columns" in lost.json()["error"]
    assert client.get("/api/map/tiles/17/0/0").status_code == 422
    first = client.get("/api/map/tiles/0/0/0?embedding=neighbours")
    assert first.status_code in (200, 202)


@pytest.mark.parametrize(
    "X",
    [
        np.arange(12.0).reshape(6, 2),
        np.arange(6.0).reshape(6, 1),
        np.zeros((3, 5)),
        np.ones((1, 4)),
        np.random.default_rng(0).normal(size=(50, 7)),
        sparse.random(40, 30, 0.2, format="csr", random_state=0),
        sparse.csr_matrix(np.eye(3, 1)),
    ],
    ids=["plane", "line", "one place", "one row", "dense", "sparse", "sparse line"],
)
def test_every_table_can_be_drawn(X):
    points = flat(X)
    assert points.shape == (X.shape[0], 2) and points.dtype == np.dtype("<f4")
    assert np.isfinite(points).all() and np.abs(points).max() <= 1


def test_directions_on_the_map_are_those_of_a_plane():
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    points = flat(X).astype(float)
    assert np.allclose(points - points[0], (X - X[0]) / np.abs(X - X.mean(axis=0)).max(), atol=1e-6)  # float32


@pytest.mark.slow
def test_a_map_of_neighbours_keeps_neighbours_that_principal_components_lose(monkeypatch):
    rng = np.random.default_rng(0)
    group = np.arange(240) % 8
    X = 6.0 * np.eye(8)[group] + rng.normal(size=(240, 8))  # eight corners: no plane shows them apart

    def pure(points):
        near = NearestNeighbors(n_neighbors=6).fit(points).kneighbors(points, return_distance=False)[:, 1:]
        return (group[near] == group[:, None]).mean()

    plan = NeighbourMap.of(X, 0)
    points = plan.run()
    assert points.shape == (240, 2) and points.dtype == np.float32 and np.abs(points).max() == 1
    assert pure(points) > 0.95 > 0.8 > pure(flat(X))
    assert np.array_equal(points, plan.run())
    monkeypatch.setattr(_embedding, "_MOST_ROWS", 160)  # the other rows are placed among these
    assert pure(plan.run()) > 0.95
    monkeypatch.setattr(_embedding, "find_spec", lambda _: None)
    assert pure(plan.run()) > 0.95


@pytest.mark.parametrize(
    "X", [np.eye(1), np.eye(2), np.eye(3), np.eye(4), np.eye(7), np.zeros((10, 3)), np.arange(50.0)[:, None],
          sparse.eye_array(60, format="csr")],
    ids=lambda X: f"{X.shape[0]}x{X.shape[1]}",
)  # fmt: skip
def test_rows_of_any_kind_have_a_map_of_neighbours(X):
    points = NeighbourMap.of(X, 0).run()
    assert points.shape == (X.shape[0], 2) and np.isfinite(points).all()


def test_the_map_of_neighbours_is_made_in_the_background(client):
    first = client.get("/api/map?embedding=neighbours")
    assert (first.status_code, first.content) == (202, b"")
    client.app.state.worker.jobs.settle()
    found = client.get("/api/map?embedding=neighbours")
    assert found.status_code == 200, found.text
    assert np.frombuffer(found.content, "<f4").shape == (24,)
    assert found.headers["Clew-Rows"] == client.get("/api/map").headers["Clew-Rows"]
    assert client.get("/api/map?embedding=spiral").status_code == 422
