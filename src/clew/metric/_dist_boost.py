"""Learn a distance by boosting: each round fits a constrained mixture, with more weight on rows of wrong pairs.

Hertz, Bar-Hillel & Weinshall 2004 (`hertz2004`); Truong & Battiti 2013 (`truong2013`), section 3.3, Algorithm 11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from clew._base import Capabilities
from clew._persistence import Learned
from clew._validation import RANDOM_STATE, Allowed, above, integer, number, words
from clew.constraints import Constraints
from clew.metric._family import MetricLearner
from clew.metric._pairs import LearningPairs, learning_pairs
from clew.mixture import ConstrainedGaussianMixture
from clew.mixture._em import Expectation, Mixture, MixtureKnowledge, normalise_rows
from clew.mixture._gaussians import Gaussians, with_factors
from clew.partitional._seeding import cluster_labels

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# r is at most 1 minus this, because at 1 the weight of a round would be infinite.
_LEAST_ERROR = 1e-6
# Number of mixtures that the first round tries until one has r > 0. Triplets do not constrain mixtures, so that the
# first mixture may well disagree with them.
_FIRST_TRIES = 10
# Largest number of EM rounds of a mixture, and the gain of the mean log-likelihood of a row that ends them.
_EM_ROUNDS, _EM_TOLERANCE = 100, 1e-3


class DistBoost(MetricLearner):
    r"""Learns a distance as a weighted vote of Gaussian mixtures, which are boosted on pairs that are still wrong.

    Two rows are near each other if many mixtures put them into one component. Clusters may be ellipsoids of different
    shapes, which no single Mahalanobis distance makes round. Use `pairwise` with a clusterer that takes distances
    (``ConstrainedKMedoids(metric="precomputed")``, ``ConstrainedAgglomerative(metric="precomputed")``), or `transform`
    before any other clusterer.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of Gaussians in each mixture.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Kind of the covariances, as in `ConstrainedGaussianMixture`. Use "diag" for many columns and few rows.
    unlabelled_share : float or "uniform", default=0.8
        Share of the initial weight for all pairs without a constraint together. "uniform" gives every pair of rows the
        same weight, as in the paper; a few constraints then hardly count.
    max_iter : int, default=20
        Largest number of rounds.
    n_init : int, default=1
        Number of starts of each mixture. The most likely one is used.
    reg_covar : float, default=1e-3
        Added to the variances of the mixtures, as a share of the variance of each column of X.
    min_confidence : float, default=0.0
        Pairs with a lower confidence are left out.
    random_state : int, Generator or None

    Attributes
    ----------
    round_weights_ : ndarray of shape (n_rounds,)
        The weight :math:`\alpha` of each round.
    mixture_weights_ : ndarray of shape (n_rounds, n_clusters)
        Weights of the Gaussians of each round.
    mixture_means_ : ndarray of shape (n_rounds, n_clusters, n_features)
        Means of the Gaussians, in units of `scale_` from `center_`.
    mixture_covariances_ : ndarray
        Their covariances, in the same units: one array per round, of the shape that `ConstrainedGaussianMixture` has.
    center_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation of each column of X; 1 instead of a deviation of 0.
    objective_ : float
        ln L below, after the last round.
    objective_history_ : ndarray
        ln L at the start and after each round. It never rises.
    n_iter_ : int
        Number of rounds, at least 1.

    Notes
    -----
    Constraints: labels, both kinds of pairs, and triplets are soft. Classes and groups are replaced by all their pairs,
    or by a sample of 100,000 if there are more. Must-links have y = 1, cannot-links y = -1. A mixture assigns each row
    to its most probable component, with a probability p. The weak hypothesis about two rows is
    :math:`h(i, j) = p_i p_j` if they share a component, and :math:`-p_i p_j` if not. It depends on the two rows alone,
    so that new rows have distances, too. Each round lowers

    .. math:: L = \sum_{ML, CL} w_{ij} e^{-y_{ij} f(i, j)} + w_* e^{-\sum_t \alpha_t},
              \qquad f = \sum_t \alpha_t h_t

    where w are the initial weights of the pairs, which sum to 1, and :math:`w_*` is the weight of all pairs without a
    constraint. The terms of L, divided by their sum, are the pair weights of the next round, and
    :math:`r = \sum w_{ij} y_{ij} h(i, j)` over the constraints gives :math:`\alpha = \frac{1}{2} \ln \frac{1 + r}{1 -
    r}`. The round multiplies L by :math:`\sqrt{1 - r^2}` or less. The rounds end when :math:`r \le 0`; the
    first round tries up to ten mixtures. The distance is

    .. math:: D(i, j) = \sum_t \alpha_t \frac{1 - h_t(i, j)}{2} \Big/ \sum_t \alpha_t,

    between 0 and 1. It is symmetric, but need not satisfy the triangle inequality.

    A triplet (a, b, c) counts as one pair whose y h is (h(a, b) - h(a, c)) / 2.

    The weight of a row is the sum of the weights of its pairs. In the mixture, a row whose weight is v times the mean
    counts as v must-linked copies. The mixtures satisfy all pairs, as in `ConstrainedGaussianMixture`. If no labels do,
    they satisfy the pairs that `Constraints.repair` keeps; all pairs count in r.

    `transform` gives a row a column per round and component, with
    :math:`p \sqrt{\alpha_t / (2 \sum_t \alpha_t)}` in the columns of its own components. The squared Euclidean
    distance of two rows there is D if all p are 1.

    Without constraints, or if no mixture of the first round has :math:`r > 0`, there is one mixture, and
    `objective_history_` has one entry. Time: t mixtures for t rounds; memory O(n k + m) beyond X for m pairs, and
    O(n^2) for `pairwise`. Thousands of cannot-links make the mixtures slow: a round takes about 7 seconds with 5,000
    random pairs of 2,000 rows. Because mixtures satisfy the pairs, wrong pairs do harm; leave out doubtful ones by
    `min_confidence`.

    Departs from [1]_: columns are scaled to variance 1, and the pairs without a constraint start with
    `unlabelled_share` of the weight. All pairs of 200 rows are 40,000, so that 50 constraints of equal weight have
    r < 0.003, and no round would differ from the first.

    References
    ----------
    .. [1] T. Hertz, A. Bar-Hillel, D. Weinshall (2004). "Boosting margin based distance functions for clustering."
       ICML 2004.
    .. [2] T. Truong, R. Battiti (2013). "A Survey of Semi-Supervised Clustering Algorithms: from a priori scheme to
       interactive scheme and open issues." Section 3.3, Algorithm 11.

    Examples
    --------
    >>> from clew import DistBoost
    >>> X = [[0.0, 0.0], [9.0, 0.0], [0.0, 1.0], [9.0, 1.0]]
    >>> known = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(0, 2)]}
    >>> DistBoost(n_clusters=2, random_state=0).fit(X, constraints=known).pairwise(X).round(2)
    array([[0., 0., 1., 1.],
           [0., 0., 1., 1.],
           [1., 1., 0., 0.],
           [1., 1., 0., 0.]])
    """

    _capabilities = Capabilities(
        labels="soft", must_link="soft", cannot_link="soft", triplets="soft", predicts=True, monotone=True,
    )  # fmt: skip
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "covariance_type": words("full", "tied", "diag", "spherical"),
        "unlabelled_share": words("uniform") | number(0, 1),
        "max_iter": integer(1),
        "n_init": integer(1),
        "reg_covar": above(0),
        "min_confidence": number(0, 1),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **MetricLearner._learned_attributes,
        "round_weights_": Learned("real", (("rounds",),), low=0),
        "mixture_weights_": Learned("real", (("rounds", "clusters"),), low=0),
        "mixture_means_": Learned("real", (("rounds", "clusters", "columns"),)),
        "mixture_covariances_": Learned(
            "real",
            (
                ("rounds", "clusters", "columns", "columns"),
                ("rounds", "columns", "columns"),
                ("rounds", "clusters", "columns"),
                ("rounds", "clusters"),
            ),
        ),
        "center_": Learned("real", (("columns",),)),
        "scale_": Learned("real", (("columns",),), low=0),
        "objective_": Learned("real"),
        "objective_history_": Learned("real", ((None,),)),
        "n_iter_": Learned("integer", low=1),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        covariance_type: str = "full",
        unlabelled_share: float | str = 0.8,
        max_iter: int = 20,
        n_init: int = 1,
        reg_covar: float = 1e-3,
        min_confidence: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.covariance_type = covariance_type
        self.unlabelled_share = unlabelled_share
        self.max_iter = max_iter
        self.n_init = n_init
        self.reg_covar = reg_covar
        self.min_confidence = min_confidence
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[DistBoost]:
        return [
            cls(n_clusters=3, max_iter=3, random_state=0),
            cls(n_clusters=2, covariance_type="tied", unlabelled_share="uniform", max_iter=2, random_state=0),
        ]

    def _fit(self, X: Any, constraints: Constraints, rng: np.random.Generator) -> None:
        self.center_ = X.mean(axis=0, dtype=np.float64)
        self.scale_ = X.std(axis=0, dtype=np.float64)
        self.scale_[self.scale_ == 0] = 1.0
        rows = (X - self.center_) / self.scale_
        n_clusters = int(self.n_clusters)
        cluster_labels(constraints.closure(), n_clusters)  # raises if there are more classes than clusters
        kept = constraints if constraints.check(n_clusters) else constraints.repair(n_clusters).constraints
        weak = WeightedMixture(
            n_clusters, covariance_type=self.covariance_type, n_init=self.n_init, max_iter=_EM_ROUNDS,
            tol=_EM_TOLERANCE, reg_covar=self.reg_covar,
        )  # fmt: skip
        share = None if isinstance(self.unlabelled_share, str) else float(self.unlabelled_share)
        weights = PairWeights(learning_pairs(constraints, rng), constraints.triplets, len(rows), share)
        found = dist_boost(rows, weights, lambda counts: weak.learn(rows, kept, counts, rng), self.max_iter)
        self.round_weights_ = found.round_weights
        self.mixture_weights_ = np.exp([mixture.log_weights for mixture in found.mixtures])
        self.mixture_means_ = np.array([mixture.gaussians.means for mixture in found.mixtures])
        self.mixture_covariances_ = np.array([mixture.gaussians.covariances for mixture in found.mixtures])
        self.objective_, self.objective_history_ = float(found.history[-1]), found.history
        self.n_iter_ = len(found.mixtures)

    def pairwise(self, X: Any, Y: Any = None) -> npt.NDArray[Any]:
        """Return the learned distances between rows, numbers from 0 to 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        Y : array-like of shape (n_others, n_features), default=None
            The other rows. None: the rows of X, each at distance 0 from itself.

        Returns
        -------
        ndarray of shape (n_samples, n_samples) or (n_samples, n_others)
        """
        rows = self._check_new_rows(X)
        found = self._votes(rows)
        others = found if Y is None else self._votes(self._check_new_rows(Y))
        # The product of an array with its own transpose is exactly symmetric, so the factor 2 comes after it.
        agreement = 2 * (found.components @ others.components.T) - found.rounds @ others.rounds.T
        distances = np.clip((1 - agreement) / 2, 0, 1).astype(rows.dtype)
        if Y is None:
            np.fill_diagonal(distances, 0)
        return distances

    def _transform(self, X: Any) -> npt.NDArray[Any]:
        return np.asarray(self._votes(X).components / np.sqrt(2), dtype=X.dtype)

    def _votes(self, X: Any) -> Votes:
        """Probabilities of the rows' own components, times the roots of the rounds' shares of the weight."""
        rows = (X - self.center_) / self.scale_
        n_rounds, n_clusters = self.mixture_weights_.shape
        components, rounds = np.zeros((len(rows), n_rounds, n_clusters)), np.empty((len(rows), n_rounds))
        roots = np.sqrt(self.round_weights_ / self.round_weights_.sum())
        for place, root in enumerate(roots):
            gaussians = with_factors(self.covariance_type, self.mixture_means_[place], self.mixture_covariances_[place])
            log_weights = np.log(np.maximum(self.mixture_weights_[place], np.finfo(np.float64).tiny))
            found = assignment(gaussians, log_weights, rows)
            rounds[:, place] = root * found.probabilities
            components[np.arange(len(rows)), place, found.labels] = rounds[:, place]
        return Votes(components.reshape(len(rows), -1), rounds)

    @property
    def _n_features_out(self) -> int:
        return int(self.mixture_weights_.size)


class Boosted(NamedTuple):
    """The mixtures of the rounds, their weights, and ln L at the start and after each round."""

    mixtures: list[Mixture]
    round_weights: FloatArray
    history: FloatArray


def dist_boost(
    rows: FloatArray, weights: PairWeights, learn: Callable[[FloatArray], Mixture], max_iter: int
) -> Boosted:
    """Boost mixtures that `learn` fits to weighted rows. If no round has r > 0, the first mixture is kept."""
    mixtures: list[Mixture] = []
    refused: list[Mixture] = []
    round_weights: list[float] = []
    history = [0.0]
    n_tries = _FIRST_TRIES if len(weights.labelled) else 1
    while len(mixtures) < max_iter:
        mixture = learn(weights.of_rows())
        margins = weights.margins(assignment(mixture.gaussians, mixture.log_weights, rows))
        r = weights.agreement(margins)
        if r <= 0:
            refused.append(mixture)
            if mixtures or len(refused) == n_tries:
                break
            continue
        mixtures.append(mixture)
        round_weights.append(float(np.arctanh(min(r, 1 - _LEAST_ERROR))))  # ½ ln((1 + r) / (1 - r))
        history.append(history[-1] + float(np.log(weights.update(round_weights[-1], margins))))
    return Boosted(mixtures or refused[:1], np.array(round_weights or [1.0]), np.array(history))


class Votes(NamedTuple):
    """Two matrices A (a column per round and component) and B (a column per round): Σ α h / Σ α is 2 A Aᵀ - B Bᵀ."""

    components: FloatArray
    rounds: FloatArray


class Assignment(NamedTuple):
    """The most probable component of each row, and its probability."""

    labels: IntArray
    probabilities: FloatArray

    def hypothesis(self, pairs: IntArray) -> FloatArray:
        """h of each pair: the product of the probabilities, below 0 if the components differ."""
        first, second = pairs.T
        sign = np.where(self.labels[first] == self.labels[second], 1.0, -1.0)
        return np.asarray(sign * self.probabilities[first] * self.probabilities[second])


def assignment(gaussians: Gaussians, log_weights: FloatArray, rows: FloatArray) -> Assignment:
    """Assign rows to the components of a mixture; constraints are not used."""
    shares = gaussians.log_densities(rows)
    normalise_rows(shares, log_weights)
    labels = shares.argmax(axis=1)
    return Assignment(labels, shares[np.arange(len(rows)), labels])


class PairWeights:
    """Weights of all ordered pairs of rows, which sum to 1. All pairs without a constraint have the same weight.

    Example of three rows with the must-link (0, 1) and ``share=0.5``: `labelled` = [0.5] for the pairs (0, 1) and (1,
    0) together, `unlabelled` = 0.5 for the other seven pairs together. The rows have the weights 0.25 + 1/7, 0.25 + 1/7
    and 3/14.
    """

    def __init__(self, known: LearningPairs, triplets: IntArray, n_rows: int, share: float | None) -> None:
        self._pairs = np.concatenate([known.near.pairs, known.far.pairs])
        self._signs = np.repeat([1.0, -1.0], [len(known.near.pairs), len(known.far.pairs)])
        self._triplets, self._n_rows = triplets, n_rows
        # Number of ordered pairs without a constraint that start with each row. A pair of both kinds counts once.
        named = np.unique(self._pairs, axis=0)
        self._others = n_rows - np.bincount(named.ravel(), minlength=n_rows)
        given = np.concatenate([known.near.weights, known.far.weights, np.ones(len(triplets))])
        n_others = self._others.sum()
        if not len(given):
            share = 1.0
        elif share is None:
            share = n_others / (n_others + 2 * given.sum())
        self.labelled = (1 - share) * given / given.sum() if len(given) else given
        self.unlabelled = float(share)

    def margins(self, found: Assignment) -> FloatArray:
        """y h of each constraint; for a triplet, half the difference of the h of its two pairs."""
        of_pairs = self._signs * found.hypothesis(self._pairs)
        near, far = found.hypothesis(self._triplets[:, :2]), found.hypothesis(self._triplets[:, ::2])
        return np.concatenate([of_pairs, (near - far) / 2])

    def agreement(self, margins: FloatArray) -> float:
        """The sum r of the margins, weighted."""
        return float(self.labelled @ margins)

    def update(self, round_weight: float, margins: FloatArray) -> float:
        """Lower the weights of constraints that hold, and return the sum of the weights before they are normalised."""
        self.labelled = self.labelled * np.exp(-round_weight * margins)
        self.unlabelled *= np.exp(-round_weight)
        total = float(self.labelled.sum()) + self.unlabelled
        self.labelled, self.unlabelled = self.labelled / total, self.unlabelled / total
        return total

    def of_rows(self) -> FloatArray:
        """The weight of each row: the sum over all pairs that start with it, times the number of rows."""
        n_pairs = len(self._pairs)
        half = self.labelled[:n_pairs] / 2
        # The weight of a triplet is split between its pairs (a, b) and (a, c), each in both directions.
        of_triplets = np.outer(self.labelled[n_pairs:], [0.5, 0.25, 0.25])
        weights = np.zeros(self._n_rows)
        np.add.at(weights, self._pairs, half[:, None])
        np.add.at(weights, self._triplets, of_triplets)
        return np.asarray(self._n_rows * (weights + self.unlabelled * self._others / self._others.sum()))


class WeightedMixture(ConstrainedGaussianMixture):
    """A constrained mixture in which a row of weight v counts as v must-linked copies of it."""

    def learn(
        self, rows: FloatArray, constraints: Constraints, counts: FloatArray, rng: np.random.Generator
    ) -> Mixture:
        """Fit the mixture to rows that count `counts` times each."""
        self._counts = counts[:, None]
        origin = np.zeros(rows.shape[1])
        return self._best_start(rows, origin, constraints, int(self.n_clusters), rng).mixture

    def _knowledge(self, constraints: Constraints, clusters: IntArray) -> Any:
        return CountedRows(super()._knowledge(constraints, clusters), self._counts)

    def _climbed(self, rows: FloatArray, knowledge: MixtureKnowledge, shares: FloatArray) -> Mixture:
        return super()._climbed(rows, knowledge, shares * self._counts)


class CountedRows:
    """Constraints of a mixture whose rows count a given number of times each, under one hidden label."""

    def __init__(self, known: MixtureKnowledge, counts: FloatArray) -> None:
        self._known, self._counts = known, counts
        self.n_exact, self.n_loopy = known.n_exact, known.n_loopy
        self.log_weights = known.log_weights

    def expect(self, log_densities: FloatArray, log_weights: FloatArray) -> Expectation:
        """The E-step: copies of a row multiply its log-density."""
        found = self._known.expect(log_densities * self._counts, log_weights)
        return found._replace(weighted=found.shares * self._counts)
