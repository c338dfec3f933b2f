"""Cluster ids that stay: laws of the matching."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew.session._identity import stable_ids

LABELS = st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), min_size=1, max_size=12)


@given(LABELS, st.permutations(range(5)))
def test_other_numbers_for_the_same_clusters_give_the_same_ids(pairs, numbers):
    old, new = map(list, zip(*pairs, strict=True))
    renumbered = [label if label < 0 else numbers[label] for label in new]
    ids, next_id = stable_ids(old, new, 5)
    again, next_again = stable_ids(old, renumbered, 5)
    assert ids.tolist() == again.tolist()
    assert next_id == next_again


@given(LABELS, st.data())
def test_the_order_of_rows_does_not_matter(pairs, data):
    order = data.draw(st.permutations(range(len(pairs))))
    old, new = (np.array(side) for side in zip(*pairs, strict=True))
    names = [f"row {place}" for place in range(len(pairs))]
    ids, next_id = stable_ids(old, new, 5, names)
    again, next_again = stable_ids(old[order], new[order], 5, [names[place] for place in order])
    assert ids[order].tolist() == again.tolist()
    assert next_id == next_again


@given(st.lists(st.integers(-1, 4), min_size=1, max_size=12), st.permutations(range(5)))
def test_the_same_partition_keeps_all_ids(old, numbers):
    ids, next_id = stable_ids(old, [label if label < 0 else numbers[label] for label in old], 5)
    assert ids.tolist() == old
    assert next_id == 5


@given(LABELS)
def test_each_cluster_has_one_id_new_ones_are_counted_up(pairs):
    old, new = map(list, zip(*pairs, strict=True))
    ids, next_id = stable_ids(old, new, 5)
    assert len({(label, number) for label, number in zip(new, ids.tolist(), strict=True)}) == len(set(new))
    assert [number < 0 for number in ids] == [label < 0 for label in new]
    fresh = sorted({number for number in ids.tolist() if number >= 5})
    assert fresh == list(range(5, next_id))
    assert {number for number in ids.tolist() if 0 <= number < 5} <= set(old)


@given(LABELS)
def test_no_other_matching_overlaps_more(pairs):
    old, new = map(list, zip(*pairs, strict=True))
    ids, _ = stable_ids(old, new, 5)
    kept = sum(a == b >= 0 for a, b in zip(old, ids.tolist(), strict=True))
    clusters = sorted(set(new) - {-1})
    best = 0
    for taken in permutations(range(5), len(clusters)):
        to = dict(zip(clusters, taken, strict=True))
        best = max(best, sum(label >= 0 and to[label] == before for before, label in zip(old, new, strict=True)))
    assert kept == best


def test_a_cluster_that_matches_nothing_is_new():
    ids, next_id = stable_ids([3, 3, 7, 7], [0, 0, 0, 1], 8)
    assert ids.tolist() == [3, 3, 3, 7]
    ids, next_id = stable_ids([3, 3, -1, -1], [0, 0, 1, 1], 8)
    assert (ids.tolist(), next_id) == ([3, 3, 8, 8], 9)
