"""A weighted sum of kernels between rows, built before any constraint is known.

The kernels are a diffusion kernel on the graph of nearest neighbours (Kondor and Lafferty 2002, `kondor2002`; Zhou et
al. 2004, `zhou2004`), a Gaussian kernel, a linear kernel, and one co-membership kernel for each partition of an
ensemble of base clusterings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.cluster.hierarchy import ClusterWarning
from scipy.special import betainc
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from clew._base import quietly
from clew.evaluation import adjusted_rand_score
from clew.graph._eigenvectors import leading_eigenvectors
from clew.graph._neighbours import neighbour_graph
from clew.partitional import SeededKMeans

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# The factor alpha of the diffusion kernel (I - alpha S)^-1. Near 1, labels spread through whole regions.
_ALPHA = 0.99
# Number of eigenvectors kept for the diffusion kernel. The Gaussian kernel covers finer detail.
_N_EIGENVECTORS = 100
# Beyond this many rows, where eigenvectors take most of the time, half of them are kept.
_MANY_ROWS = 5_000
# Base clusterings of larger data are fitted on a sample of this size and predict the other rows.
_SAMPLE = 2_000
# With more clusters, mixtures and Ward's method take minutes. The base clusterings are then spectral clustering and
# k-means with so many rounds. On drawn tables of 600 and 5,000 groups, spectral clustering was the best one by far.
MANY_GROUPS = 500
_ROUNDS = 8
# Wide sparse data is reduced to this many columns.
_SPARSE_COLUMNS = 100
# The number of clusters is guessed as the number of eigenvalues above the first value, and at most the second.
_LARGE_EIGENVALUE, _MOST_GUESSED = 0.95, 12
# An eigengap is clear if the next 1 - eigenvalue is this many times larger. The second value regularises the ratio.
_CLEAR_GAP, _GAP_RIDGE = 4.0, 0.01
# Variance that the mixtures add to every column, in units of the mean variance.
_RIDGE = 1e-3
# Number of iterations of the mixtures. A rough fit is good enough for a base clustering.
_MIXTURE_ITERATIONS = 20
# Clusters are round if no other mixture has a higher evidence (BIC) than the one of round Gaussians, by more than this
# many nats per entry of the data. Drawn round Gaussians reach 0.02, and nearly all public data sets 0.1 to 1.5.
_ROUND = 0.05
# Number of kernel entries that are computed at a time, so that they stay in the processor's cache.
_BLOCK = 50_000
# Prior weights of the diffusion, Gaussian and linear kernels, and of all partitions together.
_PRIOR = (0.4, 0.15, 0.2, 1.0)
# Weight of pairs as evidence about partitions. It is below 1 because pairs are not independent.
_PAIR_EVIDENCE = 0.5
# Smallest probability in the odds of two partitions, so that every prior has a logarithm.
_TINY = 1e-100
# A partition whose mean ARI with the other partitions is r gets a prior weight proportional to exp(_AGREEMENT r).
_AGREEMENT = 2.0
# Bandwidth of the Gaussian kernel, in units of the median squared distance.
_BANDWIDTH = 0.5


class RowFeatures(NamedTuple):
    """Features of further rows, with which the kernels between them and the rows of a `KernelSum` are computed.

    The attributes are those of `KernelSum`. The random walk goes from a further row to rows of the `KernelSum`.
    """

    columns: FloatArray
    diffusion: FloatArray
    walk: sparse.csr_array
    partitions: IntArray


class BaseClustering(NamedTuple):
    """A fitted base clustering.

    Attributes
    ----------
    labels : ndarray of shape (n_rows,)
        Clusters without gaps.
    numbers : ndarray of ints
        The number that `predict` gives to each cluster, in ascending order.
    predict : callable
        Predicts clusters from columns, or from spectral features.
    spectral : ndarray of shape (n_rows, n_features), or None
        The spectral features that the clustering was fitted to instead of the columns.
    """

    labels: IntArray
    numbers: IntArray
    predict: Callable[[FloatArray], npt.NDArray[Any]]
    spectral: FloatArray | None = None

    @classmethod
    def of(
        cls,
        found: npt.NDArray[Any],
        predict: Callable[[FloatArray], npt.NDArray[Any]],
        spectral: FloatArray | None = None,
    ) -> BaseClustering:
        """Number the clusters without gaps."""
        numbers, labels = np.unique(found, return_inverse=True)
        return cls(labels, numbers, predict, spectral)

    def labels_at(self, columns: FloatArray, walk: sparse.csr_array, otherwise: IntArray) -> IntArray:
        """Clusters of further rows, given their random walk. A cluster without rows is replaced by `otherwise`.

        Spectral features of a further row are the averages of the rows that its random walk goes to.
        """
        found = self.predict(columns if self.spectral is None else unit_rows(walk @ self.spectral))
        places = np.minimum(np.searchsorted(self.numbers, found), len(self.numbers) - 1)
        return np.where(self.numbers[places] == found, places, otherwise)


@dataclass(frozen=True)
class KernelSum:
    """Kernels between the rows of a data set, with prior weights; see `build_kernels`.

    With three partitions there are six kernels, in this order: diffusion, Gaussian, linear, and the co-membership of
    each partition (1 for two rows of one cluster, else 0). None of them is stored as a matrix.

    Attributes
    ----------
    columns : ndarray of shape (n_rows, n_columns)
        The data, centred, with a mean squared norm of 1.
    bandwidth : float
        Squared distance at which the Gaussian kernel is 1/e.
    diffusion : ndarray of shape (n_rows, n_vectors)
        Features of the diffusion kernel: its entries are products of these rows, which have norm 1.
    walk : sparse matrix of shape (n_rows, n_rows)
        Transition matrix of the random walk on the graph of neighbours.
    partitions : ndarray of shape (n_partitions, n_rows)
    prior : ndarray of shape (3 + n_partitions,)
        Prior weight of each kernel.
    unconstrained : int
        The partition that agrees best with the others. It is the result without constraints.
    is_round : bool
        Whether a mixture of round Gaussians explains the data, so that the base partitions can be trusted.
    clusterings : tuple of BaseClustering
        The fitted clusterings of the partitions.
    """

    columns: FloatArray
    bandwidth: float
    diffusion: FloatArray
    walk: sparse.csr_array
    partitions: IntArray
    prior: FloatArray
    unconstrained: int
    is_round: bool
    clusterings: tuple[BaseClustering, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns)

    def each(self, rows: IntArray) -> FloatArray:
        """The matrix of every kernel between some rows, of shape (n_kernels, n_rows, n_rows)."""
        matrices = [self.diffusion[rows] @ self.diffusion[rows].T, self._gaussian(self.columns[rows], rows)]
        matrices.append(self.columns[rows] @ self.columns[rows].T)
        matrices += [(one[rows][:, None] == one[rows]).astype(np.float64) for one in self.partitions]
        return np.array(matrices)

    def gram(self, weights: FloatArray, rows: IntArray) -> FloatArray:
        """The matrix of the weighted sum of all kernels between some rows."""
        return np.tensordot(weights, self.each(rows), 1)

    def product(
        self, weights: FloatArray, rows: IntArray, amounts: FloatArray, at: RowFeatures | None = None
    ) -> FloatArray:
        """Multiply the weighted kernel between all rows and some rows by `amounts`; shape (n_rows, n_amounts).

        With `at`, the result is for these further rows instead. All kernels except the Gaussian have few features, so
        their matrices are never formed.
        """
        wanted = self if at is None else at
        found = wanted.diffusion @ (weights[0] * (self.diffusion[rows].T @ amounts))
        found += wanted.columns @ (weights[2] * (self.columns[rows].T @ amounts))
        for weight, one, labels in zip(weights[3:], self.partitions, wanted.partitions, strict=True):
            total = np.zeros((int(one.max()) + 1, amounts.shape[1]))
            np.add.at(total, one[rows], weight * amounts)
            found += total[labels]
        step = max(_BLOCK // max(len(rows), 1), 1)
        for begin in range(0, len(found), step):
            block = slice(begin, begin + step)
            found[block] += self._gaussian(wanted.columns[block], rows) @ (weights[1] * amounts)
        return found

    def _gaussian(self, block: FloatArray, rows: IntArray) -> FloatArray:
        points = self.columns[rows]
        exponents = block @ points.T
        exponents *= 2
        exponents -= np.einsum("ij,ij->i", block, block)[:, None] + np.einsum("ij,ij->i", points, points)
        np.minimum(exponents, 0, out=exponents)
        exponents /= self.bandwidth
        return np.exp(exponents, out=exponents)

    def with_pair_evidence(self, pairs: IntArray, together: npt.NDArray[np.bool_], confidence: FloatArray) -> KernelSum:
        """Weight the base partitions by how well they predict known pairs.

        Each partition is compared with the result without constraints. Only pairs that exactly one of the
        two predicts are evidence. The partition's weight is multiplied by the odds that it is the better one of the
        two, which are tempered because pairs are not independent. A pair with confidence 1/2 has no effect. Use it for
        randomly chosen pairs. A strategy asks about the hardest pairs, which say little about all others.
        """
        weight = np.maximum(2 * confidence - 1, 0)
        is_right = (self.partitions[:, pairs[:, 0]] == self.partitions[:, pairs[:, 1]]) == together
        reference = is_right[self.unconstrained]
        evidence = np.array([log_odds_better(weight[one & ~reference].sum(), weight[~one & reference].sum())
                             for one in is_right])  # fmt: skip
        weights = self.prior[3:] * np.exp(_PAIR_EVIDENCE * (evidence - evidence.max()))
        weights *= self.prior[3:].sum() / weights.sum()
        return replace(self, prior=np.concatenate([self.prior[:3], weights]))

    def prototypes(self, partition: int) -> IntArray:
        """The row nearest to the mean of each cluster of a partition."""
        labels = self.partitions[partition]
        n_clusters = int(labels.max()) + 1
        sizes = np.bincount(labels, minlength=n_clusters)
        members = sparse.csr_array(
            (1 / sizes[labels], (labels, np.arange(self.n_rows))), shape=(n_clusters, self.n_rows)
        )
        away = self.columns - (members @ self.columns)[labels]
        order = np.lexsort((np.einsum("ij,ij->i", away, away), labels))
        return order[np.searchsorted(labels[order], np.arange(n_clusters))]


def log_odds_better(n_wins: float, n_losses: float) -> float:
    """Log-odds that a clustering wins more than half of its comparisons with another one, under a uniform prior.

    For example, 2 wins and 1 loss give log(11/5).
    """
    worse, better = betainc(n_wins + 1, n_losses + 1, 0.5), betainc(n_losses + 1, n_wins + 1, 0.5)
    return float(np.log(max(better, _TINY)) - np.log(max(worse, _TINY)))


@dataclass(frozen=True)
class NeighborGraph:
    """The graph of nearest neighbours with its spectrum; it does not depend on the number of clusters.

    Attributes
    ----------
    columns, bandwidth, diffusion, walk
        As in `KernelSum`.
    eigenvalues : ndarray of shape (n_vectors,)
        Largest eigenvalues of the normalised graph, in descending order.
    eigenvectors : ndarray of shape (n_rows, n_vectors)
    """

    columns: FloatArray
    bandwidth: float
    diffusion: FloatArray
    walk: sparse.csr_array
    eigenvalues: FloatArray
    eigenvectors: FloatArray


def build_neighbor_graph(X: Any, n_neighbors: int, seed: int) -> NeighborGraph:
    """Find the neighbours and compute the eigenvectors, which takes most of the time before the first question."""
    return graph_of_columns(standard(X), n_neighbors, seed)


def graph_of_columns(columns: FloatArray, n_neighbors: int, seed: int) -> NeighborGraph:
    """Build the graph of rows that are standardised already."""
    graph = neighbour_graph(columns, n_neighbors)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    walk = sparse.csr_array(sparse.diags_array(1 / np.where(degree > 0, degree, 1)) @ graph)
    half = sparse.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1)))
    n_vectors = _N_EIGENVECTORS if len(columns) <= _MANY_ROWS else _N_EIGENVECTORS // 2
    eigenvalues, eigenvectors = leading_eigenvectors(sparse.csr_array(half @ graph @ half), n_vectors)
    diffusion = unit_rows(eigenvectors / np.sqrt(1 - _ALPHA * eigenvalues))
    return NeighborGraph(columns, _bandwidth(columns, seed), diffusion, walk, eigenvalues, eigenvectors)


def _bandwidth(columns: FloatArray, seed: int) -> float:
    sample = np.random.default_rng(seed).choice(len(columns), min(len(columns), 500), replace=False)
    some = columns[np.sort(sample)]
    squares = np.einsum("ij,ij->i", some, some)
    apart = np.maximum(squares[:, None] + squares - 2 * (some @ some.T), 0)
    return _BANDWIDTH * float(np.median(apart)) or 1.0


def build_kernels(base: NeighborGraph, n_clusters: int, seed: int) -> KernelSum:
    """Build the kernels, with base partitions into `n_clusters` clusters."""
    spectral = unit_rows(base.eigenvectors[:, :n_clusters])
    clusterings, is_round = base_clusterings(base.columns, spectral, n_clusters, seed)
    partitions = np.array([one.labels for one in clusterings])
    agreement = np.array([np.mean([adjusted_rand_score(one, two) for two in partitions]) for one in partitions])
    weights = np.exp(_AGREEMENT * agreement)
    prior = np.concatenate([_PRIOR[:3], _PRIOR[3] * weights / weights.sum()])
    return KernelSum(
        base.columns,
        base.bandwidth,
        base.diffusion,
        base.walk,
        partitions,
        prior,
        int(agreement.argmax()),
        is_round,
        clusterings,
    )


def guess_n_clusters(base: NeighborGraph) -> int:
    """Guess the number of clusters from a clear eigengap, else from the number of large eigenvalues (2 to 12)."""
    losses = 1 - base.eigenvalues[1:]
    gaps = losses[1:] / (losses[:-1] + _GAP_RIDGE)
    if len(gaps) and gaps.max() > _CLEAR_GAP:
        return int(gaps.argmax()) + 2
    n_large = int((base.eigenvalues > _LARGE_EIGENVALUE).sum())
    return min(max(n_large, 2), _MOST_GUESSED, len(base.columns))


def standard(X: Any) -> FloatArray:
    """Dense, centred rows with a mean squared norm of 1. Wide sparse data is reduced by a truncated SVD."""
    if sparse.issparse(X):
        wide = X.shape[1] > _SPARSE_COLUMNS and X.shape[0] > _SPARSE_COLUMNS
        X = TruncatedSVD(_SPARSE_COLUMNS, random_state=0).fit_transform(X) if wide else X.toarray()
    columns = np.asarray(X, dtype=np.float64)
    columns = columns - columns.mean(axis=0)
    size = np.sqrt(np.einsum("ij,ij->", columns, columns) / len(columns))
    return columns / size if size > 0 else columns


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Scale rows to norm 1; rows of zeros stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


@quietly()
def base_clusterings(
    columns: FloatArray, spectral: FloatArray, n_clusters: int, seed: int
) -> tuple[tuple[BaseClustering, ...], bool]:
    """Clusterings by k-means, spectral clustering, Ward's method and two Gaussian mixtures.

    The second value is `KernelSum.is_round`.
    """
    rng = np.random.default_rng(seed)
    n_rows, is_round = len(columns), True
    n_sample = min(n_rows, max(_SAMPLE, 2 * n_clusters))
    sample = np.arange(n_rows) if n_sample == n_rows else np.sort(rng.choice(n_rows, n_sample, replace=False))
    if n_clusters > MANY_GROUPS:
        by_graph = _by_few_rounds(spectral, sample, n_clusters, seed)._replace(spectral=spectral)
        return (by_graph, _by_few_rounds(columns, sample, n_clusters, seed)), True
    means, of_graph = (SeededKMeans(n_clusters, n_init=10, random_state=seed) for _ in range(2))
    found = [
        BaseClustering.of(means.fit(columns[sample]).predict(columns), means.predict),
        BaseClustering.of(of_graph.fit(spectral[sample]).predict(spectral), of_graph.predict, spectral),
    ]
    if len(sample) > n_clusters:
        found.append(_by_ward(columns, sample, n_clusters))
        some = columns[sample]
        spherical, *others = (_mixture(some, n_clusters, kind, seed) for kind in ("spherical", "diag", "full"))
        found += [BaseClustering.of(one.predict(columns), one.predict) for one in others]
        lead = spherical.bic(some) - min(one.bic(some) for one in others)
        is_round = bool(lead <= 2 * _ROUND * some.size)  # BIC is in units of half a nat
    return tuple(found), is_round


def _by_few_rounds(features: FloatArray, sample: IntArray, n_clusters: int, seed: int) -> BaseClustering:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SeededKMeans(n_clusters, n_init=1, max_iter=_ROUNDS, random_state=seed).fit(features[sample])
    return BaseClustering.of(model.predict(features), model.predict)


def _by_ward(columns: FloatArray, sample: IntArray, n_clusters: int) -> BaseClustering:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ClusterWarning)  # a few rows can look like a matrix of distances
        labels = AgglomerativeClustering(n_clusters).fit_predict(columns[sample])
    centers = np.array([columns[sample[labels == one]].mean(axis=0) for one in range(n_clusters)])

    def predict(rows: FloatArray) -> npt.NDArray[Any]:
        return (2 * rows @ centers.T - np.einsum("ij,ij->i", centers, centers)).argmax(axis=1)

    return BaseClustering.of(labels if len(sample) == len(columns) else predict(columns), predict)


def _mixture(rows: FloatArray, n_clusters: int, kind: str, seed: int) -> GaussianMixture:
    ridge = _RIDGE / rows.shape[1]
    model = GaussianMixture(
        n_clusters, covariance_type=kind, reg_covar=ridge, max_iter=_MIXTURE_ITERATIONS, random_state=seed
    )
    with warnings.catch_warnings():
        # A mixture that has not converged, or has fewer distinct rows than clusters, is still a base clustering.
        warnings.simplefilter("ignore")
        return model.fit(rows)
