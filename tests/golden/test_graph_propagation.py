"""Neighbours, spreading and evidence against the slow reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad

from clew.graph import _eigenvectors
from clew.graph._eigenvectors import leading_eigenvectors
from clew.graph._gaussian_process import (
    LabelledRows,
    _negative_log_evidence,
    class_probabilities,
    fit_weights,
    leave_one_out,
    prior_weights,
)
from clew.graph._kernels import build_kernels, build_neighbor_graph
from clew.graph._neighbours import neighbour_graph
from tests.helpers import whole_numbers
from tests.reference import graph_propagation as reference

# Linear systems of a dozen rows, solved in two ways.
ROUNDING = 1e-8


@pytest.fixture
def case(seed):
    rng = np.random.default_rng(seed)
    X = whole_numbers(rng, 30)
    rows = rng.choice(30, 9, replace=False)
    return build_kernels(build_neighbor_graph(X, 5, seed), 3, seed), LabelledRows(
        rows, np.arange(9) % 3, rng.choice([1.0, 2.0], 9)
    )


def test_neighbours_are_those_of_the_reference(seed):
    X = np.random.default_rng(seed).normal(size=(25, 3))
    graph = neighbour_graph(X, 4).toarray()
    np.testing.assert_allclose(graph, reference.neighbour_weights(X.tolist(), 4), rtol=1e-9)
    assert (graph == graph.T).all()


def test_spreading_is_that_of_the_reference(case):
    kernels, labelled = case
    weights = fit_weights(kernels, labelled)
    found = class_probabilities(kernels, labelled, weights, 4)
    expected = reference.probabilities(kernels, *map(list, labelled), weights, 4, range(30))
    np.testing.assert_allclose(found, expected, atol=ROUNDING)


def test_leaving_a_source_out_is_spreading_without_it(case):
    kernels, labelled = case
    weights = prior_weights(kernels)
    found = leave_one_out(kernels.gram(weights.values, labelled.rows), labelled, weights.noise, 3)
    for place, row in enumerate(labelled.rows.tolist()):
        rest = [np.delete(values, place).tolist() for values in labelled]
        expected = reference.probabilities(kernels, *rest, weights, 3, [row])[0]
        np.testing.assert_allclose(found[place], expected, atol=ROUNDING)


def test_the_slope_of_the_evidence_is_its_slope(case):
    kernels, labelled = case
    alike = np.concatenate([kernels.each(labelled.rows), np.diag(labelled.noise)[None]])
    targets = np.eye(3)[labelled.classes] - 1 / 3
    start = np.log(np.append(kernels.prior, 0.1))
    about = (alike, targets, start, np.full(len(start), 0.7))
    at = np.random.default_rng(0).normal(size=len(start))
    error = check_grad(
        lambda x: _negative_log_evidence(x, *about)[0], lambda x: _negative_log_evidence(x, *about)[1], at
    )
    assert error < 1e-3  # finite differences of a sum of logarithms of size ten


def test_trust_goes_to_the_partition_that_foresees_the_answers(seed):
    """Two columns split the rows in two ways; the classes follow one of them, and so does the weights."""
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], size=(80, 2)) * [5, 4] + rng.normal(size=(80, 2))
    kernels = build_kernels(build_neighbor_graph(X, 5, 0), 2, 0)
    by_column = np.array([X[:, 0] > 0, X[:, 1] > 0]).astype(np.int64)
    kernels = replace(kernels, partitions=by_column, prior=np.full(5, 0.2), unconstrained=0)
    rows = np.arange(20)
    for column in range(2):
        labelled = LabelledRows(rows, by_column[column, rows], np.ones(20))
        assert fit_weights(kernels, labelled).partition == column


def test_directions_in_blocks_are_those_of_the_dense_solver(seed, monkeypatch):
    """Three pieces without a bridge: the eigenvalue 1 is found as often as there are pieces."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(900, 2)) + 50 * np.repeat(np.arange(3), 300)[:, None]
    graph = neighbour_graph(X, 10)
    half = sparse.diags_array(1 / np.sqrt(graph.sum(axis=1)))
    graph = sparse.csr_array(half @ graph @ half)
    values, vectors = leading_eigenvectors(graph, 20)
    monkeypatch.setattr(_eigenvectors, "_DENSE_ROWS", 0)
    found, in_blocks = leading_eigenvectors(graph, 20)
    np.testing.assert_allclose(found[:3], 1, atol=1e-5)  # single precision
    np.testing.assert_allclose(found, values, atol=1e-3)  # a few filters
    np.testing.assert_allclose(in_blocks.T @ in_blocks, np.eye(20), atol=1e-5)
    ours, theirs = (
        one / np.sqrt(1 - 0.99 * eigenvalues) for one, eigenvalues in ((in_blocks, found), (vectors, values))
    )
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=0.02 * (theirs @ theirs.T).max())
