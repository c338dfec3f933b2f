"""Other ways to group the rows over HTTP."""

import csv

from clew import Session


def test_another_grouping_is_made_listed_exported_and_removed(client, session, tmp_path):
    before = client.get("/api/labels").json()
    assert client.get("/api/groupings").json() == []
    made = client.post("/api/groupings", json={"name": "by place", "n_clusters": 2, "annotator": "ann"})
    assert made.status_code == 201, made.text
    found = made.json()
    assert (found["name"], found["annotator"], len(found["groups"]), found["clusters"]) == (
        "by place",
        "ann",
        2,
        [0, 1, 2],
    )
    assert sum(group["size"] for group in found["groups"]) == sum(map(sum, found["overlap"])) == 12
    assert client.get("/api/groupings").json() == [found]
    labels = client.get("/api/groupings/labels", params={"name": "by place"}).json()
    assert set(labels) == set("abcdefghijkl") and len(set(labels.values())) == 2
    assert client.get("/api/labels").json() == before
    rows = csv.DictReader(client.get("/api/export/groupings").text.splitlines())
    assert {row["id"]: int(row["by place"]) for row in rows} == labels
    with Session.open(tmp_path / "toy.clew") as other:
        assert other.grouping_labels("by place") == labels
    assert client.get("/api/history").json()[0]["kind"] == "grouping"
    assert client.post("/api/groupings/remove", json={"name": "by place"}).json() == []
    assert client.post("/api/undo", json={}).json()["undone"]["kind"] == "grouping"
    assert client.get("/api/groupings").json() == [found]


def test_what_cannot_be_grouped_is_refused_with_a_sentence(client):
    client.post("/api/groupings", json={"name": "one"})
    for body, status, said in (
        ({"name": "one"}, 400, "There is a grouping 'one' already"),
        ({"n_clusters": 1}, 422, "n_clusters"),
        ({"n_clusters": 500}, 400, "n_clusters=500, but X has n_samples=12 rows"),
        ({"name": "a\nb"}, 422, "control characters"),
        ({"names": "x"}, 422, "names"),
    ):
        refused = client.post("/api/groupings", json=body)
        assert refused.status_code == status, refused.text
        assert said in refused.json()["error"] + str(refused.json().get("field"))
    assert client.post("/api/groupings/remove", json={"name": "two"}).status_code == 404
    assert client.get("/api/groupings/labels", params={"name": "two"}).status_code == 404
