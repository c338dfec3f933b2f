"""CondEns and the information bottleneck methods in plain loops: Truong and Battiti 2013, section 3.2.5 with errata."""

from __future__ import annotations

import math
from itertools import product


def mean(rows):
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def square_distance(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def members(X, given, clusters_of):
    """Algorithm 15, steps 1 and 2: a clustering of all rows for each given cluster, by its number."""
    found = {}
    for cluster in dict.fromkeys(given):
        inside = [row for row, label in zip(X, given, strict=True) if label == cluster]
        local = clusters_of(inside)
        centers = [mean([row for row, label in zip(inside, local, strict=True) if label == one]) for one in set(local)]
        if len(centers) > 1:
            found[cluster] = [min(range(len(centers)), key=lambda c: square_distance(row, centers[c])) for row in X]
    return found


def co_association(members, weights):
    """The weighted share of the members that put two rows together."""
    n_rows = len(members[0])
    return [
        [sum(w for one, w in zip(members, weights, strict=True) if one[i] == one[j]) / sum(weights)
         for j in range(n_rows)]
        for i in range(n_rows)
    ]  # fmt: skip


def kernel_cost(kernel, labels):
    """Sum over clusters of the squared distances to the mean in the space of the kernel."""
    cost = sum(kernel[i][i] for i in range(len(labels)))
    for cluster in set(labels):
        inside = [i for i, label in enumerate(labels) if label == cluster]
        cost -= sum(kernel[i][j] for i in inside for j in inside) / len(inside)
    return cost


def least_kernel_cost(kernel, n_clusters):
    """The lowest cost of all labellings."""
    return min(kernel_cost(kernel, labels) for labels in product(range(n_clusters), repeat=len(kernel)))


def information(pairs):
    """I(A; B) of a joint distribution: a dict of masses by (a, b)."""
    first, second = {}, {}
    for (a, b), mass in pairs.items():
        first[a] = first.get(a, 0) + mass
        second[b] = second.get(b, 0) + mass
    return sum(mass * math.log(mass / (first[a] * second[b])) for (a, b), mass in pairs.items() if mass > 0)


def added(triples, keep):
    """Sum masses by what `keep` gives for their keys."""
    found = {}
    for key, mass in triples.items():
        found[keep(*key)] = found.get(keep(*key), 0) + mass
    return found


def objective(P, given, labels, weights):
    """The lost information J of rows with features P[x][y], whose sums are 1."""
    joint = {
        (x, y, given[x], labels[x]): mass / len(P) for x, row in enumerate(P) for y, mass in enumerate(row) if mass
    }
    conditional = {}
    for name, keep in (("x", lambda x, y, z, c: (x, y)), ("c", lambda x, y, z, c: (c, y))):
        conditional[name] = 0.0
        for side in set(given):
            part = {key: mass for key, mass in joint.items() if key[2] == side}
            total = sum(part.values())
            conditional[name] += total * information(added({key: m / total for key, m in part.items()}, keep))
    plain = information(added(joint, lambda x, y, z, c: (x, y))) - information(added(joint, lambda x, y, z, c: (c, y)))
    rate = information(added(joint, lambda x, y, z, c: (x, c)))
    return weights[0] * (conditional["x"] - conditional["c"]) + weights[1] * plain + weights[2] * rate


def one_pass(P, given, labels, n_clusters, weights, order):
    """Move each row to the cluster with the lowest objective, if it is lower than its own; the labels after it."""
    labels = list(labels)
    for row in order:
        if labels.count(labels[row]) == 1:
            continue
        costs = []
        for cluster in range(n_clusters):
            trial = [*labels[:row], cluster, *labels[row + 1 :]]
            costs.append(objective(P, given, trial, weights))
        best = min(range(n_clusters), key=costs.__getitem__)
        if costs[best] < costs[labels[row]] - 1e-9:
            labels[row] = best
    return labels
