"""Colour a graph with k colours. The result is a colouring, a small proof that there is none, or "unknown".

Vertices with fewer than k neighbours can always be coloured last, so they are removed first. An exact search colours
the remaining core, most saturated vertex first (`brelaz1979`). If it takes long, Mycielski's construction may prove
that a subgraph needs more colours. After that a tabu search (`hertz1987`) and the exact search take turns in each
connected part. A limit counts the steps of all searches, so results do not depend on the speed of the machine.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from clew.kernels import coloring as kernels
from clew.kernels.disjoint_set import merge_pairs, number_components
from clew.solvers.mycielskian import find_mycielskian

IntArray = npt.NDArray[np.int64]

# Largest number of neighbours visited during a search: a few seconds of work.
WORK_LIMIT = 400_000_000
# Work of the first search over the whole core, per entry of the graph. If it fails, parts are searched one by one.
_EASY_WORK = 20
# The tabu search and the exact search take turns. Each turn has this many times the work of the previous turn.
_TURN_FACTOR = 4
# After this much work, a proof by Mycielski's construction is tried, which takes about as much work.
_MYCIELSKIAN_WORK = 20_000_000
# Shrinking a proof takes at most the work limit divided by the first number, and the test of one vertex by the second.
_SHRINK_SHARE, _VERTEX_SHARE = 4, 40
# Number of colour exchanges per vertex that are tried to find further needed vertices.
_EXCHANGES = 20
# Work of building an induced subgraph, per entry of the whole graph, in neighbours visited.
_PART_WORK = 10
# Largest numbers of starting points and of adjacency entries of the greedy search for a clique.
_CLIQUE_STARTS, _CLIQUE_ENTRIES = 50, 5_000_000


class CliqueGraph(NamedTuple):
    """A graph of edges and cliques, where cliques are never expanded to edges.

    `edges[edge_ptr[v]:edge_ptr[v + 1]]` are the neighbours of vertex v by edges. Clique q has the vertices
    `members[member_ptr[q]:member_ptr[q + 1]]`. Vertex v is in the cliques `cliques[clique_ptr[v]:clique_ptr[v + 1]]`.
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
        """Build a graph from `pairs` of different vertices, which may be repeated, and memberships (clique, vertex)."""
        low, high = pairs.min(axis=1, initial=n_vertices), pairs.max(axis=1, initial=-1)
        keys = np.sort(low * n_vertices + high)
        keys = keys[
            np.diff(keys, prepend=-1) > 0
        ]  # np.unique uses hashing, which takes twenty times as long for a million pairs
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

    def pairs(self) -> IntArray:
        """All edges as pairs, cliques expanded. Only for graphs that need few colours: their cliques are small."""
        source = np.repeat(np.arange(self.n_vertices), np.diff(self.edge_ptr))
        found = [np.column_stack([source, self.edges])[source < self.edges]]
        sizes = np.diff(self.member_ptr)
        for size in np.unique(sizes):
            members = self.members[self.member_ptr[:-1][sizes == size][:, None] + np.arange(size)]
            found += [members[:, pair] for pair in combinations(range(int(size)), 2)]
        return np.sort(np.concatenate(found), axis=1).reshape(-1, 2)

    def part(self, vertices: IntArray) -> CliqueGraph:
        """The induced subgraph of some vertices, renumbered in their order."""
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
    """The result of `color`: the colour of each vertex, or vertices that prove that there is no colouring, or neither.

    A proof is irreducible if its vertices can be coloured after any one of them is removed.
    """

    status: Literal["feasible", "infeasible", "unknown"]
    colors: npt.NDArray[np.int32] | None = None
    proof: IntArray | None = None
    is_clique: bool = False
    is_irreducible: bool = True
    work: int = 0


def running(repeats: IntArray) -> IntArray:
    """Concatenate the ranges 0, 1, …, r - 1 for each r."""
    ends = np.cumsum(repeats)
    return np.arange(int(repeats.sum())) - np.repeat(ends - repeats, repeats)


def compress(keys: IntArray, values: IntArray, n_keys: int) -> tuple[IntArray, IntArray]:
    """Group values by key in CSR form: pointers and values. Values of one key keep their order."""
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
        The colour that a vertex must have, -1 if any colour is allowed.
    preference : array of shape (n_vertices, n_colors), optional
        Colours in the order in which each vertex tries them. The order only guides the search.
    work_limit : int
        Number of neighbours visited by the search before the answer is "unknown".
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


def cores(graph: CliqueGraph, n_colors: int) -> list[IntArray]:
    """The connected parts that remain after peeling. Only these may be impossible to colour."""
    peeled, _ = _peel(graph, n_colors, np.full(graph.n_vertices, -1, dtype=np.int32))
    core = np.flatnonzero(~peeled)
    return [core[vertices] for vertices in _connected_parts(graph.part(core))] if len(core) else []


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
    found = _decide(graph, n_colors, fixed, preference, work_limit)
    if found.proof is None or found.is_clique:
        return found
    return _shrink(graph, n_colors, fixed, found, work_limit)


def _decide(
    graph: CliqueGraph,
    n_colors: int,
    fixed: npt.NDArray[np.int32],
    preference: npt.NDArray[np.int32],
    work_limit: int,
) -> Coloring:
    """Colour a graph, or find a proof that there is no colouring. The proof need not be irreducible."""
    if (clique := _find_clique(graph, n_colors + 1)) is not None:
        return Coloring("infeasible", proof=clique, is_clique=True)
    easy = min(work_limit, _EASY_WORK * (len(graph.edges) + len(graph.members) * n_colors + graph.n_vertices))
    whole = _search(graph, n_colors, fixed, preference, easy)
    if whole.status == "feasible":
        return whole
    work = whole.work
    colors = np.empty(graph.n_vertices, dtype=np.int32)
    for vertices in _connected_parts(graph):
        part, part_fixed = graph.part(vertices), fixed[vertices]
        wishes = preference if len(preference) == 1 else np.ascontiguousarray(preference[vertices])
        found = _in_turns(part, n_colors, part_fixed, wishes, easy, work_limit - work)
        work += found.work
        if found.colors is None:
            return found._replace(proof=None if found.proof is None else vertices[found.proof], work=work)
        colors[vertices] = found.colors
    return Coloring("feasible", colors=colors, work=work)


def _in_turns(
    graph: CliqueGraph,
    n_colors: int,
    fixed: npt.NDArray[np.int32],
    preference: npt.NDArray[np.int32],
    first_turn: int,
    work_limit: int,
) -> Coloring:
    """Colour a connected graph by tabu search and exact search in turns, each turn longer than the previous one.

    The tabu search often finds colourings earlier, but only the exact search can prove that there is none. It is not
    known beforehand which one is faster, and taking turns costs little more than the faster one alone.
    """
    work, turn = 0, max(first_turn, 1)
    tried_mycielskian = False
    while work < work_limit:
        for solve in (_mend, _search):
            found = solve(graph, n_colors, fixed, preference, min(turn, work_limit - work))
            work += found.work
            if found.status != "unknown":
                return found._replace(work=work)
        if work > _MYCIELSKIAN_WORK and not tried_mycielskian:
            tried_mycielskian = True
            neighbours = _neighbour_sets(graph)
            if neighbours is not None and (proof := find_mycielskian(neighbours, n_colors + 1)) is not None:
                return Coloring("infeasible", proof=proof, work=work)
        turn *= _TURN_FACTOR
    return Coloring("unknown", work=work)


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
    needed = np.zeros(n, dtype=np.int8)
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
        needed,
        work,
    )
    if status == 1:
        return Coloring("feasible", colors=colors, work=int(work[0]))
    if status == 0:
        return Coloring("infeasible", proof=np.flatnonzero(needed), work=int(work[0]))
    return Coloring("unknown", work=int(work[0]))


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


def _is_written_out(graph: CliqueGraph) -> bool:
    """Whether the neighbours of all vertices are few enough to be listed."""
    return len(graph.edges) + int((np.diff(graph.member_ptr) ** 2).sum()) <= _CLIQUE_ENTRIES


def _neighbour_sets(graph: CliqueGraph) -> list[frozenset[int]] | None:
    """The neighbours of each vertex; None if there are too many to list."""
    if not _is_written_out(graph):
        return None
    return [frozenset(graph.neighbours(vertex).tolist()) for vertex in range(graph.n_vertices)]


def _find_clique(graph: CliqueGraph, size: int) -> IntArray | None:
    """Look for a clique of the given size by greedy growth from the vertices of highest degree."""
    if not _is_written_out(graph):
        return None
    near = cache(lambda vertex: frozenset(graph.neighbours(vertex).tolist()))
    degrees = np.diff(graph.edge_ptr)
    if len(graph.members):  # edges and cliques overlap
        degrees = np.array([len(near(vertex)) for vertex in range(graph.n_vertices)])
    for start in np.argsort(-degrees, kind="stable")[:_CLIQUE_STARTS].tolist():
        clique, open_vertices = [start], near(start)
        while open_vertices and len(clique) < size:
            best = max(sorted(open_vertices), key=lambda v: len(near(v) & open_vertices))
            clique.append(best)
            open_vertices = open_vertices & near(best)
        if len(clique) == size:
            return np.sort(np.array(clique, dtype=np.int64))
    return None


def _shrink(
    graph: CliqueGraph, n_colors: int, fixed: npt.NDArray[np.int32], found: Coloring, work_limit: int
) -> Coloring:
    """Remove vertices while the others have no colouring, until no vertex can be removed.

    A vertex is needed if the others have a colouring. If it could then take a colour that only one of its neighbours
    has, the graph without that neighbour also has a colouring, so the neighbour is needed, too.
    """
    assert found.proof is not None
    kept, work = found.proof, found.work
    most_per_vertex = work_limit // _VERTEX_SHARE
    work_limit = min(work_limit, work + work_limit // _SHRINK_SHARE)
    size = graph.n_vertices + len(graph.edges) + len(graph.members)
    wishes = np.arange(n_colors, dtype=np.int32)[None, :]
    neighbours = {vertex: graph.neighbours(vertex).tolist() for vertex in kept.tolist()}
    needed: set[int] = set()
    undecided: set[int] = set()
    while open_vertices := [v for v in kept.tolist() if v not in needed and v not in undecided]:
        vertex = open_vertices[0]
        fewer = kept[kept != vertex]
        work += _PART_WORK * size
        if work >= work_limit:
            break
        part, part_fixed = graph.part(fewer), fixed[fewer]
        peeled, order = _peel(part, n_colors, part_fixed)
        core = np.flatnonzero(~peeled)
        colors = np.full(len(fewer), -1, dtype=np.int32)
        if len(core):
            less = _decide(part.part(core), n_colors, part_fixed[core], wishes, min(most_per_vertex, work_limit - work))
            work += less.work
            if less.proof is not None:
                kept = fewer[core[less.proof]]
                if less.is_clique:
                    return Coloring("infeasible", proof=kept, is_clique=True, work=work)
                continue
            if less.colors is None:
                undecided.add(vertex)
                continue
            colors[core] = less.colors
        kernels.color_greedily(*part, order[::-1].copy(), wishes, np.zeros(n_colors, np.int8), colors)
        colors_of = dict(zip(fewer.tolist(), colors.tolist(), strict=True))
        _mark_needed(neighbours, fixed, vertex, colors_of, needed)
    return found._replace(proof=kept, is_irreducible=needed.issuperset(kept.tolist()), work=work)


def _mark_needed(
    neighbours: dict[int, list[int]],
    fixed: npt.NDArray[np.int32],
    vertex: int,
    colors_of: dict[int, int],
    needed: set[int],
) -> None:
    """Mark needed vertices: `vertex`, without which `colors_of` is a colouring, and others found by exchanges.

    In each step of a random walk, the vertex without a colour takes a colour that only one of its neighbours has. That
    neighbour loses its colour and is needed, too. Vertices that are not marked yet are preferred.
    """
    needed.add(vertex)
    rng = random.Random(0)
    for _ in range(_EXCHANGES * len(colors_of)):
        with_color: dict[int, list[int]] = {}
        for other in neighbours[vertex]:
            if other in colors_of:
                with_color.setdefault(colors_of[other], []).append(other)
        single = [
            others[0] for shade, others in with_color.items() if len(others) == 1 and fixed[vertex] in (-1, shade)
        ]
        if not single:
            return
        other = rng.choice([one for one in single if one not in needed] or single)
        colors_of[vertex] = colors_of.pop(other)
        needed.add(other)
        vertex = other
