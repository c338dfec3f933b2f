"""BoostCluster in plain loops: Liu, Jin and Jain 2007; Truong and Battiti 2013, Algorithm 12 with the errata."""

from __future__ import annotations

import math

import numpy as np

LEAST_SHARE = 1e-6


def normalised(terms):
    return [term / sum(terms) for term in terms]


def eigenvectors(X, must_link, P, cannot_link, Q):
    """Directions with positive eigenvalues of Xᵀ (P - Q) X, the largest entry of each above 0."""
    n_columns = len(X[0])
    matrix = [[0.0] * n_columns for _ in range(n_columns)]
    for pairs, shares, sign in ((must_link, P, 1), (cannot_link, Q, -1)):
        for (i, j), share in zip(pairs, shares, strict=True):
            for f in range(n_columns):
                for g in range(n_columns):
                    matrix[f][g] += sign * share * (X[i][f] * X[j][g] + X[j][f] * X[i][g]) / 2
    values, vectors = np.linalg.eigh(matrix)
    found = []
    for place in reversed(range(n_columns)):
        if values[place] > 1e-10 * max(abs(values)):
            vector = vectors[:, place].tolist()
            largest = max(vector, key=abs)
            found.append([entry * math.copysign(1, largest) for entry in vector])
    return found


def boost_cluster(X, must_link, must_weights, cannot_link, cannot_weights, clusters_of, n_rounds):
    """Labels of the last round, the logarithm of L after each round, and the weights of the rounds."""
    middle = [sum(column) / len(X) for column in zip(*X, strict=True)]
    X = [[value - mean for value, mean in zip(row, middle, strict=True)] for row in X]
    K = {}
    labels, history, weights = None, [0.0], []
    for _ in range(n_rounds):
        must = [w * math.exp(-K.get((i, j), 0.0)) for (i, j), w in zip(must_link, must_weights, strict=True)]
        cannot = [w * math.exp(K.get((i, j), 0.0)) for (i, j), w in zip(cannot_link, cannot_weights, strict=True)]
        P, Q = normalised(must), normalised(cannot)
        vectors = eigenvectors(X, must_link, P, cannot_link, Q)
        if not vectors:
            break
        new = clusters_of([[sum(a * b for a, b in zip(row, v, strict=True)) for v in vectors] for row in X])
        a = sum(share for (i, j), share in zip(must_link, P, strict=True) if new[i] == new[j])
        b = sum(share for (i, j), share in zip(cannot_link, Q, strict=True) if new[i] == new[j])
        a, b = (min(max(share, LEAST_SHARE), 1 - LEAST_SHARE) for share in (a, b))
        if a <= b + 1e-9:  # equal but for rounding, as after two equal rounds
            break
        labels = new
        weights.append(math.log(a * (1 - b) / (b * (1 - a))) / 2)
        for i, j in [*must_link, *cannot_link]:
            if new[i] == new[j]:
                K[i, j] = K.get((i, j), 0.0) + weights[-1]
        must = [w * math.exp(-K.get((i, j), 0.0)) for (i, j), w in zip(must_link, must_weights, strict=True)]
        cannot = [w * math.exp(K.get((i, j), 0.0)) for (i, j), w in zip(cannot_link, cannot_weights, strict=True)]
        history.append(math.log(sum(must) / sum(must_weights)) + math.log(sum(cannot) / sum(cannot_weights)))
        if all(new[i] == new[j] for i, j in must_link) and not any(new[i] == new[j] for i, j in cannot_link):
            break
    return labels, history, weights
