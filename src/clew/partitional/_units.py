"""Units: rows that constraints link, which a policy assigns.

A unit is a row, or a whole component of must-linked rows. For squared distances and for cosines, a component acts like
one row at its mean with its total weight. So it is contracted once and then moved as a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from clew.kernels.assign import add_rows
from clew.partitional._geometry import BLOCK_ENTRIES, LEAST_BLOCK_ROWS, FloatArray, IntArray, Labels, Problem

# Units whose rows are outside memory are read by the block.
_BLOCK_UNITS = 16_384
# Units of weight 0 cost next to nothing anywhere, but still prefer the nearest centre.
NO_WEIGHT = 1e-200


@dataclass(frozen=True)
class Units:
    """Rows, or contracted components, that a policy assigns.

    `points[u]` is the mean of the rows of unit u, and `weights[u]` its weight. Row `rows[t]` is in unit `unit_of[t]`.
    Of five rows 0, 2, 4, 6, 8 on a line, let 1 and 2 be must-linked, and 3 cannot-linked to them. Row 0 and row 4 are
    free. The units are the component {1, 2} and row 3: ``points=[[3], [6]]``, ``weights=[2, 1]``, ``rows=[1, 2, 3]``,
    ``unit_of=[0, 0, 1]``.
    """

    points: Any
    weights: FloatArray
    rows: IntArray
    unit_of: IntArray

    @classmethod
    def contract(cls, problem: Problem, rows: IntArray, unit_of: IntArray, n_units: int) -> Units:
        """Join rows into units; `unit_of` says which row goes where."""
        weights = problem.row_weights[problem.places(rows)]
        if len(rows) == n_units and (unit_of == np.arange(n_units)).all():
            every = problem.named is None and n_units == problem.n_rows and (rows == unit_of).all()
            return cls(problem.X if every else problem.points(rows), weights, rows, unit_of)
        totals = np.bincount(unit_of, weights=weights, minlength=n_units).astype(np.float64)
        counts = np.bincount(unit_of, minlength=n_units)
        share = np.where(totals[unit_of] > 0, weights, 1) / np.where(totals > 0, totals, counts)[unit_of]
        mixing = sparse.csr_matrix((share, (unit_of, np.arange(len(rows)))), shape=(n_units, len(rows)))
        mixing = mixing.astype(problem.X.dtype)
        if _is_outside(problem.X) and problem.named is None:
            return cls(JoinedRows(problem.X, mixing, rows), totals, rows, unit_of)
        return cls(mixing @ problem.points(rows), totals, rows, unit_of)

    def __len__(self) -> int:
        return len(self.weights)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """All units with their points: at once, or by the block if their rows are outside memory."""
        step = _BLOCK_UNITS if _is_outside(self.points) else max(len(self), 1)
        for start in range(0, len(self), step):
            here = slice(start, min(start + step, len(self)))
            yield here, self.points if step == len(self) else self.points[np.arange(here.start, here.stop)]

    @cached_property
    def alike(self) -> bool:
        """Whether all weights are 1."""
        return bool((self.weights == 1).all())

    def costs(
        self, problem: Problem, centers: FloatArray, order: IntArray | None
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Weighted scores of units with every centre, in blocks, in the given order or in their own."""
        scoring = problem.scoring(centers)
        block = max(LEAST_BLOCK_ROWS, BLOCK_ENTRIES // max(len(centers), 1))
        for start in range(0, len(self) if order is None else len(order), block):
            some = slice(start, start + block) if order is None else order[start : start + block]
            scores = scoring(_rows_at(self.points, some)).astype(np.float64, copy=False)
            scores += scoring.offsets
            if not self.alike:
                scores *= np.maximum(self.weights[some, None], NO_WEIGHT)
            chosen = np.arange(start, start + len(scores)) if isinstance(some, slice) else some
            yield chosen, scores

    def distances(self, problem: Problem, centers: FloatArray, constants: FloatArray) -> FloatArray:
        """Unweighted cost of each unit's mean with every centre; `constants` comes from `Problem.left_out`."""
        scoring = problem.scoring(centers)
        costs = np.asarray(scoring(self.points), dtype=np.float64) + scoring.offsets + constants[:, None]
        return np.maximum(costs, 0)

    def cost(self, problem: Problem, centers: FloatArray, labels: Labels) -> float:
        """Weighted score of a labelling."""
        blocks = self.costs(problem, centers, None)
        return sum(float(scores[np.arange(len(chosen)), labels[chosen]].sum()) for chosen, scores in blocks)


class JoinedRows:
    """Means of rows outside memory, computed for the units that are asked for."""

    def __init__(self, X: Any, mixing: Any, rows: IntArray) -> None:
        self._X, self._mixing, self._rows = X, mixing, rows

    def __getitem__(self, units: IntArray) -> Any:
        """The points of some units."""
        part = self._mixing[units]
        used, place = np.unique(part.indices, return_inverse=True)
        shape = (part.shape[0], len(used))
        return sparse.csr_matrix((part.data, place, part.indptr), shape=shape) @ self._X[self._rows[used]]


def _rows_at(points: Any, some: slice | IntArray) -> Any:
    """Some of the points. NumPy takes whole rows faster than it indexes them."""
    is_array = isinstance(points, np.ndarray) and isinstance(some, np.ndarray)
    return points.take(some, axis=0) if is_array else points[some]


def _is_outside(points: Any) -> bool:
    return not isinstance(points, np.ndarray) and not sparse.issparse(points)


def add_points(points: Any, weights: FloatArray, labels: Labels, sums: FloatArray, masses: FloatArray) -> None:
    """Add rows, times their weights, to the sums and masses of their clusters."""
    if not sparse.issparse(points):
        add_rows(points, weights, labels, sums, masses)
        return
    mixing = sparse.csr_matrix((weights, (labels, np.arange(len(weights)))), shape=(len(masses), len(weights)))
    sums += (mixing @ points).toarray()
    masses += np.bincount(labels, weights=weights, minlength=len(masses))
