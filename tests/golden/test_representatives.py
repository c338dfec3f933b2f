"""Labels of rows and points of micro-clusters equal slow loops on tiny tables."""

from __future__ import annotations

import numpy as np
import pytest

from clew.active import _representatives
from clew.active._representatives import MicroClusters, Points
from tests.reference import representatives as reference


@pytest.mark.parametrize("trial", range(30))
def test_labels_of_rows_match_the_reference(trial, seed, monkeypatch):
    monkeypatch.setattr(_representatives, "_N_VOTERS", 3)
    rng = np.random.default_rng([seed, trial])
    n_rows, n_micro = 24, 6
    columns = rng.normal(size=(n_rows, 2))
    micro = MicroClusters.around(columns, np.append(np.arange(n_micro), rng.integers(n_micro, size=n_rows - n_micro)))
    extra = np.setdiff1d(rng.choice(n_rows, 6), micro.medoids)
    points = Points.of(micro, extra, np.arange(n_rows))
    of_points = rng.integers(3, size=len(points.row_of))
    rows = np.union1d(extra, rng.choice(micro.medoids, 2))
    named = dict(zip(rows.tolist(), of_points[points(rows)].tolist(), strict=True))
    cells = of_points[:n_micro].tolist()
    expected = reference.labels_of_rows(columns, micro.centers, micro.of_row.tolist(), cells, named, 3)
    assert points.labels(of_points, rows).tolist() == expected


def test_a_medoid_is_the_row_nearest_to_the_centre_and_numbers_its_micro_cluster():
    columns = np.array([[9.0], [0.0], [1.0], [2.0], [8.0], [10.0]])
    micro = MicroClusters.around(columns, np.array([7, 3, 3, 3, 7, 7]))
    assert micro.medoids.tolist() == [0, 2]
    assert micro.of_row.tolist() == [0, 1, 1, 1, 0, 0]
    assert micro.centers.tolist() == [[9.0], [1.0]]
    assert micro.sizes.tolist() == [3, 3]


def test_named_rows_are_points_and_rows_of_one_known_class_share_a_point():
    micro = MicroClusters.around(np.arange(8.0)[:, None], np.repeat([0, 1], 4))
    assert micro.medoids.tolist() == [1, 5]
    # Rows 2 and 3 are in one component, and row 7 is in the component of its medoid.
    points = Points.of(micro, np.array([2, 3, 4, 7]), np.array([0, 1, 2, 2, 3, 4, 5, 4]))
    assert points.row_of.tolist() == [1, 5, 2, 4]
    assert points(np.arange(8)).tolist() == [0, 0, 2, 2, 3, 1, 1, 1]
