"""Correlation clustering by trying every set of rows as the cluster of the first row that is left."""

from __future__ import annotations

from itertools import combinations


def cost(labels, weights, missing_weight=0.0):
    """The weights of positive pairs that are cut and of negative pairs that are not."""
    total = 0.0
    for i, j in combinations(range(len(labels)), 2):
        weight = weights[i][j] or missing_weight
        together = labels[i] == labels[j]
        if together and weight < 0:
            total -= weight
        if not together and weight > 0:
            total += weight
    return total


def best_cost(weights, missing_weight=0.0, must=(), cannot=()):
    """The lowest cost of a clustering in which no pair of `must` is cut and every pair of `cannot` is."""
    n_rows = len(weights)
    must, cannot = {tuple(sorted(pair)) for pair in must}, {tuple(sorted(pair)) for pair in cannot}
    # What a cluster costs: its negative pairs, and half of the positive pairs that leave it (each leaves two clusters).
    price = [0.0] * (1 << n_rows)
    for rows in range(1 << n_rows):
        for i, j in combinations(range(n_rows), 2):
            inside = bool(rows >> i & 1) + bool(rows >> j & 1)
            weight = weights[i][j] or missing_weight
            if (inside == 2 and (i, j) in cannot) or (inside == 1 and (i, j) in must):
                price[rows] = float("inf")
            elif inside == 2 and weight < 0:
                price[rows] -= weight
            elif inside == 1 and weight > 0:
                price[rows] += weight / 2
    best = [0.0] + [float("inf")] * ((1 << n_rows) - 1)
    for rows in range(1, 1 << n_rows):
        first = rows & -rows
        others = rows ^ first
        some = others
        while True:
            cluster = first | some
            best[rows] = min(best[rows], price[cluster] + best[rows ^ cluster])
            if not some:
                break
            some = (some - 1) & others
    return best[-1]
