"""Constraint selection by committee (survey Algorithms 20 to 22, Eq. 88 to 93) over a full association matrix."""

from __future__ import annotations

from itertools import combinations


def association_matrix(votes):
    n_members = len(votes[0])
    return [[sum(x == y for x, y in zip(a, b, strict=True)) / n_members for b in votes] for a in votes]


def imputed(matrix, kappa_must, kappa_cannot):
    """Eq. 88 and 89."""
    pairs = list(combinations(range(len(matrix)), 2))
    return [p for p in pairs if matrix[p[0]][p[1]] >= kappa_must], [
        p for p in pairs if matrix[p[0]][p[1]] <= kappa_cannot
    ]


def neighbourhoods(n, must):
    """Transitive closure of must-links: sets of rows."""
    sets = [{row} for row in range(n)]
    for i, j in must:
        first, second = (next(one for one in sets if row in one) for row in (i, j))
        if first is not second:
            sets.remove(second)
            first |= second
    return sets


def mean_association(matrix, row, rows):
    """Eq. 90."""
    return sum(matrix[row][other] for other in rows) / len(rows)


def margin(matrix, row, clusters):
    """Eq. 92 and 93."""
    total = sum(map(len, clusters))
    weighted = sorted((len(one) / total * mean_association(matrix, row, one) for one in clusters), reverse=True)
    if len(weighted) < 2:
        return 1.0
    first, second = weighted[:2]
    return 2 * first / (first + second) - 1 if first + second > 0 else 0.0
