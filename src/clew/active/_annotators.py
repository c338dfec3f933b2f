"""Error rates of annotators, estimated from how probable their answers are (Dawid and Skene 1979, `dawid1979`).

An annotator has two error rates: of saying "different" about rows of one group, and of saying "same" about rows of two
groups. They are posterior means under beta priors. The prior of an annotator is the rate of all annotators together,
and the prior of that rate is `error_rate`, if it is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from clew._words import name_key

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Annotator number of certain constraints.
CERTAIN = -1
# Log-odds of certain constraints, and the largest log-odds of an answer.
_CERTAIN_LOG_ODDS, _MOST_LOG_ODDS = 15.0, 5.0
# Prior error rate if none is given, and the weights of three priors, as numbers of answers: of the rate of all
# annotators together, of the same rate if it is given, and of the rate of one annotator.
USUAL_RATE = 0.1
_ALL_STRENGTH, _TOLD_STRENGTH, _ONE_STRENGTH = 50.0, 100.0, 10.0
# Bounds on an estimated rate. With a rate above 1/2, an answer would count as the opposite answer.
_BOUNDS = _LEAST_RATE, _MOST_RATE = 0.002, 0.45
# Bounds of the rate of all annotators together, if none is given.
_COMMON_BOUNDS = 0.03, 0.35
# Number of rounds of expectation maximisation.
_ITERATIONS = 20


class AnswerArrays(NamedTuple):
    """Answers about pairs of rows, oldest first.

    Example, "4 = 7" by the first annotator and "4 ≠ 9" by the second, who is not sure: ``first=[4, 4]``,
    ``second=[7, 9]``, ``sign=[1, -1]``, ``annotator=[0, 1]``, ``confidence=[1, 0.7]``. Certain knowledge has the
    annotator -1.
    """

    first: IntArray
    second: IntArray
    sign: IntArray
    annotator: IntArray
    confidence: FloatArray

    def until(self, n: int) -> AnswerArrays:
        """The first n answers."""
        return AnswerArrays(self.first[:n], self.second[:n], self.sign[:n], self.annotator[:n], self.confidence[:n])

    @classmethod
    def of(cls, columns: IntArray, confidence: FloatArray) -> AnswerArrays:
        """Build the answers from an array of shape (n, 4): two rows, sign and annotator."""
        first, second, sign, annotator = columns.T
        return cls(first, second, sign, annotator, confidence)


class AnnotatorErrors(NamedTuple):
    """Errors of one annotator: the number of answers that look wrong, and the estimated share of wrong answers."""

    looks_wrong: int
    error_rate: float | None


# For each annotator: the error rate about rows of one group, and about rows of two groups.
Rates = dict[int, tuple[float, float]]


def estimate_rates(answers: AnswerArrays, together: FloatArray | None, told: float | None) -> Rates:
    """Error rates of every annotator, by expectation maximisation.

    `together` is the probability that the two rows of each answer are in one group, given everything except that
    answer, so that answers do not confirm themselves. Answers whose probability is NaN do not count. None means that
    there are no beliefs at all.
    """
    people = np.unique(answers.annotator[answers.annotator != CERTAIN]).tolist()
    base = USUAL_RATE if told is None else max(told, _LEAST_RATE)
    if together is None:
        return dict.fromkeys(people, (base, base))
    counted = (answers.annotator != CERTAIN) & ~np.isnan(together)
    same, said_same = together[counted], answers.sign[counted] > 0
    who = answers.annotator[counted]
    strength = _ALL_STRENGTH if told is None else _TOLD_STRENGTH
    common = base
    for _ in range(_ITERATIONS):
        wrong = _is_wrong(same, said_same, common, common)
        common = float(np.clip((wrong.sum() + base * strength) / (len(wrong) + strength), *_common_bounds(told)))
    # The range of one annotator among several is wide. The rate of a single annotator is the common one, with a bias.
    bounds = _BOUNDS if len(people) > 1 else (common / 1.5, min(1.5 * common, _MOST_RATE))
    return {one: _rates_of_one(same[who == one], said_same[who == one], common, bounds) for one in people}


def _rates_of_one(
    same: FloatArray, said_same: npt.NDArray[np.bool_], common: float, bounds: tuple[float, float]
) -> tuple[float, float]:
    """The two error rates of one annotator, whose prior is the common rate."""
    missed = falsely = common
    for _ in range(_ITERATIONS):
        wrong = _is_wrong(same, said_same, missed, falsely)
        is_same = np.where(said_same, 1 - wrong, wrong)
        missed, falsely = (
            float(np.clip((errors.sum() + common * _ONE_STRENGTH) / (total + _ONE_STRENGTH), *bounds))
            for errors, total in (
                (wrong[~said_same], is_same.sum()),
                (wrong[said_same], len(is_same) - is_same.sum()),
            )
        )
    return missed, falsely


def _is_wrong(same: FloatArray, said_same: npt.NDArray[np.bool_], missed: float, falsely: float) -> FloatArray:
    """Probability that each answer is wrong, given the error rates about rows of one group and of two groups."""
    if_same = same * np.where(said_same, 1 - missed, missed)
    if_apart = (1 - same) * np.where(said_same, falsely, 1 - falsely)
    return np.where(said_same, if_apart, if_same) / (if_same + if_apart)


def _common_bounds(told: float | None) -> tuple[float, float]:
    """Bounds of the error rate of all annotators together."""
    if told is None:
        return _COMMON_BOUNDS
    return max(0.75 * told, _LEAST_RATE), min(max(1.25 * told, _LEAST_RATE), _MOST_RATE)


def count_errors(answers: AnswerArrays, agreement: FloatArray, annotators: list[str]) -> dict[str, AnnotatorErrors]:
    """Errors of every annotator by `name_key`, given the probability that each answer is right (NaN: unknown)."""
    known = (answers.annotator != CERTAIN) & ~np.isnan(agreement)
    wrong, who = 1 - agreement[known], answers.annotator[known]
    common = (wrong.sum() + USUAL_RATE * _ALL_STRENGTH) / (len(wrong) + _ALL_STRENGTH)
    found = {}
    for number, name in enumerate(annotators):
        mine = wrong[who == number]
        rate = (mine.sum() + common * _ONE_STRENGTH) / (len(mine) + _ONE_STRENGTH)
        found[name_key(name)] = AnnotatorErrors(int((mine > 0.5).sum()), float(rate))
    return found


def are_unequal(rates: Rates, least: float) -> bool:
    """Whether error rates of the same kind of two annotators differ by more than `least`."""
    return any(max(kind) - min(kind) > least for kind in zip(*rates.values(), strict=True))


def are_far(one: Rates, other: Rates, least: float) -> bool:
    """Whether an error rate of an annotator differs by more than `least` between two estimates."""
    return any(abs(a - b) > least for who in one for a, b in zip(one[who], other[who], strict=True))


def log_evidence(answers: AnswerArrays, rates: Rates) -> float:
    """Log-probability of all answers if every one of them is wrong.

    The log-probability of the answers given some groups is this plus the sum of the log-odds of the answers that hold,
    so that groups that were found with different rates can be compared.
    """
    total = 0.0
    for said_same, missed, falsely, _ in _by_annotator(answers, rates):
        total += float(np.log(np.where(said_same, falsely, missed)).sum())
    return total


def log_odds(answers: AnswerArrays, rates: Rates) -> FloatArray:
    """Log-odds that the rows of each answer are in one group, from that answer alone.

    A confidence c below 1 mixes the error rate with 1/2; an answer with c = 1/2 has no effect.
    """
    found = _CERTAIN_LOG_ODDS * answers.sign.astype(np.float64)
    for said_same, missed, falsely, mine in _by_annotator(answers, rates):
        odds = np.where(said_same, np.log((1 - missed) / falsely), np.log(missed / (1 - falsely)))
        found[mine] = np.clip(odds, -_MOST_LOG_ODDS, _MOST_LOG_ODDS)
    return found


def _by_annotator(
    answers: AnswerArrays, rates: Rates
) -> Iterator[tuple[npt.NDArray[np.bool_], FloatArray, FloatArray, npt.NDArray[np.bool_]]]:
    """For each annotator: whether each answer is "same", its two error rates, and which answers these are."""
    for one, both in rates.items():
        mine = answers.annotator == one
        trust = np.clip(2 * answers.confidence[mine] - 1, 0, 1)
        missed, falsely = (0.5 - (0.5 - rate) * trust for rate in both)
        yield answers.sign[mine] > 0, missed, falsely, mine
