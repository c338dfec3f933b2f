"""Rows on disk: checked once, read in chunks, and never loaded as a whole.

`open_rows` takes the path of a .npy file, a parquet file or a folder of them, an Arrow dataset, a memory-mapped array,
or an iterable of batches. A .npy file and a memory-mapped array are read in place. All other sources are copied once,
row by row, to a temporary file without a name, which the system deletes even if the program is killed.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from clew._frames import as_frame
from clew._tables import reading_arrays, require_pyarrow
from clew.exceptions import DataError, DataTypeError, FileError

_logger = logging.getLogger(__name__)

# Number of rows that are decoded at a time; a few of these batches are in memory at once.
BATCH_ROWS = 65_536
# A smaller share of the rows is read row by row, a larger share in chunks.
_FEW = 1 / 1000
_READ_ROWS = 32_768


class Fingerprint(NamedTuple):
    """Sizes and modification times of files, to detect changes while they are read.

    `folder` is the folder whose parquet files these are, or None.
    """

    files: tuple[tuple[str, int, int], ...]
    folder: Path | None = None

    @classmethod
    def of(cls, paths: Iterable[str | os.PathLike[str]], folder: Path | None = None) -> Fingerprint:
        """The present state of these files."""
        states = [(str(path), os.stat(path)) for path in paths]
        return cls(tuple((path, state.st_size, state.st_mtime_ns) for path, state in states), folder)

    def check(self) -> None:
        """Raise an error if a file has changed since, or a file was added to the folder."""
        for path, size, changed in self.files:
            try:
                state = os.stat(path)
            except OSError:
                raise FileError(f"{path} disappeared while it was read. Fit again when it is complete.") from None
            if (state.st_size, state.st_mtime_ns) != (size, changed):
                grew = "grew" if state.st_size > size else "changed"
                raise FileError(f"{path} {grew} while it was read. Fit again when it is complete.")
        known = {path for path, _, _ in self.files}
        for added in () if self.folder is None else parquet_files(self.folder):
            if str(added) not in known:
                raise FileError(f"{added} was added while {self.folder} was read. Fit again when it is complete.")


Reader = Callable[[int, int, npt.NDArray[Any]], None]  # first row, row after the last, where the rows go


class _OpenFile:
    """A file that is closed when the last reader is gone."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        # Not in __del__: the garbage collector may finalise the file before this object, and warn that it is open.
        weakref.finalize(self, file.close)


class StoredRows:
    """A table of numbers in a file: it has the shape and the type of an array, and `read` returns some rows.

    Several threads may read at the same time. `prepared` returns the same rows with a function applied to every block.
    """

    ndim = 2

    def __init__(
        self,
        source: str,
        shape: tuple[int, int],
        dtype: npt.DTypeLike,
        read: Reader,
        *,
        columns: tuple[str, ...] | None = None,
        fingerprint: Fingerprint | None = None,
        file: _OpenFile | None = None,
    ) -> None:
        self.source, self.shape, self.dtype, self.columns = source, shape, np.dtype(dtype), columns
        self.fingerprint = fingerprint or Fingerprint(())
        self._read, self._file = read, file
        self._is_copy = False
        self._prepare: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] | None = None

    def __repr__(self) -> str:
        return f"StoredRows({self.source!r}, {self.shape[0]} rows, {self.shape[1]} columns, {self.dtype})"

    def __len__(self) -> int:
        return self.shape[0]

    def read(self, start: int, stop: int, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Rows `start` to `stop`, in `out` if it is given or else in an array of their own."""
        rows = np.empty((stop - start, self.shape[1]), dtype=self.dtype) if out is None else out
        self._read(start, stop, rows)
        return rows if self._prepare is None else self._prepare(rows)

    def __getitem__(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Some rows, by their numbers."""
        rows = np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        wanted = rows[order]
        found = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
        if len(rows) < _FEW * self.shape[0]:
            for place, row in zip(order.tolist(), wanted.tolist(), strict=True):
                found[place] = self.read(row, row + 1)[0]
            return found
        for start in range(0, self.shape[0], _READ_ROWS):
            first, last = np.searchsorted(wanted, [start, start + _READ_ROWS])
            if first < last:
                stop = min(start + _READ_ROWS, self.shape[0])
                found[order[first:last]] = self.read(start, stop)[wanted[first:last] - start]
        return found

    def prepared(self, function: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> StoredRows:
        """The same rows, with a function applied to every block that is read; it may change the block."""
        rows = StoredRows(
            self.source, self.shape, self.dtype, self._read,
            columns=self.columns, fingerprint=self.fingerprint, file=self._file,
        )  # fmt: skip
        before, rows._is_copy = self._prepare, self._is_copy
        rows._prepare = function if before is None else lambda block: function(before(block))
        return rows

    def check_unchanged(self) -> None:
        """Raise an error if a file behind these rows has changed."""
        self.fingerprint.check()

    def check_consistent(self) -> None:
        """Raise an error if some rows may have been read before a change of their file, and others after it."""
        if not self._is_copy:
            self.check_unchanged()

    def close(self) -> None:
        """Close the file. A temporary file is deleted."""
        if self._file is not None:
            self._file.file.close()


def is_stored(X: Any) -> bool:
    """Whether `open_rows` takes X: it names or holds rows outside memory."""
    if isinstance(X, str | os.PathLike | StoredRows | np.memmap):
        return True
    if hasattr(X, "to_batches") and hasattr(X, "scanner"):
        return True
    if hasattr(X, "read_next_batch"):
        return True
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(_is_batch(one) for one in X)
    return isinstance(X, Iterator)


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection."""
    return "dask" in sys.modules and hasattr(X, "__dask_graph__")


def is_remote(X: Any) -> bool:
    """Whether X names or holds rows outside memory: files, batches, or a Dask collection."""
    return is_stored(X) or is_dask(X) or hasattr(X, "map_chunks")


def _is_batch(one: Any) -> bool:
    return (isinstance(one, np.ndarray) and one.ndim == 2) or hasattr(one, "schema") or as_frame(one) is not None


def open_rows(X: Any, columns: Iterable[str] | None = None) -> StoredRows:
    """Open rows outside memory, after one pass that checks every value.

    Parameters
    ----------
    X : path, memory-mapped array, Arrow dataset or iterable of batches
        A path names a .npy file, a parquet file, or a folder of parquet files. Batches are arrays, frames, or Arrow
        batches and tables.
    columns : iterable of str, optional
        Columns to read, if they have names. Default: all.

    Raises
    ------
    DataError
        A missing or infinite value (with its row), text, or batches with different columns.
    FileError
        A file that cannot be read, that changed while it was read, or no room for the temporary copy.

    Examples
    --------
    >>> import numpy as np
    >>> from clew.datasets import open_rows
    >>> rows = open_rows(iter([np.zeros((2, 3)), np.ones((1, 3))]))
    >>> rows.shape
    (3, 3)
    >>> rows.read(1, 3)
    array([[0., 0., 0.],
           [1., 1., 1.]])
    """
    if isinstance(X, StoredRows):
        return X
    names = None if columns is None else list(columns)
    if isinstance(X, np.memmap):
        return _checked(_mapped(X))
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        if path.suffix == ".npy" and path.is_file():
            return _checked(_npy(path))
        return _spooled(_parquet(path, names))
    if hasattr(X, "to_batches") and hasattr(X, "scanner"):
        return _spooled(_dataset(X, names))
    if hasattr(X, "read_next_batch"):
        X = _reader(X)
    return _spooled(_Batches("batches", (_as_array(batch, names) for batch in X)))


def _checked(rows: StoredRows) -> StoredRows:
    """Rows that are read in place, after a pass that checks them."""
    try:
        for start in range(0, rows.shape[0], _READ_ROWS):
            block = rows.read(start, min(start + _READ_ROWS, rows.shape[0]))
            check_block(block, start, rows.columns)
        rows.check_unchanged()
    except BaseException:
        rows.close()
        raise
    return rows


Files = Callable[[], list[tuple[str, int]]]  # path and number of rows of each file, in the order of the rows


def _no_files() -> list[tuple[str, int]]:
    return []


def check_block(rows: npt.NDArray[Any], first: int, columns: tuple[str, ...] | None, files: Files = _no_files) -> None:
    """Raise if a value is missing, infinite, or too large to be squared; `first` is the number of the first row.

    `files` is called for the message only, because datasets may have to count their rows.
    """
    largest = max(float(rows.max(initial=0)), -float(rows.min(initial=0)))  # NaN if any value is NaN
    limit = float(np.sqrt(np.finfo(rows.dtype).max / max(rows.shape[1], 1)) / 4)
    if largest <= limit:
        return
    wrong = np.argwhere(~np.isfinite(rows))
    if not len(wrong):
        raise DataError(f"X holds {largest:.3g}: its square is too large for {rows.dtype} numbers. Scale X.")
    row, column = wrong[0].tolist()
    what = "NaN" if np.isnan(rows[row, column]) else "infinity (inf)"
    named = f"{column} ({columns[column]!r})" if columns else str(column)
    place = _named_row(first + row, files())
    raise DataError(f"X contains {what} at {place}, column {named}. Fill it in, or drop the row.")


def _named_row(row: int, files: list[tuple[str, int]]) -> str:
    """The number of a row; among several files also the file and the number of the row in it."""
    start = 0
    for path, n_rows in files if len(files) > 1 else []:
        if row < start + n_rows:
            return f"row {row - start} of {path} (row {row} of all files)"
        start += n_rows
    return f"row {row}"


def _reason(error: BaseException) -> str:
    """The message of an error, for the end of a sentence."""
    return str(error).rstrip(". ")


def _npy(path: Path) -> StoredRows:
    """Rows of a .npy file, read in place."""
    fingerprint = Fingerprint.of([path])
    try:
        with reading_arrays(path):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise FileError(f"Cannot read {path}: {_reason(error)}.") from error
    if array.ndim != 2 or array.dtype.kind not in "fiub" or not array.size:
        raise DataError(
            f"{path} holds an array of shape {array.shape} and type {array.dtype}: expected rows of numbers."
        )
    if array.dtype not in (np.float32, np.float64) or not array.flags.c_contiguous or not array.dtype.isnative:
        return _mapped(array, str(path), fingerprint)
    shape, dtype, offset = (int(array.shape[0]), int(array.shape[1])), array.dtype, int(array.offset)
    del array
    file = _OpenFile(open(path, "rb"))  # noqa: SIM115  # closed with the rows
    return StoredRows(
        str(path),
        shape,
        dtype,
        _reading(file, offset, shape[1], dtype, fingerprint),
        fingerprint=fingerprint,
        file=file,
    )


def _reading(
    opened: _OpenFile, offset: int, n_columns: int, dtype: np.dtype[Any], fingerprint: Fingerprint | None = None
) -> Reader:
    """A function that reads rows from a file; pages of a memory map would count as memory of this process."""
    width = n_columns * dtype.itemsize

    def read(start: int, stop: int, rows: npt.NDArray[Any]) -> None:
        left = rows.reshape(-1).view(np.uint8).data
        place = offset + start * width
        while len(left):
            n_read = os.preadv(opened.file.fileno(), [left], place)
            if n_read == 0:
                if fingerprint is not None:
                    fingerprint.check()
                raise FileError(f"{opened.file.name} is shorter than its header says. Write it again.")
            left, place = left[n_read:], place + n_read

    return read


def _mapped(array: Any, source: str = "a memory-mapped array", fingerprint: Fingerprint | None = None) -> StoredRows:
    """Rows of a memory-mapped array; pages are released after reading."""
    if array.ndim != 2 or array.dtype.kind not in "fiub" or not array.size:
        raise DataError(f"X has shape {array.shape} and type {array.dtype}: expected rows of numbers.")
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    pages = getattr(array, "_mmap", None)

    def read(start: int, stop: int, rows: npt.NDArray[Any]) -> None:
        rows[:] = array[start:stop]
        if pages is not None and array.mode == "r" and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)  # pages that were read count as memory of this process until then

    return StoredRows(source, array.shape, dtype, read, fingerprint=fingerprint)


class _Batches(NamedTuple):
    """Rows that are copied batch by batch, and what is known about them before."""

    source: str
    rows: Iterable[tuple[npt.NDArray[Any], tuple[str, ...] | None]]
    n_rows: int | None = None
    dtype: Any = None
    fingerprint: Fingerprint = Fingerprint(())
    files: Files = _no_files


def _parquet(path: Path, names: list[str] | None) -> _Batches:
    """The batches of a parquet file or a folder of them."""
    pyarrow = require_pyarrow()
    files = parquet_files(path)
    fingerprint = Fingerprint.of(files, path if path.is_dir() else None)
    opened = []
    for one in files:
        try:
            opened.append(pyarrow.parquet.ParquetFile(one, buffer_size=1 << 20, pre_buffer=False))
        except (OSError, ValueError) as error:
            raise FileError(f"Cannot read {one}: {_reason(error)}.") from error
    schemas = [file.schema_arrow for file in opened]
    for file in opened:
        file.close()
    wanted = _wanted(str(files[0]), schemas[0], names)
    for one, schema in zip(files[1:], schemas[1:], strict=True):
        _refuse_change(files[0], schemas[0], one, schema, wanted)
    n_rows = [file.metadata.num_rows for file in opened]

    def batches() -> Iterator[tuple[npt.NDArray[Any], tuple[str, ...]]]:
        for one in files:
            first = 0
            try:
                with pyarrow.parquet.ParquetFile(one, buffer_size=1 << 20, pre_buffer=False) as file:
                    for batch in file.iter_batches(BATCH_ROWS, columns=wanted, use_threads=False):
                        yield _from_arrow(batch, str(one), first)
                        first += batch.num_rows
            except (OSError, ValueError) as error:
                if isinstance(error, DataError | FileError):
                    raise
                fingerprint.check()
                raise FileError(f"Cannot read {one}: {_reason(error)}.") from error

    kind = _common_type(schemas[0], wanted)
    counts = list(zip(map(str, files), n_rows, strict=True))
    return _Batches(str(path), batches(), sum(n_rows), kind, fingerprint, lambda: counts)


def parquet_files(path: Path) -> list[Path]:
    """A parquet file by itself, or all parquet files below a folder, in the order of their names."""
    if path.is_dir():
        files = sorted(one for one in path.rglob("*.parquet") if one.is_file() and not one.name.startswith((".", "_")))
        if not files:
            raise FileError(f"{path} holds no .parquet file.")
        return files
    if not path.exists():
        raise FileError(f"{path} does not exist.")
    if path.suffix not in (".parquet", ".pq"):
        raise FileError(
            f"{path} is not a .npy or .parquet file, the two kinds that fits can read in blocks. Load it "
            "(clew.datasets.read_table), or convert it."
        )
    return [path]


def is_vector(kind: Any) -> bool:
    """Whether a column of this Arrow type holds lists."""
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _wanted(source: str, schema: Any, names: list[str] | None) -> list[str]:
    """Names of the columns to read. Raises if a column holds text."""
    from pyarrow import types

    wanted = list(schema.names) if names is None else names
    for name in wanted:
        if name not in schema.names:
            raise DataError(f'{source} has no column "{name}". It has {", ".join(schema.names)}.')
        kind = schema.field(name).type
        inner = kind.value_type if is_vector(kind) else kind
        if not (types.is_floating(inner) or types.is_integer(inner) or types.is_boolean(inner)):
            raise DataError(
                f"Column {name!r} of {source} has type {kind}, not a number. Encode it, or leave the column out."
            )
    if not wanted:
        raise DataError(f"{source} has no columns.")
    return wanted


def _refuse_change(first: Path, expected: Any, path: Path, schema: Any, wanted: list[str]) -> None:
    for name in wanted:
        if name not in schema.names:
            raise DataError(f"{path} has no column {name!r}, but {first} has. Give all files the same columns.")
        if schema.field(name).type != expected.field(name).type:
            raise DataError(
                f"Column {name!r} has type {schema.field(name).type} in {path}, but {expected.field(name).type} in "
                f"{first}. Write all files with one type."
            )
    extra = [name for name in schema.names if name not in expected.names]
    if extra:
        raise DataError(f"{path} has a column {extra[0]!r}, but {first} has none. Give all files the same columns.")


def _common_type(schema: Any, wanted: list[str]) -> Any:
    """float32 if all columns are, else float64."""
    types = {str(getattr(schema.field(name).type, "value_type", schema.field(name).type)) for name in wanted}
    return np.float32 if types == {"float"} else np.float64


def _dataset(data: Any, names: list[str] | None) -> _Batches:
    """The batches of an Arrow dataset."""
    files = list(getattr(data, "files", []))
    fingerprint = Fingerprint.of(one for one in files if os.path.exists(one))
    wanted = _wanted("The dataset", data.schema, names)
    for fragment in data.get_fragments():
        if hasattr(fragment, "path"):
            _refuse_change(Path("the dataset"), data.schema, Path(fragment.path), fragment.physical_schema, wanted)
    scan = data.scanner(columns=wanted, batch_size=BATCH_ROWS, batch_readahead=2, fragment_readahead=1)

    def batches() -> Iterator[tuple[npt.NDArray[Any], tuple[str, ...]]]:
        first = 0
        for batch in scan.to_batches():
            yield _from_arrow(batch, "the dataset", first)
            first += batch.num_rows

    def counts() -> list[tuple[str, int]]:
        return [(getattr(one, "path", "a part in memory"), one.count_rows()) for one in data.get_fragments()]

    return _Batches("a dataset", batches(), data.count_rows(), _common_type(data.schema, wanted), fingerprint, counts)


def _reader(reader: Any) -> Iterator[Any]:
    yield from reader


def _as_array(batch: Any, names: list[str] | None) -> tuple[npt.NDArray[Any], tuple[str, ...] | None]:
    """Convert a batch to rows of floats; also return the names of its columns."""
    if hasattr(batch, "to_pydict") and hasattr(batch, "schema"):
        wanted = _wanted("A batch", batch.schema, names)
        return _from_arrow(batch.select(wanted), "a batch", 0)
    frame = as_frame(batch)
    if frame is not None:
        wanted = list(frame.columns) if names is None else names
        try:
            return np.column_stack([np.asarray(frame[name].to_numpy()) for name in wanted]), tuple(map(str, wanted))
        except (TypeError, ValueError) as error:
            raise DataTypeError(f"A batch cannot be used: {error}") from error
    return np.asarray(batch), None


def _from_arrow(batch: Any, source: str, first: int) -> tuple[npt.NDArray[Any], tuple[str, ...]]:
    """Rows of an Arrow batch; a column of vectors becomes as many columns as its vectors have numbers.

    `first` is the number of its first row in the source.
    """
    parts: list[npt.NDArray[Any]] = []
    names: list[str] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if is_vector(column.type):
            width = _length_of_vectors(column, name, source, first)
            values = [part.flatten().to_numpy(zero_copy_only=False) for part in getattr(column, "chunks", [column])]
            parts.append(np.concatenate(values).reshape(len(column), width) if values else np.empty((0, width)))
            names += [f"{name}_{place}" for place in range(width)]
        else:
            parts.append(column.to_numpy(zero_copy_only=False)[:, None] if hasattr(column, "offset") else
                         column.to_numpy()[:, None])  # fmt: skip
            names.append(name)
    kinds = {part.dtype for part in parts}
    dtype = np.float32 if kinds == {np.dtype(np.float32)} else np.float64
    rows = np.empty((batch.num_rows, len(names)), dtype=dtype)
    place = 0
    for part in parts:
        rows[:, place : place + part.shape[1]] = part
        place += part.shape[1]
    return rows, tuple(names)


def _length_of_vectors(column: Any, name: str, source: str, first: int) -> int:
    """The length of all vectors in a column. Raises if one is missing or has another length."""
    from pyarrow import compute

    missing = np.flatnonzero(np.asarray(column.is_null()))
    if len(missing):
        raise DataError(
            f"Column {name!r} of {source} has no vector in row {first + missing[0]}. Fill it in, or drop the row."
        )
    lengths = np.asarray(compute.list_value_length(column))
    other = np.flatnonzero(lengths != lengths[0]) if len(lengths) else missing
    if len(other):
        raise DataError(
            f"Column {name!r} of {source} has {lengths[0]} numbers in row {first} and {lengths[other[0]]} in "
            f"row {first + other[0]}. Give vectors of one length."
        )
    return int(lengths[0]) if len(lengths) else 0


def _spooled(batches: _Batches) -> StoredRows:
    """Check batches and copy them to a temporary file."""
    source, _, n_rows, dtype, fingerprint, files = batches
    folder = tempfile.gettempdir()
    file = tempfile.TemporaryFile(prefix="clew-", dir=folder)  # noqa: SIM115  # closed with the rows
    columns: tuple[str, ...] | None = None
    n_columns, n_written = 0, 0
    try:
        for rows, names in batches.rows:
            if rows.ndim != 2 or rows.dtype.kind not in "fiub":
                raise DataError(
                    f"Batch at row {n_written} has shape {rows.shape} and type {rows.dtype}: expected rows of numbers."
                )
            if dtype is None:
                dtype = np.float32 if rows.dtype == np.float32 else np.float64
            if not n_columns:
                n_columns, columns = rows.shape[1], names
                _check_room(folder, source, n_rows, n_columns, np.dtype(dtype))
            if rows.shape[1] != n_columns or names != columns:
                had = f"{n_columns} columns" if names is None else ", ".join(columns or ())
                has = f"{rows.shape[1]} columns" if names is None else ", ".join(names)
                place = _named_row(n_written, files())
                raise DataError(f"The batch at {place} has {has}, but the first one has {had}.")
            if names is None and dtype == np.float32 and rows.dtype != np.float32:
                raise DataError(
                    f"The batch at row {n_written} has type {rows.dtype}, but the first one has float32. Give one type."
                )
            rows = np.ascontiguousarray(rows, dtype=dtype)
            check_block(rows, n_written, columns, files)
            file.write(rows.reshape(-1).view(np.uint8).data)
            n_written += len(rows)
            _logger.debug("%s: read %d rows", source, n_written, extra={"rows_read": n_written, "n_rows": n_rows})
        file.flush()
        fingerprint.check()
        if n_rows is not None and n_written != n_rows:
            raise FileError(f"{source} has {n_written} rows, but its metadata says {n_rows}. Write it again.")
        if not n_written:
            once = "A generator can be read only once: make a new one for each fit"
            remedy = once if files is _no_files else "Give at least one"
            raise DataError(f"{source}: no rows. {remedy}.")
    except OSError as error:
        file.close()
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise _no_room(folder, source) from None
        raise
    except BaseException:
        file.close()
        raise
    shape, kind = (n_written, n_columns), np.dtype(dtype)
    opened = _OpenFile(file)
    read = _reading(opened, 0, n_columns, kind)
    stored = StoredRows(source, shape, kind, read, columns=columns, fingerprint=fingerprint, file=opened)
    stored._is_copy = True
    return stored


def _check_room(folder: str, source: str, n_rows: int | None, n_columns: int, dtype: np.dtype[Any]) -> None:
    if n_rows is not None and shutil.disk_usage(folder).free < n_rows * n_columns * dtype.itemsize:
        raise _no_room(folder, source, n_rows * n_columns * dtype.itemsize)


def _no_room(folder: str, source: str, needed: int | None = None) -> FileError:
    size = "" if needed is None else f" of {needed / 1e9:.2f} GB"
    return FileError(
        f"No room in {folder} for a temporary copy{size} of {source}. Free some space, or set TMPDIR to a folder on "
        "another disk. Nothing was left behind. A .npy file needs no copy."
    )
