"""Kernels of string similarity and sparse products equal plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from clew.matching import _texts
from clew.matching._texts import nearest, products, spelling_similarities
from tests.reference import string_similarity as reference


def test_jaro_winkler_equals_the_definition(seed):
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list("abc"), size=rng.integers(0, 9))) for _ in range(30)]
    first, second = (side.astype(np.int64) for side in np.triu_indices(len(texts)))
    found = spelling_similarities(texts, first, second)[1]
    expected = [reference.jaro_winkler(texts[i], texts[j]) for i, j in zip(first, second, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("one", "two", "similarity"), [("MARTHA", "MARHTA", 0.961), ("DIXON", "DICKSONX", 0.813)])
def test_jaro_winkler_of_winklers_examples(one, two, similarity):
    """W. E. Winkler's often printed examples."""
    found = spelling_similarities([one, two], np.array([0]), np.array([1]))[1][0]
    assert round(float(found), 3) == similarity


@pytest.mark.parametrize("rows_at_a_time", [1, 7, 25])
def test_products_and_neighbours_equal_plain_loops(seed, rows_at_a_time, monkeypatch):
    monkeypatch.setattr(_texts, "_QUERY_BLOCK", rows_at_a_time)
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 3, size=(25, 12)) * (rng.random((25, 12)) < 0.3)
    matrix = sparse.csr_array(dense.astype(float))
    first, second = (side.astype(np.int64) for side in np.triu_indices(25))
    np.testing.assert_array_equal(products(matrix, first, second), (dense @ dense.T)[first, second])
    rows, found = nearest(matrix, matrix, 5, is_same=True)
    for i, expected in enumerate(reference.nearest(dense.tolist(), 5)):
        assert found[i].tolist() == expected + [0.0] * (5 - len(expected))
        assert all((dense[i] @ dense[j] == value) for j, value in zip(rows[i], found[i], strict=True) if j >= 0)
        assert (rows[i] >= 0).sum() == len(expected) and i not in rows[i]
