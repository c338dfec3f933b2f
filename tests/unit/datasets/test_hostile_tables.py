"""Files that are broken, enormous or hostile: one sentence of ours, before the memory is used."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from scipy import sparse

from clew.datasets import check_size, encode, read_table
from clew.exceptions import ClewError, DataError, FileError

LIMIT = 1 << 20


def _parquet(path, columns):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path, compression="zstd")


def test_a_small_parquet_file_with_much_text_is_refused(tmp_path):
    path = tmp_path / "texts.parquet"
    _parquet(path, {"a": ["long text " * 100] * 5_000, "b": np.arange(5_000)})
    assert path.stat().st_size < LIMIT / 10
    with pytest.raises(FileError, match=r"texts.parquet would take 5 MB of memory once it is read, and 1 MB are"):
        read_table(path, max_bytes=LIMIT)
    assert read_table(path, max_bytes=10 * LIMIT).n_rows == 5_000


@pytest.mark.parametrize(
    "column",
    [
        np.zeros(200_000),
        [None] * 200_000,
        [[0.0] * 100] * 2_000,
        [["text" * 100] * 10] * 1_000,
        [{"part": "text" * 100}] * 3_000,
    ],
    ids=["numbers", "nulls", "vectors", "lists of text", "structs"],
)
def test_every_kind_of_parquet_column_is_measured(tmp_path, column):
    path = tmp_path / "data.parquet"
    _parquet(path, {"a": column})
    assert path.stat().st_size < LIMIT / 10
    with pytest.raises(FileError, match="of memory once it is read"):
        check_size(path, LIMIT)


def test_a_parquet_file_within_the_limit_is_read(tmp_path):
    path = tmp_path / "data.parquet"
    _parquet(path, {"a": ["x", None, "y"], "b": [1.0, 2.0, 3.0], "c": [{"d": "e"}] * 3})
    assert read_table(path, max_bytes=LIMIT).n_rows == 3


def test_zipped_arrays_are_measured_unzipped(tmp_path):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, X=np.zeros((1_000, 1_000)))
    assert path.stat().st_size < LIMIT / 10
    with pytest.raises(FileError, match=r"would take 8 MB"):
        read_table(path, max_bytes=LIMIT)


def test_a_sparse_matrix_with_many_empty_rows_is_measured_by_its_shape(tmp_path):
    path = tmp_path / "sparse.npz"
    sparse.save_npz(path, sparse.coo_matrix(([1.0], ([0], [0])), shape=(10**9, 2)))
    with pytest.raises(FileError, match="of memory once it is read"):
        check_size(path, LIMIT)


def test_an_array_is_measured_by_what_its_header_claims(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 2)})
    (tmp_path / "claims.npy").write_bytes(header.getvalue())
    with zipfile.ZipFile(tmp_path / "claims.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue())
    for name in ("claims.npy", "claims.npz"):
        with pytest.raises(FileError, match="of memory once it is read"):
            check_size(tmp_path / name, LIMIT)


@pytest.mark.parametrize("name", ["cells.csv", "cells.tsv", "cells.jsonl", "cells.json"])
def test_text_files_are_measured_by_their_values(tmp_path, name):
    path = tmp_path / name
    path.write_text("[1,\n" * 20_000)
    assert path.stat().st_size < LIMIT / 10
    with pytest.raises(FileError, match=name):
        check_size(path, LIMIT)
    path.write_text("a,b\n1,2\n")
    check_size(path, LIMIT)


@pytest.mark.parametrize("name", ["broken.parquet", "broken.npz", "broken.npy"])
def test_a_broken_file_is_refused_while_it_is_measured(tmp_path, name):
    pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(b"PK\x03\x04 this is nothing")
    with pytest.raises(FileError, match=name):
        check_size(tmp_path / name, LIMIT)


HOSTILE = {
    "nested lists": '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}",
    "nested objects": '{"a": ' + '{"b": ' * 5_000 + "1" + "}" * 5_000 + "}",
    "digits that Python refuses": '{"a": ' + "9" * 5_000 + "}",
    "digits beyond floats": '{"a": ' + "9" * 4_000 + "}",
    "a vector of digits beyond floats": '{"a": [1, ' + "9" * 4_000 + "]}",
    "lists of lists": '{"a": [[1], [2]]}',
    "lists of text": '{"a": [1, "x"]}',
    "lists of mixed depth": '{"a": [1, [2]]}',
    "empty lists": '{"a": []}',
    "a list with infinity": '{"a": [1, 1e999]}',
    "a list with a gap": '{"a": [1, null]}',
    "a lone surrogate": '{"a": "\\ud800"}',
    "a lone surrogate in a name": '{"\\ud800": "b"}',
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_lines_are_refused_with_a_sentence(tmp_path, line):
    path = tmp_path / "data.jsonl"
    path.write_text(f"{line}\n{line}\n")
    with pytest.raises(ClewError, match=r"data.jsonl.*[.]$"):
        encode(path)


def test_lists_of_different_lengths_name_the_row(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(json.dumps({"a": vector}) for vector in ([1, 2], [3, 4], [5])))
    with pytest.raises(DataError, match="row 2 has 1 numbers and row 0 has 2"):
        encode(path)


def test_an_archive_of_texts_with_lone_surrogates_is_refused(tmp_path):
    np.savez(tmp_path / "data.npz", a=np.array(["\ud800", "b"]), b=np.array([1.0, 2.0]))
    with pytest.raises(DataError, match='array "a" holds a text that is not Unicode'):
        encode(tmp_path / "data.npz")
