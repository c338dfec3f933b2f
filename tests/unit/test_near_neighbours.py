"""The epsilon-constraint: every row has a cluster-mate within epsilon."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from clew import Constraints, COPKMeans
from clew.exceptions import ConstraintError, DataError, InfeasibleConstraintsError, ParameterError
from tests.reference.constraints import is_satisfied

LINE = np.array([[0.0], [1.0], [5.0], [6.0]])


def lonely_rows(X, epsilon, labels):
    """Rows without a cluster-mate within epsilon, pair by pair."""
    return [
        i
        for i in range(len(X))
        if labels[i] >= 0
        and not any(j != i and labels[j] == labels[i] and np.linalg.norm(X[i] - X[j]) <= epsilon for j in range(len(X)))
    ]


def test_violations_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    for _ in range(50):
        X = rng.integers(0, 4, (12, 2)).astype(float)
        epsilon = float(rng.choice([1.0, 1.5, 2.0, 9.0]))
        labels = rng.integers(-1, 3, 12)
        try:
            near = Constraints.near_neighbours(X, epsilon)
        except ConstraintError:
            assert lonely_rows(X, epsilon, np.zeros(12))
            continue
        assert near.violations(labels).tolist() == lonely_rows(X, epsilon, labels)
        assert near.holds(labels) == (not lonely_rows(X, epsilon, labels))


def test_the_boundary_counts_and_neighbours_come_nearest_first():
    near = Constraints.near_neighbours([[0.0], [2.0], [3.0], [1.0]], 2.0)
    assert near.neighbours(1).tolist() == [2, 3, 0]
    assert repr(near) == "<NearNeighbours: each of 4 rows has a cluster-mate within 2>"
    assert len(near) == 4


def test_rows_without_any_neighbour_are_named():
    with pytest.raises(
        ConstraintError, match=r"^Row 2 has no other row within epsilon=1\.5\. Raise epsilon, or leave it"
    ):
        Constraints.near_neighbours([[0.0], [1.0], [9.0]], 1.5)
    with pytest.raises(ConstraintError, match=r"^Rows b and c have no other row within epsilon=1\. Raise epsilon, or "):
        Constraints.near_neighbours([[0.0], [4.0], [9.0], [0.5]], 1.0, ids=["a", "b", "c", "d"])


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_bad_epsilon(epsilon):
    with pytest.raises(ParameterError, match=r"^epsilon=.*: expected a distance above 0\.$"):
        Constraints.near_neighbours(LINE, epsilon)


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), "1"])
def test_bad_epsilon_of_the_method(epsilon):
    with pytest.raises(ParameterError, match=r"epsilon=.* in COPKMeans: expected a finite number > 0 or None"):
        COPKMeans(2, epsilon=epsilon).fit(LINE)


def test_bad_labels_and_data():
    near = Constraints.near_neighbours(LINE, 2)
    with pytest.raises(ConstraintError, match=r"^labels has shape \(3,\), but the statement is about 4 rows\.$"):
        near.violations([0, 0, 1])
    with pytest.raises(DataError, match=r"^X contains nan at row 1, column 0"):
        Constraints.near_neighbours([[0.0], [np.nan]], 2)
    with pytest.raises(DataError, match=r"^X is sparse, but epsilon in COPKMeans needs a dense table"):
        COPKMeans(2, epsilon=1.0).fit(sparse.csr_array(LINE))


def test_an_impossible_combination_is_refused():
    near = Constraints.near_neighbours(LINE, 2)
    known = Constraints(cannot_link=[(0, 1)], n_samples=4)
    with pytest.raises(
        InfeasibleConstraintsError, match=r"^No labelling with n_clusters=3 gives every row a cluster-mate"
    ):
        near.must_links(known, 3)
    with pytest.raises(InfeasibleConstraintsError, match=r"epsilon=2 and satisfies the other constraints\."):
        COPKMeans(2, epsilon=2.0).fit(LINE, constraints=known)


def test_without_lonely_rows_the_method_is_unchanged(seed):
    X = np.random.default_rng(seed).normal(size=(60, 2))
    plain = COPKMeans(3, random_state=0).fit(X)
    assert np.array_equal(COPKMeans(3, epsilon=50.0, random_state=0).fit(X).labels_, plain.labels_)


def test_the_method_honours_it_or_no_labelling_does(seed):
    rng = np.random.default_rng(seed)
    n_fits = n_refused = n_changed = 0
    for _ in range(60):
        X = rng.integers(0, 6, (7, 2)).astype(float)
        epsilon = float(rng.choice([1.0, 1.5, 2.3]))
        if lonely_rows(X, epsilon, np.zeros(7)):
            continue
        pairs = [rng.choice(7, 2, replace=False).tolist() for _ in range(int(rng.integers(0, 5)))]
        known = Constraints(pairs[:1], pairs[1:], n_samples=7)
        k = int(rng.integers(1, 4))
        possible = any(
            is_satisfied(labels, known) and not lonely_rows(X, epsilon, labels)
            for labels in product(range(k), repeat=7)
        )
        try:
            labels = COPKMeans(k, epsilon=epsilon, n_init=1, random_state=0).fit(X, constraints=known).labels_
        except ConstraintError:
            assert not possible
            n_refused += 1
            continue
        assert is_satisfied(labels, known)
        assert lonely_rows(X, epsilon, labels) == []
        n_fits += 1
        n_changed += len(
            lonely_rows(X, epsilon, COPKMeans(k, n_init=1, random_state=0).fit(X, constraints=known).labels_)
        )
    assert n_fits > 5 and n_refused and n_changed
