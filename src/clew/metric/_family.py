"""The metric learners' shared door: `fit`, and `transform` or `embedding_`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from clew._base import ConstrainedEstimator
from clew._persistence import Learned
from clew.constraints import Constraints


class FittedMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ConstrainedEstimator):  # type: ignore[misc]
    """Base of all metric learners: each supplies `_fit` and `_n_features_out`."""

    _role = "metric learner"

    def _fit(self, X: Any, constraints: Constraints, rng: np.random.Generator) -> None:
        """Learn from checked rows; set learned attributes."""
        raise NotImplementedError  # pragma: no cover

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None) -> Self:
        """Learn a metric that agrees with the constraints.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
            Present for scikit-learn. Constraints are refused here: pass them by name.
        constraints : Constraints, labels, dict, frame, sparse matrix, path or None
            See `Constraints.of`.
        """
        with self._whole_or_not_at_all():
            given = self._checked(X, y, constraints)
            self._refuse_too_many_clusters(given.X.shape[0])
            self._fit(given.X, given.constraints, given.rng)
        return self


class MetricLearner(FittedMetric):
    """Base of the metric learners that also map new rows: each supplies `_transform`.

    `transform` maps rows to a space in which Euclidean distance is the learned metric.
    """

    def _transform(self, X: Any) -> npt.NDArray[Any]:
        """Map checked rows."""
        raise NotImplementedError  # pragma: no cover

    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Map rows to the space in which Euclidean distance is the learned metric.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        return self._transform(self._check_new_rows(X))


class EmbeddingLearner(FittedMetric):
    """Base of the metric learners that map only the fitted rows: `_fit` sets `embedding_`.

    As with `sklearn.manifold.TSNE`, there is `fit_transform` but no `transform`.
    """

    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **FittedMetric._learned_attributes,
        "embedding_": Learned("real", (("rows", "dimensions"),)),
    }
    embedding_: npt.NDArray[Any]

    def fit_transform(self, X: Any, y: Any = None, *, constraints: Any = None) -> npt.NDArray[Any]:
        """Learn a metric, and return the rows in the space in which Euclidean distance is that metric.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
            Present for scikit-learn. Constraints are refused here: pass them by name.
        constraints : Constraints, labels, dict, frame, sparse matrix, path or None
            See `Constraints.of`.
        """
        return self.fit(X, y, constraints=constraints).embedding_

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])
