"""Corrections of clusters (merge, split, move, never), converted to pairs of rows that every later fit satisfies.

A correction is stored as rows, not as clusters, because clusters change with each fit. It becomes these pairs:

- merge: all rows of the two clusters are together.
- split: the rows split off are together, and each is apart from each row that stays. The rows that stay may part later.
- move: the row is with a typical row of its new cluster, and apart from a typical row of its old one.
- never: two rows, or a typical row of each of two clusters, are apart.

Rows that belong together form a *star* around the first of them. A *link* is a pair with a typical row of a cluster. It
also names other typical rows, which replace that row if it is moved away later. Of two corrections about the same rows
the later one wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.active import DIFFERENT, SAME, Answer, Pair
from clew.active._distances import mean_row, squared_distances
from clew.exceptions import NotFoundError, ParameterError

IntArray = npt.NDArray[np.int64]

# Rows that are together, and rows that are apart from each of them.
Apart = list[tuple[list[int], list[int]]]

# Largest number of typical rows that represent a cluster. If the first is moved away, the next replaces it.
_STAND_INS = 10
KINDS = ("merge", "split", "move", "never")


@dataclass
class ClusterLink:
    """Two lists of rows. The first rows are the same or different; the others replace them if they are moved away."""

    left: list[int]
    right: list[int]
    answer: Answer


@dataclass
class Correction:
    """A correction as constraints between rows (by ordinal) and changes of clusters.

    Attributes
    ----------
    seq : int
        Number of its event; 0 while the correction is only proposed.
    kind : {"merge", "split", "move", "never"}
    stars : lists of rows
        Rows that belong together.
    links : list of ClusterLink
    apart : list of pairs of lists of rows
        Rows that are together, and rows that are apart from each of them.
    about : lists of rows
        merge: all its rows; split: the two parts; move: the row; never: the two rows, if rows were named.
    changes : list of (rows, cluster before, cluster after)
    more_clusters : int
        Number of clusters that it adds; negative if it removes some.
    waited : bool
        Whether it contradicted something when it was made, so that it did not change clusters at once.
    """

    seq: int
    kind: str
    stars: list[list[int]] = field(default_factory=list)
    links: list[ClusterLink] = field(default_factory=list)
    apart: list[tuple[list[int], list[int]]] = field(default_factory=list)
    about: list[list[int]] = field(default_factory=list)
    changes: list[tuple[list[int], int, int]] = field(default_factory=list)
    more_clusters: int = 0
    waited: bool = False

    def copy(self) -> Correction:
        """A copy that later corrections can change."""
        links = [ClusterLink(list(one.left), list(one.right), one.answer) for one in self.links]
        stars = [list(star) for star in self.stars]
        return replace(self, stars=stars, links=links, apart=list(self.apart))

    def payload(self, ids: Sequence[Any]) -> dict[str, Any]:
        """The correction as stored in the log, with the user's ids."""

        def named(rows: Iterable[int]) -> list[Any]:
            return [ids[row] for row in rows]

        return {
            "kind": self.kind,
            "stars": [named(star) for star in self.stars] if self.kind == "merge" else [],
            "links": [[named(one.left), named(one.right), one.answer.value] for one in self.links],
            "about": [named(rows) for rows in self.about],
            "changes": [[named(rows), before, after] for rows, before, after in self.changes],
            "more_clusters": self.more_clusters,
        }

    @classmethod
    def read(cls, seq: int, payload: dict[str, Any], ordinal: dict[str, int], key_of: Any) -> Correction:
        """Read a correction from the log."""

        def rows(names: Iterable[Any]) -> list[int]:
            return [ordinal[key_of(name)] for name in names]

        kind, about = payload["kind"], [rows(some) for some in payload["about"]]
        links = [ClusterLink(rows(left), rows(right), Answer(answer)) for left, right, answer in payload["links"]]
        changes = [(rows(some), before, after) for some, before, after in payload["changes"]]
        made = cls(seq, kind, links=links, about=about, changes=changes, more_clusters=payload["more_clusters"])
        made.waited = payload["conflict"]
        if kind == "merge":
            made.stars = [rows(star) for star in payload["stars"]]
        elif kind == "split":  # earlier versions recorded the others as together as well
            made.stars, made.links, made.apart = [about[0]], [], [(about[0], about[1])]
        return made

    def pairs(self, position: IntArray) -> list[tuple[Pair, Answer]]:
        """The pairs of the correction, as positions. Rows that are missing now are left out."""
        said = []
        for star in self.stars:
            there = [int(position[row]) for row in star if position[row] >= 0]
            said += [(Pair(there[0], other), SAME) for other in there[1:]]
        for link in self.links:
            left = [int(position[row]) for row in link.left if position[row] >= 0]
            right = [int(position[row]) for row in link.right if position[row] >= 0]
            if left and right:
                said.append((Pair(left[0], right[0]), link.answer))
        for left, right in self.apart:
            there = [int(position[row]) for row in left if position[row] >= 0][:1]
            said += [(Pair(one, int(position[row])), DIFFERENT) for one in there for row in right if position[row] >= 0]
        return said


def moves(before: IntArray, after: IntArray, first: Sequence[int] = ()) -> list[tuple[list[int], int, int]]:
    """Rows that change their cluster, grouped by the cluster before and after. The rows `first` are listed first."""
    order = np.concatenate([np.array(first, dtype=np.int64), np.flatnonzero(before != after)])
    found: dict[tuple[int, int], dict[int, None]] = {}
    for row in order.tolist():
        found.setdefault((int(before[row]), int(after[row])), {})[row] = None
    return [(list(rows), *move) for move, rows in found.items()]


# -- which of them still count -----------------------------------------------------------------------------------------


def in_force(corrections: Iterable[Correction]) -> list[Correction]:
    """Corrections in order. Parts of a correction that later corrections override are removed."""
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
        old.apart = _joined_within(old.apart, everyone)
    elif new.kind == "split":
        one, two = map(set, new.about)
        for star in old.stars:
            if not one.isdisjoint(star) and not two.isdisjoint(star):
                star[:] = [row for row in star if row not in one]
        old.apart = _joined_within(_divided(old.apart, one), one)
        old.links = [
            link
            for link in old.links
            if not (link.answer is DIFFERENT and _within(link, one))
            and not (link.answer is SAME and (_across(link, one, two) or _across(link, two, one)))
        ]


def _forget(old: Correction, rows: set[int], only: Answer | None = None) -> None:
    """Remove rows from an earlier correction; its other rows stay in it."""
    for star in old.stars:
        star[:] = [row for row in star if row not in rows]
    for link in old.links:
        if only is None or link.answer is only:
            link.left = [row for row in link.left if row not in rows]
            link.right = [row for row in link.right if row not in rows]
    if only is None:
        old.apart = [(_without(left, rows), _without(right, rows)) for left, right in old.apart]
    else:  # rows that leave a star are still apart from the others, each by itself
        for row in rows:
            old.apart = _divided(old.apart, {row})


def _divided(apart: Apart, rows: set[int]) -> Apart:
    """The separations after some rows are no longer together with the other rows on their side."""
    parts = [
        (part, right)
        for left, right in apart
        for part in ([row for row in left if row in rows], _without(left, rows))
        if part
    ]
    return parts if len(parts) > len(apart) else apart


def _joined_within(apart: Apart, rows: set[int]) -> Apart:
    """The separations that remain when some rows belong together."""
    found = []
    for left, right in apart:
        if rows.isdisjoint(left) or rows.isdisjoint(right):
            found.append((left, right))
        else:
            found += [([row for row in left if row in rows], _without(right, rows)), (_without(left, rows), right)]
    return found


def _without(some: list[int], rows: set[int]) -> list[int]:
    return [row for row in some if row not in rows]


def _within(link: ClusterLink, rows: set[int]) -> bool:
    return bool(link.left and link.right) and link.left[0] in rows and link.right[0] in rows


def _across(link: ClusterLink, one: set[int], two: set[int]) -> bool:
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
    """The current clusters, from which corrections are made: rows by ordinal, typical ones first."""

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
        """Sort rows by their distance to their centre, nearest first."""
        positions = self._position[rows]
        far = squared_distances(self._X, positions, mean_row(self._X, positions).reshape(1, -1))[:, 0]
        return rows[np.lexsort((rows, far))].tolist()

    def merge(self, cluster: int, other: int) -> Correction:
        """All rows of both clusters belong together."""
        if cluster == other:
            raise ParameterError(f"Cluster {cluster} cannot be merged with itself. Name two clusters.")
        star = self.rows(cluster)
        joining = self.rows(other)
        everyone = star + joining
        return Correction(
            0, "merge", [everyone], about=[everyone], changes=[(joining, other, cluster)], more_clusters=-1
        )

    def split(self, cluster: int, rows: list[int], new_id: int) -> Correction:
        """Some rows of a cluster become a new cluster."""
        everyone = self.rows(cluster)
        outside = [row for row in rows if self.labels[row] != cluster]
        if outside:
            raise ParameterError(f"A row to be split off is not in cluster {cluster}. Name rows of that cluster.")
        chosen = set(rows)
        if not chosen or len(chosen) == len(everyone):
            raise ParameterError(
                f"Splitting cluster {cluster} needs at least one of its {len(everyone)} rows, but not all."
            )
        given = self.typical(np.array(sorted(chosen), dtype=np.int64))
        rest = self.typical(np.array([row for row in everyone if row not in chosen], dtype=np.int64))
        changes = [(given, cluster, new_id)]
        return Correction(
            0, "split", [given], apart=[(given, rest)], about=[given, rest], changes=changes, more_clusters=1
        )

    def move(self, row: int, cluster: int | None, new_id: int) -> Correction:
        """A row belongs to another cluster, or to a new one."""
        old = int(self.labels[row])
        if cluster is not None and cluster == old:
            raise ParameterError(f"The row is in cluster {cluster} already.")
        made = Correction(0, "move", about=[[row]], changes=[([row], old, new_id if cluster is None else cluster)])
        if cluster is not None:
            made.links.append(ClusterLink([row], self.rows(cluster)[:_STAND_INS], SAME))
        others = [] if old < 0 else [other for other in self.rows(old) if other != row]
        if others:
            made.links.append(ClusterLink([row], others[:_STAND_INS], DIFFERENT))
        if cluster is None and not others:
            raise ParameterError("The row is in a cluster of its own already.")
        made.more_clusters = (cluster is None) - (cluster is not None and not others)
        return made

    def never(self, first: int, second: int) -> Correction:
        """Two clusters are never joined."""
        if first == second:
            raise ParameterError(f"Cluster {first} cannot be kept apart from itself. Name two clusters.")
        link = ClusterLink(self.rows(first)[:_STAND_INS], self.rows(second)[:_STAND_INS], DIFFERENT)
        return Correction(0, "never", links=[link])


def never_rows(first: int, second: int) -> Correction:
    """Two rows are never together."""
    if first == second:
        raise ParameterError("A row cannot be kept apart from itself. Name two rows.")
    return Correction(0, "never", links=[ClusterLink([first], [second], DIFFERENT)], about=[[first], [second]])
