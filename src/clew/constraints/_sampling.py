"""Simulated constraints: pairs sampled from true labels, with an error rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.constraints._arrays import IntArray
from clew.exceptions import ParameterError


def sample_pairs(
    y: Any, n: int, balance: float | None, noise: float, rng: np.random.Generator
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Draw `n` different pairs of labelled rows, with flags for the answer "same"."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ParameterError(f"y has shape {labels.shape}: expected one label per row.")
    known = np.flatnonzero(labels != -1) if labels.dtype.kind in "iuf" else np.arange(len(labels))
    if not isinstance(n, int | np.integer) or n < 0:
        raise ParameterError(f"n={n!r} in sample: expected an integer >= 0.")
    if not 0 <= noise <= 1:
        raise ParameterError(f"noise={noise!r} in sample: expected a number in [0, 1].")
    if balance is not None and not 0 <= balance <= 1:
        raise ParameterError(f"balance={balance!r} in sample: expected a number in [0, 1], or None.")
    classes, sizes = np.unique(labels[known], return_inverse=True, return_counts=True)[1:]
    order = known[np.argsort(classes, kind="stable")]  # rows by class
    ends = np.cumsum(sizes)
    n_pairs = len(known) * (len(known) - 1) // 2
    n_same = int((sizes * (sizes - 1) // 2).sum())
    if balance is None:
        _enough(n, n_pairs, "pairs")
        pairs = order[_unrank(_distinct(n_pairs, n, rng), len(order))]
    else:
        want_same = round(n * balance)
        _enough(want_same, n_same, "pairs with one label")
        _enough(n - want_same, n_pairs - n_same, "pairs with different labels")
        pairs = np.concatenate(
            [
                order[_same_class(_distinct(n_same, want_same, rng), sizes, ends)],
                order[_different_class(_distinct(n_pairs - n_same, n - want_same, rng), sizes, ends)],
            ]
        )
    rng.shuffle(pairs, axis=0)
    same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return pairs, same ^ (rng.random(len(pairs)) < noise)


def _enough(wanted: int, there: int, what: str) -> None:
    if wanted > there:
        raise ParameterError(f"The sample needs {wanted} {what}, but there are only {there}. Lower n.")


def _distinct(total: int, n: int, rng: np.random.Generator) -> IntArray:
    """Draw `n` different numbers below `total` without listing all numbers."""
    if total <= 4 * n:
        return rng.permutation(total)[:n]
    found = np.unique(rng.integers(0, total, n))
    while len(found) < n:
        found = np.unique(np.concatenate([found, rng.integers(0, total, n - len(found))]))
    return rng.permutation(found)


def _unrank(number: IntArray, n: int) -> IntArray:
    """Pair `number` in the list (0,1), (0,2), (1,2), (0,3), … of all pairs below `n`."""
    high = ((1 + np.sqrt(8.0 * number + 1)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > number  # the square root may be rounded up or down
    high += (high + 1) * high // 2 <= number
    return np.column_stack([number - high * (high - 1) // 2, high])


def _same_class(number: IntArray, sizes: IntArray, ends: IntArray) -> IntArray:
    before = np.cumsum(sizes * (sizes - 1) // 2)
    group = np.searchsorted(before, number, side="right")
    inside = number - (before[group] - sizes[group] * (sizes[group] - 1) // 2)
    return _unrank(inside, 0) + (ends - sizes)[group][:, None]


def _different_class(number: IntArray, sizes: IntArray, ends: IntArray) -> IntArray:
    # Class g pairs each of its rows with every row of the classes before it.
    starts = ends - sizes
    before = np.cumsum(sizes * starts)
    group = np.searchsorted(before, number, side="right")
    inside = number - (before[group] - sizes[group] * starts[group])
    return np.column_stack(
        [inside % np.maximum(starts[group], 1), starts[group] + inside // np.maximum(starts[group], 1)]
    )
