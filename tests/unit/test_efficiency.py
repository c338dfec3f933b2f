"""The efficiency of answers that may be wrong, as the benchmarks print it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.questions import efficiency

BUDGETS, RIGHT = (10, 20, 40), np.array([0.5, 0.8, 1.0])


def test_right_answers_have_the_efficiency_one():
    assert efficiency(0.8, 20, 0.0, RIGHT, BUDGETS) == pytest.approx(1, abs=1e-6)  # ties of the curve are told apart


def test_wrong_answers_are_compared_with_as_many_bits():
    # With 11 % wrong answers, an answer carries 0.5 bits: 40 answers are worth 20 right ones.
    assert efficiency(0.8, 40, 0.11002786443835955, RIGHT, BUDGETS) == pytest.approx(1, abs=1e-6)


def test_the_number_of_right_answers_is_interpolated_and_bounded():
    bits = 1 + 0.2 * np.log2(0.2) + 0.8 * np.log2(0.8)
    for ari, worth in ((0.25, 5), (0.65, 15), (0.9, 30), (1.0, 40)):
        assert efficiency(ari, 100, 0.2, RIGHT, BUDGETS) == pytest.approx(worth / (100 * bits), abs=1e-6)


def test_a_curve_that_falls_counts_by_its_best_value():
    assert efficiency(0.7, 10, 0.0, np.array([0.7, 0.6, 1.0]), BUDGETS) == pytest.approx(1, abs=1e-6)
