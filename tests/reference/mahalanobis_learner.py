"""The objective of MahalanobisLearner in plain loops, and its minimum by a general solver of SciPy.

Xing et al. 2003; Truong and Battiti 2013, Eq. 29-37 with the erratum: cannot-linked distances are not squared.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize


def squared_distance(A, x, y):
    difference = [a - b for a, b in zip(x, y, strict=True)]
    n = len(difference)
    return sum(difference[f] * A[f][g] * difference[g] for f in range(n) for g in range(n))


def must_link_mean(A, X, must_link, weights, regularization):
    """The weighted mean of the squared must-linked distances, and the regularisation by the variances of columns."""
    mean = sum(w * squared_distance(A, X[i], X[j]) for (i, j), w in zip(must_link, weights, strict=True)) / sum(weights)
    for f in range(len(X[0])):
        column = [row[f] for row in X]
        middle = sum(column) / len(column)
        mean += 2 * regularization * A[f][f] * sum((value - middle) ** 2 for value in column) / len(column)
    return mean


def cannot_link_mean(A, X, cannot_link, weights):
    """The weighted mean of the cannot-linked distances."""
    return sum(
        w * math.sqrt(max(squared_distance(A, X[i], X[j]), 0.0)) for (i, j), w in zip(cannot_link, weights, strict=True)
    ) / sum(weights)


def objective(A, X, must_link, must_weights, cannot_link, cannot_weights, regularization):
    return math.log(must_link_mean(A, X, must_link, must_weights, regularization)) / 2 - math.log(
        cannot_link_mean(A, X, cannot_link, cannot_weights)
    )


def solved(X, must_link, must_weights, cannot_link, cannot_weights, regularization, *, diagonal):
    """The lowest objective over matrices for two columns (Eq. 35-37), by sequential quadratic programming."""

    def matrix(entries):
        first, second, mixed = (*entries, 0.0) if diagonal else entries
        return [[first, mixed], [mixed, second]]

    def near(entries):
        return 1 - must_link_mean(matrix(entries), X, must_link, must_weights, regularization)

    def determinant(entries):
        return entries[0] * entries[1] - (0 if diagonal else entries[2] ** 2)

    start = np.array([1.0, 1.0] if diagonal else [1.0, 1.0, 0.0])
    start /= must_link_mean(matrix(start), X, must_link, must_weights, regularization)
    found = minimize(
        lambda entries: -cannot_link_mean(matrix(entries), X, cannot_link, cannot_weights),
        start,
        method="SLSQP",
        bounds=[(0, None), (0, None)] + ([] if diagonal else [(None, None)]),
        constraints=[{"type": "ineq", "fun": near}, {"type": "ineq", "fun": determinant}],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return -math.log(-found.fun)
