"""The cheapest assignment of blocks within size limits and without conflicts, by trying all of them."""

from __future__ import annotations

from itertools import product


def cheapest(costs, sizes, lower, upper, edges=(), fixed=None):
    """The lowest total cost, or None where no assignment keeps the limits and the conflicts."""
    n, k = len(costs), len(lower)
    found = None
    for labels in product(range(k), repeat=n):
        if fixed is not None and any(pin not in (-1, label) for pin, label in zip(fixed, labels, strict=True)):
            continue
        if any(labels[i] == labels[j] for i, j in edges):
            continue
        loads = [sum(sizes[i] for i in range(n) if labels[i] == cluster) for cluster in range(k)]
        if all(low <= load <= high for low, load, high in zip(lower, loads, upper, strict=True)):
            cost = sum(costs[i][labels[i]] for i in range(n))
            found = cost if found is None else min(found, cost)
    return found
