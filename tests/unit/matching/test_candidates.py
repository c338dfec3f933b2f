from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from clew.datasets import as_table
from clew.matching import _candidates
from clew.matching._candidates import _MOST_EXPECTED, _MOST_EXPECTED_IN_ALL, _RARE, sharing_two
from clew.matching._records import fields_of


def reference(columns):
    """Pairs that share two frequent values which few rows are expected to share, and few do."""
    n_rows = len(columns[0])
    n_column_pairs = len(columns) * (len(columns) - 1) // 2
    found = set()
    for one, two in combinations(columns, 2):
        both = list(zip(one, two, strict=True))
        for first, second in combinations(range(n_rows), 2):
            if both[first] != both[second] or "" in both[first]:
                continue
            n_one, n_two = one.count(one[first]), two.count(two[first])
            expected = n_one * n_two / n_rows
            if (
                min(n_one, n_two) > _RARE
                and both.count(both[first]) <= _RARE
                and expected <= min(_MOST_EXPECTED, _MOST_EXPECTED_IN_ALL / n_column_pairs)
            ):
                found.add((first, second))
    return found


@pytest.mark.parametrize("n_columns", [1, 2, 3, 6])
def test_pairs_that_share_two_values_are_those_of_the_definition(seed, n_columns):
    rng = np.random.default_rng([seed, n_columns])
    values = np.array(["", *(f"v{value}" for value in range(15))])
    columns = [values[rng.integers(len(values), size=120)].tolist() for _ in range(n_columns)]
    found = sharing_two(fields_of(as_table({f"c{place}": column for place, column in enumerate(columns)}), None))
    wanted = reference(columns)
    assert {tuple(sorted(pair)) for pairs in found for pair in pairs.tolist()} == wanted
    assert bool(wanted) == (n_columns > 1)


def test_repeated_pairs_are_dropped_on_the_way(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    parts = [rng.integers(20, size=(size, 2)) for size in (0, 30, 5, 0, 200, 50)]
    at_the_end = _candidates._distinct(parts)
    monkeypatch.setattr(_candidates, "_MOST_REPEATED", 0)
    assert_array_equal(_candidates._distinct(iter(parts)), at_the_end)
    assert_array_equal(at_the_end, np.unique(np.sort(np.concatenate(parts), axis=1), axis=0))
