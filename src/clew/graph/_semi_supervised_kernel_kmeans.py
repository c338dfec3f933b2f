"""Kernel k-means on a kernel that is raised for must-links and lowered for cannot-links.

Kulis et al. 2009 (`kulis2009`); thesis section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels

from clew._base import Capabilities, ConstrainedClusterer, warn_caller
from clew._persistence import Learned
from clew._validation import CALLABLE, RANDOM_STATE, Allowed, above, array_like, check_square, integer, number, words
from clew.constraints import Constraints
from clew.exceptions import DataError, IndefiniteKernelWarning, ParameterError
from clew.graph._graph_propagation import component_clusters
from clew.kernels.kernel_moves import move_blocks
from clew.partitional._family import places_of_classes
from clew.partitional._seeding import cluster_labels
from clew.partitional._ties import lone_pairs, priced_ties

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Similarity = npt.NDArray[Any]

_KERNELS = ("linear", "rbf", "polynomial", "cosine", "laplacian", "sigmoid")
# Number of kernel entries that are computed, or changed, at a time.
_BLOCK = 4_000_000
# Up to this many rows, a dense solver finds the smallest eigenvalue. Beyond it, Lanczos finds it to this tolerance.
_DENSE_ROWS, _LANCZOS_TOLERANCE, _LANCZOS_ITERATIONS = 1_000, 1e-3, 1_000
# n_init="auto" makes starts until they have visited this many kernel entries, but at least 3 and at most 10.
_START_ENTRIES, _FEWEST_STARTS, _MOST_STARTS = 40_000_000, 3, 10
# A kernel counts as indefinite if an eigenvalue is below minus this share of the largest diagonal entry.
_SINGLE_PRECISION = 1e-5
# A move must gain more than this share of the kernel's trace; smaller gains may be rounding errors.
_LEAST_GAIN = 1e-12


class SemiSupervisedKernelKMeans(ConstrainedClusterer):
    r"""Kernel k-means, on a kernel raised for must-linked rows and lowered for cannot-linked rows.

    The kernel decides the shape of clusters: "linear" is k-means, and "rbf" also separates regions that are not round.
    Use it when you have a kernel, a similarity matrix (which may be indefinite), or a few thousand rows whose clusters
    may have any shape, and some pairs may be wrong.

    Parameters
    ----------
    n_clusters : int, default=8
    kernel : {"linear", "rbf", "polynomial", "cosine", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        With "precomputed", X is the symmetric kernel matrix, dense or sparse. A callable takes two arrays of rows and
        returns the kernel matrix between them.
    gamma : float or "scale", default="scale"
        Coefficient of the kernels "rbf", "polynomial", "laplacian" and "sigmoid". "scale" is one over the number of
        columns times the variance of X.
    degree : int, default=3
        Degree of the kernel "polynomial".
    coef0 : float, default=1.0
        Constant of the kernels "polynomial" and "sigmoid".
    penalty : float or "auto", default="auto"
        Price of a violated pair of confidence 1 in clusters of n / k rows, in squared units of the kernel's space.
        "auto" is the mean squared distance of the rows from their mean there.
    init : {"neighbourhoods", "k-means++"} or array of shape (n_clusters,), default="neighbourhoods"
        Initial centres. With "neighbourhoods", the first centres come from known classes and from the largest
        components of must-linked rows that are cannot-linked to each other, and the others from k-means++. A row drawn
        by k-means++ brings the rows that are must-linked to it. An array holds row positions.
    n_init : int or "auto", default="auto"
        Number of starts; the result with the lowest objective is returned. "auto" means ten for up to 2,000 rows, and
        fewer, down to three, for more. All starts but the first use k-means++. With constraints, the best clusters
        without them are one more start, unless `init` is an array.
    max_iter : int, default=300
        Largest number of rounds per start.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    shift_ : float
        :math:`\sigma` below, the number added to the diagonal so that no eigenvalue is negative.
    penalty_ : float
        The penalty that was used.
    gamma_ : float
        The coefficient that was used, for kernels that have one.
    inertia_ : float
        Sum of the squared distances to the cluster means in the kernel's space, without pairs and shift. It can be
        negative if the kernel is indefinite.
    objective_ : float
        J below.
    objective_history_ : ndarray
        J after each round; it never rises.
    n_iter_ : int
    cluster_labels_, cluster_sizes_ : ndarray of shape (n_clusters,)
    cluster_norms_ : ndarray of shape (n_clusters,)
        Squared length of each cluster mean, including the weights of pairs.
    cluster_of_ : ndarray of shape (n_samples,)
        Position in `cluster_labels_` of the cluster of each row, which `predict` uses.
    fit_rows_ : array or CSR matrix of shape (n_samples, n_features)
        The training rows. Not set with ``kernel="precomputed"``.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)

    Notes
    -----
    Constraints: all soft, entailed ones included. Let :math:`S = K + W + \sigma I`, where W is plus (minus)
    w = ``penalty * confidence * n / 2k`` for a must-link (cannot-link), and minus the sum of a row's must-links on the
    diagonal. Over clusters :math:`\pi_c`, the method minimises

    .. math:: J = \sum_i K_{ii} + \sigma n - \sum_c \frac1{|\pi_c|} \sum_{i, j \in \pi_c} S_{ij},

    which is the inertia in the kernel's space, plus the price :math:`w / |\pi_a| + w / |\pi_b|` of each must-link
    between clusters a and b, plus :math:`2 w / |\pi_c|` for each cannot-link within cluster c, plus
    :math:`\sigma (n - k)`. If the smallest eigenvalue of K + W is negative, the shift :math:`\sigma` is its absolute
    value. The shift does not change the optimum. A warning says if the kernel itself is indefinite.

    Rows that certain must-links join are one block. Rounds of kernel k-means on S move whole blocks to their nearest
    means. With constraints or a shift, first blocks and then single rows move one at a time by their exact gain, until
    no such move lowers J. Rounds alone would move too few rows if the shift is large.
    Time O(t n² k) for t rounds; memory O(n²): one matrix in the precision of X, which includes the pairs.
    Departs from [1]_: W has a diagonal, so that a satisfied must-link has no reward. In [1]_ the reward is largest in a
    tiny cluster, so a few must-linked rows can become a cluster. Prices are scaled as in `PCKMeans`, blocks move as a
    whole, and neighbourhoods that are not cannot-linked to each other give no centres.

    References
    ----------
    .. [1] B. Kulis, S. Basu, I. Dhillon, R. Mooney (2009). "Semi-supervised graph clustering: a kernel approach."
       Machine Learning 74.

    Examples
    --------
    >>> from clew import SemiSupervisedKernelKMeans
    >>> model = SemiSupervisedKernelKMeans(n_clusters=2, kernel="linear", random_state=0)
    >>> model.fit([[0.0], [1.0], [8.0], [9.0]], constraints={"cannot_link": [(0, 3)]}).labels_
    array([0, 0, 1, 1])
    >>> model.predict([[2.0]])
    array([0])
    """

    _capabilities = Capabilities(
        labels="soft",
        must_link="soft",
        cannot_link="soft",
        sparse=True,
        any_shape=True,
        quadratic=True,
        predicts=True,
        monotone=True,
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "kernel": words(*_KERNELS, "precomputed") | CALLABLE,
        "gamma": words("scale") | above(0),
        "degree": integer(1),
        "coef0": number(-np.inf),
        "penalty": words("auto") | number(0),
        "init": words("neighbourhoods", "k-means++") | array_like(),
        "n_init": words("auto") | integer(1),
        "max_iter": integer(1),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **ConstrainedClusterer._learned_attributes,
        "shift_": Learned("real", low=0),
        "gamma_": Learned("real", low=0),
        "penalty_": Learned("real", low=0),
        "inertia_": Learned("real"),
        "objective_": Learned("real"),
        "objective_history_": Learned("real", ((None,),)),
        "n_iter_": Learned("integer", low=0),
        "cluster_norms_": Learned("real", (("clusters",),)),
        "cluster_of_": Learned("integer", (("rows",),), low=0, below="clusters"),
        "fit_rows_": Learned("real", (("rows", "columns"),), sparse=True),
    }
    n_clusters: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        penalty: float | str = "auto",
        init: Any = "neighbourhoods",
        n_init: int | str = "auto",
        max_iter: int = 300,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.penalty = penalty
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[SemiSupervisedKernelKMeans]:
        return [
            cls(n_clusters=3, random_state=0),
            cls(n_clusters=3, kernel="linear", random_state=0),
            cls(n_clusters=3, kernel="precomputed", random_state=0),
        ]

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of this instance, which depend on its parameters."""
        is_matrix = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return replace(super().capabilities, pairwise="kernel" if is_matrix else None)

    def _expected_attributes(self) -> dict[str, Learned]:
        """The attributes that a fit with these parameters sets. The rows are left out if X is the kernel."""
        expected = super()._expected_attributes()
        if self.capabilities.pairwise is None:
            return expected
        return {name: form for name, form in expected.items() if name != "fit_rows_"}

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        closed, n_rows = constraints.closure(), X.shape[0]
        clusters = cluster_labels(closed, self.n_clusters)
        self.gamma_ = self._scale(X)
        similarity = self._own_kernel(X)
        trace = float(np.trace(similarity, dtype=np.float64))
        spread = max(trace / n_rows - float(similarity.mean(dtype=np.float64)), 0.0)
        self.penalty_ = spread if isinstance(self.penalty, str) else float(self.penalty)
        self.shift_ = 0.0 if self._is_definite else self._checked_shift(similarity)
        weight = self.penalty_ * n_rows / (2 * self.n_clusters)
        seeds = component_clusters(closed, clusters)[closed.component_of]
        found = self._best(similarity, trace, LinkedBlocks.single(similarity), seeds, rng)
        if weight and add_pairs(similarity, constraints, weight):
            self.shift_ = shift_of(similarity)
            blocks = LinkedBlocks.of(similarity, constraints)
            found = self._best(similarity, trace, blocks, seeds, rng, before=found.labels)
        if not found.converged:
            warn_caller(
                f"SemiSupervisedKernelKMeans stopped at max_iter={self.max_iter} before the clusters stopped changing. "
                "Raise max_iter.",
                ConvergenceWarning,
            )
        places = np.arange(self.n_clusters)
        if constraints.labels is not None:
            places = places_of_classes(found.labels, constraints.labels, clusters)
        order = np.argsort(places)
        sizes = found.sizes[order]
        self.cluster_of_ = places[found.labels]
        self.cluster_labels_, self.cluster_sizes_ = clusters, sizes
        self.cluster_norms_ = found.within[order] / np.maximum(sizes, 1) ** 2
        self.objective_history_ = np.array(found.history)
        self.objective_, self.n_iter_ = found.history[-1], found.n_iter
        pairs = pairs_within(constraints, weight, self.cluster_of_, self.n_clusters)
        self.inertia_ = trace - float(((found.within[order] - pairs) / np.maximum(sizes, 1)).sum())
        self.__dict__.pop("fit_rows_", None)
        if self.capabilities.pairwise is None:
            self.fit_rows_ = X
        return clusters[self.cluster_of_]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of the nearest cluster mean in the kernel's space; pairs of new rows are not used.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the kernel between the new rows and all fitted rows.
        """
        rows = self._check_new_rows(X)
        n_fitted, k = len(self.cluster_of_), len(self.cluster_labels_)
        share = np.zeros((n_fitted, k))
        share[np.arange(n_fitted), self.cluster_of_] = 1 / self.cluster_sizes_[self.cluster_of_]
        offsets = np.where(self.cluster_sizes_ > 0, self.cluster_norms_, np.inf)
        found = np.empty(rows.shape[0], dtype=np.int64)
        for block in _blocks(rows.shape[0], n_fitted):
            between = rows[block] if self.capabilities.pairwise else self._kernel(rows[block], self.fit_rows_)
            found[block] = (offsets - 2 * (between @ share)).argmin(axis=1)
        return self._with_class_names(self.cluster_labels_[found])

    def _scale(self, X: Any) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        variance = float(X.multiply(X).mean() - X.mean() ** 2 if sparse.issparse(X) else X.var(dtype=np.float64))
        return 1 / (X.shape[1] * variance) if variance > 0 else 1.0

    @property
    def _is_definite(self) -> bool:
        """Whether the kernel is positive semi-definite for all rows."""
        return self.kernel in ("linear", "rbf", "cosine", "laplacian") or (
            self.kernel == "polynomial" and self.coef0 >= 0
        )

    def _kernel(self, first: Any, second: Any) -> Similarity:
        if callable(self.kernel):
            return np.asarray(self.kernel(first, second))
        options = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        return np.asarray(pairwise_kernels(first, second, metric=self.kernel, filter_params=True, **options))

    def _own_kernel(self, X: Any) -> Similarity:
        """Return a kernel matrix that may be overwritten."""
        if self.capabilities.pairwise is not None:
            return np.array(X.toarray() if sparse.issparse(X) else X, order="C")
        n_rows = X.shape[0]
        similarity = np.empty((n_rows, n_rows), dtype=X.dtype)
        for block in _blocks(n_rows, n_rows):
            values = self._kernel(X[block], X)
            if values.shape != similarity[block].shape:
                raise DataError(
                    f"kernel in SemiSupervisedKernelKMeans returned an array of shape {values.shape}: expected "
                    f"{similarity[block].shape}, a value for each pair of rows."
                )
            similarity[block] = values
        if callable(self.kernel):
            if not np.isfinite(similarity).all():
                raise DataError("kernel in SemiSupervisedKernelKMeans returned NaN or infinity. Check the function.")
            check_square(similarity, "kernel")
        return similarity

    def _checked_shift(self, similarity: Similarity) -> float:
        """Compute the shift of the kernel itself; warn if it is larger than rounding errors."""
        shift = shift_of(similarity)
        if shift > _SINGLE_PRECISION * float(np.abs(similarity.diagonal()).max()):
            warn_caller(
                f"The kernel is indefinite: its smallest eigenvalue is {-shift:.3g}. SemiSupervisedKernelKMeans adds "
                f"at least {shift:.3g} to the diagonal, which does not change the optimum.",
                IndefiniteKernelWarning,
            )
        return shift

    def _best(
        self,
        similarity: Similarity,
        trace: float,
        blocks: LinkedBlocks,
        seeds: IntArray,
        rng: np.random.Generator,
        before: IntArray | None = None,
    ) -> KernelClusters:
        """Return the best result of all starts. The labels `before`, found without pairs, are one more start."""
        starts = self._starts(similarity, blocks, seeds, rng)
        if before is not None and isinstance(self.init, str):
            starts = chain(starts, [nearest_means(similarity, self.shift_, blocks, before, self.n_clusters)])
        return min(
            (
                kernel_kmeans(
                    similarity, trace, self.shift_, blocks, start, self.n_clusters, self.max_iter,
                    single=before is not None or self.shift_ > 0,
                )
                for start in starts
            ),
            key=lambda one: one.history[-1],
        )  # fmt: skip

    def _starts(
        self, similarity: Similarity, blocks: LinkedBlocks, seeds: IntArray, rng: np.random.Generator
    ) -> Iterator[IntArray]:
        """Yield the initial labels of each start, one after another. `seeds[i]` is the cluster of row i, or -1."""
        n_rows, k = len(similarity), self.n_clusters
        if not isinstance(self.init, str):
            yield nearest_seeds(similarity, blocks, _single_rows(self._given_rows(n_rows), n_rows), k)
            return
        n_starts = self.n_init
        if isinstance(n_starts, str):
            n_starts = int(np.clip(_START_ENTRIES // n_rows**2, _FEWEST_STARTS, _MOST_STARTS))
        for attempt in range(n_starts):
            given = seeds if self.init == "neighbourhoods" and attempt == 0 else np.full(n_rows, -1)
            yield nearest_seeds(similarity, blocks, with_plus_plus(similarity, blocks, given, k, rng), k)

    def _given_rows(self, n_rows: int) -> IntArray:
        rows = np.asarray(self.init)
        if rows.shape != (self.n_clusters,) or rows.dtype.kind not in "iu":
            raise ParameterError(
                f"init in SemiSupervisedKernelKMeans has shape {rows.shape} and type {rows.dtype}: expected "
                f"{self.n_clusters} row positions, one for each cluster."
            )
        if rows.min() < 0 or rows.max() >= n_rows:
            wrong = rows.min() if rows.min() < 0 else rows.max()
            raise ParameterError(f"init in SemiSupervisedKernelKMeans names row {wrong}, but X has {n_rows} rows.")
        return rows.astype(np.int64)


def _blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    step = max(_BLOCK // max(n_columns, 1), 1)
    for begin in range(0, n_rows, step):
        yield slice(begin, min(begin + step, n_rows))


def add_pairs(similarity: Similarity, constraints: Constraints, weight: float) -> int:
    """Add the weights of given and entailed pairs to a matrix in place; return the number of rows in pairs."""
    rows, ties = priced_ties(constraints, 1.0, entailed=True)
    for block in _blocks(len(rows), len(rows)):
        amounts = np.zeros((len(rows), block.stop - block.start))
        amounts[np.arange(block.start, block.stop), np.arange(block.stop - block.start)] = -weight
        similarity[np.ix_(rows, rows[block])] += ties.product(amounts).astype(similarity.dtype)
    similarity[rows, rows] -= (weight * must_link_sums(constraints)[rows]).astype(similarity.dtype)
    return len(rows)


def must_link_sums(constraints: Constraints) -> FloatArray:
    """Sum of the confidences of the must-links of each row, given and entailed."""
    closed = constraints.at_least(1.0).closure()
    pairs, prices = lone_pairs(constraints, closed)
    doubtful = np.bincount(pairs.ravel(), np.repeat(np.maximum(-prices, 0), 2), minlength=len(closed.component_of))
    return np.asarray(closed.sizes[closed.component_of] - 1 + doubtful)


def pairs_within(constraints: Constraints, weight: float, labels: IntArray, n_clusters: int) -> FloatArray:
    """Sum of the weights of pairs within each cluster; each pair counts in both directions."""
    rows, ties = priced_ties(constraints, 1.0, entailed=True)
    inside = np.zeros((len(rows), n_clusters))
    inside[np.arange(len(rows)), labels[rows]] = 1
    between = (inside * ties.product(inside)).sum(axis=0)
    return -weight * (between + np.bincount(labels, must_link_sums(constraints), minlength=n_clusters))


def shift_of(similarity: Similarity) -> float:
    """Minus the smallest eigenvalue of a symmetric matrix, or 0 if no eigenvalue is negative beyond rounding."""
    n_rows = len(similarity)
    rounding = n_rows * float(np.finfo(similarity.dtype).eps) * float(np.abs(similarity.diagonal()).max())
    if n_rows <= _DENSE_ROWS:
        smallest = float(eigvalsh(similarity.astype(np.float64), subset_by_index=[0, 0])[0])
    else:
        start = np.random.default_rng(0).standard_normal(n_rows).astype(similarity.dtype)
        try:
            values, vectors = eigsh(
                similarity, 1, which="SA", v0=start, tol=_LANCZOS_TOLERANCE, maxiter=_LANCZOS_ITERATIONS
            )
            vector = vectors[:, 0]
            # The true eigenvalue differs from the computed value by at most the residual.
            smallest = float(values[0]) - float(np.linalg.norm(similarity @ vector - values[0] * vector))
        except ArpackNoConvergence:
            smallest = -float(np.sqrt((similarity.astype(np.float64) ** 2).sum()))
    return -smallest if smallest < -rounding else 0.0


def _single_rows(rows: IntArray, n_rows: int) -> IntArray:
    seeds = np.full(n_rows, -1)
    seeds[rows] = np.arange(len(rows))
    return seeds


class LinkedBlocks(NamedTuple):
    """Blocks of rows that certain must-links join; every other row is a block of its own.

    Block b has the rows `members[block_ptr[b]:block_ptr[b + 1]]`, and `own[b]` is the sum of the similarities between
    them. With the must-link 0-2 of three rows, `block_of` is 0 1 0, `block_ptr` 0 2 3 and `members` 0 2 1.
    """

    block_of: IntArray
    block_ptr: IntArray
    members: IntArray
    own: FloatArray

    @classmethod
    def of(cls, similarity: Similarity, constraints: Constraints) -> LinkedBlocks:
        """The components of certain must-links."""
        closed = constraints.at_least(1.0).closure()
        block_ptr, members = closed.rows
        own = [float(similarity[np.ix_(rows, rows)].sum()) for rows in np.split(members, block_ptr[1:-1])]
        return cls(closed.component_of.astype(np.int64), block_ptr, members, np.array(own))

    @classmethod
    def single(cls, similarity: Similarity) -> LinkedBlocks:
        """Every row is a block."""
        rows = np.arange(len(similarity) + 1)
        return cls(rows[:-1], rows, rows[:-1], similarity.diagonal().astype(np.float64))


def with_plus_plus(
    similarity: Similarity, blocks: LinkedBlocks, seeds: IntArray, n_clusters: int, rng: np.random.Generator
) -> IntArray:
    """Draw a block by greedy k-means++ for each cluster without seeds. `seeds[i]` is the cluster of row i, or -1."""
    seeds = seeds.copy()
    diagonal = similarity.diagonal().astype(np.float64)
    taken = np.unique(seeds[seeds >= 0])
    costs = np.full(len(seeds), np.inf)
    if len(taken):
        costs = _seed_distances(similarity, seeds, n_clusters)[:, taken].min(axis=1)
        costs = np.maximum(costs, 0)
    n_trials = 2 + int(np.log(n_clusters))
    for cluster in np.setdiff1d(np.arange(n_clusters), taken):
        total = costs.sum()
        if not np.isfinite(total):
            tried = rng.integers(len(seeds), size=1)
        elif total > 0:
            tried = np.minimum(np.searchsorted(np.cumsum(costs), rng.random(n_trials) * total), len(seeds) - 1)
        else:
            free = np.flatnonzero(seeds < 0)
            if not len(free):
                break
            tried = rng.choice(free, size=1)
        after = []
        for block in blocks.block_of[tried]:
            rows = blocks.members[blocks.block_ptr[block] : blocks.block_ptr[block + 1]]
            means = similarity[rows].mean(axis=0, dtype=np.float64)
            far = diagonal - 2 * means + blocks.own[block] / len(rows) ** 2
            after.append(np.minimum(costs, np.maximum(far, 0)))
        best = int(np.argmin([one.sum() for one in after]))
        costs = after[best]
        seeds[blocks.block_of == blocks.block_of[tried[best]]] = cluster
    return seeds


def _seed_distances(similarity: Similarity, seeds: IntArray, n_clusters: int) -> FloatArray:
    """Squared distance of each row to the mean of each cluster's seeds; infinite for clusters without seeds."""
    rows = np.flatnonzero(seeds >= 0)
    counts = np.bincount(seeds[rows], minlength=n_clusters)
    share = np.zeros((len(rows), n_clusters))
    share[np.arange(len(rows)), seeds[rows]] = 1 / counts[seeds[rows]]
    sums = similarity[:, rows] @ share
    norms = np.where(counts > 0, np.einsum("ij,ij->j", share, sums[rows]), np.inf)
    return np.asarray(similarity.diagonal()[:, None] - 2 * sums + norms, dtype=np.float64)


def nearest_seeds(similarity: Similarity, blocks: LinkedBlocks, seeds: IntArray, n_clusters: int) -> IntArray:
    """The cluster whose seeds are nearest to the rows of each block."""
    return _cheapest(blocks, _seed_distances(similarity, seeds, n_clusters).T)


def nearest_means(
    similarity: Similarity, shift: float, blocks: LinkedBlocks, labels: IntArray, n_clusters: int
) -> IntArray:
    """The cluster whose mean is nearest to the rows of each block."""
    return _nearest(blocks, *_sums(similarity, labels, n_clusters), shift, labels)


def _cheapest(blocks: LinkedBlocks, costs: FloatArray) -> IntArray:
    """Cluster of each row, if each block goes as a whole to its cheapest cluster; `costs` is clusters x rows."""
    by_block = np.add.reduceat(costs[:, blocks.members], blocks.block_ptr[:-1], axis=1)
    return by_block.argmin(axis=0)[blocks.block_of].astype(np.int64)


class KernelClusters(NamedTuple):
    """Result of `kernel_kmeans`: sizes, sums of similarities within clusters, and the objective after each round."""

    labels: IntArray
    sizes: IntArray
    within: FloatArray
    history: list[float]
    n_iter: int
    converged: bool


def kernel_kmeans(
    similarity: Similarity,
    trace: float,
    shift: float,
    blocks: LinkedBlocks,
    labels: IntArray,
    n_clusters: int,
    max_iter: int,
    *,
    single: bool,
) -> KernelClusters:
    """Move all blocks to their nearest means, round by round; if `single`, then move them one at a time.

    The rounds use ``similarity + shift * I``. After them, blocks move one at a time by their exact gain, and then
    single rows, which may leave their block. The exact gain depends on the shift only if the new cluster was empty.
    """
    n_rows = len(similarity)
    labels = labels.copy()
    history: list[float] = []
    alone = LinkedBlocks.single(similarity)
    tolerance = _LEAST_GAIN * (abs(trace) + shift * n_rows)
    n_iter, converged, is_single = 0, False, False
    while not converged and n_iter < max_iter:
        sums, sizes, within = _sums(similarity, labels, n_clusters)
        history.append(_objective(trace, shift, n_rows, sizes, within))
        n_iter += 1
        if is_single:
            n_moves = sum(
                move_blocks(*moved, similarity, shift, tolerance, labels, sums, sizes, within)
                for moved in (blocks[1:], alone[1:])
            )
            converged = n_moves == 0
            continue
        new = _nearest(blocks, sums, sizes, within, shift, labels)
        _fill_empty(blocks, similarity, sums, sizes, within, new)
        converged = bool((new == labels).all())
        if converged and single:
            converged, is_single = False, True
        labels = new
    sums, sizes, within = _sums(similarity, labels, n_clusters)
    history.append(_objective(trace, shift, n_rows, sizes, within))
    return KernelClusters(labels, sizes, within, history, n_iter, converged)


def _sums(similarity: Similarity, labels: IntArray, n_clusters: int) -> tuple[FloatArray, IntArray, FloatArray]:
    """Similarity of each row to all rows of each cluster (clusters x rows), sizes, and sums within clusters."""
    n_rows = len(labels)
    inside = np.zeros((n_clusters, n_rows), dtype=similarity.dtype)
    inside[labels, np.arange(n_rows)] = 1
    sums = np.ascontiguousarray(inside @ similarity, dtype=np.float64)
    own = sums[labels, np.arange(n_rows)]
    sizes = np.bincount(labels, minlength=n_clusters).astype(np.int64)
    return sums, sizes, np.bincount(labels, own, minlength=n_clusters).astype(np.float64)


def _objective(trace: float, shift: float, n_rows: int, sizes: IntArray, within: FloatArray) -> float:
    filled = sizes > 0
    return trace - float((within[filled] / sizes[filled]).sum()) + shift * (n_rows - int(filled.sum()))


def _nearest(
    blocks: LinkedBlocks, sums: FloatArray, sizes: IntArray, within: FloatArray, shift: float, labels: IntArray
) -> IntArray:
    """The nearest mean of each block, in the space of the shifted similarity."""
    counts = np.maximum(sizes, 1)
    offsets = np.where(sizes > 0, (within / counts + shift) / counts, np.inf)
    distances = offsets[:, None] - 2 * sums / counts[:, None]
    rows = np.arange(len(labels))
    distances[labels, rows] -= 2 * shift / counts[labels]
    return _cheapest(blocks, distances)


def _fill_empty(
    blocks: LinkedBlocks,
    similarity: Similarity,
    sums: FloatArray,
    sizes: IntArray,
    within: FloatArray,
    labels: IntArray,
) -> None:
    """Move to each empty cluster the block farthest from its mean, out of clusters with other rows; in place."""
    counts = np.bincount(labels, minlength=len(sizes))
    empty = np.flatnonzero(counts == 0)
    if not len(empty):
        return
    divisors = np.maximum(sizes, 1)[labels]
    rows = np.arange(len(labels))
    far = similarity.diagonal() - 2 * sums[labels, rows] / divisors + within[labels] / divisors**2
    far = np.add.reduceat(far[blocks.members], blocks.block_ptr[:-1])
    for block in np.argsort(-far, kind="stable"):
        if not len(empty) or far[block] <= 0:
            return
        members = blocks.members[blocks.block_ptr[block] : blocks.block_ptr[block + 1]]
        home = labels[members[0]]
        if counts[home] > len(members):
            counts[home] -= len(members)
            labels[members], empty = empty[0], empty[1:]
