"""Randel 2018, thesis chapter 4: the optima of Table 4.2, and two circles."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_circles
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.medoids import INSTANCES, instance, reaches
from clew import ConstrainedKMedoids, Constraints
from clew.dissimilarity import kernel_dissimilarity
from clew.evaluation import adjusted_rand_score
from tests.helpers import benchmark_data


@pytest.mark.benchmark_data
@pytest.mark.parametrize("configuration", [1, 2])
@pytest.mark.parametrize("name", ["soybean_small", "protein_nolabels", "iris", "ionosphere"])
def test_table_4_2_optima_are_found_and_proven(name, configuration):
    # `python -m benchmarks medoids` runs all instances, ten times each.
    k, printed, _ = INSTANCES[name]
    distances, _, known = instance(benchmark_data(), name, configuration)
    model = ConstrainedKMedoids(k, metric="precomputed", solver="exact", random_state=0).fit(
        distances, constraints=known
    )
    assert reaches(model.inertia_, printed[configuration - 1]) and model.inertia_ >= printed[configuration - 1]
    assert (model.gap_, len(model.violated_must_link_), len(model.violated_cannot_link_)) == (0.0, 0, 0)


@pytest.mark.slow
@pytest.mark.benchmark_data
@pytest.mark.parametrize("configuration", [1, 2])
@pytest.mark.parametrize("name", ["synthetic_control", "balance_scale", "yeast"])
def test_table_4_2_optima_of_the_larger_sets_are_found(name, configuration):
    k, printed, _ = INSTANCES[name]
    distances, _, known = instance(benchmark_data(), name, configuration)
    model = ConstrainedKMedoids(k, metric="precomputed", max_iter=400, random_state=0).fit(distances, constraints=known)
    assert reaches(model.inertia_, printed[configuration - 1])


def test_section_4_6_3_two_circles_need_fewer_constraints_with_a_kernel_that_carries_them():
    X, y = make_circles(200, factor=0.4, noise=0.05, random_state=0)
    distances, kernel = cdist(X, X), rbf_kernel(X, gamma=4.0)

    def score(matrix, known):
        model = ConstrainedKMedoids(2, metric="precomputed", max_iter=5, random_state=0)
        return adjusted_rand_score(y, model.fit(matrix, constraints=known).labels_)

    some = [Constraints.sample(y, 220, random_state=seed) for seed in range(3)]
    with_kernel = [score(kernel_dissimilarity(kernel, known), known) for known in some]
    assert np.mean(with_kernel) > np.mean([score(distances, known) for known in some])
    enough = Constraints.sample(y, 1000, random_state=0)
    assert score(distances, enough) == score(kernel_dissimilarity(kernel, enough), enough) == 1.0
