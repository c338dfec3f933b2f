"""Multipliers of constrained clustering in plain loops, and the exact dual by enumeration and a linear program."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
from scipy.optimize import linprog


def charge_rows(n_rows, n_clusters, pairs, pulls, sets, prices):
    charges = [[0.0] * n_clusters for _ in range(n_rows)]
    for c in range(n_clusters):
        for (i, j), pull in zip(pairs, pulls, strict=True):
            charges[i][c] += pull[c]
            charges[j][c] -= pull[c]
        for members, price in zip(sets, prices, strict=True):
            for i in members:
                charges[i][c] += price[c]
    return charges


def assign_charged(costs, charges):
    labels, total = [], 0.0
    for cost, charge in zip(costs, charges, strict=True):
        sums = [a + b for a, b in zip(cost, charge, strict=True)]
        labels.append(sums.index(min(sums)))
        total += min(sums)
    return labels, total


def step_multipliers(pairs, pulls, pull_steps, most_pull, sets, prices, price_steps, most_price, labels, factor, slack):
    """Thesis Algorithm 5, updating step; λ and γ of a pair are one signed number, which shrinks by slack."""
    n_clusters = len(pulls[0]) if len(pulls) else len(prices[0])
    new_pulls, new_prices = [], []
    for (i, j), pull, step, most in zip(pairs, pulls, pull_steps, most_pull, strict=True):
        row = []
        for c in range(n_clusters):
            in_first, in_second = labels[i] == c, labels[j] == c
            value = pull[c] + factor * step * (int(in_first) - int(in_second))
            size = min(max(abs(value) - factor * step * slack, 0.0), most)
            row.append(size if value > 0 else -size)
        new_pulls.append(row)
    for members, price, step, most in zip(sets, prices, price_steps, most_price, strict=True):
        row = []
        for c in range(n_clusters):
            count = sum(labels[i] == c for i in members)
            row.append(min(max(price[c] + factor * step * (count - 1 - slack), 0.0), most))
        new_prices.append(row)
    return new_pulls, new_prices


def kmeans_cost(X, labels):
    return sum(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum() for c in np.unique(labels))


def kmedoids_cost(distances, labels):
    return sum(distances[labels == c].sum(axis=0).min() for c in np.unique(labels))


def every_labelling(n_rows, n_clusters):
    return [np.array(labels) for labels in product(range(n_clusters), repeat=n_rows)]


def keeps_identity(labels, base, n_clusters):
    """Whether no renumbering of the clusters agrees with `base` on more rows than the numbers as they are."""
    return all(
        sum(order[a] == b for a, b in zip(labels, base, strict=True)) <= sum(labels == base)
        for order in permutations(range(n_clusters))
    )


def exact_dual(cost, base, n_clusters, must, cannot, slack):
    """Eq. 5.11 with the inner minimum over every labelling: the highest point under finitely many planes.

    Renumbered clusters would turn every multiplier round and leave nothing of the dual; so clusters keep the numbers of
    the unconstrained solution `base`.
    """
    n_must, n_cannot = len(must) * n_clusters, len(cannot) * n_clusters
    planes, heights = [], []
    for labels in every_labelling(len(base), n_clusters):
        if not keeps_identity(labels, base, n_clusters):
            continue
        # Sizes of the multipliers: λ and γ of each must-link, then η of each cannot-link.
        slope = []
        for sign in (1, -1):
            for i, j in must:
                for c in range(n_clusters):
                    slope.append(sign * (int(labels[i] == c) - int(labels[j] == c)) - slack)
        for i, j in cannot:
            for c in range(n_clusters):
                slope.append(int(labels[i] == c) + int(labels[j] == c) - 1 - slack)
        planes.append([1.0, *(-s for s in slope)])
        heights.append(cost(labels))
    aim = [-1.0, *[0.0] * (2 * n_must + n_cannot)]
    bounds = [(None, None), *[(0, None)] * (2 * n_must + n_cannot)]
    found = linprog(aim, A_ub=np.array(planes), b_ub=heights, bounds=bounds)
    assert found.status == 0
    return -found.fun


def best_cost(cost, n_rows, n_clusters, must, cannot):
    """The cheapest labelling that keeps every pair; infinite where there is none."""
    kept = [
        cost(labels)
        for labels in every_labelling(n_rows, n_clusters)
        if all(labels[i] == labels[j] for i, j in must) and all(labels[i] != labels[j] for i, j in cannot)
    ]
    return min(kept, default=np.inf)


def edit_distance(first, second):
    """Damerau-Levenshtein by its recursive definition: a swap may have insertions and deletions in between."""
    table = {}
    for i in range(len(first) + 1):
        for j in range(len(second) + 1):
            if i == 0 or j == 0:
                table[i, j] = i + j
                continue
            options = [
                table[i - 1, j] + 1,
                table[i, j - 1] + 1,
                table[i - 1, j - 1] + (first[i - 1] != second[j - 1]),
            ]
            for p in range(1, i):
                for q in range(1, j):
                    if first[p - 1] == second[j - 1] and first[i - 1] == second[q - 1]:
                        options.append(table[p - 1, q - 1] + (i - p - 1) + 1 + (j - q - 1))
            table[i, j] = min(options)
    return table[len(first), len(second)]
