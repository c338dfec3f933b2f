"""Code shared by all Gaussian mixtures: parameters, starts, learned attributes, `predict` and `predict_proba`."""

from __future__ import annotations

import logging
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from clew._base import ConstrainedClusterer, warn_caller
from clew._persistence import Learned
from clew._validation import RANDOM_STATE, Allowed, array_like, integer, number, words
from clew.constraints import Constraints
from clew.exceptions import InfeasibleConstraintsError, ParameterError
from clew.mixture._em import FloatArray, IntArray, Mixture, MixtureKnowledge, expectation_maximization, normalise_rows
from clew.mixture._gaussians import Gaussians, with_factors
from clew.partitional._family import SAME_OBJECTIVE, n_starts
from clew.partitional._geometry import Problem
from clew.partitional._pck_means import pck_means
from clew.partitional._seeding import cluster_labels, initial_centers
from clew.solvers.inference import EXACT_LIMIT

MIXTURE_PARAMETERS: dict[str, Allowed] = {
    "n_clusters": words("auto") | integer(1),
    "covariance_type": words("full", "tied", "diag", "spherical"),
    "init": words("neighbourhoods", "k-means++") | array_like(),
    "n_init": words("auto") | integer(1),
    "max_iter": integer(1),
    "tol": number(0),
    "reg_covar": number(0),
    "exact_limit": integer(0),
    "random_state": RANDOM_STATE,
}
# Largest number of k-means rounds that find the initial shares of the components.
_START_ROUNDS = 100
# With n_clusters="auto", the search ends after this many numbers without a lower criterion.
_NUMBERS_WITHOUT_GAIN = 3
# A component with a variance of at most this many times reg_covar in some direction would be singular without it.
_HELD_UP = 2.0


class Fitted(NamedTuple):
    """The mixture that was kept, and the knowledge from which its posteriors were computed."""

    mixture: Mixture
    knowledge: Any
    clusters: IntArray


class GaussianMixtureFamily(ConstrainedClusterer):
    """Base class of the Gaussian mixtures. Subclasses implement `_knowledge` and may override `_decide`."""

    _parameters: ClassVar[dict[str, Allowed]] = MIXTURE_PARAMETERS
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **ConstrainedClusterer._learned_attributes,
        "n_clusters_": Learned("integer", low=1, counts="clusters"),
        "cluster_centers_": Learned("real", (("clusters", "columns"),)),
        "weights_": Learned("real", (("clusters",),), low=0),
        "covariances_": Learned(
            "real", (("clusters", "columns", "columns"), ("columns", "columns"), ("clusters", "columns"), ("clusters",))
        ),
        "probabilities_": Learned("real", (("rows", "clusters"),), low=0),
        "objective_": Learned("real"),
        "objective_history_": Learned("real", ((None,),)),
        "bic_": Learned("real"),
        "aic_": Learned("real"),
        "n_iter_": Learned("integer", low=0),
        "n_exact_parts_": Learned("integer", low=0),
        "n_loopy_parts_": Learned("integer", low=0),
        "singular_components_": Learned("integer", ((None,),), low=0, empty=True),
    }
    cluster_centers_: npt.NDArray[Any]
    covariances_: FloatArray
    weights_: FloatArray

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
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.covariance_type = covariance_type
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.reg_covar = reg_covar
        self.exact_limit = exact_limit
        self.random_state = random_state

    def _knowledge(self, constraints: Constraints, clusters: IntArray) -> MixtureKnowledge:
        """The constraints as a prior over the components of all rows."""
        raise NotImplementedError  # pragma: no cover

    def _decide(self, found: Fitted, constraints: Constraints) -> IntArray:
        """The component of each row."""
        return np.asarray(found.mixture.expectation.shares.argmax(axis=1))

    def _for_start(self, constraints: Constraints) -> Constraints:
        """The constraints in the form that k-means uses to find the initial clusters."""
        return constraints

    def _certain(self, constraints: Constraints) -> Constraints:
        """The certain constraints, which determine the known classes and the smallest number of clusters."""
        return constraints

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        shift = X.mean(axis=0, dtype=np.float64)
        rows = np.ascontiguousarray(X - shift, dtype=np.float64)
        if isinstance(self.n_clusters, str):
            found = self._best_number(rows, shift, constraints, rng)
        else:
            found = self._best_start(rows, shift, constraints, self.n_clusters, rng)
        self._keep(found, shift, X.dtype)
        chosen = self._decide(found, constraints)
        self.cluster_sizes_ = np.bincount(chosen, minlength=len(found.clusters))
        return found.clusters[chosen]

    def _best_start(
        self, rows: FloatArray, shift: FloatArray, constraints: Constraints, n_clusters: int, rng: np.random.Generator
    ) -> Fitted:
        """The mixture of the best of several starts.

        With doubtful constraints, EM starts at the best mixture without them. A few wrong pairs can favour clusters
        that the rows do not support, so another start must be better by a margin (`_best_of`).
        """
        certain = self._certain(constraints)
        clusters = cluster_labels(certain.closure(), n_clusters)
        init = self.init if isinstance(self.init, str) else np.asarray(self.init) - shift
        doubts = self.capabilities.prices_doubt and _has_doubts(constraints)
        knowledge = self._knowledge(constraints, clusters)
        first: Mixture | None = None
        if doubts and isinstance(init, str):
            known = self._knowledge(certain, clusters)
            without = self._best_of(rows, known, self._for_start(certain), clusters, init, rng, doubts=False)
            first = self._climbed(rows, knowledge, without.expectation.shares)
        best = self._best_of(
            rows, knowledge, self._for_start(constraints), clusters, init, rng, doubts=doubts, first=first
        )
        # `knowledge` holds the posteriors of its last E-step, which may belong to another start.
        knowledge.expect(best.gaussians.log_densities(rows), best.log_weights)
        return Fitted(best, knowledge, clusters)

    def _best_of(
        self,
        rows: FloatArray,
        knowledge: MixtureKnowledge,
        guide: Constraints,
        clusters: IntArray,
        init: Any,
        rng: np.random.Generator,
        *,
        doubts: bool,
        first: Mixture | None = None,
    ) -> Mixture:
        """Return the most likely start; with doubtful constraints, the one with the highest leave-one-out likelihood.

        Another start replaces `first` only if it is better by the penalty of one component in the Bayesian information
        criterion. The constraints `guide` determine the initial clusters.
        """
        problems, closed = [Problem.prepare(rows, np.empty(0), "euclidean", None)], guide.closure()
        if doubts and isinstance(init, str):
            init = "k-means++"  # rows that are joined by doubtful pairs do not form a neighbourhood
            if len(guide.must_link):
                problems.insert(0, Problem.prepare(_whitened(rows, guide), np.empty(0), "euclidean", None))
        n_attempts = n_starts(self.n_init, len(rows)) if isinstance(init, str) else 1
        best, highest = first, -np.inf
        if first is not None:
            highest = first.left_out_log_likelihood(rows, knowledge)
            highest += _n_parameters(first) / len(clusters) * np.log(len(rows)) / 2
        for attempt in range(n_attempts):
            problem = problems[attempt % len(problems)]
            start = initial_centers(
                problem, closed, clusters, init, "k-means++", rng, again=attempt > 0, anew=attempt > 0
            )
            labels = pck_means(
                problem, guide, start, rng, problem.mean_cost, entailed=not doubts, max_iter=_START_ROUNDS, tol=1e-4
            ).labels
            found = self._climbed(rows, knowledge, np.eye(len(clusters))[labels])
            if best is None and n_attempts == 1:
                return found
            its_value = found.left_out_log_likelihood(rows, knowledge) if doubts else found.log_likelihood
            if best is None or its_value - highest > SAME_OBJECTIVE * abs(its_value):
                best, highest = found, its_value
        assert best is not None
        return best

    def _climbed(self, rows: FloatArray, knowledge: MixtureKnowledge, shares: FloatArray) -> Mixture:
        """Run EM; the first M-step uses `shares`."""
        return expectation_maximization(
            rows,
            knowledge,
            shares,
            self.covariance_type,
            reg_covar=self.reg_covar,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _best_number(
        self, rows: FloatArray, shift: FloatArray, constraints: Constraints, rng: np.random.Generator
    ) -> Fitted:
        """Try increasing numbers of clusters; return the mixture with the lowest Bayesian information criterion."""
        if not isinstance(self.init, str):
            raise ParameterError(
                f"n_clusters='auto' in {type(self).__name__}: init is an array, which fixes the number of clusters. "
                "Set n_clusters to a number."
            )
        known = self._certain(constraints).closure().labels
        least = max(1, len(np.unique(known[known >= 0])))
        most = max(least, int(np.ceil(np.sqrt(len(rows)))))
        lowest, best, since = np.inf, None, 0
        refusal: InfeasibleConstraintsError | None = None
        for n_clusters in range(least, most + 1):
            try:
                found = self._best_start(rows, shift, constraints, n_clusters, rng)
                self._decide(found, constraints)
            except InfeasibleConstraintsError as error:
                refusal = error
                continue
            criterion = _criteria(found.mixture, len(rows))[0]
            since += 1
            if best is None or criterion < lowest:
                lowest, best, since = criterion, found, 0
            if since == _NUMBERS_WITHOUT_GAIN:
                break
        if best is None:
            assert refusal is not None
            raise refusal
        return best

    def _keep(self, found: Fitted, shift: FloatArray, dtype: npt.DTypeLike) -> None:
        """Set the learned attributes that all mixtures have."""
        mixture = found.mixture
        if not mixture.converged:
            warn_caller(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} with a gain of {mixture.change:.1g} > "
                f"tol={self.tol:g} in the mean log-likelihood. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        self.n_clusters_ = len(found.clusters)
        self.cluster_labels_ = found.clusters
        self.cluster_centers_ = (mixture.gaussians.means + shift).astype(dtype)
        self.covariances_ = mixture.gaussians.covariances
        self.weights_ = np.exp(mixture.log_weights)
        self.probabilities_ = mixture.expectation.shares
        self.objective_history_ = -np.array(mixture.history)
        self.objective_ = float(self.objective_history_[-1])
        self.bic_, self.aic_ = _criteria(mixture, len(self.probabilities_))
        self.n_iter_ = mixture.n_iter
        self.n_exact_parts_, self.n_loopy_parts_ = found.knowledge.n_exact, found.knowledge.n_loopy
        self.singular_components_ = _singular(mixture.gaussians, self.reg_covar)
        if len(self.singular_components_):
            logging.getLogger(type(self).__module__).info(
                "%s: components %s would be singular without reg_covar=%g",
                type(self).__name__, self.singular_components_.tolist(), self.reg_covar,
            )  # fmt: skip

    def _why_empty(self, X: Any) -> str:
        if float(X.var(axis=0, dtype=np.float64).max()) <= self.reg_covar:
            return f"no column of X has a variance above reg_covar={self.reg_covar:g}. Scale X, or lower reg_covar."
        return "no row is most probable in the other components. Lower n_clusters, or try another random_state."

    def _gaussians(self) -> Gaussians:
        return with_factors(self.covariance_type, self.cluster_centers_.astype(np.float64), self.covariances_)

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each component for each row; constraints are not used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Columns in the order of `cluster_labels_`.
        """
        rows = np.asarray(self._check_new_rows(X), dtype=np.float64)
        scores = self._gaussians().log_densities(rows)
        normalise_rows(scores, np.log(np.maximum(self.weights_, np.finfo(np.float64).tiny)))
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of the most probable component of each row; constraints are not used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        components = self.predict_proba(X).argmax(axis=1)
        return self._with_class_names(self.cluster_labels_[components])


def _has_doubts(constraints: Constraints) -> bool:
    """Whether any pair or row in a soft group is neither certain nor of strength 0."""
    strengths = [constraints.must_link_confidence, constraints.cannot_link_confidence]
    if constraints.soft_groups is not None:
        strengths.append(constraints.soft_groups.data)
    stated = np.concatenate(strengths)
    return bool(((stated > 0) & (stated < 1)).any())


def _whitened(rows: FloatArray, constraints: Constraints) -> FloatArray:
    """Transform the rows by relevant component analysis: shrink directions in which must-linked rows differ.

    See `shental2002`. K-means on the untransformed rows would ignore doubtful pairs that contradict the rows.
    """
    gaps = rows[constraints.must_link[:, 0]] - rows[constraints.must_link[:, 1]]
    confidence, n_columns = constraints.must_link_confidence, rows.shape[1]
    total = np.cov(rows, rowvar=False, bias=True).reshape(n_columns, n_columns)
    within = (gaps.T * confidence) @ gaps / 2 + n_columns * total
    within /= confidence.sum() + n_columns
    floor = np.finfo(np.float64).eps * max(float(np.trace(total)), np.finfo(np.float64).tiny)
    values, vectors = np.linalg.eigh(within)
    return np.ascontiguousarray(rows @ (vectors / np.sqrt(np.maximum(values, floor))))


def _criteria(mixture: Mixture, n_rows: int) -> tuple[float, float]:
    """Bayesian and Akaike information criteria."""
    n_parameters = _n_parameters(mixture)
    deviance = -2 * mixture.log_likelihood
    return float(deviance + n_parameters * np.log(n_rows)), float(deviance + 2 * n_parameters)


def _n_parameters(mixture: Mixture) -> int:
    return mixture.gaussians.n_parameters + len(mixture.log_weights) - 1


def _singular(gaussians: Gaussians, reg_covar: float) -> IntArray:
    """Components whose smallest variance is hardly larger than `reg_covar`."""
    covariances, n_components = gaussians.covariances, len(gaussians.means)
    if gaussians.kind in ("full", "tied"):
        least = np.linalg.eigvalsh(covariances)[..., 0]
    else:
        least = covariances.reshape(n_components, -1).min(axis=1)
    return np.flatnonzero(np.broadcast_to(least, n_components) <= _HELD_UP * reg_covar)
