"""`Constraints.of`: every form that people pass."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from clew import Constraints
from clew.exceptions import ConstraintError

EXPECTED = Constraints([(0, 1)], [(1, 2)], n_samples=4)
LABELS = [2, -1, 0, 2]
ANSWERS = {"id_1": [0, 1, 0], "id_2": [1, 2, 3], "answer": ["same", "different", "unsure"]}


def test_none_is_no_knowledge():
    assert Constraints.of(None) == Constraints()
    assert Constraints.of(None, n_samples=3, ids=["a", "b", "c"]) == Constraints(n_samples=3, ids=["a", "b", "c"])


def test_constraints_are_taken_as_they_are():
    assert Constraints.of(EXPECTED) is EXPECTED
    assert Constraints.of(EXPECTED, n_samples=4) is EXPECTED
    assert Constraints.of(Constraints([(0, 1)]), n_samples=4).n_samples == 4
    with pytest.raises(ConstraintError, match=r"about 4 rows, but X has 5"):
        Constraints.of(EXPECTED, n_samples=5)


def test_constraints_take_on_ids_they_lack():
    named = Constraints.of(EXPECTED, ids=list("abcd"))
    assert named.ids.tolist() == list("abcd")
    assert Constraints.of(named, ids=list("wxyz")) == named


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(LABELS, id="list"),
        pytest.param(tuple(LABELS), id="tuple"),
        pytest.param(np.array(LABELS), id="array"),
        pytest.param(np.array(LABELS, dtype=np.int8), id="int8"),
        pytest.param(np.array(LABELS, dtype=float), id="whole-floats"),
        pytest.param(pd.Series(LABELS, index=[9, 8, 7, 6]), id="pandas"),
        pytest.param(pl.Series(LABELS), id="polars"),
        pytest.param(pa.chunked_array([LABELS]), id="arrow"),
        pytest.param({"labels": LABELS}, id="dict"),
        pytest.param({"labels": pd.Series(LABELS)}, id="dict-of-series"),
        pytest.param({"membership": [2, 1, 0, 2], "fixed": [True, False, True, True]}, id="leiden"),
    ],
)
def test_labels(labels):
    assert Constraints.of(labels) == Constraints.from_labels(LABELS) == Constraints(labels=LABELS)
    assert Constraints.of(labels, n_samples=4).labels.tolist() == LABELS
    with pytest.raises(ConstraintError, match=r"^constraints are about 4 rows, but X has 5\. Slice them like the data"):
        Constraints.of(labels, n_samples=5)


def test_read_only_labels_are_copied():
    labels = np.array(LABELS)
    labels.flags.writeable = False
    assert not np.shares_memory(Constraints.of(labels).labels, labels)


def test_labels_with_a_name_for_the_unlabelled():
    cells = {"labels": ["T", "Unknown", "B", "T"], "unlabelled": "Unknown"}
    assert Constraints.of(cells).labels.tolist() == [1, -1, 0, 1]
    assert Constraints.of({**cells, "labels": pd.Series(cells["labels"], dtype="category")}).labels.tolist() == [
        1, -1, 0, 1,
    ]  # fmt: skip


@pytest.mark.parametrize("must", ["must_link", "ml", "match"])
@pytest.mark.parametrize("cannot", ["cannot_link", "cl", "distinct"])
def test_dict_with_every_word_for_the_pairs(must, cannot):
    assert Constraints.of({must: [(0, 1)], cannot: [(1, 2)]}, n_samples=4) == EXPECTED
    assert Constraints.of({must: [], cannot: np.empty((0, 2))}, n_samples=4) == Constraints(n_samples=4)


@pytest.mark.parametrize("word", ["cannot_groups", "cannot_link_groups"])
def test_dict_with_everything_else(word):
    given = {
        "must_link": [(0, 1)],
        "must_link_confidence": [0.5],
        "cannot_link": [(1, 2)],
        "cannot_link_confidence": 0.25,
        "labels": LABELS,
        "must_groups": [0, 0, 1, 1],
        "soft_groups": [[0.5], [0], [0], [1]],
        "triplets": [(0, 1, 2)],
    }
    groups = [[0, 1], [2, 3], [0, 1], [-1, -1]]
    assert Constraints.of({**given, word: groups}) == Constraints(**given, cannot_groups=groups)


def test_dict_with_matrices_of_pairs():
    pairs = sparse.csr_array(([1, 1, 1], ([0, 1, 2], [1, 0, 3])), shape=(4, 4))
    assert Constraints.of({"cannot_link": pairs}).cannot_link.tolist() == [[0, 1], [2, 3]]
    negative = sparse.csr_matrix(([-1, 1], ([0, 1], [1, 0])), shape=(4, 4))
    assert Constraints.of({"must_link": negative}).must_link.tolist() == [[0, 1]]


def test_dict_in_the_users_ids():
    ids = ["u", "v", "w", "x"]
    given = {"ml": [("u", "v")], "cl": [("v", "w")], "triplets": [("x", "u", "v")], "labels": LABELS}
    read = Constraints.of(given, ids=ids)
    assert read == Constraints([(0, 1)], [(1, 2)], triplets=[(3, 0, 1)], labels=LABELS, ids=ids)


@pytest.mark.parametrize(
    ("ids", "pair"),
    [
        pytest.param([30, 20, 10], (10, 20), id="numbers"),
        pytest.param(np.array([30, 20, 10]), ("10", "20"), id="numbers-as-text"),
        pytest.param([30, 20, 10], (10.0, 20.0), id="numbers-as-floats"),
        pytest.param(["30", "20", "10"], (10, 20), id="text-as-numbers"),
        pytest.param(pd.Series([30.0, 20.0, 10.0]), (10, 20), id="floats"),
        pytest.param(pl.Series(["30", "20", "10"]), ("10", "20"), id="polars"),
    ],
)
def test_ids_are_found_in_whatever_type_they_come(ids, pair):
    assert Constraints.of({"must_link": [pair]}, ids=ids).must_link.tolist() == [[2, 1]]


def test_pairs_with_answers():
    pairs, answers = [(0, 1), (1, 2)], [1, -1]
    for given in ((pairs, answers), (np.array(pairs), np.array(answers)), (pairs, [1, 0]), (pairs, [True, False])):
        assert Constraints.of(given, n_samples=4) == EXPECTED
    assert Constraints.of(([], [])) == Constraints()
    named = Constraints.of(([("a", "b"), ("b", "c")], answers), ids=list("abcd"))
    assert named == Constraints([(0, 1)], [(1, 2)], ids=list("abcd"))


def test_two_labels_in_a_tuple_are_labels():
    assert Constraints.of((0, 1)).labels.tolist() == [0, 1]


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "pandas-arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames_of_answers(frame):
    assert Constraints.of(frame(ANSWERS), n_samples=4) == EXPECTED
    sure = Constraints.of(frame({**ANSWERS, "confidence": [0.5, 1.0, 0.1], "annotator": ["x", "y", "z"]}))
    assert sure.must_link_confidence.tolist() == [0.5]
    named = {"id_1": ["a", "b"], "id_2": ["b", "c"], "answer": ["yes", "no"]}
    assert Constraints.of(frame(named), ids=list("abcd")) == Constraints([(0, 1)], [(1, 2)], ids=list("abcd"))
    assert Constraints.of(frame({"i": [0], "j": [1], "type": [1]})).must_link.tolist() == [[0, 1]]
    everyone = {"id_1": [0, 1], "id_2": [None, 2], "answer": ["label", "closer"], "group": [3, None], "id_3": [None, 0]}
    read = Constraints.of(frame(everyone), n_samples=3)
    assert read == Constraints(labels=[3, -1, -1], triplets=[(1, 2, 0)])


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_label_table_of_splink(frame):
    table = frame(
        {
            "unique_id_l": ["a", "a", "b", "c"],
            "unique_id_r": ["b", "c", "d", "d"],
            "clerical_match_score": [1.0, 0.0, 0.75, 0.5],
        }
    )
    read = Constraints.of(table, ids=list("abcd"))
    assert read.must_link.tolist() == [[0, 1], [1, 3]]
    assert read.must_link_confidence.tolist() == [1.0, 0.75]
    assert read.cannot_link.tolist() == [[0, 2]]
    assert read.cannot_link_confidence.tolist() == [1.0]


def test_empty_frame_is_no_knowledge():
    frame = pd.DataFrame(ANSWERS).iloc[:0]
    assert Constraints.of(frame, n_samples=4) == Constraints(n_samples=4)


def test_index_of_a_pandas_frame_plays_no_part():
    frame = pd.DataFrame(ANSWERS, index=[7, 7, 9])
    assert Constraints.of(frame, n_samples=4) == EXPECTED


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_signed_matrix(form):
    signed = np.zeros((4, 4))
    signed[0, 1], signed[1, 0], signed[2, 1] = 0.5, 0.75, -0.25
    read = Constraints.of(form(signed))
    assert read == Constraints(
        [(0, 1)], [(1, 2)], must_link_confidence=[0.75], cannot_link_confidence=[0.25], n_samples=4
    )
    with pytest.raises(ConstraintError, match=r"about 4 rows, but X has 5"):
        Constraints.of(form(signed), n_samples=5)


def test_signed_matrix_of_whole_numbers_with_stored_zeros():
    entries = (np.array([1, -1, 0]), (np.array([0, 1, 2]), np.array([1, 2, 3])))
    assert Constraints.of(sparse.coo_array(entries, shape=(4, 4))) == EXPECTED


@pytest.mark.parametrize("form", [str, lambda path: path])
def test_paths(tmp_path, form):
    path = tmp_path / "answers.csv"
    path.write_text("id_1,id_2,answer\n0,1,same\n1,2,different\n")
    assert Constraints.of(form(path), n_samples=4) == EXPECTED
    assert Constraints.from_file(form(path), n_samples=4) == EXPECTED


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(3, r"constraints of type int cannot be read\. Pass a Constraints, labels", id="number"),
        pytest.param(
            [(0, 1)], r"constraints of type list cannot be read\. A plain list of pairs could be", id="bare-pairs"
        ),
        pytest.param(np.zeros((3, 3)), r"constraints of type ndarray cannot be read", id="dense-matrix"),
        pytest.param([[0], [1, 2]], r"constraints of type list cannot be read", id="ragged"),
        pytest.param({"must-link": []}, r"constraints has the key 'must-link': expected must_link", id="key"),
        pytest.param({3: []}, r"constraints has the key 3", id="number-as-key"),
        pytest.param({"ml": [], "match": []}, r"constraints names must_link twice \('match' is", id="key-twice"),
        pytest.param({"unlabelled": "x"}, r"constraints has 'fixed' or 'unlabelled', but no 'labels'", id="no-labels"),
        pytest.param({"fixed": [True]}, r"constraints has 'fixed' or 'unlabelled', but no 'labels'", id="fixed-alone"),
        pytest.param(
            {"membership": [0, 1, 2], "fixed": [True, False]},
            r"'fixed' has shape \(2,\), the labels \(3,\)",
            id="fixed",
        ),
        pytest.param(([(0, 1)], [1, -1]), r"1 pairs but 2 answers\. Give one answer", id="answers-missing"),
        pytest.param(([(0, 1)], [2]), r"pair 0: cannot read the answer 2\. Write same, different", id="answer"),
        pytest.param(([(0, 1), (2, 2)], [1, -1]), r"pairs\[1\] names row 2 twice", id="self-pair"),
        pytest.param(([(0, 1), (2,)], [1, -1]), r"pairs is ragged", id="ragged-pairs"),
        pytest.param(
            sparse.csr_array([[0, 1.5], [0, 0]]),
            r"The signed matrix holds 1\.5 at \(0, 1\): expected -1 to 1",
            id="size",
        ),
        pytest.param(sparse.csr_array([[0, np.nan], [0, 0]]), r"The signed matrix holds nan at \(0, 1\)", id="nan"),
        pytest.param(sparse.csr_array([[0, 1]]), r"The signed matrix has shape \(1, 2\): expected rows x", id="shape"),
        pytest.param(sparse.csr_array([[1, 0], [0, 0]]), r"must_link\[0\] names row 0 twice", id="diagonal"),
        pytest.param(
            pd.DataFrame({"id_1": [0], "id_2": [1]}),
            r"The frame has no column 'answer'; it has 'id_1', 'id_2'\. Expected id_1, id_2, answer",
            id="frame-column",
        ),
        pytest.param(
            pd.DataFrame({**ANSWERS, "answer": ["same", "maybe", "no"]}),
            r"constraints row 1: cannot read the answer 'maybe'",
            id="frame-word",
        ),
        pytest.param(
            pd.DataFrame({**ANSWERS, "id_2": [1, 1, 3]}), r"constraints row 1: pairs 1 with itself", id="frame-self"
        ),
        pytest.param(
            pd.DataFrame({**ANSWERS, "id_2": [1, -2, 3]}),
            r"constraints row 1: id_2 -2 is not a row position",
            id="frame-negative",
        ),
        pytest.param(
            pd.DataFrame({**ANSWERS, "confidence": [1.0, 1.5, 1.0]}),
            r"constraints row 1: confidence is 1\.5; expected a number in \(0, 1\]",
            id="frame-confidence",
        ),
        pytest.param(
            pd.DataFrame({"unique_id_l": [0], "unique_id_r": [1], "clerical_match_score": [1.5]}),
            r"constraints row 0: clerical_match_score is 1\.5; expected 0 to 1",
            id="splink-score",
        ),
    ],
)
def test_what_cannot_be_read(given, message):
    with pytest.raises(ConstraintError, match=f"^{message}"):
        Constraints.of(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"ml": [("a", "z")]}, r"must_link\[0\] names 'z', which is not among the 3 row ids", id="unknown"),
        pytest.param({"cl": [("a", "b", "c")]}, r"cannot_link\[0\] is \('a', 'b', 'c'\): expected 2 ids", id="three"),
        pytest.param({"cl": ["a", "b"]}, r"cannot_link\[0\] is 'a': expected 2 ids", id="one"),
        pytest.param({"ml": [("a", "a")]}, r"must_link\[0\] names row 0 twice", id="self-pair"),
        pytest.param({"triplets": [("a", "b")]}, r"triplets\[0\] is \('a', 'b'\): expected 3 ids", id="triplet"),
        pytest.param(
            pd.DataFrame({"id_1": ["a"], "id_2": ["z"], "answer": ["same"]}),
            r"constraints row 0: id_2 'z' is not among the row ids",
            id="frame",
        ),
        pytest.param(([("a", "z")], [1]), r"pair 0: id_2 'z' is not among the row ids", id="pairs-with-answers"),
    ],
)
def test_ids_that_do_not_fit(given, message):
    with pytest.raises(ConstraintError, match=f"^{message}"):
        Constraints.of(given, ids=["a", "b", "c"])


def test_repeated_ids_are_refused_before_they_are_used():
    with pytest.raises(ConstraintError, match=r"^ids\[1\] is 'a', like an earlier id"):
        Constraints.of({"ml": [("a", "b")]}, ids=["a", "a", "b"])
