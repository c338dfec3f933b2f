"""The door: parameters, rows, weights, randomness."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator

import clew
from clew import _validation as validation
from clew.datasets import encode
from clew.exceptions import ClewError, DataError, DataTypeError, ParameterError

ALLOWED = {
    "integer": (validation.integer(1), [1, 5, np.int32(7)], [0, -1, 1.0, True, "1", None, np.nan]),
    "number": (validation.number(0), [0, 0.5, 3, np.float32(2)], [-0.1, np.nan, np.inf, True, "1", None, 1j, 10**400]),
    "range": (validation.number(0, 1), [0, 1, 0.5], [1.01, -0.01, np.nan, False]),
    "words": (validation.words("a", "b"), ["a", "b"], ["A", "", None, 1, ["a"]]),
    "array": (validation.array_like(), [[1], np.zeros(2), pd.DataFrame({"x": [1]})], ["text", 3, None]),
    "boolean": (validation.BOOLEAN, [True, False, np.True_], [0, 1, None, "yes"]),
    "none": (validation.NONE, [None], [0, "", False]),
    "random-state": (
        validation.RANDOM_STATE,
        [None, 0, 7, np.int64(3), np.random.default_rng(), np.random.RandomState(0), np.random],
        [-1, 1.5, "seed", True],
    ),
}


@pytest.mark.parametrize(("allowed", "right", "wrong"), ALLOWED.values(), ids=ALLOWED)
def test_allowed_values(allowed, right, wrong):
    assert all(allowed.accepts(value) for value in right)
    assert not any(allowed.accepts(value) for value in wrong)


def test_one_or_the_other():
    either = validation.integer(1) | validation.words("auto") | validation.NONE
    assert either.what == "an integer >= 1 or 'auto' or None"
    assert all(either.accepts(value) for value in (1, "auto", None))
    assert not either.accepts(0)


@pytest.mark.parametrize(
    ("allowed", "value", "message"),
    [
        (validation.integer(1), 0, "k=0 in Owner: expected an integer >= 1."),
        (validation.number(0), np.nan, "k=nan in Owner: expected a finite number >= 0."),
        (validation.number(0, 1), 2, "k=2 in Owner: expected a number from 0 to 1."),
        (validation.words("x", "y"), "z", "k='z' in Owner: expected 'x' or 'y'."),
        (validation.BOOLEAN, 1, "k=1 in Owner: expected True or False."),
    ],
)
def test_a_parameter_is_refused_with_its_value_and_what_was_expected(allowed, value, message):
    Owner = type("Owner", (SimpleNamespace,), {})
    with pytest.raises(ParameterError) as caught:
        validation.check_parameters(Owner(k=value), {"k": allowed})
    assert str(caught.value) == message


def test_right_parameters_pass():
    owner = SimpleNamespace(k=3, tol=0.1)
    allowed = {"k": validation.integer(1), "tol": validation.number(0)}
    assert validation.check_parameters(owner, allowed) is None


def test_generators():
    assert validation.as_generator(3).integers(1000) == np.random.default_rng(3).integers(1000)
    generator = np.random.default_rng(0)
    assert validation.as_generator(generator) is generator
    first, second = (validation.as_generator(np.random.RandomState(5)).integers(10**9) for _ in range(2))
    assert first == second
    state = np.random.RandomState(5)
    assert validation.as_generator(state).integers(10**9) != validation.as_generator(state).integers(10**9)
    before = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(9)  # noqa: NPY002
        drawn = validation.as_generator(np.random).integers(10**9)
        np.random.seed(9)  # noqa: NPY002
        assert validation.as_generator(np.random).integers(10**9) == drawn
    finally:
        np.random.set_state(before)  # noqa: NPY002


class Anything(BaseEstimator):
    pass


def checked(X, *, accept_sparse=True):
    return validation.check_rows(Anything(), X, reset=True, accept_sparse=accept_sparse)


@pytest.mark.parametrize(
    "X",
    [
        pytest.param([[1, 2], [3, 4]], id="lists"),
        pytest.param(np.array([[1, 2], [3, 4]], order="F"), id="column-major"),
        pytest.param(pd.DataFrame({"a": [1, 3], "b": [2, 4]}), id="pandas"),
        pytest.param(pl.DataFrame({"a": [1, 3], "b": [2, 4]}), id="polars"),
        pytest.param(pa.table({"a": [1, 3], "b": [2, 4]}), id="arrow"),
        pytest.param(pd.DataFrame({"a": [1, 3], "b": [2, 4]}, dtype="Int64"), id="pandas-nullable"),
    ],
)
def test_rows_become_contiguous_floats(X):
    rows = checked(X)
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous
    assert rows.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_float32_is_kept():
    assert checked(np.ones((2, 2), dtype=np.float32)).dtype == np.float32
    assert checked(sparse.csr_array(np.ones((2, 2), dtype=np.float32))).dtype == np.float32


def test_read_only_rows_are_fine():
    X = np.ones((2, 2))
    X.flags.writeable = False
    assert checked(X).tolist() == [[1, 1], [1, 1]]


def test_sparse_rows_become_csr_where_they_may():
    X = sparse.csc_array([[0.0, 1.0], [2.0, 0.0]])
    assert checked(X).format == "csr"
    with pytest.raises(DataTypeError, match=r"[Ss]parse data was passed"):
        checked(X, accept_sparse=False)


def test_sparse_rows_with_long_indices():
    # What scipy makes of coordinates that are numpy integers.
    X = sparse.coo_array((np.array([1.0, 2.0]), (np.array([0, 1]), np.array([1, 0]))), shape=(2, 2)).tocsr()
    assert X.indices.dtype == np.int64
    assert checked(X).toarray().tolist() == [[0.0, 1.0], [2.0, 0.0]]


MISSING = {
    "nan": ([[0.0, 1.0], [np.nan, 2.0]], "X contains NaN at row 1, column 0. Fill it in, or drop the row."),
    "infinity": ([[0.0, -np.inf]], "X contains infinity (inf) at row 0, column 1. Fill it in, or drop the row."),
    "both": ([[np.inf, -np.inf]], "X contains infinity (inf) at row 0, column 0. Fill it in, or drop the row."),
    "float32": (
        np.array([[1, np.nan]], dtype=np.float32), "X contains NaN at row 0, column 1. Fill it in, or drop the row.",
    ),
    "pandas": (
        pd.DataFrame({"a": [1.0, 2.0], "age": [1.0, None]}),
        "X contains NaN at row 1, column 1 ('age'). Fill it in, or drop the row.",
    ),
    "polars": (
        pl.DataFrame({"a": [1.0, 2.0], "age": [1.0, float("nan")]}),
        "X contains NaN at row 1, column 1 ('age'). Fill it in, or drop the row.",
    ),
    "sparse": (
        sparse.csr_array([[1.0, 0, 0], [0, 0, 0], [2.0, 0, np.nan]]),
        "X contains NaN at row 2, column 2. Fill it in, or drop the row.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("X", "message"), MISSING.values(), ids=MISSING)
def test_missing_values_are_refused_with_their_place(X, message):
    with pytest.raises(DataError) as caught:
        checked(X)
    assert str(caught.value) == message


def test_values_whose_squares_overflow():
    assert checked([[1e150, 1e150], [1e150, 1.0]]).shape == (2, 2)
    with pytest.raises(DataError, match=r"X holds 1e\+308: its square is too large for float64 numbers\. Scale X\."):
        checked([[1e308, 1e308], [1e308, 1.0]])


@pytest.mark.parametrize(
    ("X", "shown"),
    [
        pytest.param(
            pd.DataFrame({"x": [1.0], "city": ["Oslo"]}), r"Column 'city' of X holds text \('Oslo'\)", id="pandas"
        ),
        pytest.param(
            pl.DataFrame({"x": [1.0], "city": ["Oslo"]}), r"Column 'city' of X holds text \('Oslo'\)", id="polars"
        ),
        pytest.param(pa.table({"city": [None, "Oslo"]}), r"Column 'city' of X holds text \('Oslo'\)", id="arrow"),
        pytest.param(
            pd.DataFrame({"city": pd.Series(["Oslo"], dtype="category")}),
            r"Column 'city' of X holds text",
            id="category",
        ),
        pytest.param(np.array([["Oslo"]], dtype=object), r"X holds text \('Oslo'\)", id="objects"),
        pytest.param([["Oslo", "Rome"]], r"X holds text|could not convert", id="lists"),
    ],
)
def test_text_is_refused_with_a_remedy(X, shown):
    with pytest.raises(DataError, match=f"^{shown}"):
        checked(X)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        pytest.param([1.0, 2.0], "Expected 2D array, got 1D array", id="flat"),
        pytest.param([], "X has no rows. Give at least one.", id="empty"),
        pytest.param(np.empty((0, 2)), r"0 sample\(s\)", id="no-rows"),
        pytest.param(np.empty((2, 0)), r"0 feature\(s\)", id="no-columns"),
        pytest.param([[1.0], [1.0, 2.0]], "The rows of X have different lengths", id="ragged"),
        pytest.param([[1 + 2j]], "[Cc]omplex", id="complex"),
    ],
)
def test_shapes_that_are_no_table(X, message):
    with pytest.raises(DataError, match=message):
        checked(X)


@pytest.mark.parametrize("weight", [None, 1, 1.0, [1, 1, 1], np.ones(3)])
def test_weights_of_one_are_no_weights(weight):
    assert validation.check_weights(weight, 3).size == 0


def test_weights_become_floats_and_a_copy():
    given = np.array([0.0, 2.0, 1.0])
    weights = validation.check_weights(given, 3)
    assert weights.tolist() == [0.0, 2.0, 1.0]
    assert not np.shares_memory(weights, given)
    assert validation.check_weights(2, 3).tolist() == [2.0, 2.0, 2.0]
    assert validation.check_weights(pd.Series([1, 2, 3]), 3).tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        pytest.param([1, 2], r"sample_weight has shape \(2,\), but X has 3 rows\. Give one weight per row", id="short"),
        pytest.param([[1], [1], [1]], r"sample_weight has shape \(3, 1\), but X has 3 rows", id="column"),
        pytest.param([1, -0.5, 1], r"sample_weight\[1\] is -0\.5: expected a number >= 0", id="negative"),
        pytest.param([1, 1, np.nan], r"sample_weight\[2\] is nan: expected a number >= 0", id="nan"),
        pytest.param([np.inf, 1, 1], r"sample_weight\[0\] is inf: expected a number >= 0", id="infinity"),
        pytest.param(["a", "b", "c"], r"sample_weight: expected one number >= 0 per row", id="words"),
        pytest.param([0, 0, 0], r"sample_weight is zero for every row", id="all-zero"),
    ],
)
def test_bad_weights(weight, message):
    with pytest.raises(DataError, match=f"^{message}"):
        validation.check_weights(weight, 3)


# -- frames and masks --------------------------------------------------------------------------------------------------

TWICE = {
    "pandas": lambda: pd.DataFrame([[0.0, 1], [2, 3], [9, 9]], columns=["a", "a"]),
    "pandas, as text": lambda: pd.DataFrame([[0.0, 1], [2, 3], [9, 9]], columns=[0, "0"]),
    "Arrow": lambda: pa.table([pa.array([1.0, 2, 3]), pa.array([3.0, 4, 5])], names=["a", "a"]),
}
TAKERS = {
    "fit": lambda data: clew.PCKMeans(2, random_state=0).fit(data),
    "encode": encode,
    "constraints": clew.Constraints.of,
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS.keys())
@pytest.mark.parametrize("make", TWICE.values(), ids=TWICE.keys())
def test_two_columns_of_one_name_are_refused(make, take):
    with pytest.raises(ClewError, match=r'The frame has two columns called "[a0]"\. Rename one of them\.'):
        take(make())


def test_lazy_frames_are_collected():
    lazy = pl.LazyFrame({"a": [0.0, 1, 9], "b": [0.0, 1, 9]})
    assert_array_equal(clew.PCKMeans(2, random_state=0).fit(lazy).labels_, TAKERS["fit"](lazy.collect()).labels_)
    assert_array_equal(encode(lazy).X, encode(lazy.collect()).X)
    pairs = pl.LazyFrame({"id_1": [0], "id_2": [1], "answer": ["same"]})
    assert clew.Constraints.of(pairs) == clew.Constraints(must_link=[(0, 1)])


@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_a_masked_entry_is_a_missing_value(dtype):
    values = np.array([[1, 2], [3, 4], [5, 9]], dtype=dtype)
    masked = np.ma.array(values, mask=[[0, 0], [0, 1], [0, 0]])
    with pytest.raises(DataError, match="X contains NaN at row 1, column 1"):
        TAKERS["fit"](masked)
    with pytest.raises(DataError, match="has no value in row 1"):
        encode(masked)
    assert_array_equal(TAKERS["fit"](np.ma.array(values)).labels_, TAKERS["fit"](values).labels_)
    columns = encode({"a": np.ma.array([1, 2, 7], mask=[0, 1, 0]), "b": [1, 2, 3]}, scale="none")
    assert columns.X[1, 0] == 4


def test_the_result_of_encode_is_no_matrix():
    encoded = encode([{"size": 1.0}, {"size": 2.0}, {"size": 9.0}])
    with pytest.raises(DataTypeError, match="X is an object of type Encoded, not rows"):
        clew.PCKMeans(2).fit(encoded)
    assert len(clew.PCKMeans(2, random_state=0).fit(encoded.X).labels_) == 3
