"""The rounds that all k-means relatives share: assign, move the centres, repeat.

The parts are in files of their own: the cost of a row (`_geometry.py`), the pass over free rows (`_reduction.py`), the
rows that constraints link (`_units.py`), and the stopping rule (`_stopping.py`). A method supplies a `Policy`, which
assigns the linked rows.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from clew.partitional._checkpoint import current_checkpoint
from clew.partitional._geometry import FloatArray, Labels, Problem, square_norms
from clew.partitional._reduction import Candidate, RowLabels, Tally, dense, highest, row_labels, threads
from clew.partitional._stopping import Round, StoppingRule
from clew.partitional._units import Units, add_points

_logger = logging.getLogger(__name__)


class Policy:
    """Assigns the units, and may let broken pairs change the centres."""

    monotone: ClassVar[bool] = True  # whether rounds never raise the objective

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        """Write the units' labels (-1 before the first round); return their weighted score and the price of ties."""
        raise NotImplementedError  # pragma: no cover

    def resume(self, labels: Labels) -> None:
        """Continue a run after a round in which the units had these labels."""

    def movable(self, units: Units) -> npt.NDArray[np.bool_]:
        """Which units may go to an empty cluster."""
        return np.ones(len(units), dtype=bool)

    def pull(self, units: Units, centers: FloatArray, labels: Labels, sums: FloatArray, masses: FloatArray) -> None:
        """Add the pull of broken pairs to the sums and weights of the new centres."""

    def learn(self, problem: Problem, centers: FloatArray, labels: Labels) -> tuple[Problem, FloatArray]:
        """Adapt the metric to the new labels and centres; return the problem and the centres of the next round."""
        return problem, centers


class Solution(NamedTuple):
    """The result of the rounds."""

    problem: Problem  # as the last round saw it
    labels: Labels
    centers: FloatArray
    price: float
    unit: float
    objective: float
    history: list[float]
    n_iter: int
    shift: float  # squared shift of the centres in the last round, in the unit of `tol`
    converged: bool


def lloyd(
    problem: Problem,
    units: Units | None,
    policy: Policy | None,
    centers: FloatArray,
    *,
    max_iter: int,
    tol: float,
    unit: float = 1.0,
) -> Solution:
    """Assign all rows and move the centres, again and again, until the `StoppingRule` ends the rounds.

    `units` are the rows that are not free, and `policy` assigns them (both None: all rows are free).
    The objective is `unit` times the sum of inertia and price. `history` holds the objective after each assignment,
    with the centres that the assignment used. The last entry belongs to the returned labels and centres.
    """
    rows = row_labels(problem, np.empty(0, dtype=np.int64) if units is None else problem.places(units.rows))
    unit_labels = np.full(0 if units is None else len(units), -1, dtype=np.int32)
    rule = StoppingRule(problem, tol, max_iter, monotone=policy is None or policy.monotone)
    is_empty, several = np.zeros(len(centers), dtype=bool), len(centers) > 1
    checkpoint = current_checkpoint() if rule.monotone else None
    saved = None if checkpoint is None else checkpoint.begin_run()
    if saved is not None:
        centers, is_empty = saved.centers, saved.is_empty
        unit_labels[:] = saved.unit_labels
        rule.restore(saved.history, saved.rule)
        rows.restore(problem, saved.labels, Tally(saved.sums, saved.errors, saved.masses, np.zeros(2)))
        if policy is not None:
            policy.resume(unit_labels)
    with threads(problem.n_jobs) as run:
        while True:
            tally = rows.assign(problem, centers, run)
            price = _assign_units(problem, units, policy, centers, rows, unit_labels, tally)
            score, n_changed = tally.totals
            emptied = several and bool(((tally.masses == 0) & ~is_empty).any())
            objective = unit * (problem.constant + score + price)
            _log(rule, objective, max_iter)
            now = Round(problem, rows.values, centers, price)
            last = rule.ends(now, objective, unit * problem.scale, changed=n_changed > 0, emptied=emptied)
            if last is not None:
                break
            if units is not None and policy is not None:
                policy.pull(units, centers, unit_labels, tally.sums, tally.masses)
            new = problem.means(tally.sums, tally.masses, centers)
            is_empty = tally.masses == 0
            if several and is_empty.any():
                _restart_empty(problem, new, is_empty, rows, units, unit_labels, policy)
            rule.moved(float(((new - centers) ** 2).sum()))
            centers = new
            if policy is not None:
                before = problem
                problem, centers = policy.learn(problem, centers, rows.values)
                if problem.X is not before.X:
                    units = None if units is None else replace(units, points=problem.X[units.rows])
            if checkpoint is not None:
                state = {"centers": centers, "is_empty": is_empty, "unit_labels": unit_labels}
                checkpoint.round_done({**state, **rule.state(), **rows.state()})
    shift = rule.shift / (last.problem.variance or 1.0)
    return Solution(*last, unit, rule.history[-1], rule.history, rule.n_iter, shift, rule.converged)


def _assign_units(
    problem: Problem,
    units: Units | None,
    policy: Policy | None,
    centers: FloatArray,
    rows: RowLabels,
    unit_labels: Labels,
    tally: Tally,
) -> float:
    """Let the policy assign the units, add them to the tally, and return the price of the ties they break."""
    if units is None or policy is None:
        return 0.0
    before = unit_labels.copy()
    score, price = policy.assign(problem, units, centers, unit_labels)
    tally.totals += (score, float(np.count_nonzero(before != unit_labels)))
    for here, points in units.blocks():
        add_points(points, units.weights[here], unit_labels[here], tally.sums, tally.masses)
    rows.place(problem.places(units.rows), unit_labels[units.unit_of])
    return price


def _log(rule: StoppingRule, objective: float, max_iter: int) -> None:
    number = rule.n_iter + 1
    extra = {"round": number, "objective": objective, "max_iter": max_iter}
    _logger.debug("round %d: objective %g", number, objective, extra=extra)


def _restart_empty(
    problem: Problem,
    centers: FloatArray,
    empty: npt.NDArray[np.bool_],
    rows: RowLabels,
    units: Units | None,
    unit_labels: Labels,
    policy: Policy | None,
) -> None:
    """Move the centre of each empty cluster to the row, or unit, that gains most from a centre of its own.

    No row belongs to these clusters, so moving their centres cannot raise the objective.
    """
    n_wanted = int(empty.sum())
    found = rows.farthest(problem, centers, n_wanted)
    if units is not None and policy is not None:
        gain = np.empty(len(units))
        for here, points in units.blocks():
            gain[here] = problem.gains(square_norms(points), problem.own_costs(points, centers, unit_labels[here]))
        gain *= units.weights
        gain = np.where(policy.movable(units), gain, 0.0)
        first = np.full(len(units), problem.n_rows)
        np.minimum.at(first, units.unit_of, problem.places(units.rows))
        best = np.argsort(-gain, kind="stable")[:n_wanted]
        found += [
            Candidate(float(gain[one]), int(first[one]), dense(units.points[np.array([one])]))
            for one in best
            if gain[one] > 0
        ]
    for cluster, candidate in zip(np.flatnonzero(empty), highest(found, n_wanted), strict=False):
        centers[cluster] = problem.as_centers(candidate.point)
