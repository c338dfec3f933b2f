"""GeometryPreservingLearner makes the same moves as the reference, step by step."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from clew import Constraints
from clew.metric._geometry_preserving_learner import _Stated, preserve_geometry
from tests.reference import geometry_preserving as reference
from tests.reference.kmeans import TieError

MAX_ITER = 6
# The solver rounds where the reference has fractions.
ROUNDING = 1e-9


def instance(rng):
    """Rows of small whole numbers, sorted distinct must-links, and cannot-links among other pairs."""
    n_rows, n_clusters = int(rng.integers(5, 9)), int(rng.integers(2, 4))
    X = rng.integers(-9, 10, (n_rows, 2)).astype(float)
    pairs = [(i, j) for i in range(n_rows) for j in range(i + 1, n_rows)]
    chosen = [pairs[place] for place in rng.choice(len(pairs), 4, replace=False)]
    split = int(rng.integers(0, 5))
    return X, n_clusters, sorted(chosen[:split]), sorted(chosen[split:])


def by_impact(known, n_clusters):
    """How the reference chooses and charges with the multipliers, which have golden tests of their own."""
    stated = _Stated.of(known)
    statements = [("must_link", tuple(pair)) for pair in known.must_link.tolist()]
    statements += [("cannot_link", tuple(pair)) for pair in known.cannot_link.tolist()]

    scores = {}

    def choose(rows, centers, violated):
        score = dict(zip(statements, scores["now"], strict=True))
        best, *others = sorted(violated, key=lambda one: -score[one])
        if others and abs(score[best] - score[others[0]]) <= ROUNDING * abs(score[best]):
            raise TieError
        return best

    def charge(rows, centers):
        scores["now"], charges = stated.impact(np.array(rows, float), np.array(centers, float), n_clusters)
        return {(row, c): charges[i, c] for i, row in enumerate(stated.tied.tolist()) for c in range(n_clusters)}

    return choose, charge


@pytest.mark.parametrize("order", ["random", "impact"])
def test_rows_move_as_in_the_reference(order, seed):
    n_compared = n_moved = 0
    for case in range(12):
        X, k, must, cannot = instance(np.random.default_rng([seed, case]))
        known = Constraints(must, cannot, n_samples=len(X))
        # A run without steps gives the first clusters, and leaves the generator where the steps begin.
        rng = np.random.default_rng(case)
        first = preserve_geometry(X, known, k, 0, rng, by_impact=order == "impact").labels.tolist()
        choose, charge = by_impact(known, k)
        if order == "random":
            choose, charge = (lambda rows, centers, pairs, rng=rng: pairs[rng.integers(len(pairs))]), None
        try:
            rows, done, labels, n_iter = reference.preserve_geometry(
                X, first, k, must, cannot, MAX_ITER, choose, charge
            )
        except TieError:  # rounding decides
            continue
        found = preserve_geometry(X, known, k, MAX_ITER, np.random.default_rng(case), by_impact=order == "impact")
        assert (found.labels.tolist(), found.n_iter) == (labels, n_iter)
        np.testing.assert_allclose(found.rows, np.array(rows, dtype=float), rtol=ROUNDING, atol=ROUNDING)
        travelled = np.zeros(len(X))
        for row, square in done:
            travelled[row] += sqrt(square)
        np.testing.assert_allclose(found.distances, travelled, rtol=ROUNDING, atol=ROUNDING)
        n_compared, n_moved = n_compared + 1, n_moved + (n_iter > 0)
    assert n_compared >= 6 and n_moved >= 4
