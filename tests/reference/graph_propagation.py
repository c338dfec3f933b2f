"""Label propagation in plain loops: neighbours by sorting, kernels pair by pair."""

from __future__ import annotations

import math

import numpy as np


def neighbour_weights(X, n_neighbors):
    """Weight of every pair of rows, one of which is among the nearest of the other."""
    n = len(X)
    distance = [[math.dist(X[i], X[j]) for j in range(n)] for i in range(n)]
    nearest = [sorted((j for j in range(n) if j != i), key=lambda j: distance[i][j])[:n_neighbors] for i in range(n)]
    scale = [distance[i][nearest[i][-1]] for i in range(n)]
    weights = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in nearest[i]:
            weights[i][j] = weights[j][i] = math.exp(-(distance[i][j] ** 2) / (scale[i] * scale[j]))
    return weights


def gram(kernels, weights, i, j):
    """The weighted sum of all kernels between two rows."""
    apart = sum((a - b) ** 2 for a, b in zip(kernels.columns[i], kernels.columns[j], strict=True))
    values = [
        float(kernels.diffusion[i] @ kernels.diffusion[j]),
        math.exp(-apart / kernels.bandwidth),
        float(kernels.columns[i] @ kernels.columns[j]),
        *(float(one[i] == one[j]) for one in kernels.partitions),
    ]
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def probabilities(kernels, rows, classes, noise, weights, n_classes, of):
    """Probabilities of the rows `of` for all classes, from the known rows."""
    present = sorted(set(classes))
    system = np.array([[gram(kernels, weights.values, i, j) for j in rows] for i in rows])
    system += np.diag(weights.noise * np.array(noise) + 1e-6)
    found = []
    for row in of:
        row_of_gram = np.array([gram(kernels, weights.values, row, j) for j in rows])
        line = []
        for one in range(n_classes):
            target = np.array([(z == one) - 1 / len(present) for z in classes])
            value = 1 / len(present) + row_of_gram @ np.linalg.solve(system, target) if one in present else 0.0
            line.append(max(value, 0.01 / n_classes))
        found.append([value / sum(line) for value in line])
    return found
