"""Min-max selection and local density in plain loops: survey Eq. 69 and 70, Vu 2012 Eq. 2."""

from __future__ import annotations


def distance(X, i, j):
    return sum((a - b) ** 2 for a, b in zip(X[i], X[j], strict=True))


def least_certain(X, skeleton):
    """The row whose largest similarity, minus the squared distance, to the skeleton is smallest."""
    certainty = {i: max(-distance(X, i, j) for j in skeleton) for i in range(len(X)) if i not in skeleton}
    return min(certainty, key=lambda i: (certainty[i], i))


def nearest(X, row, rows):
    return min(rows, key=lambda one: (distance(X, row, one), one))


def local_density(X, k):
    neighbours = [
        set(sorted((j for j in range(len(X)) if j != i), key=lambda j: distance(X, i, j))[:k]) for i in range(len(X))
    ]
    return [sum(len(neighbours[u] & neighbours[v]) for v in neighbours[u]) / k for u in range(len(X))]
