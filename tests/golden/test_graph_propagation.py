"""Neighbours, spreading and evidence against the slow reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad

from clew.graph import _directions, _neighbours
from clew.graph._directions import leading_directions
from clew.graph._landscape import ground, survey
from clew.graph._neighbours import nearest, neighbour_graph
from clew.graph._spreading import Sources, _lack_of_evidence, initial_trust, learned_trust, left_out, spread
from tests.helpers import whole_numbers
from tests.reference import graph_propagation as reference

# Linear systems of a dozen rows, solved in two ways.
ROUNDING = 1e-8


@pytest.fixture
def case(seed):
    rng = np.random.default_rng(seed)
    X = whole_numbers(rng, 30)
    rows = rng.choice(30, 9, replace=False)
    return survey(ground(X, 5, seed), 3, seed), Sources(rows, np.arange(9) % 3, rng.choice([1.0, 2.0], 9))


def test_neighbours_are_those_of_the_reference(seed):
    X = np.random.default_rng(seed).normal(size=(25, 3))
    graph = neighbour_graph(X, 4, 0).toarray()
    np.testing.assert_allclose(graph, reference.neighbour_weights(X.tolist(), 4), rtol=1e-9)
    assert (graph == graph.T).all()


def test_neighbours_in_cells_are_nearly_all_of_the_nearest(seed, monkeypatch):
    X = np.random.default_rng(seed).normal(size=(3000, 3))
    distances, others = nearest(X, 10, seed)
    monkeypatch.setattr(_neighbours, "_EXACT_ROWS", 100)
    monkeypatch.setattr(_neighbours, "_SAMPLE", 1000)
    monkeypatch.setattr(_neighbours, "_ROWS_PER_CELL", 150)
    in_cells, found = nearest(X, 10, seed)
    assert (found != np.arange(3000)[:, None]).all()
    assert (in_cells >= distances - 1e-12).all()
    assert (np.diff(in_cells, axis=1) >= 0).all()
    shared = np.mean([np.isin(one, two).mean() for one, two in zip(found, others, strict=True)])
    assert shared > 0.9


def test_spreading_is_that_of_the_reference(case):
    landscape, sources = case
    trust = learned_trust(landscape, sources)
    found = spread(landscape, sources, trust, 4)
    expected = reference.chances(landscape, *map(list, sources), trust, 4, range(30))
    np.testing.assert_allclose(found, expected, atol=ROUNDING)


def test_leaving_a_source_out_is_spreading_without_it(case):
    landscape, sources = case
    trust = initial_trust(landscape)
    found = left_out(landscape.likeness(trust.weights, sources.rows), sources, trust.noise, 3)
    for place, row in enumerate(sources.rows.tolist()):
        rest = [np.delete(values, place).tolist() for values in sources]
        expected = reference.chances(landscape, *rest, trust, 3, [row])[0]
        np.testing.assert_allclose(found[place], expected, atol=ROUNDING)


def test_the_slope_of_the_evidence_is_its_slope(case):
    landscape, sources = case
    alike = np.concatenate([landscape.ways(sources.rows), np.diag(sources.doubt)[None]])
    targets = np.eye(3)[sources.classes] - 1 / 3
    start = np.log(np.append(landscape.prior, 0.1))
    about = (alike, targets, start, np.full(len(start), 0.7))
    at = np.random.default_rng(0).normal(size=len(start))
    error = check_grad(lambda x: _lack_of_evidence(x, *about)[0], lambda x: _lack_of_evidence(x, *about)[1], at)
    assert error < 1e-3  # finite differences of a sum of logarithms of size ten


def test_trust_goes_to_the_partition_that_foresees_the_answers(seed):
    """Two columns split the rows in two ways; the classes follow one of them, and so does the trust."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], size=(80, 2)) * [5, 4] + rng.normal(size=(80, 2))
    landscape = survey(ground(X, 5, 0), 2, 0)
    by_column = np.array([X[:, 0] > 0, X[:, 1] > 0]).astype(np.int64)
    landscape = type(landscape)(
        landscape.columns, landscape.width, landscape.diffusion, landscape.walk, by_column, np.full(5, 0.2)
    )
    rows = np.arange(20)
    for column in range(2):
        sources = Sources(rows, by_column[column, rows], np.ones(20))
        assert learned_trust(landscape, sources).partition == column


def test_directions_in_blocks_are_those_of_the_dense_solver(seed, monkeypatch):
    """Three pieces without a bridge: the eigenvalue 1 is found as often as there are pieces."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(900, 2)) + 50 * np.repeat(np.arange(3), 300)[:, None]
    graph = neighbour_graph(X, 10, 0)
    half = sparse.diags_array(1 / np.sqrt(graph.sum(axis=1)))
    graph = sparse.csr_array(half @ graph @ half)
    values, vectors = leading_directions(graph, 20)
    monkeypatch.setattr(_directions, "_DENSE_ROWS", 0)
    found, in_blocks = leading_directions(graph, 20)
    np.testing.assert_allclose(found[:3], 1, atol=1e-5)  # single precision
    np.testing.assert_allclose(found, values, atol=1e-3)  # a few filters
    np.testing.assert_allclose(in_blocks.T @ in_blocks, np.eye(20), atol=1e-5)
    ours, theirs = (one / np.sqrt(1 - 0.99 * speeds) for one, speeds in ((in_blocks, found), (vectors, values)))
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=0.02 * (theirs @ theirs.T).max())
