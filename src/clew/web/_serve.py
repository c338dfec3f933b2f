"""Run the server until it is stopped."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from types import FrameType

from clew.exceptions import MissingExtraError, ParameterError
from clew.session import Session
from clew.web._app import create_app
from clew.web._connections import Connection
from clew.web._security import check_token
from clew.web._tokens import opening_file, remove_opening_file, token_of
from clew.web._worker import Worker

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]
try:
    import uvicorn
    from fastapi import FastAPI
except ImportError as error:
    raise MissingExtraError("The server needs uvicorn: pip install 'clew[app]'.") from error

_LOGGER = logging.getLogger("clew.web")
# Default port, tried first so that bookmarks stay valid.
PORT = 8765
# Largest number of open connections.
_BACKLOG = 128
# Seconds that running requests have to finish when the server stops.
_GRACE = 3


def serve(
    session: Session,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    new_token: bool = False,
    hosts: Iterable[str] = (),
    allow_remote: bool = False,
    browser: bool = False,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve a session over HTTP until SIGINT or SIGTERM.

    Running requests then have a few seconds to finish. A fit or a question that takes longer is abandoned.

    Parameters
    ----------
    session : Session
    host : str, default="127.0.0.1"
        The address to listen on. Any other than the local machine needs `allow_remote`.
    port : int, optional
        0 means any free port. Default: 8765, or a free port if that is taken.
    token : str, optional
        Default: a random token that is stored on this machine with the first run, so that open pages and bookmarks
        still work after a restart.
    new_token : bool, default=False
        Whether to replace the stored token. Browsers with the old token are signed out.
    hosts : names, optional
        Host names of the server, in addition to localhost and IP addresses.
    allow_remote : bool, default=False
        Whether other machines may connect. The connection is not encrypted: see docs/server.md.
    browser : bool, default=False
        Whether to open the page.
    announce : callable, optional
        Called once with the address, including the token, when the server is ready.
    """
    is_remote = not _is_loopback(host)
    if is_remote and not allow_remote:
        raise ParameterError(
            f"host={host!r} lets other machines connect. Allow it with allow_remote=True (--allow-remote), "
            "or use 127.0.0.1."
        )
    if token is not None and new_token:
        raise ParameterError("Give token or new_token, not both. new_token makes a random token.")
    token = token_of(session.project_id, renew=new_token) if token is None else token
    check_token(token, remote=is_remote)
    app = create_app(session, token=token, hosts=hosts)
    listening = _listening(host, port)
    address = f"http://{_reached_at(host)}:{listening.getsockname()[1]}/?token={token}"

    def ready() -> None:
        if announce is not None:
            announce(address)
        if browser:
            threading.Thread(target=_show, args=(address,), daemon=True).start()

    _allow_many_files()
    try:
        with listening:
            _Server(app, ready).run(sockets=[listening])
    finally:
        remove_opening_file()
        app.state.worker.close(0.0)  # a second Ctrl-C skips the orderly shutdown


def _show(address: str) -> None:
    """Open the page through a local file, because other users can see the command line of a browser."""
    try:
        webbrowser.open(opening_file(address).as_uri())
    except OSError as error:
        _LOGGER.warning("Cannot open a browser (%s). Open the address above.", error.strerror or error)


class _Server(uvicorn.Server):
    """A server that ends its event streams when it stops."""

    def __init__(self, app: FastAPI, ready: Callable[[], None]) -> None:
        # Log level above warnings, because malformed requests of strangers would fill the terminal.
        config = uvicorn.Config(
            app, http=Connection, ws="none", log_level="error", access_log=False, server_header=False, lifespan="on",
            backlog=_BACKLOG, timeout_graceful_shutdown=_GRACE,
        )  # fmt: skip
        super().__init__(config)
        self._worker: Worker = app.state.worker
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._worker.closing = True
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal without raising it again, so that the session is closed properly."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def _allow_many_files() -> None:
    """Raise the limit of open files as far as allowed, because every connection takes one."""
    if resource is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reached_at(host: str) -> str:
    """The host name to use in the address for a local browser."""
    if host in ("0.0.0.0", "localhost"):
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def _listening(host: str, port: int | None) -> socket.socket:
    if port is not None and not 0 <= port <= 65535:
        raise ParameterError(f"port={port}: expected 0 to 65535.")
    for wanted in (PORT, 0) if port is None else (port,):
        try:
            return _bound(host, wanted)
        except OSError as error:
            if port is None and wanted:
                continue
            raise ParameterError(
                f"Cannot listen on {host} port {wanted}: {error.strerror or error}. Choose another: --port 0 takes any."
            ) from None
    raise AssertionError("the last try returns or raises")


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening
