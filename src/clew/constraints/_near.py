"""The epsilon-constraint: every row has a cluster-mate within epsilon (survey, section 3.2.1).

For each row it is a disjunction of must-links: the row is must-linked with at least one row within epsilon. The
disjunctions are never expanded; a search tree finds the neighbours of a row.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import cKDTree

from clew._words import listed_rows
from clew.constraints._arrays import FloatArray, IntArray
from clew.constraints._feasibility import check_number
from clew.constraints._geometry import as_points
from clew.exceptions import ConstraintError, InfeasibleConstraintsError, ParameterError, WorkLimitError

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints

# Largest number of feasibility checks in the exact search, and work limit of one check.
_CHECKS, _CHECK_WORK = 2000, 2_000_000


class NearNeighbours:
    """The statement that every row has a cluster-mate at a Euclidean distance of at most `epsilon`.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    epsilon : float
        Above 0.
    ids : array-like, optional
        The user's row ids, for messages.

    Raises
    ------
    ConstraintError
        Some rows have no other row within `epsilon`, so no labelling satisfies the statement. The message names these
        rows.

    Examples
    --------
    >>> from clew import Constraints
    >>> near = Constraints.near_neighbours([[0.0], [1.0], [5.0], [6.0]], epsilon=1.5)
    >>> near.violations([0, 0, 1, 0])
    array([2, 3])
    >>> near.holds([0, 0, 1, 1])
    True
    """

    def __init__(self, X: Any, epsilon: Any, *, ids: Any = None) -> None:
        if isinstance(epsilon, bool) or not isinstance(epsilon, Real) or not 0 < float(epsilon) < np.inf:
            raise ParameterError(f"epsilon={epsilon!r}: expected a distance above 0.")
        self.epsilon = float(epsilon)
        self._points = as_points(X)
        self._ids = None if ids is None else np.asarray(ids, dtype=object)
        self._tree = cKDTree(self._points)
        distances, _ = self._nearest(self._tree, self._points)
        alone = np.flatnonzero(~np.isfinite(distances))
        if len(alone):
            rows = "Rows" if len(alone) > 1 else "Row"
            verb = "have" if len(alone) > 1 else "has"
            raise ConstraintError(
                f"{rows} {self._named(alone)} {verb} no other row within epsilon={epsilon:g}. Raise epsilon, or leave "
                f"{'them' if len(alone) > 1 else 'it'} out."
            )

    def __len__(self) -> int:
        return len(self._points)

    def __repr__(self) -> str:
        return f"<NearNeighbours: each of {len(self)} rows has a cluster-mate within {self.epsilon:g}>"

    def neighbours(self, row: int) -> IntArray:
        """The rows within `epsilon` of a row, nearest first."""
        found = np.array(self._tree.query_ball_point(self._points[row], self.epsilon), dtype=np.int64)
        found = np.sort(found[found != row])
        distances = np.linalg.norm(self._points[found] - self._points[row], axis=1)
        return found[np.argsort(distances, kind="stable")]

    def violations(self, labels: Any) -> IntArray:
        """The rows without a cluster-mate within `epsilon`. Noise rows (-1) are in no cluster and never listed."""
        clusters = np.asarray(labels)
        if clusters.shape != (len(self),):
            raise ConstraintError(f"labels has shape {clusters.shape}, but the statement is about {len(self)} rows.")
        alone = []
        for cluster in np.unique(clusters[clusters >= 0]):
            rows = np.flatnonzero(clusters == cluster)
            distances, _ = self._nearest(cKDTree(self._points[rows]), self._points[rows])
            alone.append(rows[~np.isfinite(distances)])
        return np.sort(np.concatenate(alone)) if alone else np.empty(0, dtype=np.int64)

    def holds(self, labels: Any) -> bool:
        """Whether every row has a cluster-mate within `epsilon`."""
        return not len(self.violations(labels))

    def must_links(self, constraints: Constraints, n_clusters: int, labels: Any = None) -> Constraints:
        """Add must-links that entail the statement, so that any method with hard must-links satisfies it.

        Parameters
        ----------
        constraints : Constraints
            All other constraints that must hold.
        n_clusters : int
        labels : array-like of shape (n_samples,), optional
            A labelling that satisfies `constraints`. Only rows without a near cluster-mate are linked, each with its
            nearest neighbour if possible. Default: all rows are linked according to a labelling that satisfies
            everything.

        Raises
        ------
        InfeasibleConstraintsError
            No labelling with `n_clusters` clusters satisfies both.
        WorkLimitError
            Neither a labelling nor a proof that there is none was found within the work limit.
        """
        check_number(n_clusters, "must_links")
        known = constraints.about(len(self))
        if labels is not None:
            nearest = np.array([[row, self.neighbours(row)[0]] for row in self.violations(labels).tolist()])
            linked = known | type(known)(nearest.reshape(-1, 2), n_samples=len(self))
            if linked.check(n_clusters, work_limit=_CHECK_WORK):
                return linked
        witness = self._witness(known, n_clusters)
        mates = np.empty((len(self), 2), dtype=np.int64)
        for cluster in np.unique(witness):
            rows = np.flatnonzero(witness == cluster)
            _, partner = self._nearest(cKDTree(self._points[rows]), self._points[rows])
            mates[rows] = np.column_stack([rows, rows[partner]])
        return known | type(known)(mates, n_samples=len(self))

    def _witness(self, known: Constraints, n_clusters: int) -> IntArray:
        """A labelling that satisfies everything, by an exact search.

        Each step takes a labelling that satisfies the must-links so far. If a row has no near cluster-mate in it, the
        row must be linked with one of its neighbours, and each neighbour is tried.
        """
        n_checks, undecided = 0, False
        waiting = [known]
        first_reason = ""
        while waiting:
            if n_checks == _CHECKS:
                raise WorkLimitError(_unknown(n_clusters, self.epsilon))
            n_checks += 1
            here = waiting.pop()
            found = here.check(n_clusters, work_limit=_CHECK_WORK)
            if found.labels is None:
                undecided |= found.status == "unknown"
                first_reason = first_reason or (found.message if here is known else "")
                continue
            labels = self._nearer(here, found.labels)
            lonely = self.violations(labels)
            if not len(lonely):
                return labels
            row = int(lonely[0])
            waiting += [
                here | type(here)([(row, other)], n_samples=len(self)) for other in self.neighbours(row)[::-1].tolist()
            ]
        if undecided:
            raise WorkLimitError(_unknown(n_clusters, self.epsilon))
        why = first_reason or (
            "The other constraints separate some rows from all their neighbours. Raise epsilon, or remove some of them."
        )
        raise InfeasibleConstraintsError(
            f"No labelling with n_clusters={n_clusters} gives every row a cluster-mate within "
            f"epsilon={self.epsilon:g} and satisfies the other constraints. {why}"
        )

    def _nearer(self, known: Constraints, labels: IntArray) -> IntArray:
        """Move components without cannot-links to the cluster of their nearest other component."""
        closed = known.closure()
        labels = labels.copy()
        free = ~closed.tied & (closed.labels < 0)
        for row in self.violations(labels).tolist():
            component = closed.component_of[row]
            if free[component]:
                labels[closed.component_of == component] = labels[self.neighbours(row)[0]]
        return labels

    def _nearest(self, tree: cKDTree, points: FloatArray) -> tuple[FloatArray, IntArray]:
        """Distance and position of the nearest other point in a tree of the same points; infinite beyond epsilon."""
        if len(points) < 2:
            return np.full(len(points), np.inf), np.zeros(len(points), dtype=np.int64)
        bound = np.nextafter(self.epsilon, np.inf)
        distances, places = tree.query(points, k=2, distance_upper_bound=bound)
        own = places[:, 0] == np.arange(len(points))
        # If several rows are equal, the row itself may be the second of the two, or neither.
        return np.where(own, distances[:, 1], distances[:, 0]), np.where(own, places[:, 1], places[:, 0])

    def _named(self, rows: IntArray) -> str:
        return listed_rows([row if self._ids is None else self._ids[row] for row in rows.tolist()])


def _unknown(n_clusters: int, epsilon: float) -> str:
    return (
        f"Neither a labelling with n_clusters={n_clusters} that gives every row a cluster-mate within "
        f"epsilon={epsilon:g} nor a proof that there is none was found within the work limit. "
        "Raise epsilon or n_clusters."
    )
