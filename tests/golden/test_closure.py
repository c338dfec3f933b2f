"""Closure equals the pairwise reference on all small inputs."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from clew import Constraints
from tests.reference import closure as flooding
from tests.reference import constraints as reference
from tests.reference import every_graph, every_grouping, graphs_up_to_renaming


def entailed_by_closure(closed):
    """Ordered pairs of rows together and apart, expanded from components."""
    rows = range(len(closed.component_of))
    neighbours = [set(closed.graph.neighbours(component).tolist()) for component in range(closed.n_components)]
    component_of = closed.component_of.tolist()
    together = {(i, j) for i in rows for j in rows if component_of[i] == component_of[j]}
    apart = {(i, j) for i in rows for j in rows if component_of[j] in neighbours[component_of[i]]}
    return together, apart


def assert_matches_reference(constraints):
    closed = constraints.closure()
    together, apart = entailed_by_closure(closed)
    expected_together, expected_apart = reference.entailed(constraints)
    assert together == expected_together
    # A component that would have to differ from itself is a flag, not an edge.
    assert apart == expected_apart - expected_together
    assert closed.contradictory == bool(expected_apart & expected_together)


def test_components_match_reference_on_every_graph_of_five_rows():
    for must_link in every_graph(5):
        closed = Constraints(must_link, n_samples=5).closure()
        expected = flooding.component_of(5, must_link)
        assert closed.component_of.tolist() == expected
        assert closed.n_components == max(expected) + 1
        assert closed.sizes.tolist() == [expected.count(component) for component in range(closed.n_components)]
        assert closed.first_row.tolist() == [expected.index(component) for component in range(closed.n_components)]
        pointers, rows = closed.rows
        for component, members in enumerate(np.split(rows, pointers[1:-1])):
            assert members.tolist() == [row for row in range(5) if expected[row] == component]
        assert not closed.contradictory
        assert not closed.tied.any()
        assert (closed.labels == -1).all()


def test_must_and_cannot_links_match_reference_on_every_pair_of_graphs_of_four_rows():
    for must_link, cannot_link in product(graphs_up_to_renaming(4), every_graph(4)):
        closed = Constraints(must_link, cannot_link, n_samples=4).closure()
        together, apart = entailed_by_closure(closed)
        expected_together = flooding.together(4, must_link)
        expected_apart = flooding.apart(4, must_link, cannot_link)
        assert together == expected_together
        assert apart == expected_apart - expected_together
        assert closed.contradictory == bool(expected_apart & expected_together)
        in_edge = {i for i, _ in apart}
        assert [bool(closed.tied[component]) for component in closed.component_of] == [i in in_edge for i in range(4)]


def test_labels_match_reference_on_every_labelling_and_graph_of_four_rows():
    for labels, must_link in product(every_grouping(4, 2), graphs_up_to_renaming(4)):
        constraints = Constraints(must_link, labels=labels)
        assert_matches_reference(constraints)
        closed = constraints.closure()
        if not closed.contradictory:
            for component in range(closed.n_components):
                known = {labels[row] for row in np.flatnonzero(closed.component_of == component)} - {-1}
                assert {int(closed.labels[component])} == (known or {-1})


def test_three_classes_are_pairwise_apart():
    for labels in every_grouping(4, 4):
        assert_matches_reference(Constraints(labels=labels))


def test_must_groups_match_reference_on_every_grouping_and_cannot_graph_of_four_rows():
    for groups, cannot_link in product(every_grouping(4, 2), graphs_up_to_renaming(4)):
        assert_matches_reference(Constraints((), cannot_link, must_groups=groups))


def test_cannot_groups_match_reference_on_every_grouping_and_must_graph_of_four_rows():
    for groups, must_link in product(every_grouping(4, 2), graphs_up_to_renaming(4)):
        assert_matches_reference(Constraints(must_link, cannot_groups=groups))


def test_two_columns_of_groups_match_reference_on_every_grouping_of_three_rows():
    for first, second in product(every_grouping(3, 2), repeat=2):
        columns = np.column_stack([first, second])
        assert_matches_reference(Constraints(must_groups=columns))
        assert_matches_reference(Constraints(must_groups=first, cannot_groups=second))
        for must_link in ([], [(0, 1)]):
            assert_matches_reference(Constraints(must_link, cannot_groups=columns))


def test_everything_at_once_on_random_small_sets(seed):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(6), 2)))
    n_contradictory = 0
    for _ in range(300):
        constraints = Constraints(
            rng.permutation(pairs)[: rng.integers(4)],
            rng.permutation(pairs)[: rng.integers(4)],
            labels=rng.integers(-1, 3, 6) if rng.random() < 0.5 else None,
            must_groups=rng.integers(-1, 6, (6, 2)) if rng.random() < 0.5 else None,
            cannot_groups=rng.integers(-1, 6, (6, 2)) if rng.random() < 0.5 else None,
            n_samples=6,
        )
        assert_matches_reference(constraints)
        n_contradictory += constraints.closure().contradictory
    assert 0 < n_contradictory < 300


def test_large_group_and_class_numbers():
    large = 2**62
    constraints = Constraints(
        [(0, 1)], labels=[large, -1, 3, -1], must_groups=[-1, -1, large, large], cannot_groups=[large, -1, -1, large]
    )
    assert_matches_reference(constraints)
    assert constraints.closure().labels.tolist() == [large, 3]


def test_groups_and_classes_are_kept_as_cliques_not_as_pairs():
    closed = Constraints(labels=np.arange(1000), cannot_groups=np.zeros(1000, dtype=int)).closure()
    assert len(closed.graph.edges) == 0
    assert len(closed.graph.members) == 2000


def test_no_rows_and_no_knowledge():
    assert Constraints().closure().n_components == 0
    assert Constraints(n_samples=3).closure().component_of.tolist() == [0, 1, 2]
    assert Constraints(labels=[]).closure().n_components == 0


def test_closure_is_computed_once():
    constraints = Constraints([(0, 1)])
    assert constraints.closure() is constraints.closure()
