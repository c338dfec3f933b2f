"""Constraints from distances: strictly closer than delta, farther apart than gamma."""

from __future__ import annotations

from itertools import combinations
from math import dist, inf, nan, sqrt

import numpy as np
import pandas as pd
import pytest

from clew import Constraints
from clew.constraints import _geometry
from clew.exceptions import ConstraintError, DataError, ParameterError

GRID = [(float(x), float(y)) for x in range(4) for y in range(3)]
DISTANCES = [
    0.0,
    0.5,
    1.0,
    np.nextafter(1.0, 2),
    sqrt(2),
    np.nextafter(sqrt(2), 2),
    2.0,
    sqrt(5),
    3.0,
    sqrt(13),
    9.0,
    inf,
]


def ordered(pairs):
    return sorted(tuple(sorted(pair)) for pair in pairs.tolist())


@pytest.mark.parametrize("distance", DISTANCES)
def test_both_equal_brute_force_on_a_grid(distance):
    # Whole coordinates: every squared distance is exact, and so is the comparison at it.
    pairs = list(combinations(range(len(GRID)), 2))
    closer = [(i, j) for i, j in pairs if dist(GRID[i], GRID[j]) < distance]
    farther = [(i, j) for i, j in pairs if dist(GRID[i], GRID[j]) > distance]
    assert ordered(Constraints.min_separation(GRID, distance).must_link) == closer
    assert ordered(Constraints.max_diameter(GRID, distance).cannot_link) == farther


def test_a_pair_at_the_distance_itself_is_in_neither():
    points = [[0.0], [3.0]]
    assert Constraints.min_separation(points, 3.0) == Constraints(n_samples=2)
    assert Constraints.max_diameter(points, 3.0) == Constraints(n_samples=2)


def test_equal_rows():
    points = np.zeros((4, 2))
    assert len(Constraints.min_separation(points, 0.0).must_link) == 0
    assert len(Constraints.min_separation(points, 1e-9).must_link) == 6
    assert len(Constraints.max_diameter(points, 0.0).cannot_link) == 0


def test_random_points_in_blocks(seed, monkeypatch):
    points = np.random.default_rng(seed).normal(size=(40, 3))
    pairs = list(combinations(range(40), 2))
    whole = Constraints.max_diameter(points, 1.5)
    monkeypatch.setattr(_geometry, "_BLOCK_ENTRIES", 100)
    assert Constraints.max_diameter(points, 1.5) == whole
    assert ordered(whole.cannot_link) == [(i, j) for i, j in pairs if dist(points[i], points[j]) > 1.5]
    closer = [(i, j) for i, j in pairs if dist(points[i], points[j]) < 1.5]
    assert ordered(Constraints.min_separation(points, 1.5).must_link) == closer


def test_limits_are_refused_with_the_count():
    points = np.arange(20.0)[:, None]
    assert len(Constraints.min_separation(points, 2.5, limit=37).must_link) == 37
    with pytest.raises(ConstraintError) as caught:
        Constraints.min_separation(points, 2.5, limit=36)
    assert str(caught.value) == "37 pairs are closer than delta=2.5, more than limit=36. Raise limit, or lower delta."
    assert len(Constraints.max_diameter(points, 2.5, limit=153).cannot_link) == 153
    with pytest.raises(ConstraintError) as caught:
        Constraints.max_diameter(points, 2.5, limit=152)
    assert str(caught.value) == (
        "153 pairs are farther apart than gamma=2.5, more than limit=152. Raise limit, or raise gamma."
    )


def test_too_many_pairs_are_refused_before_they_are_listed():
    with pytest.raises(ConstraintError, match=r"^4999950000 pairs are farther apart than gamma=0\.5"):
        Constraints.max_diameter(np.arange(100_000.0)[:, None], 0.5)


@pytest.mark.parametrize("way", [Constraints.min_separation, Constraints.max_diameter])
def test_frames_lists_and_no_rows(way):
    frame = pd.DataFrame({"x": [0.0, 1.0, 9.0], "y": [0, 0, 0]})
    assert way(frame, 2.0) == way(frame.to_numpy().tolist(), 2.0)
    assert len(way(frame, 2.0)) == 3
    assert len(way(np.empty((0, 2)), 2.0)) == 0
    assert len(way([[1.0, 2.0]], 2.0)) == 1


@pytest.mark.parametrize(("way", "name"), [(Constraints.min_separation, "delta"), (Constraints.max_diameter, "gamma")])
@pytest.mark.parametrize("distance", [-1.0, nan, None, "far", 1j])
def test_bad_distances(way, name, distance):
    with pytest.raises(ParameterError) as caught:
        way(GRID, distance)
    assert str(caught.value) == f"{name}={distance!r}: expected a distance >= 0."


@pytest.mark.parametrize("way", [Constraints.min_separation, Constraints.max_diameter])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        pytest.param([[0.0, 1.0], [2.0, nan]], "X contains nan at row 1, column 1. ", id="nan"),
        pytest.param([[0.0, -inf], [2.0, 3.0]], "X contains -inf at row 0, column 1. ", id="infinity"),
        pytest.param([0.0, 1.0], "X has shape (2,): expected rows x columns.", id="flat"),
        pytest.param([["a"], ["b"]], "X holds a value that is not a number. ", id="text"),
    ],
)
def test_bad_data(way, X, message):
    with pytest.raises(DataError) as caught:
        way(X, 1.0)
    assert str(caught.value).startswith(message)
