"""Questions that were asked and not yet answered, and the pairs of rows that they are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set
from typing import Any

from clew.active._answers import Pair, Question, Stated


class PendingQuestions:
    """Questions without an answer, in the order in which they were asked.

    The driver adds and removes questions. Strategies see their pairs through `View.pending`. Two questions may share a
    pair: after `Pair(0, 1)` and `Which(0, (1, 2))` the pairs are (0, 1), twice, and (0, 2). If the first question is
    removed, (0, 1) is still pending.
    """

    def __init__(self) -> None:
        self._questions: dict[Any, Question] = {}
        self._n_questions_of: Counter[tuple[int, int]] = Counter()

    def __len__(self) -> int:
        return len(self._questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self._questions.values())

    @property
    def pairs(self) -> Set[tuple[int, int]]:
        """The pairs of rows that the questions are about."""
        return self._n_questions_of.keys()

    def find(self, question: Question) -> Question | None:
        """Return the pending question about the same rows, or None."""
        return self._questions.get(question_key(question))

    def add(self, question: Question) -> None:
        """Add a question. It replaces a pending one about the same rows."""
        if question_key(question) not in self._questions:
            self._n_questions_of.update(_pair_keys(question))
        self._questions[question_key(question)] = question

    def remove(self, question: Question | Stated) -> None:
        """Remove a question, if it is pending."""
        found = self._questions.pop(question_key(question), None)
        if found is not None:
            for pair in _pair_keys(found):
                self._n_questions_of[pair] -= 1
                if not self._n_questions_of[pair]:
                    del self._n_questions_of[pair]

    def clear(self) -> None:
        """Remove all questions."""
        self._questions.clear()
        self._n_questions_of.clear()


def question_key(question: Question | Stated) -> Any:
    """Return the key of a question: its rows. The order of a pair does not matter."""
    if isinstance(question, Stated):
        return question
    return question.key if isinstance(question, Pair) else (question.row, question.candidates)


def _pair_keys(question: Question) -> list[tuple[int, int]]:
    if isinstance(question, Pair):
        return [question.key]
    return [Pair(question.row, one).key for one in question.candidates]
