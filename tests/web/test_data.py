"""Rows, files in and out, and settings over HTTP."""

import csv
import io
import json

import pytest

from clew import Session
from clew.web import _security, create_app
from tests.web.conftest import TOKEN


def test_rows_as_cards_show_them(client):
    client.get("/api/labels")
    rows = client.get("/api/rows", params={"ids": ["a", "e"]}).json()
    assert rows[0] == {
        "id": "a",
        "values": {"name": "a", "x": 0, "y": 0, "note": "=1+1"},
        "missing": [],
        "dates": {},
        "cluster": 0,
        "probability": None,
    }
    assert rows[1]["cluster"] == 1
    assert client.get("/api/rows?ids=nobody").status_code == 404
    assert client.get("/api/rows").status_code == 422
    assert client.get("/api/rows", params={"ids": ["a"] * 501}).status_code == 422


def test_numbers_that_json_lacks_are_null(tmp_path):
    rows = [[float("inf"), 1.0], [2.0, 3.0]]
    with Session.create(tmp_path / "odd.clew", rows[1:] * 2) as session:
        from clew.web._views import plain

        assert plain({"x": rows[0], "y": float("nan"), "z": {1: (b"raw",)}}) == {
            "x": [None, 1.0], "y": None, "z": {"1": ["b'raw'"]},
        }  # fmt: skip
        assert plain(session.progress())["answered"] == 0


def test_rows_are_added_from_a_file_and_join_a_cluster(client):
    before = client.get("/api/labels").json()
    response = client.post("/api/rows?name=new.csv&annotator=ann", content="name,x,y,note\nm,0.5,0.5,new\n")
    assert (response.status_code, response.json()) == (201, {"count": 1, "ids": ["m"]})
    after = client.get("/api/labels").json()
    assert {row: after[row] for row in before} == before and after["m"] == after["a"]


def test_rows_appended_to_the_data_are_taken_in(client, table):
    assert client.post("/api/rows/rescan").json() == {"count": 0, "ids": []}
    table.write_text(table.read_text() + "m,0.5,0.5,new\n")
    assert client.post("/api/rows/rescan").json() == {"count": 1, "ids": ["m"]}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("new.csv", "name,x\nm,1\n", "new.csv"),
        ("new.csv", "name,x,y,note\na,1,1,again\n", "'a'"),
        ("new.csv", "", "new.csv"),
        ("new.exe", "name,x,y,note\nm,1,1,new\n", "ending"),
        ("new.parquet", "no parquet", "new.parquet"),
        ("../../new.csv", "name,x\nm,1\n", "../../new.csv"),
    ],
)
def test_files_that_do_not_fit(client, session, name, content, sentence):
    before = session.version
    response = client.post("/api/rows", params={"name": name}, content=content)
    assert response.status_code == 400 and sentence in response.json()["error"]
    assert "clew-" not in response.json()["error"] and "upload" not in response.json()["error"]
    assert session.version == before


def test_uploads_have_a_larger_limit_of_their_own(client, monkeypatch):
    comment = b"x" * 100_000
    content = b"id_1,id_2,answer,comment\n" + b"".join(b"a,%c,same,%b\n" % (row, comment) for row in b"bcdefghijkl")
    assert len(content) > _security.MOST_BYTES
    assert client.post("/api/answers/import?name=many.csv", content=content).json() == {"count": 11}
    monkeypatch.setattr(_security, "MOST_UPLOADED", 1 << 20)
    assert client.post("/api/answers/import?name=many.csv", content=content).status_code == 413
    assert client.post("/api/answers/import?name=many.csv", content=iter([content])).status_code == 413


def test_answers_are_imported_once(client):
    content = "id_1,id_2,answer,annotator\na,b,same,bob\na,e,no,\n"
    for count in (2, 0):
        response = client.post("/api/answers/import?name=pairs.csv&annotator=ann", content=content)
        assert (response.status_code, response.json()) == (201, {"count": count})
    assert {one["annotator"] for one in client.get("/api/answers").json()} == {"ann", "bob"}


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("what", ["labels", "answers", "constraints"])
def test_exports(client, session, what, format):
    session.import_answers([("a", "b", "same")], annotator="ann")
    response = client.get(f"/api/export/{what}?format={format}")
    assert response.status_code == 200 and response.content
    assert response.headers["content-disposition"] == f'attachment; filename="{what}.{format}"'
    if format == "jsonl":
        first = json.loads(response.text.splitlines()[0])
        assert first["id"] == "a" if what == "labels" else (first["id_1"], first["answer"]) == ("a", "same")
    if format == "parquet":
        assert response.content[:4] == b"PAR1"


def test_exports_cannot_be_run_by_a_spreadsheet(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("name,x\n=HYPERLINK(1),0\n@sum,1\nplain,9\n+1+1,8\n")
    with Session.create(tmp_path / "toy.clew", path, id_column="name", n_clusters=2) as session:
        from starlette.testclient import TestClient

        session.import_answers(
            [
                (
                    "=HYPERLINK(1)",
                    "@sum",
                    "same",
                )
            ],
            annotator="=cmd()",
        )
        session.fit()
        session.name_cluster(0, "-1+1")
        client = TestClient(
            create_app(session, token=TOKEN), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        for what in ("labels", "answers", "constraints"):
            cells = [cell for row in csv.reader(io.StringIO(client.get(f"/api/export/{what}").text)) for cell in row]
            assert "'=HYPERLINK(1)" in cells
            assert not [cell for cell in cells if cell[:1] in "=+@\t\r" and cell[:1]]


def test_unknown_exports(client):
    assert client.get("/api/export/passwords").status_code == 422
    assert client.get("/api/export/labels?format=exe").status_code == 422


@pytest.fixture
def pictures(tmp_path):
    """Rows whose cells name files, some of which are none of anybody's business."""
    folder = tmp_path / "project"
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "one.png").write_bytes(b"\x89PNG")
    (folder / "page.svg").write_text("<svg onload='alert(1)'/>")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    names = [
        "images/one.png",
        "../secret.png",
        str(tmp_path / "secret.png"),
        "link.png",
        "page.svg",
        "images",
        "gone.png",
        "",
    ]
    table = folder / "data.csv"
    table.write_text("name,x,image\n" + "".join(f"r{row},{row},{name}\n" for row, name in enumerate(names)))
    with Session.create(folder / "p.clew", table, id_column="name", columns=["x"], n_clusters=2) as session:
        yield session


def test_files_of_cards_come_from_the_folder_of_the_data_only(pictures):
    from starlette.testclient import TestClient

    session = pictures
    headers = {"Authorization": f"Bearer {TOKEN}"}
    client = TestClient(create_app(session, token=TOKEN), base_url="http://127.0.0.1", headers=headers)

    def get(row, column="image"):
        return client.get("/api/rows/file", params={"id": row, "column": column})

    shown = get("r0")
    assert (shown.status_code, shown.content, shown.headers["content-type"]) == (200, b"\x89PNG", "image/png")
    assert [get(f"r{row}").status_code for row in range(1, 8)] == [403, 403, 403, 404, 404, 404, 404]
    assert get("r0", "x").status_code == get("r0", "nothing").status_code == get("nobody").status_code == 404


def test_settings(client):
    found = client.get("/api/settings").json()
    assert found["project"] == "toy" and found["rows"] == 12 and found["changes"] is None
    assert found["has_small_groups"] is False
    assert found["columns"] == ["name", "x", "y", "note"] and found["settings"]["n_clusters"] == 3
    assert "min-max" in found["choices"]["strategy"] and "pck-means" in found["choices"]["method"]
    changed = client.put("/api/settings", json={"n_clusters": None, "strategy": "min-max", "annotator": "ann"})
    assert changed.status_code == 200
    assert changed.json()["settings"]["n_clusters"] is None and changed.json()["settings"]["strategy"] == "min-max"
    assert changed.json()["settings"]["overlap"] == 1
    assert client.put("/api/settings", json={}).json() == changed.json()
    assert client.get("/api/history?limit=1").json()[0]["annotator"] == "ann"


@pytest.mark.parametrize(
    ("body", "status"),
    [({"n_clusters": 0}, 422), ({"method": "magic"}, 400), ({"strategy": "magic"}, 400), ({"metric": "taxi"}, 422),
     ({"colour": "red"}, 422), ({"check_share": 0.5}, 422)],
)  # fmt: skip
def test_settings_that_do_not_fit(client, body, status):
    assert client.put("/api/settings", json=body).status_code == status
