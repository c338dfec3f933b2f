"""Approximate neighbours are nearly always the nearest ones, and never the row itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from clew import _neighbours as module
from clew._neighbours import nearest_neighbours


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_search_by_cells_finds_most_neighbours_and_never_the_row_itself(monkeypatch, kind):
    X = np.random.default_rng(3).normal(size=(3000, 8))
    exact = nearest_neighbours(X, 5)[1]
    monkeypatch.setattr(module, "_EXACT_ROWS", 100)
    monkeypatch.setattr(module, "_CELL_ROWS", 100)
    distances, found = nearest_neighbours(X if kind == "dense" else sparse.csr_array(X), 5)
    shared = [len(set(one) & set(two)) for one, two in zip(exact.tolist(), found.tolist(), strict=True)]
    assert np.mean(shared) > 0.8 * 5
    assert not (found == np.arange(3000)[:, None]).any()
    assert all(len(set(row)) == 5 for row in found.tolist())
    # sqrt of a difference of sums of squares: half of the digits.
    np.testing.assert_allclose(distances, np.linalg.norm(X[:, None] - X[found], axis=2), atol=1e-6)


def test_search_by_cells_survives_repeated_rows_and_many_neighbours(monkeypatch):
    for name, value in (("_EXACT_ROWS", 10), ("_CELL_ROWS", 20), ("_BLOCK_ROWS", 50), ("_MOST_COMPARED", 60)):
        monkeypatch.setattr(module, name, value)
    X = np.repeat(np.arange(3.0), 100)[:, None] * np.ones(8)
    for k in (5, 150, 299):
        distances, found = nearest_neighbours(X, k)
        assert found.shape == distances.shape == (300, k)
        assert not (found == np.arange(300)[:, None]).any()
        assert all(len(set(row)) == k for row in found.tolist())
