"""Small data sets and knowledge about them, the same for every estimator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clew import Constraints


@dataclass(frozen=True)
class Case:
    """Rows, what is known about them, and a labelling that satisfies it.

    `generic`: no two distances are equal, so that rounding cannot decide where a row goes.
    """

    X: np.ndarray
    constraints: Constraints
    hidden: np.ndarray
    generic: bool

    @property
    def free(self):
        """Rows that no constraint names."""
        known = self.constraints
        free = np.ones(len(self.X), dtype=bool)
        free[np.concatenate([known.must_link, known.cannot_link]).ravel()] = False
        for column in (known.labels, known.must_groups, known.cannot_groups):
            if column is not None:
                free &= column < 0
        return free


def blobs(rng, n_clusters):
    hidden = np.resize(np.arange(n_clusters), 30)
    centers = rng.uniform(1, 9, size=(n_clusters, 2))
    return centers[hidden] + rng.normal(size=(30, 2)), hidden


def grid(rng, n_clusters):
    X = np.array([[x, y] for x in range(6) for y in range(4)], dtype=float)
    return X, (X[:, 0] * n_clusters // 6).astype(int)


def duplicates(rng, n_clusters):
    hidden = np.resize(np.arange(n_clusters), 24)
    return rng.integers(0, 9, size=(n_clusters, 3)).astype(float)[hidden], hidden


def one_feature(rng, n_clusters):
    hidden = np.sort(rng.integers(n_clusters, size=20))
    return (4 * hidden + rng.normal(size=20))[:, None], hidden


def as_many_rows_as_clusters(rng, n_clusters):
    return rng.normal(size=(n_clusters, 2)), np.arange(n_clusters)


def equal_rows(rng, n_clusters):
    return np.full((12, 2), 3.0), np.resize(np.arange(n_clusters), 12)


def none(rng, hidden):
    return Constraints(n_samples=len(hidden))


def pairs(rng, hidden):
    first, second = np.triu_indices(len(hidden), 1)
    asked = rng.random(len(first)) < 12 / len(first)
    same = hidden[first] == hidden[second]
    rows = np.column_stack([first, second])
    return Constraints(rows[asked & same], rows[asked & ~same], n_samples=len(hidden))


def labels(rng, hidden):
    return Constraints(labels=np.where(rng.random(len(hidden)) < 0.3, hidden, -1))


def must_groups(rng, hidden):
    group = 2 * hidden + rng.integers(2, size=len(hidden))
    return Constraints(must_groups=np.where(rng.random(len(hidden)) < 0.4, group, -1))


def cannot_groups(rng, hidden):
    """Groups that hold at most one row of each class, as photos hold each person once."""
    group = np.full(len(hidden), -1)
    for label in np.unique(hidden):
        rows = rng.permutation(np.flatnonzero(hidden == label))[:4]
        group[rows] = np.arange(len(rows))
    return Constraints(cannot_groups=group)


def mixed(rng, hidden):
    """All kinds at once, some pairs less sure than others."""
    given = pairs(rng, hidden)
    sure = Constraints(
        given.must_link,
        given.cannot_link,
        must_link_confidence=rng.choice([0.5, 0.75, 1.0], len(given.must_link)),
        cannot_link_confidence=rng.choice([0.5, 0.75, 1.0], len(given.cannot_link)),
        n_samples=len(hidden),
    )
    return sure | labels(rng, hidden) | must_groups(rng, hidden) | cannot_groups(rng, hidden)


_DATA = {make.__name__: make for make in (blobs, grid, duplicates, one_feature, as_many_rows_as_clusters, equal_rows)}
_KNOWLEDGE = {make.__name__: make for make in (none, pairs, labels, must_groups, cannot_groups, mixed)}
_GENERIC = ("blobs", "one_feature", "as_many_rows_as_clusters")

SCENARIOS = [
    *(("blobs", kind) for kind in _KNOWLEDGE),
    *((data, kind) for data in _DATA if data != "blobs" for kind in ("none", "pairs", "mixed")),
]


def matrix(X, kind):
    """The same rows as a square matrix: distances, 10 less the distance as affinity or weight, or inner products."""
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1))
    likeness = 10 - distances
    forms = {"dissimilarity": distances, "affinity": np.maximum(likeness, 0), "signed graph": likeness}
    return X @ X.T if kind == "kernel" else forms[kind]


def n_clusters_of(estimator):
    """The number of clusters an estimator is told, or three for one that finds the number."""
    return getattr(estimator, "n_clusters", 3)


def build(scenario, estimator, seed) -> Case:
    data, kind = scenario
    rng = np.random.default_rng([seed, SCENARIOS.index(scenario)])
    X, hidden = _DATA[data](rng, n_clusters_of(estimator))
    # On a line, directions are two: for angles all rows of one side are equal.
    generic = data in _GENERIC and not (X.shape[1] == 1 and getattr(estimator, "_geometry", None) == "cosine")
    known, can = _KNOWLEDGE[kind](rng, hidden), estimator.capabilities
    if can.pairwise is not None:
        X = matrix(X, can.pairwise)
    elif can.counts:
        X, generic = X - X.min(axis=0), generic and X.shape[1] > 1  # one word says nothing
    return Case(X, known, hidden, generic)
