"""Match whole records to the user's rows: by an id in the record, else by its values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clew.constraints._records import key_of
from clew.constraints.formats._document import RECORD_IDS, Document, Found

# Words that some readers of tables, such as pandas, turn into missing values, and others keep.
_EMPTY = frozenset({"na", "n/a", "nan", "null", "none", "#n/a", "#na", "<na>"})


class RowFinder:
    """Finds the row ids of whole records.

    A record with an id field, under the user's name or a usual one, matches the one row of the table with that value in
    the same column, or else the row with that id. Other records are compared with the rows of the table on their common
    fields, ignoring case and spaces. A word such as "n/a" equals a missing value.
    """

    def __init__(self, document: Document, ignored_prefix: str = "") -> None:
        self.document = document
        self.ignored_prefix = ignored_prefix
        self._index: dict[tuple[str, ...], dict[tuple[str, ...], list[Any]]] = {}
        table = document.table or {}
        self._columns = set(next(iter(table.values()), {}))
        known = document.known if document.known is not None else frozenset(map(key_of, table))
        self._known = known or None

    def pair(self, place: str, first: Mapping[str, Any], second: Mapping[str, Any], found: Found) -> Any:
        """Find the ids of two records. Returns None and notes it in `found` if one matches no row or several."""
        rows = [self._rows(place, record) for record in (first, second)]
        if rows[0] == rows[1] and len(rows[0]) == 2:
            return tuple(rows[0])  # two rows with the same values, which the answer is about
        for record, ids in zip((first, second), rows, strict=True):
            if len(ids) != 1:
                shown = {name: value for name, value in record.items() if not self._is_ignored(name)}
                what = "is in no row" if not ids else f"is in {len(ids)} rows ({', '.join(map(str, ids[:3]))})"
                found.unmatched.append(f"{shown} {what}")
                return None
        return rows[0][0], rows[1][0]

    def _rows(self, place: str, record: Mapping[str, Any]) -> list[Any]:
        named = self.document.id_columns[:1]
        for name in named or RECORD_IDS:
            key = key_of(record.get(name))
            if key and name in self._columns:
                rows = self._by_content((name,)).get((_comparable(record[name]),), [])
                if len(rows) == 1:
                    return rows
            elif key and (named or self._known is None or key in self._known):
                return [record[name]]
        if self.document.table is None:
            raise self.document.error(
                f"{place}: holds a whole record without a known id. Pass table={{id: record}}, the rows it came "
                "from, or name the field that holds the id: id_columns='...'."
            )
        names = tuple(sorted(name for name in record if name in self._columns and not self._is_ignored(name)))
        if not names:
            raise self.document.error(
                f"{place}: none of its fields ({', '.join(record)}) is a column of the table "
                f"({', '.join(sorted(self._columns))})."
            )
        return self._by_content(names).get(tuple(_comparable(record[name]) for name in names), [])

    def _by_content(self, names: tuple[str, ...]) -> dict[tuple[str, ...], list[Any]]:
        if names not in self._index:
            index: dict[tuple[str, ...], list[Any]] = {}
            for row, record in (self.document.table or {}).items():
                index.setdefault(tuple(_comparable(record.get(name)) for name in names), []).append(row)
            self._index[names] = index
        return self._index[names]

    def _is_ignored(self, name: str) -> bool:
        return bool(self.ignored_prefix) and name.startswith(self.ignored_prefix)


def _comparable(value: Any) -> str:
    """Normalise a value, because tools change case, spaces and missing values before they show a record."""
    if isinstance(value, list | tuple | set | frozenset):
        return "|".join(sorted(_comparable(part) for part in value))
    text = " ".join(key_of(value).casefold().split())
    return "" if text in _EMPTY else text
