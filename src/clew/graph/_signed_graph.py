"""A signed graph of units: must-linked rows become one unit, and cannot-linked units stay apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from clew.constraints import Closure
from clew.constraints._arrays import distinct_pairs
from clew.kernels.signed_graph import move_units, pack_triangles
from clew.solvers.coloring import CliqueGraph

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# A move must lower the cost by more than this share of the largest weight; smaller changes may be rounding errors.
_ROUNDING = 1e-10
# The packing looks at no more than this many triangles per stored pair, which takes a few times as long as a pass.
_TRIANGLES_PER_PAIR = 50


class SignedGraph(NamedTuple):
    """Net weights between units, positive if two units belong together.

    The net weight of units u and v is ``weights[e] - gap * rows[u] * rows[v]`` if entry e stores the pair, and
    ``-gap * rows[u] * rows[v]`` if no entry does. Example: rows 0 and 1 of three rows are one unit, the pair (0, 2) has
    weight 2, the pair (1, 2) has weight 3, and gap is 0. This gives ``ptr=[0, 1, 2]``, ``others=[1, 0]``,
    ``weights=[5, 5]``, ``rows=[2, 1]``.

    Attributes
    ----------
    ptr, others, weights : arrays
        Unit u has the entries ``ptr[u]:ptr[u + 1]`` of `others` and `weights`. Both directions are stored.
    rows : ndarray of shape (n_units,)
        Number of rows of each unit.
    gap : float
        Cost of having two rows in one cluster if no weight is stored for the pair.
    apart : CliqueGraph
        The cannot-links between units.
    part_of : ndarray of shape (n_units,)
        Connected component of each unit in the graph of positive net weights. In an optimal clustering, no cluster has
        units of two parts.
    constant : float
        Cost that is the same for all clusterings of the units.
    """

    ptr: IntArray
    others: IntArray
    weights: FloatArray
    rows: FloatArray
    gap: float
    apart: CliqueGraph
    part_of: IntArray
    constant: float

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.rows)

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return int(self.part_of.max(initial=-1)) + 1

    @property
    def source(self) -> IntArray:
        """The unit of each entry."""
        return np.repeat(np.arange(self.n_units), np.diff(self.ptr))

    @property
    def net(self) -> FloatArray:
        """The net weight of each entry."""
        return self.weights - self.gap * self.rows[self.source] * self.rows[self.others]

    @property
    def tolerance(self) -> float:
        """Differences of cost below this are rounding errors."""
        return _ROUNDING * float(np.abs(self.weights).max(initial=0))


def signed_graph(X: Any, closed: Closure, gap: float) -> SignedGraph:
    """Contract a symmetric matrix of weights to the components of must-linked rows; entries of 0 count as missing."""
    upper = sparse.triu(sparse.csr_array(X), k=1).tocoo()
    values = upper.data.astype(np.float64)
    stored = values != 0
    first, second = (closed.component_of[np.asarray(rows)[stored]] for rows in upper.coords)
    values, n_units = values[stored], closed.n_components
    rows = closed.sizes.astype(np.float64)
    inside = first == second
    n_inside = float((rows * (rows - 1)).sum()) / 2 - np.count_nonzero(inside)
    constant = -float(np.minimum(values[inside], 0).sum()) + gap * n_inside
    pairs, _, place = distinct_pairs(np.column_stack([first, second])[~inside])
    low, high = pairs.T
    positive, negative, n_stored = (
        np.bincount(place, weights, minlength=len(pairs))
        for weights in (np.maximum(values[~inside], 0), np.maximum(-values[~inside], 0), None)
    )
    negative = negative + gap * (rows[low] * rows[high] - n_stored)
    barred = _are_apart(closed.graph, low, high)
    constant += float(positive[barred].sum()) + float(np.minimum(positive, negative)[~barred].sum())
    net = positive - negative
    part_of = _parts(n_units, low, high, (net > 0) & ~barred)
    low, high, net = low[~barred], high[~barred], net[~barred]
    weights = net + gap * rows[low] * rows[high]
    return _compressed(low, high, weights, rows, gap, closed.graph, part_of, float(constant))


def _are_apart(graph: CliqueGraph, low: IntArray, high: IntArray) -> npt.NDArray[np.bool_]:
    """Whether a cannot-link separates the two units of each pair."""
    source = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
    edges = source * graph.n_vertices + graph.edges
    return np.isin(low * graph.n_vertices + high, edges) | graph.share_a_clique(low, high)


def _parts(n_units: int, low: IntArray, high: IntArray, together: npt.NDArray[np.bool_]) -> IntArray:
    graph = sparse.coo_array((together[together], (low[together], high[together])), shape=(n_units, n_units))
    return connected_components(graph, directed=False)[1].astype(np.int64) if n_units else np.empty(0, dtype=np.int64)


def _compressed(
    low: IntArray,
    high: IntArray,
    weights: FloatArray,
    rows: FloatArray,
    gap: float,
    apart: CliqueGraph,
    part_of: IntArray,
    constant: float,
) -> SignedGraph:
    """Build a graph from distinct pairs."""
    n_units = len(rows)
    ends = np.concatenate([low, high]), np.concatenate([high, low])
    entries = sparse.csr_array((np.concatenate([weights, weights]), ends), shape=(n_units, n_units))
    entries.sort_indices()
    ptr, others = entries.indptr.astype(np.int64), entries.indices.astype(np.int64)
    return SignedGraph(ptr, others, entries.data, rows, gap, apart, part_of, constant)


def summed(keys: IntArray, values: FloatArray, n_keys: int) -> FloatArray:
    """Sum the values of each key."""
    return np.bincount(keys, values, minlength=n_keys).astype(np.float64)


def restricted(graph: SignedGraph, units: IntArray) -> SignedGraph:
    """Restrict the graph to some units, renumbered in order, without pairs of units in different parts."""
    place = np.full(graph.n_units, -1, dtype=np.int64)
    place[units] = np.arange(len(units))
    counts = np.diff(graph.ptr)[units]
    starts = np.append(0, np.cumsum(counts))
    entries = np.repeat(graph.ptr[units] - starts[:-1], counts) + np.arange(starts[-1])
    source, others = np.repeat(np.arange(len(units)), counts), graph.others[entries]
    kept = (place[others] >= 0) & (graph.part_of[units][source] == graph.part_of[others])
    links = graph.apart
    return SignedGraph(
        np.append(0, np.cumsum(np.bincount(source[kept], minlength=len(units)))).astype(np.int64),
        place[others[kept]],
        graph.weights[entries[kept]],
        graph.rows[units],
        graph.gap,
        links.part(units) if len(links.edges) + len(links.members) else _no_links(len(units)),
        np.unique(graph.part_of[units], return_inverse=True)[1].astype(np.int64),
        graph.constant,
    )


def merged(graph: SignedGraph, labels: IntArray) -> SignedGraph:
    """Contract each cluster to one unit; labels are 0, 1, …"""
    n_units = int(labels.max(initial=-1)) + 1
    source, target = labels[graph.source], labels[graph.others]
    apart = source < target
    pairs, _, place = distinct_pairs(np.column_stack([source, target])[apart])
    low, high = pairs.T
    weights = summed(place, graph.weights[apart], len(pairs))
    links = graph.apart
    if len(links.edges) + len(links.members):
        ends = np.repeat(np.arange(links.n_vertices), np.diff(links.edge_ptr)), links.edges
        clique_of = np.repeat(np.arange(len(links.member_ptr) - 1), np.diff(links.member_ptr))
        links = CliqueGraph.build(n_units, labels[np.column_stack(ends)], clique_of, labels[links.members])
    else:
        links = _no_links(n_units)
    part_of = np.empty(n_units, dtype=np.int64)
    part_of[labels] = graph.part_of
    rows = summed(labels, graph.rows, n_units)
    return _compressed(low, high, weights, rows, graph.gap, links, part_of, graph.constant)


def _no_links(n_units: int) -> CliqueGraph:
    none = np.empty(0, dtype=np.int64)
    return CliqueGraph.build(n_units, np.empty((0, 2), dtype=np.int64), none, none)


def cost_of_parts(graph: SignedGraph, labels: IntArray) -> FloatArray:
    """Cost of a clustering in each part, without the constant: its disagreements with the net weights."""
    source = graph.source
    once = source < graph.others
    net = graph.net
    worth = np.bincount(graph.part_of[source[once]], np.maximum(net[once], 0), minlength=graph.n_parts)
    together = once & (labels[source] == labels[graph.others])
    gained = np.bincount(graph.part_of[source[together]], graph.weights[together], minlength=graph.n_parts)
    numbers, clusters = np.unique(labels, return_inverse=True)
    sizes = np.bincount(clusters, graph.rows)
    squares = np.bincount(clusters, graph.rows**2)
    part = np.empty(len(numbers), dtype=np.int64)
    part[clusters] = graph.part_of
    gaps = np.bincount(part, sizes**2 - squares, minlength=graph.n_parts) / 2
    return np.asarray(worth - gained + graph.gap * gaps)


def descended(graph: SignedGraph, labels: IntArray, order: IntArray) -> IntArray:
    """Move units and merge clusters until neither lowers the cost; a merge is a move of a cluster as a unit."""
    while True:
        labels = _moved(graph, labels, order)[0]
        level = graph
        n_merged = 0
        while True:
            clusters = np.unique(labels, return_inverse=True)[1].astype(np.int64)
            level = merged(graph, clusters)
            found, n_moves = _moved(level, np.arange(level.n_units), np.arange(level.n_units))
            if not n_moves:
                break
            n_merged += n_moves
            labels = found[clusters]
        if not n_merged:
            return clusters


def _moved(graph: SignedGraph, labels: IntArray, order: IntArray) -> tuple[IntArray, int]:
    n_units, links = graph.n_units, graph.apart
    found = labels.copy()
    n_moves = move_units(
        graph.ptr,
        graph.others,
        graph.weights,
        graph.rows,
        graph.gap,
        links.edge_ptr,
        links.edges,
        links.clique_ptr,
        links.cliques,
        links.member_ptr,
        links.members,
        order,
        graph.tolerance,
        found,
        np.empty((5, n_units), dtype=np.int64),
        np.empty((3, n_units), dtype=np.int64),
        np.empty(len(links.member_ptr) - 1, dtype=np.int64),
        np.empty((2, n_units)),
    )
    return found, n_moves


def triangle_bounds(graph: SignedGraph) -> FloatArray:
    """Lower bound on the cost of each part, from a packing of bad triangles."""
    n_units, links = graph.n_units, graph.apart
    source, net = graph.source, graph.net
    bound = np.zeros(n_units)
    # Entries are sorted by unit and other unit, so sorting them by other unit and unit gives the reverse entries.
    twin = np.empty(len(source), dtype=np.int64)
    twin[np.lexsort((source, graph.others))] = np.arange(len(source))
    pack_triangles(
        graph.ptr,
        graph.others,
        net,
        twin,
        graph.rows,
        graph.gap,
        links.edge_ptr,
        links.edges,
        links.clique_ptr,
        links.cliques,
        _TRIANGLES_PER_PAIR * (len(source) + n_units),
        np.maximum(net, 0),
        np.zeros(n_units),
        np.full((3, n_units), -1, dtype=np.int64),
        np.full(len(links.member_ptr) - 1, -1, dtype=np.int64),
        bound,
    )
    return summed(graph.part_of, bound, graph.n_parts)
