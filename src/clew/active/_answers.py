"""Questions and answers: what a strategy yields, what a person says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from clew.constraints import answer_kind
from clew.exceptions import ParameterError


class Answer(Enum):
    """What a person says about two rows."""

    SAME = "same"
    DIFFERENT = "different"
    UNSURE = "unsure"

    @classmethod
    def of(cls, word: Any) -> Answer:
        """An answer from any of the words people use: same, must, yes, match, 1, … (case does not matter)."""
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
    """Are these two rows the same?

    Attributes
    ----------
    first, second : int
        Row positions. Which is which does not matter: ``Pair(3, 7) == Pair(7, 3)``.
    why : str
        One sentence for the person who is asked.
    check : bool
        Whether the answer is implied already and asked again to find errors.
    rows : tuple of two tuples of ints, optional
        For "do these two clusters belong together?": the rows of each; `first` and `second` stand for them.
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
    """Which of these rows does this row belong with? One answer for up to as many pairs as there are candidates.

    The answer is one of the candidates, `DIFFERENT` (none of them) or `UNSURE`.

    Attributes
    ----------
    row : int
    candidates : tuple of ints
        One row for each group, likeliest first.
    why : str
    """

    row: int
    candidates: tuple[int, ...]
    why: str = ""

    def pairs(self, answer: Any) -> list[tuple[Pair, Answer]]:
        """What an answer says about pairs."""
        if answer is UNSURE:
            return [(Pair(self.row, candidate), UNSURE) for candidate in self.candidates]
        return [
            (Pair(self.row, candidate), SAME if answer is not DIFFERENT and candidate == answer else DIFFERENT)
            for candidate in self.candidates
        ]

    def read(self, answer: Any) -> Any:
        """One of the candidates, DIFFERENT or UNSURE; anything else is refused."""
        if isinstance(answer, int | np.integer) and not isinstance(answer, bool | np.bool_):
            if int(answer) in self.candidates:
                return int(answer)
            raise ParameterError(f"Row {answer} is not among the candidates {list(self.candidates)}.")
        word = Answer.of("different" if str(answer).strip().casefold() == "none" else answer)
        if word is SAME:
            raise ParameterError(f"Say which row it is the same as: one of {list(self.candidates)}.")
        return word


@dataclass(frozen=True)
class Stated:
    """Pairs that somebody volunteered: all of them are taken in, or none.

    Attributes
    ----------
    said : tuple of (Pair, Answer)
    """

    said: tuple[tuple[Pair, Answer], ...]

    def pairs(self, answer: Any) -> list[tuple[Pair, Answer]]:
        """What was said about pairs, unless the whole is "unsure"."""
        return [(pair, UNSURE) for pair, _ in self.said] if answer is UNSURE else list(self.said)
