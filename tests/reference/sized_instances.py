"""Tiny instances of rows, pairs, classes and size limits, with all their labellings: an exact solver that tries all."""

from __future__ import annotations

from dataclasses import dataclass
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


def draw(rng):
    """An instance of up to seven rows; about half of them cannot be solved."""
    n, k = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    k = min(n, k)
    hidden = rng.integers(k, size=n)
    in_weights = bool(rng.random() < 0.5)
    weights = rng.integers(1, 5, n).astype(float)
    first, second = np.triu_indices(n, 1)
    pairs, same = np.column_stack([first, second]), hidden[first] == hidden[second]
    asked = rng.random(len(pairs)) < rng.choice([0.0, 0.15, 0.3])
    wrong = rng.random(len(pairs)) < rng.choice([0.0, 0.1])
    labels = np.where(rng.random(n) < rng.choice([0.0, 0.2]), hidden, -1)
    instance = Instance(
        rng.integers(0, 9, (n, 2)).astype(float), k, weights, pairs[asked & (same ^ wrong)],
        pairs[asked & ~(same ^ wrong)], labels, np.zeros(k), np.zeros(k), in_weights,
    )  # fmt: skip
    sizes = instance.sizes(hidden)
    lower = np.maximum(sizes - rng.integers(0, 3, k), 0)
    upper = np.maximum(sizes + rng.integers(0, 3, k) - (rng.random(k) < 0.25), lower)
    return Instance(**{**vars(instance), "lower": lower, "upper": upper})
