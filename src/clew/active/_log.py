"""Entries of a log of answers, and the counts and constraints that follow from a log."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from clew.active._answers import DIFFERENT, SAME, UNSURE, Answer, Pair, Question, Stated, Which
from clew.constraints import AnswerRecord, Constraints
from clew.constraints._records import row_of
from clew.exceptions import ParameterError

Entry = Pair | Which | Stated


@dataclass(frozen=True)
class Answered:
    """One entry of the log.

    Attributes
    ----------
    question : Pair, Which or Stated
    answer : Answer or int
        For `Which`, also the chosen row. For `Stated`, SAME, or UNSURE to retract the statement.
    confidence : float
    expected : Answer or None
        The answer that the clustering predicted when the question was asked.
    conflict : bool
        True if the answer contradicts earlier answers. It is then not used until the conflict is resolved.
    votes : tuple of (str, Answer or int, float)
        Annotator, answer and confidence of everybody who answered the question, if their names are known.
    disputed : bool
        Whether the question has been answered both ways, even if these answers have been changed since. It is a sign
        that answers may be wrong.
    """

    question: Entry
    answer: Any
    confidence: float = 1.0
    expected: Answer | None = None
    conflict: bool = False
    votes: tuple[tuple[str, Any, float], ...] = ()
    disputed: bool = False

    by_position: ClassVar[bool] = True

    @property
    def check(self) -> bool:
        """Whether the question was a check question."""
        return isinstance(self.question, Pair) and self.question.check

    def records(self) -> list[AnswerRecord]:
        """One record for each pair, with row positions as ids."""
        return [AnswerRecord(*pair.key, answer.value, self.confidence) for pair, answer in said_in(self)]


def as_answered(item: Any) -> Answered:
    """Return an entry for a record of row positions, or for a question and its answer."""
    if isinstance(item, AnswerRecord):
        rows = [row_of(one, None) for one in (item.id_1, item.id_2)]
        if item.certain:
            pair = Pair(rows[0], rows[1])  # type: ignore[arg-type]
            return Answered(Stated(((pair, Answer.of(item.answer)),)), SAME)
        return Answered((rows[0], rows[1]), item.answer, item.confidence)  # type: ignore[arg-type]
    if isinstance(item, tuple | list) and len(item) == 2:
        return Answered(item[0], item[1])
    raise ParameterError(f"{item!r} in the log: expected an entry of `answers`, or a question and its answer.")


def as_question(question: Any, n_rows: int) -> Question:
    """Return a valid question; two rows become a `Pair`. Raises if a row is out of range or named twice."""
    if isinstance(question, tuple | list) and len(question) == 2:
        question = Pair(question[0], question[1])
    if not isinstance(question, Question):
        raise ParameterError(f"{question!r} is not a question. Pass a question from ask(), or a pair of rows.")
    row, *others = (question.first, question.second) if isinstance(question, Pair) else (
        question.row, *question.candidates
    )  # fmt: skip
    for one in (row, *others):
        if type(one) is not int and (isinstance(one, bool) or not isinstance(one, int | np.integer)):
            raise ParameterError(f"Row {one!r} is not a row position: expected an integer.")
        if not 0 <= one < n_rows:
            raise ParameterError(f"Row {one} is out of range: X has {n_rows} rows.")
    if row in others:
        raise ParameterError(f"The question names row {row} twice.")
    if isinstance(question, Which) and not others:
        raise ParameterError(f"The question about row {row} has no candidates.")
    return question


def said_in(entry: Answered) -> list[tuple[Pair, Answer]]:
    """Return the pairs of a log entry with their answers."""
    question = entry.question
    return [(question, entry.answer)] if isinstance(question, Pair) else question.pairs(entry.answer)


class Stack:
    """Counts and constraints of a log, updated with each entry, so that a long log is not read again.

    For example, after the entries ``0 = 1``, ``1 ≠ 2`` (confidence 0.5), "unsure" and ``0 ≠ 3``, the must-links are
    ``0 1``, the cannot-links are ``1 2 0 3`` with the confidences ``0.5 1``, and the sizes after each entry, of
    must-links, cannot-links, unsure and foreseen answers, are (1, 0, 0, 0), (1, 1, 0, 0), (1, 1, 1, 0), (1, 2, 1, 0).

    Attributes
    ----------
    n_unsure : int
        Number of "unsure" answers.
    foreseen : list of Answered
        Answers for which a clustering had predicted an answer.
    """

    def __init__(self) -> None:
        self._rows = {SAME: array("q"), DIFFERENT: array("q")}
        self._confidence = {SAME: array("d"), DIFFERENT: array("d")}
        self.n_unsure = 0
        self.foreseen: list[Answered] = []
        self._sizes: list[tuple[int, int, int, int]] = []

    def copy(self) -> Stack:
        """Return an independent copy."""
        other = Stack()
        for answer in (SAME, DIFFERENT):
            other._rows[answer] += self._rows[answer]
            other._confidence[answer] += self._confidence[answer]
        other.n_unsure, other.foreseen, other._sizes = self.n_unsure, self.foreseen[:], self._sizes[:]
        return other

    def add(self, entry: Answered) -> None:
        """Add an entry. The pairs of a contradicting entry are not used."""
        for pair, answer in () if entry.conflict else said_in(entry):
            if answer is not UNSURE:
                self._rows[answer].extend(pair.key)
                self._confidence[answer].append(entry.confidence)
        self.n_unsure += entry.answer is UNSURE
        if entry.expected is not None and entry.answer in (SAME, DIFFERENT):
            self.foreseen.append(entry)
        n_must, n_cannot = len(self._confidence[SAME]), len(self._confidence[DIFFERENT])
        self._sizes.append((n_must, n_cannot, self.n_unsure, len(self.foreseen)))

    def rewind(self, n: int) -> None:
        """Remove all entries after the first n."""
        n_must, n_cannot, self.n_unsure, n_foreseen = self._sizes[n - 1] if n else (0, 0, 0, 0)
        for answer, n_pairs in ((SAME, n_must), (DIFFERENT, n_cannot)):
            del self._rows[answer][2 * n_pairs :], self._confidence[answer][n_pairs:]
        del self.foreseen[n_foreseen:], self._sizes[n:]

    def constraints(self, n_rows: int) -> Constraints:
        """Return the pairs as constraints."""
        must, cannot = (np.array(self._rows[answer], dtype=np.int64).reshape(-1, 2) for answer in (SAME, DIFFERENT))
        return Constraints(
            must,
            cannot,
            must_link_confidence=np.array(self._confidence[SAME], dtype=np.float64),
            cannot_link_confidence=np.array(self._confidence[DIFFERENT], dtype=np.float64),
            n_samples=n_rows,
        )
