"""Geometries of k-means: the cost of a row at a centre, and the centre of a cluster.

`EuclideanRows` uses squared distances and `CosineRows` one minus the cosine. `MetricProblem` in `_learned_metric.py`
and `WeightedCosines` in `_hmrf_kmeans.py` learn their geometry during the rounds. The loop in `_lloyd.py` uses only
the methods of their base class, `Problem`.

Costs are computed as *scores*, which leave out the terms that are the same for every centre. For a row x and a centre
c:

    squared distance  |x - c|² = |x|² + score,    score = -2 x·c + |c|²
    cosine            1 - x·c  =        score,    score =   -x·c + 1

so that one product of matrices gives the scores of a block of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from clew.datasets import StoredRows
from clew.kernels.own_distances import own_distances

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

# Scores and rows of a block stay in the second-level cache (1,000 to 4,000 rows took equal time at d=16, k=10).
BLOCK_ENTRIES, _MOST_BLOCK_ROWS, LEAST_BLOCK_ROWS = 65_536, 4096, 64
# Sums are kept per chunk and added up in order, so that results depend neither on the number of threads nor on the way
# in which rows are stored. Rows that are not in memory are read by the chunk.
_MOST_CHUNK_ROWS, _CHUNK_ENTRIES = 32_768, 2**21

Block = tuple[int, int, Any]  # first row, row after the last, the rows


class Chunk:
    """Consecutive rows, in blocks. Rows that are not in memory are read when they are needed.

    `X` holds the rows of the table from row `origin` on.
    """

    def __init__(self, X: Any, start: int, stop: int, block_rows: int, origin: int = 0) -> None:
        self.start, self.stop, self.block_rows = start, stop, block_rows
        self._X, self._origin = X, origin
        ends = [*range(start + block_rows, stop, block_rows), stop]
        self._bounds = list(zip([start, *ends[:-1]], ends, strict=True))
        self._blocks = None
        if not isinstance(X, StoredRows):
            self._blocks = [(begin, end, _row_slice(X, begin - origin, end - origin)) for begin, end in self._bounds]

    def blocks(self) -> Iterator[Block]:
        """First row, row after the last, and rows of each block; they may be overwritten when the next is asked for."""
        if self._blocks is not None:
            yield from self._blocks
            return
        work = np.empty((self.block_rows, self._X.shape[1]), dtype=self._X.dtype)
        for begin, end in self._bounds:
            yield begin, end, self._X.read(begin, end, work[: end - begin])

    def rows(self) -> Any:
        """All rows."""
        if isinstance(self._X, StoredRows):
            return self._X.read(self.start, self.stop)
        return _row_slice(self._X, self.start - self._origin, self.stop - self._origin)


def chunks_of(X: Any, origin: int = 0) -> list[Chunk]:
    """The chunks of X, which are the same wherever its rows are stored; `origin` is the number of its first row."""
    n_rows, n_columns = X.shape
    rows, size = _MOST_BLOCK_ROWS, _MOST_CHUNK_ROWS
    if not sparse.issparse(X):
        rows = max(LEAST_BLOCK_ROWS, min(rows, BLOCK_ENTRIES // n_columns))
        size = max(rows, min(size, _CHUNK_ENTRIES // n_columns))
    end = origin + n_rows
    return [Chunk(X, start, min(start + size, end), rows, origin) for start in range(origin, end, size)]


def map_chunks(X: Any, function: Callable[..., Any], *aligned: Any) -> Iterator[Any]:
    """Call a function with each chunk and with the parts of `aligned` arrays that belong to its rows.

    An empty array is passed unchanged. Rows on other machines have their own `map_chunks`.
    """
    if hasattr(X, "map_chunks"):
        yield from X.map_chunks(function, *aligned)
        return
    for chunk in chunks_of(X):
        yield function(chunk, *(part[chunk.start : chunk.stop] if len(part) else part for part in aligned))


def column_means(X: Any) -> FloatArray:
    """Mean of each column of dense rows, summed chunk by chunk."""
    return np.asarray(sum(map_chunks(X, lambda chunk: chunk.rows().sum(axis=0, dtype=np.float64)))) / X.shape[0]


def weighted_total(values: FloatArray, weights: FloatArray) -> float:
    """Sum of values times weights; without weights, all are 1."""
    return float(values @ weights if len(weights) else values.sum())


@dataclass(frozen=True)
class Problem(ABC):
    """Rows prepared for the rounds, and the geometry in which they are clustered."""

    X: Any
    weights: FloatArray  # empty: all 1
    shift: FloatArray  # the vector that was subtracted from the rows
    n_jobs: int = 1
    named: NamedRows | None = field(
        default=None, kw_only=True
    )  # where X is not in memory: the rows that constraints name

    metric: ClassVar[str]

    @staticmethod
    def prepare(X: Any, weights: FloatArray, metric: str, n_jobs: int | None = None) -> Problem:
        """Centre (Euclidean) or normalise (cosine) a copy of X."""
        kind: type[EuclideanRows | CosineRows] = CosineRows if metric == "cosine" else EuclideanRows
        return kind.of(X, weights, n_jobs)

    @abstractmethod
    def scoring(self, centers: FloatArray) -> Scoring:
        """Scores of rows with each centre; the nearest centre has the lowest score."""

    @abstractmethod
    def left_out(self, points: Any) -> FloatArray:
        """The part of each row's cost that scores leave out; it is the same for every centre."""

    @abstractmethod
    def own_costs(self, rows: Any, centers: FloatArray, labels: Labels) -> FloatArray:
        """Cost of each row of a block with the centre of its cluster."""

    @abstractmethod
    def as_centers(self, points: FloatArray) -> FloatArray:
        """Convert points to centres, which have length one for cosines."""

    @abstractmethod
    def gains(self, squares: FloatArray, costs: FloatArray) -> FloatArray:
        """Cost that each point would save with a centre of its own, from its squared length and its cost."""

    @property
    @abstractmethod
    def constant(self) -> float:
        """The part of the objective that scores leave out, because it is the same for every labelling."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """Size of the terms of the objective; rounding errors are relative to it."""

    @property
    @abstractmethod
    def mean_cost(self) -> float:
        """Mean cost of a row if all rows share one centre."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @cached_property
    def row_weights(self) -> FloatArray:
        """The weight of each row, also if all are 1."""
        if len(self.weights):
            return self.weights
        return np.ones(self.n_rows) if self.named is None else np.broadcast_to(np.float64(1), (self.n_rows,))

    def without_rows(self) -> Problem:
        """The geometry alone, small enough to be sent to other machines."""
        nothing = np.empty(0)
        return replace(self, X=np.empty((0, self.X.shape[1]), dtype=self.X.dtype), weights=nothing, named=None)

    def places(self, rows: IntArray) -> IntArray:
        """Positions in X of rows, given by their numbers in the constraints."""
        return rows if self.named is None else self.named.places[rows]

    def points(self, rows: IntArray) -> Any:
        """Rows, given by their numbers in the constraints."""
        return self.X[rows] if self.named is None else self.named.points[rows]

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum()) if len(self.weights) else float(self.n_rows)

    @cached_property
    def square_sum(self) -> float:
        """Sum of the squared lengths of all rows, times their weights."""
        lengths = map_chunks(
            self.X, lambda chunk, weights: weighted_total(square_norms(chunk.rows()), weights), self.weights
        )
        return float(sum(lengths))

    @cached_property
    def mean(self) -> FloatArray:
        """Weighted mean of the rows."""

        def total(chunk: Chunk, weights: FloatArray) -> FloatArray:
            rows = chunk.rows()
            weights = weights if len(weights) else np.ones(rows.shape[0])
            return np.asarray(rows.T @ weights, dtype=np.float64).ravel()

        return np.asarray(sum(map_chunks(self.X, total, self.weights))) / self.total_weight

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of each column."""
        if sparse.issparse(self.X):
            return np.asarray(mean_variance_axis(self.X, axis=0)[1], dtype=np.float64)
        mean = column_means(self.X)
        squares = map_chunks(self.X, lambda chunk: ((chunk.rows() - mean) ** 2).sum(axis=0))
        return np.asarray(sum(squares)) / self.n_rows

    @cached_property
    def variance(self) -> float:
        """Mean variance of the columns; the unit of `tol`, as in scikit-learn."""
        return float(np.mean(self.variances))

    def surplus(self, labels: Labels) -> float:
        """The part of the objective beyond inertia and the prices of pairs."""
        return 0.0

    def reordered(self, places: IntArray) -> Problem:
        """The problem with renumbered clusters: cluster h is now at `places[h]`."""
        return self

    def means(self, sums: FloatArray, masses: FloatArray, centers: FloatArray) -> FloatArray:
        """New centres at the means of the clusters; a cluster without weight keeps its centre."""
        filled = masses > 0
        new = centers.copy()
        new[filled] = sums[filled] / masses[filled, None]
        return self.as_centers(new)

    def placed(self, centers: npt.NDArray[Any]) -> FloatArray:
        """Convert centres from the units of X to the units of the prepared rows."""
        return centers - self.shift

    def restored(self, centers: FloatArray) -> npt.NDArray[Any]:
        """Convert centres from the units of the prepared rows to the units of X."""
        return (centers + self.shift).astype(self.X.dtype)

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The rows in chunks."""
        return chunks_of(self.X)

    @property
    def blocks(self) -> Iterator[Block]:
        """First row, row after the last and rows of each block."""
        return (block for chunk in self.chunks for block in chunk.blocks())


@dataclass(frozen=True)
class EuclideanRows(Problem):
    """Rows whose cost is the squared distance to their centre. Dense rows are centred at 0."""

    metric = "euclidean"

    @classmethod
    def of(cls, X: Any, weights: FloatArray, n_jobs: int | None = None) -> EuclideanRows:
        """Centre a copy of dense rows, which keeps distances exact far from the origin."""
        shift = np.zeros(X.shape[1])
        if not sparse.issparse(X):
            shift = column_means(X)
            offset = shift.astype(X.dtype)
            X = X.prepared(lambda rows: np.subtract(rows, offset, out=rows)) if hasattr(X, "prepared") else X - offset
        return EuclideanRows(X, weights, shift, effective_n_jobs(n_jobs))

    def scoring(self, centers: FloatArray) -> Scoring:
        return Scoring.of(-2 * centers.T, np.einsum("ij,ij->i", centers, centers), self.X.dtype)

    def left_out(self, points: Any) -> FloatArray:
        return square_norms(points)

    def own_costs(self, rows: Any, centers: FloatArray, labels: Labels) -> FloatArray:
        if sparse.issparse(rows):
            return own_scores(self, rows, centers, labels)
        costs = np.empty(len(rows))
        own_distances(rows, centers, labels, costs)
        return costs

    def as_centers(self, points: FloatArray) -> FloatArray:
        return points

    def gains(self, squares: FloatArray, costs: FloatArray) -> FloatArray:
        return costs

    @cached_property
    def constant(self) -> float:
        """The weighted squared lengths of all rows."""
        return self.square_sum

    @property
    def scale(self) -> float:
        """The weighted squared lengths of all rows."""
        return self.constant

    @property
    def mean_cost(self) -> float:
        return max(self.constant / self.total_weight - float(self.mean @ self.mean), 0.0)

    @cached_property
    def variance(self) -> float:
        if sparse.issparse(self.X) or len(self.weights):
            return float(np.mean(self.variances))
        return self.constant / (self.n_rows * self.X.shape[1])  # the mean is 0


@dataclass(frozen=True)
class CosineRows(Problem):
    """Rows of length one whose cost is one minus the cosine of the angle to their centre (spherical k-means)."""

    metric = "cosine"

    @classmethod
    def of(cls, X: Any, weights: FloatArray, n_jobs: int | None = None) -> CosineRows:
        """Scale a copy of the rows to length one."""
        rows = X.prepared(unit_rows) if hasattr(X, "prepared") else unit_rows(X)
        return CosineRows(rows, weights, np.zeros(X.shape[1]), effective_n_jobs(n_jobs))

    def scoring(self, centers: FloatArray) -> Scoring:
        return Scoring.of(-centers.T, np.ones(len(centers)), self.X.dtype)

    def left_out(self, points: Any) -> FloatArray:
        return np.zeros(points.shape[0])

    def own_costs(self, rows: Any, centers: FloatArray, labels: Labels) -> FloatArray:
        if sparse.issparse(rows):
            return own_scores(self, rows, centers, labels)
        return np.maximum(1 - np.einsum("ij,ij->i", rows, centers[labels]), 0)

    def as_centers(self, points: FloatArray) -> FloatArray:
        return np.asarray(unit_rows(points))

    def gains(self, squares: FloatArray, costs: FloatArray) -> FloatArray:
        return costs - (1 - np.sqrt(squares))

    @property
    def constant(self) -> float:
        """Always 0, because the scores of cosines are the full costs."""
        return 0.0

    @property
    def scale(self) -> float:
        """The total weight of all rows."""
        return self.total_weight

    @property
    def mean_cost(self) -> float:
        return max(1.0 - float(np.linalg.norm(self.mean)), 0.0)


class NamedRows(NamedTuple):
    """Rows that constraints name, in memory: their positions in X, and the prepared rows themselves.

    If X is not in memory, constraints number these rows 0, 1, 2, ..., so that only the labels grow with X.
    """

    places: IntArray
    points: Any


class Scoring:
    """Scores of rows with some centres: ``rows @ directions``. The caller adds `offsets`."""

    def __init__(self, directions: npt.NDArray[Any], offsets: npt.NDArray[Any]) -> None:
        self.directions, self.offsets = directions, offsets

    @classmethod
    def of(cls, directions: FloatArray, offsets: FloatArray, dtype: Any) -> Scoring:
        """Build a scoring in the precision of the rows, `dtype`."""
        return cls(np.ascontiguousarray(directions, dtype=dtype), offsets.astype(dtype))

    def __call__(self, rows: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Score a block of rows. Scores of dense rows are written to `out`, if it is given."""
        return rows @ self.directions if sparse.issparse(rows) else np.dot(rows, self.directions, out=out)


def own_scores(problem: Problem, rows: Any, centers: FloatArray, labels: Labels) -> FloatArray:
    """Score of each sparse row with its own centre. Computing the scores with all centres is faster."""
    scoring = problem.scoring(centers)
    scores = np.asarray(scoring(rows), dtype=np.float64) + scoring.offsets
    return np.maximum(scores[np.arange(len(labels)), labels] + problem.left_out(rows), 0)


def row_costs(problem: Problem, centers: FloatArray, labels: Labels) -> FloatArray:
    """Squared distance (or one minus cosine) of each row to the centre of its cluster."""
    costs = np.empty(problem.n_rows)
    for start, stop, rows in problem.blocks:
        costs[start:stop] = problem.own_costs(rows, centers, labels[start:stop])
    return costs


def square_norms(X: Any) -> FloatArray:
    """Squared length of each row."""
    if sparse.issparse(X):
        squares = with_data(X, X.data**2) if X.has_canonical_format else X.multiply(X)
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def unit_rows(X: Any) -> Any:
    """Scale rows to length one; a row of zeros stays zero."""
    if sparse.issparse(X):
        norms = np.sqrt(square_norms(X))
        scale = (1 / np.where(norms > 0, norms, 1)).astype(X.dtype)
        scaled = sparse.csr_matrix(X, copy=True)
        scaled.data *= np.repeat(scale, np.diff(X.indptr))
        return scaled
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
    return X / np.where(norms > 0, norms, 1).astype(X.dtype)[:, None]


def with_data(X: Any, data: npt.NDArray[Any]) -> Any:
    """CSR rows with the same sparsity pattern and other values."""
    return sparse.csr_matrix((data, X.indices, X.indptr), shape=X.shape, copy=False)


def _row_slice(X: Any, start: int, stop: int) -> Any:
    if not sparse.issparse(X):
        return X[start:stop]
    begin, end = X.indptr[start], X.indptr[stop]
    arrays = (X.data[begin:end], X.indices[begin:end], X.indptr[start : stop + 1] - begin)
    return sparse.csr_matrix(arrays, shape=(stop - start, X.shape[1]), copy=False)
