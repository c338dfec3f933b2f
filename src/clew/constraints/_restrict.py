"""Restrict constraints to some rows, and keep the pairs that dropped rows entail.

If a-b and b-c are must-linked and b is dropped, a-c is added. The added link is certain if the chain is certain.
Otherwise its confidence is the lowest in the component. Kept rows inherit classes and cannot-groups of dropped rows
through certain links only.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clew.constraints._arrays import FloatArray, IntArray, group_columns, links_within
from clew.constraints._closure import component_numbers, must_links

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints

# An inherited cannot-group of at most this many rows is expanded to pairs with the inheriting row.
_SMALL_GROUP = 32


def restricted(constraints: Constraints, rows: IntArray) -> dict[str, Any]:
    """Arguments of the `Constraints` restricted to `rows`. A row named twice is must-linked to its copy."""
    n_kept = len(rows)
    place = np.full(len(constraints), -1, dtype=np.int64)
    place[rows[::-1]] = np.arange(n_kept)[::-1]  # the first copy represents the row
    copies = np.flatnonzero(place[rows] != np.arange(n_kept))
    given, *grouped = must_links(constraints)
    certain = constraints.must_link_confidence == 1
    strong = _Representatives(place, *component_numbers(len(constraints), given[certain], *grouped))
    weak = _Representatives(place, *component_numbers(len(constraints), given, *grouped))
    weakest = np.ones(weak.n_components)
    np.minimum.at(weakest, weak.component_of[given[:, 0]], constraints.must_link_confidence)

    labels = _restricted_labels(constraints.labels, rows, strong)
    must_groups = None if constraints.must_groups is None else constraints.must_groups[rows]
    links = [strong.of[given], np.column_stack([copies, place[rows[copies]]])]
    confidences = [constraints.must_link_confidence, np.ones(len(copies))]
    links[0], confidences[0] = _usable(links[0], confidences[0])
    sliced = [links_within(column) for column in group_columns(must_groups)]
    if labels is not None:
        sliced.append(links_within(labels))
    for level, kept in ((strong, np.ones(strong.n_components)), (weak, weakest)):
        now = [pairs[conf == 1] if level is strong else pairs for pairs, conf in zip(links, confidences, strict=True)]
        bridges = _bridges(level.component_of[rows], component_numbers(n_kept, *now, *sliced)[0])
        links.append(bridges)
        confidences.append(kept[level.component_of[rows[bridges[:, 0]]]])

    ends = constraints.cannot_link
    reached = np.where(strong.of[ends] >= 0, strong.of[ends], weak.of[ends])
    doubt = np.where(strong.of[ends] >= 0, 1.0, weakest[weak.component_of[ends]]).min(axis=1, initial=1.0)
    cannot_link, cannot_confidence = _usable(reached, np.minimum(constraints.cannot_link_confidence, doubt))
    cannot_groups, more_apart = _restricted_cannot_groups(constraints, rows, copies, place, strong)
    return {
        "must_link": np.concatenate(links),
        "must_link_confidence": np.concatenate(confidences),
        "cannot_link": np.concatenate([cannot_link, more_apart]),
        "cannot_link_confidence": np.concatenate([cannot_confidence, np.ones(len(more_apart))]),
        "labels": labels,
        "classes": constraints.classes,
        "must_groups": must_groups,
        "cannot_groups": cannot_groups,
        "soft_groups": None if constraints.soft_groups is None else constraints.soft_groups[rows],
        "triplets": _usable(strong.of[constraints.triplets], np.ones(len(constraints.triplets)))[0],
        "n_samples": n_kept,
        # Ids are unique, so copies of a row cannot both have its id.
        "ids": None if constraints.ids is None or len(copies) else constraints.ids[rows],
    }


def named_rows(constraints: Constraints) -> IntArray:
    """The rows that any constraint names."""
    rows = [constraints.must_link.ravel(), constraints.cannot_link.ravel(), constraints.triplets.ravel()]
    columns = [*group_columns(constraints.must_groups), *group_columns(constraints.cannot_groups)]
    if constraints.labels is not None:
        columns.append(constraints.labels)
    rows += [np.flatnonzero(column >= 0) for column in columns]
    if constraints.soft_groups is not None:
        rows.append(np.flatnonzero(np.diff(constraints.soft_groups.indptr)))
    return np.unique(np.concatenate(rows))


def renumbered(constraints: Constraints, rows: IntArray) -> dict[str, Any]:
    """Arguments of the same `Constraints` on `rows` only. `rows` is sorted and contains all rows that constraints name.

    Without ids, the numbers of the rows become their ids, so that messages still name the rows of the user.
    """

    def placed(pairs: IntArray) -> IntArray:
        return np.searchsorted(rows, pairs)

    def kept(column: Any) -> Any:
        return None if column is None else column[rows]

    return {
        "must_link": placed(constraints.must_link),
        "must_link_confidence": constraints.must_link_confidence,
        "cannot_link": placed(constraints.cannot_link),
        "cannot_link_confidence": constraints.cannot_link_confidence,
        "labels": kept(constraints.labels),
        "classes": constraints.classes,
        "must_groups": kept(constraints.must_groups),
        "cannot_groups": kept(constraints.cannot_groups),
        "soft_groups": kept(constraints.soft_groups),
        "triplets": placed(constraints.triplets),
        "n_samples": len(rows),
        "ids": rows if constraints.ids is None else constraints.ids[rows],
    }


class _Representatives:
    """New position that represents each old row: its own, or the position of a kept row must-linked to it, else -1."""

    def __init__(self, place: IntArray, component_of: IntArray, n_components: int) -> None:
        self.component_of, self.n_components = component_of, n_components
        kept = np.flatnonzero(place >= 0)
        stand_in = np.full(n_components, -1, dtype=np.int64)
        stand_in[component_of[kept[::-1]]] = place[kept[::-1]]
        self.of = np.where(place >= 0, place, stand_in[component_of])


def _usable(pairs: IntArray, confidence: FloatArray) -> tuple[IntArray, FloatArray]:
    """Pairs whose rows are all kept and still different."""
    ordered = np.sort(pairs, axis=1)
    usable = (ordered >= 0).all(axis=1) & (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
    return pairs[usable], confidence[usable]


def _bridges(wanted: IntArray, present: IntArray) -> IntArray:
    """Pairs of new positions that join the present components within each wanted component."""
    _, firsts = np.unique(wanted * (present.max(initial=0) + 1) + present, return_index=True)
    return firsts[links_within(wanted[firsts])]


def _restricted_labels(labels: IntArray | None, rows: IntArray, strong: _Representatives) -> IntArray | None:
    if labels is None:
        return None
    kept = labels[rows]
    known = np.flatnonzero((labels >= 0) & (strong.of >= 0))
    targets = strong.of[known]
    heirs = kept[targets] < 0
    kept[targets[heirs]] = labels[known[heirs]]
    return kept


def _restricted_cannot_groups(
    constraints: Constraints, rows: IntArray, copies: IntArray, place: IntArray, strong: _Representatives
) -> tuple[npt.NDArray[np.int64] | None, IntArray]:
    """Cannot-groups and cannot-links of the kept rows. A kept row inherits groups of dropped rows must-linked to it.

    A row in several groups keeps one group in the column. Of its other groups, a small one becomes cannot-links between
    the row and the group, and a large one goes to the first further column in which its rows are free.
    """
    columns: list[IntArray] = []
    links = [np.empty((0, 2), dtype=np.int64)]
    for column in group_columns(constraints.cannot_groups):
        kept = column[rows]
        kept[copies] = -1  # a row and its copy are must-linked, not two members of a group
        heirs = np.flatnonzero((place < 0) & (column >= 0) & (strong.of >= 0))
        inherited = np.unique(np.column_stack([column[heirs], strong.of[heirs]]), axis=0)
        inherited = inherited[kept[inherited[:, 1]] != inherited[:, 0]]
        first_of_row = np.zeros(len(inherited), dtype=bool)
        first_of_row[np.unique(inherited[:, 1], return_index=True)[1]] = True
        taken = first_of_row & (kept[inherited[:, 1]] < 0)
        kept[inherited[taken, 1]] = inherited[taken, 0]
        columns.append(kept)
        further: list[IntArray] = []
        rest = inherited[~taken]
        pointers, members = _by_group(kept)
        for start, stop in pairwise([*np.flatnonzero(np.diff(rest[:, 0], prepend=-1)).tolist(), len(rest)]):
            group, those = int(rest[start, 0]), rest[start:stop, 1]
            own = members[pointers[group][0] : pointers[group][1]] if group in pointers else those[:0]
            if len(own) + len(those) <= _SMALL_GROUP:
                everyone = np.concatenate([those, own])
                first, second = np.triu_indices(len(everyone), k=1)
                among = first < len(those)  # pairs of two rows that keep the group are already in the column
                links.append(np.column_stack([everyone[first[among]], everyone[second[among]]]))
                continue
            everyone = np.concatenate([those, own])
            home = next((one for one in further if (one[everyone] < 0).all()), None)
            if home is None:
                home = np.full(len(rows), -1, dtype=np.int64)
                further.append(home)
            home[everyone] = group
        columns += further
    groups = None if not columns else columns[0] if len(columns) == 1 else np.column_stack(columns)
    return groups, np.concatenate(links)


def _by_group(groups: IntArray) -> tuple[dict[int, tuple[int, int]], IntArray]:
    """Start and stop of each group in a list of rows sorted by group, and that list."""
    rows = np.flatnonzero(groups >= 0)
    rows = rows[np.argsort(groups[rows], kind="stable")]
    values, starts, counts = np.unique(groups[rows], return_index=True, return_counts=True)
    return {
        value: (start, start + count)
        for value, start, count in zip(values.tolist(), starts.tolist(), counts.tolist(), strict=True)
    }, rows
