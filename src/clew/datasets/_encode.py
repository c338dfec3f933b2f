"""Turn any table into vectors, and describe how each column was encoded.

Every column has the same weight: its mean contribution to the squared distance of two rows is the same. If values of a
number, date or category are missing, the weight falls with the share of rows that have one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clew._words import counted
from clew.datasets._as_table import as_table
from clew.datasets._columns import NAMES_ROWS, NO_VALUE, ONE_VALUE, Column, understood
from clew.datasets._images import image_vectors
from clew.datasets._read import Table
from clew.datasets._rows import Rows
from clew.datasets._scaling import SCALES, scaled
from clew.datasets._text import NO_SHARED_WORDS, check_text, reduced, text_vectors
from clew.exceptions import DataError, ParameterError

VECTORS = "vectors"


@dataclass(frozen=True)
class Encoding:
    """How a column was encoded.

    Attributes
    ----------
    name : str
    kind : str
        "number", "category", "date", "text", "vector", "image" or "left out".
    n_features : int
        Number of columns of X.
    weight : float
        Its share of the mean squared distance between rows; the shares add up to 1.
    how : str
        Description of the encoding.
    """

    name: str
    kind: str
    n_features: int
    weight: float
    how: str


@dataclass(frozen=True, repr=False, eq=False)
class Encoded:
    """Rows as vectors, with their ids, their table and the encoding of each column.

    Attributes
    ----------
    X : (n, d) array of float64
    ids : array of n
        The user's ids, or row numbers from 0.
    table : Table
        The original rows.
    columns : tuple of Encoding
        In the order of the table.
    """

    X: NDArray[np.float64]
    ids: NDArray[Any]
    table: Table
    columns: tuple[Encoding, ...]

    def __repr__(self) -> str:
        used = sum(column.kind != "left out" for column in self.columns)
        return f"<Encoded {self.table.source}: {self.X.shape[0]} rows, {self.X.shape[1]} numbers from {used} columns>"

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each column: number, category, date, text, vector, image, or "left out: why"."""
        return {
            column.name: f"left out: {column.how}" if column.kind == "left out" else column.kind
            for column in self.columns
        }

    @property
    def metric(self) -> str:
        """The metric that suits the columns: "cosine" if texts have more than half of the weight, else
        "euclidean"."""
        return "cosine" if sum(column.weight for column in self.columns if column.kind == "text") > 0.5 else "euclidean"

    @property
    def values(self) -> dict[str, list[Any]]:
        """The table as Python values, None for missing ones, without columns of vectors."""
        return self.rows.columns

    @cached_property
    def rows(self) -> Rows:
        """Each row as a dict of Python values, by its id; `read_answers` uses it to find whole records."""
        return self.table.rows(self.ids)

    def describe(self) -> str:
        """Describe the encoding and the weight of each column as a text table."""
        return described(self.columns)


def described(columns: Iterable[Encoding]) -> str:
    """Describe the encoding and the weight of each column as a text table."""
    lines = [("column", "read as", "weight", "how")]
    for column in columns:
        weight = "" if column.kind == "left out" else f"{100 * column.weight:.0f} %"
        lines.append((column.name, column.kind, weight, column.how))
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of a text table, with the cells of each column but the last padded to one width."""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[-1]]).rstrip()
        for line in lines
    )


def encode(
    data: Any,
    *,
    id_column: str | None = None,
    columns: Sequence[str] | None = None,
    scale: str = "auto",
    text: Any = "auto",
    vectors: Any = None,
    image_folder: str | os.PathLike[str] | None = None,
    mixed_as_text: bool = False,
    random_state: int = 0,
) -> Encoded:
    """Turn any table into vectors, and describe how.

    Numbers and dates are standardised, and missing ones are set to the median. Texts that rows share are categories
    with one indicator column each. Other texts become TF-IDF vectors of words (for short texts also of letter n-grams),
    reduced to few columns. Lists of numbers are vectors. File names of images become grey values and edge directions.
    Ids and constant columns are left out. Finally every column gets the same weight, or less if values are missing.

    Parameters
    ----------
    data : path, folder of images, frame, array, list of dicts or Table
        An array, or a file with one matrix, is used unchanged.
    id_column : str, optional
        The column with the ids of the rows.
    columns : sequence of str, optional
        The columns to use. Default: all but the id column.
    scale : {"auto", "none", "standard", "minmax", "robust"}
        Scaling of numbers and dates. "auto" is "standard" for these and leaves vectors unchanged. The others apply to
        vectors too.
    text : {"auto", "tfidf", "embeddings", "none"} or object with an `encode` method
        "auto" is "tfidf"; "embeddings" needs the extra `text`; "none" leaves texts out. A model's ``encode(list of
        str)`` gives one vector each.
    vectors : path or array, optional
        One vector per row, in addition to the table. Rows are then compared by these vectors and by `columns`, if
        given.
    image_folder : path, optional
        Folder of the image files. Default: the folder of the table. Files outside it are not opened.
    mixed_as_text : bool, default=False
        Whether a column of numbers or dates with too many other cells is read as text, as for dirty records. By default
        such a column raises an error. If nothing but texts is left and none of them share a word, they become zeros.
    random_state : int
        Seed of the reduction of texts.

    Returns
    -------
    Encoded

    Raises
    ------
    DataError
        No column is left, two rows have the same id, a vector has missing values, or rows have different lengths.

    Examples
    --------
    >>> from clew.datasets import encode
    >>> rows = [{"id": 1, "size": 2.0, "colour": "red"}, {"id": 2, "size": 4.0, "colour": "blue"},
    ...         {"id": 3, "size": None, "colour": "blue"}, {"id": 4, "size": 9.0, "colour": "red"}]
    >>> encoded = encode(rows, id_column="id")
    >>> encoded.X.shape
    (4, 3)
    >>> print(encoded.describe())
    column  read as   weight  how
    id      left out          it names the rows
    size    number    44 %    standardised; 1 missing value set to the median, 4
    colour  category  56 %    2 categories
    """
    if scale != "auto" and scale not in SCALES:
        raise ParameterError(f"scale={scale!r}: expected auto, {', '.join(SCALES)}.")
    check_text(text)
    table = as_table(data, text=[id_column] if id_column else [])
    ids = np.arange(table.n_rows) if id_column is None else table.ids(id_column)
    if vectors is not None:
        table, columns = _with_vectors(table, vectors, columns)
    folder = _folder(data, table) if image_folder is None else Path(image_folder)
    chosen = _chosen(table, columns, id_column)
    parts: dict[str, NDArray[np.float64]] = {}
    told: dict[str, tuple[str, str]] = {}
    numbers: list[Column] = []
    for name in table.columns:
        if name not in chosen:
            told[name] = ("left out", NAMES_ROWS if name == id_column else "not among the columns to use")
            continue
        column = understood(
            name, table.column(name), chosen=columns is not None, source=table.source, mixed_as_text=mixed_as_text
        )
        if column.kind in ("number", "date"):
            numbers.append(column)
            parts[name] = np.empty(0)  # placeholder
        elif column.kind == "vector":
            parts[name], how = _vector(table, column, id_column, scale, random_state)
            told[name] = ("vector", how)
        elif column.kind == "category":
            parts[name], how = _categories(column)
            told[name] = ("category", how)
        elif column.kind == "image":
            parts[name] = image_vectors(column.values.tolist(), folder)
            told[name] = ("image", f"grey values and edge directions, {parts[name].shape[1]} numbers")
        elif column.kind == "text":
            part, kind, how = _text(column, text, random_state)
            told[name] = (kind, how)
            if part is not None:
                parts[name] = part
        else:
            told[name] = ("left out", column.note)
    _add_numbers(numbers, scale, table, ids, parts, told)
    if not parts and mixed_as_text:
        # As vectors such texts are all alike, but as records they can be compared.
        parts |= {name: np.zeros((table.n_rows, 1)) for name, (_, how) in told.items() if how == NO_SHARED_WORDS}
    if not parts:
        reasons = ", ".join(f'"{name}" ({how})' for name, (_, how) in told.items())
        all_equal = all(how in (NO_VALUE, ONE_VALUE) for _, how in told.values())
        remedy = "Use at least one column in which rows differ" if all_equal else "Name columns to use"
        raise DataError(f"{table.source}: no column is left to cluster by: {reasons}. {remedy}.")
    return _weighed(table, ids, parts, told)


def _with_vectors(table: Table, vectors: Any, columns: Sequence[str] | None) -> tuple[Table, Sequence[str]]:
    beside = as_table(vectors)
    if len(beside.features) != 1:
        raise DataError(f"vectors: {beside.source} has {len(beside.features)} columns; expected one matrix.")
    if beside.n_rows != table.n_rows:
        raise DataError(f"vectors has {beside.n_rows} rows, but {table.source} has {table.n_rows}. Give one per row.")
    column = beside.column(beside.features[0])
    name = next(name for name in (VECTORS, f"{VECTORS}_1", f"{VECTORS}_2") if name not in table.values)
    column = column if sparse.issparse(column) else column.reshape(table.n_rows, -1)
    values = {**table.values, name: column}
    return Table(table.source, values, (*table.features, name), table.n_rows), [*(columns or ()), name]


def _folder(data: Any, table: Table) -> Path | None:
    path = Path(table.source)
    if not isinstance(data, str | os.PathLike | Table) or not path.exists():
        return None
    return path if path.is_dir() else path.parent


def _chosen(table: Table, columns: Sequence[str] | None, id_column: str | None) -> set[str]:
    if columns is None:
        return {name for name in table.features if name != id_column}
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if list(columns).count(name) > 1)
        raise ParameterError(f'Column "{twice}" is named twice. Name each column once.')
    for name in columns:
        table.column(name)  # an unknown name raises an error that lists the columns
    return set(columns)


def _vector(
    table: Table, column: Column, id_column: str | None, scale: str, random_state: int
) -> tuple[NDArray[np.float64], str]:
    alone = Table(table.source, {**table.values, column.name: column.values}, (column.name,), table.n_rows)
    matrix = alone.matrix([column.name], id_column)
    how = "as it is"
    if scale not in ("auto", "none"):
        matrix, how = scaled(matrix, scale), f"{scale} scale"
    if sparse.issparse(matrix):
        width = matrix.shape[1]
        matrix = reduced(matrix, random_state)
        how = how if matrix.shape[1] == width else f"{width:,} numbers reduced to {matrix.shape[1]}"
    return np.asarray(matrix, dtype=np.float64), f"{matrix.shape[1]} numbers, {how}"


def _categories(column: Column) -> tuple[NDArray[np.float64], str]:
    """One indicator column per category, scaled to a total variance of 1; missing values are at the mean."""
    there = column.values != ""
    names, codes = np.unique(column.values[there].astype(str), return_inverse=True)
    indicators = np.zeros((len(there), len(names)))
    indicators[np.flatnonzero(there), codes] = 1
    shares = indicators[there].mean(axis=0)
    indicators[~there] = shares
    how = f"{len(names)} categories"
    if not there.all():
        how += f"; {counted(int((~there).sum()), 'missing value')} set to the mean"
    spread = np.sqrt(1 - (shares**2).sum())
    return (indicators - shares) / spread, how


def _text(column: Column, model: Any, random_state: int) -> tuple[NDArray[np.float64] | None, str, str]:
    if isinstance(model, str) and model == "none":
        return None, "left out", "it holds text"
    texts = column.values.tolist()
    part, how = text_vectors(texts, model, random_state)
    if part is None:
        return None, "left out", how
    empty = texts.count("")
    return part, "text", how + (f"; {counted(empty, 'empty text')}" if empty else "")


def _add_numbers(
    numbers: list[Column],
    scale: str,
    table: Table,
    ids: NDArray[Any],
    parts: dict[str, NDArray[np.float64]],
    told: dict[str, tuple[str, str]],
) -> None:
    if not numbers:
        return
    matrix = np.column_stack([column.values for column in numbers])
    infinite = np.argwhere(np.isinf(matrix))
    if infinite.size:
        row, place = infinite[0]
        raise DataError(
            f'Column "{numbers[place].name}" of {table.source} has an infinite value in row {row}, id "{ids[row]}". '
            "Fill the values in or leave the rows out."
        )
    missing = np.isnan(matrix)
    medians = np.nanmedian(matrix, axis=0)
    # Scaled by the known values, so that a column with few values has a small weight.
    matrix = scaled(matrix, "standard" if scale == "auto" else scale)
    if missing.any():
        matrix = np.where(missing, np.nanmedian(matrix, axis=0), matrix)
    done = scaling_words(scale)
    for place, column in enumerate(numbers):
        parts[column.name] = matrix[:, place : place + 1]
        note = f" ({column.note})" if column.note else ""
        how = f"seconds since 1970{note}, {done}" if column.kind == "date" else f"{done}{note}"
        n_missing = int(missing[:, place].sum())
        if n_missing:
            median = "" if column.kind == "date" else f", {medians[place]:.6g}"
            how += f"; {counted(n_missing, 'missing value')} set to the median{median}"
        if column.unreadable:
            how += f"; unreadable: {column.unreadable_words}"
        told[column.name] = (column.kind, how)


def scaling_words(scale: str) -> str:
    """How numbers are scaled, for the description of a column."""
    return {"auto": "standardised", "standard": "standardised", "none": "as it is"}.get(scale, f"{scale} scale")


def _weighed(
    table: Table,
    ids: NDArray[Any],
    parts: dict[str, NDArray[np.float64]],
    told: dict[str, tuple[str, str]],
) -> Encoded:
    spreads = {name: float(part.var(axis=0).sum()) for name, part in parts.items()}
    if len(parts) > 1:
        for name, part in parts.items():
            if told[name][0] not in ("number", "date", "category") and spreads[name] > 0:
                parts[name] = part / np.sqrt(spreads[name])
                spreads[name] = 1.0
    total = sum(spreads.values()) or 1.0
    columns = tuple(
        Encoding(
            name,
            told[name][0],
            parts[name].shape[1] if name in parts else 0,
            spreads.get(name, 0.0) / total,
            told[name][1],
        )
        for name in table.columns
    )
    order = [parts[name] for name in table.columns if name in parts]
    X = order[0] if len(order) == 1 else np.hstack(order)
    return Encoded(np.ascontiguousarray(X), ids, table, columns)
