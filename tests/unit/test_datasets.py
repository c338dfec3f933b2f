"""Tables in and out, and the bundled sets."""

import builtins
import json
import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
from numpy.testing import assert_array_equal
from pyarrow import parquet
from scipy import sparse

from clew import _tables, datasets
from clew._tables import remove_abandoned
from clew.datasets import _read, check_writable, read_table, replacing, write_table
from clew.exceptions import DataError, FileError, MissingExtraError, ParameterError


def table_of(tmp_path, content, name="data.csv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, **options)


def hide_module(monkeypatch, hidden):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == hidden:
            raise ImportError(f"No module named '{hidden}'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)


def test_csv_columns_keep_order_and_kind(tmp_path):
    table = table_of(tmp_path, "id,size,colour\n007,1.5,red\n008,-2e3,blue\n", text=["id"])
    assert table.columns == ["id", "size", "colour"]
    assert table.n_rows == 2
    assert table.ids("id").tolist() == ["007", "008"]
    assert table.column("size").tolist() == [1.5, -2000.0]
    assert table.column("colour").tolist() == ["red", "blue"]


def test_matrix_takes_all_columns_but_the_id(tmp_path):
    table = table_of(tmp_path, "id,a,b\n1,2,3\n4,5,6\n")
    assert_array_equal(table.matrix(id_column="id"), [[2.0, 3.0], [5.0, 6.0]])
    assert_array_equal(table.matrix(["b", "a"]), [[3.0, 2.0], [6.0, 5.0]])


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffa,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4\r\n",
        "a,b\n1,2\n\n3,4",
        " a , b \n 1 , 2 \n 3, 4\n",
        '"a","b"\n"1","2"\n"3","4"\n',
        "a;b\n1;2\n3;4\n",
    ],
    ids=["byte order mark", "windows lines", "blank line", "spaces", "quotes", "semicolons"],
)
def test_usual_variants_of_csv_are_the_same_table(tmp_path, content):
    table = table_of(tmp_path, content)
    assert table.columns == ["a", "b"]
    assert_array_equal(table.matrix(), [[1.0, 2.0], [3.0, 4.0]])


def test_tsv(tmp_path):
    assert_array_equal(table_of(tmp_path, "a\tb\n1\t2\n", "data.tsv").matrix(), [[1.0, 2.0]])


@pytest.mark.parametrize("header", ["0,1,2", "2019,2020,2021"])
def test_rising_whole_numbers_are_column_names(tmp_path, header):
    assert table_of(tmp_path, header + "\n1,2,3\n").columns == header.split(",")


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"", "data.csv is empty"),
        (b"\n\n", "data.csv is empty"),
        (b"a,b\n", "data.csv has a header but no rows"),
        (b"a,b\n1,2\n3\n", "line 3: 1 cells, but the header names 2 columns"),
        (b'a,b\n"x\ny",2\n3,4,5\n', "line 4: 3 cells, but the header names 2 columns"),
        (b"a,b,a\n1,2,3\n", 'names "a" twice'),
        (b",b\n1,2\n", "column 1 of 2 has no name"),
        (b"5.1,3.5\n4.9,3.0\n", r"first line holds numbers \(5.1, ...\)"),
        (b"5,3\n4,3\n", r"first line holds numbers \(5, ...\)"),
        (b"a,b\n1,\xe9\n", "not UTF-8 .byte 0xe9."),
        (b'a,b\n1,"2\n', "line 2: unexpected end of data"),
    ],
)
def test_broken_csv_is_named_with_its_place(tmp_path, content, sentence):
    with pytest.raises(FileError, match=sentence):
        table_of(tmp_path, content)


def test_text_column_is_named_with_a_value_and_the_remedy(tmp_path):
    table = table_of(tmp_path, "id,a,colour\nx,1,\ny,2,red\n", text=["id"])
    with pytest.raises(DataError, match=r'"colour" of .*data.csv holds text \("red" in row 1, id "y"\).*--columns'):
        table.matrix(id_column="id")
    assert_array_equal(table.matrix(["a"]), [[1.0], [2.0]])


def test_underscored_number_is_text(tmp_path):
    with pytest.raises(DataError, match='"1_000" in row 0'):
        table_of(tmp_path, "a\n1_000\n").matrix()


@pytest.mark.parametrize("word", ["", "NA", "n/a", "NaN", "null", "None", "?"])
def test_missing_value_is_named_by_column_and_row(tmp_path, word):
    table = table_of(tmp_path, f"id,a,b\nx,1,2\ny,3,{word}\nz,4,{word}\n", text=["id"])
    with pytest.raises(DataError, match=r'"b" of .*data.csv has no value in row 1, id "y" and 1 more'):
        table.matrix(id_column="id")


def test_infinite_value_is_named(tmp_path):
    with pytest.raises(DataError, match=r'"a" .* an infinite value in row 1'):
        table_of(tmp_path, "a\n1\ninf\n").matrix()


def test_column_that_turns_to_text_late_is_text_from_its_start(tmp_path, monkeypatch):
    monkeypatch.setattr(_read, "BLOCK", 2)
    table = table_of(tmp_path, "a,b\n01,1\n02,2\nx,3\n03,4\ny,5\n")
    assert table.column("a").tolist() == ["01", "02", "x", "03", "y"]
    assert table.column("b").tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    "content, sentence",
    [("id\na\nb\na\n", r'names two rows "a" \(rows 0 and 2\)'), ("id,x\na,1\n,2\n", "no id in row 1")],
)
def test_ids_are_whole_and_distinct(tmp_path, content, sentence):
    with pytest.raises(DataError, match=sentence):
        table_of(tmp_path, content, text=["id"]).ids("id")


def test_unknown_column_suggests_the_nearest(tmp_path):
    table = table_of(tmp_path, "length,width\n1,2\n")
    with pytest.raises(ParameterError, match=r'no column "lenght". Did you mean "length".* It has length, width'):
        table.matrix(["lenght"])
    with pytest.raises(ParameterError, match='"width" is named twice'):
        table.matrix(["width", "length", "width"])
    with pytest.raises(DataError, match="no column is left"):
        table.matrix([])


@pytest.mark.parametrize("name", ["data.xlsx", "data"])
def test_unknown_format(tmp_path, name):
    with pytest.raises(FileError, match=r"tables are read from .csv, .tsv, .jsonl, .parquet, .npy or .npz"):
        table_of(tmp_path, "a\n1\n", name)


@pytest.mark.parametrize("name", ["a.csv", "a.npy", "a.npz", "a.parquet"])
def test_file_that_is_not_there(tmp_path, name):
    with pytest.raises(FileError, match=f"Cannot read .*{name}: No such file"):
        read_table(tmp_path / name)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.parquet"])
def test_file_of_another_kind(tmp_path, name):
    with pytest.raises(FileError, match=f"Cannot read .*{name}"):
        table_of(tmp_path, b"not what the name says", name)


def test_directory_is_not_a_table(tmp_path):
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(FileError, match="it is a directory"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.bool_])
def test_npy(tmp_path, dtype):
    rows = np.array([[0, 1], [1, 1]], dtype=dtype)
    np.save(tmp_path / "a.npy", rows)
    X = read_table(tmp_path / "a.npy").matrix()
    assert X.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert_array_equal(X, rows)


@pytest.mark.parametrize(
    "array, sentence",
    [
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.zeros((0, 2)), "no rows"),
        (np.zeros(2, dtype=complex), "type complex128"),
        (np.array([{}], dtype=object), "Object arrays"),
    ],
)
def test_npy_that_is_no_table(tmp_path, array, sentence):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(FileError, match=sentence):
        read_table(tmp_path / "a.npy")


def test_npz_clusters_by_its_matrix_and_keeps_the_rest_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3), id=np.array(["a", "b", "c"]), y=[0, 0, 1])
    table = read_table(tmp_path / "a.npz")
    assert_array_equal(table.matrix(), np.eye(3))
    assert table.ids("id").tolist() == ["a", "b", "c"]
    assert_array_equal(table.column("y"), [0, 0, 1])


def test_npz_sparse(tmp_path):
    rows = sparse.random(20, 30, density=0.1, format="csr", random_state=0, dtype=np.float32)
    sparse.save_npz(tmp_path / "a.npz", rows)
    X = read_table(tmp_path / "a.npz").matrix()
    assert X.format == "csr"
    assert X.dtype == np.float32
    assert_array_equal(X.toarray(), rows.toarray())


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_npz_sparse_with_places_outside_the_matrix(tmp_path, form):
    rows = sparse.random(6, 4, density=0.5, format=form, random_state=0)
    getattr(rows, "indices" if form != "coo" else "col")[0] = 10_000_000
    sparse.save_npz(tmp_path / "a.npz", rows)
    with pytest.raises(FileError, match=r"Cannot read .*a\.npz: it is damaged, or does not hold arrays"):
        read_table(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "sparse.npz"])
def test_damaged_arrays_are_read_as_before_or_refused_by_name(tmp_path, name):
    path = tmp_path / name
    if name == "a.npy":
        np.save(path, np.arange(12.0).reshape(4, 3))
    elif name == "a.npz":
        np.savez_compressed(path, X=np.arange(12.0).reshape(4, 3), id=np.array(["a", "b", "c", "d"]))
    else:
        sparse.save_npz(path, sparse.eye(4, format="csr"))
    data = path.read_bytes()
    n_refused = 0
    for place in range(0, len(data), 7):
        for content in (data[:place], data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]):
            path.write_bytes(content)
            try:
                read_table(path)
            except FileError as error:
                assert name in str(error)  # noqa: PT017 either outcome is right
                n_refused += 1
    assert n_refused > len(data) // 7


def test_npz_sparse_with_a_gap(tmp_path):
    rows = sparse.csr_matrix(np.array([[0.0, 1.0], [np.nan, 0.0]]))
    sparse.save_npz(tmp_path / "a.npz", rows)
    with pytest.raises(DataError, match="no value in row 1"):
        read_table(tmp_path / "a.npz").matrix()


@pytest.mark.parametrize(
    "arrays, sentence",
    [
        ({"X": np.eye(3), "y": np.zeros(2)}, r'different lengths: "X" \(3, 3\), "y" \(2,\)'),
        ({"A": np.eye(3), "B": np.eye(3)}, "several matrices: A, B"),
        ({"n": np.array(3)}, "no 1-D or 2-D array"),
    ],
)
def test_npz_that_is_no_table(tmp_path, arrays, sentence):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FileError, match=sentence):
        read_table(tmp_path / "a.npz")


def test_jsonl_kinds(tmp_path):
    lines = [
        {"id": 7, "flag": True, "size": 1.5, "tags": {"a": 1}, "vector": [1, 2]},
        {"id": 9, "flag": False, "size": None, "name": "é", "vector": [3, 4.5]},
    ]
    table = table_of(tmp_path, "\n\n".join(map(json.dumps, lines)), "a.jsonl")
    assert table.ids("id").tolist() == [7, 9]
    assert table.column("flag").dtype == bool
    assert_array_equal(table.column("size"), [1.5, np.nan])
    assert table.column("tags").tolist() == ['{"a": 1}', ""]
    assert table.column("name").tolist() == ["", "é"]
    assert_array_equal(table.matrix(["vector"]), [[1.0, 2.0], [3.0, 4.5]])


@pytest.mark.parametrize(
    "content, sentence",
    [
        ("", "has no rows"),
        ("{}\n{}", "has no rows"),
        ('{"a": 1}\n{"a": ', "line 2: not JSON"),
        ("[1]", "line 1: expected"),
    ],
)
def test_jsonl_that_is_no_table(tmp_path, content, sentence):
    with pytest.raises(FileError, match=sentence):
        table_of(tmp_path, content, "a.jsonl")


def test_parquet_kinds(tmp_path):
    big = 2**60 + 1
    frame = pl.DataFrame(
        {
            "id": [big, big + 1],
            "size": [1.5, None],
            "flag": [True, None],
            "kind": pl.Series(["a", None], dtype=pl.Categorical),
            "vector": [[1.0, 2.0], [3.0, 4.0]],
            "empty": [None, None],
        }
    )
    frame.write_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.ids("id").tolist() == [big, big + 1]
    assert_array_equal(table.column("size"), [1.5, np.nan])
    assert_array_equal(table.column("flag"), [1.0, np.nan])
    assert table.column("kind").tolist() == ["a", ""]
    assert_array_equal(table.column("empty"), [np.nan, np.nan])
    assert_array_equal(table.matrix(["vector"]), [[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(DataError, match="holds vectors"):
        table.ids("vector")


def test_parquet_dates_are_text_and_decimals_numbers(tmp_path):
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-02"]), "price": [1.25]})
    stored = pyarrow.Table.from_pandas(frame)
    stored = stored.set_column(1, "price", stored["price"].cast(pyarrow.decimal128(5, 2)))
    parquet.write_table(stored, tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.column("day").tolist() == ["2020-01-02 00:00:00"]
    assert_array_equal(table.matrix(["price"]), [[1.25]])


def test_parquet_unnamed_pandas_index_is_for_ids_only(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0]}, index=["x", "y"]).to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert_array_equal(table.matrix(), [[1.0], [2.0]])
    assert table.ids("__index_level_0__").tolist() == ["x", "y"]


@pytest.mark.parametrize(
    "column, sentence",
    [
        ([[1.0, 2.0], [3.0]], "row 1 has 1 numbers and row 0 has 2"),
        ([[1.0], None], "row 1 has 0 numbers"),
        ([[], []], "row 0 has 0 numbers"),
        ([["a"], ["b"]], "lists of text"),
    ],
)
def test_parquet_ragged_or_text_vectors(tmp_path, column, sentence):
    parquet.write_table(pyarrow.table({"v": column}), tmp_path / "a.parquet")
    with pytest.raises(FileError, match=sentence):
        read_table(tmp_path / "a.parquet")


def test_parquet_without_rows(tmp_path):
    parquet.write_table(pyarrow.table({"v": pyarrow.array([], pyarrow.float64())}), tmp_path / "a.parquet")
    with pytest.raises(FileError, match="no rows"):
        read_table(tmp_path / "a.parquet")


def test_parquet_sliced_list_column(tmp_path):
    stored = pyarrow.table({"v": [[float(i), float(-i)] for i in range(10)]}).slice(4, 3)
    parquet.write_table(stored, tmp_path / "a.parquet")
    assert_array_equal(read_table(tmp_path / "a.parquet").matrix(), [[4, -4], [5, -5], [6, -6]])


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    parquet.write_table(pyarrow.table({"v": [1.0]}), tmp_path / "a.parquet")
    hide_module(monkeypatch, "pyarrow")
    with pytest.raises(MissingExtraError, match=r"pip install 'clew\[io\]'"):
        read_table(tmp_path / "a.parquet")
    with pytest.raises(MissingExtraError, match=r"pip install 'clew\[io\]'"):
        write_table(tmp_path / "b.parquet", {"v": [1.0]})
    assert os.listdir(tmp_path) == ["a.parquet"]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_what_is_written_is_read_back(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    columns = {"id": ["a,b", 'say "x"'], "cluster": [0, 1], "distance": [0.1, 1 / 3]}
    write_table(path, columns)
    table = read_table(path)
    assert {name: table.column(name).tolist() for name in table.columns} == columns


def test_jsonl_holds_an_object_per_row(tmp_path):
    write_table(tmp_path / "a.jsonl", {"id": ["é", "=b"], "x": np.array([1.5, np.nan])})
    lines = (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"id": "é", "x": 1.5}, {"id": "=b", "x": None}]


def test_missing_number_is_an_empty_cell(tmp_path):
    write_table(tmp_path / "a.csv", {"a": [1.0, np.nan], "b": [1, 2]})
    assert (tmp_path / "a.csv").read_text() == "a,b\n1.0,1\n,2\n"


@pytest.mark.parametrize(
    "cell", ["=1+1", "+cmd", "+1 A1", "+1+1", "-x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＋a", "－a", "＠a"]
)
def test_text_that_a_spreadsheet_would_run_is_guarded(tmp_path, cell):
    write_table(tmp_path / "a.csv", {"id": [cell], "x": [-1.5]})
    table = read_table(tmp_path / "a.csv")
    assert table.column("id").tolist() == [f"'{cell}"]
    assert table.column("x").tolist() == [-1.5]


@pytest.mark.parametrize("cell", ["-5", "+1.5", "a=b", "x-y", "a@b", "+49 30 12345", "+49 (0)30/123-45"])
def test_harmless_text_is_left_alone(tmp_path, cell):
    write_table(tmp_path / "a.csv", {"id": [cell]})
    assert read_table(tmp_path / "a.csv", text=["id"]).column("id").tolist() == [cell]


def test_formula_in_a_column_name_is_guarded(tmp_path):
    write_table(tmp_path / "a.csv", {"=id": ["x"]})
    assert (tmp_path / "a.csv").read_text() == "'=id\nx\n"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError(28, "No space left on device"), RuntimeError])
def test_interrupted_writing_leaves_what_was_there(tmp_path, monkeypatch, interruption):
    path = tmp_path / "a.csv"
    path.write_text("before\n")

    def broken(stream, arrays, delimiter):
        stream.write("half a")
        raise interruption

    monkeypatch.setattr("clew._tables._write_delimited", broken)
    expected = FileError if isinstance(interruption, OSError) else interruption
    with pytest.raises(expected):
        write_table(path, {"a": [1]})
    assert path.read_text() == "before\n"
    assert os.listdir(tmp_path) == ["a.csv"]


def test_full_disk_says_so(tmp_path):
    with (
        pytest.raises(FileError, match=r"Cannot write .*a.png: No space left on device"),
        replacing(tmp_path / "a.png"),
    ):
        raise OSError(28, "No space left on device")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which processes can be seen")
def test_a_temporary_file_of_a_killed_program_is_removed_and_others_are_kept(tmp_path):
    writes = """
import os, signal, sys
from clew.datasets import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", writes, str(tmp_path / "a.csv")], check=False)
    assert killed.returncode == -signal.SIGKILL
    (abandoned,) = tmp_path.iterdir()
    with replacing(tmp_path / "b.csv") as temporary:
        temporary.write_text("more")
        remove_abandoned(tmp_path / "a.csv")
        assert not abandoned.exists()
        assert temporary.read_text() == "more"
    assert os.listdir(tmp_path) == ["b.csv"]


def test_temporary_files_of_programs_that_cannot_be_seen_are_kept(tmp_path, monkeypatch):
    """Another computer with the same host name may write to a shared disk."""
    ended = 2**22 + 1  # above the largest number of a process
    (tmp_path / f".clew-elsewhere-{ended}-0.part").touch()
    (tmp_path / f".clew-here-{ended}-0.part").touch()
    (tmp_path / f".clew-here-{os.getpid()}-0.part").touch()
    monkeypatch.setattr(_tables, "_visible_processes", lambda: None)
    remove_abandoned(tmp_path / "a.csv")
    assert len(os.listdir(tmp_path)) == 3
    monkeypatch.setattr(_tables, "_visible_processes", lambda: "here")
    remove_abandoned(tmp_path / "a.csv")
    kept = [f".clew-elsewhere-{ended}-0.part", f".clew-here-{os.getpid()}-0.part"]
    assert sorted(os.listdir(tmp_path)) == sorted(kept)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX file modes")
def test_replacing_keeps_mode_and_link(tmp_path):
    target = tmp_path / "real.csv"
    target.write_text("before\n")
    target.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(target)
    write_table(link, {"a": [1]})
    assert link.is_symlink()
    assert target.read_text() == "a\n1\n"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


@pytest.mark.skipif(sys.platform == "win32", reason="needs /dev/null")
def test_device_is_written_not_replaced():
    write_table("/dev/null", {"a": [1]})
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("nowhere/a.csv", "the directory .*nowhere does not exist"),
        ("folder.csv", "it is a directory"),
        ("file/a.csv", "file is not a directory"),
        ("a.xlsx", "tables are written as .csv, .tsv, .jsonl or .parquet"),
    ],
)
def test_unwritable_path_says_why(tmp_path, name, sentence):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").write_text("")
    for attempt in (check_writable, lambda path: write_table(path, {"a": [1]})):
        with pytest.raises(FileError, match=sentence):
            attempt(tmp_path / name)


def test_read_only_places_are_refused_before_the_work(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("before\n")
    monkeypatch.setattr(os, "access", lambda place, mode: str(place) != str(path))
    with pytest.raises(FileError, match="the file is read-only"):
        check_writable(path)
    monkeypatch.setattr(os, "access", lambda place, mode: str(place) != str(tmp_path))
    with pytest.raises(FileError, match=r"the directory .* is read-only"):
        check_writable(tmp_path / "b.csv")


@pytest.mark.parametrize("columns", [{}, {"a": [1], "b": [1, 2]}, {"a": [[1], [2]]}])
def test_columns_must_match(tmp_path, columns):
    with pytest.raises(ParameterError):
        write_table(tmp_path / "a.csv", columns)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", datasets.names())
def test_bundled_sets_are_whole(name):
    data = datasets.load(name)
    assert data.name == name
    assert data.X.dtype == np.float64
    assert np.isfinite(data.X).all()
    assert data.X.shape == (data.y.size, len(data.feature_names))
    assert_array_equal(np.unique(data.y), np.arange(len(data.class_names)))
    assert getattr(datasets, f"load_{name}")().name == name


def test_unknown_bundled_set_lists_the_known():
    with pytest.raises(ParameterError, match=r'no bundled data set "mnist".*digits, iris, wine'):
        datasets.load("mnist")
