"""Limits on idle connections: size of headers, waiting time, and number of waiting connections.

A client without the token can only open connections and send headers. Both are limited here, before a request reaches
the application.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

# Largest number of bytes in the address and headers of a request. A browser sends the cookies of all local servers.
MOST_HEADER_BYTES = 32 << 10
# Seconds within which the headers of a request must be complete, counted from the connection or the last response.
HEADER_SECONDS = 10.0
# Largest number of connections that wait for a request. Beyond it, the connection that has waited longest is closed.
MOST_WAITING = 256


class HeadersTooLargeError(Exception):
    """The address and the headers of a request exceed `MOST_HEADER_BYTES`."""


class Connection(HttpToolsProtocol):
    """An HTTP connection that waits for requests for a limited time, and reads headers of a limited size.

    The time starts when the connection is made or its last response is complete, and ends when the headers of the next
    request are complete. Partial data does not extend it. A request under way, such as an event stream, has no limit.

    Attributes
    ----------
    waiting_since : float or None
        Time of the event loop; None while a request is under way.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting_since: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._n_header_bytes = self._n_unparsed = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request. If too many connections wait, close the oldest."""
        super().connection_made(transport)
        self._wait()
        waiting = [one for one in self.connections if isinstance(one, Connection) and one.waiting_since is not None]
        if len(waiting) > MOST_WAITING:
            min(waiting, key=lambda one: one.waiting_since or 0.0).give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that was closed."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data. Refuse headers that are too large."""
        if self.transport.is_closing():
            return
        self._n_unparsed += len(data)
        super().data_received(data)
        if self._n_unparsed > MOST_HEADER_BYTES and not self.transport.is_closing():
            self._refuse_headers()

    def on_message_begin(self) -> None:
        """Reset the count of header bytes for a new request."""
        self._n_header_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Count a piece of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header. Trailers follow the body."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request."""
        self._n_unparsed = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._n_unparsed = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Start the next pipelined request, or wait for one."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request, or headers that are too large."""
        if self._n_header_bytes > MOST_HEADER_BYTES:
            self._refuse_headers()
        else:
            super().send_400_response(msg)

    def give_up(self) -> None:
        """Close a connection that sent no request."""
        self._stop_waiting()
        self.transport.abort()

    def _wait(self) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.waiting_since = self.loop.time()
            self._deadline = self.loop.call_later(HEADER_SECONDS, self.give_up)

    def _stop_waiting(self) -> None:
        self.waiting_since = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _count(self, n_bytes: int) -> None:
        self._n_header_bytes += n_bytes
        if self._n_header_bytes > MOST_HEADER_BYTES:
            raise HeadersTooLargeError

    def _refuse_headers(self) -> None:
        body = f"The headers are larger than {MOST_HEADER_BYTES >> 10} KB. Delete the cookies of this host.".encode()
        head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[431] + head + body)
        self.transport.close()
