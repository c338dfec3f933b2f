"""Semi-supervised kernel k-means (Kulis et al. 2009) in plain loops over exact fractions; every pair is written out."""

from __future__ import annotations

from fractions import Fraction

from tests.reference import assign, kmeans


def with_pairs(kernel, constraints, weight):
    """K + W: given and entailed must-links add the weight times their confidence, cannot-links take it away.

    What must-links add to the entries of a row is taken from its diagonal.
    """
    S = kmeans.exact(kernel)
    must, cannot = assign.priced_pairs(constraints, len(S), entailed=True)
    for pairs, sign in ((must, 1), (cannot, -1)):
        for (i, j), confidence in pairs.items():
            S[i][j] += sign * Fraction(weight) * Fraction(confidence)
            S[j][i] = S[i][j]
    for (i, j), confidence in must.items():
        for row in (i, j):
            S[row][row] -= Fraction(weight) * Fraction(confidence)
    return S


def shifted(S, shift):
    return [[value + (Fraction(shift) if i == j else 0) for j, value in enumerate(row)] for i, row in enumerate(S)]


def members(labels, cluster):
    return [row for row, label in enumerate(labels) if label == cluster]


def within(S, rows):
    """Sum of the similarities within a cluster over its number of rows."""
    return sum((S[i][j] for i in rows for j in rows), Fraction(0)) / len(rows) if rows else Fraction(0)


def objective(S, labels, n_clusters):
    """The trace minus the similarities within clusters, each over the size of its cluster."""
    trace = sum((S[i][i] for i in range(len(S))), Fraction(0))
    return trace - sum((within(S, members(labels, cluster)) for cluster in range(n_clusters)), Fraction(0))


def inertia_and_prices(kernel, constraints, weight, labels, n_clusters):
    """The objective without the shift, from its meaning: each violated pair by the sizes of the clusters it is in."""
    must, cannot = assign.priced_pairs(constraints, len(labels), entailed=True)
    total = objective(kmeans.exact(kernel), labels, n_clusters)
    sizes = [Fraction(labels.count(label)) for label in labels]
    for (i, j), confidence in must.items():
        if labels[i] != labels[j]:
            total += Fraction(weight) * Fraction(confidence) * (1 / sizes[i] + 1 / sizes[j])
    for (i, j), confidence in cannot.items():
        if labels[i] == labels[j]:
            total += 2 * Fraction(weight) * Fraction(confidence) / sizes[i]
    return total


def blocks_of(constraints, n):
    """Lists of rows that certain must-links join."""
    must, _ = assign.given_pairs(constraints)
    component = assign.components(n, [pair for pair, sure in must.items() if sure == 1])
    return [[row for row in range(n) if component[row] == one] for one in dict.fromkeys(component)]


def distance_to_mean(S, row, rows):
    """Squared distance of a row to the mean of a cluster, in the space of the similarity."""
    return S[row][row] - 2 * sum((S[row][j] for j in rows), Fraction(0)) / len(rows) + within(S, rows) / len(rows)


def nearest(S, clusters, blocks):
    """The nearest mean of each block. An empty cluster is an error: restarts are tested on their own."""
    if not all(clusters):
        raise kmeans.TieError
    labels = [0] * len(S)
    for block in blocks:
        costs = [sum((distance_to_mean(S, row, rows) for row in block), Fraction(0)) for rows in clusters]
        for row in block:
            labels[row] = kmeans.cheapest(costs)
    return labels


def moves(S, labels, blocks, n_clusters):
    """Move each block in turn to the cluster with the lowest objective.

    A block stays if its rows are in several clusters, or if it is all of its cluster.
    """
    labels = list(labels)
    for block in blocks:
        home = labels[block[0]]
        if any(labels[row] != home for row in block) or labels.count(home) == len(block):
            continue
        choices = [
            [cluster if row in block else label for row, label in enumerate(labels)] for cluster in range(n_clusters)
        ]
        labels = choices[kmeans.cheapest([objective(S, choice, n_clusters) for choice in choices])]
    return labels


def kernel_kmeans(S, shift, seeds, blocks, *, single):
    """Labels from rounds that start with one seed row a cluster, and the objective of every state on the way."""
    k, full = len(seeds), shifted(S, shift)
    labels = nearest(S, [[row] for row in seeds], blocks)
    history = [objective(full, labels, k)]
    while (new := nearest(full, [members(labels, cluster) for cluster in range(k)], blocks)) != labels:
        labels = new
        history.append(objective(full, labels, k))
    alone = [[row] for row in range(len(S))]
    while single and (new := moves(S, moves(S, labels, blocks, k), alone, k)) != labels:
        labels = new
        history.append(objective(full, labels, k))
    return labels, history
