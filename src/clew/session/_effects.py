"""The rows that move when a correction is made or taken back, found before the event is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.active import Questions
from clew.session._corrections import Correction, moves
from clew.session._events import Event
from clew.session._keeping import upheld
from clew.session._known import Known
from clew.session._labelling import Labelling
from clew.session._ledger import Ledger
from clew.session._table import ProjectRows

IntArray = npt.NDArray[np.int64]


class Effects:
    """Computes the effect of corrections on the clusters. It changes nothing."""

    def __init__(self, ledger: Ledger, rows: ProjectRows, known: Known, labelling: Labelling) -> None:
        self._ledger, self._rows, self._known, self._labelling = ledger, rows, known, labelling

    def of_correction(self, proposed: Correction) -> tuple[Correction, bool]:
        """Return a proposed correction with all rows that it moves, and whether it contradicts other constraints.

        Beside the rows that the correction names, other rows may have to move so that all certain constraints hold: two
        cannot-linked rows of one cluster, or rows must-linked with a moved row.
        """
        before, rows = self._labelling.labels, self._rows
        with self._known.trial([*self._known.corrections(), proposed], counts=False) as (driver, aside):
            if proposed.seq in aside:
                return proposed, True
            labels = before.copy()
            for named, _, after in proposed.changes:
                labels[named] = after
                if proposed.kind == "move":
                    linked = driver.view.knowledge.rows(int(rows.position[named[0]]))
                    labels[rows.present[linked]] = after
            found = self._upheld(labels, driver)
        labels = self._without_waiting(labels, found)
        n_before, n_after = (len(np.unique(some[rows.present])) for some in (before, labels))
        changes = moves(before, labels, first=[row for named, _, _ in proposed.changes for row in named])
        return replace(proposed, changes=changes, more_clusters=n_after - n_before), False

    def of_taking_back(self, event: Event) -> list[list[Any]] | None:
        """The rows that move when an event takes corrections back, as (row ids, cluster before, cluster after).

        Rows that a later correction has moved stay, because that correction still holds. All other rows move back. Then
        as few rows as possible move so that all certain constraints hold, and later fits move no more rows. Returns
        None if the event neither takes a correction back nor makes one again.
        """
        taken_back, made_again = self._ledger.reversed_by(event)
        if not taken_back + made_again:
            return None
        known, before = self._known, self._labelling.labels
        gone, oldest = {one.seq for one in taken_back}, min(one.seq for one in (*taken_back, *made_again))
        again = [known.correction(one) for one in made_again]
        live = sorted([*(one for one in known.corrections() if one.seq not in gone), *again], key=lambda one: one.seq)
        with known.trial(live) as (driver, aside):
            later = [one for one in live if one.seq > oldest and one.seq not in aside and one not in again]
            put = {row for one in later for rows in (*one.stars, *(rows for rows, _, _ in one.changes)) for row in rows}
            labels = self._labelling.moved_back(taken_back, made_again, put)
            found = self._upheld(labels, driver)
        found = self._without_waiting(labels, found)
        return [[[self._rows.ids[row] for row in rows], *move] for rows, *move in moves(before, found)]

    def _without_waiting(self, labels: IntArray, found: IntArray) -> IntArray:
        """`found`, except for rows that the next fit moves with or without the correction: they keep `labels`."""
        if (found != labels).any():
            before = self._labelling.labels
            return np.where(self._upheld(before, self._known.driver) != before, labels, found)
        return found

    def _upheld(self, labels: IntArray, driver: Questions) -> IntArray:
        """Change labels so that all certain constraints hold. New clusters get new ids."""
        present = self._rows.present
        there = np.flatnonzero(labels[present] >= 0)
        rows = present[there]
        n_clusters = len(np.unique(labels[rows]))
        room = np.inf if driver.n_clusters is None else driver.n_clusters - n_clusters
        known = driver.constraints.at_least(1.0)
        closed = (known if len(there) == len(present) else known[there]).closure()
        found, top = labels.copy(), int(labels.max(initial=-1))
        found[rows] = upheld(self._rows.X[there], labels[rows], closed, room)
        found[found > top] += max(self._labelling.next_cluster - top - 1, 0)
        return found
