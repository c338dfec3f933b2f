"""Tiny instances of rows, pairs, classes and size limits, with all their labellings: an exact solver that tries all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from clew import Constraints


@dataclass(frozen=True)
class Instance:
    """Rows with knowledge and limits; `in_weights` says whether a size is a sum of weights."""

    X: np.ndarray
    k: int
    weights: np.ndarray
    must: np.ndarray
    cannot: np.ndarray
    labels: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    in_weights: bool

    @property
    def constraints(self):
        known = Constraints(self.must, self.cannot, n_samples=len(self.X))
        return known | Constraints(labels=self.labels) if (self.labels >= 0).any() else known

    def sizes(self, labels):
        """Size of each cluster, for one labelling or many."""
        each = self.weights if self.in_weights else np.ones(len(self.X))
        return np.stack([np.where(labels == cluster, each, 0).sum(axis=-1) for cluster in range(self.k)], axis=-1)

    def keeps_sizes(self, labels):
        sizes = self.sizes(labels)
        return ((sizes >= self.lower) & (sizes <= self.upper)).all(axis=-1)

    def keeps_pairs(self, labels):
        """Whether every pair and every class holds; clusters of classes have the numbers of the classes."""
        together, apart = labels[..., self.must], labels[..., self.cannot]
        holds = (together[..., 0] == together[..., 1]).all(axis=-1) & (apart[..., 0] != apart[..., 1]).all(axis=-1)
        return holds & ((self.labels < 0) | (labels == self.labels)).all(axis=-1)

    @property
    def every_labelling(self):
        return np.array(list(product(range(self.k), repeat=len(self.X))))

    def is_feasible(self, *, pairs=True, sizes=True):
        """Whether some labelling keeps the pairs, the sizes, or both."""
        found = self.every_labelling
        keeps = np.ones(len(found), dtype=bool)
        if pairs:
            keeps &= self.keeps_pairs(found)
        if sizes:
            keeps &= self.keeps_sizes(found)
        return bool(keeps.any())

    @property
    def without_cannot_links(self):
        return replace(self, cannot=self.cannot[:0])

    def is_consistent(self):
        """Whether some partition, of any number of clusters, keeps the pairs and the classes."""
        return any(self.keeps_classes(labels) and self.keeps_links(labels) for labels in partitions(len(self.X)))

    def keeps_links(self, labels):
        """Whether must-linked rows share a cluster, and cannot-linked rows do not; nothing shares noise, -1."""
        together, apart = labels[self.must], labels[self.cannot]
        shared = together[:, 0] == together[:, 1]
        return bool((shared & (together[:, 0] >= 0)).all() and ((apart[:, 0] != apart[:, 1]) | (apart[:, 0] < 0)).all())

    def keeps_classes(self, labels):
        """Whether the rows of a class share a cluster, and those of different classes do not."""
        known = np.flatnonzero(self.labels >= 0)
        alike = self.labels[known][:, None] == self.labels[known]
        return bool((alike == (labels[known][:, None] == labels[known])).all())


@cache
def partitions(n):
    """Every partition of n rows: a row joins a cluster of the rows before it, or starts the next one."""
    if n == 0:
        return [np.empty(0, dtype=np.int64)]
    return [np.append(first, last) for first in partitions(n - 1) for last in range(first.max(initial=-1) + 2)]


def draw(rng):
    """An instance of up to seven rows; about three in ten of them cannot be solved."""
    n, k = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    k = min(n, k)
    hidden = rng.integers(k, size=n)
    in_weights = bool(rng.random() < 0.5)
    weights = rng.integers(1, 5, n).astype(float)
    first, second = np.triu_indices(n, 1)
    pairs, same = np.column_stack([first, second]), hidden[first] == hidden[second]
    asked = rng.random(len(pairs)) < rng.choice([0.1, 0.4, 0.8])
    wrong = rng.random(len(pairs)) < rng.choice([0.0, 0.2, 0.4])
    labels = np.where(rng.random(n) < rng.choice([0.0, 0.2]), hidden, -1)
    instance = Instance(
        rng.integers(0, 9, (n, 2)).astype(float), k, weights, pairs[asked & (same ^ wrong)],
        pairs[asked & ~(same ^ wrong)], labels, np.zeros(k), np.zeros(k), in_weights,
    )  # fmt: skip
    sizes = instance.sizes(hidden)
    lower = np.maximum(sizes - rng.integers(0, 3, k), 0)
    upper = np.maximum(sizes + rng.integers(0, 3, k) - (rng.random(k) < 0.25), lower)
    return replace(instance, lower=lower, upper=upper)
