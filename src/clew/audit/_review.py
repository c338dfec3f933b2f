"""Rank answers by the probability that they are wrong, from all evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from clew._validation import ERROR_RATE, as_generator, check_matrix
from clew._words import chained, counted, listed, name_key
from clew.audit._answers import DIFFERENT, SAME, StatedAnswers, answers_from
from clew.audit._ensemble import PairPredictions, predict_pairs
from clew.audit._impact import Impact, impact
from clew.audit._models import chance_together, check_n_clusters, probabilities_of
from clew.audit._plots import bars
from clew.constraints import Constraints
from clew.constraints._arrays import distinct_pairs
from clew.exceptions import ParameterError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# Assumed error rate of a given clustering, and the bounds on the error rates of answers.
_USUAL, _LEAST, _MOST = 0.1, 0.005, 0.45
# Beta prior of the error rate, as numbers of wrong and right answers.
_PRIOR_ERRORS, _PRIOR_RIGHT = 1.0, 30.0
# Prior mean of the exponent of a pair's margin, and prior standard deviation of this exponent and of the log-slope.
_BORDER, _SPREAD_OF_SLOPE = 1.0, 0.5
# Probabilities from the data alone are kept this far from 0 and 1.
_LEAST_TRUTH = 0.03
# Weight of the overall error rate in the prior of an annotator's rate, as a number of answers.
_PRIOR_ANSWERS = 10
# A price of the first value, in units of moving a typical row, is neutral. Each doubling of the price adds the second
# value to the log-odds, and each halving subtracts it, at most as often as the third value.
_NEUTRAL_PRICE, _PRICE_WEIGHT, _MOST_DOUBLINGS = 0.1, 0.15, 3.0
_ROUNDS = 10
# Largest number of contradictions that are examined.
_MOST_CONFLICTS = 1000


@dataclass(frozen=True)
class Doubt:
    """An answer and the evidence against it.

    Attributes
    ----------
    index : int
        Position of the answer in the list.
    rows : tuple of two
        The pair, in the user's ids.
    answer : {"same", "different"}
    suspicion : float
        Probability that the answer is wrong.
    likely : {"same", "different"}
        The likely right answer.
    reasons : tuple of str
        Evidence against the answer, in sentences. If there is none, evidence for it.
    annotator, time : object
        As given.
    """

    index: int
    rows: tuple[Any, Any]
    answer: str
    suspicion: float
    likely: str
    reasons: tuple[str, ...]
    annotator: Any = None
    time: Any = None


@dataclass(frozen=True)
class Review:
    """Answers, most suspicious first; the result of `review`.

    Attributes
    ----------
    doubts : tuple of Doubt
    error_rate : float
        Estimated share of wrong answers.
    error_rates : dict
        Estimated share of wrong answers of each annotator.
    impact : Impact
        The prices of the answers.
    """

    doubts: tuple[Doubt, ...]
    error_rate: float
    error_rates: dict[Any, float]
    impact: Impact

    def __len__(self) -> int:
        return len(self.doubts)

    @property
    def message(self) -> str:
        """The result in a sentence."""
        if not self.doubts:
            return "There are no answers to look at: none says same or different."
        likely_wrong = sum(doubt.likely != doubt.answer for doubt in self.doubts)
        verb = "is" if 1 in (likely_wrong, len(self)) else "are"
        return (
            f"{likely_wrong} of {counted(len(self), 'answer')} {verb} more likely wrong than right; "
            f"about {self.error_rate:.0%} seem to be wrong in all."
        )

    def __str__(self) -> str:
        return self.message

    def table(self) -> list[dict[str, Any]]:
        """One dict for each answer, the most suspicious first, ready for a data frame."""
        return [
            {
                "rank": rank,
                "index": doubt.index,
                "id_1": doubt.rows[0],
                "id_2": doubt.rows[1],
                "answer": doubt.answer,
                "suspicion": doubt.suspicion,
                "likely": doubt.likely,
                "reasons": list(doubt.reasons),
                "annotator": doubt.annotator,
                "time": doubt.time,
            }
            for rank, doubt in enumerate(self.doubts, start=1)
        ]

    def plot(self, ax: Any = None, *, most: int = 30) -> Any:
        """Draw the suspicion of the first answers as bars and return the figure, without showing it."""
        doubts = self.doubts[:most]
        return bars(
            [f"{doubt.rows[0]} – {doubt.rows[1]}  {doubt.answer}" for doubt in doubts],
            [doubt.suspicion for doubt in doubts],
            [doubt.likely != doubt.answer for doubt in doubts],
            xlabel="chance that the answer is wrong",
            title=self.message,
            limit=0.5,
            ax=ax,
        )


@dataclass(frozen=True)
class _WeighedAnswers:
    """The probability that each answer is wrong, and the probability from all other evidence that it is right."""

    suspicion: FloatArray
    agreeing: FloatArray
    rate: float
    rates: dict[Any, float]


def review(
    X: Any,
    answers: Any,
    n_clusters: int,
    *,
    labels: Any = None,
    model: Any = None,
    error_rates: Mapping[str, float] | None = None,
    ids: Any = None,
    random_state: Any = 0,
) -> Review:
    """Rank answers by the probability that they are wrong, with reasons and the likely right answer.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    answers : sequence of records, dicts or tuples, or Constraints
        A record is an answer of a file (`clew.constraints.read_answers`), of a session (`Session.answers`) or of
        questions (`Questions.answers`). Records of files and sessions name rows by `ids`, if there are any. A dict has
        `pair`, `answer` and perhaps `confidence`, `annotator`, `time`, `is_check`; a tuple has them in this order.
        `pair` is two row positions. `answer` is read as in files: same / different / unsure, must / cannot, yes / no,
        and so on; unsure answers are ignored. `Constraints` give their must-links first and then their cannot-links.
    n_clusters : int
    labels : array-like of shape (n_samples,), optional
        A clustering that counts as additional evidence; -1 for rows without a cluster.
    model : fitted estimator, optional
        A model with probabilities, such as `ConstrainedGaussianMixture`, that counts as additional evidence. The
        probability that two rows are in one cluster is the sum, over clusters, of the product of their probabilities.
        These come from ``predict_proba(X)``, which ignores constraints, so that no answer is evidence for itself. If
        the model cannot predict, they come from `probabilities_`.
    error_rates : dict, optional
        Share of wrong answers of some annotators, from 0 to below 0.5, if it is known from elsewhere. It is the prior
        of an annotator's rate; without it, the prior is the rate of all. Names that differ only in case are one person.
    ids : array-like of shape (n_samples,), optional
        The user's ids of the rows. Default: the ids of `Constraints`.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    Review

    Notes
    -----
    The probability that a pair is the same is predicted from clusterings of four views of the rows (as given, columns
    of variance 1, ranks, neighbours), with and without the other answers, and from distances. The weight of each is
    learned from the other answers. Predictions near the borders of clusters count less. The error rate is learned
    together with the reliability of the predictions: if a prediction is confident, an answer that disagrees is probably
    wrong. The prior error rate is about 3 %. Further evidence is the price of the answer (`impact`), the error rate of
    its annotator, repeated and check questions about the same pair, and contradictions, in each of which at least one
    answer is wrong. Beyond 4,000 rows, clusterings use the rows in answers and a sample of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from clew.audit import review
    >>> X = np.repeat([[0.0], [9.0]], 10, axis=0) + np.linspace(0, 1, 20)[:, None]
    >>> answers = [((0, 5), "same"), ((2, 3), "different"), ((1, 12), "different"), ((11, 15), "same")]
    >>> first = review(X, answers, n_clusters=2).doubts[0]
    >>> first.index, first.rows, first.answer
    (1, (2, 3), 'different')
    """
    known_rates = _check_rates(error_rates)
    given, X = X, check_matrix(X)
    n_clusters = check_n_clusters(n_clusters, X.shape[0])
    probabilities = None if model is None else probabilities_of(model, given, X.shape[0])
    rng = as_generator(random_state)
    told = answers_from(answers, X.shape[0], ids)
    if ids is None and isinstance(answers, Constraints):
        ids = answers.ids
    known = Constraints(told.pairs[told.same], told.pairs[~told.same], n_samples=X.shape[0], ids=ids)
    priced = impact(X, known, n_clusters, random_state=rng)
    if not len(told.index):
        return Review((), 0.0, {}, priced)
    predicted = predict_pairs(X, told.pairs, told.same, n_clusters, rng)
    prices = np.empty(len(told.index))
    prices[told.same], prices[~told.same] = -priced.must_link_score, -priced.cannot_link_score
    prices /= priced.unit
    opinion = _opinion(labels, told.pairs, X.shape[0])
    modelled = _modelled(probabilities, told.pairs)
    conflicts = _conflicts(known, told)
    opinions = [one for one in (opinion, modelled) if one is not None]
    weighed = _weigh_clusters(told, predicted, prices, opinions, conflicts, known_rates)
    reasons = [
        _reasons(place, told, weighed, conflicts, _cluster_reasons(place, told, prices, opinion, modelled))
        for place in range(len(told.index))
    ]
    rates = {who: rate for who, rate in weighed.rates.items() if who is not None}
    return Review(_doubts(told, weighed.suspicion, reasons, known), weighed.rate, rates, priced)


def review_with(
    probability: FloatArray,
    words: Sequence[str],
    answers: Sequence[Any],
    ids: Any,
    error_rates: Mapping[str, float] | None = None,
) -> tuple[Doubt, ...]:
    """Rank answers by how likely they are wrong, given a model's probability for each pair.

    Parameters
    ----------
    probability : ndarray of shape (n_answers,)
        Probability that the pair of each answer is the same, from all evidence but the answers about this pair. Above 0
        and below 1.
    words : list of str
        How the two rows of each pair compare, such as "phone is equal; name differs by one letter". May be empty.
    answers : list of records, ids : array-like of shape (n_samples,), error_rates : dict, optional
        As for `review`. No answer is "unsure".
    """
    if not answers:
        return ()
    told = answers_from(answers, len(ids), ids)
    known = Constraints(told.pairs[told.same], told.pairs[~told.same], n_samples=len(ids), ids=ids)
    conflicts = _conflicts(known, told)
    agreeing = np.where(told.same, probability, 1 - probability)
    weighed = _weigh(told, _log_odds(1 - agreeing), agreeing, None, conflicts, _check_rates(error_rates))
    reasons = [
        (*_reasons(place, told, weighed, conflicts, []), *([f"The rows compare as follows: {text}."] if text else []))
        for place, text in enumerate(words)
    ]
    return _doubts(told, weighed.suspicion, reasons, known)


def _doubts(
    told: StatedAnswers, suspicion: FloatArray, reasons: Sequence[tuple[str, ...]], known: Constraints
) -> tuple[Doubt, ...]:
    """The answers, most suspicious first."""
    return tuple(
        Doubt(
            int(told.index[place]),
            (known.describe_row(told.pairs[place, 0]), known.describe_row(told.pairs[place, 1])),
            _word(told.same[place]),
            float(suspicion[place]),
            _word(told.same[place] != (suspicion[place] > 0.5)),
            reasons[place],
            told.annotator[place],
            told.time[place],
        )
        for place in np.argsort(-suspicion, kind="stable").tolist()
    )


def _word(same: Any) -> str:
    return SAME if same else DIFFERENT


def _claim(same: bool) -> str:
    return "belong together" if same else "are different"


def _opinion(labels: Any, pairs: IntArray, n_rows: int) -> FloatArray | None:
    """+1 if a given clustering joins the pair, -1 if it separates the pair, 0 if a row has no cluster."""
    if labels is None:
        return None
    clusters = np.asarray(labels)
    if clusters.shape != (n_rows,):
        raise ParameterError(f"labels has shape {clusters.shape}, but X has {n_rows} rows. Give one label per row.")
    first, second = clusters[pairs[:, 0]], clusters[pairs[:, 1]]
    return np.where((first == -1) | (second == -1), 0.0, np.where(first == second, 1.0, -1.0))


def _modelled(probabilities: FloatArray | None, pairs: IntArray) -> FloatArray | None:
    """A number from -1 (the model surely separates the pair) to 1 (it surely joins the pair)."""
    if probabilities is None:
        return None
    return 2 * chance_together(probabilities, pairs) - 1


def _conflicts(known: Constraints, told: StatedAnswers) -> list[tuple[list[int], str]]:
    """Contradictions of answers about several pairs: a set of answers of which at least one is wrong, and its rows.

    Opposite answers about one pair are not among them: `_other_answers` counts them.
    """
    place_of: dict[tuple[int, int], list[int]] = {}
    for place, (pair, same) in enumerate(zip(told.pairs.tolist(), told.same.tolist(), strict=True)):
        if same:
            place_of.setdefault((min(pair), max(pair)), []).append(place)
    separators = np.flatnonzero(~told.same)
    found = []
    for conflict in known.conflicts(limit=_MOST_CONFLICTS):
        if len(conflict.chain) == 2:
            continue
        separator = int(separators[conflict.position])
        links = [place_of[min(a, b), max(a, b)][0] for a, b in zip(conflict.chain, conflict.chain[1:], strict=False)]
        found.append(([separator, *links], chained(conflict.names)))
    return found


def _weigh_clusters(
    told: StatedAnswers,
    predicted: PairPredictions,
    prices: FloatArray,
    opinions: list[FloatArray],
    conflicts: list[tuple[list[int], str]],
    known_rates: Mapping[Any, float],
) -> _WeighedAnswers:
    """Weigh answers by predictions from clusters, prices and other opinions."""
    rate, truth = _error_model(predicted, told.same)
    agreeing = np.where(told.same, truth, 1 - truth)
    doublings = np.log2(np.maximum(prices / _NEUTRAL_PRICE, 2.0**-_MOST_DOUBLINGS))
    evidence = _log_odds(1 - agreeing) + _PRICE_WEIGHT * np.clip(doublings, -_MOST_DOUBLINGS, _MOST_DOUBLINGS)
    for opinion in opinions:  # each counts like one more answer, if it is sure
        evidence -= _log_odds(0.5 + (0.5 - _USUAL) * np.where(told.same, opinion, -opinion))
    return _weigh(told, evidence, agreeing, rate, conflicts, known_rates)


def _weigh(
    told: StatedAnswers,
    evidence: FloatArray,
    agreeing: FloatArray,
    error_rate: float | None,
    conflicts: list[tuple[list[int], str]],
    known_rates: Mapping[Any, float],
) -> _WeighedAnswers:
    """Probability that each answer is wrong, and the error rates that it depends on.

    `evidence` holds the log-odds that each answer is wrong, without error rates. `agreeing` is the probability of each
    answer by the data and the other answers. An `error_rate` of None is estimated together with the suspicions.
    """
    rate = _PRIOR_ERRORS / (_PRIOR_ERRORS + _PRIOR_RIGHT) if error_rate is None else error_rate
    others = _other_answers(told)
    keys = [_person(who) for who in told.annotator]
    people = {who: np.array([other == _person(who) for other in keys]) for who in dict.fromkeys(told.annotator)}
    rates = {who: known_rates.get(_person(who), rate) for who in people}
    for _ in range(_ROUNDS):
        prior = {who: known_rates.get(_person(who), rate) for who in people}
        errors = np.array([rates[who] for who in told.annotator])
        errors = np.clip(np.maximum(errors, (1 - told.confidence) / 2), _LEAST, _MOST)
        odds = evidence + _log_odds(errors) + others @ _log_odds(errors)
        suspicion = _blamed(1 / (1 + np.exp(-odds)), conflicts)
        if error_rate is None:
            rate = float((suspicion.sum() + _PRIOR_ERRORS) / (len(suspicion) + _PRIOR_ERRORS + _PRIOR_RIGHT))
        for who, mine in people.items():
            rates[who] = float((suspicion[mine].sum() + _PRIOR_ANSWERS * prior[who]) / (mine.sum() + _PRIOR_ANSWERS))
    return _WeighedAnswers(suspicion, agreeing, float(suspicion.mean()), rates)


def _person(annotator: Any) -> Any:
    """The key of an annotator; names that differ only in case are one person."""
    return name_key(annotator) if isinstance(annotator, str) else annotator


def _check_rates(error_rates: Mapping[str, float] | None) -> dict[Any, float]:
    """The given error rates by `_person`, each at least the lower bound."""
    if error_rates is not None and not isinstance(error_rates, Mapping):
        raise ParameterError(f"error_rates={error_rates!r}: expected a dict of names and shares of wrong answers.")
    found = {}
    for who, rate in (error_rates or {}).items():
        if not ERROR_RATE.accepts(rate):
            raise ParameterError(f"error_rates[{who!r}]={rate!r}: expected {ERROR_RATE.what}.")
        found[_person(who)] = max(float(rate), _LEAST)
    return found


def _error_model(predicted: PairPredictions, same: BoolArray) -> tuple[float, FloatArray]:
    """Error rate of the answers, and the probability that each pair is truly the same.

    With z the predicted log-odds of an answer "same" and m the margin of the pair relative to the largest margin,
    P(same) = e + (1 - 2e) / (1 + exp(-a - b z m^c)). Pairs that are easy to predict determine the error rate e, because
    only errors disagree with the prediction there. Pairs that are hard to predict determine how reliable predictions
    are (b), and how much less near the borders of clusters (c). All parameters are at their posterior mode.
    """
    z = _log_odds(np.clip(predicted.chance, 1e-3, 1 - 1e-3))
    depth = np.log(np.clip(predicted.margin / max(float(predicted.margin.max()), 1e-12), 0.01, 1.0))

    def truth(shift: float, slope: float, border: float) -> FloatArray:
        return np.asarray(expit(shift + np.exp(slope + border * depth) * z))

    def unlikelihood(values: FloatArray) -> float:
        error, shift, slope, border = values
        chance = error + (1 - 2 * error) * truth(shift, slope, border)
        prior = _PRIOR_ERRORS * np.log(error) + _PRIOR_RIGHT * np.log1p(-error)
        prior -= (shift**2 + (slope / _SPREAD_OF_SLOPE) ** 2 + ((border - _BORDER) / _SPREAD_OF_SLOPE) ** 2) / 2
        return float(-np.log(np.where(same, chance, 1 - chance)).sum() - prior)

    limits = [(_LEAST, _MOST), (-3.0, 3.0), (-3.0, 2.0), (0.0, 2.0)]
    found = [minimize(unlikelihood, [start, 0.0, 0.0, _BORDER], bounds=limits) for start in (0.02, 0.1, 0.25)]
    error, *others = min(found, key=lambda one: float(one.fun)).x
    return float(error), np.clip(truth(*others), _LEAST_TRUTH, 1 - _LEAST_TRUTH)


def _log_odds(chance: FloatArray) -> FloatArray:
    return np.asarray(np.log(chance / (1 - chance)))


def _other_answers(told: StatedAnswers) -> Any:
    """For each answer, the other answers about the same pair: +1 if they agree, -1 if not."""
    from scipy import sparse

    of_pair = sparse.csr_array(
        (np.where(told.same, 1.0, -1.0), (np.arange(len(told.pairs)), distinct_pairs(told.pairs).pair_of))
    )
    agree = (of_pair @ of_pair.T).tolil()
    agree.setdiag(0.0)
    return agree.tocsr()


def _blamed(suspicion: FloatArray, conflicts: list[tuple[list[int], str]]) -> FloatArray:
    """Update suspicions, given that at least one answer of each contradiction is wrong."""
    after = suspicion.copy()
    for places, _ in conflicts:
        none_wrong = float(np.prod(1 - suspicion[places]))
        after[places] = np.maximum(after[places], np.minimum(suspicion[places] / max(1 - none_wrong, 1e-12), 0.999))
    return after


def _reasons(
    place: int,
    told: StatedAnswers,
    weighed: _WeighedAnswers,
    conflicts: list[tuple[list[int], str]],
    further: list[str],
) -> tuple[str, ...]:
    """Evidence against an answer, in sentences, and evidence for it if it is probably right."""
    same, suspicion = bool(told.same[place]), weighed.suspicion[place]
    answer, opposite = _claim(same), _claim(not same)
    shortest = min(
        (conflict for conflict in conflicts if place in conflict[0]), key=lambda one: len(one[0]), default=None
    )
    found = [] if shortest is None else [f"It contradicts other answers ({shortest[1]})."]
    twins = np.flatnonzero((np.sort(told.pairs, axis=1) == np.sort(told.pairs[place])).all(axis=1))
    denied = [twin for twin in twins.tolist() if told.same[twin] != told.same[place]]
    if denied:
        found.append(_denial(place, denied, told))
    agreeing = weighed.agreeing[place]
    if agreeing < 0.5:
        found.append(f"By the data and the other answers, the chance that the two {opposite} is {1 - agreeing:.0%}.")
    found += further
    who = told.annotator[place]
    if who is not None and weighed.rates[who] > 1.5 * weighed.rate:
        rate, of_all = weighed.rates[who], weighed.rate
        found.append(f"{who} seems to be wrong in {rate:.0%} of the answers, and all people together in {of_all:.0%}.")
    if told.confidence[place] < 0.75:
        found.append(f"It was given with confidence {told.confidence[place]:g}.")
    if agreeing >= 0.5 and suspicion > 0.5:
        found.append(f"By the data and the other answers alone, the chance that it is right would be {agreeing:.0%}.")
    elif agreeing >= 0.5:
        found.append(f"By the data and the other answers, the chance that the two {answer} is {agreeing:.0%}.")
    elif suspicion <= 0.5:
        found.append(f"But only about {weighed.rates[who]:.0%} of such answers are wrong.")
    return tuple(found)


def _denial(place: int, denied: list[int], told: StatedAnswers) -> str:
    """Who gave the opposite answers about the same pair, or when."""
    own = _person(told.annotator[place])
    names = {_person(told.annotator[twin]): str(told.annotator[twin]) for twin in denied}
    if None not in (own, *names) and own not in names:
        return listed(list(names.values()), "and") + " said the opposite about the same pair."
    asked = "at a check question" if told.is_check[[place, *denied]].any() else "another time"
    return f"The same pair was answered the other way {asked}."


def _cluster_reasons(
    place: int, told: StatedAnswers, prices: FloatArray, opinion: FloatArray | None, modelled: FloatArray | None
) -> list[str]:
    """Evidence against an answer from its price, from given clusters and from a given model."""
    found, same = [], bool(told.same[place])
    if prices[place] > _NEUTRAL_PRICE:
        found.append(f"Keeping it costs {prices[place]:.2g} times as much as moving a typical row.")
    if opinion is not None and opinion[place] == (-1.0 if same else 1.0):
        found.append(f"The present clusters {'separate the two' if same else 'put the two together'}.")
    if modelled is not None and (modelled[place] < 0) == same and modelled[place] != 0:
        chance = (1 + abs(float(modelled[place]))) / 2
        found.append(f"By the model, the chance that the two {_claim(not same)} is {chance:.0%}.")
    return found
