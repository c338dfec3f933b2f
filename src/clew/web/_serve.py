"""A server that runs until it is told to stop."""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from types import FrameType

from clew.exceptions import MissingExtraError, ParameterError
from clew.session import Session
from clew.web._app import create_app
from clew.web._security import check_token, new_token
from clew.web._worker import Worker

try:
    import uvicorn
except ImportError as error:
    raise MissingExtraError("The server needs uvicorn: pip install 'clew[app]'.") from error

# Tried first; a bookmark then works the next day.
PORT = 8765
# Seconds that requests under way get when the server is told to stop.
_GRACE = 10


def serve(
    session: Session,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    hosts: Iterable[str] = (),
    allow_remote: bool = False,
    browser: bool = False,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve a session over HTTP until SIGINT or SIGTERM.

    Parameters
    ----------
    session : Session
    host : str, default="127.0.0.1"
        The address to listen on; any but this machine's own needs `allow_remote`.
    port : int, optional
        0 is any free one. Unless given, 8765, or a free one where that is taken.
    token : str, optional
        A random one unless given.
    hosts : names, optional
        Names the server is reached by, beside localhost and addresses.
    allow_remote : bool, default=False
        Whether other machines may connect. What is sent is not encrypted: see the page on the server.
    browser : bool, default=False
        Whether to open the page.
    announce : callable, optional
        Called once with the address, token included, when connections are accepted.
    """
    is_remote = not _is_loopback(host)
    if is_remote and not allow_remote:
        raise ParameterError(
            f"host={host!r} lets other machines connect. Allow it with allow_remote=True (--allow-remote), "
            "or use 127.0.0.1."
        )
    token = new_token() if token is None else token
    check_token(token, remote=is_remote)
    app = create_app(session, token=token, hosts=hosts)
    listening = _listening(host, port)
    address = f"http://{_reached_at(host)}:{listening.getsockname()[1]}/?token={token}"

    def ready() -> None:
        if announce is not None:
            announce(address)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="on",
        timeout_graceful_shutdown=_GRACE,
    )  # fmt: skip
    with listening:
        _Server(config, app.state.worker, ready).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that ends its streams when it is told to stop, and then returns."""

    def __init__(self, config: uvicorn.Config, worker: Worker, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._worker, self._ready = worker, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._worker.closing = True
        super().handle_exit(sig, frame)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal without raising it again: the session is closed in good order."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reached_at(host: str) -> str:
    """What to put into an address for a browser on this machine."""
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
        listening.listen(128)
    except BaseException:
        listening.close()
        raise
    return listening
