"""Colouring equals trying everything, on all small graphs, with cliques and with pinned colours."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from clew import Constraints
from clew.kernels import coloring as compiled
from clew.solvers import coloring
from clew.solvers.coloring import CliqueGraph, color
from tests.reference import coloring as reference
from tests.reference import every_graph, every_grouping, graphs_up_to_renaming, interpreted_kernel
from tests.reference.constraints import is_satisfied, sharing

interpreted = interpreted_kernel("coloring")
KERNELS = [pytest.param(compiled, id="compiled"), pytest.param(interpreted, id="interpreted")]

# Far more than graphs of this size need, and little enough that a search without end fails fast.
LIMIT = 100_000
# Not colourable with 3 colours, yet without four vertices that are all neighbours: a hub and an odd ring.
ODD_WHEEL = [(0, 5), (1, 5), (2, 5), (3, 5), (4, 5), (0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]


def graph_of(n, edges, groups=()):
    """A graph whose cliques are the groups of the given columns."""
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    clique_of, member = [], []
    for column in groups:
        for group in sorted(set(column) - {-1}):
            clique_of += [max(clique_of, default=-1) + 1] * column.count(group)
            member += [vertex for vertex in range(n) if column[vertex] == group]
    return CliqueGraph.build(n, pairs, np.array(clique_of, dtype=np.int64), np.array(member, dtype=np.int64))


def colored(graph, n_colors, **options):
    return color(graph, n_colors, work_limit=LIMIT, **options)


def assert_right(found, n, edges, n_colors, fixed=None):
    """A colouring when there is one, otherwise vertices that have none and of which each is needed."""
    if reference.can_color(range(n), edges, n_colors, fixed):
        assert found.status == "feasible"
        assert found.proof is None
        assert reference.is_coloring(found.colors.tolist(), edges, n_colors, fixed)
        return
    assert found.status == "infeasible"
    assert found.colors is None
    proof = found.proof.tolist()
    assert len(set(proof)) == len(proof)
    if found.is_clique:
        assert len(proof) == n_colors + 1
        assert all({pair, pair[::-1]} & set(edges) for pair in combinations(proof, 2))
        return
    assert found.is_irreducible
    assert not reference.can_color(proof, edges, n_colors, fixed)
    for vertex in proof:
        assert reference.can_color([other for other in proof if other != vertex], edges, n_colors, fixed)


def graphs_of_six():
    """Every graph of six vertices up to renaming: each graph of five, extended by a vertex in every way."""
    for edges in graphs_up_to_renaming(5):
        for size in range(6):
            for neighbours in combinations(range(5), size):
                yield edges + [(vertex, 5) for vertex in neighbours]


@pytest.mark.parametrize("n_colors", [1, 2, 3, 4])
def test_every_graph_of_five_vertices(n_colors):
    for edges in every_graph(5):
        assert_right(colored(graph_of(5, edges), n_colors), 5, edges, n_colors)


@pytest.mark.parametrize("n_colors", [1, 2, 3, 4])
def test_every_graph_of_six_vertices(n_colors):
    for edges in graphs_of_six():
        assert_right(colored(graph_of(6, edges), n_colors), 6, edges, n_colors)


@pytest.mark.parametrize("n_colors", [1, 2, 3])
def test_every_graph_of_four_vertices_with_every_clique(n_colors):
    for edges, column in product(graphs_up_to_renaming(4), every_grouping(4, 2)):
        expanded = edges + sharing(column)
        assert_right(colored(graph_of(4, edges, [column]), n_colors), 4, expanded, n_colors)


@pytest.mark.parametrize("n_colors", [2, 3])
def test_overlapping_cliques(n_colors):
    for first, second in product(every_grouping(5, 1), repeat=2):
        edges = sorted({*sharing(first), *sharing(second)})
        assert_right(colored(graph_of(5, [(0, 4)], [first, second]), n_colors), 5, [*edges, (0, 4)], n_colors)


@pytest.mark.sampled(4, slow=1)
@pytest.mark.parametrize("part", range(4))
def test_every_graph_of_four_vertices_with_every_pinned_colour(part):
    for edges, fixed in list(product(graphs_up_to_renaming(4), every_grouping(4, 3)))[part::4]:
        found = colored(graph_of(4, edges), 3, fixed=np.array(fixed, dtype=np.int32))
        assert_right(found, 4, edges, 3, fixed)


def test_cliques_with_every_pinned_colour():
    columns = [(0, 0, 0, -1), (0, 0, 0, 0), (0, 1, 1, 0), (-1, 0, 0, -1), (0, 0, 1, 1)]
    for column, fixed in product(columns, every_grouping(4, 3)):
        found = colored(graph_of(4, [(0, 3)], [column]), 3, fixed=np.array(fixed, dtype=np.int32))
        assert_right(found, 4, [(0, 3), *sharing(column)], 3, fixed)


@pytest.mark.sampled(2, slow=1)
@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4])
def test_check_equals_reference_on_every_cannot_link_graph_of_six_rows(n_clusters):
    for edges in graphs_of_six():
        constraints = Constraints((), edges, n_samples=6)
        found = constraints.check(n_clusters, work_limit=LIMIT)
        if reference.can_color(range(6), edges, n_clusters):
            assert found
            assert is_satisfied(found.labels, constraints)
            assert set(found.labels.tolist()) <= set(range(n_clusters))
        else:
            assert found.status == "infeasible"
            assert not reference.can_color(found.rows.tolist(), edges, n_clusters)
            assert f"n_clusters={n_clusters}" in found.message


def test_check_equals_reference_on_every_must_and_cannot_graph_of_four_rows():
    labellings = {k: list(product(range(k), repeat=4)) for k in (1, 2, 3)}
    for must_link, cannot_link in product(graphs_up_to_renaming(4), every_graph(4)):
        constraints = Constraints(must_link, cannot_link, n_samples=4)
        for n_clusters in (2, 3):
            found = constraints.check(n_clusters, work_limit=LIMIT)
            assert bool(found) == any(is_satisfied(labels, constraints) for labels in labellings[n_clusters])
            assert not found or is_satisfied(found.labels, constraints)


def test_odd_wheel_has_no_three_colouring_though_it_has_no_clique_of_four():
    found = colored(graph_of(6, ODD_WHEEL), 3)
    assert (found.status, found.is_clique) == ("infeasible", False)
    assert sorted(found.proof) == [0, 1, 2, 3, 4, 5]
    assert_right(found, 6, ODD_WHEEL, 3)
    assert colored(graph_of(6, ODD_WHEEL), 4).status == "feasible"


STAGES = {
    "no-easy-search": {"_EASY_WORK": 0},
    "long-turns": {"_EASY_WORK": 0, "_TURN_FACTOR": 1000},
    "no-clique-search": {"_CLIQUE_ENTRIES": -1},
    "mycielskian-first": {"_EASY_WORK": 0, "_MYCIELSKIAN_WORK": -1},
    "no-exchanges": {"_EXCHANGES": 0},
}


@pytest.mark.sampled(2, slow=1)
@pytest.mark.parametrize("constants", STAGES.values(), ids=STAGES)
def test_every_stage_of_the_search_is_right_by_itself(constants, monkeypatch):
    for name, value in constants.items():
        assert hasattr(coloring, name)
        monkeypatch.setattr(coloring, name, value)
    for edges in [*graphs_of_six(), ODD_WHEEL]:
        assert_right(colored(graph_of(6, edges), 3), 6, edges, 3)


def test_a_proof_that_is_found_at_once_ends_the_search():
    pinned = np.array([1, 1], dtype=np.int32)
    assert color(graph_of(2, [(0, 1)]), 2, fixed=pinned).work < 200
    assert color(graph_of(6, ODD_WHEEL), 3).work < 1000


def test_proof_leaves_out_what_does_not_matter():
    elsewhere = [(6 + a, 6 + b) for a, b in combinations(range(4), 2) if (a, b) != (0, 1)]
    found = colored(graph_of(10, [*ODD_WHEEL, *elsewhere]), 3)
    assert sorted(found.proof) == [0, 1, 2, 3, 4, 5]


def test_unknown_at_the_work_limit():
    # A hub over a ring of 21: the search has no short cut, and one step is not enough.
    ring = [(vertex, (vertex + 1) % 21) for vertex in range(21)]
    edges = ring + [(vertex, 21) for vertex in range(21)]
    limited = color(graph_of(22, edges), 3, work_limit=1)
    assert (limited.status, limited.colors, limited.proof) == ("unknown", None, None)
    assert colored(graph_of(22, edges), 3).status == "infeasible"


def test_preference_guides_where_nothing_binds(seed):
    rng = np.random.default_rng(seed)
    wishes = np.array([rng.permutation(3) for _ in range(8)], dtype=np.int32)
    found = colored(graph_of(8, []), 3, preference=wishes)
    assert found.colors.tolist() == wishes[:, 0].tolist()


def test_preference_never_binds():
    first = np.array([[0, 1, 2]] * 4, dtype=np.int32)
    for edges in every_graph(4):
        for wishes in (first, first[:, ::-1].copy()):
            assert_right(colored(graph_of(4, edges), 3, preference=wishes), 4, edges, 3)


def test_colours_do_not_depend_on_the_run():
    edges = [edge for edge in combinations(range(12), 2) if sum(edge) % 3]
    first, second = (colored(graph_of(12, edges), 9) for _ in range(2))
    assert first.status == "feasible"
    assert first.colors.tolist() == second.colors.tolist()


def test_interpreted_kernels_give_the_same_colourings(monkeypatch):
    cases = [
        (edges, column, n_colors)
        for edges in every_graph(4)
        for column in ((-1, -1, -1, -1), (0, 0, -1, 0), (0, 1, 1, 0))
        for n_colors in (2, 3)
    ]
    fixed = np.array([1, -1, -1, 0], dtype=np.int32)
    outcomes = []
    for kernels in (compiled, interpreted):
        monkeypatch.setattr(coloring, "kernels", kernels)
        outcomes.append(
            [
                [None if part is None else np.asarray(part).tolist() for part in colored(graph, n_colors, fixed=pinned)]
                for edges, column, n_colors in cases
                for graph in [graph_of(4, edges, [column])]
                for pinned in (None, fixed)
            ]
        )
    assert outcomes[0] == outcomes[1]
    assert {outcome[0] for outcome in outcomes[0]} == {"feasible", "infeasible"}


@pytest.mark.parametrize("kernels", KERNELS)
def test_peeled_vertices_have_fewer_neighbours_left_than_colours(kernels):
    for edges in every_graph(4):
        for n_colors in (1, 2, 3):
            fixed = np.array([-1, -1, -1, 0], dtype=np.int32)
            peeled, order = np.zeros(4, dtype=np.int8), np.empty(4, dtype=np.int64)
            n_peeled = kernels.peel(*graph_of(4, edges), fixed, n_colors, np.empty(4, dtype=np.int64), peeled, order)
            left = {0, 1, 2, 3}
            for vertex in order[:n_peeled].tolist():
                left.remove(vertex)
                assert sum(vertex in edge and len(left & set(edge)) == 1 for edge in edges) < n_colors
            assert left == set(np.flatnonzero(peeled == 0).tolist())
            assert 3 in left
            for vertex in left - {3}:
                assert sum(vertex in edge and set(edge) <= left for edge in edges) >= n_colors


@pytest.mark.parametrize("kernels", KERNELS)
def test_greedy_colours_differ_from_neighbours(kernels):
    for edges in every_graph(4):
        colors = np.full(4, -1, dtype=np.int32)
        preference = np.array([[1, 3, 0, 2]], dtype=np.int32)
        kernels.color_greedily(*graph_of(4, edges), np.arange(4), preference, np.zeros(4, np.int8), colors)
        expected = []
        for vertex in range(4):
            taken = {expected[a] for a, b in edges if b == vertex}
            expected.append(next(wish for wish in (1, 3, 0, 2) if wish not in taken))
        assert colors.tolist() == expected


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("n_colors", [2, 3])
def test_mending_counts_the_vertices_that_still_agree(kernels, n_colors):
    for edges in every_graph(4):
        for fixed in ([-1] * 4, [0, 0, -1, -1]):
            colors = np.maximum(np.array(fixed, dtype=np.int32), 0)
            n_hot = kernels.mend_coloring(
                *graph_of(4, edges),
                np.array(fixed, dtype=np.int32),
                np.arange(7) % 3,
                300,
                colors,
                np.zeros((4, n_colors), dtype=np.int32),
                np.empty(4, dtype=np.int64),
                np.full(4, -1, dtype=np.int64),
                np.zeros((4, n_colors), dtype=np.int64),
                np.zeros(1, dtype=np.int64),
            )
            assert n_hot == len(reference.agreeing(colors.tolist(), edges))
            assert all(want in (-1, have) for want, have in zip(fixed, colors.tolist(), strict=True))
            # Three hundred steps are plenty for four vertices.
            assert (n_hot == 0) == reference.can_color(range(4), edges, n_colors, fixed)


def test_part_of_a_graph_keeps_what_is_inside():
    for edges, column in product(every_graph(4), [(-1, -1, -1, -1), (0, 0, 0, -1), (0, 1, 1, 0)]):
        whole = graph_of(4, edges, [column])
        part = whole.part(np.array([3, 0, 2]))
        old = {0: 3, 1: 0, 2: 2}
        stated = {frozenset(pair) for pair in edges + sharing(column)}
        for vertex in range(3):
            expected = {other for other in range(3) if frozenset((old[vertex], old[other])) in stated}
            assert set(part.neighbours(vertex).tolist()) == expected


def test_large_sparse_graph_is_coloured_at_once(seed):
    rng = np.random.default_rng(seed)
    planted = rng.integers(0, 5, 20_000)
    pairs = rng.integers(0, 20_000, (60_000, 2))
    pairs = pairs[planted[pairs[:, 0]] != planted[pairs[:, 1]]]
    found = color(CliqueGraph.build(20_000, pairs, *np.empty((2, 0), dtype=np.int64)), 5)
    assert found.status == "feasible"
    assert (found.colors[pairs[:, 0]] != found.colors[pairs[:, 1]]).all()


def test_no_vertex_shares_a_clique_with_itself():
    graph = CliqueGraph.build(3, np.empty((0, 2), dtype=np.int64), np.array([0, 0]), np.array([0, 1]))
    assert graph.share_a_clique(np.array([0, 0, 1, 0]), np.array([0, 1, 0, 2])).tolist() == [False, True, True, False]
