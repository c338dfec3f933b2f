"""The dual of constrained k-medoids by linear programming: exact prices of constraints on small data.

Thesis section 5.4.1 (`randel2021`): the Lagrangian of Eq. 5.10 is solved with assignments in [0, 1] instead of {0, 1}.
Its maximum over the multipliers is then the optimum of one linear program, in which the constraints stay. The dual
values of their inequalities are the best multipliers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from clew.exceptions import WorkLimitError
from clew.solvers.criteria import FloatArray, IntArray
from clew.solvers.lagrangian import Dual, Statements

# The thesis's epsilon. Rows can be split here, so a large value makes most constraints free. With 0, correct
# constraints share the price of a wrong one. Of 0, 0.05, 0.25, 0.5 and 0.75, this value had the best F1.
_SLACK = 0.25


def dual_by_program(
    distances: FloatArray,
    n_clusters: int,
    tied: IntArray,
    anchors: sparse.csr_array | None,
    statements: Statements,
    *,
    slack: float = _SLACK,
) -> Dual:
    """The best multipliers of all statements, one for each candidate medoid instead of each cluster.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
    tied, anchors, statements
        As in `dual_ascent` and its criteria. The cost of an anchor with a medoid is the cost of all its rows, minus
        their cost with the best medoid.
    slack : float
        The thesis's epsilon.
    """
    n, points = len(distances), _Points(distances, tied, anchors)
    pairs, prices = _together(statements, points, slack), _apart(statements, points, slack)
    width = points.n * n + n
    rows = [_open_medoids(points.n, n), pairs[0], prices[0]]
    limits = [np.zeros(points.n * n), pairs[1], prices[1]]
    most_price = statements.most_price.copy()
    # Assignments of 1 / k satisfy all other statements. Larger sets can only be satisfied at a price.
    too_large = np.diff(statements.set_ptr) > (1 + slack) * n_clusters
    most_price[too_large] = np.minimum(most_price[too_large], 1.0 + points.n * float(points.costs.max()))
    caps = np.concatenate([np.repeat(statements.most_pull, 2 * n), np.repeat(most_price, n)])
    capped = np.flatnonzero(np.isfinite(caps))
    # A statement with a bounded price may be broken at that price.
    may_break = sparse.csr_array(
        (-np.ones(len(capped)), (points.n * n + capped, np.arange(len(capped)))),
        shape=(points.n * n + len(caps), len(capped)),
    )
    found = linprog(
        np.concatenate([points.costs.ravel(), np.zeros(n), caps[capped]]),
        A_ub=sparse.hstack([sparse.vstack(rows), may_break], format="csr"),
        b_ub=np.concatenate(limits),
        A_eq=sparse.hstack([_used_once(points.n, n), sparse.csr_array((points.n + 1, len(capped)))], format="csr"),
        b_eq=np.append(np.ones(points.n), n_clusters),
        bounds=[(0, 1)] * width + [(0, None)] * len(capped),
        method="highs",
    )
    if found.x is None:
        raise WorkLimitError(f"HiGHS ended without a solution of the linear program: {found.message}")
    multipliers = found.ineqlin.marginals[points.n * n :]
    both = multipliers[: pairs[0].shape[0]].reshape(-1, 2, n)
    labels = found.x[: points.n * n].reshape(points.n, n)[points.place[: statements.n_tied]].argmax(axis=1)
    bound = float(found.fun)
    return Dual(
        both[:, 1] - both[:, 0],
        np.maximum(-multipliers[pairs[0].shape[0] :], 0.0).reshape(-1, n),
        bound,
        np.inf,
        labels.astype(np.int32),
        np.array([[bound, bound]]),
        True,
    )


class _Points:
    """All rows, followed by the anchors: their costs with each medoid, and the position of each tied point."""

    def __init__(self, distances: FloatArray, tied: IntArray, anchors: sparse.csr_array | None) -> None:
        self.costs = distances
        if anchors is not None:
            whole = anchors @ distances[tied]
            self.costs = np.concatenate([distances, whole - whole.min(axis=1, keepdims=True)])
        self.n = len(self.costs)
        self.place = np.concatenate([tied, np.arange(len(distances), self.n)])


def _open_medoids(n_points: int, n: int) -> sparse.csr_array:
    """Rows are only assigned to medoids: x_ic - y_c <= 0."""
    entry = np.arange(n_points * n)
    medoid = n_points * n + entry % n
    values = np.concatenate([np.ones(len(entry)), -np.ones(len(entry))])
    return sparse.csr_array(
        (values, (np.tile(entry, 2), np.concatenate([entry, medoid]))), (len(entry), n_points * n + n)
    )


def _used_once(n_points: int, n: int) -> sparse.csr_array:
    """The assignments of a point sum to 1; there are `n_clusters` medoids."""
    entry = np.arange(n_points * n + n)
    return sparse.csr_array((np.ones(len(entry)), (entry // n, entry)), shape=(n_points + 1, len(entry)))


def _together(statements: Statements, points: _Points, slack: float) -> tuple[sparse.csr_array, FloatArray]:
    """For each pair, both x_ic - x_jc <= slack and x_jc - x_ic <= slack, for all c."""
    n, n_pairs = points.costs.shape[1], len(statements.together)
    first, second = (points.place[side][:, None] * n + np.arange(n) for side in statements.together.T)
    rows = np.arange(2 * n_pairs * n).reshape(n_pairs, 2, n)
    places = [
        (rows[:, 0], first, 1.0),
        (rows[:, 0], second, -1.0),
        (rows[:, 1], second, 1.0),
        (rows[:, 1], first, -1.0),
    ]
    return _matrix(places, rows.size, points), np.full(rows.size, slack)


def _apart(statements: Statements, points: _Points, slack: float) -> tuple[sparse.csr_array, FloatArray]:
    """For each set, the sum of x_ic over its members is at most 1 + slack, for all c."""
    n, n_sets = points.costs.shape[1], len(statements.most_price)
    set_of = np.repeat(np.arange(n_sets), np.diff(statements.set_ptr))
    rows = set_of[:, None] * n + np.arange(n)
    columns = points.place[statements.members][:, None] * n + np.arange(n)
    return _matrix([(rows, columns, 1.0)], n_sets * n, points), np.full(n_sets * n, 1.0 + slack)


def _matrix(places: list[tuple[Any, Any, float]], n_rows: int, points: _Points) -> sparse.csr_array:
    rows = np.concatenate([place[0].ravel() for place in places])
    columns = np.concatenate([place[1].ravel() for place in places])
    values = np.concatenate([np.full(place[0].size, place[2]) for place in places])
    return sparse.csr_array(
        (values, (rows, columns)), shape=(n_rows, points.n * points.costs.shape[1] + points.costs.shape[1])
    )
