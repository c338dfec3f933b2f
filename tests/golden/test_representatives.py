"""Labels of rows and points of micro-clusters equal slow loops on tiny tables."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances_argmin

from clew.active import _representatives
from clew.active._representatives import MicroClusters, Points
from tests.reference import representatives as reference


@pytest.mark.parametrize("trial", range(30))
def test_labels_of_rows_match_the_reference(trial, seed, monkeypatch):
    monkeypatch.setattr(_representatives, "_N_VOTERS", 3)
    rng = np.random.default_rng([seed, trial])
    n_rows, n_micro = 24, 6
    columns = rng.normal(size=(n_rows, 2))
    micro = MicroClusters.around(columns, np.sort(rng.choice(n_rows, n_micro, replace=False)))
    extra = np.setdiff1d(rng.choice(n_rows, 6), micro.medoids)
    points = Points.of(micro, extra, np.arange(n_rows))
    of_points, predicted = rng.integers(3, size=len(points.row_of)), rng.integers(3, size=n_rows)
    rows = np.union1d(extra, rng.choice(micro.medoids, 2))
    named = dict(zip(rows.tolist(), of_points[points(rows)].tolist(), strict=True))
    cells = of_points[:n_micro].tolist()
    expected = reference.labels_of_rows(
        columns, micro.medoids.tolist(), micro.of_row.tolist(), cells, named, predicted.tolist(), 3
    )
    assert points.labels(of_points, rows, lambda some: predicted[some]).tolist() == expected


def test_rows_belong_to_the_nearest_medoid_and_equal_medoids_to_themselves():
    columns = np.array([[9.0], [0.0], [1.0], [1.0], [8.0], [2.0]])
    micro = MicroClusters.around(columns, np.array([0, 2, 3]))
    assert micro.of_row.tolist() == [0, 1, 1, 2, 0, 1]
    assert micro.centers.tolist() == [[9.0], [1.0], [1.0]]
    assert micro.sizes.tolist() == [2, 3, 1]


def test_the_search_among_candidates_finds_nearly_all_nearest_medoids(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    columns, points = rng.normal(size=(3_000, 4)), rng.normal(size=(600, 4))
    for name, value in (("_MOST_COMPARED", 0), ("_N_CELLS", 20), ("_N_CANDIDATES", 300)):
        monkeypatch.setattr(_representatives, name, value)
    found, squares = _representatives._nearest(columns, points, 3)
    assert (found[:, 0] == pairwise_distances_argmin(columns, points)).mean() > 0.95
    expected = ((columns[:, None] - points[found]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares, expected, rtol=1e-3, atol=1e-6)  # single precision
    assert (np.diff(squares) >= 0).all()


def test_named_rows_are_points_and_rows_of_one_known_class_share_a_point():
    micro = MicroClusters.around(np.arange(8.0)[:, None], np.array([1, 5]))
    assert micro.of_row.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    # Rows 2 and 3 are in one component, and row 7 is in the component of its medoid.
    points = Points.of(micro, np.array([2, 3, 4, 7]), np.array([0, 1, 2, 2, 3, 4, 5, 4]))
    assert points.row_of.tolist() == [1, 5, 2, 4]
    assert points(np.arange(8)).tolist() == [0, 0, 2, 2, 3, 1, 1, 1]
