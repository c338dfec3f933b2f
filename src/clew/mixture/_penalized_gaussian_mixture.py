"""A Gaussian mixture in which pairs are weighted by the log-odds of their confidence.

Lu and Leen 2004 (`lu2004`); survey (`truong2013`) section 3.1, Eq. 16.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from clew._base import Capabilities
from clew._persistence import Learned
from clew._validation import Allowed, integer
from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs
from clew.mixture._constrained_gaussian_mixture import (
    as_closed,
    hard_labels,
    require_labels,
    separated_units,
)
from clew.mixture._em import FloatArray, IntArray
from clew.mixture._family import MIXTURE_PARAMETERS, Fitted, GaussianMixtureFamily
from clew.mixture._pairs import MixtureUnits, PairKnowledge
from clew.solvers.coloring import WORK_LIMIT
from clew.solvers.inference import EXACT_LIMIT


class PenalizedGaussianMixture(GaussianMixtureFamily):
    r"""Gaussian mixture that weights every pair by its confidence (penalized probabilistic clustering).

    A pair of confidence c multiplies the prior of the assignments in which it holds by c / (1 - c). Certain pairs are
    hard, and a pair of confidence 0.5 has no effect. Use it when both kinds of pairs may be wrong and their confidences
    are known.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of Gaussians. "auto" tries increasing numbers and keeps the one with the lowest Bayesian information
        criterion.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        "full": each component has its own covariance matrix. "tied": all components share one. "diag": each has its
        own variance per column. "spherical": each has a single variance.
    init : {"neighbourhoods", "k-means++"} or array of shape (n_clusters, n_features), default="neighbourhoods"
        Initial centres, as in `PCKMeans`. K-means with soft constraints turns them into the first clusters.
    n_init : int or "auto", default="auto"
        Number of starts. The most likely result is returned or, with doubtful pairs, the one with the highest
        leave-one-out log-likelihood. "auto" means ten for up to 10,000 rows, fewer for more rows, and one from 100,000
        rows on.
    max_iter : int, default=300
        Largest number of EM rounds per start.
    tol : float, default=1e-3
        EM stops when the mean log-likelihood of a row rises by at most this.
    reg_covar : float, default=1e-6
        Added to the variances, in squared units of X. With 0, a singular covariance is refused.
    exact_limit : int, default=100,000
        Inference in a connected part is exact if it takes at most this many messages per EM round.
    work_limit : int
        Largest number of steps of the search for labels that satisfy all constraints. It counts work, not seconds.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    probabilities_ : ndarray of shape (n_samples, n_clusters)
        Posterior probability of each component, given the rows and the constraints.
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label of each component.
    n_clusters_ : int
    weights_ : ndarray of shape (n_clusters,)
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    covariances_ : ndarray
        As in scikit-learn: (k, d, d) for "full", (d, d) for "tied", (k, d) for "diag", (k,) for "spherical".
    cluster_sizes_ : ndarray of shape (n_clusters,)
    objective_ : float
        Minus the log-likelihood.
    objective_history_ : ndarray
        The objective after each E-step; it never rises.
    bic_, aic_ : float
        Information criteria: the lower the better.
    n_iter_ : int
    n_exact_parts_, n_loopy_parts_ : int
        Number of connected parts of the graph of pairs with exact and with approximate posteriors.
    singular_components_ : ndarray
        Components that would be singular without `reg_covar`.
    must_link_posterior_, cannot_link_posterior_ : ndarray of shape (n_pairs,)
        Posterior probability that the rows of each given pair are together.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        Only pairs with a confidence below 1 can be among them.

    Notes
    -----
    Constraints: known classes, groups and pairs of confidence 1 are hard, entailed ones included. Other pairs are soft.
    With :math:`w = \log c / (1 - c)` for must-links and its negative for cannot-links, the method maximises the
    likelihood of the rows under the prior

    .. math:: P(Z) = \frac{1}{\Omega} \prod_i \pi_{z_i} \exp \Big( \sum_{ij} w_{ij} [z_i = z_j] \Big).

    :math:`\Omega` depends on the weights :math:`\pi`, whose M-step is a concave problem, solved by a few ascent steps.
    The E-step uses the posterior given the rows; the survey's text has the prior. With certain pairs only, the method
    equals ``ConstrainedGaussianMixture(sampling="rows")``, and without pairs it is a plain mixture. Posteriors are
    exact on connected parts without loops, and on small parts with loops (`exact_limit`). On other parts they come from
    loopy belief propagation (`n_loopy_parts_`). Time O(t n k d) for t rounds (times d for "full" and "tied") and O(k)
    per message; memory O(n k).
    Departs from [1]_: belief propagation replaces mean field and Gibbs sampling, because mean field cannot enforce a
    hard cannot-link.

    References
    ----------
    .. [1] Z. Lu, T. K. Leen (2004). "Semi-supervised learning with penalized probabilistic clustering." NIPS 17.
    .. [2] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms: from a priori scheme to
       interactive scheme and open issues." Eq. 16.

    Examples
    --------
    >>> from clew import PenalizedGaussianMixture
    >>> X = [[0.0], [1.0], [2.0], [7.0], [8.0], [9.0], [4.4]]
    >>> known = {"must_link": [(1, 6)], "must_link_confidence": [0.9]}
    >>> model = PenalizedGaussianMixture(n_clusters=2, covariance_type="tied", random_state=0).fit(X, constraints=known)
    >>> bool(model.labels_[6] == model.labels_[1])
    True
    """

    _capabilities = Capabilities(
        labels="hard", must_link="hard", cannot_link="hard", prices_doubt=True, predicts=True, monotone=True
    )
    _parameters: ClassVar[dict[str, Allowed]] = {**MIXTURE_PARAMETERS, "work_limit": integer(0)}
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **GaussianMixtureFamily._learned_attributes,
        "must_link_posterior_": Learned("real", ((None,),), low=0, empty=True),
        "cannot_link_posterior_": Learned("real", ((None,),), low=0, empty=True),
    }

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        covariance_type: str = "full",
        init: Any = "neighbourhoods",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        exact_limit: int = EXACT_LIMIT,
        work_limit: int = WORK_LIMIT,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_clusters,
            covariance_type=covariance_type,
            init=init,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            reg_covar=reg_covar,
            exact_limit=exact_limit,
            random_state=random_state,
        )
        self.work_limit = work_limit

    @classmethod
    def _examples(cls) -> list[PenalizedGaussianMixture]:
        return [
            cls(n_clusters=3, n_init=2, random_state=0),
            cls(n_clusters=3, covariance_type="diag", n_init=2, random_state=0),
        ]

    def _certain(self, constraints: Constraints) -> Constraints:
        return constraints.at_least(1.0)

    def _knowledge(self, constraints: Constraints, clusters: IntArray) -> PairKnowledge:
        certain = constraints.at_least(1.0)
        closed = certain.closure()
        pairs, weights = doubtful_pairs(constraints)
        pairs = closed.component_of[pairs]
        apart = pairs[:, 0] != pairs[:, 1]
        units = MixtureUnits(closed, clusters, np.unique(pairs[apart]))
        require_labels(certain, closed, units, len(clusters), self.work_limit)
        hard = separated_units(closed, units)
        doubtful = np.sort(units.place[pairs[apart]], axis=1)
        stated, place = np.unique(np.concatenate([hard, doubtful]), axis=0, return_inverse=True)
        total = np.bincount(
            place.ravel(), weights=np.concatenate([np.full(len(hard), -np.inf), weights[apart]]), minlength=len(stated)
        )
        return PairKnowledge(
            units, stated, np.asarray(total, dtype=np.float64), units.sizes, len(clusters), self.exact_limit
        )

    def _for_start(self, constraints: Constraints) -> Constraints:
        certain = constraints.at_least(1.0)
        pairs, weights = doubtful_pairs(constraints)
        sure, apart = 1 / (1 + np.exp(-np.abs(weights))), weights < 0
        return as_closed(certain.closure(), certain) | Constraints(
            pairs[~apart],
            pairs[apart],
            must_link_confidence=sure[~apart],
            cannot_link_confidence=sure[apart],
            n_samples=len(certain),
        )

    def _decide(self, found: Fitted, constraints: Constraints) -> IntArray:
        certain = constraints.at_least(1.0)
        self.must_link_posterior_, self.cannot_link_posterior_ = (
            found.knowledge.together(certain.closure().component_of[pairs])
            for pairs in (constraints.must_link, constraints.cannot_link)
        )
        return hard_labels(found, certain, certain.closure(), self.work_limit)


def doubtful_pairs(constraints: Constraints) -> tuple[IntArray, FloatArray]:
    """Distinct pairs of each kind with a confidence below 1, and the log-odds that their rows are together."""
    found, weights = [], []
    for sign, pairs, confidence in (
        (1, constraints.must_link, constraints.must_link_confidence),
        (-1, constraints.cannot_link, constraints.cannot_link_confidence),
    ):
        below = confidence < 1
        stated = distinct_pairs(pairs[below], confidence[below])
        sure = confidence[below][stated.best]
        found.append(stated.pairs)
        weights.append(sign * np.log(sure / (1 - sure)))
    return np.concatenate(found), np.concatenate(weights)
