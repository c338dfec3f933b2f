"""Can a graph be coloured with k colours? A witness, a small proof that it cannot, or an honest "unknown".

Vertices with fewer than k neighbours never matter and are peeled off. What is left is searched most saturated vertex
first (`brelaz1979`); where that wanders, a tabu search (`hertz1987`) looks for a colouring and then an exact search,
part by part, settles it, all within a limit that counts work, not seconds.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from clew.kernels import coloring as kernels
from clew.kernels.disjoint_set import merge_pairs, number_components

IntArray = npt.NDArray[np.int64]

# Neighbours told during a search: a few seconds of work.
WORK_LIMIT = 400_000_000
# The plain descent over the whole core usually succeeds; only when it wanders are the parts searched one by one.
_EASY_WORK = 20
# Steps of the tabu search per vertex, edge and membership, before the exact search gets its turn.
_MEND_WORK = 50_000
# A proof is shrunk by leaving out one vertex at a time; beyond these sizes it is shown as found.
_SHRINK_VERTICES, _SHRINK_WORK = 200, 200_000
# Starting points and adjacency entries of the greedy search for a clique.
_CLIQUE_STARTS, _CLIQUE_ENTRIES = 50, 5_000_000


class CliqueGraph(NamedTuple):
    """A graph as edges plus cliques that are never expanded: two compressed adjacency lists.

    `edges[edge_ptr[v]:edge_ptr[v + 1]]` are the neighbours of v; `members[member_ptr[q]:member_ptr[q + 1]]` the
    vertices of clique q; `cliques[clique_ptr[v]:clique_ptr[v + 1]]` the cliques of v.
    """

    edge_ptr: IntArray
    edges: IntArray
    clique_ptr: IntArray
    cliques: IntArray
    member_ptr: IntArray
    members: IntArray

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return len(self.edge_ptr) - 1

    @classmethod
    def build(cls, n_vertices: int, pairs: IntArray, clique_of: IntArray, member: IntArray) -> CliqueGraph:
        """Compress `pairs` of different vertices (any order, repeats allowed) and memberships (clique, vertex)."""
        low, high = pairs.min(axis=1, initial=n_vertices), pairs.max(axis=1, initial=-1)
        keys = np.unique(low * n_vertices + high)
        low, high = keys // max(n_vertices, 1), keys % max(n_vertices, 1)
        edge_ptr, edges = compress(np.concatenate([low, high]), np.concatenate([high, low]), n_vertices)
        member_ptr, members = compress(clique_of, member, int(clique_of.max(initial=-1)) + 1)
        clique_ptr, cliques = compress(member, clique_of, n_vertices)
        return cls(edge_ptr, edges, clique_ptr, cliques, member_ptr, members)

    def neighbours(self, vertex: int) -> IntArray:
        """All neighbours of a vertex, each once."""
        found = [self.edges[self.edge_ptr[vertex] : self.edge_ptr[vertex + 1]]]
        for clique in self.cliques[self.clique_ptr[vertex] : self.clique_ptr[vertex + 1]]:
            found.append(self.members[self.member_ptr[clique] : self.member_ptr[clique + 1]])
        together = np.unique(np.concatenate(found))
        return together[together != vertex]

    def share_a_clique(self, first: IntArray, second: IntArray) -> npt.NDArray[np.bool_]:
        """Whether two different vertices are in one clique, for each pair of them."""
        shared = np.zeros(len(first), dtype=bool)
        if len(self.members):
            n = self.n_vertices
            repeats = np.diff(self.clique_ptr)[first]
            cliques = self.cliques[np.repeat(self.clique_ptr[first], repeats) + running(repeats)]
            clique_of = np.repeat(np.arange(len(self.member_ptr) - 1), np.diff(self.member_ptr))
            hit = np.isin(cliques * n + np.repeat(second, repeats), clique_of * n + self.members)
            shared[np.repeat(np.arange(len(first)), repeats)[hit]] = True
        return shared & (first != second)

    def part(self, vertices: IntArray) -> CliqueGraph:
        """The graph among some vertices, renumbered in their order."""
        place = np.full(self.n_vertices, -1)
        place[vertices] = np.arange(len(vertices))
        source = np.repeat(np.arange(self.n_vertices), np.diff(self.edge_ptr))
        pairs = place[np.column_stack([source, self.edges])]
        clique_of = np.repeat(np.arange(len(self.member_ptr) - 1), np.diff(self.member_ptr))
        member = place[self.members]
        kept = member >= 0
        return CliqueGraph.build(
            len(vertices),
            pairs[(pairs >= 0).all(axis=1)],
            np.unique(clique_of[kept], return_inverse=True)[1],
            member[kept],
        )


class Coloring(NamedTuple):
    """The outcome of `color`: colours per vertex, or the vertices that prove there are none, or neither."""

    status: Literal["feasible", "infeasible", "unknown"]
    colors: npt.NDArray[np.int32] | None = None
    proof: IntArray | None = None
    is_clique: bool = False
    work: int = 0


def running(repeats: IntArray) -> IntArray:
    """0, 1, …, r - 1 for each r, one after the other."""
    ends = np.cumsum(repeats)
    return np.arange(int(repeats.sum())) - np.repeat(ends - repeats, repeats)


def compress(keys: IntArray, values: IntArray, n_keys: int) -> tuple[IntArray, IntArray]:
    """Values grouped by key, in their order, as (pointers, values)."""
    pointers = np.zeros(n_keys + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=n_keys), out=pointers[1:])
    return pointers, np.ascontiguousarray(values[np.argsort(keys, kind="stable")], dtype=np.int64)


def color(
    graph: CliqueGraph,
    n_colors: int,
    *,
    fixed: npt.NDArray[np.int32] | None = None,
    preference: npt.NDArray[np.int32] | None = None,
    work_limit: int = WORK_LIMIT,
) -> Coloring:
    """Colour a graph, or prove that it cannot be done.

    Parameters
    ----------
    graph : CliqueGraph
    n_colors : int
    fixed : array of shape (n_vertices,), optional
        The colour a vertex must have, -1 where it is open.
    preference : array of shape (n_vertices, n_colors), optional
        Colours in the order in which each vertex would like them. It guides, it does not bind.
    work_limit : int
        Neighbours told during the search before the answer is "unknown".
    """
    if fixed is None:
        fixed = np.full(graph.n_vertices, -1, dtype=np.int32)
    if preference is None:
        n_colors = min(n_colors, max(graph.n_vertices, int(fixed.max(initial=0)) + 1))  # more are never needed
        preference = np.arange(n_colors, dtype=np.int32)[None, :]
    clique_sizes = np.diff(graph.member_ptr)
    if clique_sizes.max(initial=0) > n_colors:
        start = graph.member_ptr[clique_sizes.argmax()]
        return Coloring("infeasible", proof=graph.members[start : start + n_colors + 1], is_clique=True)
    peeled, order = _peel(graph, n_colors, fixed)
    core = np.flatnonzero(~peeled)
    colors = np.full(graph.n_vertices, -1, dtype=np.int32)
    work = 0
    if len(core):
        wishes = preference if len(preference) == 1 else np.ascontiguousarray(preference[core])
        found = _color_core(graph.part(core), n_colors, fixed[core], wishes, work_limit)
        work = found.work
        if found.colors is None:
            proof = None if found.proof is None else core[found.proof]
            return found._replace(proof=proof)
        colors[core] = found.colors
    kernels.color_greedily(*graph, order[::-1].copy(), preference, np.zeros(n_colors, np.int8), colors)
    return Coloring("feasible", colors=colors, work=work)


def _peel(graph: CliqueGraph, n_colors: int, fixed: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.bool_], IntArray]:
    peeled = np.zeros(graph.n_vertices, dtype=np.int8)
    order = np.empty(graph.n_vertices, dtype=np.int64)
    degree = np.empty(graph.n_vertices, dtype=np.int64)
    n_peeled = kernels.peel(*graph, fixed, n_colors, degree, peeled, order)
    return peeled.astype(bool), order[:n_peeled]


def _color_core(
    graph: CliqueGraph,
    n_colors: int,
    fixed: npt.NDArray[np.int32],
    preference: npt.NDArray[np.int32],
    work_limit: int,
) -> Coloring:
    if (clique := _find_clique(graph, n_colors + 1)) is not None:
        return Coloring("infeasible", proof=clique, is_clique=True)
    easy = min(work_limit, _EASY_WORK * (len(graph.edges) + len(graph.members) * n_colors + graph.n_vertices))
    whole = _search(graph, n_colors, fixed, preference, easy)
    if whole.status == "feasible":
        return whole
    work = whole.work
    if whole.status == "unknown":
        size = graph.n_vertices + len(graph.edges) + len(graph.members)
        mended = _mend(graph, n_colors, fixed, preference, min(work_limit // 2, _MEND_WORK * size))
        work += mended.work
        if mended.status == "feasible":
            return mended._replace(work=work)
    colors = np.empty(graph.n_vertices, dtype=np.int32)
    for vertices in _connected_parts(graph):
        part, part_fixed = graph.part(vertices), fixed[vertices]
        wishes = preference if len(preference) == 1 else np.ascontiguousarray(preference[vertices])
        found = _search(part, n_colors, part_fixed, wishes, work_limit - work)
        work += found.work
        if found.status == "unknown":
            return Coloring("unknown", work=work)
        if found.colors is None:
            proof = _shrink(part, n_colors, part_fixed)
            return Coloring("infeasible", proof=vertices[proof], work=work)
        colors[vertices] = found.colors
    return Coloring("feasible", colors=colors, work=work)


def _search(
    graph: CliqueGraph,
    n_colors: int,
    fixed: npt.NDArray[np.int32],
    preference: npt.NDArray[np.int32],
    work_limit: int,
) -> Coloring:
    n = graph.n_vertices
    colors = np.empty(n, dtype=np.int32)
    work = np.zeros(1, dtype=np.int64)
    by_degree = np.argsort(np.diff(graph.edge_ptr) + np.diff(graph.clique_ptr), kind="stable")
    status = kernels.search_coloring(
        *graph,
        fixed,
        by_degree,
        preference,
        work_limit,
        colors,
        np.zeros((n, n_colors), dtype=np.int32),
        np.zeros(n, dtype=np.int64),
        np.full(n_colors + 1, -1, dtype=np.int64),
        np.full(n, -1, dtype=np.int64),
        np.full(n, -1, dtype=np.int64),
        np.zeros(n_colors, dtype=np.int64),
        np.zeros((n, 3), dtype=np.int64),
        work,
    )
    if status == 1:
        return Coloring("feasible", colors=colors, work=int(work[0]))
    return Coloring("infeasible" if status == 0 else "unknown", work=int(work[0]))


def _mend(
    graph: CliqueGraph,
    n_colors: int,
    fixed: npt.NDArray[np.int32],
    preference: npt.NDArray[np.int32],
    work_limit: int,
) -> Coloring:
    n = graph.n_vertices
    colors = np.where(fixed >= 0, fixed, np.broadcast_to(preference[:, 0], n)).astype(np.int32)
    work = np.zeros(1, dtype=np.int64)
    n_hot = kernels.mend_coloring(
        *graph,
        fixed,
        np.random.default_rng(0).integers(0, 10, 1009),
        work_limit,
        colors,
        np.zeros((n, n_colors), dtype=np.int32),
        np.empty(n, dtype=np.int64),
        np.full(n, -1, dtype=np.int64),
        np.zeros((n, n_colors), dtype=np.int64),
        work,
    )
    return Coloring("unknown" if n_hot else "feasible", colors=None if n_hot else colors, work=int(work[0]))


def _connected_parts(graph: CliqueGraph) -> list[IntArray]:
    source = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
    in_clique = np.repeat(graph.member_ptr[:-1], np.diff(graph.member_ptr))
    pairs = np.concatenate(
        [np.column_stack([source, graph.edges]), np.column_stack([graph.members, graph.members[in_clique]])]
    )
    parent = np.arange(graph.n_vertices)
    merge_pairs(parent, pairs)
    part_of = np.empty(graph.n_vertices, dtype=np.int64)
    n_parts = number_components(parent, part_of)
    pointers, vertices = compress(part_of, np.arange(graph.n_vertices), n_parts)
    return np.split(vertices, pointers[1:-1])


def _find_clique(graph: CliqueGraph, size: int) -> IntArray | None:
    """A clique of the given size by greedy growth from the vertices of highest degree, if one turns up."""
    clique_entries = np.diff(graph.member_ptr)
    if len(graph.edges) + int((clique_entries**2).sum()) > _CLIQUE_ENTRIES:
        return None
    neighbours = [frozenset(graph.neighbours(vertex).tolist()) for vertex in range(graph.n_vertices)]
    for start in sorted(range(graph.n_vertices), key=lambda v: -len(neighbours[v]))[:_CLIQUE_STARTS]:
        clique, open_vertices = [start], neighbours[start]
        while open_vertices and len(clique) < size:
            best = max(sorted(open_vertices), key=lambda v: len(neighbours[v] & open_vertices))
            clique.append(best)
            open_vertices = open_vertices & neighbours[best]
        if len(clique) == size:
            return np.sort(np.array(clique, dtype=np.int64))
    return None


def _shrink(graph: CliqueGraph, n_colors: int, fixed: npt.NDArray[np.int32]) -> IntArray:
    """Leave out vertices one by one while the rest stays impossible to colour."""
    kept = np.arange(graph.n_vertices)
    if graph.n_vertices > _SHRINK_VERTICES:
        return kept
    for vertex in range(graph.n_vertices):
        fewer = kept[kept != vertex]
        wishes = np.arange(n_colors, dtype=np.int32)[None, :]
        if _search(graph.part(fewer), n_colors, fixed[fewer], wishes, _SHRINK_WORK).status == "infeasible":
            kept = fewer
    return kept
