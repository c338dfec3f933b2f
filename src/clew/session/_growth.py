"""Read, serialise and encode new rows without holding the lock of the session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from clew.constraints import key_of
from clew.datasets import Table
from clew.exceptions import ParameterError
from clew.session._settings import ENCODING
from clew.session._table import (
    HashArray,
    ProjectRows,
    ids_of,
    like,
    packed_rows,
    require_moderate,
    row_hashes,
    table_of,
)


@dataclass
class Growth:
    """A snapshot of a project's rows, and the rows after more are added.

    Reading and encoding many rows takes seconds, during which others use the session. `is_of` tells whether the
    snapshot is still valid.

    Attributes
    ----------
    settings : dict
    before : ProjectRows
        The rows of the project before the addition.
    given : list of (bytes, bool)
        The same rows as stored in the log, see `Ledger.rows`.
    data : dict or None
        Location of the data file.
    read_base : callable
        Reads the table that the project refers to.
    ids : list
        Ids of the rows to add.
    body : bytes
        The rows to add, serialised.
    rows : ProjectRows
        All rows, including the rows to add. Equal to `before` if there are none to add.
    """

    settings: dict[str, Any]
    before: ProjectRows
    given: list[tuple[bytes, bool]]
    data: dict[str, Any] | None
    read_base: Callable[[], Table]
    ids: list[Any] = field(default_factory=list)
    body: bytes = b""

    def __post_init__(self) -> None:
        self.rows = self.before

    def read(self, data: Any) -> Table:
        """Read rows with the columns of the project."""
        table = table_of(data, self.settings["id_column"])
        return like(table, self.settings["table_columns"], self.before.encoded.table)

    def add(self, table: Table) -> None:
        """Add the rows that `read` returned. All of them must be new."""
        columns, id_column = self.settings["table_columns"], self.settings["id_column"]
        if id_column is None:
            self.ids = [f"new-{len(self.before.ids) + row}" for row in range(table.n_rows)]
        else:
            self.ids = ids_of(table, id_column)
        twice = next((name for name in self.ids if key_of(name) in self.before.known), None)
        if twice is not None:
            raise ParameterError(f"Row {twice!r} is known already. New rows need ids of their own.")
        require_moderate(table, self.settings)
        self._grow(self.read_base(), row_hashes(table, columns), table)

    def add_appended(self) -> None:
        """Add the rows that are in the data file but not yet in the project."""
        columns, base = self.settings["table_columns"], self.read_base()
        names = ids_of(base, self.settings["id_column"])
        fresh = [row for row, name in enumerate(names) if key_of(name) not in self.before.known]
        self.ids = [names[row] for row in fresh]
        hashes = row_hashes(like(base, columns, self.before.encoded.table), columns)
        if fresh:
            self._grow(base, hashes[fresh], None)

    def _grow(self, base: Table, hashes: HashArray, table: Table | None) -> None:
        self.body = packed_rows(self.ids, hashes, table)
        self.rows = ProjectRows(self.settings, base, [*self.given, (self.body, True)])

    def is_of(self, now: Growth) -> bool:
        """Whether the project still has the rows of this snapshot, with the same encoding and metric."""
        same_encoding = all(self.settings[name] == now.settings[name] for name in ("random_state", "metric", *ENCODING))
        return same_encoding and (self.given, self.data) == (now.given, now.data)
