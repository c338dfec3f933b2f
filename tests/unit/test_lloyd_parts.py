"""The parts of the k-means loop by themselves: ties of five rows, and blocks that add up."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from clew import Constraints
from clew.partitional._geometry import Problem
from clew.partitional._reduction import Tally, assign_block, nearest
from clew.partitional._stopping import StoppingRule
from clew.partitional._ties import TiedAssignment, priced_ties


def lists(pointers, *columns):
    """The lists that arrays hold one after the other."""
    return [list(zip(*(column[a:b].tolist() for column in columns), strict=True)) for a, b in pairwise(pointers)]


def test_the_example_of_five_rows_in_ties():
    known = Constraints([(0, 1)], [(1, 2), (2, 3)], cannot_link_confidence=[1.0, 0.5], n_samples=5)
    rows, ties = priced_ties(known, 2.0, entailed=True)
    assert rows.tolist() == [0, 1, 2, 3]
    assert ties.profile_of.tolist() == [0, 0, 1, 2]
    assert lists(ties.member_ptr, ties.members) == [[(0,), (1,)], [(2,)], [(3,)]]
    assert lists(ties.profile_ptr, ties.profile_set, ties.profile_price) == [[(0, -1), (1, 1)], [(0, 1)], []]
    assert lists(ties.partner_ptr, ties.partners, ties.partner_price) == [[], [], [(3, 0.5)], [(2, 0.5)]]
    assert (ties.constant, ties.penalty) == (1.0, 2.0)
    for labels, price in (([0, 0, 0, 0], 5.0), ([0, 1, 1, 0], 4.0), ([0, 0, 1, 1], 1.0), ([0, 0, 1, 0], 0.0)):
        state = TiedAssignment(ties, 2)
        state.load(np.array(labels, dtype=np.int32))
        assert state.price(np.array(labels, dtype=np.int32)) == price


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_blocks_of_any_size_add_up_to_one_pass(form, metric, seed):
    rng = np.random.default_rng(seed)
    problem = Problem.prepare(form(rng.integers(1, 9, size=(50, 3)).astype(float)), rng.uniform(1, 2, 50), metric)
    centers = problem.as_centers(problem.X[:4].toarray() if sparse.issparse(problem.X) else problem.X[:4].copy())
    labels, total = np.full(50, -1, dtype=np.int32), Tally.empty(4, 3)
    for start, stop in ((0, 7), (7, 8), (8, 50)):
        tally = Tally.empty(4, 3)
        free = np.ones(stop - start, dtype=np.uint8)
        here = labels[start:stop]
        assign_block(problem.X[start:stop], problem.weights[start:stop], free, problem.scoring(centers), here, tally)
        total.add(tally)
    assert (labels == nearest(problem, centers)).all()
    rows = problem.X.toarray() if sparse.issparse(problem.X) else problem.X
    for cluster in range(4):
        weights = problem.weights * (labels == cluster)
        np.testing.assert_allclose(total.sums[cluster], weights @ rows, rtol=1e-12, atol=1e-12)
        assert total.masses[cluster] == pytest.approx(weights.sum())
    assert total.totals[1] == 50
    costs = problem.own_costs(problem.X, centers, labels)
    assert problem.constant + total.totals[0] == pytest.approx(costs @ problem.weights)


@pytest.mark.parametrize(("shift", "is_last"), [(0.0, False), (1e-5, True), (1e-3, False)])
def test_rounds_end_when_centres_move_a_little_but_not_while_they_stand_still(shift, is_last):
    rule, now = StoppingRule(SimpleNamespace(variance=1.0), 1e-4, 10, monotone=True), object()
    rule.moved(shift)
    assert rule.ends(now, 5.0, 5.0, changed=True, emptied=False) is (now if is_last else None)


def test_a_tally_keeps_what_rounding_takes_from_its_sums():
    total = Tally.empty(1, 1)
    for value in (1e16, 1.0, 1.0, -1e16):
        part = Tally.empty(1, 1)
        part.sums[:] = value
        total.add(part)
    assert total.rounded().sums == 2.0
    assert not total.rounded().errors.any()
