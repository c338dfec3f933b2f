"""Given pairs, for methods in which every pair has its own price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from clew.constraints import Closure, Constraints
from clew.constraints._arrays import group_columns
from clew.exceptions import ConstraintError
from clew.kernels.pairs import assign_pairs
from clew.partitional._family import KMeansFamily
from clew.partitional._geometry import FloatArray, IntArray, Labels, Problem
from clew.partitional._lloyd import Policy, Solution, lloyd
from clew.partitional._seeding import Start
from clew.partitional._ties import _once
from clew.partitional._units import NO_WEIGHT, Units
from clew.solvers.coloring import compress, running

# Groups and classes are expanded to pairs, up to this limit. 2,000 labelled rows are just below it.
_MOST_PAIRS = 2_000_000


@dataclass(frozen=True)
class Pairs:
    """Given pairs between units, one unit for each row that they name.

    Unit u is row `rows[u]`. Pair p joins the units `ends[p]`, and is a must-link if `must[p]` is 1. The pairs of unit u
    are `pair_of[pair_ptr[u]:pair_ptr[u + 1]]`. `twins[p]` is the pair of the other kind between the same units, -1 if
    there is none. For example, must-link (4, 7) and cannot-link (7, 9) are

        rows      4    7      9
        ends      (0, 1)  (1, 2)
        must      1       0
        pair_of   0 |  1 0  | 1       with pair_ptr 0 1 3 4
        twins     -1      -1
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
        keys = ends[:, 0] * len(rows) + ends[:, 1]  # each kind has every pair once, lower row first
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
    """The state of one run: distances of the units to the current centres, and work space of the kernel."""

    def __init__(self, pairs: Pairs, units: Units, problem: Problem, n_clusters: int) -> None:
        self._arrays = (pairs.ends, pairs.must, pairs.confidence, pairs.pair_ptr, pairs.pair_of, pairs.twins)
        self._units, self._constants = units, problem.left_out(units.points)
        self._weights = np.maximum(units.weights, NO_WEIGHT)
        self._pressure = np.empty((len(units), n_clusters))
        self.distances = np.empty((len(units), n_clusters))
        self.nearest = np.zeros((len(units), 2), dtype=np.int32)

    def measure(self, problem: Problem, centers: FloatArray) -> None:
        """Compute the distances of all units to new centres, and the two nearest centres of each."""
        self.distances = self._units.distances(problem, centers, self._constants)
        closest = np.argsort(self.distances, axis=1, kind="stable")[:, :2]
        self.nearest = np.ascontiguousarray(closest[:, [0, -1]], dtype=np.int32)  # with one cluster, the same one twice

    def sweep(self, order: IntArray, labels: Labels, prices: FloatArray | None = None) -> None:
        """Visit all pairs once, as in CVQE if `prices` between clusters are given, else as in LCVQE."""
        by_rows = prices is None
        assign_pairs(
            by_rows, order, *self._arrays, self._weights, self.distances, self.nearest,
            np.empty((0, 0)) if prices is None else prices, labels, self._pressure, np.empty((4, 2), dtype=np.int32),
        )  # fmt: skip

    def score(self, labels: Labels) -> float:
        """Weighted score of a labelling, in the sense of `Problem.scoring`."""
        own = self.distances[np.arange(len(labels)), labels]
        return float((own - self._constants) @ self._units.weights)


class PairPolicy(Policy):
    """Base of the policies of `CVQE` and `LCVQE`. With both, the objective may rise."""

    monotone = False

    def __init__(self, pairs: Pairs, state: PairedAssignment, rng: np.random.Generator) -> None:
        self._pairs, self._state, self._rng = pairs, state, rng


class PairedKMeans(KMeansFamily):
    """Base of `CVQE` and `LCVQE`, which assign the two rows of a pair together. Subclasses supply `_policy`."""

    @classmethod
    def _examples(cls) -> list[Self]:
        return [cls(n_clusters=3, random_state=0), cls(n_clusters=3, metric="cosine", random_state=0)]

    @property
    def _policy(self) -> type[PairPolicy]:
        """The policy class, which assigns pairs and pulls the centres."""
        raise NotImplementedError  # pragma: no cover

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        return paired_kmeans(
            problem, constraints, start, rng, policy=self._policy, max_iter=self.max_iter, tol=self.tol
        )


def paired_kmeans(
    problem: Problem,
    constraints: Constraints,
    start: Start,
    rng: np.random.Generator,
    *,
    policy: type[PairPolicy],
    max_iter: int,
    tol: float,
) -> Solution:
    """Assign the two rows of each pair together, in seeded random order; broken pairs pull the centres."""
    pairs = Pairs.of(constraints)
    if not len(pairs):
        return lloyd(problem, None, None, start.centers, max_iter=max_iter, tol=tol)
    units = Units.contract(problem, pairs.rows, np.arange(len(pairs.rows)), len(pairs.rows))
    chosen = policy(pairs, PairedAssignment(pairs, units, problem, len(start.centers)), rng)
    return lloyd(problem, units, chosen, start.centers, max_iter=max_iter, tol=tol)


def given_pairs(constraints: Constraints) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """Must-links and cannot-links with their confidences, each pair once; groups and classes are expanded."""
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
    """Confidences of the given pairs, then 1 for the pairs of groups and classes."""
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
    """All pairs of rows that share a group; -1 means no group."""
    rows = np.flatnonzero(column >= 0)
    rows = rows[np.argsort(column[rows], kind="stable")]
    sizes = np.unique(column[rows], return_counts=True)[1]
    later = np.repeat(sizes, sizes) - 1 - running(sizes)
    first = np.repeat(np.arange(len(rows)), later)
    return np.column_stack([rows[first], rows[first + 1 + running(later)]])
