"""What follows from answers, kept up to date answer by answer."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew import Constraints
from clew.active import DIFFERENT, SAME
from clew.active._knowledge import Knowledge


def knowledge(n, **prior):
    return Knowledge(Constraints(n_samples=n, **prior).closure())


def test_answers_join_and_separate_whole_components():
    known = knowledge(6)
    for first, second, answer in [(0, 1, SAME), (2, 3, SAME), (1, 2, DIFFERENT), (3, 4, SAME)]:
        assert known.add(first, second, answer)
    assert known.relation(0, 4) is DIFFERENT
    assert known.relation(2, 4) is SAME
    assert known.relation(0, 5) is None
    assert sorted(known.rows(4).tolist()) == [2, 3, 4]


def test_a_contradiction_changes_nothing():
    known = knowledge(3)
    known.add(0, 1, SAME)
    known.add(1, 2, DIFFERENT)
    assert not known.add(0, 2, SAME)
    assert not known.add(0, 1, DIFFERENT)
    assert known.relation(0, 2) is DIFFERENT and known.relation(0, 1) is SAME


def test_prior_groups_and_classes_count():
    known = knowledge(6, cannot_groups=[0, 0, 0, -1, -1, -1], labels=[-1, -1, -1, 4, 7, -1])
    assert known.relation(0, 2) is DIFFERENT and known.relation(3, 4) is DIFFERENT
    known.add(0, 5, SAME)
    assert known.relation(5, 1) is DIFFERENT
    assert known.open_rows(5).tolist() == [3, 4]


def test_decided_pairs_are_counted():
    known = knowledge(5)
    known.add(0, 1, SAME)
    known.add(1, 2, SAME)
    known.add(2, 3, DIFFERENT)
    assert known.n_decided() == 3 + 3


def test_pairs_kept_apart_by_groups_and_labels_alone_are_counted():
    known = knowledge(6, cannot_groups=[0, 0, -1, -1, -1, -1], labels=[3, 7, 7, -1, -1, -1])
    known.add(0, 4, SAME)
    assert known.n_decided() == 1
    known.add(5, 1, SAME)  # two with three, kept apart by a group and by labels
    assert known.n_decided() == 1 + 3 + 2 * 3


def test_components_and_their_opposites_are_those_of_single_rows(seed):
    rng = np.random.default_rng(seed)
    for _ in range(30):
        groups = np.where(np.arange(9) > 2, rng.integers(-1, 2, size=9), -1)
        known = knowledge(9, cannot_groups=groups, must_link=[(0, 1)], cannot_link=[(2, 3)])
        for _ in range(int(rng.integers(8))):
            known.add(*rng.choice(9, 2, replace=False).tolist(), (SAME, DIFFERENT)[rng.integers(2)])
        component = [known.component(row) for row in range(9)]
        assert known.components().tolist() == component
        for row in range(9):
            apart = {other for other in range(9) if known.relation(row, other) is DIFFERENT}
            firsts = known.apart(row)
            assert {component[one] for one in firsts} == {component[one] for one in apart}
            assert len(firsts) == len({component[one] for one in apart})
            assert known.open_rows(row).tolist() == [one for one in range(9) if known.relation(row, one) is None]


def test_joining_takes_the_smaller_side():
    """Rows are moved from the smaller to the larger side, so that a log costs its length times a logarithm."""
    known = knowledge(4096)
    for row in range(1, 4096):
        known.add(row, row - 1, SAME)
    depth = 0
    for row in range(0, 4096, 97):
        component, steps = int(known._prior.component_of[row]), 0
        while known._parent.get(component, component) != component:
            component, steps = known._parent[component], steps + 1
        depth = max(depth, steps)
    assert depth <= np.log2(4096)


PRIOR = Constraints([(0, 1)], [(1, 2)], cannot_groups=[-1, -1, -1, 0, 0, -1, -1], n_samples=7)
SAID = st.lists(
    st.tuples(st.permutations(range(7)).map(lambda rows: (rows[0], rows[1])), st.sampled_from([SAME, DIFFERENT])),
    max_size=5,
)


def decided(known):
    return sum(known.relation(*pair) is not None for pair in combinations(range(7), 2))


@given(SAID, SAID)
def test_several_pairs_contradict_if_they_cannot_all_be_added(before, said):
    known = Knowledge(PRIOR.closure())
    for (first, second), answer in before:
        known.add(first, second, answer)
    relations = [known.relation(*pair) for pair in combinations(range(7), 2)]
    found = known.contradicts(said)
    assert [known.relation(*pair) for pair in combinations(range(7), 2)] == relations
    added = [known.add(first, second, answer) for (first, second), answer in said]
    assert found == (not all(added))


@given(SAID, SAID)
def test_answers_taken_back_leave_what_was_known_before(before, after):
    known, alone = Knowledge(PRIOR.closure()), Knowledge(PRIOR.closure())
    for (first, second), answer in before:
        known.add(first, second, answer)
        alone.add(first, second, answer)
    mark = len(known.journal)
    for (first, second), answer in after:
        known.add(first, second, answer)
    known.journal.rewind(mark)
    for row in range(7):
        assert known.component(row) == alone.component(row) == known.components()[row]
        assert known.rows(row).tolist() == alone.rows(row).tolist()
        assert known.apart(row) == alone.apart(row)


@given(SAID, st.permutations(range(7)), st.integers(0, 6))
def test_a_row_is_compared_with_several_as_with_each(said, others, n_others):
    known = Knowledge(PRIOR.closure())
    for (first, second), answer in said:
        known.add(first, second, answer)
    row, *others = others
    relations = {other: known.relation(row, other) for other in others[:n_others]}
    assert list(known.undecided(row, relations)) == [one for one, found in relations.items() if found is None]
    assert known.is_apart(row, relations) == all(found is DIFFERENT for found in relations.values())


@given(SAID)
def test_answers_decide_as_many_pairs_as_is_told_beforehand(said):
    known = Knowledge(PRIOR.closure())
    for (first, second), answer in said:
        if known.relation(first, second) not in (None, answer):
            continue
        before, told = decided(known), known.n_decided_by(first, second, answer)
        known.add(first, second, answer)
        assert decided(known) - before == told
    rows = np.arange(7)
    assert known.components(rows).tolist() == [known.component(row) for row in rows]
