"""CVQE and LCVQE against plain loops over exact fractions, in the same visiting order."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from clew import CVQE, LCVQE, Constraints
from clew.partitional._cvqe import PricedByCenters
from clew.partitional._geometry import Problem
from clew.partitional._lcvqe import PricedByRows
from clew.partitional._pairs import paired_kmeans
from clew.partitional._seeding import initial_centers
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import cvqe as reference
from tests.reference import kmeans

METHODS = [
    pytest.param(partial(paired_kmeans, policy=PricedByCenters), reference.cvqe, id="cvqe"),
    pytest.param(partial(paired_kmeans, policy=PricedByRows), reference.lcvqe, id="lcvqe"),
]


def few(known, n, most):
    """Some of the pairs, with their confidences."""
    return Constraints(
        known.must_link[:most],
        known.cannot_link[:most],
        must_link_confidence=known.must_link_confidence[:most],
        cannot_link_confidence=known.cannot_link_confidence[:most],
        labels=known.labels if most > 3 else None,
        n_samples=n,
    )


@pytest.mark.sampled(2, slow=1)
@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize(("fast", "slow"), METHODS)
def test_matches_reference_on_random_knowledge(fast, slow, consistent, seed):
    rng = np.random.default_rng(seed)
    compared = broken = 0
    for turn in range(90):
        n, n_clusters = int(rng.integers(3, 11)), int(rng.integers(1, 4))
        X = whole_numbers(rng, n)
        known = random_knowledge(rng, n, n_classes=n_clusters, consistent=consistent, sure=bool(turn % 2))
        known = few(known, n, 1 + turn % 5)
        init = X[rng.choice(n, n_clusters, replace=False)]
        order = np.random.default_rng(turn)
        try:
            labels, centers, history = slow(
                kmeans.exact(X), known, kmeans.exact(init), lambda m, order=order: order.permutation(m).tolist(), 4
            )
        except kmeans.TieError:
            continue
        form = sparse.csr_matrix if turn % 3 == 0 else np.asarray
        problem, draws = Problem.prepare(form(X), np.empty(0), "euclidean"), np.random.default_rng(turn)
        start = initial_centers(problem, known.closure(), np.arange(n_clusters), init, "mean", draws)
        found = fast(problem, known, start, draws, max_iter=4, tol=0.0)
        assert found.labels.tolist() == labels
        np.testing.assert_allclose(problem.restored(found.centers), np.array(centers, dtype=float), atol=1e-9)
        np.testing.assert_allclose(found.history, np.array(history, dtype=float), rtol=1e-9, atol=1e-6)
        compared += 1
        broken += bool(reference.broken(reference.stated(known), labels))
    assert compared > 40
    assert broken > 0


@pytest.mark.parametrize("cls", [CVQE, LCVQE])
def test_rounds_that_circle_end_at_the_lowest_objective(cls):
    """Wrong pairs pull the centres about; whatever happens, the result is the best that was seen."""
    met = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.integers(-9, 10, size=(14, 2)).astype(float)
        known = random_knowledge(rng, 14, consistent=False)
        model = cls(3, n_init=1, tol=0, random_state=seed).fit(X, constraints=known)
        history = model.objective_history_
        assert len(history) <= 301
        met += bool((np.diff(history) > 1e-9).any())
        assert np.isfinite(history).all()
    assert met > 0


@pytest.mark.parametrize("method", [CVQE, LCVQE])
def test_one_cluster_is_the_mean_whatever_is_cannot_linked(method):
    model = method(1, random_state=0).fit([[0.0], [1.0], [5.0]], constraints={"cannot_link": [(0, 2)]})
    assert model.cluster_centers_.tolist() == [[2.0]]
    assert model.objective_ == model.inertia_ == 14.0
