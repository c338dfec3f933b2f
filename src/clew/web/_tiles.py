"""Density of the points of a map in square tiles, for more rows than a page can draw one by one.

Level 0 is one tile that covers the map, from -1 to 1 on both axes. Each next level divides every tile into four. A tile
has 256 × 256 bins. Points are sorted once along a Z-order curve: the bits of the two coordinates, interleaved. In that
order, the points of a tile are neighbours, and so are the points of each of its bins, at every level.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint64]

BIN_BITS = 8
DEEPEST = 16
_BITS = DEEPEST + BIN_BITS
# Steps that insert a zero bit before every bit of a number of 32 bits.
_SPREAD = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)


class Tile(NamedTuple):
    """The bins of a tile that hold points. Bin ``256 * y + x`` is in column x from the left and row y from the bottom.

    Two points of cluster 4 in the lowest left bin, and one of cluster 7 to the right of it, give ``bins=[0, 1]``,
    ``counts=[2, 1]``, ``clusters=[4, 7]``.
    """

    counts: npt.NDArray[np.uint32]
    clusters: npt.NDArray[np.int32]  # the most frequent cluster of each bin, the lowest if there are several
    bins: npt.NDArray[np.uint16]

    def packed(self) -> bytes:
        """The three arrays one after the other, little-endian."""
        arrays = (self.counts.astype("<u4"), self.clusters.astype("<i4"), self.bins.astype("<u2"))
        return b"".join(array.tobytes() for array in arrays)


class DensityTiles:
    """Tiles of a fixed set of points. Time O(n log n) to build, and O(m log m) for a tile of m points."""

    def __init__(self, points: npt.NDArray[Any]) -> None:
        cells = ((points.astype(np.float64) + 1) * 2.0 ** (_BITS - 1)).clip(0, 2**_BITS - 1).astype(np.uint64)
        codes = _interleaved(cells[:, 0], cells[:, 1])
        self._order: IntArray = np.argsort(codes)
        self._codes: Codes = codes[self._order]

    def tile(self, level: int, column: int, row: int, clusters: npt.NDArray[Any]) -> Tile:
        """Count the points in each bin of a tile. `clusters` holds the cluster of every point, -1 for none."""
        code = int(_interleaved(np.array([column], dtype=np.uint64), np.array([row], dtype=np.uint64))[0])
        width = 2 * (_BITS - level)
        first, last = np.searchsorted(self._codes, np.array([code << width, (code + 1) << width], dtype=np.uint64))
        inside = self._codes[first:last] >> np.uint64(width - 2 * BIN_BITS)
        changes = np.flatnonzero(np.diff(inside))
        starts = np.concatenate([[0], changes + 1]) if len(inside) else np.empty(0, dtype=np.int64)
        counts = np.diff(np.append(starts, len(inside)))
        own = clusters[self._order[first:last]].astype(np.int64)
        return Tile(
            counts.astype(np.uint32),
            _most_frequent(np.repeat(np.arange(len(starts)), counts), own, len(starts)),
            _row_major(inside[starts] & np.uint64(2 ** (2 * BIN_BITS) - 1)),
        )


def _most_frequent(group: IntArray, values: IntArray, n_groups: int) -> npt.NDArray[np.int32]:
    """The most frequent value of each group; the lowest of several. No group is empty."""
    if not n_groups:
        return np.empty(0, dtype=np.int32)
    lowest = int(values.min())
    span = int(values.max()) - lowest + 1
    found, counts = np.unique(group * span + (values - lowest), return_counts=True)
    order = np.lexsort((-counts, found // span))
    best = found[order[np.searchsorted(found // span, np.arange(n_groups))]]
    return (best % span + lowest).astype(np.int32)


def _interleaved(x: Codes, y: Codes) -> Codes:
    """Codes in which the bits of x and y take turns, the lowest bit being that of x."""
    spread = []
    for bits in (x, y):
        for shift, mask in _SPREAD:
            bits = (bits | (bits << np.uint64(shift))) & np.uint64(mask)
        spread.append(bits)
    return spread[0] | (spread[1] << np.uint64(1))


def _row_major(codes: Codes) -> npt.NDArray[np.uint16]:
    """Bins in rows from bins along the curve."""
    return _ROW_MAJOR[codes.astype(np.int64)]


def _curve() -> npt.NDArray[np.uint16]:
    side = 2**BIN_BITS
    y, x = np.divmod(np.arange(side * side, dtype=np.uint64), np.uint64(side))
    places = np.empty(side * side, dtype=np.uint16)
    places[_interleaved(x, y).astype(np.int64)] = np.arange(side * side)
    return places


_ROW_MAJOR = _curve()
