"""Measures of a set of constraints, before clustering with it.

Davidson, Wagstaff and Basu 2006 (`davidson2006`): informativeness and coherence, survey Eq. 94 to 97. Davidson 2012
(`davidson2012`): the fractional chromatic number as a measure of difficulty. Survey section 5.3 (`truong2013`): when
answers should not be propagated to neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import mannwhitneyu

from clew._base import quietly
from clew._distances import VECTOR_METRICS, check_metric, pair_distances
from clew._validation import as_generator, check_matrix
from clew._words import counted
from clew.audit._answers import constraints_from
from clew.audit._models import check_n_clusters
from clew.constraints import Constraints
from clew.exceptions import ConstraintError, DataError, ParameterError
from clew.partitional import SeededKMeans
from clew.solvers.fractional_coloring import fractional_chromatic_number

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Number of entries in one block of projections.
_BLOCK_ENTRIES = 4_000_000
# Overlaps below this share of the longest vector are rounding errors.
_ROUNDING = 1e-12
# Smallest number of answers of each kind, and the share of pairs that count as near.
_LEAST_ANSWERS, _NEAR = 8, 0.25
# Near rows "tend to share answers" if the share of "same" is higher among near pairs than among far pairs by this
# difference, or by this factor if few pairs are the same, with a p-value below the last number.
_LEAST_LIFT, _LEAST_RATIO, _SURE = 0.15, 3.0, 0.05


@quietly()
def informativeness(
    X: Any, constraints: Any, n_clusters: int | None = None, *, labels: Any = None, random_state: Any = 0
) -> float:
    """Share of the constraints that a clustering without constraints violates.

    Survey Eq. 94 with the sign corrected: it counts constraints that are *not* satisfied.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Clustered by k-means. If `labels` are given, only the number of rows is used.
    constraints : Constraints, dict, frame, path, or list of answers as in `review`
        Only given pairs are used.
    n_clusters : int, optional
    labels : array-like of shape (n_samples,), optional
        The clustering without constraints.
    random_state : int, Generator, RandomState or None, default=0

    Examples
    --------
    >>> from clew.audit import informativeness
    >>> X = [[0.0], [1.0], [8.0], [9.0]]
    >>> informativeness(X, {"must_link": [(0, 1)], "cannot_link": [(2, 3)]}, 2)
    0.5
    """
    X = check_matrix(X)
    known = constraints_from(constraints, X.shape[0])
    pairs = _some_pairs(known, "informativeness")
    if labels is None:
        if n_clusters is None:
            raise ParameterError("informativeness needs n_clusters, or the labels of a clustering.")
        check_n_clusters(n_clusters, X.shape[0])
        labels = SeededKMeans(n_clusters, random_state=as_generator(random_state)).fit(X).labels_
    clusters = np.asarray(labels)
    if clusters.shape != (X.shape[0],):
        raise ParameterError(f"labels has shape {clusters.shape}, but X has {X.shape[0]} rows.")
    together = clusters[pairs[:, 0]] == clusters[pairs[:, 1]]
    return float((together != (np.arange(len(pairs)) < len(known.must_link))).mean())


def _some_pairs(known: Constraints, name: str) -> IntArray:
    pairs = np.concatenate([known.must_link, known.cannot_link])
    if not len(pairs):
        raise ConstraintError(f"{name} needs pairs; these constraints hold none.")
    return pairs


def coherence(X: Any, constraints: Any) -> float:
    """Share of the combinations of a must-link and a cannot-link that do not overlap along the same direction.

    A must-link and a cannot-link are coherent if they do not overlap when projected on each other's line (survey Eq. 95
    to 97, with the overlap of two intervals for Eq. 96). The metric is Euclidean. For another one, transform X first.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraints : Constraints, dict, frame, path, or list of answers as in `review`
        Only given pairs are used. There must be must-links and cannot-links.

    Notes
    -----
    Time O(a b d) for a must-links and b cannot-links, in blocks.

    Examples
    --------
    >>> from clew.audit import coherence
    >>> X = [[0.0, 0.0], [1.0, 0.0], [3.0, 0.0], [3.0, 1.0]]
    >>> coherence(X, {"must_link": [(0, 1)], "cannot_link": [(2, 3), (0, 2)]})
    0.5
    """
    X = check_matrix(X)
    known = constraints_from(constraints, X.shape[0])
    if not len(known.must_link) or not len(known.cannot_link):
        raise ConstraintError("coherence compares must-links with cannot-links. Give some of both.")
    must, cannot = _ends(X, known.must_link), _ends(X, known.cannot_link)
    rows = max(1, _BLOCK_ENTRIES // len(known.cannot_link))
    longest = max(np.linalg.norm(ends[1] - ends[0], axis=1).max() for ends in (must, cannot))
    coherent = 0
    for start in range(0, len(known.must_link), rows):
        block = must[0][start : start + rows], must[1][start : start + rows]
        overlap = np.maximum(_overlaps(block, cannot), _overlaps(cannot, block).T)
        coherent += int((overlap <= _ROUNDING * longest).sum())
    return coherent / (len(known.must_link) * len(known.cannot_link))


def _ends(X: Any, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    first, second = (X[pairs[:, side]] for side in (0, 1))
    if sparse.issparse(X):
        first, second = first.toarray(), second.toarray()
    return first.astype(np.float64), second.astype(np.float64)


def _overlaps(vectors: tuple[FloatArray, FloatArray], onto: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Project each vector onto the line of each other vector, and return the overlap of the two."""
    start, end = onto
    length = np.linalg.norm(end - start, axis=1)
    direction = (end - start) / np.where(length > 0, length, 1.0)[:, None]
    shift = np.einsum("ij,ij->i", start, direction)
    first, second = (ends @ direction.T - shift for ends in vectors)
    return np.maximum(np.minimum(np.maximum(first, second), length) - np.maximum(np.minimum(first, second), 0.0), 0.0)


@dataclass(frozen=True)
class Difficulty:
    """How hard the cannot-links are to satisfy: the fractional chromatic number of the graph of components.

    Attributes
    ----------
    lower, upper : float
        Bounds on the number; infinite if the constraints contradict each other.
    n_core : int
        Number of components that remain after removing all components that can always be coloured.
    """

    lower: float
    upper: float
    n_core: int

    @property
    def exact(self) -> bool:
        """Whether the two bounds meet."""
        return self.upper - self.lower <= 1e-6 or self.lower == np.inf

    @property
    def message(self) -> str:
        """The result in a sentence."""
        if self.lower == np.inf:
            return "The constraints contradict each other, so no number of clusters is enough."
        least = int(np.ceil(self.lower - 1e-6))
        value = f"{self.lower:.4g}" if self.exact else f"between {self.lower:.4g} and {self.upper:.4g}"
        needed = counted(least, "cluster is needed", "clusters are needed")
        return f"The fractional chromatic number is {value}: at least {needed}."

    def __str__(self) -> str:
        return self.message


def difficulty(constraints: Any, *, n_samples: int | None = None, work_limit: int = 2_000_000) -> Difficulty:
    """Fractional chromatic number of the cannot-links between components, as an interval.

    Parameters
    ----------
    constraints : Constraints, labels, dict, frame, path, or list of answers as in `review`
    n_samples : int, optional
        Number of rows, if the constraints do not contain it.
    work_limit : int, default=2,000,000
        Largest number of steps of the search for independent sets. If it is reached, the bounds so far are returned.

    Notes
    -----
    A component with fewer neighbours than the largest clique found can always be coloured and is removed first. The
    rest is a linear program over independent sets, solved by column generation.

    Examples
    --------
    >>> from clew.audit import difficulty
    >>> ring = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]
    >>> difficulty({"cannot_link": ring}).upper
    2.5
    """
    if isinstance(work_limit, bool) or not isinstance(work_limit, int | np.integer) or work_limit < 0:
        raise ParameterError(f"work_limit={work_limit!r} in difficulty: expected an integer >= 0.")
    known = constraints_from(constraints, n_samples)
    closed = known.closure()
    if closed.contradictory:
        return Difficulty(np.inf, np.inf, 0)
    return Difficulty(*fractional_chromatic_number(closed.graph, work_limit))


@dataclass(frozen=True)
class Propagation:
    """Whether near rows tend to share answers.

    Attributes
    ----------
    verdict : {"yes", "no", "unknown"}
        "no" means: do not propagate answers to neighbours, and do not learn a metric from them.
    near_same, far_same : float
        Share of "same" among the nearest quarter of the pairs, and among the others.
    p_value : float
        P-value of the hypothesis that must-links and cannot-links have the same distances.
    """

    verdict: Literal["yes", "no", "unknown"]
    near_same: float
    far_same: float
    p_value: float

    def __bool__(self) -> bool:
        return self.verdict == "yes"

    @property
    def message(self) -> str:
        """The result in a sentence."""
        if self.verdict == "unknown":
            return f"Too few answers to tell whether near rows share them: {_LEAST_ANSWERS} of each kind are needed."
        shares = f"{self.near_same:.0%} of the near pairs are the same, {self.far_same:.0%} of the others"
        if self.verdict == "yes":
            return f"Near rows tend to share answers: {shares}."
        return f"Near rows do not tend to share answers ({shares}): do not propagate answers to neighbours here."

    def __str__(self) -> str:
        return self.message


def propagation(X: Any, constraints: Any, *, metric: Any = "euclidean") -> Propagation:
    """Test whether near rows tend to share answers, which methods that propagate answers assume.

    Propagation, metric learning and questions about borders only help if this holds (survey section 5.3). It does not
    hold for tic-tac-toe boards, for example, where one cell decides who wins.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    constraints : Constraints, dict, frame, path, or list of answers as in `review`
        Only given pairs are used, preferably of randomly drawn rows.
    metric : str, callable or square array, default="euclidean"

    Examples
    --------
    >>> import numpy as np
    >>> from clew import Constraints
    >>> from clew.audit import propagation
    >>> X, y = np.repeat([[0.0], [9.0]], 20, axis=0), np.repeat([0, 1], 20)
    >>> propagation(X, Constraints.sample(y, 60, random_state=0)).verdict
    'yes'
    """
    if isinstance(metric, str) and metric not in (*VECTOR_METRICS, "precomputed"):
        raise ParameterError(
            f"metric={metric!r} in propagation: expected one of {', '.join(VECTOR_METRICS)} or a matrix."
        )
    X, metric = check_metric(X, metric)
    known = constraints_from(constraints, X.shape[0])
    n_must, n_cannot = len(known.must_link), len(known.cannot_link)
    distances = pair_distances(X, np.concatenate([known.must_link, known.cannot_link]), metric)
    if not np.isfinite(distances).all():
        raise DataError("Some distances between the rows of pairs are not finite. Fill the rows in, or scale them.")
    if min(n_must, n_cannot) < _LEAST_ANSWERS:
        return Propagation("unknown", np.nan, np.nan, np.nan)
    same = np.arange(len(distances)) < n_must
    # Pairs of equal distance are all near or all far.
    near = distances <= np.quantile(distances, _NEAR)
    p_value = float(mannwhitneyu(distances[same], distances[~same], alternative="less").pvalue)
    near_same = float(same[near].mean())
    far_same = float(same[~near].mean()) if not near.all() else near_same
    oftener = near_same - far_same >= _LEAST_LIFT or near_same >= _LEAST_RATIO * far_same
    return Propagation("yes" if oftener and p_value <= _SURE else "no", near_same, far_same, p_value)
