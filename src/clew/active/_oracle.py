"""A simulated annotator who knows the labels, with an error rate, a rate of "don't know" and a budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew._validation import as_generator
from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair, Which
from clew.exceptions import ClewError, ParameterError


class BudgetSpentError(ClewError):
    """The oracle has spent its budget of answers."""


class Oracle:
    """Answers questions from true labels.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels. Every question about a row with label -1 is answered UNSURE.
    noise : float
        Probability of a wrong answer, independent in every call.
    unsure : float
        Probability of "don't know", independent in every call.
    budget : int, optional
        Number of answers before a call raises `BudgetSpentError`.
    random_state : int, Generator, RandomState or None

    Examples
    --------
    >>> from clew.active import Oracle, Pair
    >>> Oracle([0, 0, 1])(Pair(0, 2))
    <Answer.DIFFERENT: 'different'>
    """

    def __init__(
        self, y: Any, *, noise: float = 0.0, unsure: float = 0.0, budget: int | None = None, random_state: Any = None
    ) -> None:
        for name, value in (("noise", noise), ("unsure", unsure)):
            if not 0 <= value <= 1:
                raise ParameterError(f"{name}={value!r} in Oracle: expected a number from 0 to 1.")
        self.y = np.asarray(y)
        self.noise, self.unsure, self.budget = noise, unsure, budget
        self.n_answered = 0
        self._rng = as_generator(random_state)

    def __call__(self, question: Pair | Which) -> Any:
        """Answer a question with SAME, DIFFERENT or UNSURE, or for `Which` also with one of its candidates."""
        if self.budget is not None and self.n_answered >= self.budget:
            raise BudgetSpentError(f"The oracle's budget of {self.budget} answers is spent.")
        self.n_answered += 1
        errs, unsure = self._rng.random(2)
        if unsure < self.unsure:
            return UNSURE
        if isinstance(question, Which):
            return self._which(question, errs < self.noise)
        first, second = self.y[question.first], self.y[question.second]
        if self._unknown(question.first) or self._unknown(question.second):
            return UNSURE
        return self._flip(SAME if first == second else DIFFERENT, errs < self.noise)

    def _which(self, question: Which, errs: bool) -> Any:
        right = [one for one in question.candidates if self.y[one] == self.y[question.row]]
        unknown = [one for one in (question.row, *question.candidates) if self._unknown(one)]
        if question.row in unknown or (unknown and not right):
            return UNSURE
        if errs:
            others = question.candidates if not right else (*question.candidates, DIFFERENT)
            wrong = [one for one in others if one not in right]
            return wrong[int(self._rng.integers(len(wrong)))]
        return right[0] if right else DIFFERENT

    def _unknown(self, row: int) -> bool:
        return self.y.dtype.kind in "iuf" and bool(self.y[row] == -1)

    @staticmethod
    def _flip(answer: Answer, errs: bool) -> Answer:
        return answer if not errs else DIFFERENT if answer is SAME else SAME
