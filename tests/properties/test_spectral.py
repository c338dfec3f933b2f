"""Laws of ConstrainedSpectral on any small graph."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew import ConstrainedSpectral, Constraints
from clew.graph._constrained_spectral import affinity_embedding, cut_embedding
from tests.helpers import examples

N = 12

seeds = st.integers(0, 9999)
embeddings = st.sampled_from(["affinity", "cut"])


def graph_and_classes(seed):
    """Affinities that are larger within three classes, so that eigenvalues are apart, and the classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(N) % 3
    upper = np.triu(rng.random((N, N)) + 2 * (y[:, None] == y), 1)
    return upper + upper.T, y


def embedded(A, known, embedding):
    """Squared distances between embedded rows, which do not depend on the signs of eigenvectors."""
    rows = affinity_embedding(A, known, 3) if embedding == "affinity" else cut_embedding(A, known, 3, N, 0.3)
    return ((rows[:, None] - rows[None]) ** 2).sum(axis=-1)


@given(seed=seeds, embedding=embeddings)
@examples(40)
def test_neither_the_order_of_rows_nor_that_of_pairs_matters(seed, embedding):
    A, y = graph_and_classes(seed)
    known = Constraints.sample(y, 6, random_state=seed)
    order = np.random.default_rng(seed + 1).permutation(N)
    place = np.argsort(order)
    moved = Constraints(place[known.must_link][::-1, ::-1], place[known.cannot_link][::-1, ::-1], n_samples=N)
    expected = embedded(A, known, embedding)[np.ix_(order, order)]
    np.testing.assert_allclose(embedded(A[np.ix_(order, order)], moved, embedding), expected, rtol=1e-4, atol=1e-6)


@given(seed=seeds, embedding=embeddings, scale=st.sampled_from([1e-6, 0.5, 1e6]))
@example(seed=828, embedding="cut", scale=1e-6)  # all pairs but one are cannot-links: most eigenvalues are 0
@examples(40)
def test_the_unit_of_the_affinities_does_not_matter(seed, embedding, scale):
    A, y = graph_and_classes(seed)
    known = Constraints.sample(y, 6, random_state=seed)
    np.testing.assert_allclose(
        embedded(scale * A, known, embedding), embedded(A, known, embedding), rtol=1e-4, atol=1e-6
    )


@given(seed=seeds, embedding=embeddings)
@examples(40)
def test_repeated_and_entailed_pairs_change_nothing(seed, embedding):
    A, _ = graph_and_classes(seed)
    few = Constraints([(0, 3), (3, 6)], [(0, 1)], n_samples=N)
    more = Constraints([(0, 3), (3, 6), (6, 0), (3, 0)], [(0, 1), (1, 0), (6, 1)], n_samples=N)
    np.testing.assert_allclose(embedded(A, more, embedding), embedded(A, few, embedding), rtol=1e-6, atol=1e-9)


@given(seed=seeds, embedding=embeddings, n_pairs=st.integers(0, 30), share=st.sampled_from([0.2, 1.0]))
@examples(40)
def test_hard_pairs_hold_on_graphs_in_several_parts(seed, embedding, n_pairs, share):
    A, y = graph_and_classes(seed)
    A[np.random.default_rng(seed).random((N, N)) > share] = 0
    A = np.minimum(A, A.T)
    A[0, 1] = A[1, 0] = 1  # at least one edge
    known = Constraints.sample(y, n_pairs, random_state=seed)
    model = ConstrainedSpectral(3, affinity="precomputed", embedding=embedding, random_state=0)
    must, cannot = known.violations(model.fit(A, constraints=known).labels_)
    assert len(must) == len(cannot) == 0
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("embedding", ["affinity", "cut"])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_affinities_may_be_tiny_or_huge(embedding, scale):
    A, y = graph_and_classes(0)
    known = Constraints.sample(y, 6, random_state=0)
    model = ConstrainedSpectral(3, affinity="precomputed", embedding=embedding, random_state=0)
    model.fit(scale * A, constraints=known)
    assert np.isfinite(model.embedding_).all()
