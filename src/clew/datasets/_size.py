"""Estimate the memory that a file of rows takes once it is read, without reading it."""

from __future__ import annotations

import os
from math import prod
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from clew._tables import InputFile, require_pyarrow
from clew.exceptions import FileError, TooLargeError

# Bytes of a number, and of a Python string without its text.
_NUMBER, _TEXT = 8, 64
# Separators of values in csv, tsv, jsonl and json.
_SEPARATORS = (b",", b";", b"\t", b"\n", b"[", b"{")
_CHUNK = 1 << 20


def check_size(path: str | os.PathLike[str], max_bytes: int) -> None:
    """Raise `TooLargeError` if a file of rows or answers would take more than `max_bytes` of memory once it is read.

    Parquet and npz are measured by their uncompressed values. Other files are measured by the number of values, counted
    from the separators. The file is not read into memory.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from clew.datasets import check_size
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "data.csv")
    ...     _ = path.write_text("id,size\\n007,1.5\\n008,2\\n")
    ...     check_size(path, 1_000)
    """
    path = InputFile.of(path)
    measure = {".parquet": _parquet, ".npz": _npz, ".npy": _npy}.get(path.suffix, _delimited)
    size = measure(path, max_bytes)
    if size > max_bytes:
        raise TooLargeError(
            f"{path} would take {_megabytes(size)} of memory once it is read, and {_megabytes(max_bytes)} are allowed. "
            "Give fewer rows or columns."
        )


def _megabytes(size: float) -> str:
    return f"{size / 2**20:,.0f} MB" if size >= 2**20 else f"{size:,.0f} bytes"


def _delimited(path: InputFile, max_bytes: int) -> int:
    size = 0
    with open(path, "rb") as file:
        while size <= max_bytes and (chunk := file.read(_CHUNK)):
            size += len(chunk) + _TEXT * sum(chunk.count(sign) for sign in _SEPARATORS)
    return size


def _npy(path: InputFile, max_bytes: int) -> int:
    with open(path, "rb") as file:
        return _array_size(path, file)


def _npz(path: InputFile, max_bytes: int) -> int:
    try:
        with ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            if size > max_bytes:
                return size
            for entry in archive.infolist():
                with archive.open(entry) as file:
                    size = max(size, _array_size(path, file))
            if "shape.npy" in archive.namelist():  # a sparse matrix needs a pointer per row
                with archive.open("shape.npy") as file:
                    size += _NUMBER * int(np.max(np.lib.format.read_array(file), initial=0))
    except (BadZipFile, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise FileError(f"Cannot read {path}: {error}.") from error
    return size


def _array_size(path: InputFile, file: Any) -> int:
    """Bytes of an array by its header, which numpy allocates before it reads."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except ValueError as error:
        raise FileError(f"Cannot read {path}: {error}.") from error
    return prod(shape) * max(1, dtype.itemsize)


def _parquet(path: InputFile, max_bytes: int) -> int:
    pyarrow = require_pyarrow()
    try:
        file = pyarrow.parquet.ParquetFile(path)
        groups = [file.metadata.row_group(place) for place in range(file.metadata.num_row_groups)]
        chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
        texts = {chunk.path_in_schema for chunk in chunks if "BYTE_ARRAY" in chunk.physical_type}
        size = sum(
            max(chunk.total_uncompressed_size, chunk.num_values * (_TEXT if chunk.path_in_schema in texts else _NUMBER))
            for chunk in chunks
        )
        if size > max_bytes or not texts:
            return size
        # Repeated texts are stored once, in a dictionary.
        file = pyarrow.parquet.ParquetFile(path, read_dictionary=sorted(texts))
        columns = sorted({name.partition(".")[0] for name in texts})
        for batch in file.iter_batches(columns=columns):
            size += sum(_text_size(column) for column in batch.columns)
            if size > max_bytes:
                break
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise FileError(f"Cannot read {path}: {error}.") from error
    return size


def _text_size(column: Any) -> int:
    """Bytes of the texts of a column, each counted as often as it occurs."""
    from pyarrow import compute, types

    while types.is_nested(column.type):
        if types.is_struct(column.type):
            return sum(_text_size(part) for part in column.flatten())
        column = column.values if types.is_map(column.type) else compute.list_flatten(column)
    if not types.is_dictionary(column.type):
        return int(column.nbytes)
    if not len(column.dictionary):
        return 0
    lengths = compute.binary_length(column.dictionary.cast("large_binary"))
    return int(compute.sum(lengths.cast("int64").take(column.indices)).as_py() or 0)
