"""Input and output of the readers: a document of another tool, and the answers found in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from clew.constraints._records import AnswerTable, answer_kind, key_of
from clew.exceptions import ConstraintError, FileError

# Names that tools use for the two ids of a pair.
_PAIRS = (
    ("id_1", "id_2"),
    ("id1", "id2"),
    ("id_l", "id_r"),
    ("unique_id_l", "unique_id_r"),
    ("left_id", "right_id"),
    ("id_left", "id_right"),
    ("id_a", "id_b"),
    ("source_id", "target_id"),
)
_SIDES = (("left", "right"), ("record_1", "record_2"), ("a", "b"))
# Names that tools use for the id of a whole record.
RECORD_IDS = ("id", "unique_id", "rec_id", "recid", "record_id", "_id")

ANSWER_OF_KIND = {"must": "same", "cannot": "different", "unsure": "unsure"}


@dataclass(frozen=True)
class Document:
    """A file or an object of another tool.

    Attributes
    ----------
    name : str
        Name of the document in messages.
    content : mapping of column to cells, list of objects, or one JSON object
    where : callable
        Returns the name of the n-th row or object for messages.
    error : class of errors
    table : mapping of id to record, optional
        The user's rows, for formats with whole records.
    id_columns : tuple of str
        The fields with ids, if the user named them: one for whole records, two for pairs.
    known : set of str, optional
        Lookup keys (`key_of`) of the user's ids.
    """

    name: str
    content: Any
    where: Callable[[int], str]
    error: type[ConstraintError] | type[FileError]
    table: Mapping[Any, Mapping[str, Any]] | None = None
    id_columns: tuple[str, ...] = ()
    known: frozenset[str] | None = None

    @property
    def is_table(self) -> bool:
        """Whether the content is a table: named columns of equal length."""
        if not isinstance(self.content, Mapping) or not all(map(is_list, self.content.values())):
            return False
        return len({len(cells) for cells in self.content.values()}) <= 1

    def has_columns(self, *names: str) -> bool:
        """Whether the table, or the first object of a list, has all of these fields."""
        if isinstance(self.content, Mapping):
            return self.is_table and all(name in self.content for name in names)
        return bool(self.content) and isinstance(self.content[0], Mapping) and all(n in self.content[0] for n in names)

    def rows(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each row or object, with its name for messages."""
        if isinstance(self.content, Mapping):
            if not self.is_table:
                raise self.error(f"{self.name} holds one object; expected a table or a list of objects.")
            names = list(self.content)
            for place, cells in enumerate(zip(*self.content.values(), strict=True)):
                yield self.where(place), dict(zip(names, cells, strict=True))
            return
        for place, value in enumerate(self.content):
            if not isinstance(value, Mapping):
                raise self.error(f"{self.where(place)}: expected an object, found {type(value).__name__}.")
            yield self.where(place), value

    def pair_of_ids(self, place: str, *records: Any) -> tuple[Any, Any]:
        """Find the two ids in one of the records, under the user's field names or common ones."""
        mappings = [record for record in records if isinstance(record, Mapping)]
        named = (self.id_columns,) if len(self.id_columns) == 2 else _PAIRS
        for first, second in named:
            for record in mappings:
                if first in record and second in record:
                    return record[first], record[second]
        for first, second in _SIDES:
            for record in mappings:
                ids = [_own_id(record.get(side), self.id_columns) for side in (first, second)]
                if None not in ids:
                    return ids[0], ids[1]
        fields = ", ".join(dict.fromkeys(str(name) for record in mappings for name in record)) or "none"
        raise self.error(
            f"{place}: found no two ids among its fields ({fields}). Name them: id_columns=('first', 'second')."
        )

    def answer_of(self, place: str, word: Any) -> str:
        """Parse an answer word as same, different or unsure."""
        kind = answer_kind(word)
        if kind is None:
            raise self.error(f"{place}: cannot read the answer {word!r}. Expected same, different or unsure.")
        return ANSWER_OF_KIND[kind]


def is_list(value: Any) -> bool:
    """Whether a value is a list and not a text."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def _own_id(record: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(record, Mapping):
        return None
    return next((record[name] for name in (*names, *RECORD_IDS) if name in record), None)


@dataclass
class Found:
    """Collects the answers that a reader finds."""

    document: Document
    format: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    n_open: int = 0
    unmatched: list[str] = field(default_factory=list)

    def add(self, place: str, ids: tuple[Any, Any], answer: str, **more: Any) -> None:
        """Add one answer. `more` are other columns of clew's files, None if unknown."""
        self.places.append(place)
        self.lines.append({"id_1": ids[0], "id_2": ids[1], "answer": answer, **more})

    def records(self) -> AnswerTable:
        """Return the answers as a table with clew's columns."""
        names = ["id_1", "id_2", "answer"]
        names += [name for name in dict.fromkeys(name for line in self.lines for name in line) if name not in names]
        columns = {name: [line.get(name) for line in self.lines] for name in names}
        columns["source"] = [self.format] * len(self.lines)
        unmatched = ""
        if self.unmatched:
            n_pairs, example = len(self.unmatched), self.unmatched[0]
            unmatched = f"{self.document.name}: {n_pairs} {'pair was' if n_pairs == 1 else 'pairs were'} left out: "
            unmatched += example + (f" (and {n_pairs - 1} more)" if n_pairs > 1 else "") + "."
            if not self.lines:
                raise self.document.error(f"{unmatched} No answer is left. Pass the table the records came from.")
        return AnswerTable(
            columns,
            self.places.__getitem__,
            self.document.error,
            self.document.name,
            format=self.format,
            n_open=self.n_open,
            unmatched=unmatched,
        )


def time_of(value: Any) -> str | None:
    """Convert a time to text. Seconds since 1970 are converted to UTC."""
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC).isoformat()
    return str(value)


def name_of(value: Any) -> str | None:
    """Name of the annotator, from a number, a name or an object about the person."""
    if isinstance(value, Mapping):
        value = next((value[key] for key in ("email", "username", "name", "id") if value.get(key)), None)
    return key_of(value) or None
