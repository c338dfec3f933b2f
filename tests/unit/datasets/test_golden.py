"""Golden records: one row for each group."""

from __future__ import annotations

import numpy as np
import pytest

from clew.datasets import Table, golden_records
from clew.exceptions import DataError


def golden(cells, groups):
    return golden_records([{"a": cell} for cell in cells], groups).column("a").tolist()


def test_the_most_frequent_value_wins_then_the_longest_then_the_first():
    assert golden(["x", "long", "x"], [0, 0, 0]) == ["x"]
    assert golden(["x", "long"], [0, 0]) == ["long"]
    assert golden(["ab", "cd"], [0, 0]) == ["ab"]
    assert golden(["cd", "ab"], [0, 0]) == ["cd"]


@pytest.mark.parametrize(("n_others", "found"), [(4, "Hambburg"), (5, "Hamburg")])
def test_a_value_that_five_records_of_other_groups_have_wins_a_tie(n_others, found):
    others = list(range(2, 2 + n_others))
    assert golden(["Hambburg", "Hamburg", *["Hamburg"] * n_others], [0, 0, *others])[0] == found
    assert golden(["Hambburg", "Hambburg", "Hamburg", *["Hamburg"] * n_others], [0, 0, 0, *others])[0] == "Hambburg"


def test_missing_values_do_not_count():
    assert golden(["", "n/a", "x", "NULL", "xxx"], [0, 0, 0, 0, 0]) == ["x"]
    assert golden(["-", "-", "x", "unknown", "unknown"], [0, 0, 0, 0, 0]) == ["x"]
    assert golden(["", "x"], [0, 1]) == ["", "x"]


def test_groups_are_sorted_and_columns_stay():
    table = golden_records([{"a": "x", "b": 1}, {"a": "y", "b": 2}, {"a": "x", "b": 1}], ["n", "m", "n"])
    assert table.columns == ["a", "b"]
    assert (table.column("a").tolist(), table.column("b").tolist()) == (["y", "x"], [2, 1])


def test_numbers_stay_numbers_and_whole_ones_are_whole():
    numbers = Table("t", {"a": np.array([1.5, 1.5, 2.0]), "b": np.array([7.0, np.nan, np.nan])}, ("a", "b"), 3)
    found = golden_records(numbers, [0, 0, 1])
    assert found.column("a").tolist() == [1.5, 2.0]
    assert found.column("b").tolist() == ["7", ""]


def test_wrong_shapes_are_refused():
    with pytest.raises(DataError, match="groups has the shape"):
        golden_records([{"a": "x"}], [0, 1])
    with pytest.raises(DataError, match='"v" of t holds vectors'):
        golden_records(Table("t", {"v": np.zeros((2, 3))}, ("v",), 2), [0, 1])
