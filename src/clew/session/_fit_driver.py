"""A second driver of the questions, for fits. Each fit takes in the answers since the last one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from clew.active import Answered, Questions, Strategy


class FitDriver:
    """A driver that follows the log of another one, from fit to fit.

    Fits run outside the lock of the session, while answers change its own driver. Replaying the whole log for each fit
    would take the interpreter from the people who answer. One fit uses the driver at a time.
    """

    def __init__(self, root: Questions) -> None:
        self._root, self._turn = root, Lock()
        self._driver: Questions | None = None
        self._entries: tuple[Answered, ...] = ()

    @contextmanager
    def at(self, entries: tuple[Answered, ...], strategy: Strategy, n_clusters: int | None) -> Iterator[Questions]:
        """The driver with exactly these entries of the log, for the length of the block."""
        with self._turn:
            driver, self._driver = self._driver, None  # if anything fails here, the next fit starts from the beginning
            if driver is None:
                driver, self._entries = self._root.again((), strategy, n_clusters), ()
            both = zip(self._entries, entries, strict=False)
            n_known = next((place for place, (one, other) in enumerate(both) if one is not other), None)
            n_known = min(len(self._entries), len(entries)) if n_known is None else n_known
            driver.rewind(n_known)
            driver.assume(n_clusters)
            driver.use(strategy)
            driver.extend(entries[n_known:])
            yield driver
            self._driver, self._entries = driver, entries
