"""A lower bound on the number of colours by Mycielski's construction (`hebrard2019`).

Let a subgraph H need c colours. A copy of a vertex v of H is a vertex whose neighbours include the neighbours of v in
H; v is a copy of itself. If one vertex, the apex, is a neighbour of a copy of each v, then H, these copies and the apex
need c + 1 colours. Proof: suppose c colours were enough. Then the vertices of H with the apex's colour could take the
colours of their copies, and H would need only c - 1 colours.
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# Largest number of vertices of a graph that is searched, and largest number of subgraphs that are grown.
_MOST_VERTICES, _MOST_EDGES, _MOST_GROWN = 2000, 20_000, 1000


class _Subgraph(NamedTuple):
    """Vertices that need `n_colors` colours, the copies of each as a bit set, and every possible apex as a bit set."""

    vertices: list[int]
    n_colors: int
    copies: list[int]
    apexes: int


def find_mycielskian(neighbours: list[frozenset[int]], n_colors: int) -> npt.NDArray[np.int64] | None:
    """Find vertices that need `n_colors` colours, by a best-first search from edges and greedy cliques.

    Subgraphs that need the most colours are grown first, and of these the one whose vertices all have many copies.
    """
    n_edges = sum(map(len, neighbours)) // 2
    if len(neighbours) > _MOST_VERTICES or n_edges > _MOST_EDGES:
        return None
    masks = [sum(1 << other for other in near) for near in neighbours]
    order = count()
    waiting: list[tuple[int, int, int, _Subgraph]] = []

    def add(vertices: frozenset[int], colors: int) -> None:
        found = _subgraph(sorted(vertices), colors, masks)
        if found is not None:
            fewest = min(copies.bit_count() for copies in found.copies)
            heapq.heappush(waiting, (-colors, -fewest, next(order), found))

    seen = {frozenset((one, two)) for one, near in enumerate(neighbours) for two in near if one < two}
    seen |= {greedy_clique(one, neighbours) for one, near in enumerate(neighbours) if near}
    for seed in sorted(seen, key=sorted):
        if len(seed) >= n_colors:
            return np.array(sorted(seed), dtype=np.int64)
        add(seed, len(seed))
    for _ in range(_MOST_GROWN):
        if not waiting:
            break
        subgraph = heapq.heappop(waiting)[-1]
        for grown in _grown(subgraph, masks):
            if subgraph.n_colors + 1 == n_colors:
                return np.array(sorted(grown), dtype=np.int64)
            if grown not in seen:
                seen.add(grown)
                add(grown, subgraph.n_colors + 1)
    return None


def greedy_clique(vertex: int, neighbours: list[frozenset[int]]) -> frozenset[int]:
    """Grow a clique from a vertex: repeatedly add the open vertex with the most neighbours among the open vertices."""
    clique, near = {vertex}, neighbours[vertex]
    while near:
        best = max(sorted(near), key=lambda other: len(neighbours[other] & near))
        clique.add(best)
        near = near & neighbours[best]
    return frozenset(clique)


def _subgraph(vertices: list[int], n_colors: int, masks: list[int]) -> _Subgraph | None:
    """The copies and apexes of a subgraph; None if it cannot be grown."""
    everything = (1 << len(masks)) - 1
    inside = sum(1 << vertex for vertex in vertices)
    copies, apexes = [], everything
    for vertex in vertices:
        alike = everything
        for other in _members(masks[vertex] & inside):
            alike &= masks[other]
        copies.append(alike)
        near = 0
        for copy in _members(alike):
            near |= masks[copy]
        apexes &= near
        if not apexes:
            return None
    return _Subgraph(vertices, n_colors, copies, apexes)


def _grown(subgraph: _Subgraph, masks: list[int]) -> list[frozenset[int]]:
    """The subgraph extended by each apex and the copies that it needs, fewest vertices first."""
    found = set()
    for apex in _members(subgraph.apexes):
        chosen = {apex, *subgraph.vertices}
        for vertex, copies in zip(subgraph.vertices, subgraph.copies, strict=True):
            open_copies = copies & masks[apex]
            if not open_copies >> vertex & 1:
                chosen.add(max(_members(open_copies), key=lambda copy: (masks[copy].bit_count(), -copy)))
        found.add(frozenset(chosen))
    return sorted(found, key=lambda vertices: (len(vertices), sorted(vertices)))


def _members(bits: int) -> list[int]:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found
