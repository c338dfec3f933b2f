"""A Gaussian mixture with uncertain groups: the strength of a row is the probability that it has its group's label.

Law, Topchy and Jain 2004 (`law2004`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from clew._base import Capabilities
from clew._validation import Allowed, above, words
from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs
from clew.mixture._constrained_gaussian_mixture import as_closed
from clew.mixture._em import IntArray
from clew.mixture._family import MIXTURE_PARAMETERS, GaussianMixtureFamily
from clew.mixture._groups import GroupKnowledge, Sources, certain, read_sources
from clew.mixture._pairs import MixtureUnits
from clew.solvers.inference import EXACT_LIMIT


class SoftGroupMixture(GaussianMixtureFamily):
    r"""Gaussian mixture in which groups and must-links hold with a probability.

    A row in a group copies the group's label with a probability, the strength of the row. Otherwise its label is drawn
    from the mixing weights. Groups and must-links are overruled if the rows clearly contradict them. Use it when
    must-links or groups come from people or programs that make mistakes.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of Gaussians. "auto" tries increasing numbers and keeps the one with the lowest Bayesian information
        criterion.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        "full": each component has its own covariance matrix. "tied": all components share one. "diag": each has its
        own variance per column. "spherical": each has a single variance.
    knowledge_weight : float or "auto", default="auto"
        Weight of a row in a doubtful pair or a group; other rows have weight 1. Raise it if only a small share of the
        rows is in groups or pairs. 1 counts all rows once, as in [1]_. "auto" is the mean of 1 - 3 s (1 - s) over the
        strengths s: the more doubtful they are, the lower the weight.
    init : {"neighbourhoods", "k-means++"} or array of shape (n_clusters, n_features), default="neighbourhoods"
        Initial centres, as in `PCKMeans`. K-means with soft constraints turns them into the first clusters.
    n_init : int or "auto", default="auto"
        Number of starts, once without and once with the doubtful constraints. The result with the highest leave-one-out
        log-likelihood is returned. "auto" means ten for up to 10,000 rows, fewer for more, and one from 100,000 on.
    max_iter : int, default=300
        Largest number of EM rounds per start.
    tol : float, default=1e-3
        EM stops when the mean log-likelihood of a row rises by at most this.
    reg_covar : float, default=1e-6
        Added to the variances, in squared units of X. With 0, a singular covariance is refused.
    exact_limit : int, default=100,000
        Inference in a connected part is exact if it takes at most this many messages per EM round.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The most probable cluster of each row; known classes keep their numbers.
    probabilities_ : ndarray of shape (n_samples, n_clusters)
        Posterior probability of each component, given the rows and the knowledge.
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label of each component.
    n_clusters_ : int
    weights_ : ndarray of shape (n_clusters,)
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    covariances_ : ndarray
        As in scikit-learn: (k, d, d) for "full", (d, d) for "tied", (k, d) for "diag", (k,) for "spherical".
    cluster_sizes_ : ndarray of shape (n_clusters,)
    objective_ : float
        Minus the log-likelihood, with rows weighted by `knowledge_weight`.
    objective_history_ : ndarray
        The objective after each E-step; it never rises.
    bic_, aic_ : float
        Information criteria: the lower the better.
    n_iter_ : int
    n_exact_parts_, n_loopy_parts_ : int
        Number of connected parts of rows and groups with exact and with approximate posteriors.
    singular_components_ : ndarray
        Components that would be singular without `reg_covar`.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        Pairs that the labels break.

    Notes
    -----
    Constraints: known classes, must-groups and must-links of confidence 1 are hard. Must-links of a lower confidence c
    and soft groups are soft. Cannot-links are not used, as in the paper; broken ones are reported. For a row i with
    strengths :math:`\gamma_{il}` in groups with labels :math:`w_l`,

    .. math:: P(z_i = j) = \Big(1 - \sum_l \gamma_{il}\Big) \pi_j + \sum_l \gamma_{il} [w_l = j],
              \qquad P(w_l = j) = \pi_j,

    and EM follows Eq. 7 to 9 of [1]_. A pair is an anchor, the row with more pairs, and a partner that copies the
    anchor's label with probability c. If a row has several sources (pairs on two anchors, or a pair and a group), at
    most one of them is right: their odds :math:`c / (1 - c)` add up. Groups of strength 1 are must-groups. EM starts at
    the best mixture without doubtful constraints. Another start is returned only if its leave-one-out log-likelihood is
    higher by the penalty of one component in the Bayesian information criterion, because small gains are often
    spurious. Inference is exact on parts of rows and groups without loops, and on small parts with loops
    (`exact_limit`), which are cut by clamping labels. Elsewhere it is loopy belief propagation, counted in
    `n_loopy_parts_`. Time O(t n k d) for t rounds (times d for "full" and "tied") and O(k) per message; memory O(n k).

    References
    ----------
    .. [1] M. H. C. Law, A. Topchy, A. K. Jain (2004). "Clustering with soft and group constraints." SSPR/SPR.

    Examples
    --------
    >>> from clew import SoftGroupMixture
    >>> X = [[0.0], [1.0], [2.0], [7.0], [8.0], [9.0], [4.4]]
    >>> model = SoftGroupMixture(n_clusters=2, covariance_type="tied", random_state=0)
    >>> known = {"must_link": [(6, 1), (1, 4)], "must_link_confidence": [0.9, 0.6]}
    >>> labels = model.fit(X, constraints=known).labels_
    >>> (labels == labels[0]).tolist()
    [True, True, True, False, False, False, True]
    """

    _capabilities = Capabilities(
        labels="hard",
        must_link="hard",
        cannot_link="ignored",
        soft_groups="soft",
        prices_doubt=True,
        predicts=True,
        monotone=True,
    )
    _parameters: ClassVar[dict[str, Allowed]] = {**MIXTURE_PARAMETERS, "knowledge_weight": words("auto") | above(0)}

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        covariance_type: str = "full",
        knowledge_weight: float | str = "auto",
        init: Any = "neighbourhoods",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        exact_limit: int = EXACT_LIMIT,
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
        self.knowledge_weight = knowledge_weight

    @classmethod
    def _examples(cls) -> list[SoftGroupMixture]:
        return [
            cls(n_clusters=3, n_init=2, random_state=0),
            cls(n_clusters=3, covariance_type="tied", n_init=2, knowledge_weight=2.0, random_state=0),
        ]

    def _usable(self, constraints: Constraints) -> Constraints:
        self._warn_of_unused(constraints)
        certain(constraints).require_consistent()
        return constraints

    def _certain(self, constraints: Constraints) -> Constraints:
        return certain(constraints)

    def _knowledge(self, constraints: Constraints, clusters: IntArray) -> GroupKnowledge:
        closed = certain(constraints).closure()
        involved, sources = read_sources(constraints, closed)
        units = MixtureUnits(closed, clusters, involved)
        of_units = Sources(sparse.csr_array(sources.odds[units.units]), sources.own[units.units])
        weight = None if isinstance(self.knowledge_weight, str) else self.knowledge_weight
        return GroupKnowledge(units, of_units, weight, len(clusters), self.exact_limit)

    def _for_start(self, constraints: Constraints) -> Constraints:
        """Replace doubtful rows of soft groups by must-links to the strongest row of their group."""
        known = as_closed(certain(constraints).closure(), constraints)
        doubtful = constraints.must_link_confidence < 1
        stated = distinct_pairs(constraints.must_link[doubtful], constraints.must_link_confidence[doubtful])
        pairs, confidence = [stated.pairs], [constraints.must_link_confidence[doubtful][stated.best]]
        if constraints.soft_groups is not None:
            groups = sparse.csc_array(constraints.soft_groups)
            its_group = np.repeat(np.arange(groups.shape[1]), np.diff(groups.indptr))
            order = np.lexsort((groups.indices, -groups.data, its_group))
            rows, strength = groups.indices[order], groups.data[order]
            first = groups.indptr[:-1][its_group]
            its_confidence = strength * strength[first]
            doubted = (np.arange(len(rows)) != first) & (its_confidence < 1)  # certain groups are in `known`
            pairs.append(np.column_stack([rows[first], rows])[doubted].astype(np.int64))
            confidence.append(its_confidence[doubted])
        return known | Constraints(
            must_link=np.concatenate(pairs), must_link_confidence=np.concatenate(confidence), n_samples=len(known)
        )
