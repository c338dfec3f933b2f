"""A project in memory: the parts derived from the log and the data, updated with each event.

This module writes nothing. `State.after` returns the state after one more event, and raises if the event cannot be
applied. A session applies every event here before it commits the event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.datasets import Table
from clew.exceptions import ClewError, DataError
from clew.session._conflicts import Conflicts
from clew.session._effects import Effects
from clew.session._events import Event
from clew.session._growth import Growth
from clew.session._known import Known
from clew.session._labelling import Labelling
from clew.session._leases import Leases
from clew.session._ledger import Ledger
from clew.session._planning import Planner
from clew.session._review import Reviews
from clew.session._settings import ENCODING
from clew.session._store import Lease
from clew.session._strategies import lasting_strategy
from clew.session._table import ProjectRows

FloatArray = npt.NDArray[np.float64]


class _Parts(NamedTuple):
    """The parts that need the data as well as the log."""

    rows: ProjectRows
    known: Known
    labelling: Labelling


class SessionState:
    """A project in memory, made of parts that know each other's public names only.

    Attributes
    ----------
    ledger : Ledger
        Current content of the log.
    leases : Leases
        Questions without an answer.
    rows : ProjectRows
        Ids and vectors of the rows.
    known : Known
        Answers and corrections in effect, and the driver of the questions.
    labelling : Labelling
        Cluster of every row.
    problem : ClewError or None
        The reason why the log and the data cannot be turned into clusters. Only the log can be read then, and every
        access to the other parts raises the problem.
    is_torn : bool
        Whether an event was applied only in part.
    """

    def __init__(
        self,
        events: Iterable[Event],
        read_base: Callable[[Ledger], Table],
        leases: Iterable[Lease],
        grown: tuple[bytes, ProjectRows] | None = None,
    ) -> None:
        self.ledger, self.leases, self.read_base = Ledger(), Leases(leases), read_base
        self.problem: ClewError | None = None
        self.is_torn = False
        self._grown: tuple[bytes, ProjectRows] | None = None
        self._probability: tuple[int, FloatArray] | None = None
        for event in events:
            self.ledger.apply(event)
        rows = self._rows_of(grown)
        try:
            self._parts = self._derived(rows())
            self.leases.bind(self.ledger, self.rows, self.known)
        except Exception as error:
            self.problem = _problem(error, self.ledger)

    def probability(self) -> FloatArray:
        """Probability of the cluster of each present row, NaN where there is none.

        It is that of the last fit, or else that of the strategy that makes the clusters, given all answers so far.
        """
        if self._probability is None or self._probability[0] != self.ledger.version:
            self._probability = self.ledger.version, self._present_probability()
        return self._probability[1]

    def _present_probability(self) -> FloatArray:
        fitted, settings = self.labelling.present_probability, self.ledger.settings
        if settings["method"] is not None or not self.ledger.fitted_version or not np.isnan(fitted).all():
            return fitted
        found = lasting_strategy(settings).probabilities(self.known.driver.view, self.labelling.present)
        return fitted if found is None else found

    def _rows_of(self, grown: tuple[bytes, ProjectRows] | None) -> Callable[[], ProjectRows]:
        """Read the data, and return the function that makes rows from it."""
        given = self.ledger.rows()
        if grown is not None and grown[0] is given[-1][0]:
            return lambda: grown[1]
        base = self.read_base(self.ledger)
        return lambda: ProjectRows(self.ledger.settings, base, given)

    def _derived(self, rows: ProjectRows) -> _Parts:
        labelling = Labelling(self.ledger, rows)
        return _Parts(rows, Known(self.ledger, rows), labelling)

    def require_whole(self) -> None:
        """Raise the `problem`, if there is one."""
        if self.problem is not None:
            raise self.problem.with_traceback(None)

    @property
    def rows(self) -> ProjectRows:
        """The rows of the project."""
        self.require_whole()
        return self._parts.rows

    @property
    def known(self) -> Known:
        """Answers and corrections in effect."""
        self.require_whole()
        return self._parts.known

    @property
    def labelling(self) -> Labelling:
        """The cluster of every row."""
        self.require_whole()
        return self._parts.labelling

    @property
    def conflicts(self) -> Conflicts:
        """The contradictions that are not resolved."""
        return Conflicts(self.ledger, self.rows, self.known)

    @property
    def reviews(self) -> Reviews:
        """The review of the answers."""
        return Reviews(self.ledger, self.rows, self.known, self.labelling)

    @property
    def effects(self) -> Effects:
        """The effect of corrections on the clusters."""
        return Effects(self.ledger, self.rows, self.known, self.labelling)

    @property
    def planner(self) -> Planner:
        """The plan of a fit."""
        return Planner(self.ledger, self.rows, self.known, self.labelling)

    # -- adding rows -----------------------------------------------------------------------------------------------

    def growth(self) -> Growth:
        """Return a snapshot of the rows, to which rows can be added without the lock."""
        ledger, read_base = self.ledger, partial(self.read_base, self.ledger)
        return Growth(dict(ledger.settings), self.rows, ledger.rows(), ledger.data(), read_base)

    def take_growth(self, growth: Growth) -> bool:
        """Use the rows of `growth` for the next addition. Returns False if rows or settings have changed."""
        is_fit = growth.is_of(self.growth())
        if is_fit:
            self._grown = growth.body, growth.rows
        return is_fit

    # -- events ----------------------------------------------------------------------------------------------------

    def after(self, event: Event) -> SessionState:
        """Return the state after one more event: this object, or a new one if rows or their vectors change.

        Raises if the event cannot be applied. This state is then unchanged, unless `is_torn` is True.
        """
        if self.problem is None and not _reshapes(self.ledger.target(event)):
            self.is_torn = True
            self.apply(event)
            self.is_torn = False
            return self
        made = SessionState([*self.ledger.events, event], self.read_base, self.leases, self._grown)
        if made.problem is not None and self.problem is None:
            raise made.problem
        return made

    def apply(self, event: Event) -> None:
        """Apply an event that does not change rows or their vectors."""
        self.ledger.apply(event)
        self.labelling.apply(event)
        target = self.ledger.target(event)
        if event.kind == "answer":
            record = self.ledger.records[event.seq]
            goes_on = self.known.add(record) and not self.leases.are_about(record)
        elif event.kind in ("fit", "name", "import") or target.kind == "grouping":
            goes_on = True
        elif event.kind == "setting" and set(event.payload["settings"]) == {"strategy"}:
            self.known.use_strategy()
            goes_on = True
        elif target.kind == "setting":
            self.known.build()
            goes_on = False
        else:
            self.known.update(self.ledger.touched(event))
            goes_on = False
        if not goes_on:
            self.leases.hold()


def _reshapes(event: Event) -> bool:
    """Whether an event changes the rows, their encoding, the metric or the seed."""
    if event.kind == "setting":
        shaping = {"metric", "random_state", *ENCODING}
        return "data" in event.payload or not shaping.isdisjoint(event.payload["settings"])
    return event.kind == "rows_added"


def _problem(error: Exception, ledger: Ledger) -> ClewError:
    """Return the error that says why the log cannot be turned into clusters, and what to do."""
    if isinstance(error, ClewError):
        return error
    return DataError(
        f"The log and the data cannot be turned into clusters ({type(error).__name__}: {error}). "
        f"undo() undoes the last event. The answers can be exported. The last event is number {ledger.version}."
    )
