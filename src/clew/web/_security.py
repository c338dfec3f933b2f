"""Who may speak to the server: token, cookie, Host, origin, size; and the headers every answer carries.

One layer around the whole application, so that no route can forget it.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
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
# Shorter tokens can be guessed over a network.
LEAST_REMOTE_TOKEN = 16
_COOKIE_SECONDS = 30 * 24 * 3600
_OPEN_PATHS = frozenset({"/api/health"})
_HEADERS = {
    # Nothing from elsewhere, nothing inline: what a cell of the data holds can never run.
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
</html>
"""


def new_token() -> str:
    """A random token of 256 bits."""
    return secrets.token_urlsafe(32)


def check_token(token: str, *, remote: bool = False) -> None:
    """Refuse a token that cannot travel in a header or an address, or that is too short to leave this machine."""
    if not token or not all(33 <= ord(letter) <= 126 for letter in token) or any(letter in token for letter in '#&+%"'):
        raise ParameterError("The token must be letters, digits and signs without spaces, and not empty.")
    if remote and len(token) < LEAST_REMOTE_TOKEN:
        raise ParameterError(
            f"A token of {len(token)} characters can be guessed over a network. "
            f"Give at least {LEAST_REMOTE_TOKEN}, or none: a random one is made."
        )


class Guard:
    """An application behind a token, on names it is known by, for pages of its own only.

    Parameters
    ----------
    app : ASGI application
    token : str
    hosts : names
        Names the server is known by, beside ``localhost`` and addresses. A site that rebinds its own name to this
        machine comes with a name, so an address in the Host header is always fine.
    """

    def __init__(self, app: Application, token: str, hosts: Iterable[str] = ()) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {"localhost", *(name.lower() for name in hosts)}
        # Browsers share cookies between ports: each token has a cookie of its own, which does not tell the token.
        self._cookie = f"clew-{hashlib.sha256(self._token).hexdigest()[:12]}"
        self._ticket = hmac.new(self._token, b"clew cookie", hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _with_headers(send, scope["path"])
        refusal = self._refusal(scope)
        if refusal is not None:
            await _refuse(guarded, scope["path"], *refusal)
        elif scope["path"] == "/" and self._token_in_query(scope) is not None:
            await self._exchange(scope, guarded)
        elif scope["path"] not in _OPEN_PATHS and not self._is_known(scope):
            await _refuse(guarded, scope["path"], 401, "This needs the token: send Authorization: Bearer TOKEN.")
        else:
            await self._pass_on(scope, _limited(receive, _limit(scope)), guarded)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What goes wrong inside is told here as a sentence, and in full on the terminal of the server."""
        started = False

        async def noticed(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, noticed)
        except Exception:
            _LOGGER.exception("%s %s failed", scope["method"], scope["path"])
            if not started:
                await _refuse(send, scope["path"], 500, "This is a bug in clew; the terminal of the server shows more.")

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        host = _header(scope, "host")
        if not self._knows(host):
            return 403, f"The name {_host_name(host)!r} is not one of this server. Allow it when you start the server."
        if scope["path"].startswith("/api/") and not _is_own_page(scope, host):
            return 403, "A page of another site sent this. Only this server's own page may."
        length = _header(scope, "content-length")
        if length and (not length.isdecimal() or int(length) > _limit(scope)):
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
        try:
            found = SimpleCookie(_header(scope, "cookie")).get(self._cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._ticket.encode())

    @staticmethod
    def _token_in_query(scope: Scope) -> str | None:
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        return query.get("token", [None])[0]

    async def _exchange(self, scope: Scope, send: Send) -> None:
        """The token in the address becomes a cookie, and leaves the address bar and the history."""
        token = self._token_in_query(scope) or ""
        if scope["method"] not in ("GET", "HEAD") or not hmac.compare_digest(token.encode(), self._token):
            await _refuse(send, scope["path"], 401, "This is not the token of this server.")
            return
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{self._cookie}={self._ticket}; Path=/; Max-Age={_COOKIE_SECONDS}; HttpOnly; SameSite=Strict{secure}"
        headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]
        await _answer(send, 303, headers, b"")


# -- requests ----------------------------------------------------------------------------------------------------------


def _header(scope: Scope, name: str) -> str:
    wanted = name.encode()
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == wanted), "")


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


def _too_large(limit: int) -> str:
    return f"The request is larger than {limit >> 20} MB. Send less at a time."


def _limited(receive: Receive, limit: int) -> Receive:
    """Stop reading a body that is longer than allowed, whatever its headers promise."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
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
