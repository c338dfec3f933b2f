"""The merge phase of COBRAS in plain loops: ask about the nearest open pair of clusters until none is."""

from __future__ import annotations

from itertools import combinations


def merge(points, same):
    """Clusters of the points and the pairs asked; `same(i, j)` answers."""
    clusters = [{place} for place in range(len(points))]
    apart, asked = set(), []

    def distance(i, j):
        return sum((a - b) ** 2 for a, b in zip(points[i], points[j], strict=True))

    def are_apart(one, two):
        return any((i, j) in apart or (j, i) in apart for i in one for j in two)

    while True:
        open_pairs = [
            (distance(i, j), i, j)
            for one, two in combinations(clusters, 2)
            if not are_apart(one, two)
            for i in one
            for j in two
        ]
        if not open_pairs:
            return {frozenset(cluster) for cluster in clusters}, asked
        _, i, j = min(open_pairs)
        asked.append(frozenset((i, j)))
        if same(i, j):
            joined = [cluster for cluster in clusters if i in cluster or j in cluster]
            clusters = [cluster for cluster in clusters if cluster not in joined] + [set.union(*joined)]
        else:
            apart.add((i, j))
