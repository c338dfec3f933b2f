"""The posterior over the groups of rows if answers may be wrong.

Every row that an answer names has a probability for each group, given all answers about it and the rows around it. An
answer is a pair potential whose absolute value is the log-odds that the answer is right. A Gaussian process on the
kernels of `clew.graph`, whose prior mean comes from the base partitions, predicts each row from the other named rows.
Mean-field inference combines the two. Clustering with noisy pairwise queries: Mazumdar and Saha 2017 (`mazumdar2017`);
active correlation clustering: Aronsson and Chehreghani 2023 (`aronsson2023`).
"""

from __future__ import annotations

import hashlib
import heapq
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.active._annotators import (
    AnswerArrays,
    Rates,
    are_far,
    are_unequal,
    estimate_rates,
    log_evidence,
    log_odds,
)
from clew.graph._gaussian_process import (
    KernelWeights,
    LabelledRows,
    covariance,
    fit_weights,
    normalized,
    prior_weights,
)
from clew.graph._graph_propagation import unlabelled_medoids
from clew.graph._kernels import KernelSum
from clew.graph._partition_prior import Propagation, partition_mean, propagate
from clew.partitional._reduction import one_blas_thread

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Probability that a row is an outlier, whose neighbours say nothing about its group.
_OUTLIER = 0.1
# Lower bound on a named row's weight in the Gaussian process.
_LEAST_WEIGHT = 0.05
# Number of rounds of leave-one-out prediction and mean-field inference, and of mean-field updates in each.
_ROUNDS, _UPDATES = 4, 30
# Number of starts of a search that get more than one round.
_KEPT_STARTS = 2
# Nats by which the score of beliefs in which clusters of answers have moved must exceed that of the others. Of 12
# gains of 1 to 6 nats, three made groups worse; two of 14 and 28 made them better. Chosen on digits and breast_cancer.
_MUCH_BETTER = 10.0
# For this start, at most so many clusters of answers are joined for each group.
_MOST_PARTS = 4
# The kernel weights are fitted to a sample of this many named rows.
_MOST_FITTED = 100
# Probability of a row's own group in a start.
_START_BELIEF = 0.7
# Largest number of named rows in the inference; the latest ones are used.
_MOST_NAMED = 600
# There is a search after every fifth answer. Later, the number of answers grows by a twentieth between two searches.
_SEARCH_EVERY, _SEARCH_SHARE = 5, 20
# Evidence, in nats, from which a base cluster may share its group with another base cluster: about three labels.
_DEPARTURE = 8.0
# Annotators are unequal if their error rates, as the base partitions see them, differ by more than this. A search then
# starts from these rates, too: beliefs that follow a careless annotator call the careful ones careless.
_UNEQUAL = 0.25
# If no rate is given, and these rates differ by more than this from those that the beliefs give, there is also a search
# without the beliefs: if most rows have one answer, beliefs that follow every answer call all of them right. The result
# is taken if the answers are twenty times as probable.
_FAR, _BETTER = 0.1, 3.0
# Log-odds of answers of which none is wrong: more than all predictions about a row together.
_NO_ERRORS = 20.0
# Number of states that a chain keeps.
_MOST_STATES = 500
# If the number of groups is unknown, a new group is needed if the answers about this many rows contradict every group.
_NEW_GROUP_ROWS, _NEW_GROUP_LOG_ODDS = 2, 3.0


class State(NamedTuple):
    """Beliefs about named rows after some answers, with everything that they depend on."""

    rows: IntArray  # named rows, in row order
    beliefs: FloatArray  # probability of each group for each named row
    weights: KernelWeights
    rates: Rates
    score: float  # score of the search: how well rows and answers agree
    bound: float  # lower bound on the log-probability of the answers, up to a constant that depends on the rates
    n_answers: int  # number of answers that the beliefs follow from


@dataclass(frozen=True)
class Posterior:
    """Probabilities of groups for all rows.

    Attributes
    ----------
    state : State
    probabilities : ndarray of shape (n_rows, n_groups)
        Probability of each group for every row.
    agreement : ndarray of shape (n_answers,)
        Probability that each answer is right.
    between : ndarray of shape (n_groups, n_groups)
        Sum of the log-odds of all answers between two groups: positive if answers say that they are one group.
    prototypes : ndarray of ints
        For each group without named rows, the row that most probably belongs to it.
    model : Propagation
        The model that predicts rows without answers.
    """

    state: State
    probabilities: FloatArray
    agreement: FloatArray
    between: FloatArray
    prototypes: IntArray
    model: Propagation

    @cached_property
    def groups(self) -> IntArray:
        """The most probable group of each named row."""
        return self.state.beliefs.argmax(axis=1)


class Chain:
    """States along a log. The state after n answers follows from the state at the last search and the answers since.

    A log that is replayed gives the same states, and the states of a shorter log stay the same when it grows.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[bytes, State] = OrderedDict()
        self._lock = RLock()

    def state(self, kernels: KernelSum, answers: AnswerArrays, n_groups: int | None, told: float | None) -> State:
        """The state after all answers."""
        n = len(answers.first)
        ends = _searches(n)
        keys = _digests(answers, [*ends, n], f"{n_groups} {told}")
        with self._lock:
            known = next((place for place in range(len(keys) - 1, -1, -1) if keys[place] in self._found), None)
            state = None if known is None else self._found[keys[known]]
            if known is not None:
                self._found.move_to_end(keys[known])
        # Without the lock, so that questions do not wait for a fit. Two threads may find the same state twice.
        for place in range(0 if known is None else known + 1, len(keys)):
            is_search = place < len(ends)
            if not is_search and n in ends:
                break
            part = answers.until(ends[place] if is_search else n)
            with one_blas_thread():
                state = _step(kernels, part, n_groups, told, state, search=is_search)
            self._keep(keys[place], state)
        assert state is not None
        return state

    def _keep(self, key: bytes, state: State) -> None:
        """Keep a state, and forget the states that were not used for the longest time."""
        with self._lock:
            self._found[key] = state
            while len(self._found) > _MOST_STATES:
                self._found.popitem(last=False)


def _searches(n: int) -> list[int]:
    """Numbers of answers, up to n, after which there is a search."""
    found, last = [], 1
    while last <= n:
        found.append(last)
        last += max(_SEARCH_EVERY, last // _SEARCH_SHARE)
    return found


def last_search(n: int) -> int:
    """Number of answers after which the last search was, with n answers."""
    return max(_searches(n), default=0)


def _digests(answers: AnswerArrays, ends: list[int], about: str) -> list[bytes]:
    """Digest of the first answers, up to each of the given ends."""
    digest, begin, found = hashlib.blake2b(about.encode(), digest_size=16), 0, []
    for end in ends:
        for column in answers:
            digest.update(np.ascontiguousarray(column[begin:end]).tobytes())
        found.append(digest.copy().digest())
        begin = end
    return found


def _step(
    kernels: KernelSum, answers: AnswerArrays, n_groups: int | None, told: float | None, before: State | None, *,
    search: bool,
) -> State:  # fmt: skip
    """The next state of a chain."""
    rates = estimate_rates(answers, None, told)
    if before is not None:
        rates |= before.rates  # people who answered since the last search have the usual rates
    if search and before is not None:
        rates = estimate_rates(answers, _together_without(answers, before), told)
    n_columns = max(n_groups or 1 + int(kernels.partitions.max()), 0 if before is None else before.beliefs.shape[1])
    nothing = State(np.empty(0, dtype=np.int64), np.empty((0, n_columns)), prior_weights(kernels), rates, 0.0, 0.0, 0)
    before = nothing if before is None else before
    named = _Named(kernels, answers, log_odds(answers, rates), n_columns)
    if not search:
        return named.settled(before)._replace(rates=rates, n_answers=len(answers.first))
    state = named.search(before)
    other_rates = estimate_rates(answers, _together_by_partitions(kernels, answers), told)
    if are_unequal(other_rates, _UNEQUAL):
        other_named = _Named(kernels, answers, log_odds(answers, other_rates), n_columns)
        other = other_named.search(before)
        if other.score + log_evidence(answers, other_rates) > state.score + log_evidence(answers, rates):
            named, state, rates = other_named, other, other_rates
    if told is None and are_far(other_rates, rates, _FAR):
        other_named, other, other_rates = _from_rates(kernels, answers, nothing, other_rates)
        # The score of the most probable groups cannot tell wrong answers from outlying rows; the bound can.
        gain = other.bound + log_evidence(answers, other_rates) - state.bound - log_evidence(answers, rates)
        if gain > _BETTER:
            named, state, rates = other_named, other, other_rates
    if n_groups is None and named.needs_group(state):
        state = state._replace(beliefs=np.column_stack([state.beliefs, np.zeros(len(state.rows))]))
    return state._replace(rates=rates, n_answers=len(answers.first))


def _from_rates(kernels: KernelSum, answers: AnswerArrays, nothing: State, rates: Rates) -> tuple[_Named, State, Rates]:
    """Search without earlier beliefs from given rates, then estimate the rates and search again."""
    n_columns = nothing.beliefs.shape[1]
    named = _Named(kernels, answers, log_odds(answers, rates), n_columns)
    state = named.search(nothing)._replace(rates=rates, n_answers=len(answers.first))
    rates = estimate_rates(answers, _together_without(answers, state), None)
    named = _Named(kernels, answers, log_odds(answers, rates), n_columns)
    return named, named.search(state), rates


def _with_outliers(shares: FloatArray) -> FloatArray:
    """Log-probabilities of groups, if a row may be an outlier."""
    return np.asarray(np.log((1 - _OUTLIER) * shares + _OUTLIER / shares.shape[-1]))


class Certainty(NamedTuple):
    """How well the groups of rows fit if every answer is right."""

    score: float  # as in `State`, without the log-odds of the answers
    most: float  # what the score could gain if each row were in the group that the other rows predict


def without_errors(kernels: KernelSum, answers: AnswerArrays, groups: IntArray, n_groups: int) -> Certainty:
    """The score if every answer is right. `groups` has the group of each row, and -1 for rows that are not placed."""
    named = _Named(kernels, answers, _NO_ERRORS * answers.sign.astype(np.float64), n_groups)
    with one_blas_thread():
        return named.certainty(groups[named.rows])


def _together_by_partitions(kernels: KernelSum, answers: AnswerArrays) -> FloatArray:
    """Probability that the two rows of each answer are in one group, by the base partitions alone."""
    together = kernels.partitions[:, answers.first] == kernels.partitions[:, answers.second]
    return np.asarray((together.sum(axis=0) + 0.5) / (len(together) + 1), dtype=np.float64)


def _together(answers: AnswerArrays, state: State) -> FloatArray:
    """Probability that the two rows of each answer are in one group; NaN if a row has no beliefs."""
    found = np.full(len(answers.first), np.nan)
    known = np.isin(answers.first, state.rows) & np.isin(answers.second, state.rows)
    one, two = (np.searchsorted(state.rows, rows[known]) for rows in (answers.first, answers.second))
    found[known] = (state.beliefs[one] * state.beliefs[two]).sum(axis=1)
    return found


def _together_without(answers: AnswerArrays, state: State) -> FloatArray:
    """Probability that the two rows of each answer are in one group, given everything except that answer; or NaN.

    At a fixed point of the mean-field updates, the log-belief of a row contains the log-odds of each of its answers
    times the belief of the other row. That term is taken out.
    """
    found = np.full(len(answers.first), np.nan)
    known = np.isin(answers.first, state.rows) & np.isin(answers.second, state.rows)
    one, two = (np.searchsorted(state.rows, rows[known]) for rows in (answers.first, answers.second))
    odds = np.where(np.flatnonzero(known) < state.n_answers, log_odds(answers, state.rates)[known], 0.0)[:, None]
    logs = np.log(np.maximum(state.beliefs, np.finfo(np.float64).tiny))
    cavities = []
    for row, other in ((one, two), (two, one)):
        scores = logs[row] - odds * state.beliefs[other]
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        cavities.append(scores / scores.sum(axis=1, keepdims=True))
    found[known] = (cavities[0] * cavities[1]).sum(axis=1)
    return found


def fit_posterior(kernels: KernelSum, answers: AnswerArrays, state: State) -> Posterior:
    """Probabilities of all rows from the beliefs about named rows."""
    beliefs, n_groups = state.beliefs, state.beliefs.shape[1]
    labelled = _labelled(state.rows, beliefs)
    medoids = unlabelled_medoids(kernels, labelled, state.weights.partition, n_groups)
    with one_blas_thread():
        model = propagate(kernels, labelled, medoids, state.weights, n_groups, _DEPARTURE)
        probabilities = model.probabilities()
    probabilities[state.rows] = beliefs
    together = _together(answers, state)
    agreement = np.where(answers.sign > 0, together, 1 - together)
    odds = log_odds(answers, state.rates)
    known = ~np.isnan(together)
    one, two = (np.searchsorted(state.rows, rows[known]) for rows in (answers.first, answers.second))
    between = (beliefs[one] * odds[known][:, None]).T @ beliefs[two]
    missing = np.setdiff1d(np.arange(n_groups), labelled.classes)
    free = np.setdiff1d(np.arange(kernels.n_rows), state.rows)
    prototypes = free[probabilities[free][:, missing].argmax(axis=0)] if len(free) else free
    return Posterior(state, probabilities, agreement, between + between.T, prototypes, model)


def _labelled(rows: IntArray, beliefs: FloatArray) -> LabelledRows:
    return LabelledRows(rows, beliefs.argmax(axis=1), 1 / np.maximum(beliefs.max(axis=1), _LEAST_WEIGHT))


class _Named:
    """Named rows with their kernel matrices and pair potentials, and the search for their beliefs."""

    def __init__(self, kernels: KernelSum, answers: AnswerArrays, odds: FloatArray, n_groups: int) -> None:
        self.kernels, self.n_groups = kernels, n_groups
        rows = np.column_stack([answers.first, answers.second])
        latest = np.unique(rows[::-1].ravel(), return_index=True)
        self.rows = np.sort(latest[0][np.argsort(latest[1], kind="stable")[:_MOST_NAMED]])
        used = np.isin(rows, self.rows).all(axis=1)
        self.one, self.two = np.searchsorted(self.rows, rows[used]).T
        self.odds = odds[used]
        n = len(self.rows)
        half = sparse.csr_array((self.odds, (self.one, self.two)), shape=(n, n))
        self.potentials = sparse.csr_array(half + half.T)
        self.each = kernels.each(self.rows)

    def settled(self, before: State) -> State:
        """Run one round from earlier beliefs, with the same kernel weights."""
        return self._rounds(self._continued(before), before.weights, 1)

    @cached_property
    def clusters(self) -> IntArray:
        """Greedy correlation clustering of the answers: the cluster of each row."""
        return greedy_contraction(len(self.rows), self.one, self.two, self.odds)

    def search(self, before: State) -> State:
        """The best of several starts: one round for each, all rounds for the earlier beliefs and the best starts."""
        inverse = self._inverse(before.weights, np.full(len(self.rows), _START_BELIEF))
        moved = [self._round(self._start(self._by_answers(before.weights)), before.weights, inverse)]
        begun = []
        if len(before.rows):
            begun.append(self.settled(before))
            begun += [self._rounds(start, before.weights, 2) for start in self._merged(begun[0])]
            moved += [self._rounds(start, before.weights, 2) for start in self._freed(begun[0])]
        starts = [self._start(groups) for groups in (self._by_answers(), *self.kernels.partitions[:, self.rows])]
        begun += [self._round(start, before.weights, inverse) for start in starts]
        order = sorted(range(len(begun)), key=lambda place: -begun[place].score)
        kept = [begun[place] for place in dict.fromkeys([0, *order[:_KEPT_STARTS]])]
        best = max((self._refined(one) for one in kept), key=lambda state: state.score)
        other = self._refined(max(moved, key=lambda state: state.score))
        return other if other.score > best.score + _MUCH_BETTER else best

    def certainty(self, groups: IntArray) -> Certainty:
        """How well given groups fit that no answer contradicts (-1: any group), with kernel weights that fit them."""
        beliefs = np.full((len(self.rows), self.n_groups), 1 / self.n_groups)
        known = groups >= 0
        beliefs[known] = np.eye(self.n_groups)[groups[known]]
        weights = fit_weights(self.kernels, _labelled(self.rows, beliefs).subsample(_MOST_FITTED))
        inverse = self._inverse(weights, beliefs.max(axis=1))
        unary, frequency = self._unary(beliefs, inverse)
        found = self._scored(self._mean_field(unary, beliefs), unary, frequency, weights)
        score = found.score - float(np.abs(self.odds).sum())
        return Certainty(score, float((unary - np.log(frequency)).max(axis=1).sum()) - score)

    def needs_group(self, state: State) -> bool:
        """Whether the answers about some rows contradict every group, and no group is empty."""
        against = (self.potentials @ state.beliefs).max(axis=1) < -_NEW_GROUP_LOG_ODDS
        is_full = len(np.unique(state.beliefs.argmax(axis=1))) == state.beliefs.shape[1]
        return bool(is_full and against.sum() >= _NEW_GROUP_ROWS)

    def _continued(self, before: State) -> FloatArray:
        """Earlier beliefs; a new row may be in any group."""
        beliefs = np.full((len(self.rows), self.n_groups), 1 / self.n_groups)
        known = np.isin(self.rows, before.rows)
        beliefs[known] = 0
        beliefs[known, : before.beliefs.shape[1]] = before.beliefs[np.isin(before.rows, self.rows)]
        return beliefs

    def _start(self, groups: IntArray) -> FloatArray:
        """Beliefs of a start; a row of group -1 may be in any group."""
        beliefs = np.full((len(self.rows), self.n_groups), 1 / self.n_groups)
        known = np.flatnonzero(groups >= 0)
        beliefs[known] = (1 - _START_BELIEF) / self.n_groups
        beliefs[known, groups[known]] += _START_BELIEF
        return beliefs

    def _by_answers(self, weights: KernelWeights | None = None) -> IntArray:
        """The largest clusters of the answers are groups; other rows have group -1.

        With kernel weights, clusters of several rows are first joined by average linkage of their kernels.
        """
        sizes = np.bincount(self.clusters)
        parts = np.argsort(-sizes, kind="stable")
        if weights is None:
            parts = parts[: self.n_groups]
            joined = np.arange(len(parts))
        else:
            n_several = min(_MOST_PARTS * self.n_groups, np.count_nonzero(sizes > 1))
            parts = parts[: max(self.n_groups, n_several)]
            member = (self.clusters[:, None] == parts).astype(np.float64)
            similar = member.T @ np.tensordot(weights.values, self.each, 1) @ member
            joined = average_linkage(similar, member.T @ (self.potentials @ member), sizes[parts], self.n_groups)
        largest = np.argsort(-np.bincount(joined, sizes[parts]), kind="stable")[: self.n_groups]
        number = np.full(len(sizes), -1)
        for group, name in enumerate(largest):
            number[parts[joined == name]] = group
        return number[self.clusters]

    def _freed(self, state: State) -> list[FloatArray]:
        """Beliefs in which each group keeps one cluster of the answers: its largest, or its second largest.

        All other rows may be in any group. Rows that answers join predict each other, so that together they stay in a
        wrong group, even if they are most of its rows.
        """
        groups = state.beliefs.argmax(axis=1)
        counts = np.zeros((state.beliefs.shape[1], max(2, self.clusters.max() + 1)))
        np.add.at(counts, (groups, self.clusters), 1)
        first, second = np.argsort(-counts, axis=1, kind="stable")[:, :2].T
        second = np.where(counts[np.arange(len(counts)), second] > 1, second, first)
        found = []
        for kept in (first, second):
            beliefs = state.beliefs.copy()
            beliefs[self.clusters != kept[groups]] = 1 / self.n_groups
            found.append(beliefs)
        return found

    def _merged(self, state: State) -> list[FloatArray]:
        """Beliefs with two groups merged, for every two groups that the answers join.

        Rows whose answers contradict every group may then be in any group.
        """
        messages = self.potentials @ state.beliefs
        between = state.beliefs.T @ messages
        found = []
        for one, two in np.argwhere(np.triu(between, 1) > 0).tolist():
            beliefs = state.beliefs.copy()
            beliefs[:, one] += beliefs[:, two]
            beliefs[:, two] = 0
            beliefs[messages.max(axis=1) < 0] = 1 / self.n_groups
            found.append(beliefs)
        return found

    def _refined(self, state: State) -> State:
        """Fit the kernel weights to the beliefs, then all rounds."""
        weights = fit_weights(self.kernels, _labelled(self.rows, state.beliefs).subsample(_MOST_FITTED))
        return self._rounds(state.beliefs, weights, _ROUNDS - 1)

    def _rounds(self, beliefs: FloatArray, weights: KernelWeights, n_rounds: int) -> State:
        for _ in range(n_rounds):
            state = self._round(beliefs, weights, self._inverse(weights, beliefs.max(axis=1)))
            beliefs = state.beliefs
        return state

    def _inverse(self, weights: KernelWeights, sure: FloatArray) -> FloatArray:
        gram = np.tensordot(weights.values, self.each, 1)
        noise = 1 / np.maximum(sure, _LEAST_WEIGHT)
        return np.asarray(np.linalg.inv(covariance(gram, noise, weights.noise)), dtype=np.float64)

    def _round(self, beliefs: FloatArray, weights: KernelWeights, inverse: FloatArray) -> State:
        """Predict each row from the others, then combine predictions and answers by mean-field updates."""
        unary, frequency = self._unary(beliefs, inverse)
        return self._scored(self._mean_field(unary, beliefs), unary, frequency, weights)

    def _unary(self, beliefs: FloatArray, inverse: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log-probability of each group for each row, given the other rows, and the frequency of each group."""
        k = beliefs.shape[1]
        groups, is_known = beliefs.argmax(axis=1), beliefs.max(axis=1) > 1 / k + 1e-9
        known = np.flatnonzero(is_known)
        mean = partition_mean(
            self.kernels, LabelledRows(self.rows[known], groups[known], np.ones(len(known))), k, _DEPARTURE
        )
        expected = mean.values[self.rows]
        expected[known] = mean.leave_one_out
        targets = np.where(is_known[:, None], np.eye(k)[groups] - expected, 0.0)
        # Leave-one-out predictions of the Gaussian process, `rasmussen2006`, Eq. 5.12.
        predicted = normalized(expected + targets - (inverse @ targets) / np.diag(inverse)[:, None])
        return _with_outliers(predicted), mean.values.mean(axis=0)

    def _scored(self, beliefs: FloatArray, unary: FloatArray, frequency: FloatArray, weights: KernelWeights) -> State:
        """A state with its score and its bound.

        The score is the sum of two terms. The first is the log-probability of the groups minus their log-frequency
        among all rows, so that fewer groups do not look better. The second is the sum of the log-odds of the answers
        that hold. The bound is the variational one: the expectation of both terms, plus the entropy of the beliefs.
        """
        n, groups = len(beliefs), beliefs.argmax(axis=1)
        holds = (groups[self.one] == groups[self.two]) == (self.odds > 0)
        score = (unary[np.arange(n), groups] - np.log(frequency[groups])).sum() + np.abs(self.odds)[holds].sum()
        together = (beliefs[self.one] * beliefs[self.two]).sum(axis=1)
        chance = np.where(self.odds > 0, together, 1 - together)
        logs = unary - _with_outliers(frequency) - np.log(np.maximum(beliefs, np.finfo(np.float64).tiny))
        bound = (beliefs * logs).sum() + np.abs(self.odds) @ chance
        return State(self.rows, beliefs, weights, {}, float(score), float(bound), 0)

    def _mean_field(self, unary: FloatArray, beliefs: FloatArray) -> FloatArray:
        """Mean-field updates of a random half of the rows at a time, so that pairs do not oscillate."""
        beliefs, halves = beliefs.copy(), np.random.default_rng(0)
        for _ in range(_UPDATES):
            moving = halves.random(len(beliefs)) < 0.5
            scores = (unary + self.potentials @ beliefs)[moving]
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            beliefs[moving] = scores / scores.sum(axis=1, keepdims=True)
        return beliefs


def average_linkage(similar: FloatArray, odds: FloatArray, sizes: IntArray, n_groups: int) -> IntArray:
    """Join parts by their mean similarity until `n_groups` are left. Returns the group of each part.

    `similar` and `odds` have sums over all pairs of rows of two parts, and `sizes` the number of rows of each part.
    Groups stay apart if the sum of the log-odds between them is negative.
    """
    group = np.arange(len(sizes))
    for _ in range(len(sizes) - n_groups):
        names = np.unique(group)
        member = (group[:, None] == names).astype(np.float64)
        n_rows = sizes @ member
        mean = member.T @ similar @ member / np.outer(n_rows, n_rows)
        mean /= np.sqrt(np.outer(np.diag(mean), np.diag(mean)))
        mean[(member.T @ odds @ member < 0) | np.tri(len(names), dtype=bool)] = -np.inf
        one, two = np.unravel_index(mean.argmax(), mean.shape)
        if mean[one, two] == -np.inf:
            break
        group[group == names[two]] = names[one]
    return group


def greedy_contraction(n: int, one: IntArray, two: IntArray, odds: FloatArray) -> IntArray:
    """Correlation clustering of n vertices by greedy additive edge contraction. Returns the cluster of each vertex.

    The two clusters with the highest sum of weights between them are joined while that sum is positive.
    """
    edges: list[dict[int, float]] = [defaultdict(float) for _ in range(n)]
    for i, j, weight in zip(one.tolist(), two.tolist(), odds.tolist(), strict=True):
        edges[i][j] += weight
        edges[j][i] += weight
    heap = [(-weight, i, j) for i in range(n) for j, weight in edges[i].items() if i < j and weight > 0]
    heapq.heapify(heap)
    cluster_of = np.arange(n)
    while heap:
        weight, i, j = heapq.heappop(heap)
        if edges[i].get(j) != -weight:
            continue  # one of the clusters has changed since
        cluster_of[cluster_of == j] = i
        del edges[i][j], edges[j][i]
        for other, amount in edges[j].items():
            del edges[other][j]
            edges[i][other] += amount
            edges[other][i] = edges[i][other]
            if edges[i][other] > 0:
                heapq.heappush(heap, (-edges[i][other], min(i, other), max(i, other)))
        edges[j] = {}
    return np.unique(cluster_of, return_inverse=True)[1]
