"""Candidate pairs: rows that are similar as a whole, share a rare value, two values that are rare together, or a key.

No other pairs are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

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
# Rows that share the values of two columns are candidates if at most `_RARE` rows share both, and if at most this many
# rows are expected to share them by chance. With more than 10 pairs of columns, the limit is 10 for all of them.
_MOST_EXPECTED, _MOST_EXPECTED_IN_ALL = 1.0, 10.0
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
    found += sharing_two(fields)
    found += [_sharing(field.codes, _MOST_IN_BLOCK, _NEXT) for field in keys]
    return distinct_pairs(np.concatenate(found))[0]


def sharing_two(fields: Sequence[Field]) -> list[IntArray]:
    """Pairs of rows that share the values of two columns. Each value is frequent, but the two are rare together.

    For example, many people are called Smith, and many are born on one day, but two Smiths born on that day may be one.
    In a large table, the neighbours of the whole row may all be others who share more letters by chance. If columns
    were independent, `n_one * n_two / n_rows` rows would have a value of `n_one` rows and a value of `n_two` rows.
    """
    n_column_pairs = len(fields) * (len(fields) - 1) // 2
    most = min(_MOST_EXPECTED, _MOST_EXPECTED_IN_ALL / max(n_column_pairs, 1))
    n_with = [np.append(field.counts, 0)[field.codes] for field in fields]  # 0 where the cell is missing
    pairs = []
    for one, two in combinations(range(len(fields)), 2):
        expected = n_with[one] * n_with[two] / len(n_with[one])
        rows = np.flatnonzero((n_with[one] > _RARE) & (n_with[two] > _RARE) & (expected <= most))
        both = fields[one].codes[rows] * len(fields[two].texts) + fields[two].codes[rows]
        pairs.append(rows[_sharing(np.unique(both, return_inverse=True)[1], _RARE, 0)])
    return pairs


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
