"""Kamvar, Klein and Manning 2003, "Spectral learning": facts about edited affinities."""

from __future__ import annotations

import numpy as np

from clew import ConstrainedSpectral, Constraints
from clew.evaluation import same_partition


def affinities(seed, n):
    upper = np.triu(np.random.default_rng(seed).random((n, n)), 1)
    return upper + upper.T


def test_section_3_all_labels_make_as_many_points_as_classes(seed):
    """With every label known the graph is a block for each class, whatever the affinities were."""
    y = np.arange(15) % 3
    model = ConstrainedSpectral(3, affinity="precomputed", random_state=0)
    model.fit(affinities(seed, 15), constraints=Constraints.from_labels(y))
    products = model.embedding_ @ model.embedding_.T
    np.testing.assert_allclose(products, (y[:, None] == y).astype(float), atol=1e-8)
    assert same_partition(model.labels_, y)


def test_section_3_a_pair_moves_the_rows_around_it():
    """Three groups of five rows with weak edges; joining two rows of the first and second group joins the groups."""
    A = np.kron(np.eye(3), np.ones((5, 5))) + 0.01 * np.kron(1 - np.eye(3), np.ones((5, 5)))
    np.fill_diagonal(A, 0)
    known = Constraints(must_link=[(0, 5), (1, 6)], cannot_link=[(0, 10)], n_samples=15)
    labels = ConstrainedSpectral(2, affinity="precomputed", random_state=0).fit(A, constraints=known).labels_
    assert same_partition(labels, np.repeat([0, 0, 1], 5))
