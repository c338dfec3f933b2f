"""Find clusters that carry information about the features that the given clusters do not carry.

Gondek, Vaithyanathan & Garg 2005 (`gondek2005b`); Truong & Battiti 2013 (`truong2013`), section 3.2.5, Eq. 47-56.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import SplineTransformer

from clew._base import AlternativeClusterer, Capabilities, warn_caller
from clew._persistence import Learned
from clew._validation import NONE, RANDOM_STATE, Allowed, integer, number
from clew.constraints import Constraints
from clew.exceptions import DataError
from clew.kernels.information_moves import move_rows_by_information

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Degree of the splines that spread a value over neighbouring bins.
_DEGREE = 3
# Bins cover the values between these two quantiles, so that an outlier does not push all other values into one bin.
_COVERED = (0.01, 0.99)
# A row moves only if that gains more than this many nats, which is above rounding errors.
_LEAST_GAIN = 1e-12
# Values of the coordination that are tried for `min_information`.
_N_LEVELS = 6


class CoordinatedConditionalIB(AlternativeClusterer):
    r"""Finds clusters that carry the most information about the features, given the clusters already known.

    Rows move one at a time to the cluster that gains most information. Use it for counts such as words in documents,
    or to balance novelty against quality with `coordination`. For vectors, `CondEns` is faster.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of new clusters.
    coordination : float from 0 to 1, default=0.1
        :math:`\gamma` below. 1 is the information bottleneck (IB), which ignores the given clusters; 0 is the
        conditional information bottleneck (CIB), in which a cluster may mean something else in each given cluster.
        Lower it if the result still resembles the given clusters.
    min_information : float from 0 to 1, default=0.0
        Lower bound on the information about the features, I(C; Y), as a share of what the information bottleneck
        keeps: the fit raises the coordination until the bound holds.
    compression : float, default=0.0
        :math:`\tau` below, the price of a nat of I(C; X). Higher values make clusters of unequal sizes.
    n_bins : int, default=10
        Number of overlapping bins per column. None: X holds counts, and columns are the features.
    n_init : int, default=10
        Number of random starts, of which the best is kept.
    max_iter : int, default=100
        Largest number of passes over all rows, per start.
    random_state : int, Generator or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The new clusters.
    given_ : ndarray of shape (n_samples,)
        The given clusters, numbered in the order in which they appear; -1 is noise.
    information_ : float
        I(C; Y), the information of the new clusters about the features, in nats.
    conditional_information_ : float
        I(C; Y | Z), the same information if the given clusters are known, in nats.
    coordination_ : float
        The coordination of the result; higher than `coordination` if `min_information` requires it.
    objective_ : float
        J below.
    objective_history_ : ndarray
        J after each pass of the best start. It never rises.
    n_iter_ : int
        Number of passes of the best start.
    variation_of_information_ : float
        Variation of information between new and given clusters, in nats: the larger, the more they differ.
    normalized_mutual_info_ : float
        Normalised mutual information between new and given clusters: 0 if they are independent.
    cluster_labels_, cluster_sizes_ : ndarray of shape (n_clusters,)
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)

    Notes
    -----
    Constraints: ignored; broken pairs are only reported. X, Y, Z and C are the row, the feature, the given cluster and
    the new cluster. All rows have the same weight. The method lowers the lost information

    .. math:: J = (1 - \gamma) \big( I(X; Y | Z) - I(C; Y | Z) \big) + \gamma \big( I(X; Y) - I(C; Y) \big)
              + \tau \, I(C; X)

    over clusters without overlap, where I(C; X) is the entropy of the clusters. This is Eq. 53-55 with prices for the
    two bounds. Passes visit the rows in random order. After a pass that moves no row, clusters swap their
    names inside a given cluster if that raises I(C; Y): I(C; Y | Z) does not depend on these names, and single moves
    cannot change them. J never rises; the result is a local optimum.

    For counts, p(y | x) is the row divided by its sum. Else each column is discretised into overlapping bins of
    equal width between its 1 % and 99 % quantiles: cubic B-splines share a value among four neighbouring bins.
    Units of columns do not matter. Overlap keeps nearby values similar; separate bins would lose that. Columns are
    compared one by one: a grouping that no single column shows is not found, but `CondEns` finds it. Rows without
    any count go to the largest cluster. Noise rows of the given clusters (-1) count as one more given cluster.

    Time O(t s k) for t passes over s entries of p(y | x), which are 4 n d for vectors; memory O(s + k L f) for f
    features and L given clusters.

    References
    ----------
    .. [1] D. Gondek, S. Vaithyanathan, A. Garg (2005). "Clustering with model-level constraints." SDM 2005.
    .. [2] T. Truong, R. Battiti (2013). "A Survey of Semi-Supervised Clustering Algorithms: from a priori scheme to
       interactive scheme and open issues." Section 3.2.5, Eq. 47-56.

    Examples
    --------
    >>> from clew import CoordinatedConditionalIB
    >>> counts = [[3, 0, 3, 0], [3, 0, 0, 3], [0, 3, 3, 0], [0, 3, 0, 3]]
    >>> model = CoordinatedConditionalIB(n_clusters=2, n_bins=None, random_state=0)
    >>> labels = model.fit(counts, given=["a", "a", "b", "b"]).labels_
    >>> bool(labels[0] == labels[2] != labels[1] == labels[3])
    True
    >>> round(model.normalized_mutual_info_, 3)
    0.0
    """

    _capabilities = Capabilities(labels="ignored", must_link="ignored", cannot_link="ignored", groups=False)
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "coordination": number(0, 1),
        "min_information": number(0, 1),
        "compression": number(0),
        "n_bins": NONE | integer(_DEGREE + 1),
        "n_init": integer(1),
        "max_iter": integer(1),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **AlternativeClusterer._learned_attributes,
        "information_": Learned("real"),
        "conditional_information_": Learned("real"),
        "coordination_": Learned("real", low=0),
        "objective_": Learned("real"),
        "objective_history_": Learned("real", ((None,),)),
        "n_iter_": Learned("integer", low=1),
    }

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        coordination: float = 0.1,
        min_information: float = 0.0,
        compression: float = 0.0,
        n_bins: int | None = 10,
        n_init: int = 10,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.coordination = coordination
        self.min_information = min_information
        self.compression = compression
        self.n_bins = n_bins
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[CoordinatedConditionalIB]:
        return [
            cls(n_init=3, random_state=0),
            cls(3, coordination=0.0, compression=0.1, n_init=2, random_state=0),
            cls(2, min_information=0.9, n_bins=None, n_init=2, random_state=0),
        ]

    @property
    def capabilities(self) -> Capabilities:
        """As declared; without bins, X holds counts and may be sparse."""
        return replace(super().capabilities, counts=self.n_bins is None, sparse=self.n_bins is None)

    def _fit(self, X: Any, given: IntArray, constraints: Constraints, rng: np.random.Generator) -> npt.NDArray[Any]:
        table = feature_table(X, given, self.n_bins)
        found, self.coordination_ = self._best(table, rng)
        if found.is_cut_short:
            warn_caller(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} while rows still moved. Raise max_iter.",
                ConvergenceWarning,
            )
        labels = found.labels
        self.cluster_sizes_ = np.bincount(labels, minlength=int(self.n_clusters))
        self.cluster_labels_ = np.arange(int(self.n_clusters))
        self.information_, self.conditional_information_ = found.information, found.conditional_information
        self.objective_, self.objective_history_ = float(found.history[-1]), found.history
        self.n_iter_ = len(found.history)
        return labels

    def _best(self, table: FeatureTable, rng: np.random.Generator) -> tuple[IBSolution, float]:
        """The lowest coordination that keeps enough information, and the result at it."""
        if not self.min_information:
            return self._solved(table, float(self.coordination), rng), float(self.coordination)
        bound = self.min_information * self._solved(table, 1.0, rng).information
        for level in np.linspace(self.coordination, 1, _N_LEVELS):
            found = self._solved(table, float(level), rng)
            if found.information >= bound:
                break
        return found, float(level)

    def _solved(self, table: FeatureTable, coordination: float, rng: np.random.Generator) -> IBSolution:
        weights = np.array([1 - coordination, coordination, self.compression], dtype=np.float64)
        starts = [
            coordinated_conditional_ib(table, int(self.n_clusters), weights, self.max_iter, rng)
            for _ in range(self.n_init)
        ]
        return min(starts, key=lambda solution: solution.history[-1])


class FeatureTable(NamedTuple):
    """The joint distribution of rows and features, row by row as in a CSR matrix, and the side label of each row.

    Rows (2, 0) and (1, 3) of counts give ``row_ptr=[0, 1, 3]``, ``features=[0, 0, 1]``, ``masses=[1/2, 1/8, 3/8]``.
    """

    row_ptr: IntArray
    features: IntArray
    masses: FloatArray
    side: IntArray
    n_features: int

    @property
    def rows(self) -> Any:
        """The joint distribution as a CSR matrix."""
        return sparse.csr_array(
            (self.masses, self.features, self.row_ptr), shape=(len(self.row_ptr) - 1, self.n_features)
        )


class IBSolution(NamedTuple):
    """New clusters, I(C; Y), I(C; Y | Z), the objective after each pass, and whether the last pass still moved rows."""

    labels: IntArray
    information: float
    conditional_information: float
    history: FloatArray
    is_cut_short: bool


def feature_table(X: Any, given: IntArray, n_bins: int | None) -> FeatureTable:
    """The joint distribution of rows and features; rows of noise have a side label of their own."""
    rows = sparse.csr_array(X, dtype=np.float64) if n_bins is None else bins(np.asarray(X, dtype=np.float64), n_bins)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    sums = np.asarray(rows.sum(axis=1)).ravel()
    if not sums.any():
        raise DataError("Every count in X is 0, so rows cannot be compared. Check the columns.")
    entries = np.diff(rows.indptr)
    masses = rows.data / np.repeat(sums * np.count_nonzero(sums), entries)
    side = np.where(given < 0, given.max() + 1, given)
    return FeatureTable(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int64), masses, side.astype(np.int64), rows.shape[1]
    )


def bins(X: FloatArray, n_bins: int) -> Any:
    """Overlapping bins of all columns that vary, as a CSR matrix. Each row sums to the number of these columns."""
    low, high = np.quantile(X, _COVERED, axis=0)
    is_narrow = high <= low  # nearly all values are equal
    low, high = np.where(is_narrow, X.min(axis=0), low), np.where(is_narrow, X.max(axis=0), high)
    varies = np.flatnonzero(high > low)
    if not len(varies):
        return sparse.csr_array(np.ones((len(X), 1)))
    knots = np.linspace(low[varies], high[varies], n_bins - _DEGREE + 1)
    splines = SplineTransformer(degree=_DEGREE, knots=knots, extrapolation="constant", sparse_output=True)
    return sparse.csr_array(splines.fit_transform(X[:, varies]))


def coordinated_conditional_ib(
    table: FeatureTable, n_clusters: int, weights: FloatArray, max_iter: int, rng: np.random.Generator
) -> IBSolution:
    """Find clusters from one random start. `weights` are the weights of I(C; Y | Z), I(C; Y) and I(C; X)."""
    n_rows = len(table.side)
    labels = rng.permutation(np.arange(n_rows) % n_clusters)
    history: list[float] = []
    masses = Masses.of(table, labels, n_clusters)
    moved = True
    while moved and len(history) < max_iter:
        n_moves = move_rows_by_information(
            rng.permutation(n_rows), table.row_ptr, table.features, table.masses, table.side, weights, _LEAST_GAIN,
            labels, np.bincount(labels, minlength=n_clusters), masses.joint, masses.marginal,
        )  # fmt: skip
        # Single moves cannot rename the clusters inside a given cluster.
        moved = n_moves > 0 or swap_names(labels, table.side, masses, weights)
        masses = Masses.of(table, labels, n_clusters)  # without the rounding errors of the moves
        history.append(masses.objective(table, weights))
    labels[np.diff(table.row_ptr) == 0] = np.bincount(labels, minlength=n_clusters).argmax()
    return IBSolution(labels, masses.information(), masses.conditional_information(), np.array(history), bool(moved))


class Masses(NamedTuple):
    """Masses by cluster, side label and feature, and by cluster and feature; the last feature is the sum of all."""

    joint: FloatArray
    marginal: FloatArray

    @classmethod
    def of(cls, table: FeatureTable, labels: IntArray, n_clusters: int) -> Masses:
        """Add up the rows of each cluster and side label."""
        n_sides = int(table.side.max()) + 1
        cells = labels * n_sides + table.side
        picked = sparse.csr_array(
            (np.ones(len(cells)), (cells, np.arange(len(cells)))), shape=(n_clusters * n_sides, len(cells))
        )
        sums = (picked @ table.rows).toarray()
        joint = np.concatenate([sums, sums.sum(axis=1, keepdims=True)], axis=1).reshape(n_clusters, n_sides, -1)
        return cls(np.ascontiguousarray(joint), np.ascontiguousarray(joint.sum(axis=1)))

    def information(self) -> float:
        """I(C; Y)."""
        return mutual_information(self.marginal)

    def conditional_information(self) -> float:
        """I(C; Y | Z)."""
        return sum(mutual_information(self.joint[:, side]) for side in range(self.joint.shape[1]))

    def objective(self, table: FeatureTable, weights: FloatArray) -> float:
        """The lost information J."""
        n_rows = np.count_nonzero(np.diff(table.row_ptr))  # each has the mass 1 / n_rows
        by_side = self.joint.sum(axis=0)
        of_rows = float(x_log_x(table.masses).sum() + np.log(n_rows) - x_log_x(by_side[:, :-1].sum(axis=0)).sum())
        lost = of_rows - self.information()
        conditional_lost = of_rows - mutual_information(by_side) - self.conditional_information()
        entropy = -float(x_log_x(self.marginal[:, -1]).sum())
        return float(weights @ [conditional_lost, lost, entropy])


def mutual_information(masses: FloatArray) -> float:
    """Mass times the mutual information of rows and columns; the last column is the sum of all others."""
    sums = masses.sum(axis=0)
    inside = x_log_x(masses[:, :-1]).sum() - x_log_x(masses[:, -1]).sum()
    return float(inside - x_log_x(sums[:-1]).sum() + x_log_x(sums[-1]))


def x_log_x(masses: Any) -> Any:
    """Each mass times its logarithm; 0 for no mass."""
    return masses * np.log(np.where(masses > 0, masses, 1.0))


def swap_names(labels: IntArray, side: IntArray, masses: Masses, weights: FloatArray) -> bool:
    """Swap two clusters inside a given cluster wherever that lowers the objective; return whether any swap did.

    A swap does not change I(C; Y | Z). Writes `labels` and `masses`.
    """
    joint, marginal = masses
    signs = np.append(np.full(marginal.shape[1] - 1, weights[1]), weights[2] - weights[1])
    swapped = False
    for cluster in range(joint.shape[1]):
        for one, other in combinations(range(len(marginal)), 2):
            change = joint[other, cluster] - joint[one, cluster]
            new = np.maximum([marginal[one] + change, marginal[other] - change], 0)
            gain = float((x_log_x(new) - x_log_x(marginal[[one, other]])).sum(axis=0) @ signs)
            if gain <= _LEAST_GAIN:
                continue
            inside = side == cluster
            first, second = inside & (labels == one), inside & (labels == other)
            labels[first], labels[second] = other, one
            joint[[one, other], cluster] = joint[[other, one], cluster]
            marginal[one], marginal[other] = new
            swapped = True
    return swapped
