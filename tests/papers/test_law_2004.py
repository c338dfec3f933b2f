"""Facts that Law, Topchy and Jain 2004 state about clustering with soft group constraints."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.mixtures import halves
from clew import ConstrainedGaussianMixture, Constraints, SoftGroupMixture
from clew.evaluation import adjusted_rand_score


def test_noisy_soft_pairs_turn_the_clusters_and_hard_ones_distort_them(seed):
    """Section 3.1: four Gaussians, two clusters, and pairs of one side, each wrong with one minus its strength."""
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1, 2, 3], 200)
    X = np.array([[1.5, 2.5], [-1.5, 2.5], [-1.5, -2.5], [1.5, -2.5]])[group] + rng.normal(size=(800, 2))
    side, top = np.isin(group, [0, 3]), group < 2
    pairs, strengths = [], []
    for anchor in rng.choice(800, 50, replace=False):
        for partner in rng.choice(np.flatnonzero(group == 3 - group[anchor]), 7, replace=False):
            strength = rng.uniform(0.6, 1)
            other = rng.integers(800) if rng.random() > strength else partner
            if other != anchor and rng.random() > 0.05:
                pairs.append((anchor, other))
                strengths.append(strength)
    soft = SoftGroupMixture(2, n_init=2, random_state=seed)
    assert adjusted_rand_score(top, soft.fit(X).labels_) > 0.9
    known = Constraints(pairs, must_link_confidence=strengths, n_samples=800)
    assert adjusted_rand_score(side, soft.fit(X, constraints=known).labels_) > 0.6
    hard = ConstrainedGaussianMixture(2, n_init=2, random_state=seed)
    assert adjusted_rand_score(side, hard.fit(X, constraints=Constraints(pairs, n_samples=800)).labels_) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Iris", "Wine"])
def test_soft_pairs_of_unclear_rows_help_and_hard_ones_do_not_help_more(name):
    """Section 3.2: mean error on the other half over 20 repeats."""
    none, soft, hard = (np.mean(errors) for errors in halves(name, 20).values())
    assert soft <= none and soft <= hard
