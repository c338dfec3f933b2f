"""`check`: a witness, rows that prove the contrary, or an honest "unknown"."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from clew import Constraints
from clew.exceptions import ParameterError
from tests.reference.coloring import can_color
from tests.reference.constraints import is_satisfied

# Five rows in a ring, each apart from the next, and a hub apart from all: three clusters do not do, yet no four rows
# are pairwise apart.
ODD_WHEEL = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 5), (1, 5), (2, 5), (3, 5), (4, 5)]


def test_witness_satisfies_everything():
    constraints = Constraints(
        [(0, 1)], [(1, 2)], labels=[-1, -1, 4, 7, -1, -1], must_groups=[-1, -1, -1, -1, 0, 0],
        cannot_groups=[-1, 2, -1, 2, 2, -1],
    )  # fmt: skip
    found = constraints.check(3)
    assert (found.status, bool(found), found.rows, found.contradictory) == ("feasible", True, None, False)
    assert is_satisfied(found.labels, constraints)
    assert found.labels.dtype == np.int64
    assert found.message == "A labelling with 3 clusters satisfies everything."


def test_three_points_two_clusters():
    found = Constraints((), [(0, 2), (1, 2)]).check(2)
    assert found.labels[0] == found.labels[1] != found.labels[2]


def test_one_cluster_is_refused_with_the_pair():
    found = Constraints((), [(0, 2), (1, 2)]).check(1)
    assert (found.status, bool(found), found.labels) == ("infeasible", False, None)
    assert len(found.rows) == 2
    assert 2 in found.rows


def test_clique_is_named_row_by_row():
    rows = [0, 3, 8, 11, 20]
    found = Constraints((), list(combinations(rows, 2)), n_samples=30).check(4)
    assert found.rows.tolist() == rows
    assert found.message == (
        "Rows 0, 3, 8, 11 and 20 are pairwise cannot-linked and need 5 clusters, but n_clusters=4. Raise n_clusters."
    )
    assert bool(Constraints((), list(combinations(rows, 2)), n_samples=30).check(5))


def test_clique_is_named_in_the_users_ids():
    found = Constraints((), [(0, 1), (1, 2), (0, 2)], ids=["ann", "bob", "cid"]).check(2)
    assert found.message.startswith("Rows ann, bob and cid are pairwise cannot-linked and need 3 clusters, but ")


def test_clique_through_must_links():
    # Rows 1 and 2 stand in for row 0 and row 3.
    found = Constraints([(0, 1), (2, 3)], [(0, 4), (1, 3), (2, 4)]).check(2)
    assert found.status == "infeasible"
    assert found.rows.tolist() == [0, 2, 4]


@pytest.mark.parametrize("knowledge", [{"cannot_groups": [5, 5, 5, -1]}, {"labels": [5, 6, 7, -1]}])
def test_groups_and_classes_need_as_many_clusters(knowledge):
    constraints = Constraints(**knowledge)
    assert bool(constraints.check(3))
    found = constraints.check(2)
    assert found.rows.tolist() == [0, 1, 2]
    assert "need 3 clusters, but n_clusters=2" in found.message


def test_a_large_group_is_proved_with_one_row_more_than_clusters():
    found = Constraints(cannot_groups=np.zeros(1000, dtype=int)).check(20)
    assert len(found.rows) == 21
    assert "19 and 20 are pairwise cannot-linked and need 21 clusters" in found.message


def test_contradiction_is_infeasible_for_any_number_of_clusters():
    constraints = Constraints([(0, 1), (1, 2)], [(0, 2)], n_samples=5)
    for n_clusters in (1, 2, 5):
        found = constraints.check(n_clusters)
        assert (found.status, found.contradictory) == ("infeasible", True)
        assert found.rows.tolist() == [0, 1, 2]
        assert found.message == str(constraints.conflicts()[0])


def test_odd_wheel_is_infeasible_without_a_clique():
    constraints = Constraints((), ODD_WHEEL, n_samples=9)
    found = constraints.check(3)
    assert found.status == "infeasible"
    assert found.rows.tolist() == [0, 1, 2, 3, 4, 5]
    assert not can_color(found.rows.tolist(), ODD_WHEEL, 3)
    assert found.message == (
        "Rows 0, 1, 2, 3, 4 and 5 cannot be split into n_clusters=3 clusters (every way was tried). Raise n_clusters."
    )
    assert bool(constraints.check(4))


def mycielski(n_colors):
    """The graph without triangles that needs `n_colors` colours (Mycielski 1955): number of vertices and edges."""
    n, edges = 2, [(0, 1)]
    for _ in range(n_colors - 2):
        copies = [pair for a, b in edges for pair in ((a, n + b), (b, n + a))]
        edges = [*edges, *copies, *((n + vertex, 2 * n) for vertex in range(n))]
        n = 2 * n + 1
    return n, edges


def queens(side):
    """The squares of a chess board, joined where a queen moves: number of vertices and edges."""
    squares = list(enumerate(product(range(side), repeat=2)))
    return side**2, [
        (one, two)
        for (one, (a, b)), (two, (c, d)) in combinations(squares, 2)
        if a == c or b == d or abs(a - c) == abs(b - d)
    ]


# Graphs of the DIMACS colouring challenge with their chromatic numbers: myciel3 to myciel6, queen5_5 to queen8_8.
FAMOUS = [
    *(pytest.param(*mycielski(n), n, id=f"myciel{n - 1}") for n in (4, 5, 6, 7)),
    *(pytest.param(*queens(side), n, id=f"queen{side}") for side, n in ((5, 5), (6, 7), (7, 7))),
    pytest.param(*queens(8), 9, id="queen8", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("n_rows", "edges", "chromatic"), FAMOUS)
def test_famous_graphs_at_the_chromatic_number_and_one_below(n_rows, edges, chromatic, seed):
    constraints = Constraints((), np.random.default_rng(seed).permutation(n_rows)[edges], n_samples=n_rows)
    enough = constraints.check(chromatic)
    assert enough.status == "feasible"
    assert is_satisfied(enough.labels, constraints)
    below = constraints.check(chromatic - 1)
    assert below.status == "infeasible"
    assert below.irreducible == ("Fewer of these rows" not in below.message)
    assert str(below.rows[-1]) in below.message
    assert below.irreducible or n_rows in (47, 64, 95)  # these take more than the work limit
    for row in below.rows if below.irreducible else ():
        assert constraints.restrict(below.rows[below.rows != row]).check(chromatic - 1)


def test_a_proof_that_is_not_shrunk_to_the_end_says_so():
    n_rows, edges = queens(6)
    found = Constraints((), edges, n_samples=n_rows).check(6, work_limit=250_000)
    assert (found.status, found.irreducible) == ("infeasible", False)
    assert "Fewer of these rows may be enough: work_limit was reached." in found.message


def test_the_innermost_contradiction_is_named():
    found = Constraints([(0, 1), (1, 2), (2, 3)], [(0, 3), (1, 3)]).check(2)
    assert found.rows.tolist() == [1, 2, 3]
    assert found.message.startswith("cannot_link[1] separates rows 1 and 3; must_link joins them (1-2-3).")
    grouped = Constraints([(0, 1), (1, 2), (2, 3)], [(0, 3)], cannot_groups=[-1, 5, -1, 5]).check(2)
    assert grouped.rows.tolist() == [1, 2, 3]
    classes = Constraints([(0, 1), (1, 2), (2, 3)], [(0, 3)], labels=[-1, 5, 6, -1]).check(2)
    assert classes.rows.tolist() == [1, 2]
    assert classes.message.startswith("labels separate rows 1 and 2; must_link and labels join them (1-2).")


def test_unknown_at_the_work_limit():
    constraints = Constraints((), ODD_WHEEL)
    found = constraints.check(3, work_limit=0)
    assert (found.status, bool(found), found.labels, found.rows) == ("unknown", False, None, None)
    assert found.message == (
        "Neither a labelling with 3 clusters nor a proof that there is none was found within work_limit=0. "
        "Raise work_limit or n_clusters."
    )


def test_what_needs_no_search_is_known_at_any_work_limit():
    assert Constraints((), [(0, 1)]).check(2, work_limit=0).status == "feasible"
    assert Constraints(cannot_groups=[0, 0, 0]).check(2, work_limit=0).status == "infeasible"


@pytest.mark.parametrize("n_clusters", [0, -1, 2.0, True, "3", None])
def test_bad_number_of_clusters(n_clusters):
    with pytest.raises(ParameterError, match=rf"^n_clusters={n_clusters!r} in check: expected an integer >= 1\.$"):
        Constraints().check(n_clusters)


def test_numpy_numbers_of_clusters():
    assert bool(Constraints((), [(0, 1)]).check(np.int32(2)))


def test_no_knowledge_is_feasible_with_one_cluster():
    assert Constraints(n_samples=3).check(1).labels.tolist() == [0, 0, 0]
    assert Constraints().check(1).labels.tolist() == []


def test_a_long_even_ring_is_split_in_two_at_once():
    rows = np.arange(100_000)
    ring = Constraints((), np.column_stack([rows, np.roll(rows, -1)]))
    found = ring.check(2)
    assert (np.diff(found.labels) != 0).all()
    odd = Constraints((), np.column_stack([rows[:-1], np.roll(rows[:-1], -1)]))
    assert bool(odd.check(3))


def test_planted_classes_of_many_pairs_are_found(seed):
    rng = np.random.default_rng(seed)
    planted = rng.integers(0, 10, 20_000)
    constraints = Constraints.sample(planted, 20_000, balance=0.5, random_state=seed)
    found = constraints.check(10)
    assert bool(found)
    must, cannot = constraints.violations(found.labels)
    assert len(must) == len(cannot) == 0
