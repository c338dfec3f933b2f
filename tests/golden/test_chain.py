"""Conflicts come with a chain of must-links that exists and that is as short as any."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest

from clew import Constraints
from clew.kernels import chain
from clew.solvers.coloring import compress
from tests.reference import closure as flooding
from tests.reference import constraints as reference
from tests.reference import every_graph, every_grouping, graphs_up_to_renaming, interpreted_kernel

KERNELS = [pytest.param(chain, id="compiled"), pytest.param(interpreted_kernel("chain"), id="interpreted")]
ALL_PAIRS = list(combinations(range(5), 2))


def search(kernels, n_rows, pairs, groups, source, target):
    """Rows from target back to source, as the kernel finds them, or None."""
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    partners = compress(np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]]), n_rows)
    groups = np.array(groups)
    rows = np.flatnonzero(groups >= 0)
    n_hubs = int(groups.max()) + 1
    previous, queue = np.full(n_rows, -1), np.empty(n_rows, dtype=np.int64)
    n_seen = kernels.find_chain(
        *partners,
        *compress(rows, groups[rows], n_rows),
        *compress(groups[rows], rows, n_hubs),
        source,
        target,
        previous,
        np.zeros(n_hubs, dtype=np.int8),
        queue,
    )
    assert set(queue[:n_seen].tolist()) == set(np.flatnonzero(previous >= 0).tolist())
    if previous[target] < 0:
        return None
    found = [target]
    while found[-1] != source:
        found.append(int(previous[found[-1]]))
    return found


def assert_shortest(found, must_link):
    links = {frozenset(pair) for pair in must_link}
    assert all(frozenset(link) in links for link in pairwise(found))
    assert len(found) - 1 == flooding.distance(found[0], found[-1], must_link)


@pytest.mark.parametrize("kernels", KERNELS)
def test_search_finds_a_shortest_chain_in_every_graph_of_four_rows_with_groups(kernels):
    for pairs, groups in product(graphs_up_to_renaming(4), every_grouping(4, 2)):
        must_link = pairs + reference.sharing(groups)
        component_of = flooding.component_of(4, must_link)
        for target in (1, 2, 3):
            found = search(kernels, 4, pairs, groups, 0, target)
            assert (found is not None) == (component_of[0] == component_of[target])
            if found is not None:
                assert_shortest(found, must_link)


def test_conflicts_on_every_must_link_graph_of_five_rows():
    for must_link in every_graph(5):
        component_of = flooding.component_of(5, must_link)
        conflicts = Constraints(must_link, ALL_PAIRS).conflicts()
        joined = [pair for pair in ALL_PAIRS if component_of[pair[0]] == component_of[pair[1]]]
        assert [conflict.rows for conflict in conflicts] == joined
        for conflict in conflicts:
            assert conflict.source == f"cannot_link[{ALL_PAIRS.index(conflict.rows)}]"
            assert (conflict.chain[0], conflict.chain[-1]) == conflict.rows
            assert conflict.names == conflict.chain
            assert_shortest(conflict.chain, must_link)


@pytest.mark.parametrize("knowledge", ["must_groups", "labels"])
def test_chains_pass_through_groups_and_classes(knowledge):
    pairs = list(combinations(range(4), 2))
    for groups, must_link in product(every_grouping(4, 2), graphs_up_to_renaming(4)):
        stated = must_link + reference.sharing(groups)
        component_of = flooding.component_of(4, stated)
        conflicts = Constraints(must_link, pairs, **{knowledge: groups}).conflicts()
        found = [conflict for conflict in conflicts if conflict.source.startswith("cannot_link")]
        assert [conflict.rows for conflict in found] == [(i, j) for i, j in pairs if component_of[i] == component_of[j]]
        for conflict in found:
            assert_shortest(conflict.chain, stated)


def test_conflicts_of_cannot_groups_and_labels_on_every_grouping_and_graph_of_four_rows():
    for groups, must_link in product(every_grouping(4, 2), graphs_up_to_renaming(4)):
        component_of = flooding.component_of(4, must_link)
        conflicts = Constraints(must_link, cannot_groups=groups).conflicts()
        for conflict in conflicts:
            first, second = conflict.rows
            assert conflict.source == "cannot_groups"
            assert groups[first] == groups[second] >= 0
            assert_shortest(conflict.chain, must_link)
        # One conflict fewer than rows in each group of each component: enough to name every row that takes part.
        named = {row for conflict in conflicts for row in conflict.rows}
        clashing = {
            row for pair in reference.sharing(groups) for row in pair if component_of[pair[0]] == component_of[pair[1]]
        }
        assert named == clashing

        labelled = Constraints(must_link, labels=groups)
        stated = must_link + reference.sharing(groups)
        conflicts = labelled.conflicts()
        assert bool(conflicts) == labelled.closure().contradictory
        for conflict in conflicts:
            first, second = conflict.rows
            assert conflict.source == "labels"
            assert -1 != groups[first] != groups[second] != -1
            assert_shortest(conflict.chain, stated)
