"""Constrained-KMeans (survey Algorithm 2) with must-link blocks, in plain loops over exact fractions."""

from __future__ import annotations

from tests.reference import kmeans
from tests.reference.seeded_kmeans import seeds


def constrained_kmeans(X, constraints, n_clusters):
    """Seeds keep their cluster; other blocks go, whole, to the centre nearest to their mean.

    Only where every cluster has a seed: the rest starts at random.
    """
    blocks, seed_of, labels = seeds(constraints, X, n_clusters)
    middle = [kmeans.mean([X[i] for i in block]) for block in blocks]
    centers = [None] * n_clusters
    for number, cluster in enumerate(seed_of):
        if cluster is not None:
            centers[cluster] = middle[number]
    if None in centers:
        return None

    def assign(now, _):
        found = [0] * len(X)
        for block, point, seed in zip(blocks, middle, seed_of, strict=True):
            cluster = kmeans.nearest(point, now) if seed is None else seed
            for row in block:
                found[row] = cluster
        return found

    clusters, centers, history = kmeans.rounds(X, centers, assign)
    return [labels[cluster] for cluster in clusters], centers, history
