"""Constrained spectral embeddings with dense matrices of all rows, every pair written out, and one generalised solver.

Kamvar et al. 2003 edit the affinities. Wang and Davidson 2010 constrain the cut.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eig

from tests.reference import assign


def normalised(affinities):
    """D^-1/2 A D^-1/2, and the diagonal of D^-1/2; a row without affinities has 1 there."""
    roots = [1 / np.sqrt(sum(row)) if sum(row) > 0 else 1.0 for row in affinities]
    n = len(roots)
    return np.array([[affinities[i][j] * roots[i] * roots[j] for j in range(n)] for i in range(n)]), np.array(roots)


def edited(affinities, constraints):
    """Certain pairs get the largest affinity or none. Others then move theirs that way by the share of confidence.

    What several pairs say about the same rows is added up, and an affinity stays at 0 or above.
    """
    n, top = len(affinities), max(max(row) for row in affinities)
    must, cannot = assign.priced_pairs(constraints, n, entailed=True)
    found = [list(row) for row in affinities]
    for pairs, target in ((cannot, 0.0), (must, top)):
        for (i, j), confidence in pairs.items():
            if confidence >= 1:  # several statements add up
                found[i][j] = found[j][i] = target
    now = [list(row) for row in found]
    for pairs, target in ((must, top), (cannot, 0.0)):
        for (i, j), confidence in pairs.items():
            if confidence < 1:
                found[i][j] = found[j][i] = found[i][j] + float(confidence) * (target - now[i][j])
    return [[max(value, 0.0) for value in row] for row in found]


def affinity_embedding(affinities, constraints, n_vectors):
    """Leading eigenvectors of the edited graph; rows of length 1."""
    matrix, _ = normalised(edited(affinities, constraints))
    values, vectors = np.linalg.eigh(matrix)
    vectors = vectors[:, np.argsort(-values)[:n_vectors]]
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cut_problem(affinities, constraints):
    """The Laplacian and the satisfaction of pairs, both between all rows, and D^-1/2."""
    n = len(affinities)
    matrix, roots = normalised(affinities)
    must, cannot = assign.priced_pairs(constraints, n, entailed=True)
    Q = np.zeros((n, n))
    for pairs, sign in ((must, 1), (cannot, -1)):
        for (i, j), confidence in pairs.items():
            Q[i, j] = Q[j, i] = Q[i, j] + sign * float(confidence) * roots[i] * roots[j]
    return np.eye(n) - matrix, Q, roots


def feasible_cuts(laplacian, Q, beta):
    """All solutions of L v = lambda (Q - beta I) v with lambda > 0, the smallest lambda first; vectors of length 1."""
    values, vectors = eig(laplacian, Q - beta * np.eye(len(Q)))
    feasible = np.flatnonzero((values.real > 0) & np.isfinite(values.real))
    order = feasible[np.argsort(values.real[feasible])]
    return values.real[order], vectors.real[:, order] / np.linalg.norm(vectors.real[:, order], axis=0)


def cut_embedding(affinities, constraints, n_clusters, threshold, ridge):
    """The feasible cuts with the smallest lambda that are not the constant vector, or None if there are too few."""
    laplacian, Q, roots = cut_problem(affinities, constraints)
    laplacian = laplacian + ridge * np.eye(len(Q))
    beta = threshold * np.linalg.eigvalsh(Q)[-(n_clusters - 1)]
    _, vectors = feasible_cuts(laplacian, Q, beta)
    constant = (1 / roots) / np.linalg.norm(1 / roots)
    vectors = vectors[:, np.abs(constant @ vectors) < 1 - 1e-6][:, : n_clusters - 1]
    if vectors.shape[1] < n_clusters - 1:
        return None
    cuts = np.diag(vectors.T @ laplacian @ vectors)
    volume = sum(sum(row) for row in affinities)
    return (roots[:, None] * vectors) * (1 - cuts) * np.sqrt(volume)
