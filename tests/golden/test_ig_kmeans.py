"""IGKMeans against plain loops over all pairs, in the same visiting order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from clew import Constraints, IGKMeans
from clew.evaluation import same_partition
from clew.exceptions import ConstraintError, ParameterError
from clew.partitional._geometry import Problem
from clew.partitional._ig_kmeans import given_pairs, ig_kmeans
from clew.partitional._seeding import initial_centers
from tests.helpers import random_knowledge
from tests.reference import assign
from tests.reference import ig_kmeans as reference

# Sums of a dozen cosines.
ROUNDING = 1e-12


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("consistent", [True, False])
def test_matches_reference_on_random_knowledge(consistent, form, seed):
    rng = np.random.default_rng(seed)
    compared = 0
    for turn in range(150):
        n, n_clusters = int(rng.integers(3, 11)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, 3)) + rng.choice([0, 1])
        known = random_knowledge(rng, n, n_classes=n_clusters, consistent=consistent, sure=bool(turn % 2))
        init = reference_init = [reference.direction([row]) for row in X[rng.choice(n, n_clusters, replace=False)]]
        rho = float(rng.uniform(0.05, 1))
        order = np.random.default_rng(turn)
        expected = reference.ig_kmeans(
            X.tolist(), known, reference_init, rho, lambda count, order=order: order.permutation(count).tolist()
        )
        if expected is None:
            continue
        problem, draws = Problem.prepare(form(X), np.empty(0), "cosine"), np.random.default_rng(turn)
        start = initial_centers(problem, known.closure(), np.arange(n_clusters), np.array(init), "mean", draws)
        found = ig_kmeans(problem, known, start, draws, rho, max_iter=300, tol=0.0)
        labels, centers, history = expected
        assert found.labels.tolist() == labels
        np.testing.assert_allclose(found.centers, centers, atol=1e-9)
        np.testing.assert_allclose(found.history, history, atol=ROUNDING * n * n)
        compared += 1
    assert compared > 60


def test_pairs_are_those_of_groups_and_classes_too(seed):
    rng = np.random.default_rng(seed)
    for turn in range(100):
        known = random_knowledge(rng, 9, consistent=bool(turn % 2), sure=turn % 3 == 0)
        must, must_sure, cannot, cannot_sure = given_pairs(known)
        expected = assign.given_pairs(known)
        for pairs, sure, stated in ((must, must_sure, expected[0]), (cannot, cannot_sure, expected[1])):
            assert dict(zip(map(tuple, pairs.tolist()), sure.tolist(), strict=True)) == stated


@given(rho=st.floats(0.01, 1), turn=st.integers(0, 10_000))
def test_the_objective_is_equation_72_and_never_rises(rho, turn):
    rng = np.random.default_rng(turn)
    X = rng.normal(size=(12, 2)) + 1
    known = random_knowledge(rng, 12, consistent=False, sure=False)
    model = IGKMeans(3, rho=rho, n_init=2, random_state=turn).fit(X, constraints=known)
    places = [model.cluster_labels_.tolist().index(label) for label in model.labels_.tolist()]
    expected = reference.objective(X.tolist(), known, places, model.cluster_centers_.tolist(), rho)
    # The price comes out of the sums of the rounds, which 1 / rho scales up.
    assert model.objective_ == pytest.approx(expected, abs=1e-10)
    assert (np.diff(model.objective_history_) <= 1e-10).all()


def test_no_row_can_move_to_a_cheaper_cluster(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 2)) + 0.5
    known = random_knowledge(rng, 15, consistent=False)
    model = IGKMeans(3, rho=0.3, tol=0, random_state=seed).fit(X, constraints=known)
    centers = model.cluster_centers_.tolist()
    labels = model.labels_.tolist()
    assert model.cluster_labels_.tolist() == [0, 1, 2]
    for row in range(15):
        for cluster in range(3):
            moved = [*labels[:row], cluster, *labels[row + 1 :]]
            assert reference.objective(X.tolist(), known, moved, centers, 0.3) >= model.objective_ - ROUNDING


def test_pairs_win_as_rho_falls():
    angles = np.array([0.0, 0.1, 0.5, 1.2, 1.3])
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    known = Constraints(must_link=[(2, 4)], cannot_link=[(2, 0), (2, 1)], n_samples=5)
    for rho, expected in ((1.0, [0, 0, 0, 1, 1]), (0.2, [0, 0, 1, 1, 1])):
        model = IGKMeans(2, rho=rho, init=X[[0, 4]], random_state=0).fit(X, constraints=known)
        assert same_partition(model.labels_, expected)


def test_an_obtuse_cannot_link_is_no_reward():
    X = np.array([[1.0, 0.0], [-1.0, 0.1]])
    model = IGKMeans(1, rho=0.5).fit(X, constraints={"cannot_link": [(0, 1)]})
    assert model.objective_ == pytest.approx(0.5 * model.inertia_)


@pytest.mark.parametrize("rho", [0, -0.1, 1.1, float("nan"), True, "half"])
def test_rho_outside_its_range_is_refused(rho):
    with pytest.raises(ParameterError, match=r"rho=.*in IGKMeans: expected a number above 0 and up to 1"):
        IGKMeans(2, rho=rho).fit([[1.0, 0.0], [0.0, 1.0]])


def test_too_many_labelled_rows_are_refused_with_the_count():
    labels = np.arange(3000) % 2
    with pytest.raises(ConstraintError, match="state 6747000 pairs, more than the 2000000"):
        IGKMeans(2).fit(np.ones((3000, 2)), constraints=labels)
