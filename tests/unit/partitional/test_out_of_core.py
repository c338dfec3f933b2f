"""Rows that are not in memory give the clusters that the same rows give in memory."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections import namedtuple

import numpy as np
import pytest
from sklearn.base import clone

import clew
from clew import CVQE, LCVQE, ConstrainedKMeans, Constraints, COPKMeans, IGKMeans, PCKMeans, SeededKMeans
from clew.datasets import open_rows
from clew.exceptions import ContradictoryConstraintsError, DataError, DataTypeError, FileError
from clew.partitional import _geometry, _lloyd, _seeding

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")

METHODS = [SeededKMeans, ConstrainedKMeans, COPKMeans, PCKMeans, CVQE, LCVQE]


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks and samples so small that a few hundred rows fill several of them."""
    monkeypatch.setattr(_geometry, "_MOST_CHUNK_ROWS", 64)
    monkeypatch.setattr(_geometry, "_MOST_BLOCK_ROWS", 32)
    monkeypatch.setattr(_geometry, "LEAST_BLOCK_ROWS", 16)
    monkeypatch.setattr(_seeding, "_SAMPLED_ROWS", 100)
    monkeypatch.setattr(_seeding, "_SAMPLED_ROWS_PER_CENTER", 10)


def rows_and_classes(dtype, n_rows=300):
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, n_rows)
    return (rng.normal(size=(n_rows, 4)) * 2 + classes[:, None] * 3 + 50).astype(dtype), classes


def made(method, metric):
    settings = {} if method is IGKMeans else {"metric": metric}
    return method(3, **settings, n_init=2, random_state=0)


def table_of(X):
    return pa.table({f"c{column}": X[:, column] for column in range(X.shape[1])})


def sources(folder, X):
    """The same rows in every form that `fit` reads by the chunk."""
    np.save(folder / "rows.npy", X)
    np.save(folder / "columns.npy", np.asfortranarray(X))
    table = table_of(X)
    pq.write_table(table, folder / "rows.parquet", row_group_size=70)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    pq.write_table(pa.table({"vector": vectors}), folder / "vectors.parquet")
    (folder / "parts").mkdir()
    pq.write_table(table.slice(0, 101), folder / "parts" / "a.parquet")
    pq.write_table(table.slice(101), folder / "parts" / "b.parquet")
    return {
        "npy": folder / "rows.npy",
        "npy by columns": str(folder / "columns.npy"),
        "memory map": np.load(folder / "rows.npy", mmap_mode="r"),
        "parquet": folder / "rows.parquet",
        "vectors": folder / "vectors.parquet",
        "folder": str(folder / "parts"),
        "dataset": ds.dataset(folder / "parts"),
        "reader": pa.RecordBatchReader.from_batches(table.schema, table.to_batches(77)),
        "generator": (X[start : start + 37] for start in range(0, len(X), 37)),
        "tables": [table.slice(0, 99), table.slice(99)],
    }


@pytest.mark.sampled(2, slow=1)
@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_source_gives_the_labels_of_the_rows_in_memory(tmp_path, dtype, metric):
    X, classes = rows_and_classes(dtype)
    pairs = Constraints.sample(classes, 40, balance=0.5, random_state=0)
    some = np.where(np.arange(len(X)) < 12, classes, -1)
    both = pairs | Constraints(labels=some)
    methods = METHODS if metric == "euclidean" else [*METHODS, IGKMeans]
    for method, known in zip(methods, [some, pairs, pairs, both, pairs, pairs, pairs], strict=False):
        expected = made(method, metric).fit(X, constraints=known)
        for name, source in sources(tmp_path, X).items():
            model = made(method, metric).fit(source, constraints=known)
            assert (model.labels_ == expected.labels_).all(), (method, name)
            assert (model.cluster_centers_ == expected.cluster_centers_).all(), (method, name)
            assert model.objective_ == expected.objective_, (method, name)
            assert (model.violated_cannot_link_ == expected.violated_cannot_link_).all()
            assert (model.cluster_sizes_ == expected.cluster_sizes_).all()
            assert model.cluster_centers_.dtype == dtype
        shutil.rmtree(tmp_path / "parts")
    assert (model.predict([table_of(X)]) == expected.predict(X)).all()


def test_weights_names_of_classes_and_columns_are_kept(tmp_path):
    X, classes = rows_and_classes("float64")
    weights = np.random.default_rng(1).uniform(0, 2, len(X))
    named = np.where(np.arange(len(X)) < 12, np.array(["x", "y", "z"])[classes], "")
    source = sources(tmp_path, X)["parquet"]
    expected = PCKMeans(4, random_state=0).fit(X, constraints=named, sample_weight=weights)
    model = PCKMeans(4, random_state=0).fit(source, constraints=named, sample_weight=weights)
    assert (model.labels_ == expected.labels_).all()
    assert model.classes_.tolist() == expected.classes_.tolist()
    assert model.feature_names_in_.tolist() == ["c0", "c1", "c2", "c3"]
    model.save(tmp_path / "model.zip")
    assert (clew.load(tmp_path / "model.zip").labels_ == model.labels_).all()


def test_errors_name_the_rows_of_the_user(tmp_path):
    X, _ = rows_and_classes("float64")
    source = sources(tmp_path, X)["npy"]
    with pytest.raises(ContradictoryConstraintsError, match=r"250.*270|270.*250"):
        COPKMeans(3).fit(source, constraints={"must_link": [(250, 270)], "cannot_link": [(270, 250)]})
    with pytest.raises(clew.exceptions.ConstraintError, match="row 300, but X has 300 rows"):
        COPKMeans(3).fit(source, constraints={"must_link": [(250, 300)]})


def test_a_generator_that_was_read_before_is_named():
    batches = iter([np.array([[0.0], [1.0], [5.0]])])
    SeededKMeans(2, random_state=0).fit(batches)
    with pytest.raises(DataError, match=r"no rows\. A generator can be read only once"):
        SeededKMeans(2, random_state=0).fit(batches)


@pytest.mark.parametrize("form", ["npy", "parquet", "generator"])
def test_a_missing_value_in_the_last_block_is_named_and_the_estimator_stays_as_it_was(tmp_path, form):
    X, _ = rows_and_classes("float32")
    model = SeededKMeans(3, random_state=0).fit(X)
    before = model.labels_
    X[299, 2] = np.nan
    with pytest.raises(DataError, match="NaN at row 299, column 2"):
        model.fit(sources(tmp_path, X)[form])
    assert model.labels_ is before


@pytest.mark.parametrize("form", ["folder", "dataset"])
def test_a_missing_value_in_one_of_several_files_is_named_by_file(tmp_path, form):
    X, _ = rows_and_classes("float32")
    X[299, 2] = np.nan
    with pytest.raises(DataError, match=r"NaN at row 198 of .*b.parquet \(row 299 of all files\), column 2 \('c2'\)"):
        SeededKMeans(3, random_state=0).fit(sources(tmp_path, X)[form])


def test_a_column_that_changes_its_type_between_files_is_refused(tmp_path):
    X, _ = rows_and_classes("float32")
    pq.write_table(table_of(X), tmp_path / "a.parquet")
    changed = table_of(X).set_column(1, "c1", pa.array([str(value) for value in X[:, 1]]))
    pq.write_table(changed, tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"Column 'c1' has type string in .*b.parquet, but float in .*a.parquet"):
        SeededKMeans(3).fit(tmp_path)
    pq.write_table(table_of(X).drop_columns(["c3"]), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b.parquet has no column 'c3'"):
        SeededKMeans(3).fit(tmp_path)
    with pytest.raises(DataError, match="The batch at row 300 has 3 columns, but the first one has 4 columns"):
        SeededKMeans(3).fit(iter([X, X[:, :3]]))
    pq.write_table(changed, tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"Column 'c1' of .*b.parquet has type string"):
        SeededKMeans(3).fit(tmp_path / "b.parquet")


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 2)])
def test_a_missing_vector_and_vectors_of_different_lengths_are_named(tmp_path, kind):
    """The numbers of a missing vector and of one that is longer must not be counted together."""
    vectors = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]
    table = pa.table({"v": pa.array(vectors, type=kind)})
    pq.write_table(table, tmp_path / "a.parquet")
    sources = [str(tmp_path), iter([pa.concat_tables([table, table])])]
    pq.write_table(table, tmp_path / "b.parquet")
    for source in sources:
        assert len(SeededKMeans(2, random_state=0).fit(source).labels_) == 8
    missing = pa.table({"v": pa.array([*vectors[:2], None, *vectors[3:]], type=kind)})
    pq.write_table(missing, tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"'v' of .*b.parquet has no vector in row 2. Fill it in"):
        SeededKMeans(2).fit(tmp_path)
    with pytest.raises(DataError, match="'v' of a batch has no vector in row 2"):
        SeededKMeans(2).fit(iter([missing]))
    if not pa.types.is_fixed_size_list(kind):
        uneven = pa.table({"v": pa.array([*vectors[:2], [5.0], [6.0, 7.0, 8.0]], type=kind)})
        pq.write_table(uneven, tmp_path / "b.parquet")
        with pytest.raises(DataError, match=r"'v' of .*b.parquet has 2 numbers in row 0 and 1 in row 2"):
            SeededKMeans(2).fit(tmp_path)
    longer = pa.table({"v": pa.array([[1.0, 2.0, 3.0]])}).cast(
        pa.schema({"v": kind if not pa.types.is_fixed_size_list(kind) else pa.list_(pa.float32(), 3)})
    )
    pq.write_table(longer, tmp_path / "b.parquet")
    message = (
        r"Column 'v' has type" if pa.types.is_fixed_size_list(kind) else r"The batch at row 0 of .*b.parquet \(row 4 of"
    )
    with pytest.raises(DataError, match=message):
        SeededKMeans(2).fit(tmp_path)


def test_balanced_clusters_of_files_are_those_of_the_rows_in_memory(tmp_path, small_chunks):
    X, classes = rows_and_classes("float32")
    known = Constraints.sample(classes, 30, balance=0.5, random_state=0)
    model = clew.SampledBalancedKMeans(3, tolerance=0, sample_size=60, n_init=1, random_state=0)
    expected = model.fit(X, constraints=known).labels_
    for name in ("npy", "parquet"):
        shutil.rmtree(tmp_path / "parts", ignore_errors=True)
        found = clone(model).fit(sources(tmp_path, X)[name], constraints=known)
        assert (found.labels_ == expected).all()
        assert found.cluster_sizes_.tolist() == [100, 100, 100]


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path, monkeypatch):
    X, _ = rows_and_classes("float32")
    path = sources(tmp_path, X)["parquet"]
    from clew.datasets import _stored

    check = _stored.check_block

    def appending(*args):
        with open(path, "ab") as file:
            file.write(b"more")
        check(*args)

    monkeypatch.setattr(_stored, "check_block", appending)
    with pytest.raises(FileError, match=r"rows.parquet grew while it was read"):
        SeededKMeans(3).fit(path)


def test_a_npy_file_that_grows_between_rounds_is_refused(tmp_path, monkeypatch):
    X, _ = rows_and_classes("float32")
    path = sources(tmp_path, X)["npy"]
    log = _lloyd._log

    def appending(*args):
        with open(path, "ab") as file:
            file.write(b"more")
        log(*args)

    monkeypatch.setattr(_lloyd, "_log", appending)
    model = SeededKMeans(3)
    with pytest.raises(FileError, match=r"rows.npy grew while it was read"):
        model.fit(path)
    assert not hasattr(model, "labels_")


class FullFile(io.BytesIO):
    """A file on a disk with a quota."""

    def write(self, data):
        raise OSError(errno.EFBIG, "File too large")


def test_a_disk_without_room_is_named_and_nothing_is_left_behind(tmp_path, monkeypatch):
    X, _ = rows_and_classes("float32")
    path = sources(tmp_path, X)["parquet"]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(1, 1, 0))
    with pytest.raises(FileError, match=r"No room in .*scratch for a temporary copy of 0.00 GB of .*rows.parquet"):
        SeededKMeans(3).fit(path)
    monkeypatch.undo()
    if os.path.exists("/dev/full"):
        monkeypatch.setattr("tempfile.tempdir", str(scratch))
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb", 0))
        with pytest.raises(FileError, match="No room in"):
            SeededKMeans(3).fit(path)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: FullFile())
    with pytest.raises(FileError, match="No room in"):
        SeededKMeans(3).fit(path)
    assert list(scratch.iterdir()) == []


def test_methods_that_need_all_rows_say_which_do_not(tmp_path):
    X, _ = rows_and_classes("float32")
    path = sources(tmp_path, X)["npy"]
    expected = "needs all rows in memory.*or use .*COPKMeans, .*SeededKMeans"
    for model in (clew.MPCKMeans(3), clew.BalancedKMeans(3), PCKMeans(3, size_max=200), COPKMeans(3, epsilon=2.0)):
        with pytest.raises(DataTypeError, match=expected):
            model.fit(path)
    with pytest.raises(FileError, match=r"rows.csv does not exist"):
        SeededKMeans(3).fit(tmp_path / "rows.csv")
    (tmp_path / "rows.csv").write_text("1,2\n")
    with pytest.raises(FileError, match=r"rows.csv is not a .npy or .parquet file"):
        SeededKMeans(3).fit(tmp_path / "rows.csv")


def test_rows_are_read_by_number_one_by_one_or_by_the_chunk(tmp_path):
    X = np.arange(12_000.0).reshape(6000, 2)
    rows = open_rows([X])
    for chosen in ([5999, 0, 17], np.random.default_rng(0).integers(0, 6000, 500)):
        assert (rows[np.array(chosen)] == X[chosen]).all()
    rows.close()


def test_answers_about_ids_with_the_other_columns_by_the_batch(tmp_path):
    """The recipe of docs/scale.md for files with a column of ids."""
    X, classes = rows_and_classes("float64")
    names = [f"r{row}" for row in range(len(X))]
    (tmp_path / "folder").mkdir()
    for part in range(3):
        some = slice(part * len(X) // 3, (part + 1) * len(X) // 3)
        columns = {"name": names[some], "size": X[some, 0], "age": X[some, 1]}
        pq.write_table(pa.table(columns), tmp_path / "folder" / f"{part}.parquet")
    pairs = [(0, len(X) - 1), (5, len(X) // 2)]
    answers = ["same" if classes[one] == classes[two] else "different" for one, two in pairs]
    lines = [f"r{one},r{two},{answer}" for (one, two), answer in zip(pairs, answers, strict=True)]
    (tmp_path / "answers.csv").write_text("\n".join(["id_1,id_2,answer", *lines]))
    data = ds.dataset(tmp_path / "folder")
    ids = data.to_table(columns=["name"]).column("name").to_numpy()
    assert ids.tolist() == names
    known = Constraints.from_file(tmp_path / "answers.csv", ids=ids)
    batches = data.scanner(columns=["size", "age"]).to_batches()
    found = PCKMeans(3, random_state=0).fit(batches, constraints=known)
    assert (found.labels_ == PCKMeans(3, random_state=0).fit(X[:, :2], constraints=known).labels_).all()


def test_a_npy_file_that_is_not_complete_is_refused(tmp_path):
    np.save(tmp_path / "rows.npy", np.ones((100, 4)))
    whole = (tmp_path / "rows.npy").read_bytes()
    for n_bytes in (len(whole) // 2, 5, 0):
        (tmp_path / "part.npy").write_bytes(whole[:n_bytes])
        with pytest.raises(FileError, match=r"Cannot read .*part\.npy: it is damaged, or does not hold arrays"):
            PCKMeans(2).fit(tmp_path / "part.npy")
