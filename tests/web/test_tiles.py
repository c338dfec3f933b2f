"""Density tiles of the map: as counted bin by bin."""

from collections import Counter

import numpy as np
import pytest

from clew.web._tiles import DEEPEST, DensityTiles


def counted(points, clusters, level, column, row):
    """The points of each bin, and their clusters, by a loop over the points."""
    found = {}
    n_bins = 256 * 2**level
    for (x, y), cluster in zip(points.tolist(), clusters.tolist(), strict=True):
        bin_x, bin_y = (min(int((one + 1) / 2 * n_bins), n_bins - 1) for one in (x, y))
        if (bin_x // 256, bin_y // 256) == (column, row):
            found.setdefault(256 * (bin_y % 256) + bin_x % 256, Counter())[cluster] += 1
    return found


@pytest.mark.parametrize("level", [0, 1, 5, DEEPEST])
def test_a_tile_counts_its_points_and_names_the_most_frequent_cluster(seed, level):
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(0.2, 0.02, (300, 2)), rng.uniform(-1, 1, (200, 2)), [[1, 1], [-1, -1], [0, 0]]])
    points = np.repeat(points, rng.integers(1, 4, len(points)), axis=0).clip(-1, 1).astype(np.float32)
    clusters = rng.integers(-1, 3, len(points))
    tiles = DensityTiles(points)
    n = 2**level
    corners = {
        (0, 0),
        (n - 1, n - 1),
        (n // 2, n // 2),
        *(tuple(((one + 1) / 2 * n).astype(int)) for one in points[:9]),
    }
    for column, row in corners:
        tile = tiles.tile(level, int(column), int(row), clusters)
        expected = counted(points, clusters, level, column, row)
        assert dict(zip(tile.bins.tolist(), tile.counts.tolist(), strict=True)) == {
            place: sum(of.values()) for place, of in expected.items()
        }
        for place, cluster in zip(tile.bins.tolist(), tile.clusters.tolist(), strict=True):
            most = max(expected[place].values())
            assert cluster == min(one for one, count in expected[place].items() if count == most)
        assert len(tile.packed()) == 10 * len(expected)


def test_every_point_is_in_one_tile_of_a_level(seed):
    points = np.random.default_rng(seed).uniform(-1, 1, (1000, 2)).astype(np.float32)
    tiles, clusters = DensityTiles(points), np.zeros(1000, dtype=int)
    for level in (0, 1, 3):
        n = 2**level
        assert sum(int(tiles.tile(level, x, y, clusters).counts.sum()) for x in range(n) for y in range(n)) == 1000
