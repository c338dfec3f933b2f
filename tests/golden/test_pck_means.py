"""PCKMeans against plain loops over all pairs, in the same visiting order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from clew import Constraints
from clew.partitional._geometry import Problem
from clew.partitional._pck_means import pck_means as fast
from clew.partitional._seeding import initial_centers
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import kmeans
from tests.reference.pck_means import BetterStartError, pck_means

# Means of whole numbers up to a few hundred: rounding stays in the last digits.
ROUNDING = 1e-9


def solve(X, constraints, init, penalty, seed, entailed):
    problem, rng = Problem.prepare(X, np.empty(0), "euclidean"), np.random.default_rng(seed)
    start = initial_centers(problem, constraints.closure(), np.arange(len(init)), init, "mean", rng)
    return problem, fast(problem, constraints, start, rng, penalty, entailed=entailed, max_iter=300, tol=0.0)


@pytest.mark.parametrize("entailed", [True, False])
@pytest.mark.parametrize("consistent", [True, False])
def test_matches_reference_on_random_knowledge(entailed, consistent, seed):
    rng = np.random.default_rng(seed)
    compared = 0
    for turn in range(200):
        n, n_clusters = int(rng.integers(3, 11)), int(rng.integers(1, 4))
        X = whole_numbers(rng, n)
        known = random_knowledge(rng, n, n_classes=n_clusters, consistent=consistent, sure=bool(turn % 2))
        constraints = Constraints(
            known.must_link[:5],
            known.cannot_link[:5],
            must_link_confidence=known.must_link_confidence[:5],
            cannot_link_confidence=known.cannot_link_confidence[:5],
            n_samples=n,
        )
        init = X[rng.choice(n, n_clusters, replace=False)]
        # So many binary digits that no sum of prices equals a difference of costs, few enough that sums are exact.
        penalty = (2 * int(rng.integers(0, 2**24)) + 1) / 2**12
        order = np.random.default_rng(turn)
        try:
            labels, centers, history = pck_means(
                kmeans.exact(X), constraints, kmeans.exact(init), Fraction(penalty),
                lambda count, order=order: order.permutation(count).tolist(), entailed=entailed,
            )  # fmt: skip
        except (kmeans.TieError, BetterStartError):
            continue
        problem, found = solve(X, constraints, init, penalty, turn, entailed)
        assert found.labels.tolist() == labels
        np.testing.assert_allclose(problem.restored(found.centers), np.array(centers, dtype=float), atol=ROUNDING)
        np.testing.assert_allclose(found.history, np.array(history, dtype=float), rtol=ROUNDING, atol=1e-6)
        compared += 1
    assert compared > 30
