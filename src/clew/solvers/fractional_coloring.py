"""The fractional chromatic number of a graph, by column generation.

This number is the value of a linear program over independent sets. Sets are generated one by one: an exact search finds
the set with the highest total price, within a work limit. If the limit is reached, the result is a lower and an upper
bound.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from clew.solvers.coloring import CliqueGraph
from clew.solvers.mycielskian import greedy_clique

# Largest number of expanded edges. Beyond it, the bounds come from cliques and greedy colouring only.
_MOST_ENTRIES = 4_000_000
_CLOSE = 1e-9
_MOST_COLUMNS = 2000


def fractional_chromatic_number(graph: CliqueGraph, work_limit: int) -> tuple[float, float, int]:
    """Lower bound, upper bound, and the number of vertices that remain after peeling."""
    sizes = np.diff(graph.member_ptr)
    largest = float(sizes.max(initial=0))
    if not graph.n_vertices:
        return 0.0, 0.0, 0
    if len(graph.edges) + int((sizes.astype(np.int64) ** 2).sum()) > _MOST_ENTRIES:
        degrees = np.diff(graph.edge_ptr) + np.array([0])
        return (
            max(largest, 1.0),
            float(min(graph.n_vertices, degrees.max(initial=0) + sizes.sum() + 1)),
            graph.n_vertices,
        )
    neighbours = [frozenset(graph.neighbours(vertex).tolist()) for vertex in range(graph.n_vertices)]
    clique = max(largest, float(_clique_size(neighbours)))
    core = _peeled(neighbours, int(clique))
    lower = upper = max(clique, 1.0)
    work = [work_limit]
    for part in _parts(neighbours, core):
        low, high = _solve_part([neighbours[v] for v in part], part, lower, work)
        lower, upper = max(lower, low), max(upper, high)
    return lower, upper, len(core)


def _clique_size(neighbours: list[frozenset[int]]) -> int:
    starts = sorted(range(len(neighbours)), key=lambda v: -len(neighbours[v]))[:50]
    return max((len(greedy_clique(start, neighbours)) for start in starts), default=1)


def _peeled(neighbours: list[frozenset[int]], least: int) -> list[int]:
    """Vertices that remain after repeatedly removing vertices with fewer than `least` neighbours."""
    degree = [len(partners) for partners in neighbours]
    queue = [vertex for vertex, d in enumerate(degree) if d < least]
    gone = set(queue)
    while queue:
        for other in neighbours[queue.pop()]:
            degree[other] -= 1
            if degree[other] < least and other not in gone:
                gone.add(other)
                queue.append(other)
    return [vertex for vertex in range(len(neighbours)) if vertex not in gone]


def _parts(neighbours: list[frozenset[int]], core: list[int]) -> list[list[int]]:
    left, parts = set(core), []
    while left:
        part, queue = set(), [min(left)]
        while queue:
            vertex = queue.pop()
            if vertex in left:
                left.discard(vertex)
                part.add(vertex)
                queue.extend(neighbours[vertex] & left)
        parts.append(sorted(part))
    return parts


def _solve_part(partners: list[frozenset[int]], names: list[int], least: float, work: list[int]) -> tuple[float, float]:
    place = {name: number for number, name in enumerate(names)}
    masks = [sum(1 << place[other] for other in row if other in place) for row in partners]
    columns = _greedy_cover(masks)
    lower, upper = least, float(len(columns))
    while len(columns) < _MOST_COLUMNS:
        cover = np.array([[column >> vertex & 1 for column in columns] for vertex in range(len(masks))], dtype=float)
        found = linprog(np.ones(len(columns)), A_ub=-cover, b_ub=-np.ones(len(masks)))
        prices: npt.NDArray[np.float64] = -found.ineqlin.marginals
        upper = min(upper, float(found.fun))
        best, weight, bound = _heaviest_independent_set(masks, prices, work)
        # Prices divided by the weight of the heaviest set are a fractional clique (weak duality).
        lower = max(lower, float(prices.sum()) / max(bound, 1.0))
        if weight <= 1 + _CLOSE or upper - lower <= _CLOSE or work[0] <= 0:
            break
        columns.append(best)
    return min(lower, upper), upper


def _greedy_cover(masks: list[int]) -> list[int]:
    """Colour classes of a greedy colouring, as bit sets."""
    columns: list[int] = []
    for vertex in sorted(range(len(masks)), key=lambda v: -masks[v].bit_count()):
        for number, column in enumerate(columns):
            if not column & masks[vertex]:
                columns[number] = column | 1 << vertex
                break
        else:
            columns.append(1 << vertex)
    return columns


def _heaviest_independent_set(
    masks: list[int], weights: npt.NDArray[np.float64], work: list[int]
) -> tuple[int, float, float]:
    """The heaviest independent set found, its weight, and an upper bound on the weight of every independent set."""
    order = sorted((v for v in range(len(masks)) if weights[v] > _CLOSE), key=lambda v: (-weights[v], v))
    rest = np.concatenate([np.cumsum(weights[order][::-1])[::-1], [0.0]])
    best, best_weight, bound = 0, 0.0, 0.0
    stack = [(0, 0, 0, 0.0)]  # next vertex, chosen, forbidden, weight
    while stack:
        start, chosen, forbidden, weight = stack.pop()
        if weight > best_weight:
            best, best_weight = chosen, weight
        possible = weight + _still_possible(order, start, forbidden, weights, rest)
        if possible <= best_weight + _CLOSE:
            continue
        if work[0] <= 0:
            bound = max(bound, possible)
            continue
        work[0] -= 1
        while start < len(order) and forbidden >> order[start] & 1:
            start += 1
        if start < len(order):
            vertex = order[start]
            stack.append((start + 1, chosen, forbidden, weight))
            taken = forbidden | masks[vertex]
            stack.append((start + 1, chosen | 1 << vertex, taken, weight + float(weights[vertex])))
    return best, best_weight, max(bound, best_weight)


def _still_possible(
    order: list[int], start: int, forbidden: int, weights: npt.NDArray[np.float64], rest: npt.NDArray[np.float64]
) -> float:
    """Total weight of the open vertices, an upper bound on the weight that the set can still gain."""
    if not forbidden:
        return float(rest[start])
    return float(sum(weights[vertex] for vertex in order[start:] if not forbidden >> vertex & 1))
