"""Pairs of rows that share a key, counted without listing them.

A key column gives each row a value or -1 for none: a group, or "is labelled". A group of m rows states
m (m - 1) / 2 pairs; everything here stays linear in the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from clew.evaluation._contingency import Integers, distinct, pairs_in


def key_columns(groups: Integers | None) -> list[Integers]:
    """Read a group array, one column or several, with values renumbered so that products of codes fit."""
    if groups is None:
        return []
    columns = groups.reshape(groups.shape[0], -1)
    return [_renumber(columns[:, position]) for position in range(columns.shape[1])]


def _renumber(column: Integers) -> Integers:
    codes = np.full(column.size, -1, dtype=np.int64)
    bound = column != -1
    codes[bound] = distinct(column[bound]).codes
    return codes


class Blocks(NamedTuple):
    """Disjoint sets of two rows or more: the rows, the set of each, and the number of pairs inside them."""

    rows: Integers
    block_of: Integers
    n_pairs: int

    @classmethod
    def of(cls, rows: Integers, set_of: Integers) -> Blocks:
        """Drop the sets of a single row: they hold no pair, and rows left out here cost nothing later."""
        _, block_of, sizes = distinct(set_of)
        paired = sizes[block_of] > 1
        return cls(rows[paired], block_of[paired], pairs_in(sizes))

    def split_by(self, key: Integers) -> Blocks:
        """Split every set by the value of a key; rows without a value leave."""
        values = key[self.rows]
        bound = values >= 0
        n_values = int(values.max(initial=0)) + 1
        return Blocks.of(self.rows[bound], self.block_of[bound] * n_values + values[bound])


def clusters(codes: Integers) -> Blocks:
    """Read the clusters of encoded labels as blocks."""
    return Blocks.of(np.arange(codes.size), codes)


def count_sharing(blocks: Blocks, keys: Sequence[Integers]) -> int:
    """Count the pairs inside the blocks that share the value of at least one key, each pair once.

    Inclusion and exclusion, one key at a time: the pairs of a key, less those that a later key also has. A
    key shared by all pairs ends the search, so nested and repeated keys stay cheap; c keys that all overlap
    without nesting cost 2**c passes.
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
    def of(cls, pairs: Integers, n_rows: int) -> RowPairs:
        """Each pair once, whatever its direction and however often it was given."""
        low, high = pairs.min(axis=1), pairs.max(axis=1)
        return cls(*np.divmod(np.unique(low * n_rows + high), n_rows))

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
