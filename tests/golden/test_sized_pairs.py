"""Priced pairs within size limits, against every labelling of a few rows."""

from __future__ import annotations

from itertools import product

import numpy as np

from clew import Constraints
from clew.partitional._geometry import Problem
from clew.partitional._sized_ties import SizedPricedPolicy
from clew.partitional._sizes import SizeLimits
from clew.partitional._ties import TiedAssignment, priced_ties
from clew.partitional._units import Units
from tests.reference.assign import broken, priced_pairs


def drawn(rng, n_rows):
    """A few pairs, sure and unsure, sometimes with groups and classes."""
    pairs = np.array([rng.choice(n_rows, 2, replace=False) for _ in range(int(rng.integers(1, 8)))])
    same = rng.random(len(pairs)) < 0.5
    sure = rng.choice([0.5, 1.0], len(pairs))
    groups = {"labels": rng.integers(-1, 2, n_rows), "cannot_groups": rng.integers(-1, 2, n_rows)}
    return Constraints(
        pairs[same], pairs[~same], must_link_confidence=sure[same], cannot_link_confidence=sure[~same],
        n_samples=n_rows, **{name: value for name, value in groups.items() if rng.random() < 0.3},
    )  # fmt: skip


def test_marginal_prices_are_differences_of_the_price(seed):
    rng = np.random.default_rng(seed)
    for entailed in (True, False) * 20:
        known, k = drawn(rng, 7), int(rng.integers(2, 5))
        rows, ties = priced_ties(known, 2.0, entailed=entailed)
        state = TiedAssignment(ties, k)
        labels = rng.integers(k, size=len(rows)).astype(np.int32)
        state.load(labels)
        found = state.marginal_prices(labels)
        for unit in range(len(rows)):
            prices = np.empty(k)
            for cluster in range(k):
                moved = labels.copy()
                moved[unit] = cluster
                state.load(moved)
                prices[cluster] = state.price(moved)
            np.testing.assert_allclose(prices - prices[0], found[unit] - found[unit, 0], atol=1e-9)


def test_one_assignment_is_near_the_cheapest_of_all_labellings(seed):
    rng = np.random.default_rng(seed)
    gaps = []
    for _ in range(40):
        n_rows, k = int(rng.integers(4, 8)), int(rng.integers(2, 4))
        X, known = rng.integers(0, 9, (n_rows, 2)).astype(float), drawn(rng, n_rows)
        sizes = np.bincount(rng.integers(k, size=n_rows), minlength=k)
        limits = SizeLimits(np.maximum(sizes - rng.integers(0, 2, k), 0), (sizes + rng.integers(0, 2, k)).astype(float))
        penalty = float(rng.choice([2.0, 20.0]))
        problem = Problem.prepare(X, np.empty(0), "euclidean")
        rows, ties = priced_ties(known, penalty, entailed=True)
        centers = problem.X[rng.choice(n_rows, k, replace=False)]
        seeds = np.where(known.closure().labels >= 0, known.closure().labels % k, -1)
        policy = SizedPricedPolicy(problem, known, rows, ties, limits, seeds, rng)
        labels = np.full(n_rows, -1, dtype=np.int32)
        score, price = policy.assign(
            problem, Units.contract(problem, np.arange(n_rows), np.arange(n_rows), n_rows), centers, labels
        )
        pairs = priced_pairs(known, n_rows, entailed=True)
        distances = ((problem.X[:, None] - centers) ** 2).sum(axis=2)

        def total(choice, distances=distances, pairs=pairs, penalty=penalty):
            return distances[np.arange(len(choice)), choice].sum() + penalty * float(broken(*pairs, list(choice)))

        counts = np.bincount(labels, minlength=k)
        assert ((counts >= limits.lower) & (counts <= limits.upper)).all()
        np.testing.assert_allclose(problem.constant + score + price, total(labels), atol=1e-9)
        best = min(
            total(choice)
            for choice in product(range(k), repeat=n_rows)
            if all(low <= choice.count(one) <= high for one, (low, high) in
                   enumerate(zip(limits.lower, limits.upper, strict=True)))
        )  # fmt: skip
        gaps.append(total(labels) / best - 1 if best > 0 else float(total(labels) > 0))
    assert np.mean(np.array(gaps) < 1e-9) > 0.6
    assert np.mean(gaps) < 0.1
