"""Correlation clustering of a few rows as an integer program, and its linear relaxation.

Each pair has a variable that is 1 if the pair is cut. Triangle inequalities make the cuts a partition. HiGHS solves the
program. Violated inequalities are added in rounds, because few of them matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# An inequality counts as violated beyond this tolerance; HiGHS is exact to 1e-7.
_VIOLATION = 1e-6
# Largest number of violated inequalities that a round adds, per pair.
_CUTS_PER_PAIR = 3


class Correlation(NamedTuple):
    """A lower bound on the cost, and the labels that reach it. `labels` is None if the cuts are not whole numbers."""

    bound: float
    labels: IntArray | None


def correlate(net: FloatArray, apart: npt.NDArray[np.bool_], *, exact: bool) -> Correlation:
    """Cluster a few rows at the lowest cost, the sum of |net weight| over cut positive and uncut negative pairs.

    Parameters
    ----------
    net : ndarray of shape (n, n)
        Symmetric weights, above 0 if two rows belong together.
    apart : ndarray of shape (n, n)
        Which pairs must be cut.
    exact : bool
        Solve the integer program. Otherwise its linear relaxation is solved, and `labels` may be None.
    """
    n_rows = len(net)
    first, second = np.triu_indices(n_rows, 1)
    number = np.zeros((n_rows, n_rows), dtype=np.int64)
    number[first, second] = number[second, first] = np.arange(len(first))
    weights = net[first, second]
    must_cut = apart[first, second]
    offset = float(-np.minimum(weights, 0)[~must_cut].sum())
    prices = np.where(must_cut, 0.0, weights)  # a cut pair pays its weight, which is a gain if it is negative
    bounds = Bounds(must_cut.astype(float), 1.0)
    limits = [sparse.csr_array((0, len(first)))]
    kinds = [False, True] if exact else [False]
    for whole in kinds:
        while True:
            rows = sparse.csr_array(sparse.vstack(limits))
            solved = milp(
                prices,
                integrality=np.full(len(first), int(whole)),
                bounds=bounds,
                constraints=LinearConstraint(rows, -np.inf, 0.0) if rows.shape[0] else None,
                options={"mip_rel_gap": 0.0},
            )
            cuts = np.zeros((n_rows, n_rows))
            cuts[first, second] = cuts[second, first] = solved.x
            violated = _violated(cuts, number)
            if not len(violated):
                break
            places = np.repeat(np.arange(len(violated)), 3)
            signs = np.tile([1.0, -1.0, -1.0], len(violated))
            limits.append(sparse.csr_array((signs, (places, violated.ravel())), shape=(len(violated), len(first))))
        if np.abs(solved.x - solved.x.round()).max(initial=0) < _VIOLATION:
            return Correlation(solved.fun + offset, _labels(cuts < 0.5))
    return Correlation(solved.fun + offset, None)


def _violated(cuts: FloatArray, number: IntArray) -> IntArray:
    """The pairs (i, k), (i, j), (j, k) of the most violated inequalities: cut(i, k) <= cut(i, j) + cut(j, k)."""
    n_rows = len(cuts)
    excess = cuts[:, None, :] - cuts[:, :, None] - cuts[None, :, :]  # violation for i, j and k
    i, j, k = np.nonzero(excess > _VIOLATION)
    once = i < k
    i, j, k = i[once], j[once], k[once]
    most = np.argsort(-excess[i, j, k], kind="stable")[: max(30, _CUTS_PER_PAIR * n_rows * (n_rows - 1) // 2)]
    return np.column_stack([number[i, k], number[i, j], number[j, k]])[most]


def _labels(together: npt.NDArray[np.bool_]) -> IntArray:
    """The first row of each row's cluster."""
    return np.argmax(together | np.eye(len(together), dtype=bool), axis=1).astype(np.int64)
