"""The log of a project and the state in memory that follows from it, behind one lock.

Every writing call is applied in memory before it is committed, so that a refused call leaves no event. Nobody sees
memory ahead of the log: the lock is held until the commit, and after a failed commit or Ctrl-C the state is rebuilt
from the log before the next call.
"""

from __future__ import annotations

import gc
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
from clew.session._state import SessionState
from clew.session._store import Store, Transaction
from clew.session._table import reference, referenced, table_of, unpacked_rows


class ProjectLog:
    """A store, and the state that follows from its log.

    Attributes
    ----------
    store : Store
    state : SessionState
        The project in memory. Read it within `reading` or `writing` only.
    clock : callable
        Seconds since 1970.
    """

    def __init__(self, store: Store, data: Any = None, *, state: SessionState | None = None) -> None:
        self.store, self._data = store, data
        self._lock = threading.RLock()
        self.clock: Callable[[], float] = time.time
        self._closed = False
        self._lease_version = -1  # -1: read the leases again
        self._shared: Transaction | None = None
        # _is_spoilt: a call of the shared transaction failed half-way. _is_ahead: memory has uncommitted events.
        # _is_doubtful: a call was interrupted.
        self._is_spoilt = self._is_ahead = self._is_doubtful = False
        self.state = state or self._read_state()
        self.state.read_base = self._read_base

    @property
    def version(self) -> int:
        """Number of the last event that memory has."""
        return self.state.ledger.version

    def close(self, patience: float) -> None:
        """Close the database after running calls of other threads. Wait for them at most `patience` seconds."""
        self._closed = True
        if self._lock.acquire(timeout=patience):
            try:
                self.store.close()
            finally:
                self._lock.release()

    def refresh(self) -> int:
        """Read the events that other processes have written. Returns the version."""
        with self.reading():
            last_seq, lease_version = self.store.versions()
            if last_seq != self.version:
                self.catch_up()
            if lease_version != self._lease_version:
                self.state.leases.replace(self.store.leases())
                self._lease_version = lease_version
            return self.version

    def remember_data(self) -> None:
        """Record the new path of a data file that has moved."""
        where = reference(self._data, self.store.folder)
        if where is None or where == self.state.ledger.data() or self.state.problem is not None:
            return
        with self.writing() as transaction:
            self.append(transaction, "setting", "", {"settings": {}, "data": where, "reason": None})

    def _read_base(self, ledger: Ledger) -> Table:
        """Read the table that the project refers to or stores."""
        id_column = ledger.settings["id_column"]
        if self._data is not None:
            return table_of(self._data, id_column)
        where = ledger.data()
        if where is not None:
            return table_of(referenced(where, self.store.folder), id_column)
        table = unpacked_rows(ledger.events[0].body or b"")[2]
        assert table is not None
        return table

    @contextmanager
    def together(self) -> Iterator[None]:
        """Run several calls in one transaction. All of them are committed when the block ends, or none.

        The results of the calls are durable only after the block. Twenty simultaneous answers thus take one disk write.
        """
        with self.reading():
            try:
                with self._transacting() as self._shared:
                    yield
                    if self._is_spoilt:
                        raise StorageError(
                            "Another request in the same transaction failed. Nothing was recorded. Try again."
                        )
            finally:
                self._shared, self._is_spoilt = None, False

    @contextmanager
    def writing(self, *, mends: bool = False) -> Iterator[Transaction]:
        """Open a transaction on the latest log. Its events are applied in memory before they are committed.

        The lock is held throughout. Otherwise another thread could read the new events from the log and apply them
        first. While the state has a `problem`, only calls that can repair the log are allowed (`mends`).
        """
        with self.reading():
            if self._shared is None:
                with self._transacting() as transaction:
                    self._require_whole(mends)
                    yield transaction
                return
            self._require_whole(mends)
            before = self._shared.counters
            try:
                yield self._shared
                self._take_in(self._shared)
            except BaseException:
                self._shared.discard(before[0])
                self._is_spoilt = self._is_spoilt or self._shared.counters != before or self.state.is_torn
                raise

    def _require_whole(self, mends: bool) -> None:
        if not mends:
            self.state.require_whole()

    def mark_ahead(self) -> None:
        """Note that memory has changed before the commit. If the call fails, the state is rebuilt from the log."""
        self._is_ahead = True

    @contextmanager
    def _transacting(self) -> Iterator[Transaction]:
        lease_version, self._lease_version = self._lease_version, -1
        with self.store.writing() as transaction:
            self._take_committed(transaction.events(self.version))
            if transaction.lease_version != lease_version:
                self.state.leases.replace(transaction.leases())
            yield transaction
            self._take_in(transaction)
        self._lease_version, self._is_ahead = transaction.lease_version, False

    def _take_in(self, transaction: Transaction) -> None:
        """Apply the events of a transaction in memory before the commit. An event that raises refuses the call."""
        changed, appended = transaction.changed, transaction.appended
        transaction.changed, transaction.appended = [], []
        if changed:
            self._is_ahead = True
            self.state.leases.change(changed)
        for event in appended:
            after = self.state.after(event)
            self._is_ahead, self.state = True, after

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock, with the state in memory equal to the log.

        The call counts as interrupted until it ends, so that after Ctrl-C the next call rebuilds the state from the
        log. A refusal before any change does not count as interrupted.
        """
        is_nested = self._lock._is_owned()  # type: ignore[attr-defined]
        with self._lock:
            if self._closed:
                raise FileError("This session is closed. Open it again with Session.open.")
            if is_nested:
                yield
                return
            if self._is_doubtful:
                self._fall_back()
            self._is_doubtful = True
            try:
                yield
            except Exception as error:
                if isinstance(error, ClewError) and not self._is_ahead and not self.state.is_torn:
                    self._is_doubtful = False
                else:
                    with suppress(ClewError):
                        self._fall_back()
                        self._is_doubtful = False
                raise
            self._is_doubtful = False

    def _fall_back(self) -> None:
        """Rebuild the state from the log. If the database cannot be reached, the next call tries again."""
        self._lease_version = -1
        self.state = self._read_state()
        self._is_ahead = False

    def _read_state(self) -> SessionState:
        """Read the whole log, and build the state from it.

        Garbage collections are paused, because the new objects stay, and every collection would visit all of them.
        Then the objects are moved to the oldest generation, so that collections of the younger ones do not visit them.
        """
        is_collecting, are_frozen = gc.isenabled(), gc.get_freeze_count() > 0
        gc.disable()
        try:
            return SessionState(self.store.events(), self._read_base, self.store.leases())
        finally:
            if not are_frozen:  # otherwise the application has frozen objects of its own, which stay frozen
                gc.freeze()
                gc.unfreeze()
            if is_collecting:
                gc.enable()

    def append(
        self, transaction: Transaction, kind: str, annotator: str, payload: dict[str, Any], body: bytes | None = None
    ) -> Event:
        """Append one event to the log, with the current time."""
        return transaction.append([(kind, utc(self.clock()), annotator, payload, body)])[0]

    def catch_up(self) -> None:
        """Apply the events that other processes have committed."""
        self._take_committed(self.store.events(self.version))

    def _take_committed(self, events: Sequence[Event]) -> None:
        """Apply committed events, even if no clusters can be made from them with this version or these data."""
        try:
            for event in events:
                self.state = self.state.after(event)
        except Exception:
            self._fall_back()
