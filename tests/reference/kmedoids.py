"""Constrained k-medoids by loops over everything: thesis Eq. 4.6 to 4.13, and Algorithm 3."""

from __future__ import annotations

from itertools import combinations, product


def labellings(n_rows, n_clusters, must_link, cannot_link, size_min=0, size_max=None):
    """Every labelling that satisfies the constraints."""
    for labels in product(range(n_clusters), repeat=n_rows):
        sizes = [labels.count(cluster) for cluster in range(n_clusters)]
        if (
            all(labels[i] == labels[j] for i, j in must_link)
            and all(labels[i] != labels[j] for i, j in cannot_link)
            and all(size_min <= size <= (n_rows if size_max is None else size_max) for size in sizes)
        ):
            yield labels


def lowest_cost(distances, n_clusters, must_link=(), cannot_link=(), **sizes):
    """Cost of the cheapest labelling over all sets of medoids."""
    n_rows = len(distances)
    allowed = list(labellings(n_rows, n_clusters, must_link, cannot_link, **sizes))
    return min(
        sum(distances[row][medoids[label]] for row, label in enumerate(labels))
        for medoids in combinations(range(n_rows), n_clusters)
        for labels in allowed
    )


def cheapest_labels(costs, cannot_link):
    """Lowest cost of units with fixed medoids: `costs[unit][slot]`."""
    n_slots = len(costs[0])
    return min(
        sum(costs[unit][slot] for unit, slot in enumerate(labels))
        for labels in product(range(n_slots), repeat=len(costs))
        if all(labels[i] != labels[j] for i, j in cannot_link)
    )


def fastest_swaps(costs, medoids):
    """FasterPAM: candidates take turns, and the best slot is replaced if that lowers the sum of nearest costs."""

    def total(chosen):
        return sum(min(costs[j][i] for j in chosen) for i in range(len(costs[0])))

    medoids, since, candidate = list(medoids), 0, 0
    while since < len(costs):
        since += 1
        if candidate not in medoids:
            swapped = [[*medoids[:slot], candidate, *medoids[slot + 1 :]] for slot in range(len(medoids))]
            best = min(swapped, key=total)
            if total(best) < total(medoids):
                medoids, since = best, 0
        candidate = (candidate + 1) % len(costs)
    return medoids, total(medoids)
