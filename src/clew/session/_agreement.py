"""Inter-annotator agreement: pairs with several answers, agreement per annotator, and Cohen's kappa."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from clew._words import name_key
from clew.active._annotators import AnnotatorErrors
from clew.session._ledger import Record


@dataclass(frozen=True)
class PairAgreement:
    """Answers to a pair that was answered more than once."""

    left: Any
    right: Any
    answers: dict[str, str]
    agree: bool


@dataclass(frozen=True)
class PersonAgreement:
    """How often an annotator agrees with the others.

    Attributes
    ----------
    annotator : str
    answered : int
        Number of answers, "unsure" included.
    shared, agreed : int
        Number of answers of others to the same pairs, and how many of them agree.
    looks_wrong : int
        Number of answers that are more likely wrong than right, given all answers and the rows. 0 while answers are
        facts: no error rate is given and no answers contradict each other.
    error_rate : float or None
        Estimated share of wrong answers, as they are now. None while answers are facts.
    corrected : int
        Number of answers that somebody has changed to the opposite since.
    """

    annotator: str
    answered: int
    shared: int
    agreed: int
    looks_wrong: int = 0
    error_rate: float | None = None
    corrected: int = 0


@dataclass(frozen=True)
class Agreement:
    """Agreement between annotators; see `Session.agreement`.

    Attributes
    ----------
    pairs : list of PairAgreement
    people : list of PersonAgreement
    kappa : dict
        Cohen's kappa of each two annotators over the pairs that both answered. Two annotators without common pairs are
        left out. None if kappa is undefined, because both always gave the same answer.
    """

    pairs: list[PairAgreement]
    people: list[PersonAgreement]
    kappa: dict[tuple[str, str], float | None]


def agreement(
    slots: Iterable[list[Record]],
    errors: dict[str, AnnotatorErrors] | None = None,
    first_answer: Callable[[int], Record] | None = None,
) -> Agreement:
    """Compute agreement from the answers in effect, grouped by pair.

    `errors` are the estimated errors of annotators, by `name_key`. `first_answer` gives the first version of an answer,
    by its number. Names that differ only in case or in spaces at the ends are one annotator, under the first spelling.
    """
    pairs, shared, agreed, answered = [], Counter[str](), Counter[str](), Counter[str]()
    both: dict[tuple[str, str], list[tuple[str, str]]] = {}
    grouped = [records for records in slots if not records[0].certain]  # a fact is nobody's answer
    everything = sorted((record for records in grouped for record in records), key=lambda record: record.id)
    names: dict[str, str] = {}
    for record in everything:
        names.setdefault(name_key(record.annotator), record.annotator)
    for records in grouped:
        answers = {names[name_key(record.annotator)]: record.answer for record in records}
        answered.update(answers.keys())
        if len(answers) < 2 or records[0].kind == "which":
            continue
        agree = len(set(answers.values())) == 1
        pairs.append(PairAgreement(records[0].left, records[0].right, answers, agree))
        for person, answer in answers.items():
            others = [given for other, given in answers.items() if other != person]
            shared[person] += len(others)
            agreed[person] += sum(given == answer for given in others)
        for one, two in combinations(sorted(answers), 2):
            both.setdefault((one, two), []).append((answers[one], answers[two]))
    corrected = Counter(
        names[name_key(record.annotator)]
        for record in everything
        if first_answer is not None and {record.answer, first_answer(record.id).answer} == {"same", "different"}
    )
    people = []
    for person in sorted(answered):
        found = (errors or {}).get(name_key(person), AnnotatorErrors(0, None))
        people.append(
            PersonAgreement(
                person,
                answered[person],
                shared[person],
                agreed[person],
                found.looks_wrong,
                found.error_rate,
                corrected[person],
            )
        )
    return Agreement(pairs, people, {people: cohens_kappa(given) for people, given in sorted(both.items())})


def cohens_kappa(given: list[tuple[str, str]]) -> float | None:
    """Cohen's kappa, the agreement of two annotators beyond chance. None if agreement by chance is already 1.

    Examples
    --------
    >>> from clew.session._agreement import cohens_kappa
    >>> cohens_kappa([("same", "same"), ("different", "different"), ("same", "different"), ("same", "same")])
    0.5
    """
    n = len(given)
    first, second = Counter(one for one, _ in given), Counter(two for _, two in given)
    chance = sum(first[answer] * second[answer] for answer in first) / n**2
    if chance == 1:
        return None
    return (sum(one == two for one, two in given) / n - chance) / (1 - chance)
