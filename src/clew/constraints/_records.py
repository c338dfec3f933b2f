"""Convert records (lines of a file, rows of a frame) to the arguments of `Constraints`, and back.

Columns: ``id_1, id_2, answer[, confidence, annotator, time, source, comment]``. Constraints other than pairs use the
same table with another word as answer:

=============  ==============================================================
answer         meaning
=============  ==============================================================
label          id_1 has class ``group``
must_group     id_1 is in must-group ``group`` (of ``column``, default 0)
cannot_group   id_1 is in cannot-group ``group`` (of ``column``, default 0)
soft_group     id_1 is in soft group ``group`` with strength ``confidence``
closer         id_1 is closer to id_2 than to ``id_3``
rows           there are ``group`` rows in all
=============  ==============================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from clew.constraints._arrays import IntArray, group_columns
from clew.exceptions import ConstraintError, FileError

if TYPE_CHECKING:
    from clew.constraints._constraints import Constraints

# Column names of related tools, and the names in clew.
_ALIASES = {
    "id_1": ("id_1", "i", "unique_id_l"),
    "id_2": ("id_2", "j", "unique_id_r"),
    "answer": ("answer", "type"),
}
_ANSWERS = {
    "must": ("same", "must", "must_link", "must-link", "ml", "match", "duplicate", "yes", "y", "1", "+1", "true"),
    "cannot": (
        "different",
        "cannot",
        "cannot_link",
        "cannot-link",
        "cl",
        "distinct",
        "non-match",
        "not a match",
        "not duplicate",
        "no",
        "n",
        "-1",
        "0",
        "false",
    ),
    "unsure": ("unsure", "not sure", "don't know", "can't say", "unknown", "skip", "uncertain", "u", "?"),
}
# Largest number of group columns. A larger number is a mistake in the file.
_COLUMNS = 100
_KIND_OF_WORD = {word: kind for kind, words in _ANSWERS.items() for word in words}
_OTHER_KINDS = ("label", "must_group", "cannot_group", "soft_group", "closer", "rows")
# Kinds whose groups may be names.
_NAMED_KINDS = ("label", "must_group", "cannot_group")


@dataclass(frozen=True)
class AnswerTable:
    """A table of answers from a file: columns by name, and a function that names the n-th record in messages.

    `format` is the tool that wrote the file. `n_open` is the number of questions without an answer. `unmatched` is a
    sentence about pairs of records that match no row.
    """

    columns: Mapping[str, Sequence[Any]]
    where: Callable[[int], str]
    error: type[ConstraintError] | type[FileError]
    name: str
    format: str = "clew"
    n_open: int = 0
    unmatched: str = ""

    def column(self, name: str) -> tuple[str, Sequence[Any]]:
        """A required column, by its name in clew or a known alias."""
        for alias in _ALIASES[name]:
            if alias in self.columns:
                return alias, self.columns[alias]
        raise self.error(
            f"{self.name} has no column {name!r}; it has {', '.join(map(repr, self.columns))}. "
            "Expected id_1, id_2, answer[, confidence]."
        )

    def ids(self) -> list[str]:
        """All ids in the table, in order of first appearance."""
        first, second = self.column("id_1")[1], self.column("id_2")[1]
        named = [key_of(value) for pair in zip(first, second, strict=True) for value in pair]
        named += [key_of(value) for value in self.columns.get("id_3", ())]
        return [name for name in dict.fromkeys(named) if name]


def key_of(value: Any) -> str:
    """Lookup key of an id: 7, 7.0 and "7" are the same id."""
    if type(value) is int:
        return str(value)
    if type(value) is not str:
        if value is None or (isinstance(value, float) and value != value):
            return ""
        if isinstance(value, float | np.floating) and float(value).is_integer():
            return str(int(value))
    text = str(value).strip()
    if "." not in text:
        return text
    whole, _, rest = text.partition(".")
    return whole if rest and not rest.strip("0") and _is_whole(whole) else text


def answer_kind(word: Any) -> str | None:
    """Parse an answer word in any case as "must", "cannot" or "unsure". None for unknown words."""
    return _KIND_OF_WORD.get(key_of(word).casefold())


def row_lookup(ids: Any) -> dict[str, int]:
    """Row position of each id."""
    rows = {key_of(value): row for row, value in enumerate(np.asarray(ids, dtype=object).tolist())}
    if len(rows) < len(ids):
        seen: set[str] = set()
        for row, value in enumerate(np.asarray(ids, dtype=object).tolist()):
            if key_of(value) in seen:
                raise ConstraintError(f"ids[{row}] is {value!r}, like an earlier id. Ids must be unique.")
            seen.add(key_of(value))
    return rows


def row_of(value: Any, lookup: dict[str, int] | None) -> int | None:
    """Row position of an id, or of a row position if there is no lookup. None if there is no such row."""
    key = key_of(value)
    if lookup is not None:
        return lookup.get(key)
    return int(key) if _is_whole(key) else None


def arguments_of(records: AnswerTable, ids: Any, n_samples: int | None) -> dict[str, Any]:
    """Convert records to the arguments of `Constraints`."""
    if records.unmatched:
        warnings.warn(records.unmatched, stacklevel=4)
    lookup = None if ids is None else row_lookup(ids)
    kinds = kinds_of(records)
    n_records = len(kinds)
    confidence = np.array(confidences_of(records, kinds))
    paired = np.isin(kinds, ("must", "cannot", "closer"))
    named = paired | np.isin(kinds, ("label", "must_group", "cannot_group", "soft_group"))
    first = _rows(records, "id_1", records.column("id_1")[1], lookup, named)
    seconds = records.column("id_2")[1] if paired.any() else [""] * n_records
    second = _rows(records, "id_2", seconds, lookup, paired)
    third = _rows(records, "id_3", records.columns.get("id_3", [""] * n_records), lookup, kinds == "closer")
    numbered = np.isin(kinds, _OTHER_KINDS) & (kinds != "closer")
    names_of = {kind: names for kind in _NAMED_KINDS if (names := _class_names(records, kinds == kind))}
    named_labels = names_of.get("label", [])
    group = _whole_numbers(records, "group", numbered & ~np.isin(kinds, list(names_of)))
    for kind, names in names_of.items():
        places = np.flatnonzero(kinds == kind).tolist()
        group[places] = np.searchsorted(names, [key_of(records.columns["group"][place]) for place in places])
    column = _whole_numbers(records, "column", np.isin(kinds, ("must_group", "cannot_group")))
    if n_samples is None and ids is not None:
        n_samples = len(ids)
    for stated in group[kinds == "rows"].tolist():
        if n_samples is not None and stated != n_samples:
            raise records.error(f"{records.name} is about {stated} rows, but there are {n_samples}.")
        n_samples = stated
    _check_rows(records, np.column_stack([first, second, third]), kinds, n_samples)
    n_rows = n_samples if n_samples is not None else int(np.max([first, second, third], initial=-1)) + 1

    def by_row(kind: str) -> IntArray | None:
        chosen = kinds == kind
        if not chosen.any():
            return None
        table = np.full((n_rows, int(column[chosen].max()) + 1), -1, dtype=np.int64)
        table[first[chosen], column[chosen]] = group[chosen]
        clash = table[first[chosen], column[chosen]] != group[chosen]
        if clash.any():
            place = int(np.flatnonzero(chosen)[clash][0])
            row, second_group = records.column("id_1")[1][place], records.columns["group"][place]
            raise records.error(f"{records.where(place)}: gives {row!r} a second {kind} ({second_group}). Keep one.")
        return table[:, 0] if table.shape[1] == 1 else table

    must, cannot, soft = kinds == "must", kinds == "cannot", kinds == "soft_group"
    soft_groups = None
    if soft.any():
        shape = (n_rows, int(group[soft].max()) + 1)
        soft_groups = sparse.csr_array((confidence[soft], (first[soft], group[soft])), shape=shape)
    return {
        "must_link": np.column_stack([first, second])[must],
        "must_link_confidence": confidence[must],
        "cannot_link": np.column_stack([first, second])[cannot],
        "cannot_link_confidence": confidence[cannot],
        "labels": by_row("label"),
        "classes": named_labels or None,
        "must_groups": by_row("must_group"),
        "cannot_groups": by_row("cannot_group"),
        "soft_groups": soft_groups,
        "triplets": np.column_stack([first, second, third])[kinds == "closer"],
        "n_samples": n_samples,
        "ids": ids,
    }


def records_of(constraints: Constraints) -> dict[str, list[Any]]:
    """Convert constraints to a table, the inverse of `arguments_of`. Optional columns appear if they are needed."""
    name = constraints.describe_row
    lines: list[dict[str, Any]] = []
    for pairs, confidence, answer in (
        (constraints.must_link, constraints.must_link_confidence, "same"),
        (constraints.cannot_link, constraints.cannot_link_confidence, "different"),
    ):
        for (first, second), sure in zip(pairs.tolist(), confidence.tolist(), strict=True):
            line = {"id_1": name(first), "id_2": name(second), "answer": answer}
            lines.append(line if sure == 1 else {**line, "confidence": sure})
    for a, b, c in constraints.triplets.tolist():
        lines.append({"id_1": name(a), "id_2": name(b), "answer": "closer", "id_3": name(c)})
    if constraints.labels is not None:
        for row in np.flatnonzero(constraints.labels >= 0).tolist():
            number = int(constraints.labels[row])
            group = number if constraints.classes is None else constraints.classes[number]
            lines.append({"id_1": name(row), "answer": "label", "group": group})
    for groups, answer in (
        (constraints.must_groups, "must_group"),
        (constraints.cannot_groups, "cannot_group"),
    ):
        for number, column in enumerate(group_columns(groups)):
            for row in np.flatnonzero(column >= 0).tolist():
                line = {"id_1": name(row), "answer": answer, "group": int(column[row])}
                lines.append(line if number == 0 else {**line, "column": number})
    if constraints.soft_groups is not None:
        strengths = constraints.soft_groups.tocoo()
        for row, group, sure in zip(*(a.tolist() for a in (*strengths.coords, strengths.data)), strict=True):
            lines.append({"id_1": name(row), "answer": "soft_group", "group": group, "confidence": sure})
    if constraints.n_samples is not None and any("group" in line for line in lines):
        lines.append({"answer": "rows", "group": constraints.n_samples})
    optional = [key for key in ("confidence", "id_3", "group", "column") if any(key in line for line in lines)]
    return {key: [line.get(key) for line in lines] for key in ("id_1", "id_2", "answer", *optional)}


def kinds_of(records: AnswerTable) -> np.ndarray[Any, Any]:
    """Kind of each record: must, cannot, unsure, or the word of a constraint that is not a pair."""
    kinds = []
    for place, answer in enumerate(records.column("answer")[1]):
        kind = answer_kind(answer) or key_of(answer).casefold()
        if kind not in _ANSWERS and kind not in _OTHER_KINDS:
            raise records.error(
                f"{records.where(place)}: cannot read the answer {answer!r}. "
                "Write same, different or unsure (also must/cannot, match/distinct, yes/no, 1/-1, 1/0)."
            )
        kinds.append(kind)
    return np.array(kinds, dtype="U12")


def confidences_of(records: AnswerTable, kinds: np.ndarray[Any, Any]) -> list[float]:
    """Confidence of each record, 1 if it gives none."""
    values = records.columns.get("confidence")
    if values is None:
        return [1.0] * len(kinds)
    numbers = []
    for place, value in enumerate(values):
        text = key_of(value)
        try:
            number = float(text) if text else 1.0
        except ValueError:
            number = -1.0
        if not 0 < number <= 1 and kinds[place] != "unsure":
            raise records.error(f"{records.where(place)}: confidence is {value!r}; expected a number in (0, 1].")
        numbers.append(number)
    return numbers


def _rows(
    records: AnswerTable,
    column: str,
    values: Sequence[Any],
    lookup: dict[str, int] | None,
    needed: np.ndarray[Any, Any],
) -> IntArray:
    """Row positions of the ids in the records that need them, 0 elsewhere."""
    keys = [key_of(value) if used else "" for value, used in zip(values, needed.tolist(), strict=True)]
    if lookup is None:
        rows = np.array([int(key or 0) if _is_whole(key or "0") else -1 for key in keys], dtype=np.int64)
        wrong = (rows < 0) | (needed & np.array([not key for key in keys], dtype=bool))
        remedy = "is not a row position (0, 1, …). Pass ids= (in the shell: --id COLUMN) to use your own ids."
    else:
        rows = np.array(
            [lookup.get(key, -1) if used else 0 for key, used in zip(keys, needed, strict=True)],
            dtype=np.int64,
        )
        wrong = rows < 0
        remedy = "is not among the row ids. Correct it, or remove the line."
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise records.error(f"{records.where(place)}: {column} {values[place]!r} {remedy}")
    return rows


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdecimal() and len(text) < 21 and abs(int(text)) < 2**63


def _class_names(records: AnswerTable, chosen: np.ndarray[Any, Any]) -> list[str]:
    """Names of the classes or groups in sorted order. Empty if they are numbers."""
    groups = records.columns.get("group", [""] * len(chosen))
    keys = {key_of(groups[place]) for place in np.flatnonzero(chosen).tolist()}
    # A number that is not a valid class number is a mistake, not a name.
    return sorted(keys) if all(keys) and not any(key.lstrip("-").isdecimal() for key in keys) else []


def _whole_numbers(records: AnswerTable, column: str, needed: np.ndarray[Any, Any]) -> IntArray:
    numbers = np.zeros(len(needed), dtype=np.int64)
    for place, value in enumerate(records.columns.get(column, [""] * len(needed))):
        key = key_of(value)
        if not needed[place] or (column == "column" and not key):
            continue
        if _is_whole(key) and int(key) >= 0 and (column != "column" or int(key) < _COLUMNS):
            numbers[place] = int(key)
        else:
            more = ". Give numbers in all lines with this answer, or names in all of them"
            if column == "column":
                more = f" and < {_COLUMNS}"
            raise records.error(f"{records.where(place)}: {column} is {value!r}; expected a whole number >= 0{more}.")
    return numbers


def _check_rows(records: AnswerTable, rows: IntArray, kinds: np.ndarray[Any, Any], n_samples: int | None) -> None:
    """Raise if a record names a row twice or a row out of range. The message names the record."""
    width = np.select([kinds == "closer", np.isin(kinds, ("must", "cannot"))], [3, 2], 1)
    used = np.arange(3) < width[:, None]
    twice = (used[:, 1:] & (rows[:, 1:] == rows[:, :-1])).any(axis=1) | (used[:, 2] & (rows[:, 2] == rows[:, 0]))
    if twice.any():
        place = int(np.flatnonzero(twice)[0])
        verb = "names a row twice" if width[place] == 3 else f"pairs {records.column('id_1')[1][place]!r} with itself"
        raise records.error(f"{records.where(place)}: {verb}. Remove the line.")
    if n_samples is not None and len(rows):
        beyond = np.where(used, rows, -1).max(axis=1)
        if beyond.max() >= n_samples:
            place = int(np.flatnonzero(beyond >= n_samples)[0])
            raise records.error(
                f"{records.where(place)}: names row {beyond[place]}, but there are {n_samples} rows "
                f"(0 to {n_samples - 1}). Pass ids= (in the shell: --id COLUMN) to use your own ids."
            )
