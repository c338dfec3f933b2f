"""Laws of SemiSupervisedKernelKMeans on any small rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.cluster import KMeans

from clew import SemiSupervisedKernelKMeans
from clew.graph._semi_supervised_kernel_kmeans import add_pairs, shift_of
from tests.helpers import examples, random_knowledge, whole_numbers
from tests.reference import kmeans
from tests.reference import semi_supervised_kernel_kmeans as reference

pytestmark = pytest.mark.filterwarnings("ignore::clew.exceptions.ClewWarning")


@st.composite
def kernels(draw):
    """A symmetric matrix of whole numbers, which may be indefinite."""
    n = draw(st.integers(3, 8))
    matrix = draw(arrays.arrays(np.float64, (n, n), elements=st.integers(-9, 9).map(float)))
    return np.triu(matrix) + np.triu(matrix, 1).T


@given(kernel=kernels(), seed=st.integers(0, 99), penalty=st.sampled_from(["auto", 0.0, 1.0, 50.0]))
@examples(40)
def test_the_objective_never_rises_and_no_single_row_lowers_it(kernel, seed, penalty):
    known = random_knowledge(np.random.default_rng(seed), len(kernel), sure=False)
    model = SemiSupervisedKernelKMeans(3, kernel="precomputed", penalty=penalty, n_init=2, random_state=0)
    model.fit(kernel, constraints=known)
    scale = 1 + np.abs(model.objective_history_).max()
    assert (np.diff(model.objective_history_) <= 1e-9 * scale).all()
    weight = model.penalty_ * len(kernel) / 6
    S = reference.shifted(reference.with_pairs(kernel, known, weight), model.shift_)
    labels = model.cluster_of_.tolist()
    now = reference.objective(S, labels, 3)
    priced = float(reference.inertia_and_prices(kernel, known, weight, labels, 3))
    assert priced + model.shift_ * (len(kernel) - len(set(labels))) == pytest.approx(model.objective_, abs=1e-8 * scale)
    if model.shift_ == 0:
        return
    for row, home in enumerate(labels):
        if labels.count(home) > 1:
            for cluster in range(3):
                moved = [*labels[:row], cluster, *labels[row + 1 :]]
                assert float(reference.objective(S, moved, 3) - now) >= -1e-8 * scale


@given(kernel=kernels(), seed=st.integers(0, 99), weight=st.sampled_from([0.5, 8.0]))
@examples(40)
def test_the_shift_leaves_no_negative_eigenvalue_and_is_no_larger_than_needed(kernel, seed, weight):
    similarity = kernel.copy()
    add_pairs(similarity, random_knowledge(np.random.default_rng(seed), len(kernel)), weight)
    shift = shift_of(similarity)
    smallest = np.linalg.eigvalsh(similarity)[0]
    assert shift >= 0
    assert shift == pytest.approx(max(-smallest, 0), abs=1e-9 * (1 + np.abs(similarity).max()))


@given(seed=st.integers(0, 9999))
@examples(30)
def test_a_linear_kernel_without_constraints_is_kmeans_from_the_same_start(seed):
    X = whole_numbers(np.random.default_rng(seed), 14)
    model = SemiSupervisedKernelKMeans(3, kernel="linear", init=[0, 1, 2]).fit(X)
    try:
        reference.kernel_kmeans(kmeans.exact(X @ X.T), 0, [0, 1, 2], [[row] for row in range(14)], single=False)
    except kmeans.TieError:
        return
    plain = KMeans(3, init=X[:3], n_init=1, tol=0, algorithm="lloyd").fit(X)
    assert model.cluster_of_.tolist() == plain.labels_.tolist()
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-9)
