"""Access control: token, cookie, host name, origin and size of requests; security headers of responses.

The middleware wraps the whole application, so that it covers every route.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException

from clew.exceptions import ParameterError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOGGER = logging.getLogger("clew.web")
# Largest body of a request, and of an upload, in bytes.
MOST_BYTES = 1 << 20
MOST_UPLOADED = 64 << 20
# Seconds between two pieces of a body.
BODY_SECONDS = 30.0
# Shorter tokens can be guessed over a network.
LEAST_REMOTE_TOKEN = 16
_COOKIE_SECONDS = 30 * 24 * 3600
_OPEN_PATHS = frozenset({"/api/health"})
# Status and sentence for requests that the shutdown of the server cuts short. A writing call may have been recorded.
_STOPPED = 503, "The server was stopped before this was done. Try again."
_CUT_SHORT = (
    504,
    "The server was stopped before it could say whether this was recorded. An answer can be sent again: it is never "
    "recorded twice.",
)
_HEADERS = {
    # No content from other sites and no inline scripts, so that cells of the data cannot run code.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "media-src 'self'; connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_SIGN_IN = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>clew</title>
<h1>This page needs its token</h1>
<p>Open the whole address that <code>clew serve</code> printed: it ends with <code>?token=…</code>.</p>
<p>Answers that this browser has not sent yet are kept in it, and are sent when you are back.</p>
</html>
"""
# If a link on another site or in a file leads here, browsers do not send a strict cookie, even if a redirect has just
# set it. They send it after a page of this server that refreshes itself.
_COME_AGAIN = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>clew</title>
<meta http-equiv="refresh" content="0; url=/">
</html>
"""


def new_token() -> str:
    """Make a random token of 256 bits."""
    return secrets.token_urlsafe(32)


def check_token(token: str, *, remote: bool = False) -> None:
    """Raise if a token cannot be sent in a header or an address, or if it is too short for remote access."""
    if not token or not all(33 <= ord(letter) <= 126 for letter in token) or any(letter in token for letter in '#&+%"'):
        raise ParameterError(
            'The token must be ASCII letters, digits and signs, at least one, without spaces and # & + % ".'
        )
    if remote and len(token) < LEAST_REMOTE_TOKEN:
        raise ParameterError(
            f"A token of {len(token)} characters can be guessed over a network. "
            f"Give at least {LEAST_REMOTE_TOKEN} characters, or no token: then clew makes a random one."
        )


class Guard:
    """Middleware that checks the token, the host name and the origin of every request.

    Parameters
    ----------
    app : ASGI application
    token : str
    hosts : names
        Host names of the server, in addition to ``localhost`` and IP addresses. IP addresses are always allowed,
        because DNS rebinding needs a name.
    """

    def __init__(self, app: Application, token: str, hosts: Iterable[str] = ()) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {"localhost", *(name.lower() for name in hosts)}
        # Browsers share cookies between ports, so each token has its own cookie. The cookie does not contain the token.
        self._cookie = f"clew-{hashlib.sha256(self._token).hexdigest()[:12]}".encode()
        self._ticket = hmac.new(self._token, b"clew cookie", hashlib.sha256).hexdigest().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _with_headers(send, scope["path"])
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(guarded, scope["path"], *refusal)
        elif scope["path"] == "/" and self._token_in_query(scope) is not None:
            await self._exchange(scope, guarded)
        elif scope["path"] == "/" and _header(scope, "sec-fetch-site") == "cross-site" and not self._is_known(scope):
            await _answer(guarded, 401, [(b"content-type", b"text/html; charset=utf-8")], _COME_AGAIN.encode())
        elif scope["path"] not in _OPEN_PATHS and not self._is_known(scope):
            await _refuse(guarded, scope["path"], 401, "This needs the token: send Authorization: Bearer TOKEN.")
        else:
            await self._pass_on(scope, _limited(receive, _limit(scope)), guarded)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; answer an unexpected error with a sentence and log it on the terminal."""
        started = False

        async def noticed(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noticed)
        except asyncio.CancelledError:  # the server is shutting down and does not wait for this request
            if not started:
                await _refuse(send, scope["path"], *(_STOPPED if scope["method"] in ("GET", "HEAD") else _CUT_SHORT))
        except Exception:
            _LOGGER.exception("%s %s failed", scope["method"], scope["path"])
            if not started:
                await _refuse(send, scope["path"], 500, "This is a bug in clew; the terminal of the server shows more.")

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        host = _header(scope, "host")
        if not self._knows(host):
            return (
                403,
                f"{_host_name(host)!r} is not a host name of this server. Allow it with --allow-host.",
            )
        if scope["path"].startswith("/api/") and not _is_own_page(scope, host):
            return 403, "A page of another site sent this request. Only the page of this server may do that."
        length = _header(scope, "content-length")
        if length and not _is_at_most(length, _limit(scope)):
            return 413, _too_large(_limit(scope))
        return None

    def _knows(self, host: str) -> bool:
        name = _host_name(host)
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._hosts
        return True

    def _is_known(self, scope: Scope) -> bool:
        scheme, _, token = _header(scope, "authorization").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._token):
            return True
        return any(hmac.compare_digest(value, self._ticket) for value in _cookies(scope, self._cookie))

    @staticmethod
    def _token_in_query(scope: Scope) -> str | None:
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return query.get("token", [None])[0]

    async def _exchange(self, scope: Scope, send: Send) -> None:
        """Replace the token in the address by a cookie, so that it leaves the address bar and the history."""
        token = self._token_in_query(scope) or ""
        if scope["method"] not in ("GET", "HEAD") or not hmac.compare_digest(token.encode(), self._token):
            await _refuse(send, scope["path"], 401, "This is not the token of this server.")
            return
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        kept = f"; Path=/; Max-Age={_COOKIE_SECONDS}; HttpOnly; SameSite=Strict{secure}".encode()
        cookie = self._cookie + b"=" + self._ticket + kept
        headers = [(b"location", b"/"), (b"set-cookie", cookie), (b"cache-control", b"no-store")]
        await _answer(send, 303, headers, b"")


# -- requests ----------------------------------------------------------------------------------------------------------


def _header(scope: Scope, name: str) -> str:
    wanted = name.encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == wanted), "")


def _cookies(scope: Scope, name: bytes) -> Iterator[bytes]:
    """The values of a cookie. Cookies of other programs on this machine may be malformed."""
    for key, header in scope["headers"]:
        if key == b"cookie":
            for cookie in header.split(b";"):
                found, _, value = cookie.partition(b"=")
                if found.strip() == name:
                    yield value.strip()


def _host_name(host: str) -> str:
    """The name in a Host header, without its port."""
    name = host.strip().lower()
    if name.startswith("["):
        inside, closed, _ = name[1:].partition("]")
        return inside if closed else name
    return name.partition(":")[0].rstrip(".")


def _is_own_page(scope: Scope, host: str) -> bool:
    """Whether a request comes from this server's own page, or from no page at all."""
    if _header(scope, "sec-fetch-site") not in ("", "same-origin", "none"):
        return False
    origin = _header(scope, "origin")
    if not origin:
        return True
    try:
        return urlsplit(origin).netloc.lower() == host.strip().lower()
    except ValueError:
        return False


def _limit(scope: Scope) -> int:
    is_upload = scope["method"] == "POST" and scope["path"] in ("/api/rows", "/api/answers/import")
    return MOST_UPLOADED if is_upload else MOST_BYTES


def _is_at_most(number: str, limit: int) -> bool:
    """Whether a text is a number within a limit. Python refuses to parse very long numbers."""
    digits = number.lstrip("0")
    return number.isascii() and number.isdecimal() and len(digits) <= len(str(limit)) and int(digits or "0") <= limit


def _too_large(limit: int) -> str:
    return f"The request is larger than {limit >> 20} MB. Send less at a time."


def _limited(receive: Receive, limit: int) -> Receive:
    """Stop reading a body that is too long or does not arrive in time, whatever its headers say."""
    seen, is_whole = 0, False

    async def counted() -> Message:
        nonlocal seen, is_whole
        try:
            async with asyncio.timeout(None if is_whole else BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, f"The rest of the request did not arrive in {BODY_SECONDS:.0f} seconds.") from None
        is_whole = not message.get("more_body", False)
        seen += len(message.get("body", b""))
        if seen > limit:
            raise HTTPException(413, _too_large(limit))
        return message

    return counted


# -- answers -----------------------------------------------------------------------------------------------------------


def _with_headers(send: Send, path: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [
                (key, value) for key, value in message.get("headers", []) if key.decode().lower() not in _HEADERS
            ]
            headers += [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            if not any(key.lower() == b"cache-control" for key, _ in headers):
                headers.append((b"cache-control", b"no-store" if path.startswith("/api/") else b"no-cache"))
            message = {**message, "headers": headers}
        await send(message)

    return sending


async def _refuse(send: Send, path: str, status: int, sentence: str) -> None:
    headers = [(b"www-authenticate", b"Bearer")] if status == 401 else []
    if path.startswith("/api/"):
        body, kind = json.dumps({"error": sentence}).encode(), b"application/json"
    elif status == 401:
        body, kind = _SIGN_IN.encode(), b"text/html; charset=utf-8"
    else:
        body, kind = sentence.encode(), b"text/plain; charset=utf-8"
    await _answer(send, status, [*headers, (b"content-type", kind)], body)


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})
