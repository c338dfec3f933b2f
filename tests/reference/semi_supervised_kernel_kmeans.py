"""Semi-supervised kernel k-means (Kulis et al. 2009) in plain loops over exact fractions; every pair is written out."""

from __future__ import annotations

from fractions import Fraction

from tests.reference import assign, kmeans


def with_pairs(kernel, constraints, weight):
    """K + W: given and entailed must-links add the weight times their confidence, cannot-links take it away."""
    S = kmeans.exact(kernel)
    must, cannot = assign.priced_pairs(constraints, len(S), entailed=True)
    for pairs, sign in ((must, 1), (cannot, -1)):
        for (i, j), confidence in pairs.items():
            S[i][j] += sign * Fraction(weight) * Fraction(confidence)
            S[j][i] = S[i][j]
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


def distance_to_mean(S, row, rows):
    """Squared distance of a row to the mean of a cluster, in the space of the similarity."""
    return S[row][row] - 2 * sum((S[row][j] for j in rows), Fraction(0)) / len(rows) + within(S, rows) / len(rows)


def nearest(S, clusters):
    """The nearest mean of each row. An empty cluster is an error: restarts are tested on their own."""
    if not all(clusters):
        raise kmeans.TieError
    return [kmeans.cheapest([distance_to_mean(S, row, rows) for rows in clusters]) for row in range(len(S))]


def single_moves(S, labels, n_clusters):
    """Move each row in turn to the cluster with the lowest objective; a cluster keeps its last row."""
    labels = list(labels)
    for row in range(len(S)):
        home = labels[row]
        if labels.count(home) == 1:
            continue
        costs = [
            objective(S, [*labels[:row], cluster, *labels[row + 1 :]], n_clusters) for cluster in range(n_clusters)
        ]
        labels[row] = kmeans.cheapest(costs)
    return labels


def kernel_kmeans(S, shift, seeds, *, single):
    """Labels from rounds that start with one seed row a cluster, and the objective of every state on the way."""
    k, full = len(seeds), shifted(S, shift)
    labels = nearest(S, [[row] for row in seeds])
    history = [objective(full, labels, k)]
    while (new := nearest(full, [members(labels, cluster) for cluster in range(k)])) != labels:
        labels = new
        history.append(objective(full, labels, k))
    while single and (new := single_moves(S, labels, k)) != labels:
        labels = new
        history.append(objective(full, labels, k))
    return labels, history
