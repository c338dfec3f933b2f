"""Read the table of a command from a file or standard input, and turn its rows into vectors."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clew import Constraints
from clew._tables import InputFile
from clew.cli import _exits
from clew.constraints import AnswerRecord, read_records
from clew.constraints._answers import answers_of
from clew.constraints._records import AnswerTable, kinds_of
from clew.datasets import Encoded, Table, as_table, encode, scaled
from clew.datasets._as_table import id_column_of
from clew.datasets._text import word_counts
from clew.exceptions import DataError

STDIN = "-"
# Largest number of columns that are described; the rest is only counted.
_MOST_COLUMNS = 12
# First bytes of binary file formats.
_MAGIC = {b"PAR1": ".parquet", b"\x93NUM": ".npy", b"PK\x03\x04": ".npz", b"{": ".jsonl"}


@dataclass(frozen=True)
class Reading:
    """Flags about the table, the same in every command. The ids of a folder of images are its file names."""

    data: str
    id_column: str | None = None
    columns: str | None = None
    scale: str = "auto"
    text: str = "auto"
    sep: str | None = None
    encoding: str | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.id_column is None and self.data not in ("", STDIN):  # "": the data file is not known yet
            object.__setattr__(self, "id_column", id_column_of(self.data))

    @property
    def name(self) -> str:
        """Name of the table in messages."""
        return "standard input" if self.data == STDIN else Path(self.data).name

    def table(self, *kept: str | None) -> Table:
        """Read the table; cells of the id column and of the columns `kept` are not converted."""
        text = [name for name in (self.id_column, *kept) if name]
        if self.data != STDIN:
            return as_table(Path(self.data), text=text, sep=self.sep, encoding=self.encoding)
        start = sys.stdin.buffer.read(4)
        ending = next((ending for magic, ending in _MAGIC.items() if start.startswith(magic)), ".csv")
        with tempfile.TemporaryDirectory(prefix="clew-") as folder:
            path = Path(folder, f"stdin{ending}")
            with open(path, "wb") as file:
                file.write(start)
                shutil.copyfileobj(sys.stdin.buffer, file)
            stdin = InputFile.called(self.name, path)
            return as_table(stdin, text=text, sep=self.sep, encoding=self.encoding)

    def vectors(self, table: Table, *left_out: str | None) -> InputRows:
        """Return the rows as vectors of the chosen columns, by default all except the ids and `left_out`."""
        chosen = None if self.columns is None else column_names(self.columns)
        names = chosen or [name for name in table.features if name not in (self.id_column, *left_out)]
        if names and all(_is_matrix(table.column(name)) for name in names):
            # A matrix is passed on unchanged: some methods can use float32 and sparse rows.
            X = table.matrix(names, self.id_column)
            return InputRows(scaled(X, "none" if self.scale == "auto" else self.scale), None)
        encoded = encode(
            table if chosen else replace(table, features=tuple(names)),
            id_column=self.id_column,
            columns=chosen,
            scale=self.scale,
            text=self.text,
            random_state=self.random_state,
        )
        return InputRows(encoded.X, encoded)

    def records(self, table: Table, *left_out: str | None) -> Table | None:
        """Return the columns to compare as records, or None if all of them hold numbers or one holds vectors."""
        chosen = None if self.columns is None else column_names(self.columns)
        names = chosen or [name for name in table.features if name not in (self.id_column, *left_out)]
        columns = [table.column(name) for name in names]
        is_text = any(column.dtype == object for column in columns)
        return table.only(names) if is_text and not any(map(_is_matrix, columns)) else None

    def counts(self, table: Table, *left_out: str | None) -> tuple[Any, Sequence[Any]]:
        """Return counts and their names: of the words in columns of text, or else the numbers in columns of numbers.

        Words of several columns of text are counted together. If there is text, columns of numbers are left out.
        """
        chosen = None if self.columns is None else column_names(self.columns)
        names = chosen or [name for name in table.features if name not in (self.id_column, *left_out)]
        texts = [name for name in names if table.column(name).dtype == object]
        if texts:
            cells = zip(*(table.column(name).tolist() for name in texts), strict=True)
            counts, words = word_counts([" ".join(row) for row in cells])
            return counts, words.tolist()
        X = table.matrix(names, self.id_column)
        return X, names if X.shape[1] == len(names) else range(X.shape[1])


@dataclass(frozen=True)
class FileOfAnswers:
    """A file of answers, read once: as constraints and as records."""

    constraints: Constraints
    records: AnswerTable

    @classmethod
    def read(cls, path: Path, table: Table, ids: NDArray[Any] | None) -> FileOfAnswers:
        """Read the file; `ids` are the ids of the rows of the table, None for row numbers."""
        records = read_records(path, table=table.rows(ids), known=ids)
        return cls(Constraints.of(records, ids=ids, n_samples=table.n_rows), records)

    @property
    def n_unsure(self) -> int:
        """Number of "unsure" answers, which constrain nothing."""
        return int(np.count_nonzero(kinds_of(self.records) == "unsure"))

    @property
    def answers(self) -> list[AnswerRecord]:
        """The answers "same" and "different", with annotator and time: "same" first, as in `Constraints`."""
        found = answers_of(self.records, only_pairs=True)
        return [one for answer in ("same", "different") for one in found if one.answer == answer]


def check_n_clusters(n_clusters: Any, table: Table) -> None:
    """Raise if there are more clusters than rows."""
    if isinstance(n_clusters, int) and n_clusters > table.n_rows:
        rows = "1 row" if table.n_rows == 1 else f"{table.n_rows:,} rows"
        raise DataError(f"-k {n_clusters}: {table.source} has only {rows}. Give a smaller number.")


@dataclass(frozen=True)
class InputRows:
    """The rows to cluster, how each column was encoded (None for a matrix), and the words if words were counted."""

    X: Any
    encoded: Encoded | None
    words: Sequence[Any] | None = None

    @property
    def metric(self) -> str:
        """The metric that suits the columns."""
        return "euclidean" if self.encoded is None else self.encoded.metric

    @property
    def columns(self) -> list[dict[str, Any]]:
        """How each column was encoded, for `--json`."""
        return [] if self.encoded is None else [asdict(column) for column in self.encoded.columns]

    def tell(self) -> None:
        """Print on stderr how each column was encoded."""
        if self.encoded is not None:
            tell_columns(self.encoded.describe())


def column_names(words: str) -> list[str]:
    """Split the names of ``--columns a,b,c``."""
    return [name.strip() for name in words.split(",") if name.strip()]


def tell_columns(description: str) -> None:
    """Print on stderr how the first columns were encoded."""
    heading, *lines = description.splitlines()
    more = len(lines) - _MOST_COLUMNS
    rest = [f"and {more} more column{'s' if more > 1 else ''}"] if more > 0 else []
    shown: Sequence[str] = [heading, *lines[:_MOST_COLUMNS], *rest]
    _exits.say("columns", "read as\n" + "\n".join(shown), "bold")


def _is_matrix(column: Any) -> bool:
    return sparse.issparse(column) or column.ndim == 2
