"""Approximate neighbours are nearly always the nearest ones, and never the row itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from clew import _neighbours as module
from clew._neighbours import nearest_neighbours


@pytest.fixture
def graph_index():
    """The graph index, which needs the extra `ann`."""
    pytest.importorskip("usearch")


@pytest.fixture
def no_graph_index(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)


@pytest.fixture(params=["graph_index", "no_graph_index"])
def either(request):
    request.getfixturevalue(request.param)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_approximate_search_finds_most_neighbours_and_never_the_row_itself(monkeypatch, either, kind):
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


def test_approximate_search_survives_repeated_rows_and_many_neighbours(monkeypatch, either):
    for name, value in (("_EXACT_ROWS", 10), ("_CELL_ROWS", 20), ("_BLOCK_ROWS", 50), ("_MOST_COMPARED", 60)):
        monkeypatch.setattr(module, name, value)
    X = np.repeat(np.arange(3.0), 100)[:, None] * np.ones(8)
    for k in (5, 150, 299):
        distances, found = nearest_neighbours(X, k)
        assert found.shape == distances.shape == (300, k)
        assert not (found == np.arange(300)[:, None]).any()
        assert all(len(set(row)) == k for row in found.tolist())
        assert (distances[:, : min(k, 99)] == 0).all()


def test_graph_index_finds_equal_rows_first_and_does_not_depend_on_the_run(graph_index):
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(50, 10)), rng.integers(1, 30, size=50), axis=0)
    X = X[rng.permutation(len(X))]
    distances, found = module.approximate_neighbours(X, 10)
    exact = np.sort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 1:11]
    assert np.mean(distances <= exact + 1e-6) > 0.99
    assert ((distances == 0) == (exact == 0)).all()
    np.testing.assert_array_equal(found, module.approximate_neighbours(X, 10)[1])


@pytest.mark.parametrize("change", [lambda X: 1e9 + 1e-3 * X, lambda X: 1e150 * X, lambda X: 1e-150 * X])
def test_graph_index_takes_rows_that_32_bits_cannot_hold(graph_index, change):
    X = np.random.default_rng(2).normal(size=(500, 8))
    exact, found = nearest_neighbours(X, 5)[1], module.approximate_neighbours(change(X), 5)[1]
    shared = [len(set(one) & set(two)) for one, two in zip(exact.tolist(), found.tolist(), strict=True)]
    assert np.mean(shared) > 0.95 * 5


@pytest.mark.parametrize(
    "message, raised", [("Operation has been terminated", KeyboardInterrupt), ("Out of memory", RuntimeError)]
)
def test_ctrl_c_during_the_graph_index_is_ctrl_c(graph_index, monkeypatch, message, raised):
    from usearch.index import Index

    def stopped(*args, **options):
        raise RuntimeError(message)

    monkeypatch.setattr(Index, "add", stopped)
    with pytest.raises(raised):
        module._search_graph(np.eye(3, dtype=np.float32), 2)
