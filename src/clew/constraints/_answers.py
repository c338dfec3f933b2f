"""Answers about pairs, with who said it, when and how sure: read from any tool's file, written to ours."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, overload

from clew._tables import write_table
from clew.constraints._files import read_records
from clew.constraints._records import Records, confidences_of, key_of, kinds_of
from clew.constraints.formats._document import ANSWER_OF_KIND


@dataclass(frozen=True)
class AnswerRecord:
    """What somebody said about two rows.

    Attributes
    ----------
    id_1, id_2 : object
        The user's names of the rows, as the file writes them.
    answer : {"same", "different", "unsure"}
    confidence : float
        In (0, 1]; 1 where nothing was said.
    annotator, time, comment, source : str or None
        Who, when (as the tool wrote it; UTC where it wrote seconds), what else, and which tool or source.
    seconds : float or None
        How long the answer took.
    """

    id_1: Any
    id_2: Any
    answer: str
    confidence: float = 1.0
    annotator: str | None = None
    time: str | None = None
    seconds: float | None = None
    comment: str | None = None
    source: str | None = None


class Answers(Sequence[AnswerRecord]):
    """The answers of one file, in its order.

    Attributes
    ----------
    format : str
        The tool that wrote it; "clew" for our own.
    n_open : int
        Questions in it that nobody has answered.
    unmatched : str
        A sentence about pairs of whole records that are in no row, or in several; empty if there are none.
    """

    def __init__(self, records: Records) -> None:
        self.records = records
        self._answers = _answers_of(records)

    @property
    def format(self) -> str:
        """The tool that wrote it; "clew" for our own."""
        return self.records.format

    @property
    def n_open(self) -> int:
        """Questions in it that nobody has answered."""
        return self.records.n_open

    @property
    def unmatched(self) -> str:
        """A sentence about pairs of whole records that are in no row, or in several; empty if there are none."""
        return self.records.unmatched

    def __len__(self) -> int:
        return len(self._answers)

    @overload
    def __getitem__(self, place: int) -> AnswerRecord: ...
    @overload
    def __getitem__(self, place: slice) -> list[AnswerRecord]: ...
    def __getitem__(self, place: int | slice) -> AnswerRecord | list[AnswerRecord]:
        return self._answers[place]

    def __iter__(self) -> Iterator[AnswerRecord]:
        return iter(self._answers)

    def __repr__(self) -> str:
        said = [record.answer for record in self._answers]
        counts = ", ".join(f"{said.count(word)} {word}" for word in ANSWER_OF_KIND.values())
        return f"<{len(self)} answers from {self.records.name} ({self.format}): {counts}>"


def read_answers(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    table: Mapping[Any, Mapping[str, Any]] | None = None,
    id_columns: str | Sequence[str] = (),
) -> Answers:
    """Read answers from our own files and from those of other tools.

    Parameters
    ----------
    path : path
        csv, tsv, jsonl, json, parquet, txt or npz.
    format : str, optional
        The tool that wrote it: clew, splink, zingg, dedupe, label-studio, argilla, prodigy, cognitivefactory,
        cop-kmeans or metric-learn. Found from the content unless given.
    table : mapping of id to record, optional
        The user's rows, for files of whole records (dedupe, zingg): a record is the row that holds the same values.
    id_columns : str or two str, optional
        The field that holds the id of a whole record, or the two that hold the ids of a pair, where they have
        unusual names.

    Raises
    ------
    FileError
        The file cannot be read, or is not what the tool writes; the message names the place.

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
    return Answers(read_records(path, format=format, table=table, id_columns=id_columns, known=known))


def write_answers(path: str | os.PathLike[str], answers: Iterable[AnswerRecord]) -> None:
    """Write answers as csv, tsv, jsonl or parquet, whole or not at all; `read_answers` gives them back.

    Columns that nobody filled are left out. In csv and tsv, text that a spreadsheet would run is guarded.

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
    lines = [asdict(answer) for answer in answers]
    needed = ("id_1", "id_2", "answer", "confidence")
    names = [field.name for field in fields(AnswerRecord)]
    names = [name for name in names if name in needed or any(line[name] is not None for line in lines)]
    write_table(path, {name: [line[name] for line in lines] for name in names})


def _answers_of(records: Records) -> list[AnswerRecord]:
    kinds = kinds_of(records)
    confidences = confidences_of(records, kinds)
    first, second = records.column("id_1")[1], records.column("id_2")[1]
    empty: list[Any] = [None] * len(kinds)
    more = [records.columns.get(name, empty) for name in ("annotator", "time", "seconds", "comment", "source")]
    answers = []
    for place, (kind, sure) in enumerate(zip(kinds.tolist(), confidences, strict=True)):
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
            )
        )
    return answers


def _text(value: Any) -> str | None:
    return None if value is None or value == "" or value != value else str(value)


def _seconds(records: Records, place: int, value: Any) -> float | None:
    if not key_of(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise records.error(f"{records.where(place)}: seconds is {value!r}; expected a number.") from None
