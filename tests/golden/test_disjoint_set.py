"""Union-find equals flooding, compiled and interpreted."""

from __future__ import annotations

import numpy as np
import pytest

from clew.kernels import disjoint_set
from tests.reference import closure as reference
from tests.reference import every_graph, interpreted_kernel

KERNELS = [
    pytest.param(disjoint_set, id="compiled"),
    pytest.param(interpreted_kernel("disjoint_set"), id="interpreted"),
]


def as_pairs(pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize("kernels", KERNELS)
def test_components_match_reference_on_every_graph_of_five_rows(kernels):
    for must_link in every_graph(5):
        parent, component_of = np.arange(5), np.empty(5, dtype=np.int64)
        kernels.merge_pairs(parent, as_pairs(must_link))
        n_components = kernels.number_components(parent, component_of)
        expected = reference.component_of(5, must_link)
        assert component_of.tolist() == expected
        assert n_components == max(expected) + 1


@pytest.mark.parametrize("kernels", KERNELS)
def test_roots_are_the_smallest_rows_whatever_the_order_of_pairs(kernels):
    for must_link in every_graph(4):
        for pairs in (must_link, must_link[::-1], [pair[::-1] for pair in must_link]):
            parent = np.arange(4)
            kernels.merge_pairs(parent, as_pairs(pairs))
            assert (parent <= np.arange(4)).all()
            roots = {row for row in range(4) if parent[row] == row}
            components = reference.component_of(4, must_link)
            assert roots == {components.index(component) for component in set(components)}


@pytest.mark.parametrize("kernels", KERNELS)
def test_pairs_can_be_merged_in_several_calls(kernels):
    for must_link in every_graph(4):
        parent, component_of = np.arange(4), np.empty(4, dtype=np.int64)
        for pair in must_link:
            kernels.merge_pairs(parent, as_pairs([pair]))
        kernels.number_components(parent, component_of)
        assert component_of.tolist() == reference.component_of(4, must_link)


@pytest.mark.parametrize("kernels", KERNELS)
def test_pairs_are_only_read(kernels):
    pairs = as_pairs([(0, 1), (2, 1)])
    pairs.flags.writeable = False
    parent = np.arange(3)
    kernels.merge_pairs(parent, pairs)
    assert parent.tolist() == [0, 0, 0]


@pytest.mark.parametrize("kernels", KERNELS)
def test_no_rows(kernels):
    parent = np.arange(0)
    kernels.merge_pairs(parent, as_pairs([]))
    assert kernels.number_components(parent, np.empty(0, dtype=np.int64)) == 0
