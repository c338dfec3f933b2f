"""COPKMeans against plain loops in the same visiting order; the first dead end is where the two part."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints
from clew.exceptions import InfeasibleConstraintsError
from clew.partitional._cop_kmeans import cop_kmeans as fast
from clew.partitional._geometry import Problem
from clew.partitional._seeding import initial_centers
from clew.solvers.coloring import WORK_LIMIT
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import kmeans
from tests.reference.assign import broken, given_pairs, labellings
from tests.reference.cop_kmeans import DeadEndError, cop_kmeans

# Means of whole numbers up to a few hundred: rounding stays in the last digits.
ROUNDING = 1e-9


def solve(X, constraints, init, seed):
    problem, closed = Problem.prepare(X, np.empty(0), "euclidean"), constraints.closure()
    rng = np.random.default_rng(seed)
    start = initial_centers(problem, closed, np.arange(len(init)), init, "mean", rng)
    limits = {"max_iter": 300, "tol": 0.0, "work_limit": WORK_LIMIT}
    return problem, fast(problem, constraints, closed, start, rng, **limits)


def satisfiable(constraints, n, n_clusters):
    must, cannot = given_pairs(constraints)
    known = [-1] * n if constraints.labels is None else constraints.labels.tolist()
    return any(
        not broken(must, cannot, labels) and all(k in (-1, label) for k, label in zip(known, labels, strict=True))
        for labels in labellings(n, n_clusters)
    )


def test_matches_reference_on_random_knowledge(seed):
    rng = np.random.default_rng(seed)
    compared = 0
    for turn in range(150):
        n, n_clusters = int(rng.integers(3, 11)), int(rng.integers(1, 4))
        X = whole_numbers(rng, n)
        constraints = random_knowledge(rng, n, n_classes=n_clusters)
        init = X[rng.choice(n, n_clusters, replace=False)]
        try:
            labels, centers, history = cop_kmeans(
                kmeans.exact(X), constraints, kmeans.exact(init), np.random.default_rng(turn).permutation
            )
        except (kmeans.TieError, DeadEndError):
            continue
        problem, found = solve(X, constraints, init, turn)
        assert found.labels.tolist() == labels
        np.testing.assert_allclose(problem.restored(found.centers), np.array(centers, dtype=float), atol=ROUNDING)
        np.testing.assert_allclose(found.history, np.array(history, dtype=float), rtol=ROUNDING, atol=1e-6)
        compared += 1
    assert compared > 30


def test_after_a_dead_end_the_answer_is_a_labelling_if_there_is_one_and_a_proof_if_not(seed):
    rng = np.random.default_rng(seed)
    solved = refused = 0
    for turn in range(150):
        n, n_clusters = int(rng.integers(3, 7)), int(rng.integers(2, 4))
        X = whole_numbers(rng, n)
        hidden = rng.integers(n_clusters + 1, size=n)
        pairs = np.column_stack(np.triu_indices(n, 1))
        apart = (hidden[pairs[:, 0]] != hidden[pairs[:, 1]]) & (rng.random(len(pairs)) < 0.8)
        together = (hidden[pairs[:, 0]] == hidden[pairs[:, 1]]) & (rng.random(len(pairs)) < 0.2)
        labels = np.where((hidden < n_clusters) & (rng.random(n) < 0.2), hidden, -1)
        constraints = Constraints(pairs[together], pairs[apart], labels=labels)
        if satisfiable(constraints, n, n_clusters):
            _, found = solve(X, constraints, X[:n_clusters], turn)
            assert broken(*given_pairs(constraints), found.labels.tolist()) == 0
            solved += 1
        else:
            with pytest.raises(InfeasibleConstraintsError) as caught:
                solve(X, constraints, X[:n_clusters], turn)
            proof = constraints.restrict(caught.value.rows)
            assert not satisfiable(proof, len(caught.value.rows), n_clusters)
            refused += 1
    assert solved > 20
    assert refused > 20
