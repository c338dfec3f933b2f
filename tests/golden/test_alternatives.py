"""CondEns and CoordinatedConditionalIB against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from clew import CondEns, CoordinatedConditionalIB
from clew.alternative._cond_ens import inertia
from clew.alternative._coordinated_conditional_ib import Masses, feature_table, swap_names
from clew.kernels.information_moves import move_rows_by_information
from tests.helpers import whole_numbers
from tests.reference import alternatives as reference


def halves(rows):
    """Above or below the mean of the first column."""
    rows = np.asarray(rows)
    return (rows[:, 0] > rows[:, 0].mean()).astype(int).tolist()


class Halves(BaseEstimator):
    def fit_predict(self, X, y=None):
        return np.array(halves(X))


@pytest.mark.parametrize("draw", range(5))
def test_members_and_their_combination_are_those_of_plain_loops(draw, seed):
    rng = np.random.default_rng([seed, draw])
    X, given = whole_numbers(rng, 8), rng.permutation([0, 0, 0, 1, 1, 1, 1, 1])
    model = CondEns(2, clusterer=Halves(), random_state=0).fit(X, given=given)
    expected = reference.members(X.tolist(), given.tolist(), halves)
    assert model.members_.T.tolist() == list(expected.values())
    assert model.member_clusters_.tolist() == [list(dict.fromkeys(given.tolist())).index(one) for one in expected]
    weights = [given.tolist().count(one) for one in expected]
    kernel = reference.co_association(list(expected.values()), weights)
    assert reference.kernel_cost(kernel, model.labels_.tolist()) == pytest.approx(
        reference.least_kernel_cost(kernel, 2), abs=1e-12
    )
    centers = {label: X[model.labels_ == label].mean(axis=0) for label in set(model.labels_.tolist())}
    cost = sum(
        reference.square_distance(row, centers[label]) for row, label in zip(X, model.labels_.tolist(), strict=True)
    )
    assert model.inertia_ == pytest.approx(cost)
    assert inertia(X, model.labels_) == model.inertia_


def counts_of(rng, n_rows=9, n_features=5):
    counts = rng.integers(0, 4, size=(n_rows, n_features)) + np.eye(n_features, dtype=int)[np.arange(n_rows) % 5]
    given = rng.permutation(np.arange(n_rows) % 2)
    return counts, given, (counts / counts.sum(axis=1, keepdims=True)).tolist()


WEIGHTS = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.5, 0.5, 0.0), (0.7, 0.3, 0.2)]


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_objective_is_that_of_plain_loops(weights, seed):
    rng = np.random.default_rng(seed)
    counts, given, P = counts_of(rng)
    labels = rng.permutation(np.arange(9) % 3)
    table = feature_table(counts, given, None)
    found = Masses.of(table, labels, 3).objective(table, np.array(weights))
    assert found == pytest.approx(reference.objective(P, given.tolist(), labels.tolist(), weights), abs=1e-12)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_pass_of_moves_is_that_of_plain_loops(weights, seed):
    rng = np.random.default_rng(seed)
    counts, given, P = counts_of(rng)
    labels, order = rng.permutation(np.arange(9) % 3), rng.permutation(9)
    table = feature_table(counts, given, None)
    masses = Masses.of(table, labels, 3)
    expected = reference.one_pass(P, given.tolist(), labels.tolist(), 3, weights, order.tolist())
    before, sizes = labels.copy(), np.bincount(labels, minlength=3)
    n_moves = move_rows_by_information(
        order, table.row_ptr, table.features, table.masses, table.side, np.array(weights), 1e-9, labels, sizes, *masses
    )
    assert labels.tolist() == expected
    assert n_moves >= np.count_nonzero(labels != before)
    assert sizes.tolist() == np.bincount(labels, minlength=3).tolist()
    for kept, fresh in zip(masses, Masses.of(table, labels, 3), strict=True):
        np.testing.assert_allclose(kept, fresh, atol=1e-12)


def test_names_are_swapped_where_that_lowers_the_objective(seed):
    """The clusters of the second given cluster have each other's names; no single move mends that."""
    counts = np.array([[9, 0], [9, 0], [0, 9], [0, 9]] * 2)
    given, labels = np.repeat([0, 1], 4), np.array([0, 0, 1, 1, 1, 1, 0, 0])
    table, weights = feature_table(counts, given, None), np.array([0.9, 0.1, 0.0])
    masses = Masses.of(table, labels, 2)
    before = masses.objective(table, weights)
    assert swap_names(labels, given, masses, weights)
    assert masses.objective(table, weights) < before - 0.01
    assert masses.conditional_information() == pytest.approx(np.log(2))
    assert len({(feature, label) for feature, label in zip(counts.argmax(axis=1), labels, strict=True)}) == 2
    for kept, fresh in zip(masses, Masses.of(table, labels, 2), strict=True):
        np.testing.assert_allclose(kept, fresh, atol=1e-12)
    assert not swap_names(labels, given, masses, weights)


def test_the_best_start_finds_the_least_objective_of_all_labellings(seed):
    rng = np.random.default_rng(seed)
    counts, given, P = counts_of(rng, n_rows=7)
    model = CoordinatedConditionalIB(2, coordination=0.3, n_bins=None, n_init=40, random_state=0).fit(
        counts, given=given
    )
    costs = [
        reference.objective(P, given.tolist(), [int(bit) for bit in f"{number:07b}"], (0.7, 0.3, 0.0))
        for number in range(1, 2**7 - 1)
    ]
    assert model.objective_ == pytest.approx(min(costs), abs=1e-9)
