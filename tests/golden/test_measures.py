"""Coherence and difficulty equal their definitions, on every small graph."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints
from clew.audit import coherence, difficulty
from tests.helpers import whole_numbers
from tests.reference import graphs_up_to_renaming
from tests.reference import measures as reference


@pytest.mark.parametrize("case", range(20))
def test_coherence_equals_the_loops(case, seed):
    rng = np.random.default_rng([seed, case])
    # Corners of a lattice: projections that only touch are common, and must not count as an overlap.
    X = rng.integers(0, 4, (12, 2)).astype(float) if case % 2 else whole_numbers(rng, 12, 3)
    pairs = np.array([rng.choice(12, 2, replace=False) for _ in range(12)])
    found = coherence(X, Constraints(pairs[:5], pairs[5:], n_samples=12))
    # Rounding decides in the loops whether intervals that touch overlap by 1e-16; ours has a tolerance for it.
    loose = np.mean([
        max(reference.overlap(X[m], X[c]), reference.overlap(X[c], X[m])) < 1e-9 for m in pairs[:5] for c in pairs[5:]
    ])  # fmt: skip
    assert found == pytest.approx(loose, abs=1e-15)
    assert found >= reference.coherence(X, pairs[:5], pairs[5:])


def test_difficulty_is_the_fractional_chromatic_number_of_every_graph_of_five():
    for edges in graphs_up_to_renaming(5):
        found = difficulty(Constraints(cannot_link=edges, n_samples=5))
        expected = reference.fractional_chromatic_number(5, edges)
        assert found.exact
        np.testing.assert_allclose([found.lower, found.upper], expected, rtol=1e-9)


def test_difficulty_of_random_graphs(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        edges = [(a, b) for b in range(9) for a in range(b) if rng.random() < 0.5]
        found = difficulty(Constraints(cannot_link=edges, n_samples=9))
        np.testing.assert_allclose(found.upper, reference.fractional_chromatic_number(9, edges), rtol=1e-9)
