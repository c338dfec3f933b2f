"""Whoever listens hears of answers and of clusters."""

import json
import time

import httpx2
import pytest

from clew.web import _routes_asking, create_app
from tests.web.conftest import TOKEN
from tests.web.servers import running


def heard(lines):
    """Events of a stream, one after the other."""
    event = {}
    for line in lines:
        key, _, value = line.partition(": ")
        if key:
            event[key] = value
        elif "event" in event:
            yield event["event"], json.loads(event["data"]), int(event["id"])
            event = {}


@pytest.fixture
def address(session):
    with running(create_app(session, token=TOKEN)) as address:
        yield address


def test_progress_and_clusters_are_told_as_they_come(session, address):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.stream("GET", f"{address}/api/events", headers=headers, timeout=60) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = heard(stream.iter_lines())
        kind, first, number = next(events)
        assert kind == "progress" and first["answered"] == 0 and number == first["version"]
        session.import_answers([("a", "e", "same")])
        seen = set()
        for kind, data, _ in events:
            seen.add(kind)
            if kind == "progress" and data["answered"] == 1 and not data["stale"] and "clusters" in seen:
                break
    assert session.labels(refit=False)["a"] == session.labels(refit=False)["e"]


def test_a_stream_does_not_keep_the_server_from_stopping(session):
    app = create_app(session, token=TOKEN)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with running(app) as address:
        stream = httpx2.Client().stream("GET", f"{address}/api/events", headers=headers, timeout=60)
        opened = stream.__enter__()
        lines = opened.iter_lines()
        assert next(lines).startswith("id: ")
    assert "event: progress" in list(lines)  # and then it ended
    stream.__exit__(None, None, None)


def test_streams_have_a_limit_and_make_room_when_they_end(address, monkeypatch):
    monkeypatch.setattr(_routes_asking, "MOST_STREAMS", 1)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.stream("GET", f"{address}/api/events", headers=headers, timeout=60) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("id: ")
        refused = httpx2.get(f"{address}/api/events", headers=headers, timeout=60)
        assert refused.status_code == 429 and "event streams" in refused.json()["error"]
    for _ in range(100):
        with httpx2.stream("GET", f"{address}/api/events", headers=headers, timeout=60) as again:
            if again.status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError("the stream that ended still counts")
