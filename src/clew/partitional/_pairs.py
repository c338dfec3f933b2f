"""Given pairs, one by one: for methods in which every pair has a price of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from clew.constraints import Constraints
from clew.constraints._arrays import group_columns
from clew.exceptions import ConstraintError
from clew.kernels.pairs import assign_pairs
from clew.partitional._lloyd import NO_WEIGHT, FloatArray, IntArray, Labels, Problem, Units
from clew.partitional._ties import _once
from clew.solvers.coloring import compress, running

# Groups and classes are written out as pairs; 2,000 labelled rows are just below this limit.
_MOST_PAIRS = 2_000_000


@dataclass(frozen=True)
class Pairs:
    """Given pairs between units, one unit for each row that they name.

    Unit u is row `rows[u]`; pair p joins the units `ends[p]` and is a must-link where `must[p]`;
    `pair_of[pair_ptr[u]:pair_ptr[u + 1]]` are the pairs of unit u; `twins[p]` is the pair of the other kind between the
    same units, -1 where knowledge does not contradict itself so plainly.
    """

    rows: IntArray
    ends: IntArray
    must: npt.NDArray[np.uint8]
    confidence: FloatArray
    pair_ptr: IntArray
    pair_of: IntArray
    twins: IntArray

    @classmethod
    def of(cls, constraints: Constraints) -> Pairs:
        """The pairs that constraints state, each once at its highest confidence; must-links first."""
        must, must_sure, cannot, cannot_sure = given_pairs(constraints)
        pairs = np.concatenate([must, cannot])
        rows = np.unique(pairs)
        ends = np.ascontiguousarray(np.searchsorted(rows, pairs))
        is_must = (np.arange(len(pairs)) < len(must)).astype(np.uint8)
        pair_ptr, pair_of = compress(ends.T.ravel(), np.tile(np.arange(len(pairs)), 2), len(rows))
        twins = np.full(len(pairs), -1, dtype=np.int64)
        keys = ends[:, 0] * len(rows) + ends[:, 1]  # each kind holds a pair once, lower row first
        both = np.intersect1d(keys[: len(must)], keys[len(must) :], assume_unique=True, return_indices=True)[1:]
        twins[both[0]], twins[both[1] + len(must)] = both[1] + len(must), both[0]
        return cls(rows, ends, is_must, np.concatenate([must_sure, cannot_sure]), pair_ptr, pair_of, twins)

    def __len__(self) -> int:
        return len(self.ends)

    def broken(self, labels: npt.NDArray[np.int32]) -> tuple[IntArray, IntArray]:
        """The must-links and the cannot-links that a labelling of the units breaks."""
        first, second = labels[self.ends].T
        return np.flatnonzero((self.must == 1) & (first != second)), np.flatnonzero(
            (self.must == 0) & (first == second)
        )


class PairedAssignment:
    """The state of one run: distances of the units to the present centres, and work space of the kernel."""

    def __init__(self, pairs: Pairs, units: Units, problem: Problem, n_clusters: int) -> None:
        self._arrays = (pairs.ends, pairs.must, pairs.confidence, pairs.pair_ptr, pairs.pair_of, pairs.twins)
        self._units, self._constants = units, problem.left_out(units.points)
        self._weights = np.maximum(units.weights, NO_WEIGHT)
        self._pressure = np.empty((len(units), n_clusters))
        self.distances = np.empty((len(units), n_clusters))
        self.nearest = np.zeros((len(units), 2), dtype=np.int32)

    def measure(self, problem: Problem, centers: FloatArray) -> None:
        """Note the distances of all units to new centres, and the two nearest of each."""
        self.distances = self._units.distances(problem, centers, self._constants)
        closest = np.argsort(self.distances, axis=1, kind="stable")[:, :2]
        self.nearest = np.ascontiguousarray(closest[:, [0, -1]], dtype=np.int32)  # with one cluster, it twice

    def sweep(self, order: IntArray, labels: Labels, prices: FloatArray | None = None) -> None:
        """Visit all pairs once: with `prices` between clusters over all pairs of them (CVQE), else as in LCVQE."""
        by_rows = prices is None
        assign_pairs(
            by_rows, order, *self._arrays, self._weights, self.distances, self.nearest,
            np.empty((0, 0)) if prices is None else prices, labels, self._pressure, np.empty((4, 2), dtype=np.int32),
        )  # fmt: skip

    def score(self, labels: Labels) -> float:
        """Weighted score of a labelling, in the sense of `Problem.scoring`."""
        own = self.distances[np.arange(len(labels)), labels]
        return float((own - self._constants) @ self._units.weights)


def given_pairs(constraints: Constraints) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """Must-links and cannot-links with their confidences, each pair once; groups and classes are written out."""
    must, cannot = [constraints.must_link], [constraints.cannot_link]
    known = constraints.labels
    columns = [
        (must, group_columns(constraints.must_groups)),
        (cannot, group_columns(constraints.cannot_groups)),
        (must, [] if known is None else [known]),
    ]
    _refuse_too_many([column for _, some in columns for column in some], known)
    for kind, some in columns:
        kind += [_pairs_within(column) for column in some]
    if known is not None:
        every = _pairs_within(np.minimum(known, 0))
        cannot.append(every[known[every[:, 0]] != known[every[:, 1]]])
    return (
        *_once(np.concatenate(must), _sure(constraints.must_link_confidence, must)),
        *_once(np.concatenate(cannot), _sure(constraints.cannot_link_confidence, cannot)),
    )


def _sure(confidence: FloatArray, parts: list[IntArray]) -> FloatArray:
    """Confidences of the given pairs, then 1 for what groups and classes state."""
    return np.concatenate([confidence, np.ones(sum(map(len, parts[1:])))])


def _refuse_too_many(columns: list[IntArray], known: IntArray | None) -> None:
    sizes = [np.unique(column[column >= 0], return_counts=True)[1] for column in columns]
    if known is not None:
        sizes.append(np.array([np.count_nonzero(known >= 0)]))
    count = sum(int((size * (size - 1) // 2).sum()) for size in sizes)
    if count > _MOST_PAIRS:
        raise ConstraintError(
            f"Groups and classes state {count} pairs, more than the {_MOST_PAIRS} that this method prices one by one. "
            "Pass some of them as pairs, or use PCKMeans, which counts them."
        )


def _pairs_within(column: IntArray) -> IntArray:
    """All pairs of rows that share a group; -1 is none."""
    rows = np.flatnonzero(column >= 0)
    rows = rows[np.argsort(column[rows], kind="stable")]
    sizes = np.unique(column[rows], return_counts=True)[1]
    later = np.repeat(sizes, sizes) - 1 - running(sizes)
    first = np.repeat(np.arange(len(rows)), later)
    return np.column_stack([rows[first], rows[first + 1 + running(later)]])
