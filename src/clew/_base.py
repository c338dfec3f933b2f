"""The door that every estimator shares."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin

from clew._persistence import write_state
from clew._validation import Allowed, as_generator, check_parameters, check_rows, check_weights
from clew.constraints import Constraints
from clew.exceptions import DataError

Handling = Literal["hard", "soft", "seeds", "ignored"]


@dataclass(frozen=True)
class Capabilities:
    """What a method does with each kind of knowledge and data; tests, shell and docs read it.

    "hard" holds in every result, "soft" is priced, "seeds" only guides the start, "ignored" is not used.
    """

    labels: Handling
    must_link: Handling
    cannot_link: Handling
    sample_weight: bool = False
    sparse: bool = False
    predicts: bool = False
    monotone: bool = False


class ConstrainedClusterer(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Base of all estimators: checks parameters, rows and constraints once, then calls `_fit`."""

    _capabilities: ClassVar[Capabilities]
    _parameters: ClassVar[dict[str, Allowed]]
    n_clusters: int | str
    random_state: Any
    labels_: npt.NDArray[Any]

    @classmethod
    def _examples(cls) -> list[ConstrainedClusterer]:
        """Small instances for tests."""
        raise NotImplementedError  # pragma: no cover

    def _fit(
        self, X: Any, constraints: Constraints, weights: npt.NDArray[np.float64], rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Cluster checked rows; set learned attributes and return the labels."""
        raise NotImplementedError  # pragma: no cover

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None) -> Self:
        """Cluster the rows with what is known about them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
            Present for scikit-learn; knowledge comes in through `constraints` alone.
        constraints : Constraints, labels, dict, frame, sparse matrix, path or None
            See `Constraints.of`.
        """
        return self._fit_checked(X, constraints, None)

    def _fit_checked(self, X: Any, constraints: Any, sample_weight: Any) -> Self:
        before = dict(vars(self))
        try:
            self._fit_all(X, constraints, sample_weight)
        except BaseException:  # a failed or interrupted fit leaves the estimator as it was
            self.__dict__ = before
            raise
        return self

    def _fit_all(self, X: Any, constraints: Any, sample_weight: Any) -> None:
        check_parameters(self, self._parameters)
        X = check_rows(self, X, reset=True, accept_sparse=self._capabilities.sparse)
        n_samples = X.shape[0]
        if not isinstance(self.n_clusters, str) and self.n_clusters > n_samples:
            raise DataError(f"n_clusters={self.n_clusters}, but X has n_samples={n_samples} rows. Lower n_clusters.")
        known = self._usable(Constraints.of(constraints, n_samples=n_samples))
        weights = check_weights(sample_weight, n_samples)
        self.labels_ = self._fit(X, known, weights, as_generator(self.random_state))
        self.violated_must_link_, self.violated_cannot_link_ = known.violations(self.labels_)
        logging.getLogger(type(self).__module__).info(
            "%s: %d rows, %d must-links and %d cannot-links violated",
            type(self).__name__, n_samples, len(self.violated_must_link_), len(self.violated_cannot_link_),
        )  # fmt: skip

    def _usable(self, constraints: Constraints) -> Constraints:
        """The constraints this method works with; a hard method refuses contradictory ones."""
        if hasattr(self, "min_confidence"):
            constraints = constraints.at_least(self.min_confidence)
        if self._capabilities.must_link == "hard":
            constraints.require_consistent()
        return constraints

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a zip of arrays and JSON; `clew.load` reads it back. No code is stored."""
        write_state(path, type(self).__name__, self.get_params(deep=False), self._learned())

    def _learned(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._capabilities.sparse
        tags.transformer_tags = None if not hasattr(self, "transform") else tags.transformer_tags
        return tags


class WeightedClusterer(ConstrainedClusterer):
    """Base of estimators that honour `sample_weight`."""

    def fit(self, X: Any, y: Any = None, *, constraints: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows with what is known about them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
            Present for scikit-learn; knowledge comes in through `constraints` alone.
        constraints : Constraints, labels, dict, frame, sparse matrix, path or None
            See `Constraints.of`.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts; prices of pairs are not weighted.
        """
        return self._fit_checked(X, constraints, sample_weight)
