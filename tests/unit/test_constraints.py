"""`Constraints`: accepted and refused input, slicing, union, violations, and memory."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from clew import Constraints
from clew.exceptions import ClewError, ConstraintError, ContradictoryConstraintsError
from tests.reference import constraints as reference

FULL = {
    "must_link": [(0, 1), (1, 2)],
    "cannot_link": [(0, 3)],
    "must_link_confidence": [0.1, 1.0],
    "cannot_link_confidence": [0.3],
    "labels": [0, -1, -1, 1, -1],
    "must_groups": [[0, -1], [-1, 3], [2, 3], [-1, -1], [0, 4]],
    "cannot_groups": [1, 2, 1, -1, 2],
    "soft_groups": [[0.1, 0.2], [0, 0], [0, 1], [0.3, 0], [0, 0.7]],
    "triplets": [(0, 1, 2), (4, 3, 2)],
    "ids": ["a", "b", "c", "d", "e"],
}
ARRAYS = [
    "must_link", "cannot_link", "must_link_confidence", "cannot_link_confidence", "labels", "must_groups",
    "cannot_groups", "triplets", "ids",
]  # fmt: skip


def traced_peak(work):
    """Bytes that `work` held at most beyond what was there before, and its result."""
    tracemalloc.start()
    try:
        result = work()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def test_attributes_have_the_documented_types():
    full = Constraints(**FULL)
    for name in ("must_link", "cannot_link", "labels", "must_groups", "cannot_groups", "triplets"):
        assert getattr(full, name).dtype == np.int64
        assert np.array_equal(getattr(full, name), FULL[name])
    for name in ("must_link_confidence", "cannot_link_confidence"):
        assert getattr(full, name).dtype == np.float64
        assert getattr(full, name).tolist() == FULL[name]
    assert isinstance(full.soft_groups, sparse.csr_array)
    assert np.array_equal(full.soft_groups.toarray(), FULL["soft_groups"])
    assert full.ids.tolist() == FULL["ids"]
    assert full.n_samples == len(full) == full.n_rows == 5
    assert full.shape == (5,)


def test_nothing_is_known_by_default():
    empty = Constraints()
    assert empty.must_link.shape == empty.cannot_link.shape == (0, 2)
    assert empty.triplets.shape == (0, 3)
    assert empty.must_link_confidence.shape == (0,)
    for name in ("labels", "must_groups", "cannot_groups", "soft_groups", "n_samples", "ids"):
        assert getattr(empty, name) is None
    assert not empty
    assert empty.n_rows == 0


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([(0, 1), (2, 3)], id="list-of-tuples"),
        pytest.param([[0, 1], [2, 3]], id="list-of-lists"),
        pytest.param(((0, 1), (2, 3)), id="tuples"),
        pytest.param(np.array([[0, 1], [2, 3]], dtype=np.int32), id="int32"),
        pytest.param(np.array([[0, 1], [2, 3]], dtype=np.uint8), id="uint8"),
        pytest.param(np.array([[0.0, 1.0], [2.0, 3.0]]), id="whole-floats"),
        pytest.param(np.array([[0, 1], [2, 3]], order="F"), id="column-major"),
        pytest.param(np.array([[0, 1, 9], [2, 3, 9]])[:, :2], id="strided"),
        pytest.param(pd.DataFrame({"a": [0, 2], "b": [1, 3]}), id="frame"),
    ],
)
def test_pairs_in_every_usual_form(pairs):
    assert Constraints(pairs, pairs).must_link.tolist() == [[0, 1], [2, 3]]
    assert Constraints(pairs, pairs).cannot_link.flags.c_contiguous


def test_pairs_from_an_iterator():
    assert Constraints(zip([0, 2], [1, 3], strict=True)).must_link.tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("empty", [[], (), None, np.empty((0, 2)), np.empty(0, dtype=int), [[]]])
def test_empty_lists_simply_work(empty):
    constraints = Constraints(empty, empty, triplets=empty, n_samples=3)
    assert constraints == Constraints(n_samples=3)
    assert constraints.closure().n_components == 3
    assert bool(constraints.check(1))


def test_duplicate_pairs_are_kept_and_change_nothing():
    twice = Constraints([(0, 1), (1, 0), (0, 1)], [(1, 2), (1, 2), (2, 0)])
    once = Constraints([(0, 1)], [(1, 2)])
    assert len(twice.must_link) == 3
    assert twice.closure().component_of.tolist() == once.closure().component_of.tolist()
    assert twice.check(2).labels.tolist() == once.check(2).labels.tolist()


def test_one_confidence_for_all_pairs():
    constraints = Constraints([(0, 1), (1, 2)], [(0, 3)], must_link_confidence=0.5)
    assert constraints.must_link_confidence.tolist() == [0.5, 0.5]
    assert constraints.cannot_link_confidence.tolist() == [1.0]


def test_read_only_input_works_and_no_input_is_touched_or_shared():
    given = {name: np.array(FULL[name]) for name in ARRAYS}
    matrix = sparse.csr_array(([0.5, 0.0, 0.2, 0.1], [0, 1, 1, 1], [0, 2, 3, 3, 3, 4]), shape=(5, 2))
    before = {name: array.copy() for name, array in given.items()}
    stored = matrix.copy()
    constraints = Constraints(**given, soft_groups=matrix)
    for name, array in given.items():
        assert array.flags.writeable
        assert np.array_equal(array, before[name])
        assert not np.shares_memory(array, getattr(constraints, name))
    for part in ("data", "indices", "indptr"):
        assert getattr(matrix, part).flags.writeable
        assert np.array_equal(getattr(matrix, part), getattr(stored, part))
        assert not np.shares_memory(getattr(matrix, part), getattr(constraints.soft_groups, part))
    for array in (*given.values(), matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    assert Constraints(**given, soft_groups=matrix) == constraints


@pytest.mark.parametrize("name", [*ARRAYS, "soft_groups", "n_samples"])
def test_attributes_cannot_be_set_or_removed(name):
    constraints = Constraints(**FULL)
    with pytest.raises(AttributeError, match=f"immutable: {name} cannot be set"):
        setattr(constraints, name, None)
    with pytest.raises(AttributeError, match=f"immutable: {name} cannot be removed"):
        delattr(constraints, name)
    assert constraints == Constraints(**FULL)


COPIES = {
    "new": lambda constraints: constraints,
    "pickled": lambda constraints: pickle.loads(pickle.dumps(constraints)),
    "copied": copy.copy,
    "deep-copied": copy.deepcopy,
    "bound": lambda constraints: constraints.about(5),
    "sliced": lambda constraints: constraints[:],
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_arrays_cannot_be_written(copied):
    constraints = copied(Constraints(**FULL))
    assert constraints == Constraints(**FULL)
    soft = constraints.soft_groups
    for array in (*(getattr(constraints, name) for name in ARRAYS), soft.data, soft.indices, soft.indptr):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[-1]


def test_a_pickle_does_not_hold_the_closure():
    constraints = Constraints([(0, 1)], n_samples=100_000)
    size = len(pickle.dumps(constraints))
    constraints.closure()
    assert len(pickle.dumps(constraints)) == size


def test_constraints_are_no_sequence_of_rows_and_no_key():
    with pytest.raises(TypeError):
        iter(Constraints(n_samples=3))
    with pytest.raises(TypeError):
        hash(Constraints(n_samples=3))


def test_truth_is_whether_anything_is_stated():
    assert not Constraints(n_samples=3, ids=["a", "b", "c"])
    for name in ("must_link", "cannot_link", "labels", "must_groups", "cannot_groups", "soft_groups", "triplets"):
        assert Constraints(**{name: FULL[name]})


@pytest.mark.parametrize("name", ["must_link", "cannot_link", "triplets"])
def test_row_out_of_range(name):
    rows = [list(range(len(FULL[name][0]))), [0, 1, 2][: len(FULL[name][0])]]
    rows[1][1] = 150
    with pytest.raises(ConstraintError, match=rf"^{name}\[1\] names row 150, but n_samples=150 \(0 to 149\)\. "):
        Constraints(**{name: rows}, n_samples=150)


def test_row_out_of_range_of_data():
    with pytest.raises(ConstraintError, match=r"^must_link\[0\] names row 7, but X has 5 rows \(0 to 4\)\. Pairs are"):
        Constraints([(0, 7)]).about(5)
    with pytest.raises(ConstraintError, match=r"^constraints are about 3 rows, but X has 5\. Slice them like the data"):
        Constraints(n_samples=3).about(5)


def test_about_binds_to_a_number_of_rows():
    bound = Constraints([(0, 1)]).about(5)
    assert bound == Constraints([(0, 1)], n_samples=5)
    assert bound.about(5) is bound
    assert bound.closure().n_components == 4


BAD_ROWS = [
    pytest.param([(0, 1), (2, -1)], r"must_link\[1\] names row -1: row positions start at 0", id="negative"),
    pytest.param([(0, 1), (3, 3)], r"must_link\[1\] names row 3 twice\. Remove it", id="self-pair"),
    pytest.param([(0, 1), (2,)], r"must_link is ragged", id="ragged"),
    pytest.param([(0, 1, 2)], r"must_link has shape \(1, 3\): expected \(n, 2\)", id="triple"),
    pytest.param([0, 1], r"must_link has shape \(2,\): expected \(n, 2\)", id="flat"),
    pytest.param([("a", "b")], r"must_link holds .*'a'.*: expected whole numbers\. Translate ids", id="strings"),
    pytest.param([(0, 1), (0.5, 2)], r"must_link\[1, 0\] is 0\.5: expected whole numbers", id="floats"),
    pytest.param([(0, np.nan)], r"must_link\[0, 1\] is nan: expected whole numbers", id="nan"),
    pytest.param([(0, np.inf)], r"must_link\[0, 1\] is inf: expected whole numbers", id="infinity"),
    pytest.param([(0, 1e300)], r"must_link holds 1e\+300, which is beyond 64 bits", id="huge"),
    pytest.param([(True, False)], r"must_link holds .*True.*: expected whole numbers", id="booleans"),
    pytest.param([(0, None)], r"must_link holds 0: expected whole numbers|must_link holds .*None", id="none"),
]


@pytest.mark.parametrize(("rows", "message"), BAD_ROWS)
def test_bad_pairs(rows, message):
    with pytest.raises(ConstraintError, match=f"^{message}"):
        Constraints(rows)
    with pytest.raises(ConstraintError, match=f"^{message.replace('must_link', 'cannot_link')}"):
        Constraints((), rows)


@pytest.mark.parametrize(
    ("triplets", "message"),
    [
        pytest.param([(0, 1, 2), (3, 4, 3)], r"triplets\[1\] names row 3 twice", id="repeated"),
        pytest.param([(0, 1)], r"triplets has shape \(1, 2\): expected \(n, 3\)", id="pair"),
        pytest.param([(0, 1, -4)], r"triplets\[0\] names row -4", id="negative"),
    ],
)
def test_bad_triplets(triplets, message):
    with pytest.raises(ConstraintError, match=f"^{message}"):
        Constraints(triplets=triplets)


@pytest.mark.parametrize("name", ["must_link_confidence", "cannot_link_confidence"])
@pytest.mark.parametrize(
    ("confidence", "message"),
    [
        pytest.param([1.0, 0.0], r"\[1\] is 0: a confidence lies in \(0, 1\]", id="zero"),
        pytest.param([1.5, 1.0], r"\[0\] is 1\.5: a confidence lies in \(0, 1\]", id="above-one"),
        pytest.param([1.0, -0.5], r"\[1\] is -0\.5: a confidence", id="negative"),
        pytest.param([np.nan, 1.0], r"\[0\] is nan: a confidence", id="nan"),
        pytest.param([0.5], r" has shape \(1,\), but there are 2 pairs\. Give one per pair", id="too-few"),
        pytest.param([[0.5], [0.5]], r" has shape \(2, 1\), but there are 2 pairs", id="column"),
        pytest.param(["high", "low"], r" holds \['high', 'low'\]: expected numbers in \(0, 1\]", id="words"),
        pytest.param(0, r"\[0\] is 0: a confidence", id="zero-for-all"),
    ],
)
def test_bad_confidences(name, confidence, message):
    with pytest.raises(ConstraintError, match=f"^{name}{message}"):
        Constraints([(0, 1), (1, 2)], [(0, 3), (1, 3)], **{name: confidence})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"labels": [0, -2]}, r"labels\[1\] is -2: classes are 0 or above, -1 means unknown", id="class"),
        pytest.param(
            {"labels": [[0], [1]]}, r"labels has shape \(2, 1\): expected one class per row", id="class-column"
        ),
        pytest.param({"labels": 3}, r"labels has shape \(\): expected one class per row", id="one-class"),
        pytest.param({"labels": [0.0, 1.5]}, r"labels\[1\] is 1.5: expected whole numbers", id="class-fraction"),
        pytest.param({"labels": [True, False]}, r"labels holds True: .* numbers, or names", id="class-truth"),
        pytest.param({"cannot_groups": [True, False]}, r"cannot_groups holds True: .*or names", id="group-truth"),
        pytest.param(
            {"labels": [0, 2], "classes": ["a", "b"]}, r"classes has 2 names: expected a diff", id="class-names"
        ),
        pytest.param(
            {"labels": [0, 1], "classes": ["a", "a"]}, r"classes has 2 names: expected a diff", id="same-names"
        ),
        pytest.param({"must_link": [(0, 2**63)]}, r"must_link holds 9.22337.*, which is beyond 64 bits", id="far"),
        pytest.param(
            {"must_link": [(0, 2**64)]}, r"must_link holds 18446744073709551616, which is beyond", id="farther"
        ),
        pytest.param({"labels": [[0], [1, 2]]}, r"labels is ragged", id="ragged-classes"),
        pytest.param({"must_groups": [0, -3]}, r"must_groups\[1\] is -3: groups are 0 or above", id="group"),
        pytest.param({"cannot_groups": [[0, 1], [2, -3]]}, r"cannot_groups\[1, 1\] is -3: groups", id="group-column"),
        pytest.param({"cannot_groups": [[[0]]]}, r"cannot_groups has shape \(1, 1, 1\)", id="group-cube"),
        pytest.param({"must_groups": [[0], [1, 2]]}, r"must_groups is ragged", id="ragged-groups"),
        pytest.param({"soft_groups": [[0.0, 0], [0, 1.5]]}, r"soft_groups\[1, 1\] is 1\.5: a strength", id="strength"),
        pytest.param({"soft_groups": [[0.0, -0.5]]}, r"soft_groups\[0, 1\] is -0\.5: a strength", id="negative"),
        pytest.param({"soft_groups": [[np.nan]]}, r"soft_groups\[0, 0\] is nan: a strength", id="strength-nan"),
        pytest.param(
            {"soft_groups": [[0.5, 0.5], [0.6, 0.7]]},
            r"soft_groups: the strengths of row 1 sum to 1\.3; they may sum to at most 1",
            id="strengths-sum",
        ),
        pytest.param({"soft_groups": [["strong"]]}, r"soft_groups: expected a rows x groups matrix", id="words"),
        pytest.param({"soft_groups": [0.5, 0.5]}, r"soft_groups: expected a rows x groups matrix", id="flat"),
        pytest.param({"n_samples": -1}, r"n_samples=-1: expected the number of rows", id="n-negative"),
        pytest.param({"n_samples": 2.5}, r"n_samples=2\.5: expected the number of rows", id="n-float"),
        pytest.param({"n_samples": True}, r"n_samples=True: expected the number of rows", id="n-bool"),
        pytest.param({"ids": ["a", "b", "a"]}, r"ids\[2\] is 'a', like an earlier id", id="same-id"),
        pytest.param({"ids": [1, 2, 1]}, r"ids\[2\] is 1, like an earlier id", id="same-number"),
        pytest.param(
            {"ids": [["a", "b"]]}, r"ids has shape \(1, 2\): expected a list with one id per row", id="ids-2d"
        ),
        pytest.param({"ids": "abc"}, r"ids has shape \(\): expected a list with one id per row", id="ids-text"),
    ],
)
def test_bad_values(arguments, message):
    with pytest.raises(ConstraintError, match=f"^{message}"):
        Constraints(**arguments)


@pytest.mark.parametrize("kind", ["must_groups", "cannot_groups"])
@pytest.mark.parametrize("missing", ["", None, float("nan"), -1, "-1"], ids=repr)
def test_groups_may_be_names_and_missing_ones_are_free(kind, missing):
    known = Constraints(**{kind: ["shop", "crm", missing, "shop"]})
    assert getattr(known, kind).tolist() == [1, 0, -1, 1]
    known = Constraints(**{kind: np.array([["shop", 4], ["crm", missing], [missing, 4]], dtype=object)})
    assert getattr(known, kind).tolist() == [[1, 4], [0, -1], [-1, 4]]
    assert getattr(Constraints(**{kind: [7.0, float("nan"), 7.0]}), kind).tolist() == [7, -1, 7]


@pytest.mark.parametrize("name", ["labels", "must_groups", "cannot_groups", "soft_groups", "ids"])
def test_lengths_that_disagree(name):
    with pytest.raises(
        ConstraintError, match=rf"^The number of rows is 7 according to n_samples, but 5 according to {name}\. "
    ):
        Constraints(**{name: FULL[name]}, n_samples=7)
    other = "labels" if name != "labels" else "ids"
    with pytest.raises(ConstraintError, match=r"^The number of rows is [25] according to .*, but [25] according to "):
        Constraints(**{name: FULL[name], other: [0, 1]})


def test_strengths_in_decimals_may_sum_to_one():
    assert Constraints(soft_groups=[[0.1] * 10]).soft_groups.nnz == 10


def test_errors_are_value_errors_of_clew():
    with pytest.raises(ValueError, match="names row 3 twice") as caught:
        Constraints([(3, 3)])
    assert isinstance(caught.value, ClewError)


def test_rows_are_described_by_id_or_number():
    assert Constraints(n_samples=3).describe_row(2) == 2
    assert Constraints(ids=["a", "b"]).describe_row(1) == "b"
    assert Constraints(ids=np.array([10, 20])).describe_row(1) == 20
    assert type(Constraints(ids=np.array([10, 20])).describe_row(1)) is int


def test_repr_counts_what_is_known():
    assert repr(Constraints()) == "<Constraints on unknown rows: must_link=0, cannot_link=0>"
    assert repr(Constraints(**FULL)) == (
        "<Constraints on 5 rows: must_link=2, cannot_link=1, labelled rows=2, must_groups=4, cannot_groups=2, "
        "soft_groups=2, triplets=2>"
    )


CHAIN = Constraints([(0, 1), (1, 2), (2, 3)], [(3, 4)], ids=list("abcde"))


@pytest.mark.parametrize(
    ("rows", "positions"),
    [
        pytest.param([0, 3, 4], [0, 3, 4], id="list"),
        pytest.param(np.array([4, 0, 3]), [4, 0, 3], id="array"),
        pytest.param(np.array([True, False, False, True, True]), [0, 3, 4], id="mask"),
        pytest.param([True, False, False, True, True], [0, 3, 4], id="list-mask"),
        pytest.param(slice(None), [0, 1, 2, 3, 4], id="everything"),
        pytest.param(slice(0, None, 2), [0, 2, 4], id="slice"),
        pytest.param(slice(None, None, -1), [4, 3, 2, 1, 0], id="backwards"),
        pytest.param([-1, 0, -2], [4, 0, 3], id="negative"),
        pytest.param(range(3, 5), [3, 4], id="range"),
        pytest.param(2, [2], id="one-row"),
        pytest.param([], [], id="no-row"),
        pytest.param(pd.Series([0, 3, 4]), [0, 3, 4], id="series"),
    ],
)
def test_slicing_takes_what_arrays_take(rows, positions):
    sliced = CHAIN[rows]
    assert sliced == CHAIN.restrict(rows)
    assert sliced == CHAIN[rows, ...]
    assert len(sliced) == len(positions)
    assert sliced.ids.tolist() == [CHAIN.ids[row] for row in positions]
    assert reference.is_kept(CHAIN, positions, sliced)


@pytest.mark.parametrize("rows", [[0, 5], np.ones(3, dtype=bool), [0.5]])
def test_slicing_refuses_what_arrays_refuse(rows):
    with pytest.raises(IndexError):
        CHAIN[rows]


def test_slicing_needs_the_number_of_rows():
    with pytest.raises(
        ConstraintError, match=r"The number of rows of these constraints is unknown.* Pass n_samples=len\(X\)"
    ):
        Constraints([(0, 1)])[[0]]
    with pytest.raises(ConstraintError, match="number of rows of these constraints is unknown"):
        len(Constraints([(0, 1)]))


def test_slicing_carries_row_aligned_knowledge_over():
    full = Constraints(**FULL)
    sliced = full[[4, 0, 3]]
    assert sliced.labels.tolist() == [-1, 0, 1]
    assert sliced.must_groups.tolist() == [[0, 4], [0, -1], [-1, -1]]
    assert np.array_equal(sliced.soft_groups.toarray(), full.soft_groups.toarray()[[4, 0, 3]])
    assert sliced.ids.tolist() == ["e", "a", "d"]
    # Row 4 shares a must-group with row 0; where that one goes, it takes over its class.
    assert full[[4, 3]].labels.tolist() == [0, 1]


def test_triplets_pass_to_rows_that_stand_for_dropped_ones():
    constraints = Constraints([(1, 5)], triplets=[(0, 1, 2), (3, 4, 0)], n_samples=6)
    assert constraints[[0, 5, 2]].triplets.tolist() == [[0, 1, 2]]
    assert constraints[[0, 2]].triplets.tolist() == []
    assert constraints[[4, 3, 0]].triplets.tolist() == [[1, 0, 2]]


def test_copies_of_a_row_are_joined_and_lose_the_ids():
    twice = CHAIN[[0, 4, 0, 4]]
    assert twice.closure().component_of.tolist() == [0, 1, 0, 1]
    assert twice.ids is None
    assert not twice.closure().contradictory


def test_slicing_does_not_touch_the_original():
    before = copy.deepcopy(CHAIN)
    CHAIN[[0, 0, 3]]
    assert before == CHAIN


def test_scikit_learn_slices_constraints_like_arrays():
    for train, test in KFold(2).split(np.zeros((5, 1))):
        assert _safe_indexing(CHAIN, train) == CHAIN[train]
        assert len(_safe_indexing(CHAIN, test)) == len(test)


def test_union_joins_everything():
    full = Constraints(**FULL)
    more = Constraints(
        [(3, 4)],
        [(1, 4)],
        cannot_link_confidence=[0.5],
        labels=[-1, 0, -1, 1, -1],
        must_groups=[9, 9, -1, -1, -1],
        cannot_groups=[[5, 5], [5, 6], [-1, 7], [-1, 8], [-1, 9]],
        triplets=[(2, 1, 0)],
    )
    both = full | more
    assert both.must_link.tolist() == [[0, 1], [1, 2], [3, 4]]
    assert both.must_link_confidence.tolist() == [0.1, 1.0, 1.0]
    assert both.cannot_link.tolist() == [[0, 3], [1, 4]]
    assert both.cannot_link_confidence.tolist() == [0.3, 0.5]
    assert both.labels.tolist() == [0, 0, -1, 1, -1]
    assert both.must_groups.T.tolist() == [[0, -1, 2, -1, 0], [-1, 3, 3, -1, 4], [9, 9, -1, -1, -1]]
    assert both.cannot_groups.shape == (5, 3)
    assert both.triplets.tolist() == [[0, 1, 2], [4, 3, 2], [2, 1, 0]]
    assert np.array_equal(both.soft_groups.toarray(), FULL["soft_groups"])
    assert both.ids.tolist() == FULL["ids"]


def test_union_puts_soft_groups_side_by_side():
    both = Constraints(soft_groups=[[0.5], [0.1]]) | Constraints(soft_groups=[[0.25, 0.25], [0, 0.9]])
    assert both.soft_groups.toarray().tolist() == [[0.5, 0.25, 0.25], [0.1, 0, 0.9]]


def test_union_takes_the_number_of_rows_from_either():
    assert (Constraints([(0, 1)]) | Constraints(n_samples=4)).n_samples == 4
    assert (Constraints(n_samples=4) | Constraints([(0, 1)])).n_samples == 4
    with pytest.raises(ConstraintError, match=r"names row 9, but n_samples=4"):
        Constraints(n_samples=4) | Constraints([(0, 9)])


def test_union_refuses_what_does_not_fit():
    with pytest.raises(ConstraintError, match=r"of 3 rows cannot be joined with constraints of 4 rows"):
        Constraints(n_samples=3) | Constraints(n_samples=4)
    with pytest.raises(ConstraintError, match=r"name their rows differently"):
        Constraints(ids=["a", "b"]) | Constraints(ids=["a", "c"])
    with pytest.raises(ContradictoryConstraintsError, match=r"^Row b has class 0 in one and 1 in the other"):
        Constraints(labels=[0, 0], ids=["a", "b"]) | Constraints(labels=[0, 1])
    with pytest.raises(TypeError):
        Constraints() | [(0, 1)]


def test_at_least_keeps_the_sure_pairs():
    full = Constraints(**FULL)
    assert full.at_least(0.05) is full
    surer = full.at_least(0.3)
    assert surer.must_link.tolist() == [[1, 2]]
    assert surer.cannot_link.tolist() == [[0, 3]]
    assert surer.labels.tolist() == FULL["labels"]
    assert surer.ids.tolist() == FULL["ids"]


def test_equality_with_other_things():
    assert Constraints() != "nothing"
    assert Constraints(soft_groups=[[0.5]]) != Constraints(n_samples=1)
    assert Constraints(n_samples=1) != Constraints(soft_groups=[[0.5]])
    assert Constraints(soft_groups=[[0.5]]) == Constraints(soft_groups=sparse.coo_array([[0.5]]))
    assert Constraints(soft_groups=[[0.5]]) != Constraints(soft_groups=[[0.25]])
    assert Constraints(labels=[0, 1]) != Constraints(labels=[0, 1], ids=["a", "b"])


def test_violations_of_given_pairs():
    constraints = Constraints([(0, 1), (2, 3)], [(0, 2), (1, 3)])
    must, cannot = constraints.violations([0, 1, 1, 1])
    assert must.tolist() == [[0, 1]]
    assert cannot.tolist() == [[1, 3]]


def test_noise_is_with_nobody():
    must, cannot = Constraints([(0, 1)], [(2, 3)]).violations([-1, -1, -1, -1])
    assert must.tolist() == [[0, 1]]
    assert cannot.tolist() == []


@pytest.mark.parametrize("group", [0, 10**18, 2**63 - 1])
def test_violations_of_groups_whatever_their_numbers(group):
    must, cannot = Constraints(must_groups=[group, group, -1]).violations([7, 8, 8])
    assert (must.tolist(), cannot.tolist()) == ([[0, 1]], [])
    must, cannot = Constraints(cannot_groups=[group, group, 5]).violations([9, 9, 9])
    assert (must.tolist(), cannot.tolist()) == ([], [[0, 1]])
    conflicts = Constraints([(0, 1)], cannot_groups=[group, group]).conflicts()
    assert [conflict.rows for conflict in conflicts] == [(0, 1)]


def test_violations_of_classes():
    must, cannot = Constraints(labels=[4, 4, 7, -1]).violations([0, 1, 1, 1])
    assert must.tolist() == [[0, 1]]
    assert cannot.tolist() == [[1, 2]]


def two_stars(n):
    """Two must-link stars of n rows, joined by one cannot-link."""
    leaves = np.arange(1, n)
    star = np.column_stack([np.zeros_like(leaves), leaves])
    return Constraints(np.concatenate([star, star + n]), [(n - 1, 2 * n - 1)], n_samples=2 * n)


def test_two_stars_of_two_thousand_rows_stay_below_ten_megabytes():
    def work():
        constraints = two_stars(2000)
        constraints.closure()
        constraints.conflicts()
        constraints.violations(np.zeros(4000, dtype=int))
        return constraints.check(2), constraints[::2]

    peak, (found, kept) = traced_peak(work)
    assert peak < 10_000_000
    assert found.labels[0] != found.labels[2000]
    assert len(np.unique(found.labels[:2000])) == 1
    assert kept.closure().n_components == 2


def test_a_must_link_chain_of_a_million_rows():
    rows = np.arange(1_000_000)
    constraints = Constraints(np.column_stack([rows[:-1], rows[1:]]), n_samples=len(rows))
    assert constraints.closure().n_components == 1
    assert bool(constraints.check(1))
    backwards = constraints[::-1000]
    assert backwards.closure().n_components == 1


def test_memory_of_the_closure_is_linear_in_rows_and_pairs():
    def peak_at(n):
        rng = np.random.default_rng(0)
        must_link = rng.integers(0, n // 4, (n, 2)) * 4  # a quarter of the rows: large components, others free
        cannot_link = rng.integers(0, n, (n, 2))
        constraints = Constraints(
            must_link[must_link[:, 0] != must_link[:, 1]], cannot_link[cannot_link[:, 0] != cannot_link[:, 1]],
            n_samples=n,
        )  # fmt: skip
        return traced_peak(constraints.closure)[0]

    # 32 bytes a row and pair measured; the bound leaves room for other versions of numpy.
    small, large = peak_at(100_000), peak_at(1_000_000)
    assert large < 64 * 3_000_000
    assert large < 12 * small


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**70, -(2**70), 1e30])
def test_numbers_beyond_64_bits_are_refused_as_such(number):
    for arguments in ({"must_link": [(0, number)]}, {"cannot_link": [(number, 1)]}, {"labels": [0, number]}):
        with pytest.raises(ConstraintError, match=rf"^{next(iter(arguments))} holds .*, which is beyond 64 bits"):
            Constraints(**arguments)
