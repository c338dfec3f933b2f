"""Constrained-DBSCAN (survey Algorithms 17 and 18, with the errata), in plain loops over sets."""

from __future__ import annotations

from tests.reference.assign import components, given_pairs

UNCLASSIFIED, NOISE = -2, -1


def constrained_dbscan(distances, constraints, eps, min_samples):
    """A cluster number per row in the order in which clusters were found, -1 for noise."""
    n = len(distances)
    must, cannot = given_pairs(constraints)
    component = components(n, must)
    closures = [{j for j in range(n) if component[j] == component[i]} for i in range(n)]
    near = [[j for j in range(n) if distances[i][j] <= eps] for i in range(n)]
    y = [UNCLASSIFIED] * n

    def violates(row, cluster):
        """Whether a cannot-link separates the closure of a row from a row of the cluster."""
        inside = {j for j in range(n) if y[j] == cluster}
        return any((i in closures[row] and j in inside) or (j in closures[row] and i in inside) for i, j in cannot)

    def add(row, cluster, seeds):
        for t in sorted(closures[row]):
            y[t] = cluster
            seeds.append(t)

    cluster = 0
    for i in range(n):
        if y[i] != UNCLASSIFIED:
            continue
        if len(near[i]) < min_samples:
            y[i] = NOISE
            continue
        seeds = []
        add(i, cluster, seeds)
        while seeds:
            s = seeds.pop(0)
            if len(near[s]) >= min_samples:
                for t in near[s]:
                    if y[t] in (NOISE, UNCLASSIFIED) and not violates(t, cluster):
                        add(t, cluster, seeds)
        cluster += 1
    # Hard must-links and classes: what no cluster reached is kept together.
    for i in range(n):
        known = constraints.labels is not None and any(constraints.labels[t] >= 0 for t in closures[i])
        if y[i] == NOISE and (len(closures[i]) > 1 or known):
            add(i, cluster, [])
            cluster += 1
    return y
