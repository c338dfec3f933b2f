"""Message passing against the sum over all joint states, on trees and on loops, and the same kernel interpreted."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from clew.solvers import inference
from clew.solvers.inference import Factors, Inference
from tests.golden.test_assign import interpreted
from tests.reference.inference import posterior


@pytest.fixture(params=["compiled", "interpreted"])
def kernels(request, monkeypatch):
    if request.param == "interpreted":
        monkeypatch.setattr(inference, "propagate", interpreted("propagate").propagate)


def compare(n_variables, n_states, factors, rng, exact_limit=10**9):
    unary = 3 * rng.normal(size=(n_variables, n_states))
    scores = rng.normal(size=(len(factors.ptr) - 1, n_states))
    free = rng.normal(size=scores.shape) - 1
    ready = Inference(n_variables, n_states, factors, exact_limit)
    found = ready.run(unary, scores, free)
    for ours, theirs in zip(found, posterior(n_states, factors, unary, scores, free), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    return ready


def joined(*parts):
    """Potts and mixture factors as one set."""
    return Factors(
        np.concatenate([[0], *(np.diff(part.ptr) for part in parts)]).cumsum(),
        *(np.concatenate(columns) for columns in list(zip(*parts, strict=True))[1:]),
    )


PAIRS = list(combinations(range(4), 2))


@pytest.mark.parametrize("chosen", range(1, 64, 5))
def test_every_kind_of_graph_of_four_variables(chosen, kernels, seed):
    rng = np.random.default_rng([seed, chosen])
    pairs = np.array([pair for place, pair in enumerate(PAIRS) if chosen >> place & 1])
    weights = rng.choice([-np.inf, -2.0, 0.5, 3.0], size=len(pairs))
    n_states = 4 if np.isinf(weights).all() else 3
    weights[: len(weights) // 2] = 1.0
    assert compare(4, n_states, Factors.potts(pairs, weights), rng).n_loopy == 0


@pytest.mark.parametrize(
    "groups",
    [[[0]], [[0, 1]], [[0, 1], [1, 2], [2, 3]], [[0, 1, 2], [2, 3]], [[0, 1], [1, 0]], [[0, 1, 2], [1, 2, 3], [0, 3]]],
)
def test_mixture_factors_on_polytrees_and_loops(groups, kernels, seed):
    rng = np.random.default_rng(seed)
    ptr = np.cumsum([0, *map(len, groups)])
    mixtures = Factors.mixtures(ptr, np.concatenate(groups), rng.uniform(0.05, 0.3, ptr[-1]))
    assert compare(4, 3, mixtures, rng).n_loopy == 0
    child = rng.random(len(groups)) < 0.5
    child &= np.diff(ptr) > 1
    compare(4, 3, Factors.mixtures(ptr, np.concatenate(groups), rng.uniform(0.05, 0.3, ptr[-1]), child), rng)
    both = joined(mixtures, Factors.potts(np.array([[0, 3], [1, 2]]), np.array([1.5, -np.inf])))
    compare(4, 3, both, rng)


def test_a_part_beyond_the_limit_is_approximate_and_counted(seed):
    pairs = np.array([*PAIRS, (4, 5)])
    rng = np.random.default_rng(seed)
    unary = rng.normal(size=(6, 3))
    factors = Factors.potts(pairs, np.full(len(pairs), 0.3))
    exact, loopy = Inference(6, 3, factors), Inference(6, 3, factors, exact_limit=0)
    assert (exact.n_exact, exact.n_loopy, loopy.n_exact, loopy.n_loopy) == (2, 0, 1, 1)
    np.testing.assert_allclose(loopy.run(unary).marginals, exact.run(unary).marginals, atol=0.05)
    np.testing.assert_allclose(loopy.run(unary).marginals[4:], exact.run(unary).marginals[4:])


def test_states_that_are_far_less_likely_are_told_apart():
    """Both rows prefer state 0 by thousands of nats, and must differ."""
    unary = np.array([[0.0, -3000.0, -9000.0], [0.0, -3001.0, -9000.0]])
    found = Inference(2, 3, Factors.potts(np.array([[0, 1]]), np.array([-np.inf]))).run(unary)
    first = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(found.marginals, [[1 - first, first, 0], [first, 1 - first, 0]], atol=1e-9)
    assert found.log_partition == pytest.approx(-3000 + np.log1p(np.exp(-1)))
