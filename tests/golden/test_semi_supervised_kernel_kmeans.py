"""SemiSupervisedKernelKMeans against plain loops over exact fractions, and its errors for invalid kernels."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints, SemiSupervisedKernelKMeans
from clew.evaluation import same_partition
from clew.exceptions import DataError, IndefiniteKernelWarning, ParameterError
from clew.graph._semi_supervised_kernel_kmeans import add_pairs
from clew.kernels.kernel_moves import move_blocks
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import kmeans
from tests.reference import semi_supervised_kernel_kmeans as reference

pytestmark = pytest.mark.filterwarnings("ignore::clew.exceptions.FewerClustersWarning")


def problem(seed, n=9):
    rng = np.random.default_rng(seed)
    X = whole_numbers(rng, n)
    return X @ X.T, random_knowledge(rng, n, sure=False)


def test_labels_and_objective_are_those_of_plain_loops(seed):
    kernel, known = problem(seed)
    model = SemiSupervisedKernelKMeans(3, kernel="precomputed", penalty=701.0, init=[0, 1, 2]).fit(
        kernel, constraints=known
    )
    S = reference.with_pairs(kernel, known, 701 * 9 / 6)
    try:
        single = model.shift_ > 0 or kmeans.exact(kernel) != S
        labels, _ = reference.kernel_kmeans(S, model.shift_, [0, 1, 2], reference.blocks_of(known, 9), single=single)
    except kmeans.TieError:
        pytest.skip("a tie, which rounding decides")
    places = model.cluster_of_
    assert len({(a, b) for a, b in zip(labels, places, strict=True)}) == len(set(labels))
    priced = reference.inertia_and_prices(kernel, known, 701 * 9 / 6, labels, 3)
    n_filled = len(set(labels))
    assert model.objective_ == pytest.approx(float(priced) + model.shift_ * (9 - n_filled), rel=1e-9)


def test_pairs_are_added_as_written_out(seed):
    kernel, known = problem(seed)
    found = kernel.copy()
    add_pairs(found, known, 64.0)
    assert found.tolist() == [[float(value) for value in row] for row in reference.with_pairs(kernel, known, 64)]


@pytest.mark.parametrize("blocks", [[[row] for row in range(8)], [[0, 3], [1], [2, 5, 7], [4], [6]]])
def test_moves_are_those_of_plain_loops(blocks, seed):
    rng = np.random.default_rng(seed)
    n, k = 8, 3
    upper = np.triu(rng.integers(-99, 100, size=(n, n)))
    S = (upper + upper.T).astype(float)
    start = rng.integers(k, size=len(blocks))
    labels = np.empty(n, dtype=np.int64)
    for block, label in zip(blocks, start, strict=True):
        labels[block] = label
    labels[7] = k - 1  # a block that is not whole stays
    before = labels.tolist()
    try:
        expected = reference.moves(kmeans.exact(S), before, blocks, k)
    except kmeans.TieError:
        pytest.skip("a tie, which rounding decides")
    inside = (labels == np.arange(k)[:, None]).astype(float)
    sums = inside @ S
    sizes, within = inside.sum(axis=1).astype(np.int64), np.einsum("cn,cn->c", inside, sums)
    pointers = np.cumsum([0, *map(len, blocks)])
    own = np.array([S[np.ix_(block, block)].sum() for block in blocks])
    n_moves = move_blocks(pointers, np.concatenate(blocks), own, S, 0.0, 1e-9, labels, sums, sizes, within)
    assert labels.tolist() == expected
    inside = (labels == np.arange(k)[:, None]).astype(float)
    assert sums.tolist() == (inside @ S).tolist()
    assert sizes.tolist() == inside.sum(axis=1).tolist()
    assert within.tolist() == np.einsum("cn,cn->c", inside, sums).tolist()
    assert (n_moves > 0) == (expected != before)


def test_an_indefinite_kernel_is_shifted_and_said():
    kernel = np.array([[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    model = SemiSupervisedKernelKMeans(2, kernel="precomputed", random_state=0)
    with pytest.warns(IndefiniteKernelWarning, match="smallest eigenvalue is -3"):
        model.fit(kernel)
    assert model.shift_ == pytest.approx(3)
    assert model.labels_[0] == model.labels_[1] != model.labels_[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda K: np.where(np.eye(4) > 0, np.nan, K), "NaN at row 0, column 0"),
        (lambda K: K + np.arange(4), "rows 0 and 3 is 3 one way and 0 the other"),
        (lambda K: K[:, :3], "expected a square matrix"),
    ],
)
def test_matrices_that_are_no_kernel_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        SemiSupervisedKernelKMeans(2, kernel="precomputed").fit(change(np.eye(4)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda first, second: np.ones((len(first), 1)), r"shape \(4, 1\): expected \(4, 4\)"),
        (lambda first, second: np.full((len(first), len(second)), np.nan), "returned NaN or infinity"),
        (lambda first, second: first - second.T, "one way and .* the other"),
    ],
)
def test_functions_that_are_no_kernel_are_refused(kernel, message):
    with pytest.raises(DataError, match=message):
        SemiSupervisedKernelKMeans(2, kernel=kernel).fit(np.arange(4.0)[:, None])


@pytest.mark.parametrize(
    ("rows", "message"), [([0, 9], "names row 9"), ([-1, 0], "names row -1"), ([0.5, 1.0], "expected 2 row positions")]
)
def test_initial_rows_that_do_not_exist_are_refused(rows, message):
    with pytest.raises(ParameterError, match=message):
        SemiSupervisedKernelKMeans(2, kernel="linear", init=rows).fit(np.arange(4.0)[:, None])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_new_rows_go_to_the_nearest_mean(kernel, seed):
    X = whole_numbers(np.random.default_rng(seed), 20) / 50
    model = SemiSupervisedKernelKMeans(3, kernel=kernel, random_state=0).fit(X)
    assert model.predict(X).tolist() == model.labels_.tolist()
    matrix = model._kernel(X, X)
    same = SemiSupervisedKernelKMeans(3, kernel="precomputed", random_state=0).fit(matrix)
    assert same_partition(same.labels_, model.labels_)
    assert same.predict(matrix[:5]).tolist() == same.labels_[:5].tolist()
    known = Constraints([(0, 1)], n_samples=20)
    assert len(model.fit(X, constraints=known).predict(X + 0.1)) == 20
