"""ConstrainedKMedoids: warm starts, limits, callbacks, and the messages about bad input."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from clew import ConstrainedKMedoids
from clew.dissimilarity import dissimilarities
from clew.exceptions import DataError, InfeasibleConstraintsError, ParameterError, WorkLimitError

LINE = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [30.0]])


@pytest.fixture
def rows(seed):
    return np.random.default_rng(seed).normal(size=(40, 2))


def distances(X):
    return np.abs(X[:, None] - X[None]).sum(axis=-1)


@pytest.mark.parametrize(
    "X, message",
    [
        (distances(LINE)[:, :5], r"shape \(6, 5\): expected a square matrix"),
        (np.where(distances(LINE) == 7, np.nan, distances(LINE)), "X contains NaN at row 1, column 3"),
        (distances(LINE) - 1, "between rows 0 and 0 is -1: expected a finite number >= 0"),
        (distances(LINE[:2]), "n_clusters=3, but X has n_samples=2 rows"),
    ],
)
def test_matrices_that_cannot_be_used_are_refused(X, message):
    with pytest.raises(DataError, match=message):
        ConstrainedKMedoids(3, metric="precomputed").fit(X)


def test_a_function_with_a_negative_result_is_refused():
    with pytest.raises(DataError, match="between rows 0 and 1 is -1: expected a finite number >= 0"):
        ConstrainedKMedoids(2, metric=lambda a, b: float(a[0] - b[0])).fit(LINE)


def test_infeasible_constraints_are_refused_with_their_rows():
    with pytest.raises(InfeasibleConstraintsError, match="Rows 0, 1 and 2 are pairwise cannot-linked"):
        ConstrainedKMedoids(2).fit(LINE, constraints={"cannot_link": [(0, 1), (1, 2), (0, 2)]})


def test_a_limit_before_any_feasible_solution_is_an_error(rows):
    rng = np.random.default_rng(0)
    hidden = rng.integers(3, size=40)
    pairs = [(i, j) for i in range(40) for j in range(i) if hidden[i] != hidden[j] and rng.random() < 0.3]
    with pytest.raises(WorkLimitError, match="work_limit=0"):
        ConstrainedKMedoids(3, work_limit=0).fit(rows, constraints={"cannot_link": pairs})


@pytest.mark.parametrize(
    "init, message",
    [
        ([0, 1, 2], r"shape \(3,\).*expected 2 row positions"),
        ([0.5, 1.5], "type float64: expected 2 row positions"),
        ([0, 6], "names row 6, but X has 6 rows"),
        ([3, 3], r"names a row twice: \[3, 3\]"),
    ],
)
def test_wrong_first_medoids_are_refused(init, message):
    with pytest.raises(ParameterError, match=message):
        ConstrainedKMedoids(2, init=init).fit(LINE)


def test_a_warm_start_is_never_worse(rows):
    first = ConstrainedKMedoids(5, max_iter=3, random_state=0).fit(rows)
    again = ConstrainedKMedoids(5, init=first.medoid_indices_, max_iter=0).fit(rows)
    assert again.inertia_ == first.inertia_


def test_a_callback_sees_every_shake_and_can_end_the_search(rows):
    seen = []
    ConstrainedKMedoids(4, max_iter=7, callback=seen.append, random_state=0).fit(rows)
    assert [progress.n_iter for progress in seen] == list(range(1, 8))
    assert (np.diff([progress.inertia for progress in seen]) <= 0).all()
    model = ConstrainedKMedoids(4, max_iter=7, callback=lambda progress: progress.n_iter < 3, random_state=0).fit(rows)
    assert model.n_iter_ == 3


def test_a_time_limit_ends_the_search_and_the_proof_says_what_is_left(seed):
    X = np.random.default_rng(seed).normal(size=(120, 6))
    assert ConstrainedKMedoids(4, time_limit=1e-9, random_state=0).fit(X).n_iter_ == 0
    with pytest.warns(ConvergenceWarning, match="before the result was proven optimal"):
        model = ConstrainedKMedoids(9, solver="exact", time_limit=1e-9, random_state=0).fit(X)
    assert model.lower_bound_ < model.inertia_
    assert model.gap_ == pytest.approx(1 - model.lower_bound_ / model.inertia_)


def test_rows_of_a_matrix_are_costs_of_rows_and_columns_are_medoids():
    one_way = np.array(
        [[0.0, 1.0, 1.0], [9.0, 0.0, 9.0], [9.0, 9.0, 0.0]]
    )  # row 0 is near to all, nothing is near to it
    model = ConstrainedKMedoids(2, metric="precomputed", random_state=0).fit(one_way)
    assert model.medoid_indices_.tolist() == [1, 2]
    assert model.inertia_ == 1.0
    assert model.predict([[5.0, 4.0, 3.0]]).tolist() == [1]
    function = ConstrainedKMedoids(2, metric=lambda a, b: one_way[int(a[0]), int(b[0])], random_state=0)
    assert function.fit([[0.0], [1.0], [2.0]]).inertia_ == 1.0


def test_the_history_names_the_final_objective_once():
    model = ConstrainedKMedoids(2, random_state=0).fit(LINE)
    assert model.objective_history_.tolist().count(model.objective_) == 1


def test_items_of_any_kind_are_clustered_by_a_function_and_bad_functions_are_named():
    visits = [["home", "cart"], ["home", "cart", "pay"], ["help"], ["help", "contact"], ["cart", "pay"]]
    matrix = dissimilarities(visits, lambda one, other: len(set(one) - set(other)))
    assert matrix[0, 1] == 0 and matrix[1, 0] == 1  # asymmetric
    labels = ConstrainedKMedoids(2, metric="precomputed", random_state=0).fit(matrix).labels_
    assert labels[0] == labels[1] == labels[4] != labels[2] == labels[3]
    with pytest.raises(DataError, match=r"rows of X have different lengths.*clew\.dissimilarity"):
        ConstrainedKMedoids(2, metric=lambda one, other: 1.0).fit(visits)
    with pytest.raises(DataError, match="between rows 0 and 1 is -1: expected a finite number >= 0"):
        dissimilarities(["a", "b"], lambda one, other: -float(one != other))
    with pytest.raises(ParameterError, match="measure='edit' in dissimilarities: expected a function"):
        dissimilarities(["a"], "edit")
    with pytest.raises(DataError, match="at least one item"):
        dissimilarities([], len)
    for call in (
        lambda: dissimilarities(["a", "b"], lambda one, other: "near"),
        lambda: ConstrainedKMedoids(2, metric=lambda one, other: "near").fit([[0.0], [1.0], [2.0]]),
    ):
        with pytest.raises(DataError, match=r"gives .near. for two rows: expected a number"):
            call()
