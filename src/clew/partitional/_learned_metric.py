"""K-means under a learned metric: column weights or a full matrix, shared by all clusters or one for each cluster.

A metric A measures ``(x - c)' A (x - c) - log det A``. The second term makes this the negative log-likelihood of a
Gaussian; without it A would shrink to 0. A prior of a few *unseen rows*, with the variances of the whole table, keeps A
finite if a cluster has few rows or a constant column.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse

from clew.kernels.assign import add_rows
from clew.kernels.pairs import assign_rows
from clew.partitional._geometry import EuclideanRows, FloatArray, IntArray, Labels, Problem, Scoring
from clew.partitional._lloyd import Policy
from clew.partitional._pairs import Pairs
from clew.partitional._units import Units

# A column with less than this share of the mean variance counts as constant.
_NO_VARIANCE = 1e-12
# Largest number of halvings of a step towards a new metric, where other cannot-links may become priced.
_MOST_HALVINGS = 20
# Largest number of steps towards a new metric per round, and the relative gain below which they end.
_MOST_STEPS, _FLAT = 50, 1e-9


@dataclass(frozen=True)
class MetricProblem(EuclideanRows):
    """Rows with a metric: `form` has shape (n_metrics, d) or (n_metrics, d, d); n_metrics is 1 or n_clusters.

    `unseen` is the number of unseen rows of each metric and `spread` their variances.
    """

    form: FloatArray = field(default_factory=lambda: np.ones((1, 1)))
    moments: FloatArray = field(default_factory=lambda: np.zeros(1))  # weighted sums of the squares of each column
    unseen: float = 0.0
    spread: FloatArray = field(default_factory=lambda: np.ones(1))
    dtype: Any = np.float64

    @classmethod
    def measured(cls, X: Any, weights: FloatArray, n_jobs: int | None, form: FloatArray) -> MetricProblem:
        """Centre a copy of X, in double precision: a learned metric may magnify small differences."""
        shift = np.zeros(X.shape[1])
        rows = X.astype(np.float64)
        if not sparse.issparse(X):
            shift = rows.mean(axis=0)
            rows -= shift
        moments = np.asarray(_squares(rows).T @ (weights if len(weights) else np.ones(X.shape[0]))).ravel()
        return cls(rows, weights, shift, effective_n_jobs(n_jobs), form, moments, dtype=X.dtype)

    def restored(self, centers: FloatArray) -> Any:
        return (centers + self.shift).astype(self.dtype)

    def with_prior(self, unseen: float) -> MetricProblem:
        """Add `unseen` unseen rows with the variances of the columns. Constant columns get the mean variance."""
        weights = self.row_weights / self.row_weights.sum()
        mean = np.asarray(self.X.T @ weights).ravel()
        spread = self.moments / self.row_weights.sum() - mean**2
        typical = float(spread.mean()) if spread.mean() > 0 else 1.0
        return replace(self, unseen=unseen, spread=np.where(spread > _NO_VARIANCE * typical, spread, typical))

    @property
    def n_metrics(self) -> int:
        """Number of metrics: one, or the number of clusters."""
        return len(self.form)

    @property
    def log_det(self) -> FloatArray:
        """Logarithm of the determinant of each metric."""
        if self.form.ndim == 2:
            return np.log(self.form).sum(axis=1)
        return np.asarray(np.linalg.slogdet(self.form)[1])

    @property
    def _offsets(self) -> FloatArray:
        """Term that each cluster adds to its scores. A determinant that all clusters share is in `constant` instead."""
        return -self.log_det if self.n_metrics > 1 else np.zeros(1)

    @property
    def constant(self) -> float:
        """Cost of the unseen rows and a shared determinant, the terms that are not in the scores."""
        found = 0.0 if self.n_metrics > 1 else -float(self.row_weights.sum() * self.log_det[0])
        if not self.unseen:
            return found
        weighed = self.form if self.form.ndim == 2 else np.diagonal(self.form, axis1=1, axis2=2)
        return found + float(self.unseen * (weighed @ self.spread - self.log_det).sum())

    @property
    def scale(self) -> float:
        """Size of the terms of the objective."""
        weighed = self.form if self.form.ndim == 2 else np.diagonal(self.form, axis1=1, axis2=2)
        return float((weighed @ self.moments).max() + abs(self.constant) + abs(self.log_det).max() * self.n_rows)

    def scoring(self, centers: FloatArray) -> Scoring:
        return _MetricScoring(self.form, centers, np.broadcast_to(self._offsets, len(centers)).copy())

    def left_out(self, points: Any) -> FloatArray:
        return np.zeros(points.shape[0])

    def surplus(self, labels: Labels) -> float:
        own = self._offsets[labels if self.n_metrics > 1 else np.zeros_like(labels)]
        return self.constant + float(own @ self.row_weights)

    def reordered(self, places: IntArray) -> MetricProblem:
        if self.n_metrics == 1:
            return self
        form = np.empty_like(self.form)
        form[places] = self.form
        return replace(self, form=form)

    def own_costs(self, rows: Any, centers: FloatArray, labels: Labels) -> FloatArray:
        place = np.zeros_like(labels) if self.n_metrics == 1 else labels
        if sparse.issparse(rows):
            scoring = self.scoring(centers)
            scores = scoring(rows) + scoring.offsets
            return np.maximum(scores[np.arange(len(labels)), labels] - self._offsets[place], 0)
        apart = rows - centers[labels]
        if self.form.ndim == 2:
            return np.einsum("ij,ij,ij->i", apart, apart, self.form[place])
        costs = np.empty(len(apart))
        for metric in np.unique(place):
            here = place == metric
            costs[here] = np.einsum("ij,ij->i", apart[here] @ self.form[metric], apart[here])
        return np.maximum(costs, 0)

    def lengths(self, differences: Any, n_clusters: int) -> FloatArray:
        """Squared length of each difference in the metric of every cluster."""
        if self.form.ndim == 2:
            found = np.asarray(_squares(differences) @ self.form.T)
        else:
            dense = differences.toarray() if sparse.issparse(differences) else differences
            found = np.column_stack([np.einsum("ij,ij->i", dense @ form, dense) for form in self.form])
        return np.ascontiguousarray(np.broadcast_to(np.maximum(found, 0), (len(found), n_clusters)))

    def longest(self, box: FloatArray, n_clusters: int) -> FloatArray:
        """Squared diagonal of the bounding box of all rows, in the metric of every cluster."""
        weighed = self.form if self.form.ndim == 2 else np.diagonal(self.form, axis1=1, axis2=2)
        return np.broadcast_to(weighed @ box, n_clusters).copy()


class _MetricScoring(Scoring):
    """Squared distances in the metric of each centre, expanded into matrix products for BLAS."""

    def __init__(self, form: FloatArray, centers: FloatArray, offsets: FloatArray) -> None:
        self._form = form
        if form.ndim == 2:
            weighed = form * centers
            super().__init__(np.ascontiguousarray(-2 * weighed.T), offsets + np.einsum("ij,ij->i", weighed, centers))
        else:
            weighed = centers @ form[0] if len(form) == 1 else np.einsum("ij,ijk->ik", centers, form)
            super().__init__(np.ascontiguousarray(-2 * weighed.T), offsets + np.einsum("ij,ij->i", weighed, centers))

    def __call__(self, rows: Any, out: FloatArray | None = None) -> FloatArray:
        scores = super().__call__(rows, out)
        if self._form.ndim == 2:
            scores += _squares(rows) @ self._form.T
            return scores
        dense = rows.toarray() if sparse.issparse(rows) else rows
        for metric, form in enumerate(self._form):
            own = np.einsum("ij,ij->i", dense @ form, dense)
            if len(self._form) == 1:
                scores += own[:, None]
            else:
                scores[:, metric] += own
        return scores


def _squares(X: Any) -> Any:
    return X.multiply(X).tocsr() if sparse.issparse(X) else X * X


def box_of(problem: Problem) -> FloatArray:
    """Squared sides of the bounding box of all rows with a weight above 0."""
    rows = problem.X if not len(problem.weights) else problem.X[problem.weights > 0]
    low, high = rows.min(axis=0), rows.max(axis=0)
    if sparse.issparse(rows):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return np.asarray((high - low) ** 2, dtype=np.float64)


class MetricPolicy(Policy):
    """Move rows in pairs one at a time, then fit the metric to the clusters and the broken pairs.

    `learns` is None, "diagonal" or "full"; without `priced`, rows go to the nearest centre, whether or not this breaks
    pairs.
    """

    def __init__(
        self,
        problem: Problem,
        pairs: Pairs,
        penalty: float,
        rng: np.random.Generator,
        *,
        learns: str | None,
        shared: bool,
        priced: bool,
    ) -> None:
        self._pairs, self._rng, self._learns, self._shared = pairs, rng, learns, shared
        self._prices = penalty * pairs.confidence
        first, second = (problem.X[pairs.rows[pairs.ends[:, end]]] for end in range(2))
        self._differences = first - second
        self._box = box_of(problem)
        self.monotone = priced  # type: ignore[misc]
        arrays = (pairs.ends, pairs.must, self._prices if priced else np.zeros(len(pairs)), pairs.pair_ptr)
        self._arrays = (*arrays, pairs.pair_of)

    def assign(self, problem: Problem, units: Units, centers: FloatArray, labels: Labels) -> tuple[float, float]:
        assert isinstance(problem, MetricProblem)
        n_clusters = len(centers)
        lengths, longest = problem.lengths(self._differences, n_clusters), problem.longest(self._box, n_clusters)
        work, score = np.empty(n_clusters), 0.0
        for chosen, costs in units.costs(problem, centers, self._rng.permutation(len(units))):
            chosen = np.ascontiguousarray(chosen)
            score += assign_rows(chosen, costs, *self._arrays, lengths, longest, labels, work)
        must, cannot = self._pairs.broken(labels)
        return score, float(self._cost(lengths, longest, labels[self._pairs.ends], must, cannot))

    def _cost(self, lengths: FloatArray, longest: FloatArray, ends: Labels, must: IntArray, cannot: IntArray) -> float:
        across = (lengths[must, ends[must, 0]] + lengths[must, ends[must, 1]]) / 2
        within = np.maximum(longest[ends[cannot, 0]] - lengths[cannot, ends[cannot, 0]], 0)
        return float(self._prices[must] @ across + self._prices[cannot] @ within)

    def learn(self, problem: Problem, centers: FloatArray, labels: Labels) -> tuple[Problem, FloatArray]:
        """The metric with the lowest objective for these clusters and centres."""
        assert isinstance(problem, MetricProblem)
        return (problem if self._learns is None else self._fitted(problem, centers, labels)), centers

    def _fitted(self, problem: MetricProblem, centers: FloatArray, labels: Labels) -> MetricProblem:
        masses, scatter = self._scatter(problem, centers, labels)
        if self._shared:
            masses = masses.sum(keepdims=True)
        ends = labels[self._pairs.rows][self._pairs.ends]
        if self._learns == "diagonal":
            return replace(problem, form=self._asked_for(problem, masses, scatter, ends))
        now = self._objective(problem, masses, scatter, ends)
        for _ in range(_MOST_STEPS):
            form, before = self._asked_for(problem, masses, scatter, ends), now
            problem, now = self._towards(problem, form, now, masses, scatter, ends)
            if before - now <= _FLAT * problem.scale:
                break
        return problem

    def _asked_for(self, problem: MetricProblem, masses: FloatArray, scatter: FloatArray, ends: Labels) -> FloatArray:
        """The metric with the lowest objective if the set of priced cannot-links does not change."""
        n_clusters = len(scatter)
        lengths, longest = problem.lengths(self._differences, n_clusters), problem.longest(self._box, n_clusters)
        must = np.flatnonzero((self._pairs.must == 1) & (ends[:, 0] != ends[:, 1]))
        cannot = np.flatnonzero((self._pairs.must == 0) & (ends[:, 0] == ends[:, 1]))
        cannot = cannot[lengths[cannot, ends[cannot, 0]] < longest[ends[cannot, 0]]]
        asked = scatter + self._of_pairs(ends, must, cannot, n_clusters)
        return _lowest_form(masses, asked.sum(axis=0, keepdims=True) if self._shared else asked, problem)

    def _towards(
        self,
        problem: MetricProblem,
        form: FloatArray,
        now: float,
        masses: FloatArray,
        scatter: FloatArray,
        ends: Labels,
    ) -> tuple[MetricProblem, float]:
        """Step to the new metric, or part of the way, because other cannot-links may become priced there.

        The objective is convex in the metric, and the step is a descent direction, so a short enough step lowers it.
        """
        share = 1.0
        for _ in range(_MOST_HALVINGS):
            candidate = replace(problem, form=share * form + (1 - share) * problem.form)
            objective = self._objective(candidate, masses, scatter, ends)
            if objective <= now:
                return candidate, objective
            share /= 2
        return problem, now

    def _objective(self, problem: MetricProblem, masses: FloatArray, scatter: FloatArray, ends: Labels) -> float:
        n_clusters = len(scatter)
        if self._shared:
            scatter = scatter.sum(axis=0, keepdims=True)
        lengths, longest = problem.lengths(self._differences, n_clusters), problem.longest(self._box, n_clusters)
        must = np.flatnonzero((self._pairs.must == 1) & (ends[:, 0] != ends[:, 1]))
        cannot = np.flatnonzero((self._pairs.must == 0) & (ends[:, 0] == ends[:, 1]))
        within = float(np.einsum("hij,hij->", problem.form, scatter))
        if problem.n_metrics > 1:  # a shared determinant is in the constant
            within -= float(masses @ problem.log_det)
        return within + problem.constant + self._cost(lengths, longest, ends, must, cannot)

    def _scatter(self, problem: MetricProblem, centers: FloatArray, labels: Labels) -> tuple[FloatArray, FloatArray]:
        """Weight of each cluster, and its scatter about its centre: by column, or as a matrix."""
        n_clusters, n_columns = centers.shape
        masses = np.bincount(labels, weights=problem.row_weights, minlength=n_clusters).astype(np.float64)
        if self._learns == "diagonal":
            return masses, _column_scatter(problem, centers, labels)
        scatter = np.zeros((n_clusters, n_columns, n_columns))
        for cluster in np.unique(labels):
            rows = np.flatnonzero(labels == cluster)
            own = problem.X[rows].toarray() if sparse.issparse(problem.X) else problem.X[rows]
            own = own - centers[cluster]
            scatter[cluster] = (own * problem.row_weights[rows, None]).T @ own
        return masses, scatter

    def _of_pairs(self, ends: Labels, must: IntArray, cannot: IntArray, n_clusters: int) -> FloatArray:
        """Scatter that broken pairs add to their clusters. A must-link adds half of its scatter to each cluster."""
        n_columns = self._differences.shape[1]
        clusters = np.concatenate([ends[must, 0], ends[must, 1], ends[cannot, 0]])
        shares = np.concatenate([self._prices[must] / 2, self._prices[must] / 2, -self._prices[cannot]])
        chosen = np.concatenate([must, must, cannot])
        boxes = np.bincount(ends[cannot, 0], weights=self._prices[cannot], minlength=n_clusters)[:, None] * self._box
        differences = self._differences[chosen]
        if self._learns == "diagonal":
            mixing = sparse.csr_matrix((shares, (clusters, np.arange(len(chosen)))), shape=(n_clusters, len(chosen)))
            added = mixing @ _squares(differences)
            return np.maximum(np.asarray(added.toarray() if sparse.issparse(added) else added) + boxes, 0)
        found = np.zeros((n_clusters, n_columns, n_columns))
        for cluster in np.unique(clusters):
            here = np.flatnonzero(clusters == cluster)
            own = differences[here].toarray() if sparse.issparse(differences) else differences[here]
            found[cluster] = (own * shares[here, None]).T @ own + np.diag(boxes[cluster])
        return found


def _column_scatter(problem: MetricProblem, centers: FloatArray, labels: Labels) -> FloatArray:
    found, masses, weights = np.zeros(centers.shape), np.zeros(len(centers)), problem.row_weights
    for start, stop, rows in problem.blocks:
        here = labels[start:stop]
        if sparse.issparse(rows):
            mixing = sparse.csr_matrix((weights[start:stop], (here, np.arange(stop - start))),
                                       shape=(len(centers), stop - start))  # fmt: skip
            # For n rows with mean c, the sum of squares about c is their sum of squares minus n c².
            found += (mixing @ _squares(rows)).toarray()
            masses += np.bincount(here, weights=weights[start:stop], minlength=len(centers))
        else:
            apart = rows - centers[here]
            apart *= apart
            add_rows(apart, weights[start:stop], here, found, masses)
    return np.maximum(found - masses[:, None] * centers**2, 0) if sparse.issparse(problem.X) else found


def _lowest_form(masses: FloatArray, asked: FloatArray, problem: MetricProblem) -> FloatArray:
    """The minimum of ``tr(A S) - n log det A``, unseen rows included: n times the inverse of S."""
    total = masses + problem.unseen
    if asked.ndim == 2:
        return total[:, None] / (asked + problem.unseen * problem.spread)
    inverse = np.linalg.inv(_definite(asked + problem.unseen * np.diag(problem.spread), problem.spread))
    return total[:, None, None] * (inverse + inverse.transpose(0, 2, 1)) / 2


def _definite(matrices: FloatArray, spread: FloatArray) -> FloatArray:
    """Raise every variance to at least a small share of the prior's, because broken cannot-links subtract scatter."""
    root = np.sqrt(spread)
    values, vectors = np.linalg.eigh(matrices / np.outer(root, root))
    raised = np.maximum(values, 0.01)
    return (vectors * raised[:, None, :]) @ vectors.transpose(0, 2, 1) * np.outer(root, root)
