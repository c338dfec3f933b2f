"""What rows look like before anybody knows anything: how alike they are in several ways, and how they might split.

The ways: diffusion over the graph of neighbours (Kondor and Lafferty 2002, `kondor2002`; Zhou et al. 2004,
`zhou2004`), distance, the columns themselves, and partitions of an ensemble of base methods.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import betaln
from sklearn.cluster import AgglomerativeClustering
from sklearn.decomposition import TruncatedSVD
from sklearn.mixture import GaussianMixture

from clew.evaluation import adjusted_rand_score
from clew.graph._directions import leading_directions
from clew.graph._neighbours import neighbour_graph
from clew.partitional import SeededKMeans

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# How far knowledge spreads over the graph: near 1, through whole regions.
_SPREAD = 0.99
# Directions of the diffusion that are kept; finer detail is left to the distance.
_N_DIRECTIONS = 100
# They cost most of the wait for large data: half of them do beyond this many rows.
_MANY_ROWS = 5_000
# Base partitions of more rows are learnt from a sample; the other rows follow.
_SAMPLE = 2_000
# Sparse rows with more columns than this are brought down to so many.
_SPARSE_COLUMNS = 100
# A direction is slow when a step keeps more than this of it; no guess of the number of clusters is above the second.
_SLOW, _MOST_GUESSED = 0.95, 12
# A gap stands out where a step keeps so many times less of the next direction, losses below the second left aside.
_CLEAR_GAP, _SLIGHT = 4.0, 0.01
# Variance that mixtures add to every column, in units of the mean variance.
_RIDGE = 1e-3
# Steps of a mixture: a rough one is as good a guess as a settled one.
_MOST_STEPS = 20
# Nearness is computed for this many pairs at a time.
_BLOCK = 1_000_000
# Weights of the three smooth ways and of all partitions together, before any answer.
_PRIOR = (0.4, 0.15, 0.2, 1.0)
# Share of the evidence of pairs that counts.
_PAIRS = 0.5
# The weight of clusters that people have made theirs.
_KEPT = 3.0
# A partition that agrees with the others by ARI r is trusted exp(_PEERS r) times as much as one that does not at all.
_PEERS = 2.0
# Width of the distance's bell, in median squared distances.
_WIDTH = 0.5


@dataclass(frozen=True)
class Landscape:
    """Rows of a data set, seen in several ways; see `survey`.

    Attributes
    ----------
    columns : ndarray of shape (n_rows, n_columns)
        Centred, with a mean squared norm of 1.
    width : float
        Squared distance at which likeness has fallen to 1/e.
    diffusion : ndarray of shape (n_rows, n_directions)
        Rows of norm 1 whose products say how well two rows are connected.
    walk : sparse matrix of shape (n_rows, n_rows)
        One step to a neighbour; rows sum to 1.
    partitions : ndarray of shape (n_partitions, n_rows)
    prior : ndarray of shape (3 + n_partitions,)
        How much each way counts before any answer.
    """

    columns: FloatArray
    width: float
    diffusion: FloatArray
    walk: sparse.csr_array
    partitions: IntArray
    prior: FloatArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns)

    def ways(self, rows: IntArray) -> FloatArray:
        """How alike some rows are, in every way: shape (n_ways, n_rows, n_rows)."""
        alike = [self.diffusion[rows] @ self.diffusion[rows].T, self._nearness(self.columns[rows], rows)]
        alike.append(self.columns[rows] @ self.columns[rows].T)
        alike += [(one[rows][:, None] == one[rows]).astype(np.float64) for one in self.partitions]
        return np.array(alike)

    def likeness(self, weights: FloatArray, rows: IntArray) -> FloatArray:
        """How alike some rows are: the weighted sum of all ways."""
        return np.tensordot(weights, self.ways(rows), 1)

    def drawn(self, weights: FloatArray, rows: IntArray, amounts: FloatArray) -> FloatArray:
        """How much every row is drawn by amounts at some rows, as it is like them; shape (n_rows, n_amounts).

        All ways but nearness are products of few features, so that amounts are summed up before any other row is met.
        """
        found = self.diffusion @ (weights[0] * (self.diffusion[rows].T @ amounts))
        found += self.columns @ (weights[2] * (self.columns[rows].T @ amounts))
        for weight, one in zip(weights[3:], self.partitions, strict=True):
            total = np.zeros((int(one.max()) + 1, amounts.shape[1]))
            np.add.at(total, one[rows], weight * amounts)
            found += total[one]
        step = max(_BLOCK // max(len(rows), 1), 1)
        for begin in range(0, self.n_rows, step):
            block = slice(begin, begin + step)
            found[block] += self._nearness(self.columns[block], rows) @ (weights[1] * amounts)
        return found

    def _nearness(self, block: FloatArray, rows: IntArray) -> FloatArray:
        points = self.columns[rows]
        squares = np.einsum("ij,ij->i", block, block)[:, None] + np.einsum("ij,ij->i", points, points)
        return np.exp(np.minimum(2 * (block @ points.T) - squares, 0) / self.width)

    def keeping(self, labels: IntArray) -> Landscape:
        """With one more partition, which is trusted more than all others together before any answer."""
        partition = np.unique(labels, return_inverse=True)[1]
        prior = np.concatenate([self.prior[:3], [_KEPT], self.prior[3:]])
        return replace(self, partitions=np.concatenate([partition[None], self.partitions]), prior=prior)

    def judged(self, pairs: IntArray, together: npt.NDArray[np.bool_], confidence: FloatArray) -> Landscape:
        """With trust in base partitions by how well they foresee pairs of rows known to be together or not.

        The evidence of a partition is that of its answers "together" and "apart", each right with a frequency that is
        unknown but rather high; a share of it counts, since pairs are not independent. A confidence of 1/2 counts
        nothing. For pairs that came by chance: those that were asked where it is hard to tell say little of the rest.
        """
        weight = np.maximum(2 * confidence - 1, 0)
        evidence = np.zeros(len(self.partitions))
        for place, one in enumerate(self.partitions):
            same = one[pairs[:, 0]] == one[pairs[:, 1]]
            for said in (same, ~same):
                right = weight[said & (same == together)].sum()
                evidence[place] += betaln(right + 2, weight[said].sum() - right + 1)
        weights = self.prior[3:] * np.exp(_PAIRS * (evidence - evidence.max()))
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


@dataclass(frozen=True)
class Ground:
    """What does not depend on a number of clusters: scaled columns, steps on the graph, its slowest directions.

    Attributes
    ----------
    columns, width, diffusion, walk
        As in `Landscape`.
    speeds : ndarray of shape (n_directions,)
        How much of each direction a step on the graph keeps, the slowest first.
    directions : ndarray of shape (n_rows, n_directions)
    """

    columns: FloatArray
    width: float
    diffusion: FloatArray
    walk: sparse.csr_array
    speeds: FloatArray
    directions: FloatArray


def ground(X: Any, n_neighbors: int, seed: int) -> Ground:
    """The graph of neighbours and its directions: most of the wait for a first question."""
    columns = standard(X)
    graph = neighbour_graph(columns, n_neighbors, seed)
    degree = np.asarray(graph.sum(axis=1)).ravel()
    walk = sparse.csr_array(sparse.diags_array(1 / np.where(degree > 0, degree, 1)) @ graph)
    half = sparse.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1)))
    n_directions = _N_DIRECTIONS if len(columns) <= _MANY_ROWS else _N_DIRECTIONS // 2
    speeds, directions = leading_directions(sparse.csr_array(half @ graph @ half), n_directions)
    diffusion = unit_rows(directions / np.sqrt(1 - _SPREAD * speeds))
    return Ground(columns, _width(columns, seed), diffusion, walk, speeds, directions)


def _width(columns: FloatArray, seed: int) -> float:
    sample = np.random.default_rng(seed).choice(len(columns), min(len(columns), 500), replace=False)
    some = columns[np.sort(sample)]
    squares = np.einsum("ij,ij->i", some, some)
    apart = np.maximum(squares[:, None] + squares - 2 * (some @ some.T), 0)
    return _WIDTH * float(np.median(apart)) or 1.0


def survey(base: Ground, n_clusters: int, seed: int) -> Landscape:
    """Look at rows in all ways, with base partitions into `n_clusters` clusters."""
    partitions = base_partitions(base.columns, unit_rows(base.directions[:, :n_clusters]), n_clusters, seed)
    agreement = np.array([np.mean([adjusted_rand_score(one, two) for two in partitions]) for one in partitions])
    trust = np.exp(_PEERS * agreement)
    prior = np.concatenate([_PRIOR[:3], _PRIOR[3] * trust / trust.sum()])
    return Landscape(base.columns, base.width, base.diffusion, base.walk, partitions, prior)


def guess_n_clusters(base: Ground) -> int:
    """Up to the gap after the slow directions of the graph where one stands out; else as many as are slow, 2 to 12."""
    losses = 1 - base.speeds[1:]
    gaps = losses[1:] / (losses[:-1] + _SLIGHT)
    if len(gaps) and gaps.max() > _CLEAR_GAP:
        return int(gaps.argmax()) + 2
    n_slow = int((base.speeds > _SLOW).sum())
    return min(max(n_slow, 2), _MOST_GUESSED, len(base.columns))


def standard(X: Any) -> FloatArray:
    """Dense centred rows with a mean squared norm of 1; wide sparse rows are brought down to few columns."""
    if sparse.issparse(X):
        wide = X.shape[1] > _SPARSE_COLUMNS and X.shape[0] > _SPARSE_COLUMNS
        X = TruncatedSVD(_SPARSE_COLUMNS, random_state=0).fit_transform(X) if wide else X.toarray()
    columns = np.asarray(X, dtype=np.float64)
    columns = columns - columns.mean(axis=0)
    size = np.sqrt(np.einsum("ij,ij->", columns, columns) / len(columns))
    return columns / size if size > 0 else columns


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Rows brought to norm 1; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)


def base_partitions(columns: FloatArray, spectral: FloatArray, n_clusters: int, seed: int) -> IntArray:
    """Partitions by k-means, spectral clustering, Ward's method and two mixtures, numbered from 0 without gaps."""
    rng = np.random.default_rng(seed)
    n_rows = len(columns)
    n_sample = min(n_rows, max(_SAMPLE, 2 * n_clusters))
    sample = np.arange(n_rows) if n_sample == n_rows else np.sort(rng.choice(n_rows, n_sample, replace=False))
    means = SeededKMeans(n_clusters, n_init=10, random_state=seed)
    found = [means.fit(columns[sample]).predict(columns), means.fit(spectral[sample]).predict(spectral)]
    if len(sample) > n_clusters:
        found.append(_by_ward(columns, sample, n_clusters))
        found += [_by_mixture(columns, sample, n_clusters, kind, seed) for kind in ("diag", "full")]
    return np.array([np.unique(one, return_inverse=True)[1] for one in found])


def _by_ward(columns: FloatArray, sample: IntArray, n_clusters: int) -> npt.NDArray[Any]:
    labels = AgglomerativeClustering(n_clusters).fit_predict(columns[sample])
    if len(sample) == len(columns):
        return labels
    centers = np.array([columns[sample[labels == one]].mean(axis=0) for one in range(n_clusters)])
    return (2 * columns @ centers.T - np.einsum("ij,ij->i", centers, centers)).argmax(axis=1)


def _by_mixture(columns: FloatArray, sample: IntArray, n_clusters: int, kind: str, seed: int) -> npt.NDArray[Any]:
    ridge = _RIDGE / columns.shape[1]
    model = GaussianMixture(n_clusters, covariance_type=kind, reg_covar=ridge, max_iter=_MOST_STEPS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer different rows than clusters, or no convergence: a guess all the same
        return model.fit(columns[sample]).predict(columns)
