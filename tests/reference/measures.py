"""Coherence and the fractional chromatic number by their definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linprog


def overlap(a, b):
    """Survey Eq. 95 and 96 as intervals: how much of b the projection of a on b's line covers."""
    length = np.linalg.norm(b[1] - b[0])
    if length == 0:
        return 0.0
    direction = (b[1] - b[0]) / length
    ends = sorted(float((point - b[0]) @ direction) for point in a)
    return max(0.0, min(ends[1], length) - max(ends[0], 0.0))


def coherence(X, must, cannot):
    fits = [
        overlap((X[i], X[j]), (X[p], X[q])) == 0 and overlap((X[p], X[q]), (X[i], X[j])) == 0
        for i, j in must
        for p, q in cannot
    ]
    return sum(fits) / len(fits)


def fractional_chromatic_number(n, edges):
    """The linear program over every independent set."""
    taken = {frozenset(edge) for edge in edges}
    sets = [
        chosen
        for size in range(1, n + 1)
        for chosen in combinations(range(n), size)
        if not any(frozenset(pair) in taken for pair in combinations(chosen, 2))
    ]
    cover = np.array([[vertex in chosen for chosen in sets] for vertex in range(n)], dtype=float)
    return linprog(np.ones(len(sets)), A_ub=-cover, b_ub=-np.ones(n)).fun
