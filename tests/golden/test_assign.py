"""The compiled assignment against loops over pairs that are all written out; integers, so that sums are exact."""

from __future__ import annotations

import importlib.util
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

import clew.kernels
from clew import Constraints
from clew.kernels import assign, own_distances
from clew.partitional import _ties
from clew.partitional._geometry import Problem
from clew.partitional._ties import TiedAssignment, component_units, hard_ties, priced_ties
from clew.partitional._units import Units
from clew.solvers.coloring import compress
from tests.helpers import random_knowledge
from tests.reference import assign as reference

PAIRS_OF_FOUR = list(combinations(range(4), 2))
PENALTY = 2


def interpreted(name):
    """The kernel's source, run by Python itself."""
    path = Path(clew.kernels.__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"interpreted_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["compiled", "interpreted"])
def kernels(request, monkeypatch):
    if request.param == "interpreted":
        ties = interpreted("ties")
        for name in ("assign_tied", "move_blocks", "price_ties"):
            monkeypatch.setattr(_ties, name, getattr(ties, name))
        return interpreted("assign")
    return assign


class Costs:
    """Stands for units whose costs are known; in blocks of three, so that sweeps cross from block to block."""

    def __init__(self, costs):
        self._costs = np.asarray(costs, dtype=np.float64)

    def costs(self, problem, centers, order):
        for start in range(0, len(order), 3):
            chosen = np.asarray(order[start : start + 3], dtype=np.int64)
            yield chosen, self._costs[chosen]


@pytest.mark.parametrize("module", [own_distances, interpreted("own_distances")], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_own_distances_are_those_of_each_row_to_its_centre(module, dtype):
    rng = np.random.default_rng(0)
    X, centers = rng.integers(-9, 9, (20, 3)).astype(dtype), rng.integers(-9, 9, (4, 3)).astype(np.float64)
    labels, costs = rng.integers(0, 4, 20).astype(np.int32), np.empty(20)
    module.own_distances(X, centers, labels, costs)
    assert costs.tolist() == [
        sum((x - c) ** 2 for x, c in zip(X[i], centers[labels[i]], strict=True)) for i in range(20)
    ]


def graphs_of_four(step=1):
    """Every way to must-link, cannot-link or leave each of the six pairs of four rows, contradictory ones too."""
    for kinds in list(product("-mc", repeat=6))[::step]:
        links = {kind: [pair for pair, k in zip(PAIRS_OF_FOUR, kinds, strict=True) if k == kind] for kind in "mc"}
        yield Constraints(links["m"], links["c"], n_samples=4)


def check_priced(constraints, n, n_clusters, entailed, rng, every_labelling=True):
    """One sweep from nothing, one from there, a move of blocks, and the price of labellings."""
    must, cannot = reference.priced_pairs(constraints, n, entailed=entailed)
    rows, ties = priced_ties(constraints, PENALTY, entailed=entailed)
    assert {row for pair in (*must, *cannot) for row in pair} <= set(rows.tolist())
    state = TiedAssignment(ties, n_clusters)
    costs = rng.integers(0, 6, size=(n, n_clusters))
    labels, expected = np.full(len(rows), -1, dtype=np.int32), [-1] * n
    for _ in range(2):
        order = rng.permutation(len(rows))
        score = state.sweep(None, Costs(costs[rows]), None, order, labels)
        expected = reference.sweep(rows[order].tolist(), costs.tolist(), must, cannot, expected, PENALTY)
        assert labels.tolist() == [expected[row] for row in rows]
        assert score == sum(costs[row, expected[row]] for row in rows)
        assert Fraction(state.price(labels)) == PENALTY * reference.broken_among(rows.tolist(), must, cannot, expected)
    component = reference.components(n, reference.given_pairs(constraints)[0])
    blocks = [[i for i in range(n) if component[i] == c] for c in sorted(set(component)) if component.count(c) > 1]
    if blocks:
        place = {row: unit for unit, row in enumerate(rows.tolist())}
        owner = np.array([b for b, block in enumerate(blocks) for _ in block])
        members = compress(owner, np.array([place[row] for block in blocks for row in block]), len(blocks))
        order = rng.permutation(len(blocks))
        block_costs = np.array([costs[block].sum(axis=0) for block in blocks])
        before = sum(costs[row, expected[row]] for row in rows)
        change = state.move_blocks(None, Costs(block_costs), members, None, order, labels)
        expected = reference.move_blocks(order.tolist(), blocks, costs.tolist(), must, cannot, expected, PENALTY)
        assert labels.tolist() == [expected[row] for row in rows]
        assert before + change == sum(costs[row, expected[row]] for row in rows)
        assert Fraction(state.price(labels)) == PENALTY * reference.broken_among(rows.tolist(), must, cannot, expected)
    for labelling in reference.labellings(n, n_clusters) if every_labelling else ():
        labels = np.array(labelling, dtype=np.int32)[rows]
        state.load(labels)
        assert Fraction(state.price(labels)) == PENALTY * reference.broken(must, cannot, labelling)


@pytest.mark.sampled(4, slow=1)
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("entailed", [True, False])
@pytest.mark.parametrize("n_clusters", [2, 3, 4])  # below, at and above the size at which sets are counted in tables
def test_prices_match_reference_on_every_graph_of_four_rows(n_clusters, entailed, part, seed):
    rng = np.random.default_rng(seed)
    for constraints in list(graphs_of_four())[part::3]:
        check_priced(constraints, 4, n_clusters, entailed, rng, every_labelling=n_clusters == 2)


@pytest.mark.sampled(4, slow=1)
@pytest.mark.parametrize("entailed", [True, False])
@pytest.mark.parametrize("n_clusters", [1, 2, 4])
@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("sure", [True, False])
@pytest.mark.parametrize("most_listed", [0, 2, 4])  # no set, pairs or all small sets are written out as partners
def test_prices_match_reference_with_groups_labels_and_confidences(
    n_clusters, entailed, consistent, sure, most_listed, seed, monkeypatch
):
    monkeypatch.setattr(_ties, "_MOST_LISTED", most_listed)
    rng = np.random.default_rng(seed)
    for _ in range(60):
        n = int(rng.integers(2, 9))
        constraints = random_knowledge(rng, n, consistent=consistent, sure=sure)
        check_priced(constraints, n, n_clusters, entailed, rng, every_labelling=False)


@pytest.mark.parametrize("entailed", [True, False])
@pytest.mark.parametrize(
    ("constraints", "times"),
    [
        (Constraints(cannot_link=[(0, 1), (1, 0)], n_samples=2), 1),
        (Constraints(cannot_link=[(0, 1)], labels=[0, 1]), 1),
        (Constraints(cannot_link=[(0, 1)], cannot_groups=[3, 3]), 1),
        (Constraints(cannot_groups=[[0, 0], [0, 0]]), 2),
        (Constraints(labels=[0, 1], cannot_groups=[3, 3]), 2),
        (Constraints(must_link=[(0, 1)], labels=[0, 1]), 1),
    ],
)
def test_a_pair_is_priced_once_and_a_second_statement_about_groups_once_more(constraints, times, entailed):
    _, ties = priced_ties(constraints, PENALTY, entailed=entailed)
    state, together = TiedAssignment(ties, 1), np.zeros(2, dtype=np.int32)
    state.load(together)
    assert state.price(together) == PENALTY * times
    check_priced(constraints, 2, 2, entailed, np.random.default_rng(0))


def check_hard(constraints, n, n_clusters, rng):
    closed = constraints.closure()
    must, cannot = reference.given_pairs(constraints)
    component = reference.components(n, must)
    blocks = sorted(set(component))
    apart = {frozenset((blocks.index(component[i]), blocks.index(component[j]))) for i, j in cannot}
    if closed.contradictory:
        assert any(len(pair) == 1 for pair in apart)
        return
    pinned = np.where(rng.random(len(blocks)) < 0.2, 0, -1).astype(np.int32)
    if any(pinned[list(pair)].tolist() == [0, 0] for pair in apart):
        pinned[:] = -1  # pins themselves never clash: they come from classes
    costs = rng.integers(0, 6, size=(len(blocks), n_clusters))
    state = TiedAssignment(hard_ties(closed, np.arange(len(blocks)), pinned), n_clusters)
    labels, expected = np.full(len(blocks), -1, dtype=np.int32), None
    for _ in range(3):
        order = rng.permutation(len(blocks))
        order = order[np.argsort(pinned[order] < 0, kind="stable")]
        score = state.sweep(None, Costs(costs), None, order, labels)
        expected = reference.greedy(order.tolist(), costs.tolist(), apart, pinned.tolist(), expected)
        if expected is None:
            assert score == np.inf
            return
        assert labels.tolist() == expected
        assert score == sum(costs[block, label] for block, label in enumerate(expected))


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_hard_assignment_matches_reference_on_every_graph_of_four_rows(n_clusters, seed):
    rng = np.random.default_rng(seed)
    for constraints in graphs_of_four():
        check_hard(constraints, 4, n_clusters, rng)


def test_hard_assignment_matches_reference_with_groups_and_labels(seed):
    rng = np.random.default_rng(seed)
    for _ in range(300):
        n = int(rng.integers(2, 9))
        check_hard(random_knowledge(rng, n), n, int(rng.integers(1, 5)), rng)


def test_the_source_of_the_kernels_says_the_same_as_the_compiled_code(kernels, seed):
    rng = np.random.default_rng(seed)
    for constraints in graphs_of_four(step=25):
        check_priced(constraints, 4, 2, True, rng, every_labelling=False)
        check_hard(constraints, 4, 2, rng)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n_columns", [0, 3])
@pytest.mark.parametrize("fresh", [True, False])
def test_nearest_matches_reference(kernels, dtype, weighted, n_columns, fresh, seed):
    rng = np.random.default_rng(seed)
    for n_clusters in (1, 2, 3, 5, 6):
        n = 12
        X = rng.integers(-5, 6, size=(n, n_columns)).astype(dtype)
        scores = rng.integers(-5, 6, size=(n, n_clusters)).astype(dtype)
        offsets = rng.integers(-3, 4, size=n_clusters).astype(dtype)
        weights = rng.integers(0, 4, size=n).astype(float) if weighted else np.empty(0)
        free = rng.integers(0, 2, size=n).astype(np.uint8)
        labels = rng.integers(-1, n_clusters, size=n).astype(np.int32)
        sums, masses = np.ones((n_clusters, n_columns)), np.ones(n_clusters)
        totals = np.ones(2)
        expected_labels, expected_sums = labels.tolist(), sums.copy()
        expected_masses, expected_totals = masses.copy(), totals.copy()
        for row in range(n):
            if free[row]:
                best = min(range(n_clusters), key=lambda cluster: (scores[row, cluster] + offsets[cluster], cluster))
                weight = weights[row] if weighted else 1.0
                expected_totals += [weight * (scores[row, best] + offsets[best]), labels[row] != best and weight > 0]
                expected_labels[row] = best
                if labels[row] >= 0 and not fresh:
                    expected_masses[labels[row]] -= weight
                    expected_sums[labels[row]] -= weight * X[row]
                expected_masses[best] += weight
                expected_sums[best] += weight * X[row]
        errors = np.zeros_like(sums)
        kernels.assign_nearest(X, scores, offsets, weights, free, fresh, labels, sums, errors, masses, totals)
        assert not errors.any()
        assert labels.tolist() == expected_labels
        assert (sums == expected_sums).all()
        assert (masses == expected_masses).all()
        assert (totals == expected_totals).all()


def test_a_huge_row_that_leaves_a_cluster_takes_its_rounding_with_it(kernels):
    X = np.array([[1e20], [1.0], [3.0]])
    free, labels = np.ones(3, dtype=np.uint8), np.full(3, -1, dtype=np.int32)
    sums, errors, masses = np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2)
    for scores in ([[0.0, 1.0]] * 3, [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]):
        kernels.assign_nearest(
            X, np.array(scores), np.zeros(2), np.empty(0), free, False, labels, sums, errors, masses, np.zeros(2)
        )
    assert (sums + errors).ravel().tolist() == [4.0, 1e20]
    assert masses.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_added_to_their_clusters(kernels, dtype, seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.integers(-5, 6, size=(12, 3)).astype(dtype), rng.integers(0, 4, size=12).astype(float)
    labels = rng.integers(4, size=12).astype(np.int32)
    sums, masses = np.ones((4, 3)), np.ones(4)
    kernels.add_rows(X, weights, labels, sums, masses)
    for cluster in range(4):
        rows = labels == cluster
        assert masses[cluster] == 1 + weights[rows].sum()
        assert (sums[cluster] == 1 + (weights[rows, None] * X[rows]).sum(axis=0)).all()


def test_a_contracted_block_costs_what_its_rows_cost_but_for_a_constant(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-8, 9, size=(8, 2)).astype(float)
    weights = rng.integers(1, 4, size=8).astype(float)
    centers = rng.integers(-8, 9, size=(3, 2)).astype(float)
    closed = Constraints(must_link=[(0, 3), (3, 5), (1, 2)], n_samples=8).closure()
    for metric in ("euclidean", "cosine"):
        problem = Problem.prepare(X, weights, metric)
        blocks, _ = component_units(problem, closed, np.ones(closed.n_components, dtype=bool))
        rows = Units.contract(problem, np.arange(8), np.arange(8), 8)
        (_, block_costs), (_, row_costs) = (
            next(units.costs(problem, centers, np.arange(len(units)))) for units in (blocks, rows)
        )
        for block in range(closed.n_components):
            expected = row_costs[closed.component_of == block].sum(axis=0)
            # Means and products of small integers: a few rounding errors of the last digit.
            np.testing.assert_allclose(block_costs[block] - block_costs[block][0], expected - expected[0], atol=1e-9)
        assert blocks.weights.sum() == pytest.approx(weights.sum())


def test_a_large_component_with_many_cannot_links_is_linear_in_pairs():
    """A component of 1,000 rows, kept apart from 5,000 single rows: no row of it looks all of them up."""
    chain, others = np.arange(1_000), np.arange(1_000, 6_000)
    known = Constraints(
        must_link=np.column_stack([chain[:-1], chain[1:]]),
        cannot_link=np.column_stack([np.resize(chain, 5_000), others]),
    )
    rows, ties = priced_ties(known, PENALTY, entailed=True)
    sum_of, (pointers, _, _), (_, told, _) = _ties._divided(ties, np.diff(ties.member_ptr) > 3)
    looked_up = np.diff(pointers)[ties.profile_of]
    assert (sum_of >= 0).sum() == 1
    assert looked_up.sum() <= len(rows)
    assert len(told) == 5_000
