"""Closure of constraints: components of must-linked rows, and cannot-links between components.

Memory is linear in the number of rows and pairs. Groups are never expanded to pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clew.constraints._arrays import IntArray, group_columns, links_within
from clew.kernels.disjoint_set import merge_pairs, number_components
from clew.solvers.coloring import CliqueGraph, compress

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Closure:
    """Components and the cannot-links between them.

    Attributes
    ----------
    component_of : ndarray of shape (n_samples,)
        Component of each row. Components are numbered in the order of their first rows.
    n_components : int
    sizes : ndarray of shape (n_components,)
        Number of rows per component.
    labels : ndarray of shape (n_components,)
        Known class of each component, -1 if unknown.
    graph : CliqueGraph
        Cannot-links between components: edges (from pairs) and cliques (from cannot-groups and labels).
    contradictory : bool
        Whether a component is cannot-linked with itself. `Constraints.conflicts` explains why.
    """

    component_of: IntArray
    n_components: int
    sizes: IntArray
    labels: IntArray
    graph: CliqueGraph
    contradictory: bool

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """Rows by component, in CSR form: component c has the rows `rows[1][rows[0][c]:rows[0][c + 1]]`."""
        return compress(self.component_of, np.arange(len(self.component_of)), self.n_components)

    @cached_property
    def first_row(self) -> IntArray:
        """The first row of each component."""
        pointers, rows = self.rows
        return rows[pointers[:-1]]

    @property
    def tied(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """True for components with a cannot-link to another component."""
        return (np.diff(self.graph.edge_ptr) > 0) | (np.diff(self.graph.clique_ptr) > 0)


def component_numbers(n_rows: int, *pairs: IntArray) -> tuple[IntArray, int]:
    """Component of each row under the given must-links, and the number of components."""
    parent = np.arange(n_rows)
    for some in pairs:
        merge_pairs(parent, np.ascontiguousarray(some))
    component_of = np.empty(n_rows, dtype=np.int64)
    return component_of, number_components(parent, component_of)


def must_links(constraints: Constraints) -> list[IntArray]:
    """All must-links as pair arrays: the given pairs, and chains through the rows of each group and class."""
    links = [links_within(column) for column in group_columns(constraints.must_groups)]
    if constraints.labels is not None:
        links.append(links_within(constraints.labels))
    return [constraints.must_link, *links]


def closure(constraints: Constraints) -> Closure:
    """Compute the closure of all constraints, of any confidence."""
    component_of, n_components = component_numbers(constraints.n_rows, *must_links(constraints))
    labels = np.full(n_components, -1, dtype=np.int64)
    pairs = component_of[constraints.cannot_link]
    apart = pairs[:, 0] != pairs[:, 1]
    contradictory = not apart.all()
    # Memberships (clique, component): each list has one array per source of cliques.
    cliques, members = [_NONE], [_NONE]
    n_cliques = 0
    if constraints.labels is not None:
        known = np.flatnonzero(constraints.labels >= 0)
        components, classes = component_of[known], constraints.labels[known]
        labels[components] = classes
        contradictory |= bool((labels[components] != classes).any())
        members.append(np.unique(components))
        cliques.append(np.zeros(len(members[-1]), dtype=np.int64))
        n_cliques = 1
    for column in group_columns(constraints.cannot_groups):
        grouped = np.flatnonzero(column >= 0)
        groups, numbers = np.unique(column[grouped], return_inverse=True)
        keys, counts = np.unique(numbers * n_components + component_of[grouped], return_counts=True)
        contradictory |= bool((counts > 1).any())
        cliques.append(keys // max(n_components, 1) + n_cliques)
        members.append(keys % max(n_components, 1))
        n_cliques += len(groups)
    clique_of, member = np.concatenate(cliques), np.concatenate(members)
    shared = np.bincount(clique_of, minlength=1)[clique_of] > 1
    clique_of = np.unique(clique_of[shared], return_inverse=True)[1].astype(np.int64)
    # Drop edges inside a clique, because they are redundant.
    cliques_alone = CliqueGraph.build(n_components, pairs[:0], clique_of, member[shared])
    new = apart & ~cliques_alone.share_a_clique(pairs[:, 0], pairs[:, 1])
    graph = CliqueGraph.build(n_components, pairs[new], clique_of, member[shared])
    sizes = np.bincount(component_of, minlength=n_components)
    return Closure(component_of, n_components, sizes, labels, graph, contradictory)


def label_clusters(cluster_of: IntArray, closed: Closure, n_clusters: int) -> IntArray:
    """The label of each cluster: the number of its class, or if it has none, the lowest number that no class has."""
    labels = np.full(n_clusters, -1, dtype=np.int64)
    named = np.flatnonzero(closed.labels >= 0)
    labels[cluster_of[named]] = closed.labels[named]
    free = np.setdiff1d(np.arange(n_clusters + len(named)), closed.labels[named])
    labels[labels < 0] = free[: np.count_nonzero(labels < 0)]
    return labels
