"""One pass over free rows: each goes to its nearest centre and is added to the sums of its new cluster.

`assign_block` does this for one block of rows. Blocks are independent of each other, and tallies can be added. So a
loop over files or machines can call it for each block and add the tallies in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from threadpoolctl import threadpool_limits

from clew.kernels.assign import assign_nearest
from clew.partitional._geometry import Block, FloatArray, Labels, Problem, Scoring

Map = Callable[..., Iterator[Any]]


@dataclass
class Tally:
    """Sums of a pass over rows: weighted sum and weight by cluster, total score, number of changed labels."""

    sums: FloatArray
    masses: FloatArray
    totals: FloatArray = field(default_factory=lambda: np.zeros(2))  # score, labels changed

    @classmethod
    def empty(cls, n_clusters: int, n_columns: int) -> Tally:
        """A tally before any row."""
        return cls(np.zeros((n_clusters, n_columns)), np.zeros(n_clusters))

    def add(self, other: Tally) -> None:
        """Add the tally of another pass."""
        self.sums += other.sums
        self.masses += other.masses
        self.totals += other.totals


def assign_block(
    rows: Any,
    weights: FloatArray,
    free: npt.NDArray[np.uint8],
    scoring: Scoring,
    labels: Labels,
    tally: Tally,
    scores: npt.NDArray[Any] | None = None,
) -> None:
    """Assign the free rows of one block to their nearest centres and add them to the tally.

    Writes `labels` and `tally`; `scores` is work space for dense rows. `weights` is empty where all are 1.
    """
    is_sparse = sparse.issparse(rows)
    block = scoring(rows, scores)
    no_rows = np.empty((0, 0), dtype=rows.dtype)
    assign_nearest(
        no_rows if is_sparse else rows, block, scoring.offsets, weights, free, labels,
        tally.sums, tally.masses, tally.totals,
    )  # fmt: skip
    if is_sparse:
        some = np.flatnonzero(free)
        share = weights[some] if len(weights) else np.ones(len(some))
        mixing = sparse.csr_matrix((share, (labels[some], some)), shape=(len(tally.masses), rows.shape[0]))
        tally.sums += (mixing @ rows).toarray()


def assign_free(
    problem: Problem,
    chunks: list[list[Block]],
    centers: FloatArray,
    free: npt.NDArray[np.uint8],
    labels: Labels,
    run: Map,
) -> Tally:
    """Assign all free rows, a chunk per task of `run`; the tallies of chunks are added up in their order."""
    scoring = problem.scoring(centers)

    def one_chunk(blocks: list[Block]) -> Tally:
        tally = Tally.empty(*centers.shape)
        scores = np.empty((max(stop - start for start, stop, _ in blocks), len(centers)), dtype=problem.X.dtype)
        for start, stop, rows in blocks:
            weights = problem.weights[start:stop] if len(problem.weights) else problem.weights
            assign_block(rows, weights, free[start:stop], scoring, labels[start:stop], tally, scores[: stop - start])
        return tally

    total = Tally.empty(*centers.shape)
    for tally in run(one_chunk, chunks):
        total.add(tally)
    return total


@contextmanager
def threads(n_jobs: int) -> Iterator[Map]:
    """A `map` that keeps the order, with threads if `n_jobs` asks for more than one."""
    if n_jobs == 1:
        yield map
        return
    # Blocks are small, and with several threads here, BLAS threads would only wait for each other.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(n_jobs) as executor:
        yield executor.map


def nearest(problem: Problem, centers: FloatArray) -> Labels:
    """The nearest centre of every row."""
    labels = np.full(problem.n_rows, -1, dtype=np.int32)
    with threads(problem.n_jobs) as run:
        assign_free(problem, problem.chunks, centers, np.ones(problem.n_rows, dtype=np.uint8), labels, run)
    return labels
