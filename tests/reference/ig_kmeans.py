"""IG-KMEANS (survey Eq. 72 and 73) in plain loops over written-out pairs."""

from __future__ import annotations

import math

from tests.reference.assign import given_pairs


def cosine(a, b):
    inner = sum(x * y for x, y in zip(a, b, strict=True))
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return inner / lengths if lengths > 0 else 0.0


def psi(a, b):
    """Eq. 73."""
    return 1 - cosine(a, b)


def prices(X, constraints):
    """{pair: price} for must-links and for cannot-links; a reward for breaking a cannot-link becomes 0."""
    must, cannot = given_pairs(constraints)
    return (
        {(i, j): float(sure) * psi(X[i], X[j]) for (i, j), sure in must.items()},
        {(i, j): float(sure) * max(1 - psi(X[i], X[j]), 0.0) for (i, j), sure in cannot.items()},
    )


def price(must, cannot, labels):
    """What the broken pairs cost; rows without a cluster (-1) break nothing."""
    total = 0.0
    for (i, j), cost in must.items():
        if -1 not in (labels[i], labels[j]) and labels[i] != labels[j]:
            total += cost
    for (i, j), cost in cannot.items():
        if labels[i] == labels[j] != -1:
            total += cost
    return total


def objective(X, constraints, labels, centers, rho):
    """Eq. 72."""
    within = sum(psi(row, centers[label]) for row, label in zip(X, labels, strict=True))
    return rho * within + (1 - rho) * price(*prices(X, constraints), labels)


def ig_kmeans(X, constraints, centers, rho, permutation):
    """Labels, centres and the objective after each assignment; `permutation(n)` orders the rows that pairs name.

    Returns None where a cluster runs empty: restarts are tested on their own.
    """
    must, cannot = prices(X, constraints)
    named = sorted({row for pair in (*must, *cannot) for row in pair})
    free = [row for row in range(len(X)) if row not in named]
    labels, history = [-1] * len(X), []
    while True:
        before = list(labels)
        for row in free:
            labels[row] = min(range(len(centers)), key=lambda cluster: psi(X[row], centers[cluster]))
        for row in (named[place] for place in permutation(len(named))):
            labels[row] = cheapest(X, row, centers, must, cannot, labels, rho)
        history.append(objective(X, constraints, labels, centers, rho))
        if labels == before:
            return labels, centers, history
        if len(set(labels)) < len(centers):
            return None
        centers = [direction([X[row] for row in range(len(X)) if labels[row] == c]) for c in range(len(centers))]


def cheapest(X, row, centers, must, cannot, labels, rho):
    mine = [{pair: cost for pair, cost in kind.items() if row in pair} for kind in (must, cannot)]
    totals = []
    for cluster, center in enumerate(centers):
        moved = [*labels[:row], cluster, *labels[row + 1 :]]
        totals.append(rho * psi(X[row], center) + (1 - rho) * price(*mine, moved))
    return min(range(len(centers)), key=totals.__getitem__)


def direction(rows):
    """The mean of rows of length one, scaled to length one."""
    units = [[x / (math.sqrt(sum(y * y for y in row)) or 1.0) for x in row] for row in rows]
    total = [sum(column) for column in zip(*units, strict=True)]
    length = math.sqrt(sum(x * x for x in total)) or 1.0
    return [x / length for x in total]
