"""Answers about pairs of rows, in the forms that the functions of `clew.audit` take."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.constraints import Constraints, Said, answer_kind
from clew.constraints._records import row_lookup, row_of
from clew.exceptions import ConstraintError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

SAME, DIFFERENT = "same", "different"


@dataclass(frozen=True)
class StatedAnswers:
    """Answers "same" and "different" as arrays; answers "unsure" are left out.

    For example, the answers ``[((0, 1), "same"), ((1, 2), "unsure"), ((0, 2), "different", 0.9)]`` are::

        index       0       2
        pairs       (0, 1)  (0, 2)
        same        True    False
        confidence  1.0     0.9
    """

    index: IntArray
    pairs: IntArray
    same: BoolArray
    confidence: FloatArray
    annotator: list[Any]
    time: list[Any]
    is_check: BoolArray


_FIELDS = ("pair", "answer", "confidence", "annotator", "time", "is_check")


def answers_from(answers: Any, n_rows: int, ids: Any = None) -> StatedAnswers:
    """Read `Constraints`, or a list of answers in the form of `review`. Records name rows by `ids`, if given."""
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
    for index, entry in _entries(answers, None if ids is None else row_lookup(ids)):
        missing = [name for name in _FIELDS[:2] if name not in entry]
        if missing:
            raise ConstraintError(f"answers[{index}] has no {missing[0]!r}. Give pair and answer.")
        kind = answer_kind(getattr(entry["answer"], "value", entry["answer"]))
        if kind not in ("must", "cannot", "unsure"):
            raise ConstraintError(f"answers[{index}] says {entry['answer']!r}: expected same, different or unsure.")
        if kind != "unsure":
            kept.append((index, _pair(entry["pair"], index, n_rows), kind == "must", _confidence(entry, index), entry))
    return StatedAnswers(
        np.array([index for index, *_ in kept], dtype=np.int64),
        np.array([pair for _, pair, *_ in kept], dtype=np.int64).reshape(-1, 2),
        np.array([same for *_, same, _, _ in kept], dtype=bool),
        np.array([confidence for *_, confidence, _ in kept], dtype=np.float64),
        [_annotator(entry, index) for index, *_, entry in kept],
        [entry.get("time") for *_, entry in kept],
        np.array([bool(entry.get("is_check", False)) for *_, entry in kept], dtype=bool),
    )


def _entries(answers: Iterable[Any], lookup: dict[str, int] | None) -> Iterator[tuple[int, dict[str, Any]]]:
    """The answers about pairs, each with the index of its record. One record may hold several pairs."""
    for index, given in enumerate(answers):
        if not isinstance(given, Said):
            yield index, _entry(given, index)
            continue
        known = None if given.by_position else lookup
        for one in given.records():
            rows = row_of(one.id_1, known), row_of(one.id_2, known)
            if None in rows:
                raise ConstraintError(
                    f"answers[{index}] is about rows {one.id_1!r} and {one.id_2!r}: expected two of the ids, "
                    "or two row positions if there are no ids."
                )
            said = {"answer": one.answer, "confidence": one.confidence, "annotator": one.annotator, "time": one.time}
            yield index, said | {"pair": rows, "is_check": given.check}


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


def constraints_from(given: Any, n_rows: int | None) -> Constraints:
    """Read constraints in any form that `Constraints.of` takes, or a list of answers in the form of `review`."""
    if not _is_list_of_answers(given):
        return Constraints.of(given, n_samples=n_rows)
    stated = answers_from(given, sys.maxsize if n_rows is None else n_rows)
    return Constraints(
        must_link=stated.pairs[stated.same],
        cannot_link=stated.pairs[~stated.same],
        must_link_confidence=stated.confidence[stated.same],
        cannot_link_confidence=stated.confidence[~stated.same],
        n_samples=n_rows,
    )


def _is_list_of_answers(given: Any) -> bool:
    first = given[0] if isinstance(given, Sequence) and not isinstance(given, str) and len(given) else None
    if isinstance(first, Mapping | Said):
        return True
    word = first[1] if isinstance(first, list | tuple) and len(first) > 1 else None
    return isinstance(getattr(word, "value", word), str)
