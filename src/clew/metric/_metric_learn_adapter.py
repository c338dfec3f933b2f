"""Use learners of the metric-learn package like the metric learners of clew.

De Vazelhes et al. 2020 (`devazelhes2020`).
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from clew._base import Capabilities
from clew._persistence import Learned
from clew._validation import RANDOM_STATE, Allowed, number
from clew.constraints import Constraints
from clew.exceptions import ConstraintError, DataTypeError
from clew.metric._family import MetricLearner
from clew.metric._pairs import learning_pairs

IntArray = npt.NDArray[np.int64]


class MetricLearnAdapter(MetricLearner):
    """Fits a learner of the metric-learn package with constraints, and transforms rows with its metric.

    The learner gets the constraints in the form that it takes: pairs (ITML, MMC, SDML), triplets (SCML), quadruplets
    (LSML), chunks of must-linked rows (RCA), or labels (NCA, LMNN, LFDA and all others).

    Parameters
    ----------
    learner : estimator of metric-learn
        It is cloned, and gets a seed if its ``random_state`` is None.
    min_confidence : float, default=0.0
        Pairs with a lower confidence are left out.
    random_state : int, Generator or None

    Attributes
    ----------
    learner_ : estimator
        The fitted learner.
    components_ : ndarray of shape (n_directions, n_features)
        Its linear map: `transform` returns ``X @ components_.T``.

    Notes
    -----
    Constraints: the learner decides how to use them. Classes and groups are replaced by all their pairs, or by a sample
    of 100,000 if there are more; entailed pairs are not added. Confidences above `min_confidence` all count the same,
    because metric-learn has no weights. Quadruplets (a, b, c, d), "a and b are nearer than c and d", are made of
    triplets (a, b, a, c), and of each must-link with a cannot-link in turn. Nothing is imported from metric-learn, so
    any estimator with the same methods can be used. Version 0.7 of metric-learn needs scikit-learn below 1.8.

    References
    ----------
    .. [1] W. de Vazelhes, C. J. Carey, Y. Tang, N. Vauquier, A. Bellet (2020). "metric-learn: Metric learning
       algorithms in Python." Journal of Machine Learning Research 21(138).

    Examples
    --------
    >>> from clew import MetricLearnAdapter
    >>> from metric_learn import ITML  # doctest: +SKIP
    >>> known = {"must_link": [(0, 1)], "cannot_link": [(0, 2)]}
    >>> X = [[0.0, 0.0], [9.0, 0.0], [0.0, 1.0]]
    >>> MetricLearnAdapter(ITML()).fit_transform(X, constraints=known)  # doctest: +SKIP
    """

    _capabilities = Capabilities(
        labels="soft", must_link="soft", cannot_link="soft", triplets="soft", predicts=True, needs_n_clusters=False
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "learner": Allowed(
            "a learner of metric-learn, with fit and transform",
            lambda value: hasattr(value, "fit") and hasattr(value, "transform") and hasattr(value, "get_params"),
        ),
        "min_confidence": number(0, 1),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **MetricLearner._learned_attributes,
        "components_": Learned("real", (("directions", "columns"),)),
        "learner_": Learned("estimator"),
    }

    def __init__(self, learner: Any, *, min_confidence: float = 0.0, random_state: Any = None) -> None:
        self.learner = learner
        self.min_confidence = min_confidence
        self.random_state = random_state

    def _fit(self, X: Any, constraints: Constraints, rng: np.random.Generator) -> None:
        rows = X.astype(np.float64)
        learner = clone(self.learner)
        if learner.get_params(deep=False).get("random_state", 0) is None:
            learner.set_params(random_state=int(rng.integers(2**31 - 1)))
        arguments = arguments_for(learner, rows, constraints, rng)
        try:
            learner.fit(*arguments)
        except TypeError as error:
            raise DataTypeError(
                f"{type(learner).__name__} failed: {error}. If this is metric-learn 0.7, it needs scikit-learn below "
                "1.8."
            ) from error
        self.learner_ = learner
        self.components_ = np.ascontiguousarray(learner.components_, dtype=X.dtype)

    def _transform(self, X: Any) -> npt.NDArray[Any]:
        return np.asarray(X @ self.components_.T.astype(X.dtype, copy=False))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def arguments_for(learner: Any, rows: Any, constraints: Constraints, rng: np.random.Generator) -> tuple[Any, ...]:
    """The arguments of the learner's `fit`, by name."""
    name, (first, *others) = type(learner).__name__, inspect.signature(learner.fit).parameters
    if "chunks" in others:
        return rows, _chunks(name, constraints)
    pairs = learning_pairs(constraints, rng)
    near, far, triplets = pairs.near.pairs, pairs.far.pairs, constraints.triplets
    if first == "pairs":
        both = np.concatenate([near, far])
        _require(len(both) > 0, name, "pairs", "must-links and cannot-links, or labels")
        return rows[both], np.repeat([1, -1], [len(near), len(far)])
    if first == "triplets":
        _require(len(triplets) > 0, name, "triplets", "triplets")
        return (rows[triplets],)
    if first == "quadruplets":
        quadruplets = _quadruplets(near, far, triplets)
        _require(len(quadruplets) > 0, name, "quadruplets", "pairs of both kinds, or triplets")
        return (rows[quadruplets],)
    return _labelled(name, rows, constraints)


def _require(has_some: bool, name: str, kind: str, needed: str) -> None:
    if not has_some:
        raise ConstraintError(f"{name} learns from {kind}, and constraints hold none. Add {needed}.")


def _chunks(name: str, constraints: Constraints) -> IntArray:
    """The number of each row's must-linked component; -1 for rows that are alone."""
    closed = constraints.closure()
    chunks = np.where(closed.sizes[closed.component_of] > 1, closed.component_of, -1)
    _require(bool((chunks >= 0).any()), name, "chunks of must-linked rows", "must-links")
    numbers = np.unique(chunks[chunks >= 0], return_inverse=True)[1]
    chunks[chunks >= 0] = numbers
    return np.asarray(chunks)


def _labelled(name: str, rows: Any, constraints: Constraints) -> tuple[Any, ...]:
    labels = constraints.labels
    known = np.empty(0, dtype=np.int64) if labels is None else np.flatnonzero(labels >= 0)
    _require(labels is not None and len(np.unique(labels[known])) > 1, name, "labels of two classes or more", "labels")
    assert labels is not None
    return rows[known], labels[known]


def _quadruplets(near: IntArray, far: IntArray, triplets: IntArray) -> IntArray:
    """Quadruplets (a, b, c, d): a and b should be nearer to each other than c and d."""
    found = triplets[:, [0, 1, 0, 2]]
    if not len(near) or not len(far):
        return found
    n_longer = max(len(near), len(far))
    turns = np.hstack([np.resize(near, (n_longer, 2)), np.resize(far, (n_longer, 2))])
    return np.concatenate([found, turns])
