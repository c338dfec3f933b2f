"""What data and other answers say about a pair: clusterings of several views of the rows, each a witness.

Which witnesses to believe is learned from the answers: a pair's chance to be the same is predicted by a model
that has not seen its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import eigsh
from scipy.stats import norm, rankdata
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize

from clew.audit._statements import distinct
from clew.constraints import Constraints
from clew.partitional import PCKMeans, SeededKMeans

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Rows that clusterings see: the named ones, and others up to this many.
_MOST_ROWS = 4000
# Columns of a view; more are projected on their main directions.
_MOST_COLUMNS = 100
# Clusterings without answers per view, and numbers of clusters (times k) of the finer ones.
_MEMBERS, _FINER = 6, (2, 3, 4)
# Parts of the answers that are left out in turn, and how often they are drawn anew.
_PARTS, _DRAWS = 5, 2
_NEIGHBOURS = 10
# Regularisation of the models; their columns are scaled to variance 1.
_WEIGHT_OF_WITNESSES, _WEIGHT_OF_COLUMNS = 0.3, 0.1
# With fewer answers of one kind than this there is nothing to learn from: witnesses count alike.
_LEAST = 5


@dataclass(frozen=True)
class Testimony:
    """What is known about each pair apart from its own answer.

    Attributes
    ----------
    chance : ndarray of shape (n_pairs,)
        Chance that the pair would be answered "same".
    together : ndarray of shape (n_pairs,)
        Share of the clusterings, over all views, that put the pair into one cluster.
    """

    chance: FloatArray
    together: FloatArray


def testimony(X: Any, pairs: IntArray, same: BoolArray, n_clusters: int, rng: np.random.Generator) -> Testimony:
    """Hear the witnesses about every pair, and weigh them by how well they predict the answers to other pairs."""
    rows, pairs = _named_and_more(X.shape[0], pairs, rng)
    views = _views(X[rows], n_clusters)
    _, pair_of = distinct(pairs, np.ones(len(pairs)))
    witnesses, votes = [], []
    for view in views:
        plain = _together(view, pairs, [n_clusters] * _MEMBERS, rng)
        finer = _together(view, pairs, [factor * n_clusters for factor in _FINER], rng)
        informed = _left_out(pair_of, rng, _clustering_judge(view, pairs, same, n_clusters, rng))
        distances = ((view[pairs[:, 0]] - view[pairs[:, 1]]) ** 2).sum(axis=1)
        tiny = max(float(distances.max(initial=0.0)) * 1e-12, np.finfo(float).tiny)
        witnesses += [plain, finer, informed, -np.log(distances + tiny)]
        votes += [plain, informed]
    together = np.mean(votes, axis=0)
    if min(same.sum(), (~same).sum()) < _LEAST:
        return Testimony(np.clip(together, 0.1, 0.9), together)
    differences = np.sqrt(np.abs(views[1][pairs[:, 0]] - views[1][pairs[:, 1]]))
    witnesses.append(_logit(_left_out(pair_of, rng, _model_judge(differences, same, _WEIGHT_OF_COLUMNS))))
    judge = _model_judge(np.column_stack(witnesses), same, _WEIGHT_OF_WITNESSES)
    return Testimony(_left_out(pair_of, rng, judge), together)


def _named_and_more(n_rows: int, pairs: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows to cluster, and the pairs among them."""
    named = np.unique(pairs)
    others = np.setdiff1d(np.arange(n_rows), named)
    n_more = min(len(others), max(_MOST_ROWS - len(named), 0))
    rows = np.sort(np.concatenate([named, rng.choice(others, n_more, replace=False)]))
    return rows, np.searchsorted(rows, pairs)


def _views(X: Any, n_clusters: int) -> list[FloatArray]:
    """The rows as they are, with columns of variance 1, as normal scores of their ranks, and as their neighbours go."""
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
    views = [raw, even, np.asarray(ranked)]
    if len(raw) > 2 * _NEIGHBOURS + n_clusters:
        views.append(_neighbour_view(even, n_clusters))
    return [np.ascontiguousarray(view) for view in views]


def _neighbour_view(rows: FloatArray, n_columns: int) -> FloatArray:
    """Main directions of the graph of nearest neighbours: rows that walks along it connect come close."""
    graph = kneighbors_graph(rows, _NEIGHBOURS, include_self=False)
    graph = graph.maximum(graph.T) + 1e-3 * sparse.identity(len(rows))
    root = sparse.diags_array(1 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    start = np.random.default_rng(0).uniform(0.5, 1.5, len(rows))  # arpack would draw another one each time
    found = eigsh(root @ graph @ root, k=n_columns, which="LA", v0=start, tol=1e-6)[1]
    return np.asarray(root @ found) * len(rows) ** 0.5


def _together(view: FloatArray, pairs: IntArray, sizes: list[int], rng: np.random.Generator) -> FloatArray:
    votes = np.zeros(len(pairs))
    for size in sizes:
        model = SeededKMeans(
            min(size, len(view)), init="k-means++", n_init=1, tol=1e-3, max_iter=1000, random_state=rng
        )
        labels = model.fit(view).labels_
        votes += labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return votes / len(sizes)


Judge = Callable[[BoolArray], FloatArray]


def _left_out(pair_of: IntArray, rng: np.random.Generator, judge: Judge) -> FloatArray:
    """Judge each pair without any answer about it: parts are left out in turn."""
    n_pairs = int(pair_of.max(initial=-1)) + 1
    verdicts = np.zeros(len(pair_of))
    for _ in range(_DRAWS):
        part_of = (rng.permutation(n_pairs) % _PARTS)[pair_of]
        for part in range(min(_PARTS, n_pairs)):
            left_out = part_of == part
            verdicts[left_out] += judge(~left_out)[left_out] / _DRAWS
    return verdicts


def _clustering_judge(
    view: FloatArray, pairs: IntArray, same: BoolArray, n_clusters: int, rng: np.random.Generator
) -> Judge:
    def judge(known: BoolArray) -> FloatArray:
        constraints = Constraints(pairs[known & same], pairs[known & ~same], n_samples=len(view))
        # Single prices: one wrong answer must not entail others.
        model = PCKMeans(n_clusters, n_init=1, entailed=False, tol=1e-3, max_iter=1000, random_state=rng)
        labels = model.fit(view, constraints=constraints).labels_
        return np.asarray(labels[pairs[:, 0]] == labels[pairs[:, 1]], dtype=np.float64)

    return judge


def _model_judge(columns: FloatArray, same: BoolArray, weight: float) -> Judge:
    deviations = columns.std(axis=0)
    even = (columns - columns.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)

    def judge(known: BoolArray) -> FloatArray:
        if same[known].all() or not same[known].any():
            return np.full(len(same), same[known].mean() if known.any() else 0.5)
        return np.asarray(LogisticRegression(C=weight).fit(even[known], same[known]).predict_proba(even)[:, 1])

    return judge


def _logit(chance: FloatArray) -> FloatArray:
    bounded = np.clip(chance, 1e-3, 1 - 1e-3)
    return np.asarray(np.log(bounded / (1 - bounded)))
