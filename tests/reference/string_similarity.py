"""Jaro-Winkler similarity and products of sparse rows in plain loops."""

from __future__ import annotations


def jaro_winkler(one, two):
    if not one or not two:
        return float(one == two)
    reach = max(max(len(one), len(two)) // 2 - 1, 0)
    taken = set()
    first = []
    for i, symbol in enumerate(one):
        for j in range(max(i - reach, 0), min(i + reach + 1, len(two))):
            if j not in taken and two[j] == symbol:
                taken.add(j)
                first.append(symbol)
                break
    second = [two[j] for j in sorted(taken)]
    if not first:
        return 0.0
    n = len(first)
    n_swapped = sum(a != b for a, b in zip(first, second, strict=True))
    jaro = (n / len(one) + n / len(two) + (n - n_swapped / 2) / n) / 3
    n_common = 0
    while n_common < min(len(one), len(two), 4) and one[n_common] == two[n_common]:
        n_common += 1
    return jaro + 0.1 * n_common * (1 - jaro)


def nearest(matrix, n_neighbors):
    """Rows with the largest products above 0 with each row, the row itself left out; ties are not broken."""
    found = []
    for i, row in enumerate(matrix):
        products = [
            (sum(a * b for a, b in zip(row, other, strict=True)), j) for j, other in enumerate(matrix) if j != i
        ]
        found.append(sorted((value for value, _ in products if value > 0), reverse=True)[:n_neighbors])
    return found
