"""Convert any data with rows to a `Table`: a path, a frame, an array, records, a folder of images."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from clew._frames import as_frame, without_mask
from clew.datasets._cells import column_of, columns_of
from clew.datasets._read import Table, read_table
from clew.exceptions import DataError, DataTypeError, FileError

IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")


def as_table(data: Any, *, text: Collection[str] = (), sep: str | None = None, encoding: str | None = None) -> Table:
    """Convert any data with rows to a table of named columns.

    Parameters
    ----------
    data : Table, path, frame, array, sparse matrix, or list of dicts
        A path is a file (csv, tsv, jsonl, parquet, npy, npz) or a folder of images, which becomes a table with the
        columns "file" (the ids) and "image". An array becomes one column of vectors, "X".
    text : collection of str
        Columns of a csv or tsv file to read as text, for ids such as ``007``.
    sep, encoding : str, optional
        Separator and encoding of a file, see `read_table`.

    Examples
    --------
    >>> from clew.datasets import as_table
    >>> as_table([{"id": "a", "size": 1.5}, {"id": "b", "size": None}])
    Table('the data', 2 rows, columns ['id', 'size'])
    """
    if isinstance(data, Table):
        return data
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        if path.is_dir():
            return _folder_of_images(path)
        return read_table(data, text=text, sep=sep, encoding=encoding)
    if sparse.issparse(data):
        return _with_rows({"X": data.tocsr()})
    frame = as_frame(data)
    if frame is not None:
        return _with_rows({str(name): _from_series(str(name), frame.get_column(name)) for name in frame.columns})
    if isinstance(data, Mapping):
        return _with_rows({str(name): column_of("the data", str(name), list(cells)) for name, cells in data.items()})
    if isinstance(data, Sequence) and len(data) and all(isinstance(row, Mapping) for row in data):
        return _with_rows(columns_of("the data", data))
    return _from_array(data)


def _from_series(name: str, series: nw.Series[Any]) -> NDArray[Any]:
    if series.dtype.is_numeric() and not series.dtype.is_decimal():
        array = series.to_numpy()
        return array if array.dtype.kind in "iuf" else array.astype(np.float64)
    missing = series.is_null().to_list()
    return column_of("the frame", name, [None if m else v for v, m in zip(series.to_list(), missing, strict=True)])


def _from_array(data: Any) -> Table:
    try:
        array = np.asarray(without_mask(data))
    except ValueError:
        raise DataError(
            "The rows of the data have different lengths. Give each row the same number of values."
        ) from None
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise DataTypeError(
                "The array holds objects. Give an array of numbers, or a table with named columns (a frame, a list of "
                "dicts, or the path of a file)."
            ) from None
    if array.dtype.kind not in "biuf" or array.ndim not in (1, 2):
        raise DataTypeError(f"An array of type {array.dtype} and shape {array.shape} is not a table of numbers.")
    return _with_rows({"X": array if array.ndim == 2 else array[:, None]})


def _with_rows(values: dict[str, Any]) -> Table:
    lengths = {name: int(column.shape[0]) for name, column in values.items()}
    if not lengths or not max(lengths.values()):
        raise DataError("The data has no rows.")
    if len(set(lengths.values())) > 1:
        told = ", ".join(f'"{name}" {length}' for name, length in lengths.items())
        raise DataError(f"The columns have different lengths: {told}.")
    return Table("the data", values, tuple(values), next(iter(lengths.values())))


def id_column_of(path: str | os.PathLike[str]) -> str | None:
    """The default id column: "file" for a folder of images, else None. Images beside parquet files are not read."""
    folder = Path(path)
    is_of_images = folder.is_dir() and any(_images_in(folder)) and not any(folder.rglob("*.parquet"))
    return "file" if is_of_images else None


def _images_in(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix.lower() in IMAGES and path.is_file())


def _folder_of_images(folder: Path) -> Table:
    names = sorted(path.relative_to(folder).as_posix() for path in _images_in(folder))
    if not names and not any(folder.iterdir()):
        raise FileError(f"{folder} is an empty folder. Check the path.")
    if not names and any(folder.rglob("*.parquet")):
        raise FileError(
            f"{folder} is a folder of parquet files, which are only read by the batch: by clew cluster with --stream "
            "and a method such as pck-means, or by PCKMeans().fit(folder). To load them, write them to one file."
        )
    if not names:
        raise FileError(f"{folder} is a folder without images ({', '.join(IMAGES)}) and without parquet files.")
    column = np.array(names, dtype=object)
    return Table(str(folder), {"file": column, "image": column}, ("image",), len(names))
