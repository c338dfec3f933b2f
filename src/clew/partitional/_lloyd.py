"""The rounds that all k-means relatives share.

Free rows go to their nearest centre in blocks: distances through BLAS, then one compiled pass that takes the minimum
and adds each row to its new cluster. Rows that knowledge ties together are a small set of *units*, which a policy
assigns. A unit is a row, or a whole component: for squared distances (and for cosines) a component acts like one row at
its mean with its total weight, so it is contracted once and moved as a block from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis
from threadpoolctl import threadpool_limits

from clew.kernels.assign import add_rows, assign_nearest

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

# Scores and rows of a block stay in the second-level cache (measured: 1,000 to 4,000 rows are alike at d=16, k=10).
_BLOCK_ENTRIES, _MOST_BLOCK_ROWS, _LEAST_BLOCK_ROWS = 65_536, 4096, 64
# Sums are kept per chunk and added up in order, so that results do not depend on the number of threads.
_CHUNK_ROWS, _MOST_CHUNKS = 32_768, 16
# Units of weight 0 cost next to nothing anywhere, but still prefer the nearest centre.
NO_WEIGHT = 1e-200
# Progress below this share of the data's total scatter is rounding.
_ROUNDING = 4 * np.finfo(np.float64).eps
# Where the objective may rise, rounds end after so many without a new lowest one: they circle, or no longer gain.
_PATIENCE = 20

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Problem:
    """Rows prepared for the rounds: centred (Euclidean, dense) or scaled to length one (cosine)."""

    X: Any
    weights: FloatArray  # empty: all 1
    metric: str
    shift: FloatArray  # what was subtracted from the rows
    n_jobs: int = 1

    @classmethod
    def prepare(cls, X: Any, weights: FloatArray, metric: str, n_jobs: int | None = None) -> Problem:
        """Centre or normalise a copy of X; centring keeps distances exact far from the origin."""
        shift = np.zeros(X.shape[1])
        if metric == "cosine":
            X = unit_rows(X)
        elif not sparse.issparse(X):
            shift = X.mean(axis=0, dtype=np.float64)
            X = X - shift.astype(X.dtype)
        return cls(X, weights, metric, shift, effective_n_jobs(n_jobs))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @cached_property
    def row_weights(self) -> FloatArray:
        """Weights, written out."""
        return self.weights if len(self.weights) else np.ones(self.n_rows)

    @cached_property
    def square_norms(self) -> FloatArray:
        """Squared length of each row."""
        return square_norms(self.X)

    @cached_property
    def constant(self) -> float:
        """What the scores leave out: the weighted squared lengths, the same for every labelling."""
        if self.metric == "cosine":
            return 0.0
        return float(self.square_norms @ self.weights if len(self.weights) else self.square_norms.sum())

    @property
    def scale(self) -> float:
        """What the objective is made of: the weighted squared lengths of all rows, or their weight for cosines."""
        return float(self.row_weights.sum()) if self.metric == "cosine" else self.constant

    @property
    def variances(self) -> FloatArray:
        """Variance of each column."""
        if sparse.issparse(self.X):
            return np.asarray(mean_variance_axis(self.X, axis=0)[1], dtype=np.float64)
        return self.X.var(axis=0, dtype=np.float64)

    @cached_property
    def variance(self) -> float:
        """Mean variance of the columns; the unit of `tol`, as in scikit-learn."""
        if sparse.issparse(self.X) or self.metric == "cosine":
            return float(np.mean(self.variances))
        return float(self.square_norms.sum() / self.X.size)  # the mean is 0

    def scoring(self, centers: FloatArray) -> Scoring:
        """How rows score with each centre; lowest is nearest."""
        if self.metric == "cosine":
            directions, offsets = -centers.T, np.ones(len(centers))
        else:
            directions, offsets = -2 * centers.T, np.einsum("ij,ij->i", centers, centers)
        return Scoring(np.ascontiguousarray(directions, dtype=self.X.dtype), offsets.astype(self.X.dtype))

    def left_out(self, points: Any) -> FloatArray:
        """What the scores of rows leave out, the same for every centre: squared lengths, or nothing for cosines."""
        return np.zeros(points.shape[0]) if self.metric == "cosine" else square_norms(points)

    def surplus(self, labels: Labels) -> float:
        """What the objective holds beyond inertia and the prices of pairs."""
        return 0.0

    def reordered(self, places: IntArray) -> Problem:
        """The same for clusters that changed places: cluster h is now at `places[h]`."""
        return self

    def own_costs(self, rows: Any, centers: FloatArray, labels: Labels) -> FloatArray:
        """Cost of a block of rows with the centres of their clusters."""
        if sparse.issparse(rows):  # all centres: writing out the own centre of each row would take more
            scoring = self.scoring(centers)
            scores = np.asarray(scoring(rows), dtype=np.float64) + scoring.offsets
            return np.maximum(scores[np.arange(len(labels)), labels] + self.left_out(rows), 0)
        if self.metric == "cosine":
            return np.maximum(1 - np.einsum("ij,ij->i", rows, centers[labels]), 0)
        return np.asarray(((rows - centers[labels]) ** 2).sum(axis=1))

    def means(self, sums: FloatArray, masses: FloatArray, centers: FloatArray) -> FloatArray:
        """New centres: means (scaled to length one for cosines); a cluster without weight keeps its centre."""
        filled = masses > 0
        new = centers.copy()
        new[filled] = sums[filled] / masses[filled, None]
        return unit_rows(new) if self.metric == "cosine" else new

    def placed(self, centers: npt.NDArray[Any]) -> FloatArray:
        """Centres in the units of the data as given, as the rounds see them."""
        return centers - self.shift

    def restored(self, centers: FloatArray) -> npt.NDArray[Any]:
        """Centres in the units of the data as given."""
        return (centers + self.shift).astype(self.X.dtype)

    @cached_property
    def chunks(self) -> list[list[tuple[int, int, Any]]]:
        """Blocks (start, stop, rows) by chunk; blocks of CSR rows share their arrays."""
        n_rows, n_columns = self.X.shape
        size = max(_CHUNK_ROWS, -(-n_rows // _MOST_CHUNKS))
        if sparse.issparse(self.X):
            rows = _MOST_BLOCK_ROWS
        else:
            rows = max(_LEAST_BLOCK_ROWS, min(_MOST_BLOCK_ROWS, _BLOCK_ENTRIES // n_columns))
        chunks = []
        for start in range(0, n_rows, size):
            stop = min(start + size, n_rows)
            ends = [*range(start + rows, stop, rows), stop]
            blocks = zip([start, *ends[:-1]], ends, strict=True)
            chunks.append([(begin, end, _row_slice(self.X, begin, end)) for begin, end in blocks])
        return chunks

    def chunks_with(self, free: npt.NDArray[np.uint8]) -> list[list[tuple[int, int, Any]]]:
        """The blocks that hold a free row."""
        chunks = [[block for block in chunk if free[block[0] : block[1]].any()] for chunk in self.chunks]
        return [chunk for chunk in chunks if chunk]


class Scoring:
    """Scores of rows with some centres: ``rows @ directions``, to which `offsets` are to be added."""

    def __init__(self, directions: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> None:
        self.directions, self.offsets = directions, offsets

    def __call__(self, rows: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Score a block of rows; dense ones into `out`, if it is given."""
        return rows @ self.directions if sparse.issparse(rows) else np.dot(rows, self.directions, out=out)


def square_norms(X: Any) -> FloatArray:
    """Squared length of each row."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def unit_rows(X: Any) -> Any:
    """Rows scaled to length one; a row of zeros stays."""
    if sparse.issparse(X):
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        scale = 1 / np.where(norms > 0, norms, 1)
        return sparse.csr_matrix(sparse.diags(scale.astype(X.dtype)) @ X)
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return X / np.where(norms > 0, norms, 1).astype(X.dtype)[:, None]


def _row_slice(X: Any, start: int, stop: int) -> Any:
    if not sparse.issparse(X):
        return X[start:stop]
    begin, end = X.indptr[start], X.indptr[stop]
    arrays = (X.data[begin:end], X.indices[begin:end], X.indptr[start : stop + 1] - begin)
    return sparse.csr_matrix(arrays, shape=(stop - start, X.shape[1]), copy=False)


@dataclass(frozen=True)
class Units:
    """Rows, or contracted components, that a policy assigns.

    `points[u]` is the (mean) row of unit u and `weights[u]` its weight; row `rows[t]` belongs to unit `unit_of[t]`.
    """

    points: Any
    weights: FloatArray
    rows: IntArray
    unit_of: IntArray

    @classmethod
    def contract(cls, problem: Problem, rows: IntArray, unit_of: IntArray, n_units: int) -> Units:
        """Join rows into units; `unit_of` says which row goes where."""
        weights = problem.row_weights[rows]
        if len(rows) == n_units and (unit_of == np.arange(n_units)).all():
            return cls(problem.X[rows], weights, rows, unit_of)
        totals = np.bincount(unit_of, weights=weights, minlength=n_units).astype(np.float64)
        counts = np.bincount(unit_of, minlength=n_units)
        share = np.where(totals[unit_of] > 0, weights, 1) / np.where(totals > 0, totals, counts)[unit_of]
        mixing = sparse.csr_matrix((share, (unit_of, np.arange(len(rows)))), shape=(n_units, len(rows)))
        points = mixing.astype(problem.X.dtype) @ problem.X[rows]
        return cls(points, totals, rows, unit_of)

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def alike(self) -> bool:
        """Whether all weights are 1."""
        return bool((self.weights == 1).all())

    def costs(self, problem: Problem, centers: FloatArray, order: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Weighted scores of units with every centre, in blocks, in the given order."""
        scoring = problem.scoring(centers)
        block = max(_LEAST_BLOCK_ROWS, _BLOCK_ENTRIES // max(len(centers), 1))
        for start in range(0, len(order), block):
            chosen = order[start : start + block]
            scores = scoring(self.points[chosen]).astype(np.float64, copy=False)
            scores += scoring.offsets
            if not self.alike:
                scores *= np.maximum(self.weights[chosen, None], NO_WEIGHT)
            yield chosen, scores

    def distances(self, problem: Problem, centers: FloatArray, constants: FloatArray) -> FloatArray:
        """Cost of a row at each unit's place with every centre, weights left out; `constants`: `Problem.left_out`."""
        scoring = problem.scoring(centers)
        costs = np.asarray(scoring(self.points), dtype=np.float64) + scoring.offsets + constants[:, None]
        return np.maximum(costs, 0)

    def cost(self, problem: Problem, centers: FloatArray, labels: Labels) -> float:
        """Weighted score of a labelling."""
        blocks = self.costs(problem, centers, np.arange(len(self)))
        return sum(float(scores[np.arange(len(chosen)), labels[chosen]].sum()) for chosen, scores in blocks)


class Policy:
    """How units are assigned, and what they do to the centres."""

    monotone: ClassVar[bool] = True  # whether rounds never raise the objective

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        """Write the units' labels (-1 before the first round); return their weighted score and the price of ties."""
        raise NotImplementedError  # pragma: no cover

    def pull(self, units: Units, centers: FloatArray, labels: Labels, sums: FloatArray, masses: FloatArray) -> None:
        """Add to the sums and masses that make the new centres what broken pairs pull towards."""

    def learn(self, problem: Problem, centers: FloatArray, labels: Labels) -> tuple[Problem, FloatArray]:
        """The problem and the centres for the next round, after all rows have `labels` and the clusters new centres."""
        return problem, centers


class Solution(NamedTuple):
    """Where the rounds ended."""

    problem: Problem  # as the last round saw it
    labels: Labels
    centers: FloatArray
    price: float
    unit: float
    objective: float
    history: list[float]
    n_iter: int
    shift: float  # of the centres in the last round, in the unit of `tol`
    converged: bool


@dataclass
class _Tally:
    """What a pass over rows adds up."""

    sums: FloatArray
    masses: FloatArray
    totals: FloatArray = field(default_factory=lambda: np.zeros(2))  # score, labels changed

    @classmethod
    def empty(cls, n_clusters: int, n_columns: int) -> _Tally:
        return cls(np.zeros((n_clusters, n_columns)), np.zeros(n_clusters))

    def add(self, other: _Tally) -> None:
        self.sums += other.sums
        self.masses += other.masses
        self.totals += other.totals


class _Lowest(NamedTuple):
    """The state with the lowest objective so far."""

    objective: float
    n_rounds: int
    problem: Problem
    labels: Labels
    centers: FloatArray
    price: float


def lloyd(
    problem: Problem,
    units: Units | None,
    policy: Policy | None,
    centers: FloatArray,
    *,
    max_iter: int,
    tol: float,
    unit: float = 1.0,
) -> Solution:
    """Assign, re-centre, repeat: until no label changes, the centres move less than `tol`, or `max_iter` rounds.

    `units` are the rows that are not free, `policy` assigns them (both None: all rows are free).
    The objective is `unit` times the sum of inertia and price.
    `history` holds the objective after each assignment, for the centres it used. The last entry is for the returned
    labels and centres.
    """
    labels = np.full(problem.n_rows, -1, dtype=np.int32)
    free = np.ones(problem.n_rows, dtype=np.uint8)
    chunks = problem.chunks
    if units is not None:
        free[units.rows] = 0
        chunks = problem.chunks_with(free)
    unit_labels = np.full(0 if units is None else len(units), -1, dtype=np.int32)
    history: list[float] = []
    n_clusters = len(centers)
    limit = tol * problem.variance
    shift, n_iter, strict, moved_little = np.inf, 0, False, False
    lowest: _Lowest | None = None
    with _one_blas_thread(problem.n_jobs), _pool(problem.n_jobs) as run:
        while True:
            tally = _assign_free(problem, chunks, centers, free, labels, run)
            price, changed = 0.0, tally.totals[1]
            if units is not None and policy is not None:
                before = unit_labels.copy()
                score, price = policy.assign(problem, units, centers, unit_labels)
                tally.totals[0] += score
                changed += np.count_nonzero(before != unit_labels)
                add_points(units.points, units.weights, unit_labels, tally.sums, tally.masses)
                labels[units.rows] = unit_labels[units.unit_of]
            inertia = problem.constant + tally.totals[0]
            history.append(unit * (inertia + price))
            _logger.debug(
                "round %d: objective %g", n_iter + 1, history[-1],
                extra={"round": n_iter + 1, "objective": history[-1], "max_iter": max_iter},
            )  # fmt: skip
            # Centres that pull at one another move on after the last row.
            settled = policy is None or policy.monotone or shift <= max(limit, _ROUNDING * problem.variance)
            strict = changed == 0 and settled
            # Centres that differ by rounding alone may swap rows for ever: no progress is an end, too.
            if policy is None or policy.monotone:
                moved_little = moved_little or _stalled(history, unit * problem.scale)
            elif lowest is None or history[-1] < lowest.objective - _ROUNDING * unit * problem.scale:
                lowest = _Lowest(history[-1], len(history), problem, labels.copy(), centers, price)
            elif not strict and len(history) >= lowest.n_rounds + _PATIENCE:
                _, n_iter, problem, labels, centers, price = lowest
                del history[n_iter:]
                moved_little = True
                break
            if strict or moved_little or n_iter == max_iter:
                # As in scikit-learn, the round that confirms counts, unless the centres had stopped before it.
                n_iter = min(n_iter + (strict and shift > limit), max_iter)
                break
            if units is not None and policy is not None:
                policy.pull(units, centers, unit_labels, tally.sums, tally.masses)
            new = problem.means(tally.sums, tally.masses, centers)
            if (tally.masses == 0).any() and n_clusters > 1:
                _restart_empty(problem, new, tally.masses == 0, labels)
            shift = float(((new - centers) ** 2).sum())
            centers = new
            n_iter += 1
            if policy is not None:
                before_learning = problem
                problem, centers = policy.learn(problem, centers, labels)
                if problem.X is not before_learning.X:
                    chunks = problem.chunks_with(free)
                    units = None if units is None else replace(units, points=problem.X[units.rows])
            # Tied rows may move on between centres that stand still, so a shift of 0 is no end yet.
            moved_little = 0 < shift <= limit
    scale = problem.variance or 1.0
    return Solution(
        problem,
        labels,
        centers,
        price,
        unit,
        history[-1],
        history,
        n_iter,
        shift / scale,
        strict or moved_little,
    )


def _stalled(history: list[float], scale: float) -> bool:
    return len(history) > 1 and bool(history[-2] - history[-1] <= _ROUNDING * scale)


def nearest(problem: Problem, centers: FloatArray) -> Labels:
    """The nearest centre of every row."""
    labels = np.full(problem.n_rows, -1, dtype=np.int32)
    with _one_blas_thread(problem.n_jobs), _pool(problem.n_jobs) as run:
        _assign_free(problem, problem.chunks, centers, np.ones(problem.n_rows, dtype=np.uint8), labels, run)
    return labels


def _one_blas_thread(n_jobs: int) -> Any:
    # Blocks are thin: with threads of our own, BLAS threads would only wait for each other.
    return threadpool_limits(1, user_api="blas") if n_jobs > 1 else nullcontext()


class _pool:  # noqa: N801
    """A `map` that runs in order: over threads, or plainly."""

    def __init__(self, n_jobs: int) -> None:
        self._executor = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None

    def __enter__(self) -> Callable[..., Iterator[_Tally]]:
        return map if self._executor is None else self._executor.map

    def __exit__(self, *_: object) -> None:
        if self._executor is not None:
            self._executor.shutdown()


def _assign_free(
    problem: Problem,
    chunks: list[list[tuple[int, int, Any]]],
    centers: FloatArray,
    free: npt.NDArray[np.uint8],
    labels: Labels,
    run: Callable[..., Any],
) -> _Tally:
    scoring = problem.scoring(centers)
    n_clusters, n_columns = centers.shape
    no_rows = np.empty((0, 0), dtype=problem.X.dtype)

    def one_chunk(blocks: list[tuple[int, int, Any]]) -> _Tally:
        tally = _Tally.empty(n_clusters, n_columns)
        scores = np.empty((max(stop - start for start, stop, _ in blocks), n_clusters), dtype=problem.X.dtype)
        for start, stop, rows in blocks:
            is_sparse = sparse.issparse(rows)
            block = scoring(rows, scores[: stop - start])
            weights = problem.weights[start:stop] if len(problem.weights) else problem.weights
            assign_nearest(
                no_rows if is_sparse else rows, block, scoring.offsets, weights, free[start:stop], labels[start:stop],
                tally.sums, tally.masses, tally.totals,
            )  # fmt: skip
            if is_sparse:
                some = np.flatnonzero(free[start:stop])
                share = weights[some] if len(weights) else np.ones(len(some))
                mixing = sparse.csr_matrix((share, (labels[start:stop][some], some)), shape=(n_clusters, stop - start))
                tally.sums += (mixing @ rows).toarray()
        return tally

    total = _Tally.empty(n_clusters, n_columns)
    for tally in run(one_chunk, chunks):
        total.add(tally)
    return total


def add_points(points: Any, weights: FloatArray, labels: Labels, sums: FloatArray, masses: FloatArray) -> None:
    """Add rows, times their weights, to the sums and masses of their clusters."""
    if not sparse.issparse(points):
        add_rows(points, weights, labels, sums, masses)
        return
    mixing = sparse.csr_matrix((weights, (labels, np.arange(len(weights)))), shape=(len(masses), len(weights)))
    sums += (mixing @ points).toarray()
    masses += np.bincount(labels, weights=weights, minlength=len(masses))


def _restart_empty(problem: Problem, centers: FloatArray, empty: npt.NDArray[np.bool_], labels: Labels) -> None:
    """Put the centre of each empty cluster on one of the rows that are farthest from their own, so that it fills again.

    No row belongs to these clusters, so moving their centres cannot raise the objective.
    """
    far = row_costs(problem, centers, labels) * problem.row_weights
    farthest = np.argsort(-far, kind="stable")[: int(empty.sum())]
    farthest = farthest[far[farthest] > 0]
    clusters = np.flatnonzero(empty)[: len(farthest)]
    rows = problem.X[farthest]
    centers[clusters] = rows.toarray() if sparse.issparse(rows) else rows


def row_costs(problem: Problem, centers: FloatArray, labels: Labels) -> FloatArray:
    """Squared distance (or one minus cosine) of each row to the centre of its cluster."""
    costs = np.empty(problem.n_rows)
    for start, stop, rows in (block for chunk in problem.chunks for block in chunk):
        here = labels[start:stop]
        costs[start:stop] = problem.own_costs(rows, centers, here)
    return costs
