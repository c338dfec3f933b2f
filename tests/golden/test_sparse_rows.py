"""Sums and inner products of sparse rows equal the results for dense rows."""

import numpy as np
import pytest
from scipy import sparse

from clew.kernels import sparse_rows


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_rows_are_added_and_multiplied_like_dense_ones(index, seed):
    rng = np.random.default_rng(seed)
    dense = rng.integers(-3, 4, size=(12, 5)) * (rng.random((12, 5)) < 0.5) * 1.0
    dense[3] = 0
    rows = sparse.csr_array(dense)
    arrays = rows.data, rows.indices.astype(index), rows.indptr.astype(index)
    labels, weights = rng.integers(4, size=12).astype(np.int32), rng.integers(0, 4, size=12).astype(float)
    sums = np.ones((4, 5))
    sparse_rows.add_sparse_rows(*arrays, weights, labels, sums)
    for cluster in range(4):
        assert (sums[cluster] == 1 + (weights[labels == cluster, None] * dense[labels == cluster]).sum(axis=0)).all()
    centers, products = rng.integers(-3, 4, size=(4, 5)).astype(float), np.empty(12)
    sparse_rows.multiply_own(*arrays, centers, labels, products)
    assert (products == (dense * centers[labels]).sum(axis=1)).all()
