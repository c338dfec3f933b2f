"""Weighted covering: the cheapest items that meet every requirement, by mixed-integer programming (HiGHS).

Requirements that share items form a component. Components are solved one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from clew.kernels.disjoint_set import merge_pairs, number_components

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Largest number of branch-and-bound nodes for one component. Then the best solution so far and its bound are returned.
# With more entries than the second number, the linear relaxation gives the bound, and its solution is rounded.
_NODES, _MOST_ENTRIES = 200, 4000


class Cover(NamedTuple):
    """One requirement: the sum of coefficient x item, over `items`, is at least `least`."""

    items: IntArray
    coefficients: FloatArray
    least: float

    @classmethod
    def any_of(cls, items: IntArray, least: float = 1.0) -> Cover:
        """The requirement that at least `least` of the items are chosen."""
        return cls(items, np.ones(len(items)), least)


class Covering(NamedTuple):
    """Chosen items, and a lower bound on the price of every choice."""

    chosen: npt.NDArray[np.bool_]
    bound: float


class CoveringProblem:
    """Requirements that are added over time. Only components with new requirements are solved again.

    With prices 1, 1, 3 and the requirements "0 or 1" and "1 or 2", the cheapest choice is item 1.
    """

    def __init__(self, prices: FloatArray) -> None:
        self._prices = prices
        self.covers: list[Cover] = []
        self._solved: dict[tuple[int, ...], tuple[IntArray, float]] = {}

    def solve(self) -> Covering:
        """The cheapest items that meet all requirements; if the search takes too long, cheap items and a bound."""
        chosen = np.zeros(len(self._prices), dtype=bool)
        bound = 0.0
        solved = {}
        for numbers in self._components():
            key = tuple(numbers)
            items, least = self._solved.get(key) or self._solve_one(numbers)
            solved[key] = items, least
            chosen[items] = True
            bound += least
        self._solved = solved
        return Covering(chosen, bound)

    def _components(self) -> list[list[int]]:
        parent = np.arange(len(self._prices))
        for cover in self.covers:
            merge_pairs(parent, np.column_stack([cover.items[:-1], cover.items[1:]]))
        component_of = np.empty(len(self._prices), dtype=np.int64)
        number_components(parent, component_of)
        found: dict[int, list[int]] = {}
        for number, cover in enumerate(self.covers):
            found.setdefault(int(component_of[cover.items[0]]), []).append(number)
        return list(found.values())

    def _solve_one(self, numbers: list[int]) -> tuple[IntArray, float]:
        covers = [self.covers[number] for number in numbers]
        if len(covers) == 1 and covers[0].least == 1 and (covers[0].coefficients == 1).all():
            items = covers[0].items
            best = items[self._prices[items].argmin()]
            return np.array([best]), float(self._prices[best])
        items, columns = np.unique(np.concatenate([cover.items for cover in covers]), return_inverse=True)
        rows = np.repeat(np.arange(len(covers)), [len(cover.items) for cover in covers])
        values = np.concatenate([cover.coefficients for cover in covers])
        matrix = sparse.csr_array((values, (rows, columns)), shape=(len(covers), len(items)))
        least = np.array([cover.least for cover in covers])
        found = milp(
            self._prices[items],
            integrality=np.full(len(items), int(matrix.nnz <= _MOST_ENTRIES)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, least, np.inf),
            options={"node_limit": _NODES, "mip_rel_gap": 0.0},
        )
        bound = found.mip_dual_bound if matrix.nnz <= _MOST_ENTRIES else found.fun
        if bound is None or not np.isfinite(bound):
            bound = 0.0
        if found.x is None:  # no solution within the limit: all items meet every requirement
            return items, float(max(bound, 0.0))
        return items[found.x > 0.5], float(max(bound, 0.0))
