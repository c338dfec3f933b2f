"""Requests without the token, from another site, for another host name, or too large requests are refused."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from clew.exceptions import ParameterError
from clew.web import _security, create_app, serve
from tests.helpers import examples
from tests.web.conftest import TOKEN

READS = ["/", "/index.html", "/api/progress", "/api/openapi.json", "/api/labels", "/api/no-such-route", "/docs"]


@pytest.mark.parametrize("path", READS)
def test_everything_needs_the_token(stranger, path):
    response = stranger.get(path)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in response.text


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN, "Bearer \xff"],
)
def test_no_other_word_opens(stranger, header):
    assert stranger.get("/api/progress", headers={"Authorization": header.encode("latin-1")}).status_code == 401


def test_only_the_sign_of_life_is_open(stranger):
    assert stranger.get("/api/health").json() == {"status": "ok"}


def test_the_token_in_the_address_becomes_a_cookie(stranger):
    response = stranger.get(f"/?token={TOKEN}")
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Secure" not in cookie and TOKEN not in cookie
    assert stranger.get("/").status_code == 200
    assert stranger.get("/api/progress").json()["answered"] == 0


def test_a_wrong_token_in_the_address_says_what_to_do(stranger):
    response = stranger.get("/?token=wrong")
    assert response.status_code == 401 and "clew serve" in response.text
    assert "set-cookie" not in response.headers


def test_servers_with_other_tokens_do_not_share_cookies(session, stranger):
    other = TestClient(
        create_app(session, token="another-token"), base_url="http://127.0.0.1:9999", follow_redirects=False
    )
    mine = stranger.get(f"/?token={TOKEN}").headers["set-cookie"]
    assert mine.partition("=")[0] != other.get("/?token=another-token").headers["set-cookie"].partition("=")[0]
    assert other.get("/api/progress", headers={"Cookie": mine.partition(";")[0]}).status_code == 401


@given(
    others=st.lists(st.binary(max_size=30).map(lambda one: one.replace(b"\r", b"").replace(b"\n", b"")), max_size=5),
    place=st.integers(0, 5),
)
@examples(50, deadline=None)
@example(others=[b'theirs={"a": [1, 2]}', b"no equals sign", b'"', b"=", b"a=b=c"], place=5)
@example(others=[b"caf\xe9=\xff", b"clew-=", b"\x00"], place=1)
def test_cookies_of_other_programs_lock_nobody_out(others, place):
    guard = _security.Guard(None, TOKEN)
    own = guard._cookie + b"=" + guard._ticket
    cookies = [*others[:place], own, *others[place:]]
    assert guard._is_known({"headers": [(b"cookie", b"; ".join(cookies))]})
    assert guard._is_known({"headers": [(b"cookie", one) for one in cookies]})
    assert not guard._is_known({"headers": [(b"cookie", b"; ".join([*others, own[:-1]]))]})


def test_a_cookie_of_the_same_name_that_somebody_else_set_locks_nobody_out(stranger):
    own = stranger.get(f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
    wrong = own.partition("=")[0] + "=wrong"
    stranger.cookies.clear()
    assert stranger.get("/api/progress", headers={"Cookie": wrong}).status_code == 401
    for both in (f"{wrong}; {own}", f"{own}; {wrong}"):
        assert stranger.get("/api/progress", headers={"Cookie": both}).status_code == 200


def test_a_browser_stays_signed_in_to_two_servers_of_one_machine(session):
    addresses = {"http://127.0.0.1:8765": "the-first-token", "http://127.0.0.1:9999": "the-second-token"}
    browser = {}
    for address, token in addresses.items():
        client = TestClient(create_app(session, token=token), base_url=address, follow_redirects=False)
        name, _, value = client.get(f"/?token={token}").headers["set-cookie"].partition(";")[0].partition("=")
        browser[name] = value  # browsers keep cookies by host and name, whatever the port
    cookies = "; ".join(f"{name}={value}" for name, value in browser.items())
    for address, token in addresses.items():
        client = TestClient(create_app(session, token=token), base_url=address)
        assert client.get("/api/progress", headers={"Cookie": cookies}).status_code == 200


def test_the_cookie_is_for_encrypted_connections_only_behind_a_proxy_that_encrypts(session):
    client = TestClient(create_app(session, token=TOKEN), base_url="https://127.0.0.1", follow_redirects=False)
    assert "; Secure" in client.get(f"/?token={TOKEN}").headers["set-cookie"]


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8765", "127.0.0.1", "127.0.0.1:80", "[::1]:8765", "192.168.1.7"]
)
def test_names_of_this_machine_are_known(client, host):
    assert client.get("/api/progress", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8765", "", "[::1"])
def test_other_names_are_refused(client, host):
    response = client.get("/api/progress", headers={"Host": host})
    assert response.status_code == 403 and "name" in response.json()["error"]


def test_names_can_be_allowed(session):
    client = TestClient(
        create_app(session, token=TOKEN, hosts=["Clew.example.org"]), base_url="http://clew.example.org"
    )
    assert client.get("/api/progress", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "http://[bad"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/api/undo"), ("GET", "/api/labels"), ("OPTIONS", "/api/undo")])
def test_pages_of_other_sites_are_refused(client, method, path, headers):
    response = client.request(method, path, headers=headers)
    assert response.status_code == 403 and "another site" in response.json()["error"]
    assert not any(name.startswith("access-control") for name in response.headers)


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}]
)
def test_the_own_page_is_let_in(client, headers):
    assert client.post("/api/undo", headers=headers).status_code == 200


def test_a_link_from_elsewhere_may_open_the_page(stranger):
    assert stranger.get(f"/?token={TOKEN}", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 303


def test_large_bodies_are_refused_whether_or_not_they_say_so(client):
    large = json.dumps({"annotator": "x" * (_security.MOST_BYTES + 1)}).encode()
    kind = {"Content-Type": "application/json"}
    for content in (large, iter([large[:1000], large[1000:]])):
        response = client.post("/api/questions/next", content=content, headers=kind)
        assert response.status_code == 413 and "1 MB" in response.json()["error"]
    for length in ("many", "9" * 5000, "-1"):
        assert client.post("/api/undo", headers={"Content-Length": length}).status_code == 413
    assert client.post("/api/undo", headers={"Content-Length": "0" * 5000}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/progress", "/api/nothing", "/api/export/labels"])
def test_every_answer_forbids_what_a_cell_could_do(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")


@pytest.mark.parametrize("path", ["/../_app.py", "/%2e%2e/_app.py", "/..%2f_app.py", "/static/../../_app.py"])
def test_only_static_files_are_served(client, path):
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("token", ["", "two words", "tab\t", "schlüssel", "a&b", "a%41"])
def test_tokens_that_cannot_travel(session, token):
    with pytest.raises(ParameterError, match="token"):
        create_app(session, token=token)


def test_other_machines_need_a_word_and_a_long_token(session):
    with pytest.raises(ParameterError, match="--allow-remote"):
        serve(session, host="0.0.0.0")
    with pytest.raises(ParameterError, match="guessed"):
        serve(session, host="0.0.0.0", allow_remote=True, token="short")


def test_random_tokens_are_long_and_differ():
    tokens = {_security.new_token() for _ in range(10)}
    assert len(tokens) == 10 and all(len(token) >= 40 for token in tokens)


def routes(app):
    """Paths of the routes, with what is in braces filled in, and the methods of each."""
    for path, methods in app.openapi()["paths"].items():
        yield re.sub(r"\{\w+\}", "1", path), sorted(method.upper() for method in methods)


def test_a_route_says_which_methods_it_has(client):
    for path, methods in routes(client.app):
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"} - set(methods):
            response = client.request(method, path)
            others = {"PATCH"} if path == "/api/answers/import" else set()  # read as /api/answers/{answer_id}
            if method in others:
                continue
            assert response.status_code == 405, (method, path)
            assert set(response.headers["allow"].split(", ")) - others == set(methods)
            assert method == "HEAD" or all(one in response.json()["error"] for one in methods)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_what_is_not_there_is_not_found_whatever_the_method(client, method):
    assert client.request(method, "/api/nothing").status_code == 404


def test_the_page_is_read_only(client):
    response = client.post("/index.html")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")
