"""Read tables from files: csv, tsv, jsonl, parquet, npy and npz."""

from __future__ import annotations

import csv
import difflib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clew._tables import InputFile, delimiter_of, encoding_of, read_json_lines, reading_arrays, require_pyarrow
from clew.constraints._arrays import nothing_together
from clew.datasets._cells import check_unicode, columns_of
from clew.datasets._rows import Rows
from clew.datasets._size import check_size
from clew.exceptions import DataError, FileError, ParameterError

READABLE = (".csv", ".tsv", ".jsonl", ".parquet", ".npy", ".npz")

# Cells that mean a missing value in a column of numbers.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})

# A whole number that starts with 0 is a code if it has at least this many digits. Shorter ones are hours, days, months.
LEAST_CODE = 4

# Rows per block, because Python strings take ten times the memory of numbers.
BLOCK = 16_384


@dataclass(frozen=True, repr=False)
class Table:
    """Named columns of equal length, as `read_table` found them.

    Attributes
    ----------
    source : str
        The file, for messages.
    values : dict of str to array
        Numeric columns are float (csv) or as stored (parquet, npy, npz); text is an object array of str; a
        column of vectors is 2-D, or CSR for a sparse npz.
    features : tuple of str
        Default columns of `matrix`.
    n_rows : int
    """

    source: str
    values: dict[str, Any]
    features: tuple[str, ...]
    n_rows: int

    def __repr__(self) -> str:
        return f"Table({self.source!r}, {self.n_rows} rows, columns {self.columns})"

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the file."""
        return list(self.values)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.n_rows, len(self.values)

    def column(self, name: str) -> Any:
        """Return a column. An unknown name raises an error that lists the columns."""
        if name not in self.values:
            close = difflib.get_close_matches(name, self.columns, n=1)
            hint = f' Did you mean "{close[0]}"?' if close else ""
            raise ParameterError(f'{self.source} has no column "{name}".{hint} It has {_listed(self.columns)}.')
        return self.values[name]

    def only(self, names: Iterable[str]) -> Table:
        """Return the table with some of its columns."""
        values = {name: self.column(name) for name in names}
        return Table(self.source, values, tuple(values), self.n_rows)

    def ids(self, name: str) -> NDArray[Any]:
        """Return a column of ids. A missing or repeated id raises an error.

        Examples
        --------
        >>> import numpy as np
        >>> from clew.datasets import Table
        >>> Table("t.csv", {"id": np.array([7, 9])}, ("id",), 2).ids("id")
        array([7, 9])
        """
        ids = self.column(name)
        if ids.ndim != 1:
            raise DataError(f'Column "{name}" of {self.source} holds vectors; ids are one value per row.')
        first_row: dict[Any, int] = {}
        for row, value in enumerate(ids.tolist()):
            if value == "" or value != value:
                raise DataError(f'Column "{name}" of {self.source} has no id in row {row}. Fill it in.')
            earlier = first_row.setdefault(value, row)
            if earlier != row:
                raise DataError(
                    f'Column "{name}" of {self.source} names two rows "{value}" (rows {earlier} and {row}). '
                    "Ids must differ: choose another column."
                )
        return np.asarray(ids)

    def rows(self, ids: NDArray[Any] | None = None) -> Rows:
        """Return each row as a dict, by its id, or by its number if there are no ids.

        Examples
        --------
        >>> import numpy as np
        >>> from clew.datasets import Table
        >>> Table("t.csv", {"id": np.array([7, 9]), "size": np.array([1.0, np.nan])}, ("size",), 2).rows()[1]
        {'id': 9, 'size': None}
        """
        return Rows(self.values, np.arange(self.n_rows) if ids is None else ids)

    def matrix(self, columns: Sequence[str] | None = None, id_column: str | None = None) -> Any:
        """Return the rows as one numeric matrix.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to use, in this order. Default: all `features` except `id_column`.
        id_column : str, optional
            Column with the ids, for messages.

        Returns
        -------
        (n_rows, d) array of float32 or float64; CSR if a sparse matrix is among the columns

        Raises
        ------
        DataError
            A column of text, a missing or an infinite value, or no column at all.

        Examples
        --------
        >>> import numpy as np
        >>> from clew.datasets import Table
        >>> table = Table("t.csv", {"id": np.array([7, 9]), "size": np.array([1.5, 2.0])}, ("id", "size"), 2)
        >>> table.matrix(id_column="id")
        array([[1.5],
               [2. ]])
        """
        if columns is None:
            columns = [name for name in self.features if name != id_column]
        if not columns:
            raise DataError(f"{self.source}: no column is left to cluster by. It has {_listed(self.columns)}.")
        if len(set(columns)) < len(columns):
            twice = next(name for name in columns if list(columns).count(name) > 1)
            raise ParameterError(f'Column "{twice}" is named twice. Name each column once.')
        ids = None if id_column is None else self.ids(id_column)
        parts = [self._numeric(name, ids) for name in columns]
        if any(sparse.issparse(part) for part in parts):
            return sparse.hstack([sparse.csr_matrix(part) for part in parts], format="csr")
        if len(parts) == 1:
            return parts[0]
        return np.hstack(parts)

    def _numeric(self, name: str, ids: NDArray[Any] | None) -> Any:
        column = self.column(name)
        if not sparse.issparse(column) and column.dtype == object:
            row, value = next(
                ((row, value) for row, value in enumerate(column) if value.lower() not in MISSING), (0, "")
            )
            raise DataError(
                f'Column "{name}" of {self.source} holds text ("{value}" in {_row(row, ids)}). Encode it '
                "(clew.datasets.encode), or name the columns to use (columns=[...], in the shell --columns a,b,c), or "
                "the one that names the rows (id_column=..., in the shell --id COLUMN)."
            )
        stored = column.data if sparse.issparse(column) else column
        dtype = np.float32 if stored.dtype in (np.float16, np.float32) else np.float64
        if sparse.issparse(column):
            part = column.tocsr().astype(dtype)
            bad = np.repeat(np.arange(self.n_rows), np.diff(part.indptr))[~np.isfinite(part.data)]
            cells = part.data[~np.isfinite(part.data)]
        else:
            part = column.astype(dtype, copy=False).reshape(self.n_rows, -1)
            finite = np.isfinite(part)
            bad = np.empty(0, dtype=np.intp) if finite.all() else np.nonzero(~finite)[0]
            cells = part[~finite] if bad.size else bad
        if bad.size:
            what = "no value" if np.isnan(cells[0]) else "an infinite value"
            more = f" and {bad.size - 1} more" if bad.size > 1 else ""
            raise DataError(
                f'Column "{name}" of {self.source} has {what} in {_row(int(bad[0]), ids)}{more}. '
                "Fill the values in or leave the rows out."
            )
        return part


def read_table(
    path: str | os.PathLike[str],
    *,
    text: Collection[str] = (),
    sep: str | None = None,
    encoding: str | None = None,
    max_bytes: int | None = None,
) -> Table:
    """Read a csv, tsv, jsonl, parquet, npy or npz file.

    A csv file has a header line. The separator is the most frequent one of comma, semicolon, tab and bar in the header.
    The file is UTF-8, or UTF-16 with a byte order mark. A column is numeric if all its cells are numbers or missing
    values (empty, NA, N/A, NaN, null, none, ?).
    A jsonl file has one object per line. A parquet or jsonl column of lists of equal length is a column of vectors.
    An npz file holds one matrix (dense, or written by `scipy.sparse.save_npz`) and any number of 1-D arrays, such as
    ids. These are only used for clustering if they are named.

    Parameters
    ----------
    path : path
    text : collection of str
        Columns of a csv or tsv file to read as text, for ids such as ``007``.
    sep : str, optional
        Separator of a csv or tsv file. Default: detected from the header.
    encoding : str, optional
        Encoding of a csv, tsv or jsonl file, such as "cp1252". Default: detected from its first bytes.
    max_bytes : int, optional
        Refuse a file that would take more memory once it is read; see `check_size`.

    Raises
    ------
    FileError
        The file cannot be read. The message names the line, if there is one.
    MissingExtraError
        A parquet file without pyarrow.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clew.datasets import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "data.csv")
    ...     _ = path.write_text("id,size\\n007,1.5\\n008,2\\n")
    ...     table = read_table(path, text=["id"])
    >>> table.ids("id"), table.matrix(id_column="id").ravel()
    (array(['007', '008'], dtype=object), array([1.5, 2. ]))
    """
    path = InputFile.of(path)
    suffix = path.suffix
    if sep is not None and (len(sep) != 1 or sep in '"\r\n'):
        raise ParameterError(f"The separator is {sep!r}: expected one character, such as ';' or a tab.")
    if suffix not in READABLE:
        raise FileError(f"Cannot read {path}: tables are read from {', '.join(READABLE[:-1])} or {READABLE[-1]}.")
    if path.path.is_dir():
        raise FileError(f"Cannot read {path}: it is a directory.")
    try:
        # The same message for a missing or locked file in every format.
        path.path.open("rb").close()
        if max_bytes is not None:
            check_size(path, max_bytes)
        if suffix == ".npy":
            return _read_npy(path)
        if suffix == ".npz":
            return _read_npz(path)
        if suffix == ".parquet":
            return _read_parquet(path)
        if suffix == ".jsonl":
            return _read_jsonl(path, encoding)
        return _read_delimited(path, frozenset(text), sep, encoding)
    except UnicodeDecodeError as error:
        raise FileError(
            f"Cannot read {path}: it is not {_encoding_name(error.encoding)} (byte "
            f"0x{error.object[error.start]:02x}). Save it as UTF-8, or name its encoding (encoding=..., in the shell "
            "--encoding cp1252)."
        ) from error
    except LookupError:
        raise ParameterError(f"There is no encoding {encoding!r}. Try utf-8, cp1252 or utf-16.") from None
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from error


def _encoding_name(codec: str) -> str:
    return "UTF-8" if codec.startswith("utf-8") else codec


def _read_delimited(path: InputFile, text: frozenset[str], sep: str | None, encoding: str | None) -> Table:
    names, columns = _parse_delimited(path, text, sep, encoding)
    found = {name for name, column in zip(names, columns, strict=True) if column is None}
    if found:
        # Read again as text the columns whose first blocks were numbers and later ones were not.
        names, columns = _parse_delimited(path, text | found, sep, encoding)
    values = {name: column for name, column in zip(names, columns, strict=True) if column is not None}
    n_rows = len(next(iter(values.values())))
    if not n_rows:
        raise FileError(f"{path} has a header but no rows.")
    return Table(str(path), values, tuple(names), n_rows)


def _parse_delimited(
    path: InputFile, text: frozenset[str], sep: str | None, encoding: str | None
) -> tuple[list[str], list[NDArray[Any] | None]]:
    """Read the columns; None marks a column of numbers with a later block of text."""
    with open(path, encoding=encoding or encoding_of(path), newline="") as stream:
        first = stream.readline()
        if not first.strip():
            raise FileError(f"{path} is empty or starts with a blank line. Its first line must name the columns.")
        reader = csv.reader(chain([first], stream), delimiter=sep or delimiter_of(path, first), strict=True)
        try:
            names = [name.strip() for name in next(reader)]
            _check_header(path, names)
            return names, _by_column(_checked_rows(path, reader, len(names)), names, text)
        except csv.Error as error:
            raise FileError(f"{path}, line {reader.line_num}: {error}.") from error


def _check_header(path: InputFile, names: list[str]) -> None:
    for position, name in enumerate(names, start=1):
        if not name:
            raise FileError(
                f"{path}: column {position} of {len(names)} has no name in the header. Name it "
                "(pandas writes an unnamed index unless index=False)."
            )
        if name in names[: position - 1]:
            raise FileError(f'{path}: the header names "{name}" twice. Rename one of the columns.')
    numbers = [_number(name) for name in names]
    if None in numbers:
        return
    # Column names such as 0,1,2 or 2019,2020 increase; a first row of measurements does not.
    whole = all(float(name).is_integer() for name in names)
    if not whole or any(after <= before for before, after in pairwise(map(float, names))):
        raise FileError(f"{path}: the first line holds numbers ({names[0]}, ...). Add a line of column names.")


def _checked_rows(path: InputFile, reader: Any, width: int) -> Iterator[list[str]]:
    for row in reader:
        if len(row) == width:
            yield row
        elif row:
            raise FileError(
                f"{path}, line {reader.line_num}: {len(row)} cells, but the header names {width} columns. "
                "Quote cells that hold the separator."
            )


def _by_column(rows: Iterator[list[str]], names: Sequence[str], text: frozenset[str]) -> list[NDArray[Any] | None]:
    blocks: list[list[NDArray[Any]]] = [[] for _ in names]
    while block := list(islice(rows, BLOCK)):
        for name, cells, parsed in zip(names, zip(*block, strict=True), blocks, strict=True):
            is_text = name in text or (parsed and parsed[0].dtype == object)
            numbers = None if is_text else _numbers(cells)
            parsed.append(np.array(cells, dtype=object) if numbers is None else numbers)
    return [_joined(parsed) for parsed in blocks]


def _joined(parsed: list[NDArray[Any]]) -> NDArray[Any] | None:
    if not parsed:
        return np.empty(0)
    if len({block.dtype for block in parsed}) > 1:
        return None
    return np.concatenate(parsed)


def _numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Convert the cells to numbers, NaN for missing ones; None if a cell is text."""
    numbers = _floats(cells)
    if numbers is None:
        numbers = _floats(["nan" if cell.strip().lower() in MISSING else cell for cell in cells])
    return numbers


def _floats(cells: Sequence[str]) -> NDArray[np.float64] | None:
    # Python reads 1_000 and 00420 as numbers; in a table they are more likely codes.
    if any("_" in cell or (cell[:1] == "0" and len(cell) >= LEAST_CODE and cell.isdecimal()) for cell in cells):
        return None
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return None


def _number(text: str) -> float | None:
    numbers = _floats([text])
    return None if numbers is None else float(numbers[0])


def _read_jsonl(path: InputFile, encoding: str | None) -> Table:
    records, _ = read_json_lines(path, encoding)
    values = columns_of(str(path), records)
    if not values:
        raise FileError(f"{path} has no rows.")
    return Table(str(path), values, tuple(values), len(records))


def _read_npy(path: InputFile) -> Table:
    with reading_arrays(path) as file:
        array = np.load(file, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise FileError(f"Cannot read {path}: it holds several arrays. Name it .npz.")
    if array.ndim not in (1, 2):
        raise FileError(f"{path} holds an array of shape {array.shape}; a table is 1-D or 2-D.")
    return _table_of_arrays(path, {"X": array})


def _read_npz(path: InputFile) -> Table:
    with reading_arrays(path) as file, np.load(file, allow_pickle=False) as archive:
        if {"format", "shape", "data"} <= set(archive.files):
            return _table_of_arrays(path, {"X": _sparse_rows(file)})
        arrays = {name: archive[name] for name in archive.files}
    arrays = {name: array for name, array in arrays.items() if array.ndim in (1, 2)}
    if not arrays:
        raise FileError(f"{path} holds no 1-D or 2-D array.")
    lengths = {array.shape[0] for array in arrays.values()}
    if len(lengths) > 1:
        shapes = ", ".join(f'"{name}" {array.shape}' for name, array in arrays.items())
        raise FileError(f"{path} holds arrays of different lengths: {shapes}. Keep those with one entry per row.")
    matrices = tuple(name for name, array in arrays.items() if array.ndim == 2)
    if len(matrices) > 1:
        raise FileError(f"{path} holds several matrices: {_listed(matrices)}. Keep only the matrix to cluster.")
    return _table_of_arrays(path, arrays, matrices or tuple(arrays))


def _sparse_rows(file: BinaryIO) -> Any:
    file.seek(0)
    matrix = sparse.load_npz(file)
    if hasattr(matrix, "check_format"):  # indices outside the matrix would access other memory
        matrix.check_format(full_check=True)
    return matrix.tocsr()


def _table_of_arrays(path: InputFile, arrays: dict[str, Any], features: tuple[str, ...] = ("X",)) -> Table:
    values = {}
    for name, array in arrays.items():
        if array.dtype.kind in "US" and array.ndim == 1:
            array = array.astype(str).astype(object)
            check_unicode(str(path), f'array "{name}"', array.tolist())
        elif array.dtype.kind not in "biuf":
            raise FileError(f'{path}: array "{name}" has type {array.dtype}; a table holds real numbers or text.')
        values[name] = array
    n_rows = int(next(iter(values.values())).shape[0])
    if not n_rows:
        raise FileError(f"{path} has no rows.")
    return Table(str(path), values, features, n_rows)


def _read_parquet(path: InputFile) -> Table:
    pyarrow = require_pyarrow()
    try:
        stored = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise FileError(f"Cannot read {path}: {error}.") from error
    if not stored.num_rows:
        raise FileError(f"{path} has no rows.")
    for name in stored.column_names:
        if stored.column_names.count(name) > 1:
            raise FileError(f'{path}: "{name}" names two columns. Rename one of them.')
    values = {name: _from_arrow(path, name, stored[name].combine_chunks()) for name in stored.column_names}
    # pandas stores an unnamed index under this name. It may be used as ids, but not for clustering.
    features = tuple(name for name in values if not name.startswith("__index_level_"))
    return Table(str(path), values, features, stored.num_rows)


def _from_arrow(path: InputFile, name: str, column: Any) -> NDArray[Any]:
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        array: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        # A column of booleans with missing values arrives as objects.
        return array.astype(np.float64) if array.dtype == object else array
    if types.is_decimal(kind):
        return _from_arrow(path, name, column.cast("float64"))
    if types.is_null(kind):
        return np.full(len(column), np.nan)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _vectors(path, name, column)
    return np.array(["" if value is None else str(value) for value in column.to_pylist()], dtype=object)


def _vectors(path: InputFile, name: str, column: Any) -> NDArray[Any]:
    from pyarrow import compute

    lengths = compute.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    odd = np.flatnonzero(lengths != lengths[0])
    if not lengths[0] or odd.size:
        row = int(odd[0]) if odd.size and lengths[0] else 0
        raise FileError(
            f'{path}: column "{name}" must hold lists of one length, but row {row} has {lengths[row]} '
            f"numbers and row 0 has {lengths[0]}."
        )
    flat = _from_arrow(path, name, compute.list_flatten(column))
    if flat.dtype == object:
        raise FileError(f'{path}: column "{name}" holds lists of text; vectors are lists of numbers.')
    return flat.reshape(len(column), -1)


def _row(row: int, ids: NDArray[Any] | None) -> str:
    return f"row {row}" if ids is None else f'row {row}, id "{ids[row]}"'


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def sources(table: Table, name: str) -> NDArray[np.object_]:
    """The source of each row, for `Constraints(cannot_groups=...)`: a column of words, "" if the cell is empty."""
    return np.array([_source(value) for value in table.column(name).tolist()], dtype=object)


def checked_sources(table: Table, name: str) -> NDArray[np.object_]:
    """The source of each row, see `sources`. Raises if there are fewer than two."""
    found = sources(table, name)
    words = sorted(set(found.tolist()) - {""})
    if not words:
        raise ParameterError(f"source {name}: the column has no value. Choose another column, or leave the source out.")
    if len(words) == 1:
        raise ParameterError(nothing_together(f"source {name}: the column", words[0]))
    return found


def _source(value: Any) -> str:
    word = str(value).strip()
    return "" if word.lower() in MISSING else word
