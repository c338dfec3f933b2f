"""The tree of average linkage equals SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from clew.evaluation import same_partition
from clew.hierarchical import _average_tree
from clew.hierarchical._average_tree import average_tree


@pytest.mark.parametrize("block", [4_000_000, 50])
def test_merges_equal_those_of_scipy(seed, block, monkeypatch):
    monkeypatch.setattr(_average_tree, "_BLOCK", block)
    X = np.random.default_rng(seed).normal(size=(120, 3))
    tree, expected = average_tree(X), linkage(pdist(X, "sqeuclidean"), "average")
    assert_allclose(tree.heights**2, expected[:, 2], rtol=1e-6)  # the rows have noise of 1e-9
    for n_clusters in (1, 2, 17, 119, 120):
        assert same_partition(tree.labels(n_clusters), fcluster(expected, n_clusters, "maxclust"))


def test_equal_rows_are_merged_first(seed):
    X = np.random.default_rng(seed).permutation(np.repeat(np.eye(4), 30, axis=0))
    tree = average_tree(X)
    assert (tree.heights[:116] < 1e-6).all()
    assert same_partition(tree.labels(4), X.argmax(axis=1))
    assert tree.sizes[-1] == 120


def test_a_line_has_the_documented_tree():
    tree = average_tree(np.array([[0.0], [1.0], [5.0], [9.0]]))
    assert tree.children.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert tree.sizes.tolist() == [1, 1, 1, 1, 2, 2, 4]
    assert tree.members.tolist() == [0, 1, 2, 3, 0, 2, 0]


def test_one_row_is_a_tree():
    assert average_tree(np.zeros((1, 2))).labels(1).tolist() == [0]
