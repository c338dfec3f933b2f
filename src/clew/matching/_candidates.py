"""Candidate pairs: rows that are similar as a whole, or that share a rare value, two values that rarely meet, or a key.

No other pairs are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations

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
# rows are expected to share them by chance. With more than 10 pairs of columns, the limits of all pairs add up to 10.
_MOST_EXPECTED, _MOST_EXPECTED_IN_ALL = 1.0, 10.0
# Rows that share a key form a block. In a block of at most 30 rows, all pairs are candidates. In a larger block, each
# row is paired with the 10 rows that follow it.
_MOST_IN_BLOCK, _NEXT = 30, 10
# Repeated pairs are dropped when there are at least so many pairs. Two rows that share thirty cells share 435 pairs of
# cells.
_MOST_REPEATED = 1_000_000
# A row that likely matches more rows than this is not used to close triangles.
_MOST_PARTNERS = 50


def candidate_pairs(rows: Comparer, fields: Sequence[Field], keys: Sequence[Field]) -> IntArray:
    """Return the pairs (i, j), i < j, that may match."""
    neighbours = rows.neighbours
    places = np.repeat(np.arange(rows.n_fitted), neighbours.shape[1])
    near = np.column_stack([places, neighbours.ravel()])
    rare = (_sharing(field.codes, _RARE, 0) for field in fields)
    keyed = (_sharing(field.codes, _MOST_IN_BLOCK, _NEXT) for field in keys)
    return _distinct(chain([near[near[:, 1] >= 0]], rare, sharing_two(fields), keyed))


def _distinct(parts: Iterable[IntArray]) -> IntArray:
    """The pairs of all parts, each once. Memory is linear in their number, however often they are repeated."""
    held: list[IntArray] = []
    n_held = n_distinct = 0
    for part in parts:
        held.append(part)
        n_held += len(part)
        if n_held > 2 * n_distinct + _MOST_REPEATED:
            held = [distinct_pairs(np.concatenate(held))[0]]
            n_held = n_distinct = len(held[0])
    return distinct_pairs(np.concatenate(held))[0]


def sharing_two(fields: Sequence[Field]) -> Iterator[IntArray]:
    """For every two columns, pairs of rows that share both values, where each is frequent but the two rarely meet.

    For example, many people are called Smith, and many are born on one day, but two Smiths born on that day may be the
    same person. In a large table, the nearest rows by letters may all be other people who share more letters by chance.
    If columns were independent, a value of `n_one` rows and a value of `n_two` rows would meet in
    `n_one * n_two / n_rows` rows.
    """
    n_column_pairs = len(fields) * (len(fields) - 1) // 2
    most = min(_MOST_EXPECTED, _MOST_EXPECTED_IN_ALL / max(n_column_pairs, 1))
    n_with = [np.append(field.counts, 0)[field.codes] for field in fields]  # 0 where the cell is missing
    for one, two in combinations(range(len(fields)), 2):
        expected = n_with[one] * n_with[two] / len(n_with[one])
        rows = np.flatnonzero((n_with[one] > _RARE) & (n_with[two] > _RARE) & (expected <= most))
        both = fields[one].codes[rows] * len(fields[two].texts) + fields[two].codes[rows]
        yield rows[_sharing(np.unique(both, return_inverse=True)[1], _RARE, 0)]


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
