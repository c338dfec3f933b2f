"""Answers about pairs with annotator, time and confidence: read from files of many tools, written to clew's own."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Protocol, overload, runtime_checkable

import numpy as np

from clew._tables import write_table
from clew.constraints._arrays import FloatArray
from clew.constraints._files import read_records
from clew.constraints._records import AnswerTable, confidences_of, key_of, kinds_of
from clew.constraints.formats._document import ANSWER_OF_KIND
from clew.exceptions import ParameterError


@dataclass(frozen=True)
class AnswerRecord:
    """One annotator's answer about two rows.

    Attributes
    ----------
    id_1, id_2 : object
        The ids of the rows, as written in the file.
    answer : {"same", "different", "unsure"}
    confidence : float
        In (0, 1]; 1 if the file gives none.
    annotator, comment, source : str or None
        Name of the annotator, comment, and the tool or source.
    time : str or None
        Time as the tool wrote it. Seconds since 1970 become a text in UTC.
    seconds : float or None
        Time the annotator took.
    certain : bool
        Whether the record is a fact and not somebody's answer: the file gives the confidence 1 and names no annotator.

    Notes
    -----
    All parts of clew exchange answers as this type. Files are read as such records. `clew.session.Record` and
    `clew.active.Answered` have a method `records` that converts them (`Said`). `clew.audit.review` takes all three.
    """

    check: ClassVar[bool] = False
    by_position: ClassVar[bool] = False

    id_1: Any
    id_2: Any
    answer: str
    confidence: float = 1.0
    annotator: str | None = None
    time: str | None = None
    seconds: float | None = None
    comment: str | None = None
    source: str | None = None
    certain: bool = False

    def records(self) -> list[AnswerRecord]:
        """A list with only this record."""
        return [self]


@runtime_checkable
class Said(Protocol):
    """Protocol of all types of answers in clew: they can be converted to records about pairs.

    Attributes
    ----------
    check : bool
        Whether the question was a check question, whose answer was already implied.
    by_position : bool
        Whether the records name rows by their position in the data instead of by the user's ids.
    """

    @property
    def check(self) -> bool: ...
    @property
    def by_position(self) -> bool: ...
    def records(self) -> list[AnswerRecord]:
        """One record for each pair of rows."""
        ...


class Answers(Sequence[AnswerRecord]):
    """The answers of one file, in its order.

    Attributes
    ----------
    format : str
        The tool that wrote the file, or "clew".
    n_open : int
        Number of questions in the file without an answer.
    unmatched : str
        A sentence about pairs of records that match no row, or several rows. Empty if there are none.
    """

    def __init__(self, records: AnswerTable) -> None:
        self.records = records
        self._answers = answers_of(records)

    @property
    def format(self) -> str:
        """The tool that wrote the file, or "clew"."""
        return self.records.format

    @property
    def n_open(self) -> int:
        """Number of questions in the file without an answer."""
        return self.records.n_open

    @property
    def unmatched(self) -> str:
        """A sentence about pairs of records that match no row, or several rows. Empty if there are none."""
        return self.records.unmatched

    def __len__(self) -> int:
        return len(self._answers)

    @overload
    def __getitem__(self, place: int) -> AnswerRecord: ...
    @overload
    def __getitem__(self, place: slice) -> list[AnswerRecord]: ...
    def __getitem__(self, place: int | slice) -> AnswerRecord | list[AnswerRecord]:
        return self._answers[place]

    def prices(self, trust: Mapping[str, float], default: float = 1.0) -> dict[str, FloatArray]:
        """Prices for `Constraints.repair`: the confidence of each answer times the trust in its annotator.

        Parameters
        ----------
        trust : mapping of annotator to float
            For example the share of right answers. Infinity means that the annotator's answers are never dropped.
        default : float
            Trust in annotators that are not in `trust`, and in answers without an annotator.
        """
        known = {record.annotator for record in self._answers}
        unknown = [name for name in trust if name not in known]
        if unknown:
            raise ParameterError(f"prices: {unknown[0]!r} gave no answer in {self.records.name}. Check the name.")
        found: dict[str, list[float]] = {"same": [], "different": [], "unsure": []}
        for record in self._answers:
            found[record.answer].append(record.confidence * trust.get(record.annotator or "", default))
        return {"must_link": np.array(found["same"]), "cannot_link": np.array(found["different"])}

    def __iter__(self) -> Iterator[AnswerRecord]:
        return iter(self._answers)

    def __repr__(self) -> str:
        said = [record.answer for record in self._answers]
        counts = ", ".join(f"{said.count(word)} {word}" for word in ANSWER_OF_KIND.values())
        return f"<{len(self)} answers from {self.records.name} ({self.format}): {counts}>"


def read_answers(
    source: Any,
    *,
    format: str | None = None,
    table: Mapping[Any, Mapping[str, Any]] | None = None,
    id_columns: str | Sequence[str] = (),
) -> Answers:
    """Read answers from files and frames of clew and of other tools.

    Parameters
    ----------
    source : path or frame
        A csv, tsv, jsonl, json, parquet, txt or npz file, or a pandas, polars or Arrow frame with the same columns.
    format : str, optional
        The tool that wrote the file: clew, splink, zingg, dedupe, label-studio, argilla, prodigy, cognitivefactory,
        cop-kmeans or metric-learn. Default: detected from the content.
    table : mapping of id to record, optional
        The user's rows, for files of whole records (dedupe, zingg). A record matches the row with the same values.
    id_columns : str or two str, optional
        The field with the id of a whole record, or the two fields with the ids of a pair, if their names are unusual.

    Raises
    ------
    FileError
        The file cannot be read, or is not in the format of the tool. The message names the line or record.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clew.constraints import read_answers
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.csv")
    ...     _ = path.write_text("unique_id_l,unique_id_r,clerical_match_score\\na,b,1.0\\na,c,0.1\\n")
    ...     answers = read_answers(path)
    >>> answers
    <2 answers from labels.csv (splink): 1 same, 1 different, 0 unsure>
    >>> answers[1].id_2, answers[1].answer, answers[1].confidence
    ('c', 'different', 0.9)
    """
    known = None if table is None else list(table)
    return Answers(read_records(source, format=format, table=table, id_columns=id_columns, known=known))


def write_answers(path: str | os.PathLike[str], answers: Iterable[AnswerRecord]) -> None:
    """Write answers as csv, tsv, jsonl or parquet, for `read_answers`. An error leaves no partial file.

    Empty columns are left out. An answer without an annotator has no confidence in the file unless it is certain or its
    confidence is below 1, so that it is no fact when the file is read again. In csv and tsv, text that a spreadsheet
    would run as a formula is escaped.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clew.constraints import AnswerRecord, write_answers
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "answers.csv")
    ...     write_answers(path, [AnswerRecord("a", "b", "same", annotator="=me")])
    ...     print(path.read_text(), end="")
    id_1,id_2,answer,confidence,annotator
    a,b,same,1.0,'=me
    """
    lines = [asdict(answer) | {"confidence": _written_confidence(answer)} for answer in answers]
    needed = ("id_1", "id_2", "answer", "confidence")
    names = [field.name for field in fields(AnswerRecord) if field.name != "certain"]
    names = [name for name in names if name in needed or any(line[name] is not None for line in lines)]
    write_table(path, {name: [line[name] for line in lines] for name in names})


def answers_of(records: AnswerTable, *, only_pairs: bool = False) -> list[AnswerRecord]:
    """The answers in records of a file. Other kinds of constraints raise an error, unless `only_pairs` skips them."""
    kinds = kinds_of(records)
    confidences = confidences_of(records, kinds)
    first, second = records.column("id_1")[1], records.column("id_2")[1]
    empty: list[Any] = [None] * len(kinds)
    more = [records.columns.get(name, empty) for name in ("annotator", "time", "seconds", "comment", "source")]
    answers = []
    given = records.columns.get("confidence", empty) if records.format == "clew" else empty
    for place, (kind, sure) in enumerate(zip(kinds.tolist(), confidences, strict=True)):
        if kind not in ANSWER_OF_KIND and only_pairs:
            continue
        if kind not in ANSWER_OF_KIND:
            raise records.error(
                f"{records.where(place)}: states a {kind}, not an answer about a pair. Constraints.from_file reads it."
            )
        for name, value in (("id_1", first[place]), ("id_2", second[place])):
            if not key_of(value):
                raise records.error(f"{records.where(place)}: has no {name}.")
        annotator, time, seconds, comment, source = (column[place] for column in more)
        answers.append(
            AnswerRecord(
                first[place],
                second[place],
                ANSWER_OF_KIND[kind],
                sure if kind != "unsure" or 0 < sure <= 1 else 1.0,
                _text(annotator),
                _text(time),
                _seconds(records, place, seconds),
                _text(comment),
                _text(source),
                is_certain(kind, given[place], annotator),
            )
        )
    return answers


def is_certain(answer: str, confidence: Any, annotator: Any) -> bool:
    """Whether a record is a fact: it gives the confidence 1 and names no annotator."""
    return answer != "unsure" and key_of(confidence) == "1" and _text(annotator) is None


def _written_confidence(answer: AnswerRecord) -> float | None:
    is_plain = answer.confidence == 1 and answer.annotator is None and not answer.certain
    return None if is_plain else answer.confidence


def _text(value: Any) -> str | None:
    return None if value is None or value == "" or value != value else str(value)


def _seconds(records: AnswerTable, place: int, value: Any) -> float | None:
    if not key_of(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise records.error(f"{records.where(place)}: seconds is {value!r}; expected a number.") from None
