"""Make any clusterer use constraints: after each clustering, project the rows again with more weight on broken pairs.

Liu, Jin & Jain 2007 (`liu2007`); Truong & Battiti 2013 (`truong2013`), section 3.3, Eq. 38-42 and Algorithm 12.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from clew._base import Capabilities, quietly
from clew._persistence import Learned
from clew._validation import ESTIMATOR, NONE, RANDOM_STATE, Allowed, integer, number
from clew.constraints import Constraints
from clew.metric._family import MetricLearner
from clew.metric._pairs import LearningPairs, WeightedPairs, learning_pairs
from clew.partitional import SeededKMeans

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Eigenvalues below this share of the largest one are rounding errors.
_RANK_TOLERANCE = 1e-10
# A round that repeats the clusters of the last one has a = b, up to rounding errors below this.
_ROUNDING = 1e-9
# Shares of pairs are clipped to stay this far from 0 and 1, where the weight of a round would be infinite.
_LEAST_SHARE = 1e-6


class BoostCluster(MetricLearner):
    r"""Boosts any clusterer with constraints: each round puts more weight on the pairs that the last round broke.

    Each round projects the rows onto a few directions in which must-linked rows are similar and cannot-linked rows
    differ, and runs the clusterer there. Use it with a clusterer that does not take constraints itself.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters for k-means, which runs if `clusterer` is None.
    clusterer : estimator with `fit_predict`, default=None
        Any clusterer or pipeline. It is cloned for each round, and gets a seed if its ``random_state`` is None.
    n_components : int, default=None
        Largest number of directions. None: all directions with an eigenvalue above 0.
    max_iter : int, default=20
        Largest number of rounds.
    min_confidence : float, default=0.0
        Pairs with a lower confidence are left out.
    random_state : int, Generator or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Clusters of the last round, with the clusterer's own numbering.
    components_ : ndarray of shape (n_directions, n_features)
        The directions of the last round. `transform` projects rows onto them.
    objective_ : float
        ln L below, after the last round.
    objective_history_ : ndarray
        ln L at the start and after each round. It never rises.
    round_weights_ : ndarray
        The weight :math:`\alpha` of each round.
    n_iter_ : int
        Number of rounds, at least 1.

    Notes
    -----
    Constraints: labels and both kinds of pairs are soft. Classes and groups are replaced by all their pairs.
    Confidences are weights w. Each round lowers

    .. math:: L = \frac{1}{W_{ML}} \sum_{ML} w_{ij} e^{-K_{ij}} \; \frac{1}{W_{CL}} \sum_{CL} w_{ij} e^{K_{ij}}

    where W are the sums of the weights, and K, 0 at first, is the sum of :math:`\alpha` over the rounds that put the
    two rows into one cluster. P and Q are the terms of the two sums, written as symmetric matrices that sum to 1. The
    directions are the eigenvectors of :math:`X^T (P - Q) X` with the largest eigenvalues above 0, for centred X. Let a
    be the share of P, and b the share of Q, whose rows the clusterer puts together. Then
    :math:`\alpha = \frac{1}{2} \ln \frac{a (1 - b)}{b (1 - a)}`, and the round multiplies L by
    :math:`(\sqrt{ab} + \sqrt{(1 - a)(1 - b)})^2 < 1`. The rounds end when :math:`a \le b`, when no eigenvalue is above
    0, or when no pair is broken. Without constraints, or if the first round fails, the clusterer runs on X itself.

    The shares a and b are clipped to [1e-6, 1 - 1e-6], so that no weight is infinite. Time O(t (m d + d^3)) for t
    rounds and m pairs, and t runs of the clusterer; memory O(m d) beyond X.

    References
    ----------
    .. [1] Y. Liu, R. Jin, A. K. Jain (2007). "BoostCluster: boosting clustering by pairwise constraints." KDD 2007.
    .. [2] T. Truong, R. Battiti (2013). "A Survey of Semi-Supervised Clustering Algorithms: from a priori scheme to
       interactive scheme and open issues." Section 3.3, Eq. 38-42, Algorithm 12.

    Examples
    --------
    >>> from clew import BoostCluster
    >>> X = [[0.0, 0.0], [9.0, 0.0], [0.0, 1.0], [9.0, 1.0]]
    >>> known = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(0, 2)]}
    >>> model = BoostCluster(n_clusters=2, random_state=0).fit(X, constraints=known)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2])
    True
    """

    _capabilities = Capabilities(
        labels="soft", must_link="soft", cannot_link="soft", predicts=True, monotone=True, needs_both_kinds=True
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "clusterer": NONE | ESTIMATOR,
        "n_components": NONE | integer(1),
        "max_iter": integer(1),
        "min_confidence": number(0, 1),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **MetricLearner._learned_attributes,
        "labels_": Learned("integer", (("rows",),), low=-1),
        "components_": Learned("real", (("directions", "columns"),)),
        "objective_": Learned("real"),
        "objective_history_": Learned("real", ((None,),)),
        "round_weights_": Learned("real", ((None,),), low=0),
        "n_iter_": Learned("integer", low=1),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        clusterer: Any = None,
        n_components: int | None = None,
        max_iter: int = 20,
        min_confidence: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.clusterer = clusterer
        self.n_components = n_components
        self.max_iter = max_iter
        self.min_confidence = min_confidence
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[BoostCluster]:
        return [cls(n_clusters=3, random_state=0), cls(n_clusters=2, n_components=1, max_iter=3, random_state=0)]

    @property
    def capabilities(self) -> Capabilities:
        """As declared, but `n_clusters` is only needed if `clusterer` is None."""
        return replace(super().capabilities, needs_n_clusters=self.clusterer is None)

    def _fit(self, X: Any, constraints: Constraints, rng: np.random.Generator) -> None:
        rows = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
        pairs = learning_pairs(constraints, rng)
        if len(pairs.near.pairs) or len(pairs.far.pairs):
            pairs.require_both(type(self).__name__, rows)
        found = self._boosted(rows, pairs, rng)
        self.labels_ = np.asarray(found.labels)
        self.components_ = np.ascontiguousarray(found.projection.T, dtype=X.dtype)
        self.objective_, self.objective_history_ = float(found.history[-1]), found.history
        self.round_weights_ = found.round_weights
        self.n_iter_ = max(len(found.round_weights), 1)

    def _boosted(self, rows: FloatArray, pairs: LearningPairs, rng: np.random.Generator) -> Boosted:
        near, far = _Terms(pairs.near, 1.0), _Terms(pairs.far, -1.0)
        history: list[float] = [0.0]
        round_weights: list[float] = []
        labels, projection = None, np.eye(rows.shape[1])
        for _ in range(self.max_iter):
            found = directions(rows, near, far, self.n_components)
            if not found.shape[1]:
                break
            new = self._clusters(rows @ found, rng)
            shares = [near.share_together(new), far.share_together(new)]
            a, b = np.clip(shares, _LEAST_SHARE, 1 - _LEAST_SHARE)
            if a <= b + _ROUNDING:
                break
            labels, projection = new, found
            weight = float(np.log(a * (1 - b) / (b * (1 - a))) / 2)
            near.add(weight, new)
            far.add(weight, new)
            round_weights.append(weight)
            history.append(near.log_sum() + far.log_sum())
            if not near.broken(new) and not far.broken(new):
                break
        if labels is None:
            labels = self._clusters(rows, rng)
        return Boosted(labels, projection, np.array(history), np.array(round_weights))

    def _clusters(self, rows: FloatArray, rng: np.random.Generator) -> IntArray:
        model = SeededKMeans(int(self.n_clusters), n_init=5) if self.clusterer is None else clone(self.clusterer)
        if model.get_params(deep=False).get("random_state", 0) is None:
            model.set_params(random_state=int(rng.integers(2**31 - 1)))
        with quietly():
            return np.asarray(model.fit_predict(rows), dtype=np.int64)

    def _transform(self, X: Any) -> npt.NDArray[Any]:
        return np.asarray(X @ self.components_.T.astype(X.dtype, copy=False))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class Boosted(NamedTuple):
    """Clusters and directions of the last round, ln L after each round, and the weights of the rounds."""

    labels: IntArray
    projection: FloatArray
    history: FloatArray
    round_weights: FloatArray


class _Terms:
    """The terms of one of the two sums in L. The sign is 1 for must-links and -1 for cannot-links."""

    def __init__(self, pairs: WeightedPairs, sign: float) -> None:
        self.pairs = pairs.pairs
        self.sign = sign
        self.start = pairs.weights / pairs.weights.sum() if len(pairs.weights) else pairs.weights
        self.similarity = np.zeros(len(self.pairs))

    def terms(self) -> FloatArray:
        return np.asarray(self.start * np.exp(-self.sign * self.similarity))

    def log_sum(self) -> float:
        return float(np.log(self.terms().sum()))

    def shares(self) -> FloatArray:
        terms = self.terms()
        return np.asarray(terms / terms.sum())

    def together(self, labels: IntArray) -> npt.NDArray[np.bool_]:
        first, second = labels[self.pairs].T
        return np.asarray((first == second) & (first >= 0))

    def share_together(self, labels: IntArray) -> float:
        """The share of the terms whose rows are in one cluster."""
        return float(self.shares() @ self.together(labels))

    def add(self, weight: float, labels: IntArray) -> None:
        self.similarity += weight * self.together(labels)

    def broken(self, labels: IntArray) -> bool:
        together = self.together(labels)
        return bool((~together if self.sign > 0 else together).any())

    def product(self, rows: FloatArray) -> FloatArray:
        """Xᵀ P X for the symmetric matrix P of the shares."""
        first, second = self.pairs.T
        half = (rows[first] * self.shares()[:, None]).T @ rows[second]
        return np.asarray((half + half.T) / 2)


def directions(rows: FloatArray, near: _Terms, far: _Terms, n_components: int | None) -> FloatArray:
    """Eigenvectors of Xᵀ (P - Q) X with the largest eigenvalues above 0; the largest entry of each is positive."""
    if not len(near.pairs):
        return np.empty((rows.shape[1], 0))
    values, vectors = np.linalg.eigh(near.product(rows) - far.product(rows))
    kept = np.flatnonzero(values > _RANK_TOLERANCE * np.abs(values).max(initial=0))[::-1][:n_components]
    chosen = vectors[:, kept]
    largest = np.abs(chosen).argmax(axis=0)
    return np.asarray(chosen * np.sign(chosen[largest, np.arange(len(kept))]))
