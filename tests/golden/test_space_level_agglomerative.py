"""SpaceLevelAgglomerative equals complete linkage on all shortest paths, in plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from clew import SpaceLevelAgglomerative
from clew.hierarchical import _space_level_agglomerative as module
from clew.kernels import linkage as compiled
from tests.golden.test_agglomerative import assert_same_tree
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import agglomerative as reference
from tests.reference import interpreted_kernel

KERNELS = [pytest.param(compiled, id="compiled"), pytest.param(interpreted_kernel("linkage"), id="interpreted")]


@pytest.mark.parametrize("kernels", KERNELS)
def test_matches_all_shortest_paths_on_random_knowledge(kernels, seed, monkeypatch):
    monkeypatch.setattr(module, "relax_paths", kernels.relax_paths)
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(60 if kernels is compiled else 15):
        n = int(rng.integers(2, 11))
        X, known = whole_numbers(rng, n), random_knowledge(rng, n)
        distances = pdist(X, "cityblock")  # whole numbers that keep the triangle inequality
        paths = reference.space_level_distances(squareform(distances).astype(int).tolist(), known, n)
        level = module.space_level(distances.copy(), known.closure())
        found = squareform(level.distances)[np.ix_(level.alive, level.alive)]
        expected = np.array(paths, dtype=float)[np.ix_(level.alive, level.alive)]
        open_pairs = np.isfinite(found)
        assert (found[open_pairs] == expected[open_pairs]).all()
        try:
            levels, heights = reference.agglomerate(paths, known, "complete", n)
        except reference.TieError:
            continue
        model = SpaceLevelAgglomerative(metric="manhattan").fit(X, constraints=known)
        assert_same_tree(model, levels, heights, "complete")
        compared += 1
    assert compared > 3
