"""ConstrainedSpectral against dense matrices in which every pair is written out, and matrices that are refused."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from clew import ConstrainedSpectral, Constraints, SeededKMeans
from clew.evaluation import adjusted_rand_score
from clew.exceptions import DataError
from clew.graph._affinity import NormalisedGraph, edited
from clew.graph._constrained_spectral import _RIDGE, affinity_embedding, cut_embedding
from clew.graph._eigenvectors import leading_eigenvectors
from clew.graph._neighbours import neighbour_graph
from tests.helpers import random_knowledge
from tests.reference import constrained_spectral as reference


def affinities(rng, n, *, share=1.0):
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < share), 1)
    return upper + upper.T


def distances_between(rows):
    """Squared distances, which do not depend on the signs of eigenvectors."""
    return ((rows[:, None] - rows[None]) ** 2).sum(axis=-1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("sure", [True, False])
def test_edited_affinities_are_those_of_plain_loops(form, sure, seed):
    rng = np.random.default_rng(seed)
    A, known = affinities(rng, 9), random_knowledge(rng, 9, sure=sure)
    found = NormalisedGraph.of(*edited(form(A), known)).toarray()
    expected, _ = reference.normalised(reference.edited(A.tolist(), known))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_embedding_of_edited_affinities_is_that_of_a_dense_solver(form, seed):
    rng = np.random.default_rng(seed)
    A, known = affinities(rng, 10), random_knowledge(rng, 10, sure=False)
    expected = reference.affinity_embedding(A.tolist(), known, 3)
    np.testing.assert_allclose(
        distances_between(affinity_embedding(form(A), known, 3)), distances_between(expected), atol=1e-6
    )


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_cuts_are_those_of_a_dense_generalised_solver(n_clusters, seed):
    rng = np.random.default_rng(seed)
    A = affinities(rng, 10)
    known = Constraints.sample(rng.permutation(10) % n_clusters, 8, balance=0.5, random_state=seed)
    expected = reference.cut_embedding(A.tolist(), known, n_clusters, 0.3, _RIDGE)
    if expected is None:
        pytest.skip("too few feasible cuts; the plain eigenvectors follow")
    found = cut_embedding(A, known, n_clusters, 10, 0.3)
    np.testing.assert_allclose(distances_between(found), distances_between(expected), rtol=1e-5, atol=1e-7)


def test_eigenvectors_of_a_large_graph_are_those_of_a_dense_solver():
    """1,200 rows on a ring of crowded eigenvalues, where inverse iteration takes over."""
    n = 1_200
    place = np.arange(n)
    A = sparse.coo_array((np.ones(n), (place, (place + 1) % n)), shape=(n, n)).tocsr()
    graph = NormalisedGraph.of(A + A.T)
    values, vectors = leading_eigenvectors(graph, 5, accurate=True)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(graph.toarray())[::-1][:5], atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(5), atol=1e-6)
    np.testing.assert_allclose(graph @ vectors, vectors * values, atol=1e-4)


def test_hard_pairs_hold_and_soft_ones_have_a_price():
    """Two groups of four rows; the pairs contradict the groups."""
    A = np.kron(np.eye(2), np.ones((4, 4))) + 0.01
    np.fill_diagonal(A, 0)
    known = Constraints(must_link=[(0, 4)], cannot_link=[(0, 1)], n_samples=8)
    hard = ConstrainedSpectral(2, affinity="precomputed", random_state=0).fit(A, constraints=known)
    assert hard.labels_[0] == hard.labels_[4] != hard.labels_[1]
    assert len(hard.violated_must_link_) == len(hard.violated_cannot_link_) == 0
    free = ConstrainedSpectral(2, affinity="precomputed", penalty=0.0, random_state=0)
    doubtful = Constraints([(0, 4)], [(0, 1)], must_link_confidence=[0.01], cannot_link_confidence=[0.01], n_samples=8)
    free.fit(A, constraints=doubtful)
    assert free.violated_must_link_.tolist() == [[0, 4]]
    assert free.violated_cannot_link_.tolist() == [[0, 1]]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda A: np.eye(4), "no edge: every entry off the diagonal is 0"),
        (lambda A: np.zeros((4, 4)), "no edge"),
        (lambda A: A + np.triu(np.ones((4, 4)), 1), "rows 0 and 1 is 2 one way and 1 the other"),
        (lambda A: np.where(np.eye(4, k=1) + np.eye(4, k=-1) > 0, np.nan, A), "NaN at row 0, column 1"),
        (lambda A: np.where(np.eye(4, k=1) + np.eye(4, k=-1) > 0, np.inf, A), "infinit.* at row 0, column 1"),
        (lambda A: -A, "rows 0 and 1 is -1: expected a finite number >= 0"),
        (lambda A: A[:, :3], "expected a square matrix"),
    ],
)
def test_matrices_that_are_no_affinities_are_refused(form, change, message):
    A = np.ones((4, 4)) - np.eye(4)
    for embedding in ("affinity", "cut"):
        with pytest.raises(DataError, match=message):
            ConstrainedSpectral(2, affinity="precomputed", embedding=embedding).fit(form(change(A)))


def test_a_row_without_affinities_is_still_clustered():
    A = np.ones((5, 5)) - np.eye(5)
    A[4] = A[:, 4] = 0
    model = ConstrainedSpectral(2, affinity="precomputed", random_state=0).fit(A)
    assert (model.labels_[:4] == model.labels_[0]).all()
    assert model.labels_[4] != model.labels_[0]


def test_the_number_of_eigenvectors_follows_the_pairs(seed):
    """Few pairs that the plain embedding satisfies change nothing; pairs that contradict it get more eigenvectors."""
    rng = np.random.default_rng(seed)
    part = rng.integers(4, size=240)
    X = np.array([[0, 0], [0, 5], [9, 0], [9, 5.0]])[part] + rng.normal(size=(240, 2))
    graph = neighbour_graph(X, 10)
    plain = affinity_embedding(graph, Constraints(n_samples=240), 2)
    agreeing, opposing = (Constraints.sample(y, n, random_state=seed) for y, n in ((part // 2, 30), (part % 2, 200)))
    assert_allclose(np.abs(cut_embedding(graph, agreeing, 2, "auto", 0.3)), np.abs(plain), atol=1e-8)
    labels = SeededKMeans(2, random_state=0).fit(cut_embedding(graph, opposing, 2, "auto", 0.3)).labels_
    assert adjusted_rand_score(part % 2, labels) > 0.8


def test_classes_and_pairs_of_the_same_rows_choose_the_same_embedding(seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 30)
    graph = neighbour_graph(rng.normal(size=(60, 2)) + 4 * y[:, None], 5)
    known = np.where(rng.random(60) < 0.3, y, -1)
    rows = np.flatnonzero(known >= 0)
    pairs = [(i, j) for i in rows for j in rows if i < j]
    must, cannot = ([(i, j) for i, j in pairs if (y[i] == y[j]) == alike] for alike in (True, False))
    both = (Constraints(labels=known), Constraints(must, cannot, n_samples=60))
    first, second = (cut_embedding(graph, one, 2, "auto", 0.3) for one in both)
    assert_allclose(np.abs(first), np.abs(second), atol=1e-6)
