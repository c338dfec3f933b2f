"""Code that all k-means relatives share: restarts, learned attributes, `predict` and `transform`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from inspect import cleandoc
from textwrap import indent
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import cosine_distances, euclidean_distances

from clew._base import Capabilities, WeightedClusterer, cluster_names, is_quiet, warn_caller
from clew._persistence import Learned
from clew._validation import (
    NONE,
    RANDOM_STATE,
    Allowed,
    array_like,
    below_zero,
    check_features,
    check_parameters,
    check_weights,
    integer,
    number,
    words,
)
from clew.constraints import Closure, Constraints
from clew.datasets import StoredRows
from clew.datasets._stored import is_remote
from clew.exceptions import DataTypeError, FewerClustersWarning, ParameterError
from clew.partitional._checkpoint import current_checkpoint
from clew.partitional._geometry import FloatArray, IntArray, NamedRows, Problem
from clew.partitional._lloyd import Solution
from clew.partitional._reduction import (
    cluster_masses,
    cluster_sizes,
    labels_at,
    nearest,
    renamed,
    total_cost,
)
from clew.partitional._remote import as_array, open_remote
from clew.partitional._seeding import Start, cluster_labels, initial_centers

COMMON_PARAMETERS: dict[str, Allowed] = {
    "n_clusters": integer(1),
    "init": words("neighbourhoods", "k-means++") | array_like(),
    "leftover": words("k-means++", "mean"),
    "n_init": words("auto") | integer(1),
    "max_iter": integer(1),
    "tol": number(0),
    "metric": words("euclidean", "cosine"),
    "random_state": RANDOM_STATE,
    "n_jobs": integer(1) | below_zero() | NONE,
}
# Default capabilities of the k-means relatives.
SOFT_CONSTRAINTS = Capabilities(
    labels="soft", must_link="soft", cannot_link="soft", sample_weight=True, sparse=True, predicts=True
)
# With n_clusters="auto", the search ends after this many numbers without a lower criterion, or at a perfect fit.
_NUMBERS_WITHOUT_GAIN, _NO_COST = 5, 1e-12
# With n_init="auto", starts share a budget of rows: ten for small data, one from 100,000 rows on.
_MOST_STARTS, _ROWS_OF_ALL_STARTS = 10, 100_000
# Starts often end in the same clusters, numbered differently. Their objectives then differ by rounding errors, which
# depend on the processor. A relative difference up to this one counts as none, so that the first of them is returned.
SAME_OBJECTIVE = 1e-9


def n_starts(n_init: int | str, n_rows: int) -> int:
    """Number of starts for an `n_init` and a number of rows."""
    return min(_MOST_STARTS, max(1, _ROWS_OF_ALL_STARTS // n_rows)) if isinstance(n_init, str) else n_init


def best_start(solved: Iterable[Solution]) -> Solution:
    """The first of the solutions with the lowest objective."""
    found = iter(solved)
    best = next(found)
    for other in found:
        if other.objective < best.objective - SAME_OBJECTIVE * abs(best.objective):
            best = other
    return best


def _identified(found: Solution, classes: IntArray, clusters: IntArray, problem: Problem) -> Solution:
    """Renumber the clusters by a one-to-one matching with the classes that maximises the number of shared rows."""
    labels = found.labels if problem.named is None else labels_at(found.labels, problem.named.places)
    new_place = places_of_classes(labels, classes, clusters)
    centers = np.empty_like(found.centers)
    centers[new_place] = found.centers
    labels = renamed(found.labels, new_place.astype(np.int32))
    return found._replace(problem=found.problem.reordered(new_place), labels=labels, centers=centers)


def places_of_classes(labels: npt.NDArray[Any], classes: IntArray, clusters: IntArray) -> IntArray:
    """New position of each cluster, by a one-to-one matching with the classes that maximises the shared rows."""
    known = np.flatnonzero((classes >= 0) & np.isin(classes, clusters))
    shared = np.zeros((len(clusters), len(clusters)), dtype=np.int64)
    wanted = np.searchsorted(clusters, classes[known], sorter=np.argsort(clusters))
    np.add.at(shared, (labels[known], np.argsort(clusters)[wanted]), 1)
    return np.asarray(linear_sum_assignment(shared, maximize=True)[1], dtype=np.int64)


def mixing_cost(found: Solution) -> float:
    """Minus twice the log-likelihood of the rows' clusters, given the share of rows in each cluster."""
    masses = cluster_masses(found.problem, found.labels, len(found.centers))
    masses = masses[masses > 0]
    return -2 * float(masses @ np.log(masses / masses.sum()))


def rows_seen(problem: Problem) -> float:
    """Effective number of rows: the sum of the weights, or the number of rows if weights are shares of 1."""
    n_rows = np.count_nonzero(problem.weights) if len(problem.weights) else problem.n_rows
    return max(problem.total_weight, float(n_rows))


_ENTRY = re.compile(r"^(\w+(?:, \w+)*) : .*(?:\n +.*)*", re.MULTILINE)
_REFERENCE = re.compile(r"^( *)(\w+(?:,\s+\w+)*)\n +As in `KMeansFamily`\.$", re.MULTILINE)


def _with_shared_entries(docstring: str, shared: str) -> str:
    """Replace "a, b\\n    As in `KMeansFamily`." by the entries of a and b in the docstring `shared`."""
    entries = {name: entry[0] for entry in _ENTRY.finditer(cleandoc(shared)) for name in entry[1].split(", ")}

    def described(reference: re.Match[str]) -> str:
        wanted = dict.fromkeys(entries[name] for name in re.findall(r"\w+", reference[2]))
        return indent("\n".join(wanted), reference[1])

    return _REFERENCE.sub(described, docstring)


class KMeansFamily(ClassNamePrefixFeaturesOutMixin, TransformerMixin, WeightedClusterer):  # type: ignore[misc]
    """Base class of the k-means relatives. A subclass supplies `_solve`, and a constructor if it has more parameters.

    The parameters and attributes below are described here once. The docstring of a subclass lists their names with
    "As in `KMeansFamily`.", and `__init_subclass__` puts the descriptions in their place, so that `help` shows them.

    Parameters
    ----------
    n_clusters : int, default=8
    init : {"neighbourhoods", "k-means++"} or array of shape (n_clusters, n_features), default="neighbourhoods"
        Initial centres. With "neighbourhoods", constraints give the first centres: the mean of each known class, then
        the means of the largest components of must-linked rows, then single rows that are cannot-linked to all of
        these and to each other. `leftover` gives the other centres.
    leftover : {"k-means++", "mean"}, default="k-means++"
        Initial centres without a neighbourhood: rows drawn by k-means++, or points near the mean of all rows.
    n_init : int or "auto", default="auto"
        Number of starts; the result with the lowest objective is returned. "auto" means ten for up to 10,000 rows,
        fewer for more rows, and one from 100,000 rows on. With "neighbourhoods", all starts but the first keep only
        the centres of known classes and draw the others by k-means++.
    max_iter : int, default=300
        Largest number of rounds of one start.
    tol : float, default=1e-4
        Stop when the squared shift of the centres is below `tol` times the mean variance of the columns.
    metric : {"euclidean", "cosine"}, default="euclidean"
        Cost of a row: the squared distance to its centre, or one minus the cosine (spherical k-means).
    random_state : int, Generator, RandomState or None
        Seed of all random choices; an int gives the same result every time.
    n_jobs : int or None
        Number of threads (None: one, -1: all cores). The result does not depend on it.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label that belongs to each row of `cluster_centers_`.
    cluster_sizes_ : ndarray of shape (n_clusters,)
        Number of rows in each cluster.
    inertia_ : float
        Sum of the rows' weighted costs: squared distances to their centres, or one minus cosines.
    objective_history_ : ndarray
        The objective after each assignment; it never rises.
    n_iter_ : int
        Number of rounds of the start that was kept.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        Pairs that the labels break: all broken given pairs, and one pair for each row that breaks a group or class.
    """

    _parameters: ClassVar[dict[str, Allowed]] = COMMON_PARAMETERS
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **WeightedClusterer._learned_attributes,
        "cluster_centers_": Learned("real", (("clusters", "columns"),)),
        "inertia_": Learned("real"),
        "objective_": Learned("real"),
        "objective_history_": Learned("real", ((None,),)),
        "n_iter_": Learned("integer", low=0),
    }
    n_init: int | str
    cluster_centers_: npt.NDArray[Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__ is not None:  # Python leaves docstrings out if it is started with -OO
            cls.__doc__ = _with_shared_entries(cls.__doc__, KMeansFamily.__doc__ or "")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "neighbourhoods",
        leftover: str = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        metric: str = "euclidean",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.leftover = leftover
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.metric = metric
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _solve(
        self,
        problem: Problem,
        constraints: Constraints,
        closed: Closure,
        start: Start,
        rng: np.random.Generator,
    ) -> Solution:
        """Run the method from one start."""
        raise NotImplementedError  # pragma: no cover

    @property
    def _geometry(self) -> str:
        """Cost of a row before a metric is learned: a squared distance, or one minus a cosine."""
        return self.metric

    @property
    def _measures_angles(self) -> bool:
        return self._geometry == "cosine"

    @property
    def _learns_metric(self) -> bool:
        """Whether the method learns a metric."""
        return False

    def _restarts_anew(self) -> bool:
        """Whether constraints also act after the start, so that later starts may ignore the neighbourhoods."""
        return True

    def _renumbers(self) -> bool:
        """Whether clusters are renumbered after the fit to match the classes of their rows."""
        return self.capabilities.labels == "soft" and self._restarts_anew()

    def _check_input(self, X: Any, *, reset: bool) -> Any:
        """X as an array, or as rows that are read by the chunk if they are not in memory."""
        if not self._is_remote(X):
            return super()._check_input(X, reset=reset)
        self._refuse_remote(X)
        rows = open_remote(X)
        check_features(self, rows.shape[1], rows.columns, reset=reset)
        return rows

    def _is_remote(self, X: Any) -> bool:
        """Whether X is read by the chunk. A memory-mapped array is an array to methods that need all rows."""
        return is_remote(X) and (self.capabilities.out_of_core or not isinstance(X, np.memmap))

    def _fit_checked(self, X: Any, y: Any, constraints: Any, sample_weight: Any) -> Self:
        if not self._is_remote(X):
            return super()._fit_checked(X, y, constraints, sample_weight)
        check_parameters(self, self._parameters)
        with self._whole_or_not_at_all():
            rows = self._check_input(X, reset=True)
            try:
                self._fit_remote(rows, y, constraints, check_weights(sample_weight, len(rows)))
            finally:
                if rows is not X:
                    rows.close()
        return self

    def _named_rows(self, constraints: Constraints) -> tuple[Constraints, IntArray | None]:
        """Constraints about the rows that they name only, and these rows. None: the constraints are about all rows."""
        return constraints.compact()

    def _fit_remote(self, rows: Any, y: Any, constraints: Any, weights: FloatArray) -> None:
        """Fit rows that are not in memory; constraints are renumbered to the rows that they name."""
        self._refuse_constraints_as_y(y, len(rows))
        known, named = self._named_rows(Constraints.of(constraints, n_samples=len(rows)))
        known = self._usable(known)
        self._refuse_too_many_clusters(len(rows))
        labels = self._fit(rows, known, weights, self._generator(), named)
        if isinstance(rows, StoredRows):
            rows.check_consistent()
        self.__dict__.pop("classes_", None)
        if known.classes is not None:
            self.classes_ = cluster_names(known.classes, np.empty(0, dtype=np.int64), self.cluster_labels_)
        if named is None:
            labels = np.asarray(as_array(labels))
        self._set_labels(known, labels if named is None else labels_at(labels, named))
        if named is not None:
            self.violated_must_link_ = named[self.violated_must_link_]
            self.violated_cannot_link_ = named[self.violated_cannot_link_]
        self.labels_ = self._with_class_names(as_array(labels, rows))
        n_found = int(np.count_nonzero(self.cluster_sizes_))
        if self.capabilities.needs_n_clusters and n_found < int(self.n_clusters) and not is_quiet():
            warn_caller(
                f"{type(self).__name__} found {n_found} of {self.n_clusters} clusters. Lower n_clusters, or try "
                "another random_state.",
                FewerClustersWarning,
            )

    def _fit(
        self,
        X: Any,
        constraints: Constraints,
        weights: FloatArray,
        rng: np.random.Generator,
        named: IntArray | None = None,
    ) -> npt.NDArray[Any]:
        checkpoint = current_checkpoint()
        if checkpoint is not None:
            checkpoint.rng = rng
        problem = self._prepare(X, weights)
        if named is not None:
            problem = replace(problem, named=NamedRows(named, problem.X[named]))
        closed = constraints.closure()
        if isinstance(self.n_clusters, str):
            best, clusters = self._best_number(problem, constraints, closed, rng)
        else:
            clusters = cluster_labels(closed, self.n_clusters)
            best = self._best_start(problem, constraints, closed, clusters, rng)
        if self._renumbers() and constraints.labels is not None:
            best = _identified(best, constraints.labels, clusters, problem)
        self.cluster_labels_ = clusters
        self._set_solution(best, problem.n_rows)
        self._keep(best)
        if self._parameters["n_clusters"].accepts("auto"):
            self.n_clusters_ = len(clusters)
        return self._named(best.labels)

    def _set_solution(self, found: Solution, n_rows: int) -> None:
        """Set the learned attributes that all k-means relatives have. Only the first `n_rows` rows are the user's."""
        if not found.converged:
            warn_caller(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} with centre shift {found.shift:.1g} > "
                f"tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        # The rounds add up expanded squares, which lose digits. The final values come from the distances themselves.
        self.inertia_ = total_cost(found.problem, found.centers, found.labels)
        self.objective_ = found.unit * (self.inertia_ + found.price + found.problem.surplus(found.labels))
        self.objective_history_ = np.array([*found.history[:-1], self.objective_])
        self.n_iter_ = found.n_iter
        self.cluster_centers_ = found.problem.restored(found.centers)
        self.cluster_sizes_ = cluster_sizes(found.problem, found.labels, len(self.cluster_labels_), n_rows)

    def _starts(
        self, problem: Problem, closed: Closure, clusters: IntArray, rng: np.random.Generator
    ) -> Iterator[Start]:
        """Yield the starts of one fit. Each is drawn after the previous one has been solved."""
        anew = self._restarts_anew() and isinstance(self.init, str)
        for attempt in range(n_starts(self.n_init, problem.n_rows)):
            start = initial_centers(
                problem, closed, clusters, self.init, self.leftover, rng, again=attempt > 0, anew=anew
            )
            yield start
            if not start.drawn and not anew:
                return  # all further starts would be equal

    def _best_start(
        self, problem: Problem, constraints: Constraints, closed: Closure, clusters: IntArray, rng: np.random.Generator
    ) -> Solution:
        starts = self._starts(problem, closed, clusters, rng)
        solved = (self._solve(problem, constraints, closed, start, rng) for start in starts)
        return best_start(solved)

    def _best_number(
        self, problem: Problem, constraints: Constraints, closed: Closure, rng: np.random.Generator
    ) -> tuple[Solution, IntArray]:
        """Try increasing numbers of clusters; return the solution with the lowest criterion, and its cluster labels."""
        self._check_auto()
        least = max(1, len(np.unique(closed.labels[closed.labels >= 0])))
        most = max(least, int(np.ceil(np.sqrt(problem.n_rows))))
        lowest, found, since = np.inf, None, 0
        for n_clusters in range(least, most + 1):
            clusters = cluster_labels(closed, n_clusters)
            best = self._best_start(problem, constraints, closed, clusters, rng)
            criterion = self._criterion(best, n_clusters)
            since += 1
            if found is None or criterion < lowest:
                lowest, found, since = criterion, (best, clusters), 0
            if since == _NUMBERS_WITHOUT_GAIN or lowest == -np.inf:
                break
        assert found is not None
        return found

    def _check_auto(self) -> None:
        if self._geometry != "euclidean":
            raise ParameterError(
                f"n_clusters='auto' in {type(self).__name__} needs metric='euclidean': its criterion is a likelihood "
                "of distances. Give a number."
            )
        if not isinstance(self.init, str):
            raise ParameterError(
                f"n_clusters='auto' in {type(self).__name__}: init is an array, which fixes the number. Give a number."
            )

    def _criterion(self, found: Solution, n_clusters: int) -> float:
        """Bayesian criterion of Gaussians with one unknown variance; the prices of pairs count as costs."""
        problem = found.problem
        total, n_columns = problem.total_weight, problem.X.shape[1]
        cost = max(found.objective, 0.0)
        if cost <= _NO_COST * problem.scale:
            return -np.inf
        spread = total * n_columns * np.log(cost / (total * n_columns))
        n_seen = rows_seen(problem)
        return float((spread + mixing_cost(found)) * n_seen / total + n_clusters * (n_columns + 1) * np.log(n_seen))

    def _prepare(self, X: Any, weights: FloatArray) -> Problem:
        """Prepare rows in the geometry of the first round."""
        return Problem.prepare(X, weights, self.metric, self.n_jobs)

    def _measure(self, X: Any) -> Problem:
        """Prepare new rows in the geometry of the last round."""
        return self._prepare(X, np.empty(0))

    def _keep(self, found: Solution) -> None:
        """Set the learned attributes that only this method has."""

    def _named(self, labels: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
        clusters = self.cluster_labels_
        if (clusters == np.arange(len(clusters))).all():
            return labels
        small = clusters.max(initial=0) <= np.iinfo(np.int32).max
        return renamed(labels, clusters.astype(np.int32) if small else clusters)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of the nearest centre of each row; constraints are not used.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Also a path, a dataset or batches, as in `fit`, if the method reads them.
        """
        rows = self._check_new_rows(X)
        try:
            problem = self._measure(rows)
            labels = self._named(nearest(problem, problem.placed(self.cluster_centers_)))
            return self._with_class_names(as_array(labels))
        finally:
            if self._is_remote(X) and rows is not X:
                rows.close()

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Distance of each row to every centre (one minus cosine for ``metric="cosine"``).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        if isinstance(X, np.memmap):
            X = np.asarray(X)
        if is_remote(X):
            raise DataTypeError(
                f"transform takes rows in memory, and X is a {type(X).__name__}. Load X, or call predict."
            )
        distances = cosine_distances if self.metric == "cosine" else euclidean_distances
        return np.asarray(distances(self._check_new_rows(X), self.cluster_centers_))

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
