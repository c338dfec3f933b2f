"""Types of questions that a strategy yields, and of answers that an annotator gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from clew.constraints import answer_kind
from clew.exceptions import ParameterError


class Answer(Enum):
    """The annotator's answer about two rows: same cluster, different clusters, or unsure."""

    SAME = "same"
    DIFFERENT = "different"
    UNSURE = "unsure"

    # The hash of `Enum` calls Python code, and answers are keys of dictionaries in inner loops.
    __hash__ = object.__hash__

    @classmethod
    def of(cls, word: Any) -> Answer:
        """Parse an answer from any of the usual words: same, must, yes, match, 1, … (in upper or lower case)."""
        if isinstance(word, Answer):
            return word
        if isinstance(word, bool | np.bool_):
            return SAME if word else DIFFERENT
        kind = answer_kind(word)
        if kind is not None:
            return _OF_KIND[kind]
        raise ParameterError(f"Cannot read the answer {word!r}. Say same, different or unsure.")


SAME, DIFFERENT, UNSURE = Answer.SAME, Answer.DIFFERENT, Answer.UNSURE

_OF_KIND = {"must": SAME, "cannot": DIFFERENT, "unsure": UNSURE}


@dataclass(frozen=True)
class Pair:
    """Ask whether two rows belong to the same cluster.

    Attributes
    ----------
    first, second : int
        Row positions. Their order does not matter: ``Pair(3, 7) == Pair(7, 3)``.
    why : str
        One sentence that tells the annotator why this question is asked.
    check : bool
        True if earlier answers already imply the answer and the question is asked to find errors.
    rows : tuple of two tuples of ints, optional
        Rows of the two clusters, for "do these two clusters belong together?". `first` and `second` are then the
        representatives of the clusters.
    """

    first: int
    second: int
    why: str = ""
    check: bool = False
    rows: tuple[tuple[int, ...], tuple[int, ...]] | None = None

    @property
    def key(self) -> tuple[int, int]:
        """The two rows, lower first."""
        first, second = int(self.first), int(self.second)
        return (first, second) if first < second else (second, first)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Pair) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Which:
    """Ask which of several rows a row belongs with.

    The answer is one of the candidates, `DIFFERENT` (none of them) or `UNSURE`. It decides one pair per candidate.

    Attributes
    ----------
    row : int
    candidates : tuple of ints
        One representative for each group, most probable group first.
    why : str
        One sentence that tells the annotator why this question is asked.
    """

    row: int
    candidates: tuple[int, ...]
    why: str = ""

    def pairs(self, answer: Any) -> list[tuple[Pair, Answer]]:
        """Translate an answer into answers about pairs: the row with each candidate."""
        if answer is UNSURE:
            return [(Pair(self.row, candidate), UNSURE) for candidate in self.candidates]
        return [
            (Pair(self.row, candidate), SAME if answer is not DIFFERENT and candidate == answer else DIFFERENT)
            for candidate in self.candidates
        ]

    def read(self, answer: Any) -> Any:
        """Parse an answer: one of the candidates, DIFFERENT or UNSURE. Any other value raises `ParameterError`."""
        if isinstance(answer, int | np.integer) and not isinstance(answer, bool | np.bool_):
            if int(answer) in self.candidates:
                return int(answer)
            raise ParameterError(f"Row {answer} is not among the candidates {list(self.candidates)}.")
        word = Answer.of("different" if str(answer).strip().casefold() == "none" else answer)
        if word is SAME:
            raise ParameterError(f"Say which row it is the same as: one of {list(self.candidates)}.")
        return word


Question = Pair | Which


@dataclass(frozen=True)
class Stated:
    """Pairs that an annotator volunteered. Either all of them are accepted, or none.

    Attributes
    ----------
    said : tuple of (Pair, Answer)
        The pairs with their answers.
    """

    said: tuple[tuple[Pair, Answer], ...]

    def pairs(self, answer: Any) -> list[tuple[Pair, Answer]]:
        """Return the pairs with their answers, or with UNSURE for each if `answer` is UNSURE."""
        return [(pair, UNSURE) for pair, _ in self.said] if answer is UNSURE else list(self.said)
