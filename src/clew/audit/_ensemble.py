"""Predict answers from the data and the other answers, by clusterings of several views of the rows.

A logistic regression learns from the answers how much weight each clustering gets. Each answer is predicted by a model
that has not seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize
from scipy.sparse.linalg import eigsh
from scipy.special import expit
from scipy.stats import norm, rankdata
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize

from clew._base import quietly
from clew.audit._statements import distinct
from clew.constraints import Constraints
from clew.partitional import PCKMeans, SeededKMeans

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Largest number of rows in a clustering: the rows in answers, and others up to this many.
_MOST_ROWS = 4000
# Largest number of columns of a view. Wider data is projected on its principal components.
_MOST_COLUMNS = 100
# Distances below this share of the median are raised to it, because the logarithm of a tiny distance would dominate.
_NEAR = 1e-3
# Number of clusterings per view without answers, and factors of k for the finer ones.
_MEMBERS, _FINER = 6, (2, 3, 4)
# Number of folds of the answers for cross-validation, and number of repetitions.
_PARTS, _DRAWS = 5, 2
_NEIGHBOURS = 10
# Regularisation of the models; their columns are scaled to variance 1.
_WEIGHT_OF_WITNESSES, _WEIGHT_OF_COLUMNS = 0.3, 0.1
# With fewer answers of one kind than this, all clusterings get the same weight.
_LEAST = 5


@dataclass(frozen=True)
class PairPredictions:
    """Predictions for each pair from all other answers.

    Attributes
    ----------
    chance : ndarray of shape (n_pairs,)
        Probability that the pair would be answered "same".
    margin : ndarray of shape (n_pairs,)
        Distance from the border between clusters, of the row nearer to a border: 0 at a border, 1 at a centre.
    """

    chance: FloatArray
    margin: FloatArray


def predict_pairs(
    X: Any, pairs: IntArray, same: BoolArray, n_clusters: int, rng: np.random.Generator
) -> PairPredictions:
    """Predict each answer without itself; clusterings are weighted by how well they predict the other answers."""
    rows, pairs = named_and_more(X.shape[0], pairs, rng, _MOST_ROWS)
    views = views_of(X[rows])
    eigenvectors = neighbour_view(views[1], n_clusters)
    if eigenvectors is not None:
        views.append(eigenvectors)
    _, pair_of = distinct(pairs, np.ones(len(pairs)))
    witnesses, votes = [], []
    for view in views:
        plain = together(view, pairs, [n_clusters] * _MEMBERS, rng)
        finer = together(view, pairs, [factor * n_clusters for factor in _FINER], rng)
        informed = left_out(pair_of, rng, clustering_judge(view, pairs, same, n_clusters, rng))
        distances = ((view[pairs[:, 0]] - view[pairs[:, 1]]) ** 2).sum(axis=1)
        floor = max(_NEAR * float(np.median(distances)), np.finfo(float).tiny)
        witnesses += [plain, finer, informed, -np.log(distances + floor)]
        votes += [plain, informed]
    margin = np.mean([_margin(view, n_clusters, rng) for view in views], axis=0)[pairs].min(axis=1)
    if min(same.sum(), (~same).sum()) < _LEAST:
        return PairPredictions(np.clip(np.mean(votes, axis=0), 0.1, 0.9), margin)
    alike = -np.sqrt(np.abs(views[1][pairs[:, 0]] - views[1][pairs[:, 1]]))
    witnesses.append(_logit(left_out(pair_of, rng, _model_judge(alike, same, _WEIGHT_OF_COLUMNS))))
    judge = _model_judge(np.column_stack(witnesses), same, _WEIGHT_OF_WITNESSES)
    return PairPredictions(left_out(pair_of, rng, judge), margin)


def named_and_more(n_rows: int, pairs: IntArray, rng: np.random.Generator, most: int) -> tuple[IntArray, IntArray]:
    """Choose the rows to cluster: all rows in pairs, and random others up to `most` in all. Renumber the pairs."""
    named = np.unique(pairs)
    others = np.setdiff1d(np.arange(n_rows), named)
    n_more = min(len(others), max(most - len(named), 0))
    rows = np.sort(np.concatenate([named, rng.choice(others, n_more, replace=False)]))
    return rows, np.searchsorted(rows, pairs)


def views_of(X: Any) -> list[FloatArray]:
    """Three views: the given rows, columns scaled to variance 1, and normal scores of the ranks."""
    if sparse.issparse(X):
        X = normalize(X)
        if min(X.shape) > _MOST_COLUMNS // 2:
            X = TruncatedSVD(_MOST_COLUMNS // 2, random_state=0).fit_transform(X)
        else:
            X = X.toarray()
    raw = np.asarray(X, dtype=np.float64)
    if raw.shape[1] > _MOST_COLUMNS < len(raw):
        raw = PCA(_MOST_COLUMNS, random_state=0).fit_transform(raw)
    deviations = raw.std(axis=0)
    even = (raw - raw.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)
    ranked = norm.ppf((rankdata(raw, axis=0) - 0.5) / len(raw))
    return [np.ascontiguousarray(view) for view in (raw, even, ranked)]


def neighbour_view(rows: FloatArray, n_columns: int) -> FloatArray | None:
    """Leading eigenvectors of the graph of nearest neighbours, in ascending order; None if there are too few rows."""
    if len(rows) <= 2 * _NEIGHBOURS + n_columns:
        return None
    graph = kneighbors_graph(rows, _NEIGHBOURS, include_self=False)
    graph = graph.maximum(graph.T) + 1e-3 * sparse.identity(len(rows))
    root = sparse.diags_array(1 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    start = np.random.default_rng(0).uniform(
        0.5, 1.5, len(rows)
    )  # a fixed start, because ARPACK would draw a random one
    found = eigsh(root @ graph @ root, k=n_columns, which="LA", v0=start, tol=1e-6)[1]
    return np.ascontiguousarray(root @ found) * len(rows) ** 0.5


@quietly()
def together(
    view: FloatArray, pairs: IntArray, sizes: list[int], rng: np.random.Generator, n_init: int = 1
) -> FloatArray:
    """Share of k-means clusterings, of the given sizes, that join each pair."""
    votes = np.zeros(len(pairs))
    for size in sizes:
        model = SeededKMeans(
            min(size, len(view)), init="k-means++", n_init=n_init, tol=1e-3, max_iter=1000, random_state=rng
        )
        labels = model.fit(view).labels_
        votes += labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return votes / len(sizes)


def _margin(view: FloatArray, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """1 minus the ratio of each row's distances to its nearest and second nearest centre."""
    if n_clusters < 2:
        return np.ones(len(view))
    model = SeededKMeans(n_clusters, init="k-means++", n_init=1, tol=1e-3, max_iter=1000, random_state=rng).fit(view)
    nearest = np.sort(model.transform(view), axis=1)
    return np.asarray(1 - nearest[:, 0] / np.where(nearest[:, 1] > 0, nearest[:, 1], 1.0))


Judge = Callable[[BoolArray], FloatArray]


def left_out(pair_of: IntArray, rng: np.random.Generator, judge: Judge) -> FloatArray:
    """Predict each pair without its own answers, by cross-validation."""
    verdicts = np.zeros(len(pair_of))
    for _ in range(_DRAWS):
        for part in folds(pair_of, rng):
            verdicts[part] += judge(~part)[part] / _DRAWS
    return verdicts


def folds(pair_of: IntArray, rng: np.random.Generator) -> Iterator[BoolArray]:
    """Split the answers into random folds; answers about the same pair are in one fold."""
    n_pairs = int(pair_of.max(initial=-1)) + 1
    part_of = (rng.permutation(n_pairs) % _PARTS)[pair_of]
    for part in range(min(_PARTS, n_pairs)):
        yield part_of == part


def clustering_judge(
    view: FloatArray, pairs: IntArray, same: BoolArray, n_clusters: int, rng: np.random.Generator, n_init: int = 1
) -> Judge:
    """Predict by the clusters of `PCKMeans` with the known answers."""

    @quietly()
    def judge(known: BoolArray) -> FloatArray:
        constraints = Constraints(pairs[known & same], pairs[known & ~same], n_samples=len(view))
        # Without entailed pairs, so that a wrong answer does not entail others.
        model = PCKMeans(n_clusters, n_init=n_init, entailed=False, tol=1e-3, max_iter=1000, random_state=rng)
        labels = model.fit(view, constraints=constraints).labels_
        return np.asarray(labels[pairs[:, 0]] == labels[pairs[:, 1]], dtype=np.float64)

    return judge


def _model_judge(columns: FloatArray, same: BoolArray, weight: float) -> Judge:
    """Predict by a logistic regression with non-negative coefficients.

    Every column increases with the similarity of two rows. A negative coefficient could only come from a wrong answer
    about two similar rows, and would make the next such answer look right.
    """
    deviations = columns.std(axis=0)
    even = (columns - columns.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)

    def judge(known: BoolArray) -> FloatArray:
        if same[known].all() or not same[known].any():
            return np.full(len(same), same[known].mean() if known.any() else 0.5)
        coefficients = _logistic(even[known], same[known], weight)
        return np.asarray(expit(even @ coefficients[1:] + coefficients[0]))

    return judge


def _logistic(X: FloatArray, y: BoolArray, weight: float) -> FloatArray:
    """Intercept and non-negative coefficients of a logistic regression, with scikit-learn's L2 penalty for C=weight."""
    sign = np.where(y, 1.0, -1.0)

    def loss(values: FloatArray) -> tuple[float, FloatArray]:
        scores = sign * (X @ values[1:] + values[0])
        slope = -sign * expit(-scores) * weight
        value = weight * np.logaddexp(0, -scores).sum() + 0.5 * values[1:] @ values[1:]
        return float(value), np.append(slope.sum(), X.T @ slope + values[1:])

    limits = [(None, None), *[(0.0, None)] * X.shape[1]]
    return np.asarray(minimize(loss, np.zeros(X.shape[1] + 1), jac=True, method="L-BFGS-B", bounds=limits).x)


def _logit(chance: FloatArray) -> FloatArray:
    bounded = np.clip(chance, 1e-3, 1 - 1e-3)
    return np.asarray(np.log(bounded / (1 - bounded)))
