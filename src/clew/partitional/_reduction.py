"""One pass over free rows: each goes to its nearest centre and is added to the sums of its new cluster.

`assign_block` does this for one block of rows. Blocks are independent of each other, and tallies can be added. So a
loop over files or machines can call it for each block and add the tallies in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from threadpoolctl import ThreadpoolController

from clew.kernels.assign import assign_nearest
from clew.partitional._geometry import (
    Chunk,
    FloatArray,
    IntArray,
    Labels,
    Problem,
    Scoring,
    map_chunks,
    square_norms,
    weighted_total,
)

Map = Callable[..., Iterator[Any]]


@dataclass
class Tally:
    """Sums of a pass over rows: weighted sum and weight by cluster, total score, number of changed labels.

    `errors` holds the rounding errors of `sums`, so that rows can be subtracted exactly.
    """

    sums: FloatArray
    errors: FloatArray
    masses: FloatArray
    totals: FloatArray  # score, labels changed

    @classmethod
    def empty(cls, n_clusters: int, n_columns: int) -> Tally:
        """A tally before any row."""
        shape = (n_clusters, n_columns)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(n_clusters), np.zeros(2))

    def add(self, other: Tally) -> None:
        """Add the tally of another pass."""
        before = self.sums
        self.sums = before + other.sums
        rounded = self.sums - before
        self.errors += (before - (self.sums - rounded)) + (other.sums - rounded) + other.errors
        self.masses += other.masses
        self.totals += other.totals

    def rounded(self) -> Tally:
        """A copy whose sums contain the errors."""
        return Tally(self.sums + self.errors, np.zeros_like(self.errors), self.masses.copy(), self.totals.copy())


def assign_block(
    rows: Any,
    weights: FloatArray,
    free: npt.NDArray[np.uint8],
    scoring: Scoring,
    labels: Labels,
    tally: Tally,
    scores: npt.NDArray[Any] | None = None,
    *,
    fresh: bool = False,
) -> None:
    """Assign the free rows of one block to their nearest centres and add them to the tally.

    Writes `labels` and `tally`; `scores` is work space for dense rows. `weights` is empty if all are 1. Unless
    `fresh`, only rows whose labels change count in the sums: they leave their old cluster and join the new one.
    """
    is_sparse = sparse.issparse(rows)
    block = scoring(rows, scores)
    no_rows = np.empty((0, 0), dtype=rows.dtype)
    before = labels.copy() if is_sparse else labels
    assign_nearest(
        no_rows if is_sparse else rows, block, scoring.offsets, weights, free, fresh, labels,
        tally.sums, tally.errors, tally.masses, tally.totals,
    )  # fmt: skip
    if is_sparse:
        joins = np.flatnonzero(free if fresh else labels != before)
        leaves = joins[:0] if fresh else joins[before[joins] >= 0]
        some, signs = np.concatenate([joins, leaves]), np.repeat([1.0, -1.0], [len(joins), len(leaves)])
        share = weights[some] * signs if len(weights) else signs
        places = np.concatenate([labels[joins], before[leaves]])
        mixing = sparse.csr_matrix((share, (places, some)), shape=(len(tally.masses), rows.shape[0]))
        tally.sums += (mixing @ rows).toarray()


def assign_chunk(
    chunk: Chunk,
    weights: FloatArray,
    free: npt.NDArray[np.uint8],
    scoring: Scoring,
    labels: Labels,
    *,
    fresh: bool,
) -> Tally:
    """Assign the free rows of one chunk. `weights`, `free` and `labels` belong to its rows."""
    n_columns, n_clusters = scoring.directions.shape
    tally = Tally.empty(n_clusters, n_columns)
    scores = np.empty((chunk.block_rows, n_clusters), dtype=scoring.directions.dtype)
    for start, stop, rows in chunk.blocks():
        here = slice(start - chunk.start, stop - chunk.start)
        share = weights[here] if len(weights) else weights
        assign_block(rows, share, free[here], scoring, labels[here], tally, scores[: stop - start], fresh=fresh)
    return tally


def assign_free(
    problem: Problem,
    centers: FloatArray,
    free: npt.NDArray[np.uint8],
    labels: Labels,
    run: Map,
    *,
    fresh: bool = False,
) -> Tally:
    """Assign all free rows, a chunk per task of `run`; the tallies of chunks are added up in their order."""
    scoring = problem.scoring(centers)

    def one_chunk(chunk: Chunk) -> Tally:
        here = slice(chunk.start, chunk.stop)
        weights = problem.weights[here] if len(problem.weights) else problem.weights
        return assign_chunk(chunk, weights, free[here], scoring, labels[here], fresh=fresh)

    total = Tally.empty(*centers.shape)
    for tally in run(one_chunk, [chunk for chunk in problem.chunks if free[chunk.start : chunk.stop].any()]):
        total.add(tally)
    return total


def row_labels(problem: Problem, tied: IntArray) -> RowLabels:
    """Labels for a run over the rows of a problem. Rows on other machines have their own class of labels."""
    if len(tied) == problem.n_rows:
        return AllTied(problem, tied)
    make = getattr(problem.X, "row_labels", RowLabels)
    return cast(RowLabels, make(problem, tied))


class Candidate(NamedTuple):
    """A row that may become the centre of an empty cluster, and the cost that this would save."""

    gain: float
    place: int
    point: FloatArray


class RowLabels:
    """The labels of all rows during one run, and the passes over rows that its rounds need.

    The rounds access rows only through this class, so a subclass can keep rows and labels elsewhere.
    """

    def __init__(self, problem: Problem, tied: IntArray) -> None:
        self.values = np.full(problem.n_rows, -1, dtype=np.int32)
        self._free = np.ones(problem.n_rows, dtype=np.uint8)
        self._free[tied] = 0
        self._tally: Tally | None = None
        self._X: Any = None

    def assign(self, problem: Problem, centers: FloatArray, run: Map) -> Tally:
        """Assign the free rows; return the sums of all free rows, the score, and the number of changed labels."""
        # Only rows that move change the sums. An empty cluster may keep a weight that is a rounding error.
        fresh = self._tally is None or problem.X is not self._X or len(problem.weights) > 0
        tally = assign_free(problem, centers, self._free, self.values, run, fresh=fresh)
        if not fresh and self._tally is not None:
            of_this_pass = tally.totals.copy()
            tally.add(self._tally)
            tally.totals = of_this_pass
        self._tally, self._X = tally, problem.X
        return tally.rounded()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Labels and sums, for a checkpoint."""
        assert self._tally is not None
        tally = self._tally
        return {"labels": self.values, "sums": tally.sums, "errors": tally.errors, "masses": tally.masses}

    def restore(self, problem: Problem, labels: Labels, tally: Tally) -> None:
        """Continue from the result of `state`."""
        self.values[:] = labels
        self._tally, self._X = tally, problem.X

    def place(self, rows: IntArray, labels: Labels) -> None:
        """Set the labels of some rows."""
        self.values[rows] = labels

    def farthest(self, problem: Problem, centers: FloatArray, n_wanted: int) -> list[Candidate]:
        """The free rows that gain most from a centre of their own, highest gain first."""
        search = partial(farthest_in_chunk, problem.without_rows(), centers, n_wanted)
        chunks = map_chunks(problem.X, search, self.values, self._free, problem.weights)
        return highest([one for found in chunks for one in found], n_wanted)


class AllTied(RowLabels):
    """Labels of rows that are all assigned by a policy, so that no pass over free rows is needed."""

    def assign(self, problem: Problem, centers: FloatArray, run: Map) -> Tally:
        self._tally, self._X = Tally.empty(*centers.shape), problem.X
        return self._tally.rounded()

    def farthest(self, problem: Problem, centers: FloatArray, n_wanted: int) -> list[Candidate]:
        return []


def farthest_in_chunk(
    problem: Problem,
    centers: FloatArray,
    n_wanted: int,
    chunk: Chunk,
    labels: Labels,
    free: npt.NDArray[np.uint8],
    weights: FloatArray,
) -> list[Candidate]:
    """The free rows of a chunk that gain most from a centre of their own."""
    found: list[Candidate] = []
    if not free.any():
        return found
    for start, stop, rows in chunk.blocks():
        here = slice(start - chunk.start, stop - chunk.start)
        costs = problem.own_costs(rows, centers, labels[here])
        gain = np.where(free[here], problem.gains(square_norms(rows), costs), 0.0)
        gain = gain * weights[here] if len(weights) else gain
        best = np.argsort(-gain, kind="stable")[:n_wanted]
        found += [Candidate(float(gain[row]), start + int(row), dense(rows[[row]])) for row in best if gain[row] > 0]
    return highest(found, n_wanted)


def highest(candidates: list[Candidate], n_wanted: int) -> list[Candidate]:
    """The candidates that gain most, highest gain first; ties go to the first row."""
    return sorted(candidates, key=lambda one: (-one.gain, one.place))[:n_wanted]


def dense(rows: Any) -> FloatArray:
    """Rows as a dense array of float64."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)


def total_cost(problem: Problem, centers: FloatArray, labels: Any) -> float:
    """Sum of the weighted costs of all rows with the centres of their clusters."""
    bare = problem.without_rows()

    def cost(chunk: Chunk, labels: Labels, weights: FloatArray) -> float:
        total = 0.0
        for start, stop, rows in chunk.blocks():
            here = slice(start - chunk.start, stop - chunk.start)
            costs = bare.own_costs(rows, centers, labels[here])
            total += weighted_total(costs, weights[here] if len(weights) else weights)
        return total

    return float(sum(map_chunks(problem.X, cost, labels, problem.weights)))


def cluster_masses(problem: Problem, labels: Any, n_clusters: int) -> FloatArray:
    """Total weight of the rows of each cluster."""

    def masses(chunk: Chunk, labels: Labels, weights: FloatArray) -> FloatArray:
        return np.bincount(labels, weights if len(weights) else None, minlength=n_clusters).astype(np.float64)

    return np.asarray(sum(map_chunks(problem.X, masses, labels, problem.weights)))


def cluster_sizes(problem: Problem, labels: Any, n_clusters: int, n_rows: int) -> IntArray:
    """Number of rows of each cluster, among the first `n_rows` rows."""

    def sizes(chunk: Chunk, labels: Labels) -> IntArray:
        return np.bincount(labels[: max(n_rows - chunk.start, 0)], minlength=n_clusters)

    return np.asarray(sum(map_chunks(problem.X, sizes, labels)))


def labels_at(labels: Any, rows: IntArray) -> Labels:
    """The labels of some rows."""
    return np.asarray(labels.at(rows) if hasattr(labels, "at") else labels[rows])


def renamed(labels: Any, names: IntArray | Labels) -> Any:
    """The name of each label."""
    return labels.renamed(names) if hasattr(labels, "renamed") else names[labels]


@contextmanager
def threads(n_jobs: int) -> Iterator[Map]:
    """A `map` that keeps the order, with threads if `n_jobs` asks for more than one.

    BLAS has one thread meanwhile. Blocks are small, so that its threads would mostly wait for each other.
    """
    with one_blas_thread():
        if n_jobs == 1:
            yield map
            return
        with ThreadPoolExecutor(n_jobs) as executor:
            yield executor.map


def one_blas_thread() -> AbstractContextManager[Any]:
    """Give BLAS one thread meanwhile. Threads for small matrices mostly wait, and take the cores from other work."""
    return cast(AbstractContextManager[Any], _thread_pools().limit(limits=1, user_api="blas"))


@cache
def _thread_pools() -> ThreadpoolController:
    """The libraries with threads of their own; looking for them takes longer than a small fit."""
    return ThreadpoolController()


def nearest(problem: Problem, centers: FloatArray) -> Labels:
    """The nearest centre of every row."""
    if hasattr(problem.X, "nearest"):  # rows on other machines
        return cast(Labels, problem.X.nearest(problem.scoring(centers)))
    labels = np.full(problem.n_rows, -1, dtype=np.int32)
    with threads(problem.n_jobs) as run:
        assign_free(problem, centers, np.ones(problem.n_rows, dtype=np.uint8), labels, run)
    return labels
