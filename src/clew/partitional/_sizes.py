"""Limits on the sizes of clusters: reading them, refusing infeasible ones, and the assignment within them.

Demiriz, Bennett and Bradley 2008 (`demiriz2008`); survey section 3.2.2, Eq. 44.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._validation import NONE, Allowed, array_like, number
from clew._words import listed, listed_rows
from clew.constraints import Closure, Constraints, require_coloring
from clew.exceptions import InfeasibleConstraintsError, ParameterError, WorkLimitError
from clew.partitional._geometry import FloatArray, IntArray, Labels, Problem
from clew.partitional._lloyd import Policy
from clew.partitional._reduction import nearest
from clew.partitional._seeding import Start
from clew.partitional._units import Units
from clew.solvers.coloring import WORK_LIMIT
from clew.solvers.packing import ROUND_SWEEPS, ROUNDING, Packing, PackingError

LIMIT: Allowed = number(0) | array_like() | NONE


@dataclass(frozen=True)
class SizeLimits:
    """The smallest and the largest size of each cluster, in rows or in weight."""

    lower: FloatArray
    upper: FloatArray
    in_weights: bool = False

    @property
    def differ(self) -> bool:
        """Whether clusters have different limits."""
        return len(np.unique(self.lower)) > 1 or len(np.unique(self.upper)) > 1

    def phrase(self, total: float) -> str:
        """The limits in words; `total` is the size of all rows."""
        some_lower, some_upper = bool((self.lower > 0).any()), bool((self.upper < total).any())
        if some_lower and some_upper:
            return f"from {_numbers(self.lower)} to {_numbers(self.upper)}"
        return f"of at least {_numbers(self.lower)}" if some_lower else f"of at most {_numbers(self.upper)}"


def read_limits(
    owner: Any,
    n_clusters: int,
    size_min: Any,
    size_max: Any,
    *,
    in_weights: bool = False,
) -> SizeLimits | None:
    """Check the limits of an estimator; return None if it has no limits."""
    if size_min is None and size_max is None:
        return None
    lower = _one_each(owner, "size_min", size_min, n_clusters, 0.0)
    upper = _one_each(owner, "size_max", size_max, n_clusters, np.inf)
    if (lower > upper).any():
        place = int(np.flatnonzero(lower > upper)[0])
        at = "" if np.ndim(size_min) == np.ndim(size_max) == 0 else f" of cluster {place}"
        raise ParameterError(
            f"size_min={lower[place]:g}{at} is above size_max={upper[place]:g} in {type(owner).__name__}. "
            "Lower size_min or raise size_max."
        )
    if not in_weights:
        whole = np.ceil(lower - ROUNDING), np.floor(upper + ROUNDING)
        if (whole[0] > whole[1]).any():
            place = int(np.flatnonzero(whole[0] > whole[1])[0])
            raise ParameterError(
                f"No whole number of rows is from {lower[place]:g} to {upper[place]:g}. Widen the limits of "
                f"{type(owner).__name__}."
            )
        lower, upper = whole
    return SizeLimits(lower, upper, in_weights)


def _one_each(owner: Any, name: str, value: Any, n_clusters: int, default: float) -> FloatArray:
    """A limit for each cluster; `default` for clusters without a limit."""
    if value is None or np.ndim(value) == 0:
        return np.full(n_clusters, default if value is None else float(value))
    try:
        limits = np.array([default if one is None else float(one) for one in value], dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} in {type(owner).__name__}: expected numbers, one for each cluster.") from None
    if len(limits) != n_clusters:
        raise ParameterError(
            f"{name} has {len(limits)} limits, but n_clusters={n_clusters}. Give one number, or one for each cluster."
        )
    wrong = ~(limits >= 0) | (np.isinf(limits) & (default == 0))
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise ParameterError(
            f"{name}[{place}]={limits[place]:g} in {type(owner).__name__}: expected a finite number >= 0."
        )
    return limits


def pack(
    constraints: Constraints,
    closed: Closure,
    limits: SizeLimits,
    pins: IntArray,
    work_limit: int,
    weights: FloatArray | None = None,
) -> Packing:
    """Set up the packing of components into clusters within the limits; refuse limits that obviously cannot hold."""
    sizes = closed.sizes.astype(np.float64)
    if limits.in_weights and weights is not None:
        sizes = np.zeros(closed.n_components)
        np.add.at(sizes, closed.component_of, weights)
    slack = ROUNDING * float(sizes.sum()) if limits.in_weights else 0.0
    fixed = np.asarray(pins, dtype=np.int32)
    packing = Packing(sizes, limits.lower - slack, limits.upper + slack, closed.graph, fixed, work_limit)
    _refuse_totals(limits, packing)
    _refuse_large(constraints, closed, limits, packing)
    return packing


def _refuse_totals(limits: SizeLimits, packing: Packing) -> None:
    total, n_clusters = float(packing.sizes.sum()), packing.n_clusters
    clusters = "1 cluster" if n_clusters == 1 else f"{n_clusters} clusters"
    has = "the rows weigh" if limits.in_weights else "the data has"
    for bound, kept, words, advice in (
        (limits.upper, packing.upper.sum() >= total, ("at most", "hold"), "Raise size_max or n_clusters"),
        (limits.lower, packing.lower.sum() <= total, ("at least", "need"), "Lower size_min or n_clusters"),
    ):
        if kept:
            continue
        verb = f"{words[1]}s" if n_clusters == 1 else words[1]
        what = f"a weight of {bound.sum():g}" if limits.in_weights else f"{bound.sum():g} rows"
        raise InfeasibleConstraintsError(
            f"{clusters} of {words[0]} {_numbers(bound)} {verb} {what}, {has} {total:g}. {advice}."
        )


def _refuse_large(constraints: Constraints, closed: Closure, limits: SizeLimits, packing: Packing) -> None:
    """Raise if a block or a class is larger than its cluster may be; the message names its rows."""
    pinned = packing.fixed >= 0
    room = np.where(pinned, packing.upper[packing.fixed], packing.upper.max())
    large = np.flatnonzero(packing.sizes > room)
    if not len(large):
        return
    block = int(large[packing.sizes[large].argmax()])
    pointers, rows = closed.rows
    members = rows[pointers[block] : pointers[block + 1]]
    names = listed_rows([constraints.describe_row(row) for row in members.tolist()])
    size, most = packing.sizes[block], limits.upper[packing.fixed[block]] if pinned[block] else limits.upper.max()
    what = f"weigh {size:g} together" if limits.in_weights else f"are a block of {size:g} rows"
    if len(members) == 1:
        subject, why = f"Row {names} weighs {size:g}", ""
    elif closed.labels[block] >= 0:
        subject, why = f"Rows {names} have one class and {what}", ""
    else:
        subject, why = f"Rows {names} are must-linked and {what}", ", or remove must-links"
    whose = "their cluster may hold at most" if pinned[block] else "no cluster may hold more than"
    raise InfeasibleConstraintsError(f"{subject}, but {whose} {most:g}. Raise size_max{why}.", members)


@dataclass(frozen=True)
class Explanation:
    """Why blocks could not be packed."""

    constraints: Constraints
    closed: Closure
    limits: SizeLimits
    packing: Packing

    def error(self, found: PackingError) -> Exception:
        """The error to raise. Its cause is the cannot-links alone, the limits together with them, or the work limit."""
        packing, limits = self.packing, self.limits
        components = np.arange(self.closed.n_components)
        with contextlib.suppress(WorkLimitError):  # the cannot-links alone may be the reason
            require_coloring(
                self.constraints, self.closed, components, packing.n_clusters, fixed=packing.fixed,
                preference=np.arange(packing.n_clusters, dtype=np.int32)[None, :], work_limit=WORK_LIMIT,
            )  # fmt: skip
        total = float(packing.sizes.sum())
        unit = "weight" if limits.in_weights else "rows"
        clusters = f"{packing.n_clusters} clusters with sizes {limits.phrase(total)} ({unit})"
        if not found.proven:
            return WorkLimitError(
                f"Neither {clusters} nor a proof that there are none was found within work_limit={packing.work_limit}. "
                "Widen the limits, or raise work_limit."
            )
        return InfeasibleConstraintsError(
            f"{self._reason()} cannot be packed into {clusters}: every way was tried. Widen the limits.",
            self._rows(),
        )

    def _reason(self) -> str:
        packing, large, parts = self.packing, self._rows(), []
        if self.limits.in_weights:
            parts.append("weights")
        if (self.closed.sizes > 1).any():
            parts.append("must-linked blocks")
        if len(packing.free_edges):
            parts.append("cannot-links")
        if (packing.fixed >= 0).any():
            parts.append("known classes")
        because = listed(parts, "and") if parts else "rows"
        if len(large) < 2:
            return f"The {because}"
        names = listed_rows([self.constraints.describe_row(row) for row in large.tolist()])
        return f"The {because} (the largest with rows {names})"

    def _rows(self) -> IntArray:
        """The first rows of the largest blocks, which are the hardest to pack."""
        sizes = self.packing.sizes
        large = np.flatnonzero(sizes > sizes.min())
        if not len(large):
            return np.empty(0, dtype=np.int64)
        return np.sort(self.closed.first_row[large[np.argsort(-sizes[large], kind="stable")][:5]])


class SizedPolicy(Policy):
    """Assign the blocks at the lowest total cost for which all sizes keep their limits.

    Single rows without conflicts are assigned by a minimum-cost flow, which is exact. Other blocks start from a
    labelling within the limits, and exchanges between two clusters improve it in each round.
    """

    def __init__(self, packing: Packing, explanation: Explanation, known: Labels | None = None) -> None:
        self.packing, self.explanation, self._known = packing, explanation, known
        self._prices: FloatArray | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        limits: SizeLimits,
        pins: IntArray,
        work_limit: int,
        known: Labels | None = None,
    ) -> tuple[SizedPolicy, Units]:
        """The policy, and all components of rows as its units."""
        packing = pack(constraints, closed, limits, pins, work_limit, problem.row_weights)
        rows = np.arange(problem.n_rows)
        units = Units.contract(problem, rows, closed.component_of, closed.n_components)
        return cls(packing, Explanation(constraints, closed, limits, packing), known), units

    def movable(self, units: Units) -> npt.NDArray[np.bool_]:
        return self.packing.fixed < 0

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        costs = unit_costs(problem, units, centers)
        try:
            if self.packing.is_flow:
                labels[:], self._prices = self.packing.flow(costs, self._prices)
            else:
                before = self._known if labels[0] < 0 else labels
                start = self.packing.start(costs) if before is None else before
                labels[:] = self.packing.improve(costs, start, ROUND_SWEEPS)
        except PackingError as error:
            raise self.explanation.error(error) from None
        return float(costs[np.arange(len(labels)), labels].sum()), 0.0


def unit_costs(problem: Problem, units: Units, centers: FloatArray) -> FloatArray:
    """Weighted scores of all units with every centre."""
    costs = np.empty((len(units), len(centers)))
    for chosen, scores in units.costs(problem, centers, np.arange(len(units))):
        costs[chosen] = scores
    return costs


def matched_start(problem: Problem, closed: Closure, start: Start, limits: SizeLimits) -> Start:
    """Reorder the clusters of a start so that the largest group gets the cluster with the largest limit.

    Clusters of known classes keep their positions.
    """
    if not limits.differ:
        return start
    k = len(start.centers)
    loose = np.setdiff1d(np.arange(k), start.seeds[closed.labels >= 0])
    sizes = np.bincount(nearest(problem, start.centers), minlength=k)
    middle = limits.lower + np.minimum(limits.upper, float(problem.row_weights.sum()))
    source = loose[np.argsort(sizes[loose], kind="stable")]
    target = loose[np.argsort(middle[loose], kind="stable")]
    place = np.arange(k)
    place[source] = target
    centers = start.centers.copy()
    centers[place] = start.centers
    seeds = np.where(start.seeds >= 0, place[start.seeds], -1)
    return Start(centers, seeds, start.drawn)


def _numbers(limits: Sequence[float] | FloatArray) -> str:
    """One number if all limits are equal, else a list."""
    values = [f"{one:g}" for one in limits]
    if len(set(values)) == 1:
        return values[0]
    return listed_rows(values)
