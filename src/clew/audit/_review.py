"""The list of answers to look at again: all the evidence against each answer as one chance that it is wrong."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew._validation import as_generator, check_matrix
from clew._words import counted
from clew.audit._ensemble import testimony
from clew.audit._impact import Impact, impact
from clew.audit._models import check_n_clusters
from clew.audit._plots import bars
from clew.constraints import Constraints, answer_kind
from clew.exceptions import ConstraintError, ParameterError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

SAME, DIFFERENT, UNSURE = "same", "different", "unsure"
# Share of wrong answers before any evidence, and the bounds of what the answers themselves may say about it.
_USUAL, _LEAST, _MOST = 0.1, 0.01, 0.45
# An annotator starts with the error rate of all, counted like so many answers.
_PRIOR_ANSWERS = 10
# A price, in units of a typical row's move, that speaks neither for nor against an answer; what others add to the
# log-odds: this much per doubling over it, at most thrice.
_NEUTRAL_PRICE, _PRICE_WEIGHT, _MOST_DOUBLINGS = 0.1, 0.15, 3.0
_ROUNDS = 10
# Contradictions looked at.
_MOST_CONFLICTS = 1000


@dataclass(frozen=True)
class Doubt:
    """An answer and how much speaks against it.

    Attributes
    ----------
    index : int
        Place of the answer in what was given.
    rows : tuple of two
        The pair, in the user's ids.
    answer : {"same", "different"}
    suspicion : float
        Chance that the answer is wrong, from 0 to 1.
    likely : {"same", "different"}
        The likely right answer.
    reasons : tuple of str
        What speaks against the answer, strongest first; what speaks for it where nothing does.
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
    """Answers, the most suspicious first; made by `review`.

    Attributes
    ----------
    doubts : tuple of Doubt
    error_rate : float
        Estimated share of wrong answers.
    error_rates : dict
        The same for each annotator.
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
        """The finding in a sentence."""
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
        """Draw the suspicion of the first answers as bars; returns the figure, not shown."""
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
class _Answers:
    """Answers as arrays; those that state nothing are left out."""

    index: IntArray
    pairs: IntArray
    same: BoolArray
    confidence: FloatArray
    annotator: list[Any]
    time: list[Any]
    is_check: BoolArray


def review(
    X: Any,
    answers: Any,
    n_clusters: int,
    *,
    labels: Any = None,
    ids: Any = None,
    random_state: Any = 0,
) -> Review:
    """Rank answers by the chance that they are wrong, with reasons and the likely right answer.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    answers : sequence of dicts or tuples, or Constraints
        A dict has `pair`, `answer` and perhaps `confidence`, `annotator`, `time`, `is_check`; a tuple has them in this
        order. `pair` are two row positions. `answer` is read as in files: same / different / unsure, must / cannot,
        yes / no, …; unsure ones are passed over. Of `Constraints`, must-links come first, then cannot-links.
    n_clusters : int
    labels : array-like of shape (n_samples,), optional
        A clustering to take into account as one more opinion, -1 for none.
    ids : array-like of shape (n_samples,), optional
        The user's names of the rows; those of `Constraints` unless given.
    random_state : int, Generator, RandomState or None, default=0

    Returns
    -------
    Review

    Notes
    -----
    The chance that a pair is the same is predicted from clusterings of four views of the rows (as given, columns of
    variance 1, ranks, neighbours), with and without the other answers, and from distances; the weight of each is
    learned from the answers, never from the one that is judged. Set against the answer it gives the chance that the
    answer is wrong, given the error rate, which is estimated in turns with it: over all answers and for each annotator.
    Then count: the price of the answer (`impact`); repeated and check questions about the same pair, which confirm or
    deny each other; and contradictions, in each of which at least one answer is wrong.
    Beyond 4,000 rows, clusterings see the named rows and a sample of the others.

    Examples
    --------
    >>> import numpy as np
    >>> from clew.audit import review
    >>> X = np.repeat([[0.0], [9.0]], 10, axis=0) + np.linspace(0, 1, 20)[:, None]
    >>> answers = [((0, 5), "same"), ((2, 3), "different"), ((1, 12), "different"), ((11, 15), "same")]
    >>> first = review(X, answers, n_clusters=2).doubts[0]
    >>> first.index, first.answer, first.likely
    (1, 'different', 'same')
    """
    X = check_matrix(X)
    n_clusters = check_n_clusters(n_clusters, X.shape[0])
    rng = as_generator(random_state)
    told = _read(answers, X.shape[0])
    if ids is None and isinstance(answers, Constraints):
        ids = answers.ids
    known = Constraints(told.pairs[told.same], told.pairs[~told.same], n_samples=X.shape[0], ids=ids)
    priced = impact(X, known, n_clusters, random_state=rng)
    if not len(told.index):
        return Review((), _USUAL, {}, priced)
    heard = testimony(X, told.pairs, told.same, n_clusters, rng)
    prices = np.empty(len(told.index))
    prices[told.same], prices[~told.same] = -priced.must_link_score, -priced.cannot_link_score
    prices /= priced.unit
    opinion = _opinion(labels, told.pairs, X.shape[0])
    conflicts = _conflicts(known, told)
    suspicion, rate, rates = _weigh(told, heard.chance, prices, opinion, conflicts)
    doubts = [
        Doubt(
            int(told.index[place]),
            (known.describe_row(told.pairs[place, 0]), known.describe_row(told.pairs[place, 1])),
            _word(told.same[place]),
            float(suspicion[place]),
            _word(told.same[place] != (suspicion[place] > 0.5)),
            _reasons(place, told, heard.together, prices, opinion, conflicts, rate, rates, known),
            told.annotator[place],
            told.time[place],
        )
        for place in np.argsort(-suspicion, kind="stable").tolist()
    ]
    return Review(tuple(doubts), rate, {who: r for who, r in rates.items() if who is not None}, priced)


def _word(same: Any) -> str:
    return SAME if same else DIFFERENT


_FIELDS = ("pair", "answer", "confidence", "annotator", "time", "is_check")


def _read(answers: Any, n_rows: int) -> _Answers:
    if isinstance(answers, Constraints):
        stated = [(answers.must_link, answers.must_link_confidence, SAME)]
        stated.append((answers.cannot_link, answers.cannot_link_confidence, DIFFERENT))
        answers = [
            (pair, word, sure)
            for pairs, certainty, word in stated
            for pair, sure in zip(pairs.tolist(), certainty.tolist(), strict=True)
        ]
    if not isinstance(answers, Iterable) or isinstance(answers, str | Mapping):
        raise ConstraintError(f"answers is a {type(answers).__name__}: expected a list of answers, or Constraints.")
    kept = []
    for index, given in enumerate(answers):
        entry = _entry(given, index)
        missing = [name for name in _FIELDS[:2] if name not in entry]
        if missing:
            raise ConstraintError(f"answers[{index}] has no {missing[0]!r}. Give pair and answer.")
        kind = answer_kind(getattr(entry["answer"], "value", entry["answer"]))
        if kind not in ("must", "cannot", "unsure"):
            raise ConstraintError(f"answers[{index}] says {entry['answer']!r}: expected same, different or unsure.")
        if kind != "unsure":
            kept.append((index, _pair(entry["pair"], index, n_rows), kind == "must", _confidence(entry, index), entry))
    return _Answers(
        np.array([index for index, *_ in kept], dtype=np.int64),
        np.array([pair for _, pair, *_ in kept], dtype=np.int64).reshape(-1, 2),
        np.array([same for *_, same, _, _ in kept], dtype=bool),
        np.array([confidence for *_, confidence, _ in kept], dtype=np.float64),
        [_annotator(entry, index) for index, *_, entry in kept],
        [entry.get("time") for *_, entry in kept],
        np.array([bool(entry.get("is_check", False)) for *_, entry in kept], dtype=bool),
    )


def _entry(given: Any, index: int) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) > len(_FIELDS):
        raise ConstraintError(f"answers[{index}] is {given!r}: expected a dict, or a tuple of {', '.join(_FIELDS)}.")
    return dict(zip(_FIELDS, given, strict=False))


def _annotator(entry: Mapping[str, Any], index: int) -> Any:
    who = entry.get("annotator")
    if not isinstance(who, Hashable):
        raise ConstraintError(f"answers[{index}] has annotator {who!r}: expected a name.")
    return None if isinstance(who, float) and np.isnan(who) else who  # frames write a missing name as NaN


def _pair(given: Any, index: int, n_rows: int) -> tuple[int, int]:
    pair = tuple(given) if isinstance(given, Sequence | np.ndarray | tuple) else ()
    if len(pair) != 2 or not all(isinstance(row, int | np.integer) and not isinstance(row, bool) for row in pair):
        raise ConstraintError(f"answers[{index}] is about {given!r}: expected two row positions.")
    wrong = [row for row in pair if not 0 <= row < n_rows]
    if wrong:
        raise ConstraintError(f"answers[{index}] names row {wrong[0]}, but X has {n_rows} rows (0 to {n_rows - 1}).")
    if pair[0] == pair[1]:
        raise ConstraintError(f"answers[{index}] compares row {pair[0]} with itself.")
    return int(pair[0]), int(pair[1])


def _confidence(entry: Mapping[str, Any], index: int) -> float:
    value = entry.get("confidence")
    if value is None:
        return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value <= 1:
        raise ConstraintError(f"answers[{index}] has confidence {value!r}: expected a number above 0 and up to 1.")
    return float(value)


def _opinion(labels: Any, pairs: IntArray, n_rows: int) -> FloatArray | None:
    """+1 where a given clustering joins the pair, -1 where it separates it, 0 where it says nothing."""
    if labels is None:
        return None
    clusters = np.asarray(labels)
    if clusters.shape != (n_rows,):
        raise ParameterError(f"labels has shape {clusters.shape}, but X has {n_rows} rows. Give one label per row.")
    first, second = clusters[pairs[:, 0]], clusters[pairs[:, 1]]
    return np.where((first == -1) | (second == -1), 0.0, np.where(first == second, 1.0, -1.0))


def _conflicts(known: Constraints, told: _Answers) -> list[tuple[list[int], str]]:
    """Contradictions: the answers in each, one or more of which must be wrong, and the chain of rows."""
    place_of: dict[tuple[int, int], list[int]] = {}
    for place, (pair, same) in enumerate(zip(told.pairs.tolist(), told.same.tolist(), strict=True)):
        if same:
            place_of.setdefault((min(pair), max(pair)), []).append(place)
    separators = np.flatnonzero(~told.same)
    found = []
    for conflict in known.conflicts(limit=_MOST_CONFLICTS):
        separator = int(separators[int(conflict.source[len("cannot_link[") : -1])])
        links = [place_of[min(a, b), max(a, b)][0] for a, b in zip(conflict.chain, conflict.chain[1:], strict=False)]
        found.append(([separator, *links], "-".join(map(str, conflict.names))))
    return found


def _weigh(
    told: _Answers,
    chance: FloatArray,
    prices: FloatArray,
    opinion: FloatArray | None,
    conflicts: list[tuple[list[int], str]],
) -> tuple[FloatArray, float, dict[Any, float]]:
    """Chance that each answer is wrong, the error rate of all and of each annotator, estimated in turns."""
    doublings = np.log2(np.maximum(prices / _NEUTRAL_PRICE, 2.0**-_MOST_DOUBLINGS))
    extra = _PRICE_WEIGHT * np.clip(doublings, -_MOST_DOUBLINGS, _MOST_DOUBLINGS)
    if opinion is not None:  # one more witness, as good as an answer
        extra -= np.where(told.same, opinion, -opinion) * _log_odds(np.array(1 - _USUAL))
    others = _other_answers(told)
    people = {who: np.array([other == who for other in told.annotator]) for who in dict.fromkeys(told.annotator)}
    rate, rates = _USUAL, dict.fromkeys(people, _USUAL)
    for _ in range(_ROUNDS):
        errors = np.array([rates[who] for who in told.annotator])
        errors = np.clip(np.maximum(errors, (1 - told.confidence) / 2), _LEAST, _MOST)
        # What was predicted is the answer of people who err: the chance that the pair is the same is further out.
        truth = np.clip((chance - rate) / (1 - 2 * rate), 0.02, 0.98)
        right = np.where(told.same, truth, 1 - truth)
        odds = _log_odds(errors) - _log_odds(right) + extra + others @ _log_odds(errors)
        suspicion = _blamed(1 / (1 + np.exp(-odds)), conflicts)
        rate = float(np.clip(suspicion.mean(), _LEAST, _MOST))
        for who, mine in people.items():
            rates[who] = float((suspicion[mine].sum() + _PRIOR_ANSWERS * rate) / (mine.sum() + _PRIOR_ANSWERS))
    return suspicion, rate, rates


def _log_odds(chance: FloatArray) -> FloatArray:
    return np.asarray(np.log(chance / (1 - chance)))


def _other_answers(told: _Answers) -> Any:
    """For each answer the others about the same pair: +1 where they agree, -1 where they do not."""
    from scipy import sparse

    low, high = told.pairs.min(axis=1), told.pairs.max(axis=1)
    _, number = np.unique(np.column_stack([low, high]), axis=0, return_inverse=True)
    n = len(number)
    of_pair = sparse.csr_array((np.where(told.same, 1.0, -1.0), (np.arange(n), number.ravel())))
    agree = (of_pair @ of_pair.T).tolil()
    agree.setdiag(0.0)
    return agree.tocsr()


def _blamed(suspicion: FloatArray, conflicts: list[tuple[list[int], str]]) -> FloatArray:
    """Given that at least one answer of each contradiction is wrong."""
    after = suspicion.copy()
    for places, _ in conflicts:
        none_wrong = float(np.prod(1 - suspicion[places]))
        after[places] = np.maximum(after[places], np.minimum(suspicion[places] / max(1 - none_wrong, 1e-12), 0.999))
    return after


def _reasons(
    place: int,
    told: _Answers,
    together: FloatArray,
    prices: FloatArray,
    opinion: FloatArray | None,
    conflicts: list[tuple[list[int], str]],
    rate: float,
    rates: dict[Any, float],
    known: Constraints,
) -> tuple[str, ...]:
    """What speaks against an answer, in sentences."""
    same = bool(told.same[place])
    found = [f"It contradicts other answers ({chain})." for places, chain in conflicts if place in places][:3]
    twins = np.flatnonzero((np.sort(told.pairs, axis=1) == np.sort(told.pairs[place])).all(axis=1))
    denied = [twin for twin in twins.tolist() if told.same[twin] != told.same[place]]
    if denied:
        asked = "at a check question" if told.is_check[[place, *denied]].any() else "another time"
        found.append(f"The same pair was answered the other way {asked}.")
    agree = together[place] if same else 1 - together[place]
    if agree < 0.5:
        verb = "apart" if same else "together"
        found.append(f"{1 - agree:.0%} of the clusterings put the two {verb}.")
    if prices[place] > _NEUTRAL_PRICE:
        found.append(f"Keeping it costs {prices[place]:.2g} times what moving a typical row does.")
    if opinion is not None and opinion[place] == (-1.0 if same else 1.0):
        found.append(f"The present clusters have the two {'apart' if same else 'together'}.")
    who = told.annotator[place]
    if who is not None and rates[who] > 1.5 * rate:
        found.append(f"{who} seems to be wrong in {rates[who]:.0%} of the answers, all together in {rate:.0%}.")
    if told.confidence[place] < 0.75:
        found.append(f"It was given with confidence {told.confidence[place]:g}.")
    return tuple(found) or (f"Nothing: {agree:.0%} of the clusterings agree.",)
