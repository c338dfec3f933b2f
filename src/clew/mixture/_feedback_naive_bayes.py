"""A mixture of word distributions that changes the weights of words as long as the clusters break pairs.

Cohn, Caruana and McCallum 2003 (`cohn2003`); survey (`truong2013`) section 4, Eq. 57 to 68.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from clew._base import Capabilities, ConstrainedClusterer, warn_caller
from clew._persistence import Learned
from clew._validation import RANDOM_STATE, Allowed, above, integer, number, words
from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs
from clew.exceptions import ParameterError
from clew.mixture._em import FloatArray, IntArray, normalise_rows
from clew.partitional._family import n_starts
from clew.partitional._geometry import Problem
from clew.partitional._pck_means import pck_means
from clew.partitional._seeding import cluster_labels, initial_centers

# Largest number of k-means rounds that find the first clusters, and the centre shift at which they stop.
_START_ROUNDS, _START_TOL = 10, 1e-3
# For `n_init="auto"`, this many stored counts are as much work as one row in other methods.
_COUNTS_PER_ROW = 10
# A posterior probability below this does not change any sum in double precision.
_NOTHING = np.finfo(np.float64).eps
# If a smaller share of the posteriors is above `_NOTHING`, word counts are summed by a sparse product.
_SPARSE_SHARES = 0.25


class WordWeight(NamedTuple):
    """A word whose weight feedback has changed, its weight (1 at first), and the cluster that it is typical of."""

    word: Any
    weight: float
    cluster: Any


class FeedbackNaiveBayes(ConstrainedClusterer):
    r"""Multinomial mixture for word counts that learns from feedback which words matter.

    Documents are bags of words, and each cluster has its own word distribution. Feedback consists of must-links and
    cannot-links. As long as the clusters break some of these pairs, words that distinguish a broken cannot-link get a
    higher weight, and words that distinguish a broken must-link get a lower one. Use it for texts, and to see which
    words the feedback is about.

    Parameters
    ----------
    n_clusters : int, default=8
    smoothing : float, default=1.0
        Pseudo-count of every word in each cluster (Laplace smoothing).
    step : float, default=1.0
        Largest change of a word's weight in one round of feedback. All weights start at 1. With 0, they stay there.
    max_feedback_rounds : int, default=20
        Largest number of rounds of feedback. Each round changes the weights and runs EM again.
    n_init : int or "auto", default="auto"
        Number of starts. The result that breaks the fewest pairs is kept; ties go to the most likely one. "auto" means
        ten for up to 100,000 stored counts, fewer for more, and one from a million on.
    max_iter : int, default=100
        Largest number of rounds in one run of EM.
    tol : float, default=1e-4
        EM stops when the mean log-likelihood of a word rises by less than this.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The most probable cluster of each row; known classes keep their numbers.
    probabilities_ : ndarray of shape (n_samples, n_clusters)
        Posterior probability of each cluster.
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label of each column of `probabilities_`.
    cluster_sizes_ : ndarray of shape (n_clusters,)
    weights_ : ndarray of shape (n_clusters,)
        Mixing weights p(c).
    word_probabilities_ : ndarray of shape (n_clusters, n_features)
        Word distribution p(w given c) of each cluster.
    word_weights_ : ndarray of shape (n_features,)
        Weight of each word, at least 0. All weights are 1 without feedback.
    objective_ : float
        Minus the log-likelihood of the weighted counts, minus the log of the prior of the word distributions.
    objective_history_ : ndarray
        The objective after each E-step of the last run of EM; without feedback it never rises.
    n_iter_ : int
        Number of EM rounds in the run that was kept.
    n_feedback_rounds_ : int
        Number of feedback rounds that led to `word_weights_`.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        Pairs that the labels break.

    Notes
    -----
    Constraints: known classes are hard; they are observed labels. Must-links, cannot-links and groups are soft. Only
    broken ones change the word weights, in proportion to their confidence. Entailed pairs are not added. X holds
    counts. Negative entries are refused, and fractions are allowed. Counts suit the prior better than TF-IDF.

    With N(w, x) occurrences of word w in document x and word weights :math:`\gamma`, a document has the probability

    .. math:: p(x) = \sum_c p(c) \prod_w p(w \mid c)^{\gamma_w N(w, x)}, \qquad
              p(w \mid c) \propto s + \sum_x N(w, x) \, p(c \mid x)

    in the E-step and the M-step, with smoothing s. For a pair of documents, the weights change along the gradient of
    the weighted divergence of both documents from their mean p, in which each document counts by its length:

    .. math:: g_w = N(w, x_1) \log \frac{p(w \mid x_1)}{p(w)} + N(w, x_2) \log \frac{p(w \mid x_2)}{p(w)} \ge 0.

    A round of feedback adds g for broken cannot-links and subtracts it for broken must-links. The change is scaled so
    that no weight changes by more than `step`, and no weight falls below 0. The round that breaks the fewest pairs is
    returned. EM starts from k-means with soft constraints on log-counts weighted by inverse document frequency.
    Time O(t k m) for t rounds of EM and m stored counts; memory O(m + n k + k d). Sparse rows stay sparse.
    Departs from [1]_: EM starts from k-means, not at random, and the step is scaled.

    References
    ----------
    .. [1] D. Cohn, R. Caruana, A. McCallum (2003). "Semi-supervised clustering with user feedback." Cornell University
       TR2003-1892.
    .. [2] D. T. Truong, R. Battiti (2013). "A survey of semi-supervised clustering algorithms: from a priori scheme to
       interactive scheme and open issues." Section 4, Algorithm 16, Eq. 57 to 68.

    Examples
    --------
    >>> from clew import FeedbackNaiveBayes
    >>> X = [[3, 0, 2, 0], [2, 0, 0, 2], [3, 0, 1, 0], [0, 3, 0, 2], [0, 2, 2, 0], [0, 3, 0, 1]]
    >>> FeedbackNaiveBayes(n_clusters=2, random_state=0).fit(X, constraints={"cannot_link": [(0, 4)]}).labels_
    array([0, 0, 0, 1, 1, 1])
    """

    _capabilities = Capabilities(
        labels="hard", must_link="soft", cannot_link="soft", sparse=True, counts=True, predicts=True
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "smoothing": above(0),
        "step": number(0),
        "max_feedback_rounds": integer(0),
        "n_init": words("auto") | integer(1),
        "max_iter": integer(1),
        "tol": number(0),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **ConstrainedClusterer._learned_attributes,
        "weights_": Learned("real", (("clusters",),), low=0),
        "word_probabilities_": Learned("real", (("clusters", "columns"),), low=0),
        "word_weights_": Learned("real", (("columns",),), low=0),
        "probabilities_": Learned("real", (("rows", "clusters"),), low=0),
        "objective_": Learned("real"),
        "objective_history_": Learned("real", ((None,),)),
        "n_iter_": Learned("integer", low=1),
        "n_feedback_rounds_": Learned("integer", low=0),
    }
    weights_: FloatArray
    word_probabilities_: FloatArray
    word_weights_: FloatArray

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        smoothing: float = 1.0,
        step: float = 1.0,
        max_feedback_rounds: int = 20,
        n_init: int | str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.smoothing = smoothing
        self.step = step
        self.max_feedback_rounds = max_feedback_rounds
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[FeedbackNaiveBayes]:
        return [cls(n_clusters=3, random_state=0), cls(n_clusters=3, smoothing=0.1, step=0.25, random_state=0)]

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        counts = _as_counts(X)
        clusters = cluster_labels(constraints.closure(), int(self.n_clusters))
        found = feedback_naive_bayes(
            counts,
            constraints,
            clusters,
            rng,
            smoothing=self.smoothing,
            step=self.step,
            max_feedback_rounds=self.max_feedback_rounds,
            n_init=n_starts(self.n_init, max(counts.nnz // _COUNTS_PER_ROW, 1)),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        run = found.run
        if not run.converged:
            warn_caller(
                f"{type(self).__name__} stopped at max_iter={self.max_iter} before the mean log-likelihood of a word "
                f"gained less than tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        self.cluster_labels_ = clusters
        self.weights_, self.word_probabilities_ = np.exp(run.log_weights), np.exp(run.log_words)
        self.word_weights_ = found.word_weights
        self.probabilities_ = run.shares
        self.objective_history_ = np.array(run.history)
        self.objective_ = run.history[-1]
        self.n_iter_, self.n_feedback_rounds_ = len(run.history), found.n_rounds
        chosen = run.shares.argmax(axis=1)
        self.cluster_sizes_ = np.bincount(chosen, minlength=len(clusters))
        return clusters[chosen]

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each cluster for each row, given the word weights; constraints are not used.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Columns in the order of `cluster_labels_`.
        """
        counts = _as_counts(self._check_new_rows(X))
        scores = _weighted(counts, self.word_weights_) @ np.log(self.word_probabilities_).T
        normalise_rows(scores, np.log(np.maximum(self.weights_, np.finfo(np.float64).tiny)))
        return np.asarray(scores)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of the most probable cluster of each row; constraints are not used.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        chosen = self.predict_proba(X).argmax(axis=1)
        return self._with_class_names(self.cluster_labels_[chosen])

    def important_words(self, words: Sequence[Any] | None = None, *, n_words: int = 20) -> list[WordWeight]:
        """List the words whose weight feedback has raised most, heaviest first.

        Parameters
        ----------
        words : sequence of length n_features, optional
            The word of each column, such as ``vectorizer.get_feature_names_out()``. Default: the column names of a
            frame, or else the column numbers.
        n_words : int, default=20

        Returns
        -------
        list of WordWeight
            The word, its weight, and the label of the cluster in which it is most frequent. Empty if feedback has
            raised no weight.
        """
        check_is_fitted(self)
        names = self._words(words)
        order = np.argsort(-self.word_weights_, kind="stable")[:n_words]
        labels = self._with_class_names(self.cluster_labels_[self.word_probabilities_.argmax(axis=0)]).tolist()
        raised = order[self.word_weights_[order] > 1]
        return [WordWeight(names[at], float(self.word_weights_[at]), labels[at]) for at in raised.tolist()]

    def cluster_words(self, words: Sequence[Any] | None = None, *, n_words: int = 10) -> dict[Any, list[Any]]:
        """List the most characteristic words of each cluster, given the word weights.

        Parameters
        ----------
        words : sequence of length n_features, optional
            As in `important_words`.
        n_words : int, default=10

        Returns
        -------
        dict
            A list of words for each label, sorted by their contribution to the divergence of the cluster's word
            distribution from the distribution of all rows.
        """
        check_is_fitted(self)
        names = self._words(words)
        overall = self.weights_ @ self.word_probabilities_
        parts = self.word_weights_ * self.word_probabilities_ * np.log(self.word_probabilities_ / overall)
        labels = self._with_class_names(self.cluster_labels_)
        best = np.argsort(-parts, axis=1, kind="stable")[:, :n_words]
        return {
            label: [names[at] for at in row]
            for label, row, n_rows in zip(labels.tolist(), best.tolist(), self.cluster_sizes_.tolist(), strict=True)
            if n_rows
        }

    def _words(self, words: Sequence[Any] | None) -> Sequence[Any]:
        n_columns = len(self.word_weights_)
        names: Sequence[Any] = getattr(self, "feature_names_in_", range(n_columns)) if words is None else words
        if len(names) != n_columns:
            raise ParameterError(
                f"words has {len(names)} entries, but X had {n_columns} columns. Pass one word per column."
            )
        return names


class Run(NamedTuple):
    """Result of `multinomial_em`: the logarithms of p(c) and p(w given c), posteriors, and the objective per round."""

    log_weights: FloatArray
    log_words: FloatArray
    shares: FloatArray
    history: list[float]
    converged: bool


class FeedbackResult(NamedTuple):
    """Result of `feedback_naive_bayes`."""

    run: Run
    word_weights: FloatArray
    n_rounds: int


def feedback_naive_bayes(
    counts: sparse.csr_array,
    constraints: Constraints,
    clusters: IntArray,
    rng: np.random.Generator,
    *,
    smoothing: float,
    step: float,
    max_feedback_rounds: int,
    n_init: int,
    max_iter: int,
    tol: float,
) -> FeedbackResult:
    """Run EM from several starts, change word weights for the pairs that the best result breaks, and repeat."""
    pairs = StatedPairs(constraints)
    known = _known(constraints, clusters)
    options: dict[str, Any] = {"smoothing": smoothing, "max_iter": max_iter, "tol": tol}
    best = None
    for start in _starts(counts, constraints, clusters, n_init, rng):
        run = multinomial_em(counts, counts, known, np.eye(len(clusters))[start], **options)
        key = (pairs.price(run.shares.argmax(axis=1)), run.history[-1])
        if best is None or key < best[0]:
            best = key, run
    assert best is not None
    (lowest, _), now = best
    word_weights = np.ones(counts.shape[1])
    kept = FeedbackResult(now, word_weights, 0)
    for n_rounds in range(1, max_feedback_rounds + 1):
        if lowest == 0 or step == 0:
            break
        direction = pairs.direction(counts, now.shares.argmax(axis=1))
        largest = float(np.abs(direction).max())
        if largest == 0:  # the documents of all broken pairs are proportional
            break
        word_weights = np.maximum(word_weights + step * direction / largest, 0)
        now = multinomial_em(counts, _weighted(counts, word_weights), known, now.shares, **options)
        price = pairs.price(now.shares.argmax(axis=1))
        if price < lowest:
            lowest, kept = price, FeedbackResult(now, word_weights, n_rounds)
    return kept


def multinomial_em(
    counts: sparse.csr_array,
    weighted: sparse.csr_array,
    known: IntArray,
    shares: FloatArray,
    *,
    smoothing: float,
    max_iter: int,
    tol: float,
) -> Run:
    """Run EM from initial posteriors (Algorithm 16), with `weighted` counts in the E-step (Eq. 68).

    `known` is the position of the known class of each row, -1 for none. The objective may rise if the weighted counts
    differ from the counts.
    """
    total = max(float(counts.sum()), 1.0)
    labelled = np.flatnonzero(known >= 0)
    history: list[float] = []
    converged = False
    while not converged and len(history) < max_iter:
        log_weights = np.log(np.maximum(shares.mean(axis=0), np.finfo(np.float64).tiny))
        occurrences = _summed(counts, shares) + smoothing
        log_words = np.log(occurrences / occurrences.sum(axis=1, keepdims=True))
        shares = np.asarray(weighted @ log_words.T)
        own = shares[labelled, known[labelled]]
        shares[labelled] = -np.inf
        shares[labelled, known[labelled]] = own
        log_likelihood = normalise_rows(shares, log_weights)
        history.append(-log_likelihood - smoothing * float(log_words.sum()))
        converged = len(history) > 1 and history[-2] - history[-1] < tol * total
    return Run(log_weights, log_words, shares, history, converged)


def pair_gradient(counts: sparse.csr_array, pairs: IntArray) -> sparse.csr_array:
    """Gradient of each pair (Eq. 67), one row per pair: how well each word distinguishes the two documents, >= 0."""
    first, second = counts[pairs[:, 0]], counts[pairs[:, 1]]
    lengths = [np.asarray(part.sum(axis=1)).ravel() for part in (first, second)]
    apart = _information(first, lengths[0]) + _information(second, lengths[1])
    gradient = sparse.csr_array(apart - _information(first + second, lengths[0] + lengths[1]))
    np.maximum(gradient.data, 0, out=gradient.data)
    return gradient


def _information(counts: sparse.csr_array, lengths: FloatArray) -> sparse.csr_array:
    """N log (N / length) of each entry."""
    shares = counts.data / np.repeat(lengths, np.diff(counts.indptr))
    return sparse.csr_array((counts.data * np.log(shares), counts.indices, counts.indptr), shape=counts.shape)


class StatedPairs:
    """Given pairs and pairs from groups: distinct pairs, each with its highest confidence."""

    def __init__(self, constraints: Constraints) -> None:
        self._given = []
        for sign, pairs, confidence in (
            (-1, constraints.must_link, constraints.must_link_confidence),
            (1, constraints.cannot_link, constraints.cannot_link_confidence),
        ):
            stated = distinct_pairs(pairs, confidence)
            self._given.append((sign, stated.pairs, confidence[stated.best]))
        none = np.empty((0, 2), dtype=np.int64)
        self._groups = constraints._replace(
            must_link=none,
            must_link_confidence=np.empty(0),
            cannot_link=none,
            cannot_link_confidence=np.empty(0),
            labels=None,
            classes=None,
        )

    def broken(self, labels: IntArray) -> list[tuple[int, IntArray, FloatArray]]:
        """Broken must-links (sign -1) and cannot-links (sign 1), with their confidences."""
        found = []
        of_groups = self._groups.violations(labels)
        for (sign, pairs, confidence), more in zip(self._given, of_groups, strict=True):
            wrong = (labels[pairs[:, 0]] == labels[pairs[:, 1]]) == (sign > 0)
            found.append(
                (sign, np.concatenate([pairs[wrong], more]), np.concatenate([confidence[wrong], np.ones(len(more))]))
            )
        return found

    def price(self, labels: IntArray) -> float:
        """Sum of the confidences of the broken pairs."""
        return float(sum(confidence.sum() for _, _, confidence in self.broken(labels)))

    def direction(self, counts: sparse.csr_array, labels: IntArray) -> FloatArray:
        """Sum of the gradients of the broken pairs: positive for cannot-links, negative for must-links."""
        total = np.zeros(counts.shape[1])
        for sign, pairs, confidence in self.broken(labels):
            total += sign * (confidence @ pair_gradient(counts, pairs))
        return total


def _starts(
    counts: sparse.csr_array, constraints: Constraints, clusters: IntArray, n_init: int, rng: np.random.Generator
) -> Any:
    """Find the first clusters of each start by k-means with cosine distance and soft constraints."""
    rare = np.log1p(counts.shape[0]) - np.log1p(np.bincount(counts.indices, minlength=counts.shape[1])) + 1
    features = sparse.csr_array((np.log1p(counts.data), counts.indices, counts.indptr), shape=counts.shape)
    problem = Problem.prepare(_weighted(features, rare), np.empty(0), "cosine", None)
    closed, known = constraints.closure(), _known(constraints, clusters)
    for attempt in range(n_init):
        start = initial_centers(
            problem, closed, clusters, "neighbourhoods", "k-means++", rng, again=attempt > 0, anew=attempt > 0
        )
        found = pck_means(
            problem,
            constraints,
            start,
            rng,
            problem.mean_cost,
            entailed=True,
            max_iter=_START_ROUNDS,
            tol=_START_TOL * problem.variance,
        )
        yield np.where(known >= 0, known, found.labels)


def _known(constraints: Constraints, clusters: IntArray) -> IntArray:
    """Position of the known class of each row, -1 for none."""
    known = np.full(constraints.n_rows, -1)
    if constraints.labels is not None:
        labelled = np.flatnonzero(constraints.labels >= 0)
        order = np.argsort(clusters, kind="stable")
        known[labelled] = order[np.searchsorted(clusters, constraints.labels[labelled], sorter=order)]
    return known


def _as_counts(X: Any) -> sparse.csr_array:
    """Convert X to a CSR matrix in double precision without stored zeros or repeated entries; X is not changed."""
    counts = sparse.csr_array(X, dtype=np.float64, copy=True)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    return counts


def _weighted(counts: sparse.csr_array, word_weights: FloatArray) -> sparse.csr_array:
    """Multiply each count by the weight of its word."""
    data = counts.data * word_weights[counts.indices]
    return sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def _summed(counts: sparse.csr_array, shares: FloatArray) -> FloatArray:
    """Expected occurrences of each word in each cluster."""
    held = shares > _NOTHING
    if held.mean() > _SPARSE_SHARES:
        return np.ascontiguousarray((counts.T @ shares).T)
    return np.asarray((sparse.csr_array(np.where(held, shares, 0.0).T) @ counts).toarray())
