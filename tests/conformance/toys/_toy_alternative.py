"""An alternative clusterer for tests."""

from typing import ClassVar

import numpy as np
from sklearn.base import clone

from clew._base import AlternativeClusterer, Capabilities
from clew._persistence import Learned
from clew._validation import RANDOM_STATE, integer
from clew.partitional import SeededKMeans


class ToyAlternative(AlternativeClusterer):
    """A clusterer after the mean of each given cluster has been subtracted from its rows."""

    _capabilities = Capabilities(labels="ignored", must_link="ignored", cannot_link="ignored")
    _parameters: ClassVar = {"n_clusters": integer(1), "random_state": RANDOM_STATE}
    _learned_attributes: ClassVar = {
        **AlternativeClusterer._learned_attributes,
        "clusterer_": Learned("estimator"),
        "clusterers_": Learned("estimators"),
    }

    def __init__(self, n_clusters=2, *, clusterer=None, random_state=None):
        self.n_clusters = n_clusters
        self.clusterer = clusterer
        self.random_state = random_state

    @classmethod
    def _examples(cls):
        return [cls(random_state=0)]

    def _fit(self, X, given, constraints, rng):
        rest = X.copy()
        for cluster in np.unique(given[given >= 0]):
            rest[given == cluster] -= X[given == cluster].mean(axis=0)
        base = SeededKMeans() if self.clusterer is None else self.clusterer
        seeds = [int(rng.integers(100)) for _ in range(2)]
        models = [clone(base).set_params(n_clusters=self.n_clusters, random_state=seed) for seed in seeds]
        self.clusterers_ = [model.fit(rest) for model in models]
        self.clusterer_ = self.clusterers_[0]
        labels = self.clusterer_.labels_
        self.cluster_labels_ = np.arange(self.n_clusters)
        self.cluster_sizes_ = np.bincount(labels, minlength=self.n_clusters)
        return labels
