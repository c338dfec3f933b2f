"""What every part of a session shares: the lock, the log, and memory that follows the log."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from clew.datasets import Table
from clew.exceptions import ClewError, FileError, StorageError
from clew.session._events import Event
from clew.session._ledger import Ledger
from clew.session._settings import utc
from clew.session._state import State
from clew.session._store import Store, Transaction
from clew.session._table import referenced, table_of, unpacked_rows


class Core:
    """A store and the state that follows from its log."""

    def __init__(self, store: Store, data: Any = None, *, state: State | None = None) -> None:
        self._store, self._data = store, data
        self._lock = threading.RLock()
        self._clock: Callable[[], float] = time.time
        self._closed = False
        self._lease_version = -1  # -1: to be read again
        self._shared: Transaction | None = None
        self._is_spoilt = self._is_ahead = False
        self._state = state or State(store.events(), self._read_base, store.leases())
        self._state.read_base = self._read_base

    def _read_base(self, ledger: Ledger) -> Table:
        """The table the project refers to, or keeps."""
        id_column = ledger.settings()[0]["id_column"]
        if self._data is not None:
            return table_of(self._data, id_column)
        where = ledger.data()
        if where is not None:
            return table_of(referenced(where, self._store.folder), id_column)
        table = unpacked_rows(ledger.events[0].body or b"")[2]
        assert table is not None
        return table

    @contextmanager
    def together(self) -> Iterator[None]:
        """Calls in one transaction: all of them are recorded when the block ends, or none.

        What a call returns is safe only then. Twenty people who answer at once share one visit to the disk this way.
        """
        with self._reading():
            try:
                with self._transacting() as self._shared:
                    yield
                    if self._is_spoilt:
                        raise StorageError("A request that came with this one failed. Nothing was recorded; try again.")
            except BaseException:
                self._shared, self._is_spoilt = None, False
                self._is_ahead = True  # memory has moved with the calls, the log has not
                with suppress(ClewError):
                    self._fall_back()
                raise
            self._shared = None

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        """A transaction on top of everything that others have written; what it did is taken in once it is safe.

        All of it happens under the lock: another thread would find the new events in the log and take them in first.
        """
        with self._reading():
            if self._shared is None:
                with self._transacting() as transaction:
                    yield transaction
                return
            before = self._shared.counters
            try:
                yield self._shared
            except BaseException:
                self._is_spoilt = self._is_spoilt or self._shared.counters != before
                raise
            self._take_in(self._shared)

    @contextmanager
    def _transacting(self) -> Iterator[Transaction]:
        try:
            with self._store.writing() as transaction:
                self._catch_up(transaction.events(self._version))
                if transaction.lease_version != self._lease_version:
                    self._state.take_leases(transaction.leases())
                yield transaction
            self._take_in(transaction)
        except BaseException:
            self._lease_version = -1
            raise

    def _take_in(self, transaction: Transaction) -> None:
        """What a transaction did since this was called last."""
        changed, appended = transaction.changed, transaction.appended
        transaction.changed, transaction.appended = [], []
        self._state.change_leases(changed)
        self._catch_up(appended)
        self._lease_version = transaction.lease_version

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise FileError("This session is closed. Open it again with Session.open.")
            if self._is_ahead:
                self._fall_back()
            yield

    def _fall_back(self) -> None:
        """Memory from the log alone; tried again by the next call while the database is out of reach."""
        self._state = State(self._store.events(), self._read_base, self._store.leases())
        self._is_ahead = False

    def _append(
        self, transaction: Transaction, kind: str, annotator: str, payload: dict[str, Any], body: bytes | None = None
    ) -> list[Event]:
        return transaction.append([(kind, utc(self._clock()), annotator, payload, body)])

    def _catch_up(self, events: Sequence[Event]) -> None:
        """Events that are in the log change memory, never before."""
        for event in events:
            self._state.apply(event)

    @property
    def _version(self) -> int:
        return self._state.ledger.version
