"""Candidate pairs: rows that are similar as a whole, share a rare value or share a key. No others are compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.constraints._arrays import distinct_pairs
from clew.matching._comparison import Comparer
from clew.matching._records import Field

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Rows that share a value of one column are candidates if at most this many rows share it.
_RARE = 4
# Rows that share a key form a block. In a block of at most 30 rows, all pairs are candidates. In a larger block, each
# row is paired with the 10 rows that follow it.
_MOST_IN_BLOCK, _NEXT = 30, 10
# A row that likely matches more rows than this is not used to close triangles.
_MOST_PARTNERS = 50


def candidate_pairs(rows: Comparer, fields: Sequence[Field], keys: Sequence[Field]) -> IntArray:
    """Return the pairs (i, j), i < j, that may match."""
    neighbours = rows.neighbours
    places = np.repeat(np.arange(rows.n_fitted), neighbours.shape[1])
    near = np.column_stack([places, neighbours.ravel()])
    found = [near[near[:, 1] >= 0]]
    found += [_sharing(field.codes, _RARE, 0) for field in fields]
    found += [_sharing(field.codes, _MOST_IN_BLOCK, _NEXT) for field in keys]
    return distinct_pairs(np.concatenate(found))[0]


def _sharing(codes: IntArray, most: int, n_next: int) -> IntArray:
    """Pairs of rows that share a value: all pairs for up to `most` rows, else each row with the next `n_next` rows."""
    order = np.argsort(codes, kind="stable")
    order = order[codes[order] >= 0]
    sizes = np.bincount(codes[order]) if len(order) else np.empty(0, dtype=np.int64)
    pairs = []
    for step in range(1, max(most, n_next + 1)):
        one, two = order[:-step], order[step:]
        size = sizes[codes[one]]
        together = (codes[one] == codes[two]) & ((size <= most) | (step <= n_next))
        pairs.append(np.column_stack([one, two])[together])
    return np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)


def closing_pairs(pairs: IntArray, likely: BoolArray, n_rows: int) -> IntArray:
    """Pairs that close triangles: both rows likely match the same third row, and the pair is not yet a candidate."""
    joined = pairs[likely]
    few = np.bincount(joined.ravel(), minlength=n_rows) <= _MOST_PARTNERS
    joined = joined[few[joined].all(axis=1)]
    ends = np.concatenate([joined, joined[:, ::-1]]).T
    graph = sparse.csr_array((np.ones(ends.shape[1], dtype=np.int64), (ends[0], ends[1])), shape=(n_rows, n_rows))
    two_steps = sparse.triu(graph @ graph, k=1).tocoo()
    closing = np.column_stack(two_steps.coords).astype(np.int64)
    return closing[~np.isin(closing[:, 0] * n_rows + closing[:, 1], pairs[:, 0] * n_rows + pairs[:, 1])]
