"""The cost of a fit grows as documented: operations are counted, the clock plays no part."""

from __future__ import annotations

import pytest

from benchmarks.scale import EXPECTED_OPERATIONS, QUICK_BASE, QUICK_GROWING, exponent, operations


@pytest.mark.parametrize("name", list(QUICK_GROWING))
def test_operations_of_a_round_grow_as_documented(name):
    sizes = QUICK_GROWING[name]
    counts = [operations(**{**QUICK_BASE, name: size}) for size in sizes]
    assert exponent(sizes, counts) <= EXPECTED_OPERATIONS[name] + 0.1, counts


def test_an_exponent_is_the_slope_of_the_logarithms():
    assert exponent([1, 10, 100], [3.0, 300.0, 30_000.0]) == pytest.approx(2.0)
