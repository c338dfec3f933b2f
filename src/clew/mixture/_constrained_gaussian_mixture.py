"""A Gaussian mixture whose hidden labels satisfy every constraint.

Shental et al. 2003 (`shental2003`); survey (`truong2013`) section 3.1.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from clew._base import Capabilities
from clew._validation import Allowed, integer, number, words
from clew.constraints import Closure, Constraints, require_coloring
from clew.constraints._arrays import distinct_pairs
from clew.graph._graph_propagation import hard_assignment
from clew.mixture._em import IntArray
from clew.mixture._family import MIXTURE_PARAMETERS, Fitted, GaussianMixtureFamily
from clew.mixture._pairs import MixtureUnits, PairKnowledge
from clew.solvers.coloring import WORK_LIMIT
from clew.solvers.inference import EXACT_LIMIT


class ConstrainedGaussianMixture(GaussianMixtureFamily):
    r"""Gaussian mixture fitted by EM over the assignments that satisfy every constraint.

    Must-linked rows share one hidden label, so the E-step stays in closed form. Cannot-links make hidden labels depend
    on each other; their posteriors come from inference on the graph of must-linked components. Use it for clusters that
    are ellipsoids of different sizes and shapes, when the constraints are certain and you want probabilities.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of Gaussians. "auto" tries increasing numbers and keeps the one with the lowest Bayesian information
        criterion.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        "full": each component has its own covariance matrix. "tied": all components share one. "diag": each has its
        own variance per column. "spherical": each has a single variance.
    sampling : {"components", "rows"}, default="components"
        How the label of must-linked rows is drawn: once for the whole component, or once for each row, given that all
        agree. With "rows", large components favour clusters of large weight more strongly.
    init : {"neighbourhoods", "k-means++"} or array of shape (n_clusters, n_features), default="neighbourhoods"
        Initial centres, as in `PCKMeans`. K-means with soft constraints turns them into the first clusters.
    n_init : int or "auto", default="auto"
        Number of starts; the most likely result is returned. "auto" means ten for up to 10,000 rows, fewer for more
        rows, and one from 100,000 rows on.
    max_iter : int, default=300
        Largest number of EM rounds per start.
    tol : float, default=1e-3
        EM stops when the mean log-likelihood of a row rises by at most this.
    reg_covar : float, default=1e-6
        Added to the variances, in squared units of X. With 0, a singular covariance is refused.
    min_confidence : float, default=0
        Pairs with a lower confidence are left out. All others are hard.
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
        Number of connected parts of the cannot-link graph with exact and with approximate posteriors.
    singular_components_ : ndarray
        Components that would be singular without `reg_covar`.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all hard, entailed ones included. With components u of must-linked rows and the set C of assignments
    that separate all cannot-linked components, it maximises

    .. math:: \log \sum_{z \in C} \prod_u \pi_{z_u} \prod_{i \in u} N(x_i; \mu_{z_u}, \Sigma_{z_u})
              - \log \sum_{z \in C} \prod_u \pi_{z_u}.

    Without cannot-links the second sum is 1. With them it depends on the weights, and the M-step of the weights is a
    concave problem, solved by a few ascent steps. A known class is an observed label. The log-likelihood never falls
    where inference is exact. If approximate inference or `reg_covar` makes it fall, the fit ends and the previous round
    is kept. Inference is exact on connected parts without loops, and on small parts with loops (`exact_limit`). On all
    other parts, belief propagation is an approximation: see `n_loopy_parts_`. Each row gets its most probable label;
    where these labels would break a cannot-link, a labelling that breaks none is used instead. A component that loses
    all its rows keeps its mean and covariance with weight 0, and a warning says that there are fewer clusters.

    Without constraints, EM is the same as in scikit-learn's GaussianMixture. Time O(t n k d) for t rounds (times d for
    "full" and "tied"), and O(k) per message on the cannot-links; memory O(n k).
    Departs from [1]_: the normaliser of the weights is kept, and loops are cut by conditioning instead of eliminated.

    References
    ----------
    .. [1] N. Shental, A. Bar-Hillel, T. Hertz, D. Weinshall (2003). "Computing Gaussian mixture models with EM using
       equivalence constraints." NIPS 16.
    .. [2] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms: from a priori scheme to
       interactive scheme and open issues." Section 3.1.

    Examples
    --------
    >>> from clew import ConstrainedGaussianMixture
    >>> X = [[0.0], [1.0], [2.0], [7.0], [8.0], [9.0], [4.4]]
    >>> model = ConstrainedGaussianMixture(n_clusters=2, covariance_type="tied", random_state=0)
    >>> model.fit(X, constraints={"must_link": [(0, 6)], "cannot_link": [(0, 5)]}).labels_
    array([0, 0, 0, 1, 1, 1, 0])
    >>> model.predict_proba([[1.0], [8.0]]).round(3)
    array([[1., 0.],
           [0., 1.]])
    """

    _capabilities = Capabilities(labels="hard", must_link="hard", cannot_link="hard", predicts=True, monotone=True)
    _parameters: ClassVar[dict[str, Allowed]] = {
        **MIXTURE_PARAMETERS,
        "sampling": words("components", "rows"),
        "min_confidence": number(0, 1),
        "work_limit": integer(0),
    }

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        covariance_type: str = "full",
        sampling: str = "components",
        init: Any = "neighbourhoods",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        min_confidence: float = 0.0,
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
        self.sampling = sampling
        self.min_confidence = min_confidence
        self.work_limit = work_limit

    @classmethod
    def _examples(cls) -> list[ConstrainedGaussianMixture]:
        return [
            cls(n_clusters=3, n_init=2, random_state=0),
            cls(n_clusters=3, covariance_type="tied", n_init=2, sampling="rows", random_state=0),
            cls(n_clusters=3, covariance_type="diag", n_init=2, random_state=0),
            cls(n_clusters=3, covariance_type="spherical", n_init=2, random_state=0),
        ]

    def _knowledge(self, constraints: Constraints, clusters: IntArray) -> PairKnowledge:
        closed = constraints.closure()
        units = MixtureUnits(closed, clusters, np.empty(0, dtype=np.int64))
        require_labels(constraints, closed, units, len(clusters), self.work_limit)
        pairs = separated_units(closed, units)
        draws = units.sizes if self.sampling == "rows" else np.ones(len(units.units), dtype=np.int64)
        return PairKnowledge(units, pairs, np.full(len(pairs), -np.inf), draws, len(clusters), self.exact_limit)

    def _for_start(self, constraints: Constraints) -> Constraints:
        return as_closed(constraints.closure(), constraints)

    def _decide(self, found: Fitted, constraints: Constraints) -> IntArray:
        return hard_labels(found, constraints, constraints.closure(), self.work_limit)


def require_labels(
    constraints: Constraints, closed: Closure, units: MixtureUnits, n_clusters: int, work_limit: int
) -> None:
    """Raise if no labelling with `n_clusters` clusters satisfies the constraints."""
    require_coloring(
        constraints,
        closed,
        units.units,
        n_clusters,
        fixed=units.fixed.astype(np.int32),
        preference=np.arange(n_clusters, dtype=np.int32)[None, :],
        work_limit=work_limit,
    )


def as_closed(closed: Closure, constraints: Constraints) -> Constraints:
    """Convert the closure back to constraints, so that equivalent constraints become equal."""
    groups = np.where(closed.sizes[closed.component_of] > 1, closed.component_of, -1)
    apart = closed.first_row[separated_components(closed)]
    return Constraints(cannot_link=apart, must_groups=groups, labels=constraints.labels, n_samples=len(groups))


def separated_units(closed: Closure, units: MixtureUnits) -> IntArray:
    """Distinct pairs of units that must differ. Pairs of units with known classes are left out: they differ anyway."""
    pairs = units.place[separated_components(closed)]
    return pairs[(units.fixed[pairs] < 0).any(axis=1)]


def separated_components(closed: Closure) -> IntArray:
    """Distinct pairs of components that must differ.

    Cannot-groups are expanded into all their pairs, which are few: a feasible group has at most `n_clusters` members.
    """
    graph = closed.graph
    first = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
    found = [np.column_stack([first, graph.edges])[first < graph.edges]]
    sizes = np.diff(graph.member_ptr)
    for size in np.unique(sizes).tolist():  # all cliques of one size at once
        one, two = np.triu_indices(size, 1)
        members = graph.members[graph.member_ptr[:-1][sizes == size][:, None] + np.arange(size)]
        found.append(np.stack([members[:, one], members[:, two]], axis=-1).reshape(-1, 2))
    return distinct_pairs(np.concatenate(found)).pairs


def hard_labels(found: Fitted, constraints: Constraints, closed: Closure, work_limit: int) -> IntArray:
    """The most probable component of each row. Constrained rows get components that satisfy all constraints."""
    units, shares = found.knowledge.units, found.mixture.expectation.shares
    labels = np.asarray(shares.argmax(axis=1))
    of_unit = hard_assignment(constraints, closed, units.units, units.fixed.astype(np.int32), shares, work_limit)
    labels[units.rows] = of_unit[units.unit_of]
    return labels
