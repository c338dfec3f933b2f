"""Bad input that reaches `fit`: the sentence names the value and the remedy, and nothing has changed."""

from __future__ import annotations

import copy
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from clew import (
    ConstrainedKMeans,
    ConstrainedKMedoids,
    Constraints,
    COPKMeans,
    PCKMeans,
    SeededKMeans,
    SemiSupervisedKernelKMeans,
)
from clew._registry import all_estimators
from clew.exceptions import (
    ClewError,
    ConstraintError,
    ContradictoryConstraintsError,
    DataError,
    DataTypeError,
    InfeasibleConstraintsError,
    ParameterError,
    WorkLimitError,
)
from tests.helpers import COUNTING, OF_ROWS, installed, made

X = np.array([[0.0, 1.0], [1.0, 0.0], [8.0, 9.0], [9.0, 8.0], [5.0, 5.0]])
HARD = [cls for cls in OF_ROWS if cls._capabilities.must_link == "hard" and cls._capabilities.cannot_link != "ignored"]
every_class = pytest.mark.parametrize("cls", OF_ROWS)
counting_class = pytest.mark.parametrize("cls", COUNTING)


def assert_refused(model, error, sentence, X=X, **fit_params):
    """A fit fails with this sentence; fitted or not, the estimator is what it was."""
    before = {name: repr(value) for name, value in vars(model).items()}
    with pytest.raises(error) as caught:
        model.fit(X, **fit_params)
    assert isinstance(caught.value, ClewError)
    assert sentence in str(caught.value)
    assert {name: repr(value) for name, value in vars(model).items()} == before


@pytest.mark.parametrize(
    ("parameter", "value", "expected"),
    [
        ("n_clusters", 0, "an integer >= 1"),
        ("n_clusters", -3, "an integer >= 1"),
        ("n_clusters", 2.0, "an integer >= 1"),
        ("n_clusters", "2", "an integer >= 1"),
        ("n_clusters", True, "an integer >= 1"),
        ("n_clusters", None, "an integer >= 1"),
        ("init", "random", "++' or an array"),  # the words differ between methods
        ("init", None, "++' or an array"),
        ("leftover", "zero", "'k-means++' or 'mean'"),
        ("n_init", 0, "an integer >= 1"),
        ("max_iter", 0, "an integer >= 1"),
        ("tol", -1e-9, "a finite number >= 0"),
        ("tol", float("nan"), "a finite number >= 0"),
        ("metric", "cityblock", "'"),  # the words differ between methods
        ("random_state", -1, "an integer >= 0, a numpy Generator or RandomState, or None"),
        ("random_state", "seed", "an integer >= 0, a numpy Generator or RandomState, or None"),
        ("n_jobs", 1.5, "None"),
    ],
)
@every_class
def test_parameters_outside_their_values(cls, parameter, value, expected):
    if parameter in cls().get_params() and not cls._parameters[parameter].accepts(value):
        sentence = f"{parameter}={value!r} in {cls.__name__}: expected "
        assert_refused(made(cls, **{"n_clusters": 2, parameter: value}), ParameterError, sentence)
        with pytest.raises(ParameterError, match=re.escape(expected)):
            made(cls, **{"n_clusters": 2, parameter: value}).fit(X)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (PCKMeans(2, penalty=-1), "penalty=-1 in PCKMeans: expected 'auto' or a finite number >= 0."),
        (PCKMeans(2, penalty=np.inf), "penalty=inf in PCKMeans: expected 'auto' or a finite number >= 0."),
        (PCKMeans(2, penalty="high"), "penalty='high' in PCKMeans: expected 'auto' or a finite number >= 0."),
        (PCKMeans(2, entailed="no"), "entailed='no' in PCKMeans: expected True or False."),
        (COPKMeans(2, min_confidence=1.5), "min_confidence=1.5 in COPKMeans: expected a number from 0 to 1."),
        (COPKMeans(2, work_limit=-1), "work_limit=-1 in COPKMeans: expected an integer >= 0."),
        (
            ConstrainedKMeans(2, min_confidence=-0.1),
            "min_confidence=-0.1 in ConstrainedKMeans: expected a number from 0",
        ),
    ],
)
def test_parameters_of_one_method(model, sentence):
    assert_refused(model, ParameterError, sentence)


# These start at row positions, which tests of their own try.
AT_ROWS = (ConstrainedKMedoids, SemiSupervisedKernelKMeans)
WITH_CENTRES = [cls for cls in OF_ROWS if "init" in cls._parameters and cls not in AT_ROWS]


@pytest.mark.parametrize("cls", WITH_CENTRES)
def test_init_arrays(cls):
    shape = "init has shape (3, 2): expected (n_clusters, n_features) = (2, 2)."
    assert_refused(cls(2, init=np.zeros((3, 2))), ParameterError, shape)
    assert_refused(cls(2, init=[[0.0, np.nan], [0, 0]]), ParameterError, "init contains NaN or infinity.")


@counting_class
def test_more_clusters_than_rows(cls):
    assert_refused(made(cls, 6), DataError, "n_clusters=6, but X has n_samples=5 rows. Lower n_clusters.")


def with_hole(value, row=3, column=1):
    hole = X.copy()
    hole[row, column] = value
    return hole


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (with_hole(np.nan), "X contains NaN at row 3, column 1. Fill it in, or drop the row."),
        (with_hole(np.inf), "X contains infinity (inf) at row 3, column 1. Fill it in, or drop the row."),
        (with_hole(-np.inf, 0, 0), "X contains infinity (inf) at row 0, column 0."),
        (with_hole(np.nan).astype(np.float32), "X contains NaN at row 3, column 1."),
        (sparse.csr_matrix(with_hole(np.nan)), "X contains NaN at row 3, column 1."),
        (pd.DataFrame(with_hole(np.nan), columns=["a", "b"]), "X contains NaN at row 3, column 1 ('b')."),
        (pl.DataFrame({"a": [1.0, 2.0, None], "b": [1, 2, 3]}), "X contains NaN at row 2, column 0 ('a')."),
        (pd.DataFrame({"a": [1, 2], "name": ["x", "y"]}), "Column 'name' of X holds text ('x'). Encode it as numbers"),
        (pl.DataFrame({"a": [1, 2], "name": ["x", "y"]}), "Column 'name' of X holds text ('x'). Encode it as numbers"),
        (pd.DataFrame({"a": pd.Categorical(["x", "y"])}), "Column 'a' of X holds text ('x')."),
        ([["a", "b"], ["c", "d"]], "X holds text ('a'). Encode it as numbers, or leave the column out."),
        (np.array([[1, "z"], [2, "z"]], dtype=object), "X holds text ('z'). Encode it as numbers"),
        (np.empty((0, 2)), "0 sample(s) (shape=(0, 2))"),
        (np.empty((5, 0)), "0 feature(s) (shape=(5, 0))"),
        ([1.0, 2.0, 3.0], "Expected 2D array, got 1D array instead. Reshape your data: X.reshape(1, -1) is one row"),
        (np.zeros((2, 2, 2)), "got 3D array instead. If X holds an image or a series for each row, pass X.reshape("),
    ],
)
@every_class
def test_rows_that_are_no_table_of_numbers(cls, rows, sentence):
    if sparse.issparse(rows) and not cls._capabilities.sparse:
        sentence = "Sparse data was passed for X, but dense data is required."
    if cls._capabilities.tables and sentence.startswith("Column"):
        assert len(made(cls, 2).fit(rows).labels_) == len(rows)  # records may have columns of text
    else:
        assert_refused(made(cls, 2), DataError, sentence, X=rows)


@pytest.mark.parametrize("cls", [cls for cls in OF_ROWS if not cls._capabilities.tables])
def test_a_type_that_is_no_table_is_a_type_error_too(cls):
    frame = pd.DataFrame({"a": pd.to_datetime(["2031-01-01", "2031-01-02"]), "b": [1, 2]})
    assert_refused(made(cls, 2), DataTypeError, "X cannot be used", X=frame)
    assert issubclass(DataTypeError, TypeError)


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (
            {"must_link": [(0, 1), (2, 5)]},
            "must_link[1] names row 5, but X has 5 rows (0 to 4). Pairs are row positions",
        ),
        ({"cannot_link": [(7, 0)]}, "cannot_link[0] names row 7, but X has 5 rows (0 to 4)."),
        ({"cannot_link": [(-1, 0)]}, "cannot_link[0] names row -1: row positions start at 0."),
        ({"must_link": [(0, 1), (2, 2)]}, "must_link[1] names row 2 twice. Remove it."),
        (
            {"must_link": [(0, 1)], "must_link_confidence": [1.5]},
            "must_link_confidence[0] is 1.5: a confidence lies in (0, 1]",
        ),
        (
            {"must_link": [(0, 1)], "must_link_confidence": [0]},
            "must_link_confidence[0] is 0: a confidence lies in (0, 1]",
        ),
        ({"must_link": [(0, 1, 2)]}, "must_link has shape (1, 3): expected (n, 2)"),
        ({"must_link": [("a", "b")]}, "must_link holds 'a'"),
        ({"must_links": [(0, 1)]}, "constraints has the key 'must_links'"),
        ([0, 1, -1], "3 rows, but X has 5"),
        ([0, 1, -1, -2, 0], "labels[3] is -2: classes are 0 or above, -1 means unknown."),
        (Constraints(must_link=[(0, 1)], n_samples=9), "constraints are about 9 rows, but X has 5."),
        (42, "constraints of type int cannot be read."),
        ([(0, 1)], "cannot be read"),
    ],
)
@every_class
def test_knowledge_that_does_not_fit_the_rows(cls, known, sentence):
    assert_refused(made(cls, 2), ConstraintError, sentence, constraints=known)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1, 2], "sample_weight has shape (2,), but X has 5 rows. Give one weight per row."),
        ([1, 1, -1, 1, 1], "sample_weight[2] is -1: expected a number >= 0."),
        ([1, 1, 1, 1, np.nan], "sample_weight[4] is nan: expected a number >= 0."),
        ([0] * 5, "sample_weight is zero for every row. Give at least one row a weight."),
        (["a"] * 5, "sample_weight: expected one number >= 0 per row."),
    ],
)
@pytest.mark.parametrize("cls", [cls for cls in all_estimators("clusterer") if cls._capabilities.sample_weight])
def test_weights(cls, weights, sentence):
    assert_refused(made(cls, 2), DataError, sentence, sample_weight=weights)


@pytest.mark.parametrize("cls", HARD)
def test_hard_methods_refuse_a_contradiction_with_its_chain(cls):
    known = Constraints(must_link=[(0, 1), (1, 4), (4, 3)], cannot_link=[(2, 0), (3, 0)])
    sentence = (
        "cannot_link[1] separates rows 3 and 0; must_link joins them (3-4-1-0). Remove one, or use a soft method."
    )
    assert_refused(made(cls, 2), ContradictoryConstraintsError, sentence, constraints=known)
    known = Constraints(must_link=[(0, 1), (1, 4)], labels=[7, -1, -1, -1, 9])
    assert_refused(made(cls, 2), ContradictoryConstraintsError, "labels separate rows 0 and 4", constraints=known)
    known = Constraints(must_groups=[3, 3, -1, -1, -1], cannot_groups=[0, 0, -1, -1, -1])
    assert_refused(
        made(cls, 2), ContradictoryConstraintsError, "cannot_groups separate rows 0 and 1", constraints=known
    )


@pytest.mark.parametrize("cls", HARD)
def test_contradictions_are_told_in_the_ids_of_the_user(cls):
    known = Constraints.of(
        {"must_link": [("ada", "bob")], "cannot_link": [("bob", "ada")]}, ids=["ada", "bob", "c", "d", "e"]
    )
    sentence = "cannot_link[0] separates rows bob and ada; must_link joins them (bob-ada)."
    assert_refused(made(cls, 2), ContradictoryConstraintsError, sentence, constraints=known)


@pytest.mark.parametrize("cls", [cls for cls in installed("clusterer") if cls._capabilities.cannot_link != "hard"])
def test_other_methods_live_with_what_they_do_not_enforce(cls):
    clique = {"cannot_link": [(i, j) for i in range(4) for j in range(i)]}
    model = made(cls, 2, random_state=0).fit(X, constraints=clique)
    assert len(model.violated_cannot_link_) >= 2


@pytest.mark.parametrize("cls", [cls for cls in COUNTING if cls._capabilities.cannot_link == "hard"])
def test_too_few_clusters_are_refused_with_the_rows(cls):
    clique = {"cannot_link": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]}
    sentence = "Rows 0, 1, 2 and 3 are pairwise cannot-linked and need 4 clusters, but n_clusters=3. Raise n_clusters."
    assert_refused(made(cls, 3), InfeasibleConstraintsError, sentence, constraints=clique)
    with pytest.raises(InfeasibleConstraintsError) as caught:
        made(cls, 3).fit(X, constraints=clique)
    assert caught.value.rows.tolist() == [0, 1, 2, 3]
    odd_cycle = {"cannot_link": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]}
    sentence = (
        "Rows 0, 1, 2, 3 and 4 cannot be split into n_clusters=2 clusters (every way was tried). Raise n_clusters."
    )
    assert_refused(made(cls, 2), InfeasibleConstraintsError, sentence, constraints=odd_cycle)
    photo = Constraints(cannot_groups=[0, 0, 0, -1, -1], ids=["a", "b", "c", "d", "e"])
    assert_refused(
        made(cls, 2), InfeasibleConstraintsError, "Rows a, b and c are pairwise cannot-linked", constraints=photo
    )


@counting_class
def test_more_classes_than_clusters(cls):
    sentence = "labels name 3 classes, but n_clusters=2. Raise n_clusters."
    assert_refused(made(cls, 2), InfeasibleConstraintsError, sentence, constraints=[0, 1, 2, -1, -1])


def test_the_search_says_when_it_gives_up():
    # Mycielski's graph of order 5: no triangle, yet 4 colours; greedy passes and peeling cannot settle it.
    edges = [(i, (i + 1) % 5) for i in range(5)]
    edges = edges + [(i, j + 5) for i, j in edges] + [(j, i + 5) for i, j in edges] + [(i + 5, 10) for i in range(5)]
    rows = np.random.default_rng(0).normal(size=(11, 2))
    known = {"cannot_link": edges}
    sentence = "Neither a labelling with 3 clusters nor a proof that there is none was found within work_limit=1."
    assert_refused(COPKMeans(3, work_limit=1, random_state=0), WorkLimitError, sentence, X=rows, constraints=known)
    assert_refused(
        COPKMeans(3, random_state=0), InfeasibleConstraintsError, "every way was tried", X=rows, constraints=known
    )
    labels = COPKMeans(4, random_state=0).fit(rows, constraints=known).labels_
    assert all(labels[i] != labels[j] for i, j in edges)


@every_class
def test_a_fitted_estimator_still_works_after_a_failed_fit(cls):
    model = made(cls, 2, random_state=0).fit(X)
    before = {name: copy.deepcopy(value) for name, value in vars(model).items()}
    wide = pd.DataFrame(np.hstack([X, X]), columns=list("abcd"))
    failures = [
        ("must_link[0] names row 99", {"X": wide, "constraints": {"must_link": [(0, 99)]}}),
        ("must_link[0] names row 0 twice", {"X": wide, "constraints": {"must_link": [(0, 0)]}}),
        ("X contains NaN", {"X": with_hole(np.nan)}),
    ]
    if {"n_clusters", "min_samples"} & cls._parameters.keys():
        failures.append(("n_samples=1 rows", {"X": X[:1]}))
    if cls._capabilities.sample_weight:
        failures.append(("sample_weight has shape", {"X": wide, "sample_weight": [1]}))
    if cls in HARD:
        contradiction = {"must_link": [(0, 1)], "cannot_link": [(0, 1)]}
        failures.append(("must_link joins them (0-1)", {"X": wide, "constraints": contradiction}))
    if cls._capabilities.cannot_link == "hard" and cls in COUNTING:
        failures.append(("need 3 clusters", {"X": wide, "constraints": {"cannot_link": [(0, 1), (1, 2), (0, 2)]}}))
    for sentence, failure in failures:
        assert_refused(model, ClewError, sentence, **failure)
    assert vars(model).keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(model, name), value)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("cls", [cls for cls in installed("clusterer") if cls._capabilities.predicts])
def test_new_rows_must_look_like_the_old_ones(cls):
    plain = made(cls, 2, random_state=0).fit(X)
    model = made(cls, 2, random_state=0).fit(pd.DataFrame(X, columns=["a", "b"]))
    for method in [name for name in ("predict", "transform") if hasattr(cls, name)]:
        with pytest.raises(DataError, match=r"X has 3 features, but \w+ is expecting 2 features"):
            getattr(plain, method)(np.zeros((2, 3)))
        with pytest.raises(DataError, match=r"X contains NaN at row 0, column 1 \('b'\)"):
            getattr(model, method)(pd.DataFrame([[0.0, np.nan]], columns=["a", "b"]))
        with pytest.raises(DataError, match="feature names should match"):
            getattr(model, method)(pd.DataFrame([[0.0, 1.0]], columns=["a", "c"]))


@every_class
def test_empty_lists_duplicates_and_read_only_arrays_simply_work(cls):
    rows = np.repeat(X, 3, axis=0)
    rows.flags.writeable = False
    pairs = np.array([(0, 1), (1, 0), (0, 1)])
    pairs.flags.writeable = False
    for known in (
        None,
        {},
        {"must_link": [], "cannot_link": []},
        Constraints(),
        {"must_link": pairs},
        {"ml": [(0, 1)]},
    ):
        labels = made(cls, 2, random_state=0).fit(rows, constraints=known).labels_
        assert labels.shape == (15,)
        assert labels[0] == labels[1]


def test_seeds_may_contradict_each_other():
    model = SeededKMeans(2, random_state=0).fit(X, constraints={"must_link": [(0, 1)], "cannot_link": [(0, 1)]})
    assert model.violated_cannot_link_.tolist() == [[0, 1]]
