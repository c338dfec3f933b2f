"""Count pairs of rows that share a key, without listing the pairs.

A key column has one value per row, such as a group, or -1 for none. A group of m rows has m (m - 1) / 2 pairs, but time
and memory here stay linear in the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clew.constraints._arrays import distinct_pairs
from clew.evaluation._contingency import Integers, distinct, pairs_in


def key_columns(groups: Integers | None) -> list[Integers]:
    """Split a group array into its columns, renumbered so that products of codes do not overflow."""
    if groups is None:
        return []
    columns = groups.reshape(groups.shape[0], -1)
    return [_renumber(columns[:, position]) for position in range(columns.shape[1])]


def _renumber(column: Integers) -> Integers:
    codes = np.full(column.size, -1, dtype=np.int64)
    bound = column != -1
    codes[bound] = distinct(column[bound]).codes
    return codes


class RowSets(NamedTuple):
    """Disjoint sets of at least two rows: the rows, the set of each row, and the number of pairs inside the sets."""

    rows: Integers
    block_of: Integers
    n_pairs: int

    @classmethod
    def of(cls, rows: Integers, set_of: Integers) -> RowSets:
        """Drop sets of a single row, which contain no pair."""
        _, block_of, sizes = distinct(set_of)
        paired = sizes[block_of] > 1
        return cls(rows[paired], block_of[paired], pairs_in(sizes))

    def split_by(self, key: Integers) -> RowSets:
        """Split every set by the value of a key. Rows without a value are dropped."""
        values = key[self.rows]
        bound = values >= 0
        n_values = int(values.max(initial=0)) + 1
        return RowSets.of(self.rows[bound], self.block_of[bound] * n_values + values[bound])


def clusters(codes: Integers) -> RowSets:
    """Return the clusters of encoded labels as blocks."""
    return RowSets.of(np.arange(codes.size), codes)


def count_sharing(blocks: RowSets, keys: Sequence[Integers]) -> int:
    """Count the pairs inside the blocks that share the value of at least one key, each pair once.

    The count uses inclusion and exclusion, one key at a time: the pairs of a key minus those that a later key also has.
    A key shared by all pairs ends the search, so nested and repeated keys are fast. c keys that all overlap without
    nesting take 2**c passes.
    """
    count = 0
    for position, key in enumerate(keys):
        sharing = blocks.split_by(key)
        if sharing.n_pairs == blocks.n_pairs:
            return blocks.n_pairs
        if sharing.n_pairs:
            count += sharing.n_pairs - count_sharing(sharing, keys[position + 1 :])
    return count


class RowPairs(NamedTuple):
    """Pairs of rows as two aligned arrays."""

    first: Integers
    second: Integers

    @classmethod
    def of(cls, pairs: Integers) -> RowPairs:
        """Drop repeated pairs, in any direction."""
        return cls(*distinct_pairs(pairs).pairs.T)

    def without_shared(self, keys: Sequence[Integers]) -> RowPairs:
        """Drop the pairs whose rows share a key."""
        kept = self
        for key in keys:
            first, second = key[kept.first], key[kept.second]
            apart = (first < 0) | (first != second)
            kept = RowPairs(kept.first[apart], kept.second[apart])
        return kept

    def count_together(self, codes: Integers) -> int:
        """Count the pairs with equal codes."""
        return int(np.count_nonzero(codes[self.first] == codes[self.second]))
