"""Clients that send nothing, too little or too much: they are cut off, and nobody else notices."""

import contextlib
import socket
import time
from urllib.parse import urlsplit

import httpx2
import pytest

from clew.web import _connections, _security, create_app
from tests.web.conftest import TOKEN
from tests.web.servers import running

HEAD = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def address(session):
    with running(create_app(session, token=TOKEN)) as address:
        yield address


@pytest.fixture
def connect(address):
    """Open a connection and send something; all are closed at the end."""
    where = urlsplit(address)
    with contextlib.ExitStack() as stack:

        def connected(data=b""):
            connection = stack.enter_context(socket.create_connection((where.hostname, where.port), timeout=30))
            connection.sendall(data)
            return connection

        yield connected


def heard(connection):
    """What the server sends until it hangs up."""
    pieces = []
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    return b"".join(pieces)


def is_open(connection):
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def test_of_many_idle_connections_the_oldest_give_way(address, connect, monkeypatch):
    monkeypatch.setattr(_connections, "MOST_WAITING", 20)
    monkeypatch.setattr(_connections, "HEADER_SECONDS", 600.0)  # so that none is closed for its age on a busy machine
    crowd = [connect(HEAD if place % 2 else b"") for place in range(60)]
    assert httpx2.get(f"{address}/api/progress", headers=BEARER).status_code == 200
    assert sum(map(is_open, crowd)) <= 20
    assert is_open(crowd[-1]) and not is_open(crowd[0])


def test_an_event_stream_outlives_a_crowd_of_idle_connections(session, address, connect, monkeypatch):
    monkeypatch.setattr(_connections, "MOST_WAITING", 5)
    monkeypatch.setattr(_connections, "HEADER_SECONDS", 0.2)
    with httpx2.stream("GET", f"{address}/api/events", headers=BEARER, timeout=30) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("id: ")
        crowd = [connect() for _ in range(20)]
        assert heard(crowd[-1]) == b""
        session.import_answers([("a", "e", "same")])
        assert any('"answered": 1' in line for line in lines)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HT", id="half an address"),
        pytest.param(HEAD, id="half the headers"),
        pytest.param(HEAD + b"\r\n" + HEAD, id="one request and half of another"),
        pytest.param(b"POST /api/undo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n", id="no body"),
    ],
)
def test_data_that_drips_in_does_not_keep_a_connection_open(connect, monkeypatch, before):
    monkeypatch.setattr(_connections, "HEADER_SECONDS", 0.5)
    connection, start = connect(before), time.monotonic()
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < start + 20:
            connection.sendall(b"x")
            time.sleep(0.1)
    assert time.monotonic() < start + 10


def test_a_connection_is_kept_for_the_next_request(connect, monkeypatch):
    monkeypatch.setattr(_connections, "HEADER_SECONDS", 2.0)
    connection = connect()
    for _ in range(4):
        time.sleep(0.6)
        connection.sendall(HEAD + b"\r\n")
        response = b""
        while not response.endswith(b"}"):  # headers and body may arrive apart
            response += connection.recv(1 << 16)
        assert response.startswith(b"HTTP/1.1 200")


def test_requests_sent_ahead_are_all_answered(connect):
    last = HEAD + b"Connection: close\r\n\r\n"
    assert heard(connect((HEAD + b"\r\n") * 5 + last)).count(b"HTTP/1.1 200") == 6


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(HEAD + b"Cookie: " + b"x" * (1 << 20), id="one header without end"),
        pytest.param(HEAD + b"".join(b"A%d: b\r\n" % one for one in range(100_000)), id="headers without end"),
        pytest.param(HEAD + b"Cookie: " + b"x" * 33_000 + b"\r\n\r\n", id="one header"),
        pytest.param(HEAD + b"A: b\r\n" * 20_000 + b"\r\n", id="many headers"),
        pytest.param(b"GET /" + b"x" * (1 << 20), id="an address without end"),
        pytest.param(
            HEAD.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 20_000,
            id="headers after the body",
        ),
    ],
)
def test_large_headers_are_refused(connect, data):
    connection = connect()
    with contextlib.suppress(ConnectionError):
        connection.sendall(data)
    said = heard(connection)
    assert b"431" in said or not said  # a client that goes on sending may miss what it is told


def test_headers_within_the_limit_pass(address):
    cookies = "; ".join(f"other-{one}={'x' * 140}" for one in range(200))
    assert len(cookies) > 30_000
    assert httpx2.get(f"{address}/api/health", headers={"Cookie": cookies}).status_code == 200


def test_a_body_that_does_not_arrive_is_given_up(connect, monkeypatch):
    monkeypatch.setattr(_security, "BODY_SECONDS", 0.2)
    head = f"POST /api/undo HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n"
    said = heard(connect(f"{head}Content-Length: 99\r\n\r\n".encode()))
    assert said.startswith(b"HTTP/1.1 408") and b"did not arrive" in said


def test_web_sockets_are_refused(connect):
    said = heard(connect(HEAD + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"))
    assert said.startswith(b"HTTP/1.1 200")  # the request is answered as if it were a usual one
