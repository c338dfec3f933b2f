"""Spherical k-means in which the price of a broken pair depends on the similarity of its rows.

The objective of IG-KMEANS: survey (`truong2013`) section 4, Eq. 72 and 73.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clew._validation import Allowed, number
from clew.constraints import Closure, Constraints
from clew.partitional._family import COMMON_PARAMETERS, SOFT_CONSTRAINTS, KMeansFamily
from clew.partitional._geometry import FloatArray, IntArray, Labels, Problem
from clew.partitional._lloyd import Policy, Solution, lloyd
from clew.partitional._pairs import given_pairs
from clew.partitional._seeding import Start
from clew.partitional._ties import TiedAssignment, Ties
from clew.partitional._units import Units


class IGKMeans(KMeansFamily):
    r"""Spherical k-means in which the price of a broken pair depends on the similarity of its rows.

    Rows are compared by cosine, as is usual for documents. A broken must-link costs the distance between its rows, a
    broken cannot-link their similarity. The questions of `clew.active.InformationGain` were designed for this method.
    For one price for all pairs, see `PCKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    rho : float, default=0.5
        Weight of the rows' costs, above 0 and up to 1; pairs have the weight 1 - rho. With 1, the method is spherical
        k-means, and constraints only affect the start.
    init, leftover, n_init, max_iter, tol, random_state, n_jobs
        As in `KMeansFamily`.

    Attributes
    ----------
    labels_, cluster_labels_, cluster_sizes_, objective_history_, n_iter_, violated_must_link_, violated_cannot_link_
        As in `KMeansFamily`.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Of length one.
    inertia_ : float
        Weighted sum of one minus the cosine of each row with its centre.
    objective_ : float
        O below: `rho` times `inertia_`, plus 1 - `rho` times the price of broken pairs.

    Notes
    -----
    Constraints: all soft. Minimises

    .. math:: O = \rho \sum_i \psi(x_i, c_{z_i}) + (1 - \rho) \Big( \sum_{ML} w_{ij} \psi(x_i, x_j) [z_i \neq z_j]
              + \sum_{CL} w_{ij} (1 - \psi(x_i, x_j)) [z_i = z_j] \Big)

    where psi is one minus the cosine (a row of zeros has cosine 0 with all) and w the confidence. Only given pairs are
    priced, each once at its highest confidence; groups and classes are expanded to pairs, up to two million.
    Breaking a must-link between rows of the same direction costs nothing.

    O never rises; the result is a local optimum in which no row can move to a cheaper cluster.
    Time O(t (n k d + m) + m d) for t rounds and m pairs; memory O(n + k d + m) beyond a copy of X.
    Departs from [1]_: a broken cannot-link between rows at an obtuse angle costs 0, where 1 - psi would be negative.
    Rows in pairs move one at a time in seeded random order. An empty cluster restarts at the row farthest from its
    centre.

    References
    ----------
    .. [1] R. Huang, W. Lam, Z. Zhang (2007). "Active learning of constraints for semi-supervised text clustering." SDM.
       Eq. (72) and (73) of the survey by D. T. Truong and R. Battiti (2013).

    Examples
    --------
    >>> from clew import IGKMeans
    >>> model = IGKMeans(n_clusters=2, random_state=0)
    >>> model.fit([[9.0, 0.0], [5.0, 1.0], [1.0, 6.0], [0.0, 3.0]], constraints={"must_link": [(0, 1)]}).labels_
    array([0, 0, 1, 1], dtype=int32)
    """

    _capabilities = replace(SOFT_CONSTRAINTS, monotone=True, out_of_core=True)
    _parameters: ClassVar[dict[str, Allowed]] = {
        **{name: allowed for name, allowed in COMMON_PARAMETERS.items() if name != "metric"},
        "rho": Allowed("a number above 0 and up to 1", lambda value: number(0, 1).accepts(value) and value > 0),
    }
    metric = "cosine"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        rho: float = 0.5,
        init: Any = "neighbourhoods",
        leftover: str = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.rho = rho
        self.init = init
        self.leftover = leftover
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def _examples(cls) -> list[IGKMeans]:
        return [cls(n_clusters=3, random_state=0), cls(n_clusters=3, rho=0.1, random_state=0)]

    def _restarts_anew(self) -> bool:
        return self.rho < 1

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        return ig_kmeans(problem, constraints, start, rng, self.rho, max_iter=self.max_iter, tol=self.tol)


def ig_kmeans(
    problem: Problem,
    constraints: Constraints,
    start: Start,
    rng: np.random.Generator,
    rho: float,
    *,
    max_iter: int,
    tol: float,
) -> Solution:
    """Move rows in constraints one at a time, in seeded random order, to their cheapest cluster.

    The rounds minimise Eq. 72 divided by rho, so that the weights of rows stay exact.
    """
    rows, ties = similarity_ties(problem, constraints, (1 - rho) / rho)
    units = Units.contract(problem, rows, np.arange(len(rows)), len(rows))
    policy = _PricedRows(TiedAssignment(ties, len(start.centers)), rng)
    return lloyd(problem, units, policy, start.centers, max_iter=max_iter, tol=tol, unit=rho)


class _PricedRows(Policy):
    """Assign each row to the cluster with the lowest sum of its distance and the prices of the pairs it breaks."""

    def __init__(self, state: TiedAssignment, rng: np.random.Generator) -> None:
        self._state, self._rng = state, rng

    def resume(self, labels: Labels) -> None:
        self._state.load(labels)

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        score = self._state.sweep(problem, units, centers, self._rng.permutation(len(units)), labels)
        return score, self._state.price(labels)


def similarity_ties(problem: Problem, constraints: Constraints, scale: float) -> tuple[IntArray, Ties]:
    """The rows in given pairs, and the prices between them: psi for must-links, 1 - psi for cannot-links."""
    must, must_sure, cannot, cannot_sure = given_pairs(constraints)
    pairs = np.concatenate([must, cannot])
    attraction = scale * must_sure * (1 - _cosines(problem, must))
    repulsion = scale * cannot_sure * _cosines(problem, cannot).clip(0)
    rows = np.unique(pairs)
    ties = Ties.build(
        len(rows),
        pairs=(np.searchsorted(rows, pairs), np.concatenate([-attraction, repulsion])),
        constant=float(attraction.sum()),
    )
    return rows, ties


def _cosines(problem: Problem, pairs: IntArray) -> FloatArray:
    """Cosine of the two rows of each pair; the rows have length one, or zero."""
    found = np.empty(len(pairs))
    block = max(1, 1_000_000 // problem.X.shape[1])
    for start in range(0, len(pairs), block):
        first, second = (problem.points(pairs[start : start + block, end]) for end in range(2))
        if sparse.issparse(first):
            inner = np.asarray(first.multiply(second).sum(axis=1), dtype=np.float64).ravel()
        else:
            inner = np.einsum("ij,ij->i", first, second, dtype=np.float64)
        found[start : start + block] = inner
    return found.clip(-1, 1)
