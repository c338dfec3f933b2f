"""Merge, split, move, never join: what people do to clusters, compiled to pairs of rows that every later fit keeps.

A correction names rows, not clusters: clusters come and go with fits, rows stay. Rows said to be together form a *star*
around its first row; two clusters said to be different are a *link* between a row of each, with stand-ins should that
row be moved away later. Of two corrections about the same rows the later one wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.active import DIFFERENT, SAME, Answer, Pair
from clew.active._view import mean_row, squared_distances
from clew.exceptions import NotFoundError, ParameterError

IntArray = npt.NDArray[np.int64]

# Rows that stand for a cluster: when its medoid is moved away, the next takes its place.
_STAND_INS = 10
KINDS = ("merge", "split", "move", "never")


@dataclass
class Link:
    """Two sets of stand-ins; the first of each are said to be the same or different."""

    left: list[int]
    right: list[int]
    answer: Answer


@dataclass
class Correction:
    """What a correction says about rows (by ordinal) and does to clusters.

    Attributes
    ----------
    seq : int
        Its event; 0 while it is only proposed.
    kind : {"merge", "split", "move", "never"}
    stars : lists of rows
        Rows that belong together.
    links : list of Link
    about : lists of rows
        merge: all its rows; split: the two parts; move: the row; never: the two rows, where rows were named.
    changes : list of (rows, cluster before, cluster after)
    more_clusters : int
        How many clusters there are more than before.
    """

    seq: int
    kind: str
    stars: list[list[int]] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    about: list[list[int]] = field(default_factory=list)
    changes: list[tuple[list[int], int, int]] = field(default_factory=list)
    more_clusters: int = 0

    def copy(self) -> Correction:
        """A copy that can give way."""
        links = [Link(list(one.left), list(one.right), one.answer) for one in self.links]
        return Correction(
            self.seq, self.kind, [list(star) for star in self.stars], links, self.about, self.changes,
            self.more_clusters,
        )  # fmt: skip

    def payload(self, ids: Sequence[Any]) -> dict[str, Any]:
        """As the log holds it, in the user's ids."""

        def named(rows: Iterable[int]) -> list[Any]:
            return [ids[row] for row in rows]

        return {
            "kind": self.kind,
            "stars": [named(star) for star in self.stars],
            "links": [[named(one.left), named(one.right), one.answer.value] for one in self.links],
            "about": [named(rows) for rows in self.about],
            "changes": [[named(rows), before, after] for rows, before, after in self.changes],
            "more_clusters": self.more_clusters,
        }

    @classmethod
    def read(cls, seq: int, payload: dict[str, Any], ordinal: dict[str, int], key_of: Any) -> Correction:
        """From the log."""

        def rows(names: Iterable[Any]) -> list[int]:
            return [ordinal[key_of(name)] for name in names]

        return cls(
            seq,
            payload["kind"],
            [rows(star) for star in payload["stars"]],
            [Link(rows(left), rows(right), Answer(answer)) for left, right, answer in payload["links"]],
            [rows(some) for some in payload["about"]],
            [(rows(some), before, after) for some, before, after in payload["changes"]],
            payload["more_clusters"],
        )

    def pairs(self, position: IntArray) -> list[tuple[Pair, Answer]]:
        """The pairs it says, as positions; rows that are missing now are left out."""
        said = []
        for star in self.stars:
            there = [int(position[row]) for row in star if position[row] >= 0]
            said += [(Pair(there[0], other), SAME) for other in there[1:]]
        for link in self.links:
            left = [int(position[row]) for row in link.left if position[row] >= 0]
            right = [int(position[row]) for row in link.right if position[row] >= 0]
            if left and right:
                said.append((Pair(left[0], right[0]), link.answer))
        return said


# -- which of them still count -----------------------------------------------------------------------------------------


def in_force(corrections: Iterable[Correction]) -> list[Correction]:
    """Corrections in order, earlier ones without what later ones take back."""
    kept: list[Correction] = []
    for new in corrections:
        if new.kind == "never" and new.about and _joined(kept, *(rows[0] for rows in new.about)):
            for old in kept:
                _forget(old, {row for rows in new.about for row in rows}, only=SAME)
        for old in kept:
            _give_way(old, new)
        kept.append(new.copy())
    return kept


def _give_way(old: Correction, new: Correction) -> None:
    if new.kind == "move":
        _forget(old, set(new.about[0]))
    elif new.kind == "merge":
        everyone = set(new.about[0])
        old.links = [link for link in old.links if not (link.answer is DIFFERENT and _within(link, everyone))]
    elif new.kind == "split":
        one, two = map(set, new.about)
        for star in old.stars:
            if not one.isdisjoint(star) and not two.isdisjoint(star):
                star[:] = [row for row in star if row not in one and row not in two]
        old.links = [
            link
            for link in old.links
            if not (link.answer is DIFFERENT and (_within(link, one) or _within(link, two)))
            and not (link.answer is SAME and (_across(link, one, two) or _across(link, two, one)))
        ]


def _forget(old: Correction, rows: set[int], only: Answer | None = None) -> None:
    """Rows are out of an earlier correction; the others in it stay as they are."""
    for star in old.stars:
        star[:] = [row for row in star if row not in rows]
    for link in old.links:
        if only is None or link.answer is only:
            link.left = [row for row in link.left if row not in rows]
            link.right = [row for row in link.right if row not in rows]


def _within(link: Link, rows: set[int]) -> bool:
    return bool(link.left and link.right) and link.left[0] in rows and link.right[0] in rows


def _across(link: Link, one: set[int], two: set[int]) -> bool:
    return bool(link.left and link.right) and link.left[0] in one and link.right[0] in two


def _joined(corrections: list[Correction], first: int, second: int) -> bool:
    """Whether corrections alone put two rows together."""
    partners: dict[int, set[int]] = {}
    for correction in corrections:
        pairs = [(star[0], row) for star in correction.stars for row in star[1:]]
        pairs += [(link.left[0], link.right[0]) for link in correction.links
                  if link.answer is SAME and link.left and link.right]  # fmt: skip
        for one, two in pairs:
            partners.setdefault(one, set()).add(two)
            partners.setdefault(two, set()).add(one)
    seen, open_rows = {first}, [first]
    while open_rows:
        fresh = partners.get(open_rows.pop(), set()) - seen
        seen |= fresh
        open_rows += fresh
    return second in seen


# -- making one --------------------------------------------------------------------------------------------------------


class Clusters:
    """The current clusters, for corrections to be made about them: rows by ordinal, typical ones first."""

    def __init__(self, X: Any, present: IntArray, position: IntArray, labels: IntArray) -> None:
        self._X, self._present, self._position, self.labels = X, present, position, labels

    def rows(self, cluster: int) -> list[int]:
        """The rows of a cluster that are present, the one nearest to its centre first."""
        rows = self._present[self.labels[self._present] == cluster]
        if not len(rows):
            known = ", ".join(map(str, np.unique(self.labels[self.labels >= 0]).tolist()[:20]))
            raise NotFoundError(f"There is no cluster {cluster!r}. There are {known}.")
        return self.typical(rows)

    def typical(self, rows: IntArray) -> list[int]:
        """Some rows, the one nearest to their centre first."""
        positions = self._position[rows]
        far = squared_distances(self._X, positions, mean_row(self._X, positions).reshape(1, -1))[:, 0]
        return rows[np.lexsort((rows, far))].tolist()

    def merge(self, cluster: int, other: int) -> Correction:
        """All rows of both clusters belong together."""
        if cluster == other:
            raise ParameterError(f"Cluster {cluster} cannot be merged with itself. Name two clusters.")
        star = self.rows(cluster)
        joining = self.rows(other)
        return Correction(0, "merge", [star + joining], [], [star + joining], [(joining, other, cluster)], -1)

    def split(self, cluster: int, rows: list[int], new_id: int) -> Correction:
        """Some rows of a cluster become one of their own."""
        everyone = self.rows(cluster)
        outside = [row for row in rows if self.labels[row] != cluster]
        if outside:
            raise ParameterError(f"A row to be split off is not in cluster {cluster}. Name rows of that cluster.")
        chosen = set(rows)
        if not chosen or len(chosen) == len(everyone):
            raise ParameterError(
                f"Splitting cluster {cluster} needs some of its {len(everyone)} rows, not all and not none."
            )
        given = self.typical(np.array(sorted(chosen), dtype=np.int64))
        rest = self.typical(np.array([row for row in everyone if row not in chosen], dtype=np.int64))
        apart = Link(given[:_STAND_INS], rest[:_STAND_INS], DIFFERENT)
        return Correction(0, "split", [given, rest], [apart], [given, rest], [(given, cluster, new_id)], 1)

    def move(self, row: int, cluster: int | None, new_id: int) -> Correction:
        """A row belongs to another cluster, or out into one of its own."""
        old = int(self.labels[row])
        if cluster is not None and cluster == old:
            raise ParameterError(f"The row is in cluster {cluster} already.")
        made = Correction(0, "move", about=[[row]], changes=[([row], old, new_id if cluster is None else cluster)])
        if cluster is not None:
            # One row alone would follow the moved one halfway into a third cluster: the core of the cluster holds both.
            core = self.rows(cluster)[:_STAND_INS]
            made.stars.append(core)
            made.links.append(Link([row], core, SAME))
        others = [] if old < 0 else [other for other in self.rows(old) if other != row]
        if others:
            made.links.append(Link([row], others[:_STAND_INS], DIFFERENT))
        if cluster is None and not others:
            raise ParameterError("The row is in a cluster of its own already.")
        made.more_clusters = (cluster is None) - (cluster is not None and not others)
        return made

    def never(self, first: int, second: int) -> Correction:
        """Two clusters are never joined."""
        if first == second:
            raise ParameterError(f"Cluster {first} cannot be kept apart from itself. Name two clusters.")
        link = Link(self.rows(first)[:_STAND_INS], self.rows(second)[:_STAND_INS], DIFFERENT)
        return Correction(0, "never", links=[link])


def never_rows(first: int, second: int) -> Correction:
    """Two rows are never together."""
    if first == second:
        raise ParameterError("A row cannot be kept apart from itself. Name two rows.")
    return Correction(0, "never", links=[Link([first], [second], DIFFERENT)], about=[[first], [second]])
