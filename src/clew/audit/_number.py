"""Estimate the number of clusters: clusterings of every size predict answers that they have not seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, softmax

from clew._distances import distance_matrix
from clew._validation import as_generator, check_matrix
from clew._words import counted, listed
from clew.audit._advice import SURE, require_pairs
from clew.audit._answers import constraints_from
from clew.audit._ensemble import clustering_judge, left_out, named_and_more, neighbour_view, together, views_of
from clew.audit._impact import impact
from clew.audit._merging import merged_votes
from clew.audit._models import check_n_clusters
from clew.audit._plots import lines
from clew.audit._statements import distinct
from clew.exceptions import ParameterError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# A number is plausible if its probability is at least this share of the largest one.
_PLAUSIBLE = 0.1
# Largest number of rows in a clustering: the rows in answers, and others up to this many.
_MOST_ROWS = 2000
# Number of clusterings without answers, of each kind and size.
_MEMBERS = 4
# Number of starts of each clustering. With one start, poor local optima of many clusters hide the right number.
_STARTS = 2
# Answers share rows, and the folds share answers, so their evidence is not independent. Log-likelihoods are divided by
# this. It was chosen on the sets of `python -m benchmarks advice`.
_TEMPERATURE = 2.0
# Weight of the answers' prices relative to the predictions. It is so high that advice is only sure if both agree.
_WEIGHT_OF_COSTS = 1 / 3
# The sources are weighted by their evidence, more mildly than Bayes' rule does.
_SOURCE_TEMPERATURE = 4.0
# From this agreement on (Cohen's kappa), the clusters are assumed to reproduce the answers.
_FULL_AGREEMENT = 0.75


@dataclass(frozen=True)
class ClusterNumberAdvice:
    """Probability of each number of clusters; the result of `advise_n_clusters`.

    Attributes
    ----------
    candidates : tuple of int
    probabilities : ndarray of shape (n_candidates,)
        Probability of each number. They add up to 1 over the candidates.
    agreement : ndarray of shape (n_candidates,)
        Cohen's kappa between the answers and clusterings that have not seen them: 1 if they always agree, 0 if they
        agree no more than by chance.
    """

    candidates: tuple[int, ...]
    probabilities: FloatArray
    agreement: FloatArray

    @property
    def best(self) -> int:
        """The most probable number; ties go to the first."""
        return self.candidates[int(self.probabilities.argmax())]

    @property
    def sure(self) -> bool:
        """Whether the most probable number has a probability of at least 80 %."""
        return bool(self.probabilities.max() >= SURE)

    @property
    def plausible(self) -> tuple[int, ...]:
        """The numbers at least a tenth as probable as the most probable one, most probable first."""
        order = np.argsort(-self.probabilities, kind="stable").tolist()
        least = _PLAUSIBLE * self.probabilities.max()
        return tuple(self.candidates[place] for place in order if self.probabilities[place] >= least)

    @property
    def message(self) -> str:
        """The advice in words, and how sure it is."""
        chance = dict(zip(self.candidates, self.probabilities.tolist(), strict=True))
        if len(self.candidates) == 1:
            return f"Only {counted(self.best, 'cluster')} was tried, so there is nothing to advise."
        if self.sure:
            told = f"The answers suggest {counted(self.best, 'cluster')}: {chance[self.best]:.0%} likely."
        elif len(self.plausible) <= len(self.candidates) / 2:
            named = listed([f"{k} ({chance[k]:.0%})" for k in self.plausible], "and")
            told = f"The answers cannot tell between {named} clusters."
        else:
            told = (
                "The answers cannot tell how many clusters there are: "
                f"the likeliest number, {self.best}, has a probability of {chance[self.best]:.0%}."
            )
        if self.best == max(self.candidates) and chance[self.best] > 1.5 / len(self.candidates):
            told += f" More than {self.best} were not tried."
        return told

    def __str__(self) -> str:
        return self.message

    def table(self) -> list[dict[str, Any]]:
        """One dict for each number of clusters: `n_clusters`, `probability` and `agreement`."""
        rows = zip(self.candidates, self.probabilities.tolist(), self.agreement.tolist(), strict=True)
        return [{"n_clusters": k, "probability": chance, "agreement": kappa} for k, chance, kappa in rows]

    def plot(self, ax: Any = None) -> Any:
        """Draw the probability over the number of clusters and return the figure, without showing it."""
        curve = {"probability": self.probabilities}
        return lines(self.candidates, curve, xlabel="clusters", ylabel="probability", title=self.message, ax=ax)


def advise_n_clusters(
    X: Any,
    constraints: Any,
    candidates: Sequence[int] = range(2, 11),
    *,
    metric: Any = "euclidean",
    random_state: Any = 0,
) -> ClusterNumberAdvice:
    """Estimate the number of clusters from the answers, with probabilities.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), or the data for `metric`
    constraints : Constraints, dict, frame, path, or list of answers as in `review`
        Only given pairs are used.
    candidates : sequence of int, default=range(2, 11)
        Numbers of clusters to try.
    metric : str, callable or square array, default="euclidean"
        As in `metric_fitness`. Under any metric except "euclidean", a row is represented by its distances to the other
        rows.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    ClusterNumberAdvice

    Notes
    -----
    For every k, six kinds of clusterings predict each answer without having seen it: k-means, `PCKMeans`, and small
    clusters that answers merge, on the rows and on the leading eigenvectors of their graph of neighbours. `PCKMeans`
    and the mergers know four fifths of the answers and predict the others. The mergers find classes that consist of
    several separate groups.

    With s and d answers "same" and "different" about pairs that a clustering joins, and s' and d' about pairs that it
    separates, the likelihood of k is B(1 + s, 1 + d) B(1 + s', 1 + d'), B the beta function. It is raised to the power
    1/2, because answers share rows. The posterior probabilities of the six kinds are averaged, with a higher weight for
    kinds with more evidence. A third of the probability comes from prices (`impact`): with the right number, most
    answers cost nothing (thesis 5.4.1, `randel2021`). So the advice is only sure if both agree.

    If clusterings of no size reproduce the answers, the answers say nothing about the number of clusters: below a kappa
    of 0.75 the posterior is mixed with equal probabilities. A class with hardly any answers, such as a very small one,
    cannot be detected.

    Examples
    --------
    >>> import numpy as np
    >>> from clew import Constraints
    >>> from clew.audit import advise_n_clusters
    >>> y = np.repeat([0, 1, 2], 20)
    >>> X = np.column_stack([9.0 * y, np.tile(np.linspace(-1, 1, 20), 3)])
    >>> advice = advise_n_clusters(X, Constraints.sample(y, 60, random_state=0), range(2, 6))
    >>> advice.best, advice.sure
    (3, True)
    """
    numbers = _numbers(candidates)
    rng = as_generator(random_state)
    euclidean = isinstance(metric, str) and metric == "euclidean"
    X = check_matrix(X) if euclidean else distance_matrix(X, metric, rng)[0]
    for k in numbers:
        check_n_clusters(k, X.shape[0])
    known = constraints_from(constraints, X.shape[0])
    require_pairs(known, "advise_n_clusters")
    pairs = np.concatenate([known.must_link, known.cannot_link])
    same = np.arange(len(pairs)) < len(known.must_link)
    predictions = _predictions(X, pairs, same, numbers, rng)
    evidence = np.array([[_log_likelihood(votes, same) for votes in source] for source in predictions])
    kappa = np.array([[_kappa(votes, same) for votes in source] for source in predictions])
    weights = softmax(evidence.max(axis=1) / _SOURCE_TEMPERATURE)
    predicted = weights @ softmax(evidence / _TEMPERATURE, axis=1)
    free = np.array([impact(X, known, k, random_state=rng).fraction_free for k in numbers])
    pooled = (1 - _WEIGHT_OF_COSTS) * predicted + _WEIGHT_OF_COSTS * softmax(_log_cost(free, len(pairs)) / _TEMPERATURE)
    agreement = kappa.max(axis=0)
    trust = min(max(float(agreement[pooled.argmax()]) / _FULL_AGREEMENT, 0.0), 1.0)
    return ClusterNumberAdvice(numbers, trust * pooled + (1 - trust) / len(numbers), agreement)


def _numbers(candidates: Any) -> tuple[int, ...]:
    if not isinstance(candidates, Iterable):
        raise ParameterError(f"candidates={candidates!r}: expected several numbers of clusters, as in range(2, 8).")
    numbers = tuple(candidates)
    if not numbers:
        raise ParameterError("candidates is empty: name at least one number of clusters.")
    return numbers


def _predictions(
    X: Any, pairs: IntArray, same: BoolArray, numbers: tuple[int, ...], rng: np.random.Generator
) -> list[list[FloatArray]]:
    """For each kind of clustering and each size: the share of the clusterings that join each pair."""
    rows, pairs = named_and_more(X.shape[0], pairs, rng, _MOST_ROWS)
    _, pair_of = distinct(pairs, np.ones(len(pairs)))
    given, even, _ = views_of(X[rows])
    eigenvectors = neighbour_view(even, max(numbers))
    found = []
    for leading in (None,) if eigenvectors is None else (None, eigenvectors):
        views = [given if leading is None else np.ascontiguousarray(leading[:, -k:]) for k in numbers]
        sizes = list(zip(views, numbers, strict=True))
        found.append([together(view, pairs, [k] * _MEMBERS, rng, _STARTS) for view, k in sizes])
        found.append(
            [left_out(pair_of, rng, clustering_judge(view, pairs, same, k, rng, _STARTS)) for view, k in sizes]
        )
    for view in (given,) if eigenvectors is None else (given, eigenvectors):
        found.append(list(merged_votes(view, pairs, same, pair_of, numbers, rng)))
    return found


def _counts(votes: FloatArray, same: BoolArray) -> tuple[float, float, float, float]:
    """Numbers of answers "same" and "different" about joined pairs, then about separated pairs, weighted by votes."""
    joined, separated = votes, 1 - votes
    return joined[same].sum(), joined[~same].sum(), separated[same].sum(), separated[~same].sum()


def _log_likelihood(votes: FloatArray, same: BoolArray) -> float:
    """Log-likelihood of the answers. The shares of "same" among joined and separated pairs have uniform priors."""
    same_joined, different_joined, same_separated, different_separated = _counts(votes, same)
    return float(betaln(1 + same_joined, 1 + different_joined) + betaln(1 + same_separated, 1 + different_separated))


def _log_cost(free: FloatArray, n_answers: int) -> FloatArray:
    """Log-likelihood of the number of answers with a cost, at the most likely error rate up to one half."""
    costly = np.minimum((n_answers * (1 - free) + 0.5) / (n_answers + 1), 0.5)
    return np.asarray(n_answers * (costly * np.log(costly) + (1 - costly) * np.log(1 - costly)))


def _kappa(votes: FloatArray, same: BoolArray) -> float:
    """Cohen's kappa between votes and answers; 0 if they would always agree by chance."""
    same_joined, _, _, different_separated = _counts(votes, same)
    agree = (same_joined + different_separated) / len(same)
    joins, says_same = votes.mean(), same.mean()
    by_chance = joins * says_same + (1 - joins) * (1 - says_same)
    return float((agree - by_chance) / (1 - by_chance)) if by_chance < 1 else 0.0
