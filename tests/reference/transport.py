"""The cheapest assignment within size limits, by trying all of them."""

from __future__ import annotations

from itertools import product


def cheapest(costs, lower, upper):
    """The lowest total cost, or None where no assignment keeps the limits."""
    k = len(lower)
    found = None
    for labels in product(range(k), repeat=len(costs)):
        sizes = [labels.count(cluster) for cluster in range(k)]
        if all(low <= size <= high for low, size, high in zip(lower, sizes, upper, strict=True)):
            cost = sum(row[cluster] for row, cluster in zip(costs, labels, strict=True))
            found = cost if found is None else min(found, cost)
    return found
