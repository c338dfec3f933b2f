"""Constraints restricted to some rows entail the same pairs of these rows as all constraints."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from clew import Constraints
from tests.reference import constraints as reference
from tests.reference import every_graph, every_grouping, graphs_up_to_renaming

SUBSETS_OF_FOUR = [rows for size in (2, 3, 4) for rows in combinations(range(4), size)]


def assert_kept(constraints, row_lists):
    for rows in row_lists:
        assert reference.is_kept(constraints, rows, constraints.restrict(list(rows))), (constraints, rows)


def test_pairs_on_every_must_and_cannot_graph_of_four_rows():
    for must_link, cannot_link in product(graphs_up_to_renaming(4), every_graph(4)):
        assert_kept(Constraints(must_link, cannot_link, n_samples=4), [(0, 1), (2, 3), (3, 0, 2)])


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("knowledge", ["labels", "must_groups", "cannot_groups"])
def test_groups_and_classes_on_every_must_link_graph_of_four_rows(knowledge, part):
    for must_link, groups in list(product(graphs_up_to_renaming(4), every_grouping(4, 2)))[part::3]:
        assert_kept(Constraints(must_link, [(0, 2)], n_samples=4, **{knowledge: groups}), [(1, 0), (0, 2, 3)])


@pytest.mark.parametrize("confidences", list(product([0.3, 0.6, 1.0], repeat=3)))
def test_confidences_along_a_chain(confidences):
    chain = [(0, 1), (1, 2), (2, 3)]
    constraints = Constraints(chain, must_link_confidence=confidences, n_samples=4)
    assert_kept(constraints, SUBSETS_OF_FOUR)
    held = Constraints(
        chain[:2], chain[2:], must_link_confidence=confidences[:2], cannot_link_confidence=confidences[2:], n_samples=4
    )
    assert_kept(held, SUBSETS_OF_FOUR)


def test_repeated_rows_are_one_row():
    orders = list(product(range(3), repeat=3))
    for must_link, cannot_link in product(every_graph(3), repeat=2):
        assert_kept(Constraints(must_link, cannot_link, n_samples=3), orders)
    for groups in every_grouping(3, 2):
        assert_kept(Constraints([(0, 1)], cannot_groups=groups), orders)
        assert_kept(Constraints([(0, 1)], labels=groups), orders)


def test_a_row_takes_over_the_cannot_groups_of_all_rows_joined_to_it():
    # Rows 0 and 1 stand for three dropped rows each, which are in groups 0, 1, 2 and 2, 3, 4.
    joined = [(0, 2), (0, 3), (0, 4), (1, 5), (1, 6), (1, 7)]
    for order in ([0, 1, 2, 2, 3, 4], [2, 1, 0, 4, 3, 2], [0, 2, 1, 3, 2, 4]):
        constraints = Constraints(joined, cannot_groups=[-1, -1, *order, 4, 0], n_samples=10)
        assert_kept(constraints, [(0, 1), (1, 0), (0, 1, 8), (0, 1, 8, 9), (9, 8)])


@pytest.mark.parametrize(
    ("must_link", "groups", "rows"),
    [
        pytest.param([(1, 2), (0, 5), (2, 3)], [2, -1, 2, 0, 2, 1, -1], (2, 5), id="own-and-inherited"),
        pytest.param([(1, 2), (0, 3)], [1, 2, 1, 0], (3, 2), id="each-inherits"),
        pytest.param([(0, 1), (0, 2), (3, 4), (3, 5)], [-1, 0, 1, -1, 1, 0], (0, 3), id="both-inherit-both"),
    ],
)
def test_inherited_cannot_groups_meet_own_ones(must_link, groups, rows):
    constraints = Constraints(must_link, cannot_groups=groups)
    assert not constraints.closure().contradictory
    assert reference.apart(constraints)[rows] == 1
    assert_kept(constraints, [rows, rows[::-1]])


@pytest.mark.parametrize("knowledge", [{"labels": [1, -1, 2]}, {"cannot_groups": [0, -1, 0]}])
@pytest.mark.parametrize("confidence", [0.3, 1.0])
def test_classes_and_cannot_groups_pass_through_certain_links_only(knowledge, confidence):
    constraints = Constraints([(0, 1)], must_link_confidence=[confidence], **knowledge)
    kept = constraints[[1, 2]]
    assert bool(reference.stated_cannot_link(kept)) == (confidence == 1)
    assert_kept(constraints, [(1, 2)])


def test_small_random_sets_of_everything(seed):
    rng = np.random.default_rng(seed)
    for _ in range(300):
        n = int(rng.integers(3, 8))
        pairs = np.array(list(combinations(range(n), 2)))
        must_link, cannot_link = (rng.permutation(pairs)[: rng.integers(4)] for _ in range(2))
        constraints = Constraints(
            must_link,
            cannot_link,
            must_link_confidence=rng.choice([0.3, 0.6, 1], len(must_link)),
            cannot_link_confidence=rng.choice([0.3, 0.6, 1], len(cannot_link)),
            labels=rng.integers(-1, 3, n) if rng.random() < 0.4 else None,
            must_groups=rng.integers(-1, 3, (n, 2)) if rng.random() < 0.3 else None,
            cannot_groups=rng.integers(-1, 3, (n, 2)) if rng.random() < 0.5 else None,
            n_samples=n,
        )
        assert_kept(constraints, [rng.integers(0, n, rng.integers(1, n + 2)).tolist()])
