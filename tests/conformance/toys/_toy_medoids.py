"""A clusterer for tests that takes a square matrix and leaves rows out as noise."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from clew._base import Capabilities, ConstrainedClusterer
from clew._persistence import Learned
from clew._validation import RANDOM_STATE, integer, number, words


class ToyMedoids(ConstrainedClusterer):
    """Medoids far from each other; rows far from all medoids are noise."""

    _capabilities = Capabilities(
        labels="ignored",
        must_link="ignored",
        cannot_link="ignored",
        pairwise="dissimilarity",
        noise=True,
        predicts=True,
    )
    _parameters: ClassVar = {
        "n_clusters": integer(1),
        "entries": words("dissimilarity", "affinity", "signed graph"),
        "reach": number(0),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar = {
        **ConstrainedClusterer._learned_attributes,
        "medoids_": Learned("integer", (("clusters",),), low=0),
    }

    def __init__(self, n_clusters=3, *, entries="dissimilarity", reach=3.0, random_state=None):
        self.n_clusters = n_clusters
        self.entries = entries
        self.reach = reach
        self.random_state = random_state

    @classmethod
    def _examples(cls):
        kinds = ("dissimilarity", "affinity", "signed graph")
        return [cls(entries=kind, random_state=0) for kind in kinds]

    @property
    def capabilities(self):
        return replace(super().capabilities, pairwise=self.entries, sparse=self.entries != "dissimilarity")

    def _fit(self, X, constraints, weights, rng):
        distances = self._distances(X)
        medoids = [int(rng.integers(len(distances)))]
        while len(medoids) < self.n_clusters:
            medoids.append(int(distances[:, medoids].min(axis=1).argmax()))
        self.medoids_ = np.array(medoids)
        labels = self._nearest(distances)
        self.cluster_labels_ = np.arange(self.n_clusters)
        self.cluster_sizes_ = np.bincount(labels[labels >= 0], minlength=self.n_clusters)
        return labels

    def predict(self, X):
        return self._nearest(self._distances(self._check_new_rows(X)))

    def _distances(self, X):
        matrix = X if isinstance(X, np.ndarray) else X.toarray()
        return matrix if self.entries == "dissimilarity" else 10 - matrix

    def _nearest(self, distances):
        near = distances[:, self.medoids_]
        return np.where(near.min(axis=1) <= self.reach, near.argmin(axis=1), -1)
