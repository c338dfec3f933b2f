"""Constraints on some of the rows, with what followed from the others kept.

Dropping a row must not drop what it proved: if a-b and b-c are must-linked and b goes, a-c stays. Links that are added
for this are certain where the chain is certain; otherwise they carry the lowest confidence found in the component.
Classes and cannot-groups pass from dropped rows to kept ones through certain links only.
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


def restricted(constraints: Constraints, rows: IntArray) -> dict[str, Any]:
    """Arguments of the `Constraints` about `rows` alone; a row named twice is must-linked to its copy."""
    n_kept = len(rows)
    place = np.full(len(constraints), -1, dtype=np.int64)
    place[rows[::-1]] = np.arange(n_kept)[::-1]  # the first copy of a row stands for it
    copies = np.flatnonzero(place[rows] != np.arange(n_kept))
    given, *grouped = must_links(constraints)
    certain = constraints.must_link_confidence == 1
    strong = _StandIns(place, *component_numbers(len(constraints), given[certain], *grouped))
    weak = _StandIns(place, *component_numbers(len(constraints), given, *grouped))
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
    return {
        "must_link": np.concatenate(links),
        "must_link_confidence": np.concatenate(confidences),
        "cannot_link": cannot_link,
        "cannot_link_confidence": cannot_confidence,
        "labels": labels,
        "must_groups": must_groups,
        "cannot_groups": _restricted_cannot_groups(constraints, rows, copies, place, strong),
        "soft_groups": None if constraints.soft_groups is None else constraints.soft_groups[rows],
        "triplets": _usable(strong.of[constraints.triplets], np.ones(len(constraints.triplets)))[0],
        "n_samples": n_kept,
        # Ids name rows one to one; copies of a row cannot both have its id.
        "ids": None if constraints.ids is None or len(copies) else constraints.ids[rows],
    }


class _StandIns:
    """For every old row the new position that stands for it: its own, or that of a kept row joined to it; else -1."""

    def __init__(self, place: IntArray, component_of: IntArray, n_components: int) -> None:
        self.component_of, self.n_components = component_of, n_components
        kept = np.flatnonzero(place >= 0)
        stand_in = np.full(n_components, -1, dtype=np.int64)
        stand_in[component_of[kept[::-1]]] = place[kept[::-1]]
        self.of = np.where(place >= 0, place, stand_in[component_of])


def _usable(pairs: IntArray, confidence: FloatArray) -> tuple[IntArray, FloatArray]:
    """Those whose rows are all still there and still different."""
    ordered = np.sort(pairs, axis=1)
    usable = (ordered >= 0).all(axis=1) & (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
    return pairs[usable], confidence[usable]


def _bridges(wanted: IntArray, present: IntArray) -> IntArray:
    """Pairs of new positions that join, within each wanted component, the components present."""
    _, firsts = np.unique(wanted * (present.max(initial=0) + 1) + present, return_index=True)
    return firsts[links_within(wanted[firsts])]


def _restricted_labels(labels: IntArray | None, rows: IntArray, strong: _StandIns) -> IntArray | None:
    if labels is None:
        return None
    kept = labels[rows]
    known = np.flatnonzero((labels >= 0) & (strong.of >= 0))
    targets = strong.of[known]
    heirs = kept[targets] < 0
    kept[targets[heirs]] = labels[known[heirs]]
    return kept


def _restricted_cannot_groups(
    constraints: Constraints, rows: IntArray, copies: IntArray, place: IntArray, strong: _StandIns
) -> npt.NDArray[np.int64] | None:
    """Groups of the kept rows; a kept row takes over the groups of the dropped ones it is joined to.

    A row may come to be in several groups; each group then goes whole into the first column where none of its rows has
    one yet.
    """
    if constraints.cannot_groups is None:
        return None
    columns = []
    for column in group_columns(constraints.cannot_groups):
        kept = column[rows]
        kept[copies] = -1  # a row and its copy are one thing, not two of a group
        own = np.flatnonzero(kept >= 0)
        heirs = np.flatnonzero((place < 0) & (column >= 0) & (strong.of >= 0))
        members = np.concatenate(
            [np.column_stack([kept[own], own]), np.column_stack([column[heirs], strong.of[heirs]])]
        )
        members = np.unique(members, axis=0)
        several = np.bincount(members[:, 1], minlength=len(rows))[members[:, 1]] > 1
        crowded = np.isin(members[:, 0], members[several, 0])
        first = np.full(len(rows), -1, dtype=np.int64)
        first[members[~crowded, 1]] = members[~crowded, 0]
        further = [first]
        rest = members[crowded]
        for start, stop in pairwise([*np.flatnonzero(np.diff(rest[:, 0], prepend=-1)).tolist(), len(rest)]):
            group, those = rest[start, 0], rest[start:stop, 1]
            home = next((one for one in further if (one[those] < 0).all()), None)
            if home is None:
                home = np.full(len(rows), -1, dtype=np.int64)
                further.append(home)
            home[those] = group
        columns += further
    return columns[0] if len(columns) == 1 else np.column_stack(columns)
