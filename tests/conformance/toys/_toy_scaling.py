"""A metric learner for tests."""

from typing import ClassVar

import numpy as np

from clew._base import Capabilities
from clew._persistence import Learned
from clew._validation import RANDOM_STATE
from clew.metric._family import MetricLearner


class ToyScaling(MetricLearner):
    """Divide each column by how much must-linked rows differ in it."""

    _capabilities = Capabilities(labels="ignored", must_link="soft", cannot_link="ignored", predicts=True)
    _parameters: ClassVar = {"random_state": RANDOM_STATE}
    _learned_attributes: ClassVar = {
        **MetricLearner._learned_attributes,
        "scale_": Learned("real", (("columns",),), low=0),
    }

    def __init__(self, *, random_state=None):
        self.random_state = random_state

    @classmethod
    def _examples(cls):
        return [cls(random_state=0)]

    def _fit(self, X, constraints, rng):
        first, second = constraints.must_link.T
        self.scale_ = 1 / (1 + np.abs(X[first] - X[second]).sum(axis=0) / max(len(first), 1))

    def _transform(self, X):
        return X * self.scale_

    @property
    def _n_features_out(self):
        return len(self.scale_)
