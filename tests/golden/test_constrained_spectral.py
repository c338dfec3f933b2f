"""ConstrainedSpectral against dense matrices in which every pair is written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eig

from clew import ConstrainedSpectral, Constraints
from clew.exceptions import DataError
from clew.graph._affinity import NormalisedGraph, edited
from clew.graph._constrained_spectral import constrained_cuts


def affinities(rng, n):
    upper = np.triu(rng.random((n, n)), 1)
    return upper + upper.T


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_edited_affinities_are_the_largest_one_or_none(form, seed):
    rng = np.random.default_rng(seed)
    A = affinities(rng, 8)
    known = Constraints([(0, 1), (1, 2)], [(2, 3)], n_samples=8)
    expected = A.copy()
    for i, j in [(0, 1), (1, 2), (0, 2)]:
        expected[i, j] = expected[j, i] = A.max()
    for i in (0, 1, 2):
        expected[i, 3] = expected[3, i] = 0
    roots = np.sqrt(expected.sum(axis=1))
    found = NormalisedGraph.of(*edited(form(A), known)).toarray()
    np.testing.assert_allclose(found, expected / np.outer(roots, roots), atol=1e-12)


def test_cuts_are_those_of_a_dense_generalised_solver(seed):
    rng = np.random.default_rng(seed)
    A = affinities(rng, 10)
    roots = np.sqrt(A.sum(axis=1))
    laplacian = np.eye(10) - A / np.outer(roots, roots)
    Q = np.zeros((10, 10))
    Q[0, 1] = Q[1, 0] = 1
    Q[2, 3] = Q[3, 2] = -1
    Q /= np.outer(roots, roots)
    losses, basis = np.linalg.eigh(laplacian)
    cuts, mixing = constrained_cuts(losses, basis.T @ Q @ basis, basis.T @ (roots / np.linalg.norm(roots)), 1, 0.5)
    beta = 0.5 * np.linalg.eigvalsh(Q)[-1]
    values, vectors = eig(laplacian, Q - beta * np.eye(10))
    feasible = vectors[:, values.real > 1e-9].real
    feasible /= np.linalg.norm(feasible, axis=0)
    costs = np.einsum("ij,ik,kj->j", feasible, laplacian, feasible)
    assert cuts[0] == pytest.approx(costs.min(), abs=1e-6)
    assert abs((basis @ mixing[:, 0]) @ feasible[:, costs.argmin()]) == pytest.approx(1, abs=1e-5)


def test_affinities_without_edges_are_refused():
    with pytest.raises(DataError, match="no edge"):
        ConstrainedSpectral(2, affinity="precomputed").fit(np.eye(4))
