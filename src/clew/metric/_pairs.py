"""Convert all kinds of constraints into the weighted must-linked and cannot-linked pairs that metric learners use."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs, group_columns
from clew.exceptions import ConstraintError, DataError

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Classes and groups are replaced by all their pairs, or by a sample of this size if there are more.
_MOST_PAIRS = 100_000


class WeightedPairs(NamedTuple):
    """Distinct pairs of rows and the weight of each, which is the confidence of the constraint.

    Must-links (4, 1) of confidence 0.5 and (1, 4) of confidence 1 give ``pairs=[[1, 4]]``, ``weights=[1.0]``.
    """

    pairs: IntArray
    weights: FloatArray

    def differences(self, X: FloatArray) -> FloatArray:
        """The first row of each pair minus the second."""
        return X[self.pairs[:, 0]] - X[self.pairs[:, 1]]


class LearningPairs(NamedTuple):
    """Pairs that should be near each other, and pairs that should be far from each other."""

    near: WeightedPairs
    far: WeightedPairs

    def require_both(self, name: str, X: FloatArray) -> None:
        """Raise if pairs of one kind are missing, or if all cannot-linked rows are equal."""
        for pairs, kind, other in ((self.near, "must-links", "cannot-links"), (self.far, "cannot-links", "must-links")):
            if not len(pairs.pairs):
                raise ConstraintError(
                    f"constraints holds {other} but no {kind}, and {name} learns from both. "
                    f"Add {kind}, or label some rows."
                )
        if not self.far.differences(X).any():
            raise DataError("All cannot-linked rows are equal in X, so no metric can separate them. Add columns.")


def learning_pairs(constraints: Constraints, rng: np.random.Generator, *, triplets: bool = False) -> LearningPairs:
    """Collect the must-linked and cannot-linked pairs of all given constraints; entailed pairs are not added.

    With `triplets`, a triplet (a, b, c) adds a pair (a, b) that should be near and a pair (a, c) that should be far.
    """
    near, far = [constraints.must_link], [constraints.cannot_link]
    near += [_within(column, rng) for column in group_columns(constraints.must_groups)]
    far += [_within(column, rng) for column in group_columns(constraints.cannot_groups)]
    if constraints.labels is not None:
        near.append(_within(constraints.labels, rng))
        far.append(_between(constraints.labels, rng))
    if triplets:
        near.append(constraints.triplets[:, :2])
        far.append(constraints.triplets[:, ::2])
    return LearningPairs(
        _weighted(near, constraints.must_link_confidence), _weighted(far, constraints.cannot_link_confidence)
    )


def _weighted(parts: list[IntArray], confidence: FloatArray) -> WeightedPairs:
    """Distinct pairs, each with its highest confidence. `confidence` is for the first part; other parts are certain."""
    pairs = np.concatenate(parts)
    weights = np.concatenate([confidence, np.ones(len(pairs) - len(confidence))])
    once = distinct_pairs(pairs, weights)
    return WeightedPairs(once.pairs, weights[once.best])


def _within(groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Pairs of rows in the same group."""
    rows, stops = _by_group(groups)
    return _ranges(rows, np.arange(1, len(rows) + 1), stops, rng)


def _between(groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Pairs of rows in different groups."""
    rows, stops = _by_group(groups)
    return _ranges(rows, stops, np.full(len(rows), len(rows)), rng)


def _by_group(groups: IntArray) -> tuple[IntArray, IntArray]:
    """List the grouped rows group by group, and for each of them the position at which its group ends."""
    grouped = np.flatnonzero(groups >= 0)
    rows = grouped[np.argsort(groups[grouped], kind="stable")]
    return rows, np.searchsorted(groups[rows], groups[rows], side="right")


def _ranges(rows: IntArray, starts: IntArray, stops: IntArray, rng: np.random.Generator) -> IntArray:
    """Pair the row at each position p with the rows at positions `starts[p]` to `stops[p]`, or sample these pairs."""
    ends = np.cumsum(stops - starts)
    n_pairs = int(ends[-1]) if len(ends) else 0
    chosen = np.arange(n_pairs) if n_pairs <= _MOST_PAIRS else rng.integers(n_pairs, size=_MOST_PAIRS)
    first = np.searchsorted(ends, chosen, side="right")
    second = stops[first] - (ends[first] - chosen)
    return np.column_stack([rows[first], rows[second]])
