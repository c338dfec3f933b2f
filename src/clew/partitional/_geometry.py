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
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

# Scores and rows of a block stay in the second-level cache (1,000 to 4,000 rows took equal time at d=16, k=10).
BLOCK_ENTRIES, _MOST_BLOCK_ROWS, LEAST_BLOCK_ROWS = 65_536, 4096, 64
# Sums are kept per chunk and added up in order, so that results do not depend on the number of threads.
_CHUNK_ROWS, _MOST_CHUNKS = 32_768, 16

Block = tuple[int, int, Any]  # first row, row after the last, the rows


@dataclass(frozen=True)
class Problem(ABC):
    """Rows prepared for the rounds, and the geometry in which they are clustered."""

    X: Any
    weights: FloatArray  # empty: all 1
    shift: FloatArray  # the vector that was subtracted from the rows
    n_jobs: int = 1

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
        return self.weights if len(self.weights) else np.ones(self.n_rows)

    @cached_property
    def square_norms(self) -> FloatArray:
        """Squared length of each row."""
        return square_norms(self.X)

    @cached_property
    def mean(self) -> FloatArray:
        """Weighted mean of the rows."""
        weights = self.row_weights / self.row_weights.sum()
        return np.asarray(self.X.T @ weights, dtype=np.float64).ravel()

    @property
    def variances(self) -> FloatArray:
        """Variance of each column."""
        if sparse.issparse(self.X):
            return np.asarray(mean_variance_axis(self.X, axis=0)[1], dtype=np.float64)
        return self.X.var(axis=0, dtype=np.float64)

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
        """Convert centres from the units of X to those of the rounds."""
        return centers - self.shift

    def restored(self, centers: FloatArray) -> npt.NDArray[Any]:
        """Convert centres from the units of the rounds to those of X."""
        return (centers + self.shift).astype(self.X.dtype)

    @cached_property
    def chunks(self) -> list[list[Block]]:
        """Blocks (start, stop, rows) by chunk; blocks of CSR rows share their arrays."""
        n_rows, n_columns = self.X.shape
        size = max(_CHUNK_ROWS, -(-n_rows // _MOST_CHUNKS))
        if sparse.issparse(self.X):
            rows = _MOST_BLOCK_ROWS
        else:
            rows = max(LEAST_BLOCK_ROWS, min(_MOST_BLOCK_ROWS, BLOCK_ENTRIES // n_columns))
        chunks = []
        for start in range(0, n_rows, size):
            stop = min(start + size, n_rows)
            ends = [*range(start + rows, stop, rows), stop]
            blocks = zip([start, *ends[:-1]], ends, strict=True)
            chunks.append([(begin, end, _row_slice(self.X, begin, end)) for begin, end in blocks])
        return chunks

    def chunks_with(self, free: npt.NDArray[np.uint8]) -> list[list[Block]]:
        """The blocks that hold a free row."""
        chunks = [[block for block in chunk if free[block[0] : block[1]].any()] for chunk in self.chunks]
        return [chunk for chunk in chunks if chunk]


@dataclass(frozen=True)
class EuclideanRows(Problem):
    """Rows whose cost is the squared distance to their centre. Dense rows are centred at 0."""

    metric = "euclidean"

    @classmethod
    def of(cls, X: Any, weights: FloatArray, n_jobs: int | None = None) -> EuclideanRows:
        """Centre a copy of dense rows, which keeps distances exact far from the origin."""
        shift = np.zeros(X.shape[1])
        if not sparse.issparse(X):
            shift = X.mean(axis=0, dtype=np.float64)
            X = X - shift.astype(X.dtype)
        return EuclideanRows(X, weights, shift, effective_n_jobs(n_jobs))

    def scoring(self, centers: FloatArray) -> Scoring:
        return Scoring.of(-2 * centers.T, np.einsum("ij,ij->i", centers, centers), self.X.dtype)

    def left_out(self, points: Any) -> FloatArray:
        return square_norms(points)

    def own_costs(self, rows: Any, centers: FloatArray, labels: Labels) -> FloatArray:
        if sparse.issparse(rows):
            return own_scores(self, rows, centers, labels)
        return np.asarray(((rows - centers[labels]) ** 2).sum(axis=1))

    def as_centers(self, points: FloatArray) -> FloatArray:
        return points

    def gains(self, squares: FloatArray, costs: FloatArray) -> FloatArray:
        return costs

    @cached_property
    def constant(self) -> float:
        """The weighted squared lengths of all rows."""
        return float(self.square_norms @ self.weights if len(self.weights) else self.square_norms.sum())

    @property
    def scale(self) -> float:
        """The weighted squared lengths of all rows."""
        return self.constant

    @property
    def mean_cost(self) -> float:
        return max(self.constant / float(self.row_weights.sum()) - float(self.mean @ self.mean), 0.0)

    @cached_property
    def variance(self) -> float:
        if sparse.issparse(self.X):
            return float(np.mean(self.variances))
        return float(self.square_norms.sum() / self.X.size)  # the mean is 0


@dataclass(frozen=True)
class CosineRows(Problem):
    """Rows of length one whose cost is one minus the cosine of the angle to their centre (spherical k-means)."""

    metric = "cosine"

    @classmethod
    def of(cls, X: Any, weights: FloatArray, n_jobs: int | None = None) -> CosineRows:
        """Scale a copy of the rows to length one."""
        return CosineRows(unit_rows(X), weights, np.zeros(X.shape[1]), effective_n_jobs(n_jobs))

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
        return float(self.row_weights.sum())

    @property
    def mean_cost(self) -> float:
        return max(1.0 - float(np.linalg.norm(self.mean)), 0.0)


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
    for start, stop, rows in (block for chunk in problem.chunks for block in chunk):
        here = labels[start:stop]
        costs[start:stop] = problem.own_costs(rows, centers, here)
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
