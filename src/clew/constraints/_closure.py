"""What follows from constraints: components of must-linked rows, and which components may never share a cluster.

Compressed: memory grows with rows and pairs, never with their products.
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
        Component of each row, numbered in the order of their first rows.
    n_components : int
    sizes : ndarray of shape (n_components,)
        Rows per component.
    labels : ndarray of shape (n_components,)
        Class known for the component, -1 where none is.
    graph : CliqueGraph
        Components that must differ: as edges (from pairs) and as cliques (from cannot-groups and from labels).
    contradictory : bool
        Whether some component would have to differ from itself; `Constraints.conflicts` says why.
    """

    component_of: IntArray
    n_components: int
    sizes: IntArray
    labels: IntArray
    graph: CliqueGraph
    contradictory: bool

    @cached_property
    def rows(self) -> tuple[IntArray, IntArray]:
        """Rows by component, compressed: component c holds `rows[1][rows[0][c]:rows[0][c + 1]]`."""
        return compress(self.component_of, np.arange(len(self.component_of)), self.n_components)

    @cached_property
    def first_row(self) -> IntArray:
        """The first row of each component."""
        pointers, rows = self.rows
        return rows[pointers[:-1]]

    @property
    def tied(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether a component must differ from any other."""
        return (np.diff(self.graph.edge_ptr) > 0) | (np.diff(self.graph.clique_ptr) > 0)


def component_numbers(n_rows: int, *pairs: IntArray) -> tuple[IntArray, int]:
    """Component of each row under the given must-links, and the number of components."""
    parent = np.arange(n_rows)
    for some in pairs:
        merge_pairs(parent, np.ascontiguousarray(some))
    component_of = np.empty(n_rows, dtype=np.int64)
    return component_of, number_components(parent, component_of)


def must_links(constraints: Constraints) -> list[IntArray]:
    """All must-links as pair arrays: given ones, and as few as join the rows of a group or a class."""
    links = [links_within(column) for column in group_columns(constraints.must_groups)]
    if constraints.labels is not None:
        links.append(links_within(constraints.labels))
    return [constraints.must_link, *links]


def closure(constraints: Constraints) -> Closure:
    """The closure of everything stated, whatever its confidence."""
    component_of, n_components = component_numbers(constraints.n_rows, *must_links(constraints))
    labels = np.full(n_components, -1, dtype=np.int64)
    pairs = component_of[constraints.cannot_link]
    apart = pairs[:, 0] != pairs[:, 1]
    contradictory = not apart.all()
    # Each list holds one array per source of cliques: the clique of a membership, and its component.
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
    # An edge between two components of a clique says nothing new: without it, what is entailed leaves no trace.
    cliques_alone = CliqueGraph.build(n_components, pairs[:0], clique_of, member[shared])
    new = apart & ~cliques_alone.share_a_clique(pairs[:, 0], pairs[:, 1])
    graph = CliqueGraph.build(n_components, pairs[new], clique_of, member[shared])
    sizes = np.bincount(component_of, minlength=n_components)
    return Closure(component_of, n_components, sizes, labels, graph, contradictory)
