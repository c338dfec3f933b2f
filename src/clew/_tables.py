"""Write tables to files, completely or not at all; shared helpers of readers and writers of tables."""

from __future__ import annotations

import codecs
import csv
import json
import os
import platform
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clew.exceptions import FileError, MissingExtraError, ParameterError

# Possible separators. If several are equally frequent in a header, the first is used.
SEPARATORS = (",", ";", "\t", "|")

WRITABLE = (".csv", ".tsv", ".jsonl", ".parquet")

# Characters that make a spreadsheet run a cell as a formula, including their full-width forms.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
# Phone numbers such as +49 (0)30 123-45 are left alone. Without letters, a spreadsheet can at most calculate with them.
_PHONE = re.compile(r"\+\d[\d ()/.-]*")


@dataclass(frozen=True)
class InputFile:
    """A file to read, and its name in messages.

    Uploads and standard input are read from temporary files, whose names mean nothing to people.

    Attributes
    ----------
    path : Path
        The file itself.
    title : str
        Name of the file in messages that show its full path: ``str(file)``.
    name : str
        Short name of the file in messages.
    """

    path: Path
    title: str
    name: str

    @classmethod
    def of(cls, file: str | os.PathLike[str]) -> InputFile:
        """Make an `InputFile` from a path. An `InputFile` is returned unchanged."""
        if isinstance(file, InputFile):
            return file
        path = Path(file)
        return cls(path, str(path), path.name)

    @classmethod
    def called(cls, name: str, path: Path) -> InputFile:
        """A temporary file with the name `name` in messages."""
        return cls(path, name, name)

    @property
    def suffix(self) -> str:
        """The ending of the file itself, in lower case, which determines the format."""
        return self.path.suffix.lower()

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return self.title


@contextmanager
def reading_arrays(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open an npy or npz file. All errors of numpy, scipy, zipfile and zlib become a `FileError`."""
    try:
        with open(path, "rb") as file:  # numpy leaves files open that it cannot read
            yield file
    except (OSError, FileError):
        raise
    except Exception as error:  # all errors mean the same here: the file does not have the format of its name
        raise FileError(f"Cannot read {path}: it is damaged, or does not hold arrays ({error}).") from error


def write_table(target: str | os.PathLike[str] | TextIO, columns: Mapping[str, ArrayLike]) -> None:
    """Write columns of equal length to a csv, tsv, jsonl or parquet file, or as csv to an open stream.

    A file appears complete or not at all: the rows go to a temporary file in the same directory, which then
    takes the place of `target`. An interruption or a full disk leaves the old file unchanged.

    In csv and tsv, a text cell that a spreadsheet would run as a formula gets a leading apostrophe. These are cells
    that start with ``=``, ``+``, ``-``, ``@`` (or a full-width form of these), a tab, a line break or an apostrophe,
    and are neither numbers nor phone numbers. The other formats are exact.

    Parameters
    ----------
    target : path or text stream
        The suffix of a path determines the format.
    columns : mapping of name to values
        One value per row; NaN is written as an empty cell (null in jsonl).

    Examples
    --------
    >>> import sys
    >>> from clew.datasets import write_table
    >>> write_table(sys.stdout, {"id": ["a", "=b"], "cluster": [0, 1]})
    id,cluster
    a,0
    '=b,1
    """
    arrays = {str(name): np.asarray(values) for name, values in columns.items()}
    _check_lengths(arrays)
    if not isinstance(target, str | os.PathLike):
        _write_delimited(target, arrays, ",")
        return
    path = Path(target)
    check_writable(path)
    suffix = path.suffix.lower()
    with replacing(path) as temporary:
        if suffix == ".parquet":
            _write_parquet(temporary, arrays)
        else:
            with open(temporary, "w", encoding="utf-8", newline="") as stream:
                if suffix == ".jsonl":
                    _write_jsonl(stream, arrays)
                else:
                    _write_delimited(stream, arrays, "\t" if suffix == ".tsv" else ",")


def write_batches(target: str | os.PathLike[str] | TextIO, batches: Iterable[Mapping[str, ArrayLike]]) -> None:
    """Write a table batch by batch, as `write_table` writes it; every batch has the columns of the first.

    Examples
    --------
    >>> import sys
    >>> from clew._tables import write_batches
    >>> write_batches(sys.stdout, iter([{"id": ["a"], "cluster": [0]}, {"id": ["b"], "cluster": [1]}]))
    id,cluster
    a,0
    b,1
    """
    parts = ({str(name): np.asarray(values) for name, values in batch.items()} for batch in batches)
    if not isinstance(target, str | os.PathLike):
        _write_parts(target, parts, ",")
        return
    path = Path(target)
    check_writable(path)
    suffix = path.suffix.lower()
    with replacing(path) as temporary:
        if suffix == ".parquet":
            _write_parquet_parts(temporary, parts)
            return
        with open(temporary, "w", encoding="utf-8", newline="") as stream:
            if suffix == ".jsonl":
                for part in parts:
                    _write_jsonl(stream, part)
            else:
                _write_parts(stream, parts, "\t" if suffix == ".tsv" else ",")


def _write_parts(stream: TextIO, parts: Iterable[Mapping[str, NDArray[Any]]], delimiter: str) -> None:
    for place, part in enumerate(parts):
        _write_delimited(stream, part, delimiter, header=place == 0)


def _write_parquet_parts(path: Path, parts: Iterable[Mapping[str, NDArray[Any]]]) -> None:
    pyarrow = require_pyarrow()
    writer = None
    try:
        for part in parts:
            table = pyarrow.table({name: pyarrow.array(array) for name, array in part.items()})
            writer = writer or pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise `FileError` if `write_table` could not write this path; call it before long work.

    Examples
    --------
    >>> from clew.datasets import check_writable
    >>> check_writable("labels.docx")
    Traceback (most recent call last):
        ...
    clew.exceptions.FileError: Cannot write labels.docx: tables are written as .csv, .tsv, .jsonl or .parquet.
    """
    path = Path(path)
    if path.suffix.lower() not in WRITABLE and not _is_device(path):
        known = f"{', '.join(WRITABLE[:-1])} or {WRITABLE[-1]}"
        raise FileError(f"Cannot write {path}: tables are written as {known}.")
    if path.suffix.lower() == ".parquet":
        require_pyarrow()
    _check_place(path)
    if not _is_device(path):
        _try_place(path)


def _try_place(path: Path) -> None:
    """Raise if the system refuses a new file next to this one, as on a read-only disk."""
    final = Path(os.path.realpath(path))
    try:
        temporary = _beside(final)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        temporary.unlink()
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror or error}.") from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Return a temporary path next to `path`, which replaces `path` if the block ends without an error.

    If the block raises anything, including `KeyboardInterrupt`, the temporary file is removed and `path` is not
    changed. If the program is killed, the temporary file stays until `remove_abandoned` is called. Devices and pipes
    are written directly, because replacing them would destroy them.

    Examples
    --------
    >>> from clew.datasets import replacing
    >>> with replacing("/dev/null") as temporary:
    ...     _ = temporary.write_text("gone")
    """
    path = Path(path)
    _check_place(path)
    if _is_device(path):
        yield path
        return
    # A symbolic link is kept, and the file that it points to is replaced.
    final = Path(os.path.realpath(path))
    temporary = _beside(final)
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        if final.exists():
            shutil.copymode(final, temporary)
        yield temporary
        os.replace(temporary, final)
    except OSError as error:
        raise FileError(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)


def remove_abandoned(path: Path) -> None:
    """Delete temporary files of `replacing` in the folder of a file, if their programs have ended.

    Only files of programs whose processes can be seen from here are deleted: on Linux, those that ran on this computer
    since it was started, in this container. The same file may be in use by another computer with a shared disk.
    """
    here = _visible_processes()
    if here is None:
        return
    for temporary in Path(os.path.realpath(path)).parent.glob(f".clew-{here}-*.part"):
        process = temporary.name.split("-")[2]
        if process.isdecimal() and not _is_running(int(process)):
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _beside(final: Path) -> Path:
    """A new name for a temporary file in the same folder, with the process in it."""
    return final.with_name(f".clew-{_visible_processes() or 'unknown'}-{os.getpid()}-{uuid.uuid4().hex[:12]}.part")


@cache
def _visible_processes() -> str | None:
    """An id that processes share if and only if they can see each other. None if the system does not tell it.

    A host name is not enough: containers, and computers that share a disk, may have the same one.
    """
    try:
        system = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        parts = (platform.node(), system, os.readlink("/proc/self/ns/pid"))
    except OSError:
        return None
    return uuid.uuid5(uuid.NAMESPACE_DNS, " ".join(parts)).hex[:12]


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _check_place(path: Path) -> None:
    parent = path.parent
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a directory. Name a file in it.")
    if not parent.exists():
        raise FileError(f"Cannot write {path}: the directory {parent} does not exist. Create it first.")
    if not parent.is_dir():
        raise FileError(f"Cannot write {path}: {parent} is not a directory.")
    if path.exists() and not os.access(path, os.W_OK):
        raise FileError(f"Cannot write {path}: the file is read-only. Choose another name.")
    if not _is_device(path) and not os.access(Path(os.path.realpath(path)).parent, os.W_OK):
        raise FileError(f"Cannot write {path}: the directory {parent} is read-only. Choose another place.")


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def _check_lengths(arrays: Mapping[str, NDArray[Any]]) -> None:
    lengths = {name: array.shape for name, array in arrays.items()}
    if not lengths:
        raise ParameterError("There is no column to write.")
    first = next(iter(lengths))
    for name, shape in lengths.items():
        if len(shape) != 1 or shape != lengths[first]:
            raise ParameterError(
                f'Columns must be 1-D and of equal length: "{first}" has shape {lengths[first]}, "{name}" has {shape}.'
            )


def _write_delimited(
    stream: TextIO, arrays: Mapping[str, NDArray[Any]], delimiter: str, *, header: bool = True
) -> None:
    columns = [[*([_guarded(name)] if header else []), *_cells(array)] for name, array in arrays.items()]
    # Python's writer does not quote a single carriage return, and readers would end the line there.
    returns = any(isinstance(cell, str) and "\r" in cell for cells in columns for cell in cells)
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n", quoting=quoting)
    writer.writerows(zip(*columns, strict=True))


def _cells(array: NDArray[Any]) -> list[Any]:
    values: list[Any] = array.tolist()
    if array.dtype.kind in "iub":
        return values
    return [_cell(value) for value in values]


def _cell(value: Any) -> Any:
    if value is None or value != value:
        return ""
    return _guarded(value) if isinstance(value, str) else value


def _guarded(text: str) -> str:
    # A text that starts with an apostrophe gets another one, so that `unguarded` restores every text.
    is_formula = text.startswith((*FORMULA_STARTS, "'")) and not _is_number(text) and not _PHONE.fullmatch(text)
    return f"'{text}" if is_formula else text


def unguarded(cell: str) -> str:
    """Restore the text of a cell, without the apostrophe that `write_table` may have added."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith((*FORMULA_STARTS, "'")) else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _write_jsonl(stream: TextIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    names = list(arrays)
    for row in zip(*(array.tolist() for array in arrays.values()), strict=True):
        record = {name: None if value != value else value for name, value in zip(names, row, strict=True)}
        stream.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")


def _write_parquet(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    pyarrow = require_pyarrow()
    columns = {}
    for name, array in arrays.items():
        try:
            columns[name] = pyarrow.array(array.tolist())
        except pyarrow.ArrowException:  # values of several types become text, because a column has one type
            columns[name] = pyarrow.array([None if value is None else str(value) for value in array.tolist()])
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def read_json_lines(path: InputFile, encoding: str | None = None) -> tuple[list[dict[str, Any]], list[int]]:
    """The objects of a jsonl file and the line of each; blank lines are skipped."""
    objects, lines = [], []
    with open(path, encoding=encoding or encoding_of(path)) as file:
        for number, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                value = json.loads(text)
            except json.JSONDecodeError as error:
                raise FileError(f"{path.name} line {number}: not JSON ({error.msg}).") from None
            except RecursionError:
                raise FileError(f"{path.name} line {number}: its JSON is nested too deeply to be a row.") from None
            except ValueError:  # Python refuses integers of more than 4,300 digits
                raise FileError(f"{path.name} line {number}: a number has too many digits to be read.") from None
            if not isinstance(value, dict):
                raise FileError(f"{path.name} line {number}: expected one JSON object per line.")
            objects.append(value)
            lines.append(number)
    return objects, lines


def require_pyarrow() -> Any:
    """The pyarrow package with its parquet reader, or an error that names the extra."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("Parquet files need pyarrow: pip install 'clew[io]'.") from error
    return pyarrow


def delimiter_of(path: InputFile, header: str) -> str:
    """The separator of a csv or tsv file: the most frequent one in its header, outside quotes."""
    if path.suffix == ".tsv" and "\t" in header:
        return "\t"
    plain = "".join(header.split('"')[::2])
    return max(SEPARATORS, key=plain.count)


def encoding_of(path: str | os.PathLike[str]) -> str:
    """The encoding of a text file, detected by its byte order mark. UTF-8 if it has none."""
    with open(path, "rb") as file:
        start = file.read(2)
    return "utf-16" if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig"
