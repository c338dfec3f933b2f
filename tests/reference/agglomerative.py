"""Constrained agglomerative clustering (survey Algorithm 4) in plain loops: every distance by its definition."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

from tests.reference.assign import components, given_pairs


class TieError(Exception):
    """Two pairs of clusters are the closest."""


def single(distances, one, other):
    return min(distances[i][j] for i in one for j in other)


def complete(distances, one, other):
    return max(distances[i][j] for i in one for j in other)


def average(distances, one, other):
    return Fraction(sum(distances[i][j] for i in one for j in other), len(one) * len(other))


def centroid(X, one, other):
    """The squared distance of the centroids."""
    return sum((mean(X, one, column) - mean(X, other, column)) ** 2 for column in range(len(X[0])))


def ward(X, one, other):
    """Twice the rise of the sum of squares: for two single rows, their squared distance."""
    return 2 * Fraction(len(one) * len(other), len(one) + len(other)) * centroid(X, one, other)


def mean(X, rows, column):
    return Fraction(sum(int(X[row][column]) for row in rows), len(rows))


def over_edges(edges, one, other, linkage):
    """The lowest, highest or mean distance of the edges between two clusters; None without edges."""
    found = [edges[min(i, j), max(i, j)] for i in one for j in other if (min(i, j), max(i, j)) in edges]
    if not found:
        return None
    return {"single": min, "complete": max, "average": lambda values: Fraction(sum(values), len(values))}[linkage](
        found
    )


def over_all(data, one, other, linkage):
    return LINKAGES[linkage](data, one, other)


LINKAGES = {"single": single, "complete": complete, "average": average, "ward": ward, "centroid": centroid}


def blocks_and_enemies(constraints, n):
    """Components of must-linked rows, and the pairs of rows that cannot be together."""
    must, cannot = given_pairs(constraints)
    component_of = components(n, must)
    return [frozenset(i for i in range(n) if component_of[i] == one) for one in sorted(set(component_of))], set(cannot)


def mergeable(one, other, cannot):
    return not any(tuple(sorted((i, j))) in cannot for i in one for j in other)


def agglomerate(data, constraints, linkage, n, allowed=lambda level: True, until=1, measure=over_all):
    """Levels of the tree, the components first, and the heights of the merges between them.

    `data` are the distances, or the rows for Ward and centroid linkage. `allowed` says whether a level may be entered,
    and `measure` gives the distance of two clusters, or None if they cannot be merged.
    """
    level, cannot = blocks_and_enemies(constraints, n)
    levels, heights = [level], []
    while len(level) > until:
        ways = []
        for one, other in combinations(level, 2):
            height = measure(data, one, other, linkage)
            if height is not None and mergeable(one, other, cannot):
                merged = [cluster for cluster in level if cluster not in (one, other)] + [one | other]
                if allowed(merged):
                    ways.append((height, merged))
        if not ways:
            break
        lowest = min(height for height, _ in ways)
        closest = [merged for height, merged in ways if height == lowest]
        if len(closest) > 1:
            raise TieError
        (level,) = closest
        levels.append(level)
        heights.append(lowest)
    return levels, heights


def can_be_colored(level, cannot, n_colors):
    """Whether the clusters of a level fit into so many larger ones; every way is tried."""
    return any(
        all(
            colors[a] != colors[b] or mergeable(level[a], level[b], cannot)
            for a, b in combinations(range(len(level)), 2)
        )
        for colors in product(range(n_colors), repeat=len(level))
    )


def space_level_distances(distances, constraints, n):
    """Survey Algorithm 6, steps 1 to 3: must-linked rows are 0 apart, then all shortest paths over all rows."""
    must, _ = given_pairs(constraints)
    found = [[0 if (min(i, j), max(i, j)) in must else distances[i][j] for j in range(n)] for i in range(n)]
    for middle in range(n):
        for i in range(n):
            for j in range(n):
                found[i][j] = min(found[i][j], found[i][middle] + found[middle][j])
    return found
