"""A session of twelve rows, its application, and a client that has the token."""

import pytest
from starlette.testclient import TestClient

from clew import Session
from clew.web import create_app

TOKEN = "a-token-for-tests"
CORNERS = {"abcd": (0, 0), "efgh": (10, 0), "ijkl": (0, 10)}


@pytest.fixture(autouse=True)
def state_home(tmp_path, monkeypatch):
    """Tokens of tests are not kept among the user's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "clew"


@pytest.fixture
def table(tmp_path):
    """Three tight groups of four rows, named a to l; some cells are not harmless."""
    lines = ["name,x,y,note"]
    for names, (x, y) in CORNERS.items():
        lines += [f"{name},{x + place % 2},{y + place // 2},=1+1" for place, name in enumerate(names)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def session(tmp_path, table):
    with Session.create(tmp_path / "toy.clew", table, id_column="name", columns=["x", "y"], n_clusters=3) as session:
        yield session


@pytest.fixture
def client(session):
    """Fits run when a test asks for them, not in the background: `test_events.py` and `test_serve.py` show that."""
    app = create_app(session, token=TOKEN)
    yield TestClient(app, base_url="http://127.0.0.1:8765", headers={"Authorization": f"Bearer {TOKEN}"})
    app.state.worker.close()


@pytest.fixture
def stranger(client):
    """A client of the same server without the token, which follows no redirects."""
    return TestClient(client.app, base_url="http://127.0.0.1:8765", follow_redirects=False)


def truth(left, right):
    """What somebody who knows the groups answers."""
    return "same" if any(left in names and right in names for names in CORNERS) else "different"


@pytest.fixture
def answered(client):
    """Answer questions until nothing is left; gives what the server said."""
    told = []
    while (question := client.post("/api/questions/next", json={"annotator": "ann"}).json()) is not None:
        said = truth(question["left"], question["right"])
        body = {"question": question["id"], "answer": said, "annotator": "ann", "seconds": 1.5}
        told.append(client.post("/api/answers", json=body).json())
    return told
