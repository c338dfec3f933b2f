"""Kernel k-means on a kernel that is raised for must-links and lowered for cannot-links.

Kulis et al. 2009 (`kulis2009`); thesis section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels

from clew._base import Capabilities, ConstrainedClusterer, warn_caller
from clew._persistence import Learned
from clew._validation import CALLABLE, RANDOM_STATE, Allowed, above, array_like, check_square, integer, number, words
from clew.constraints import Closure, Constraints
from clew.exceptions import DataError, IndefiniteKernelWarning, ParameterError
from clew.graph._graph_propagation import component_clusters
from clew.kernels.kernel_moves import move_single_rows
from clew.partitional._family import places_of_classes
from clew.partitional._seeding import cluster_labels
from clew.partitional._ties import priced_ties

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Similarity = npt.NDArray[Any]

_KERNELS = ("linear", "rbf", "polynomial", "cosine", "laplacian", "sigmoid")
# Entries of the kernel that are computed, or changed, at a time.
_BLOCK = 4_000_000
# Up to this many rows a dense solver finds the smallest eigenvalue, beyond it Lanczos to this tolerance.
_DENSE_ROWS, _LANCZOS_TOLERANCE, _LANCZOS_ITERATIONS = 1_000, 1e-3, 1_000
# Entries of the kernel that all starts of n_init="auto" go over. There are 3 to 10 starts.
_START_ENTRIES, _FEWEST_STARTS, _MOST_STARTS = 40_000_000, 3, 10
# The price "auto", in units of the rows' mean squared distance to their mean. Larger ones make clusters of a few
# must-linked rows: the price of a pair is over the size of its cluster.
_SHARE = 0.4
# A kernel is called indefinite if an eigenvalue is below minus this share of the largest diagonal entry.
_SINGLE_PRECISION = 1e-5
# Moves must gain more than this share of the trace of the kernel, which is above rounding.
_LEAST_GAIN = 1e-12


class SemiSupervisedKernelKMeans(ConstrainedClusterer):
    r"""K-means in the space of a kernel, where must-linked rows are more alike and cannot-linked rows less.

    The kernel decides the shape of clusters: "linear" is k-means, "rbf" separates regions that are not round. Use it
    when you have a kernel, a matrix of likeness that may be indefinite, or few rows of any shape, and some pairs may be
    wrong.

    Parameters
    ----------
    n_clusters : int, default=8
    kernel : {"linear", "rbf", "polynomial", "cosine", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        With "precomputed", X is the symmetric matrix of the kernel, dense or sparse. A function
        gets two arrays of rows, and returns the matrix between them.
    gamma : float or "scale", default="scale"
        Factor of the kernels "rbf", "polynomial", "laplacian" and "sigmoid". "scale" is one over the number of columns
        times the variance of X.
    degree : int, default=3
        Degree of the kernel "polynomial".
    coef0 : float, default=1.0
        Constant of the kernels "polynomial" and "sigmoid".
    penalty : float or "auto", default="auto"
        What a pair of confidence 1 counts in a cluster of n / k rows, in squared units of the kernel's space. "auto" is
        0.4 times the mean squared distance of the rows to their mean there, over the largest eigenvalue of the matrix
        of the pairs, which is 1 if no row is in two pairs. Beyond that, few must-linked rows can become a cluster.
    init : {"neighbourhoods", "k-means++"} or array of shape (n_clusters,), default="neighbourhoods"
        Initial centres. With "neighbourhoods", known classes and the largest components of must-linked rows that are
        cannot-linked to each other give the first centres, and k-means++ the others. An array holds the positions of
        rows.
    n_init : int or "auto", default="auto"
        Number of starts; the result with the lowest objective is returned. "auto" means ten for up to 2,000 rows, and
        fewer, down to three, for more. All starts but the first use k-means++.
    max_iter : int, default=300
        Largest number of rounds of one start.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    shift_ : float
        :math:`\sigma` below: what was added to the diagonal so that no eigenvalue is negative.
    penalty_ : float
        The price used.
    gamma_ : float
        The factor used, by kernels that have one.
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
        Squared length of each cluster mean, pairs included.
    cluster_of_ : ndarray of shape (n_samples,)
        Position in `cluster_labels_` of the cluster of each row, which `predict` uses.
    fit_rows_ : array or CSR matrix of shape (n_samples, n_features)
        The training rows. Not set with ``kernel="precomputed"``.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)

    Notes
    -----
    Constraints: all soft, entailed ones included. With :math:`S = K + W + \sigma I`, where W is plus (minus)
    ``penalty * confidence * n / 2k`` for a must-link (cannot-link), and clusters :math:`\pi_c`, minimises

    .. math:: J = \sum_i S_{ii} - \sum_c \frac1{|\pi_c|} \sum_{i, j \in \pi_c} S_{ij},

    which is the inertia in the kernel's space, less what satisfied must-links and plus what violated cannot-links
    count, each over the size of its cluster, plus :math:`\sigma (n - k)`. The shift is minus the smallest eigenvalue
    of K + W, if that is negative. It changes no optimum. An indefinite kernel is shifted with a warning.

    Rounds of kernel k-means on S lead to a first optimum. With constraints or a shift, single rows then move by their
    exact gain until no such move lowers J, because a large shift holds rows where they are.
    Time O(t n² k) for t rounds; memory O(n²): one matrix in the precision of X, with the pairs in it.
    Departs from [1]_: prices have the scale of those of `PCKMeans`, single rows move last, and neighbourhoods that are
    not cannot-linked give no centres.

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
        """The attributes that a fit with these parameters learns: without the rows, if X is the kernel."""
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
        self.penalty_ = (
            _SHARE * spread / heaviest(constraints) if isinstance(self.penalty, str) else float(self.penalty)
        )
        needs_shift = not self._is_definite
        if needs_shift:
            self._warn_if_indefinite(similarity)
        weight = self.penalty_ * n_rows / (2 * self.n_clusters)
        linked = add_pairs(similarity, constraints, weight) if weight else 0
        self.shift_ = shift_of(similarity) if needs_shift or linked else 0.0
        starts = self._starts(similarity, closed, clusters, rng)
        found = min(
            (
                kernel_kmeans(similarity, self.shift_, start, self.n_clusters, self.max_iter, single=bool(linked))
                for start in starts
            ),
            key=lambda one: one.history[-1],
        )
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
        """The label of the nearest cluster mean in the kernel's space; pairs of new rows play no part.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the kernel between the new rows and all rows that were fitted.
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
        """Whether the kernel has no negative eigenvalue whatever the rows are."""
        return self.kernel in ("linear", "rbf", "cosine", "laplacian") or (
            self.kernel == "polynomial" and self.coef0 >= 0
        )

    def _kernel(self, first: Any, second: Any) -> Similarity:
        if callable(self.kernel):
            return np.asarray(self.kernel(first, second))
        options = {"gamma": self.gamma_, "degree": self.degree, "coef0": self.coef0}
        return np.asarray(pairwise_kernels(first, second, metric=self.kernel, filter_params=True, **options))

    def _own_kernel(self, X: Any) -> Similarity:
        """The matrix of the kernel, which may be written to."""
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

    def _warn_if_indefinite(self, similarity: Similarity) -> None:
        shift = shift_of(similarity)
        if shift > _SINGLE_PRECISION * float(np.abs(similarity.diagonal()).max()):
            warn_caller(
                f"The kernel is indefinite: its smallest eigenvalue is {-shift:.3g}. SemiSupervisedKernelKMeans adds "
                "at least the opposite to the diagonal, which changes no optimum.",
                IndefiniteKernelWarning,
            )

    def _starts(
        self, similarity: Similarity, closed: Closure, clusters: IntArray, rng: np.random.Generator
    ) -> Iterator[IntArray]:
        """The labels of each start, drawn when the one before has been solved."""
        n_rows, k = len(similarity), self.n_clusters
        if not isinstance(self.init, str):
            yield nearest_seeds(similarity, _single_rows(self._given_rows(n_rows), n_rows), k)
            return
        n_starts = self.n_init
        if isinstance(n_starts, str):
            n_starts = int(np.clip(_START_ENTRIES // n_rows**2, _FEWEST_STARTS, _MOST_STARTS))
        for attempt in range(n_starts):
            seeds = np.full(n_rows, -1)
            if self.init == "neighbourhoods" and attempt == 0:
                seeds = component_clusters(closed, clusters)[closed.component_of]
            yield nearest_seeds(similarity, with_plus_plus(similarity, seeds, k, rng), k)

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
    return len(rows)


def heaviest(constraints: Constraints) -> float:
    """The largest eigenvalue of the matrix of pairs, of which a must-link of confidence 1 alone has 1; 1 at least."""
    rows, ties = priced_ties(constraints, 1.0, entailed=True)
    if len(rows) <= _DENSE_ROWS:
        return max([1.0, *np.linalg.eigvalsh(-ties.product(np.eye(len(rows)))).tolist()])
    pairs = LinearOperator(
        (len(rows), len(rows)),
        matvec=lambda vector: -ties.product(np.reshape(vector, (-1, 1))).ravel(),
        dtype=np.float64,
    )
    start = np.random.default_rng(0).standard_normal(len(rows))
    return max(1.0, float(eigsh(pairs, 1, which="LA", v0=start, tol=_LANCZOS_TOLERANCE)[0][0]))


def pairs_within(constraints: Constraints, weight: float, labels: IntArray, n_clusters: int) -> FloatArray:
    """Sum of the weights of pairs within each cluster, both directions counted."""
    rows, ties = priced_ties(constraints, 1.0, entailed=True)
    inside = np.zeros((len(rows), n_clusters))
    inside[np.arange(len(rows)), labels[rows]] = 1
    return -weight * (inside * ties.product(inside)).sum(axis=0)


def shift_of(similarity: Similarity) -> float:
    """Minus the smallest eigenvalue of a symmetric matrix, or 0 if that is negative only by rounding."""
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
            # An eigenvalue is within the residual of the value that was found.
            smallest = float(values[0]) - float(np.linalg.norm(similarity @ vector - values[0] * vector))
        except ArpackNoConvergence:
            smallest = -float(np.sqrt((similarity.astype(np.float64) ** 2).sum()))
    return -smallest if smallest < -rounding else 0.0


def _single_rows(rows: IntArray, n_rows: int) -> IntArray:
    seeds = np.full(n_rows, -1)
    seeds[rows] = np.arange(len(rows))
    return seeds


def with_plus_plus(similarity: Similarity, seeds: IntArray, n_clusters: int, rng: np.random.Generator) -> IntArray:
    """Let a row, drawn by greedy k-means++, seed each cluster without seeds. `seeds[i]`: cluster of row i, or -1."""
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
        far = np.maximum(diagonal + diagonal[tried, None] - 2 * similarity[tried], 0)
        after = np.minimum(costs, far)
        best = int(after.sum(axis=1).argmin())
        costs = after[best]
        seeds[tried[best]] = cluster
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


def nearest_seeds(similarity: Similarity, seeds: IntArray, n_clusters: int) -> IntArray:
    """The cluster whose seeds are nearest to each row."""
    return _seed_distances(similarity, seeds, n_clusters).argmin(axis=1).astype(np.int64)


class KernelClusters(NamedTuple):
    """Result of `kernel_kmeans`: sizes, sums of similarities within clusters, and the objective after each round."""

    labels: IntArray
    sizes: IntArray
    within: FloatArray
    history: list[float]
    n_iter: int
    converged: bool


def kernel_kmeans(
    similarity: Similarity, shift: float, labels: IntArray, n_clusters: int, max_iter: int, *, single: bool
) -> KernelClusters:
    """Move all rows to their nearest means, round by round; then single rows, if `single` or if there is a shift.

    The rounds see ``similarity + shift * I``. The exact gain of a single row depends on the shift only if its new
    cluster was empty.
    """
    n_rows = len(similarity)
    labels = labels.copy()
    trace = float(np.trace(similarity, dtype=np.float64))
    history: list[float] = []
    n_iter, converged, is_single = 0, False, False
    while not converged and n_iter < max_iter:
        sums, sizes, within = _sums(similarity, labels, n_clusters)
        history.append(_objective(trace, shift, n_rows, sizes, within))
        n_iter += 1
        if is_single:
            order = np.arange(n_rows)
            tolerance = _LEAST_GAIN * (abs(trace) + shift * n_rows)
            n_moves = move_single_rows(order, similarity, shift, tolerance, labels, sums, sizes, within)
            converged = n_moves == 0
            continue
        new = _nearest(sums, sizes, within, shift, labels)
        _fill_empty(similarity, sums, sizes, within, new)
        converged = bool((new == labels).all())
        if converged and (single or shift > 0):
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


def _nearest(sums: FloatArray, sizes: IntArray, within: FloatArray, shift: float, labels: IntArray) -> IntArray:
    """The nearest mean of each row, in the space of the shifted similarity."""
    counts = np.maximum(sizes, 1)
    offsets = np.where(sizes > 0, (within / counts + shift) / counts, np.inf)
    distances = offsets[:, None] - 2 * sums / counts[:, None]
    rows = np.arange(len(labels))
    distances[labels, rows] -= 2 * shift / counts[labels]
    return distances.argmin(axis=0).astype(np.int64)


def _fill_empty(
    similarity: Similarity, sums: FloatArray, sizes: IntArray, within: FloatArray, labels: IntArray
) -> None:
    """Give each empty cluster the row that is farthest from its mean, of a cluster with other rows; in place."""
    counts = np.bincount(labels, minlength=len(sizes))
    empty = np.flatnonzero(counts == 0)
    if not len(empty):
        return
    divisors = np.maximum(sizes, 1)[labels]
    rows = np.arange(len(labels))
    far = similarity.diagonal() - 2 * sums[labels, rows] / divisors + within[labels] / divisors**2
    for row in np.argsort(-far, kind="stable"):
        if not len(empty) or far[row] <= 0:
            return
        if counts[labels[row]] > 1:
            counts[labels[row]] -= 1
            labels[row], empty = empty[0], empty[1:]
