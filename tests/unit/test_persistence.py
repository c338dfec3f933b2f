"""State as a zip of arrays and JSON: it is read back equal, and nothing is executed."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from scipy import sparse

import clew
from clew import _persistence as persistence
from clew.exceptions import FileError

VALUES = {
    "none": None,
    "boolean": True,
    "integer": 2**60,
    "float": 0.1,
    "infinity": float("inf"),
    "text": "k-means++ ü",
    "float64-array": np.array([[0.1, np.nan], [np.inf, -0.0]]),
    "float32-array": np.array([0.1], dtype=np.float32),
    "integer-array": np.arange(3, dtype=np.int32),
    "empty-array": np.empty((0, 2), dtype=np.int64),
    "boolean-array": np.array([True, False]),
    "text-array": np.array(["a", "bc"]),
    "column-major": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


def same(first, second):
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    return type(first) is type(second) and first == second


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_what_goes_in_comes_out(tmp_path, value):
    persistence.write_state(tmp_path / "state.clew", "Name", {"given": value}, {"learned_": value})
    name, params, learned = persistence.read_state(tmp_path / "state.clew")
    assert name == "Name"
    assert same(params["given"], value)
    assert same(learned["learned_"], value)


def test_sparse_matrices_names_and_lists(tmp_path):
    matrix = sparse.csr_array([[0.0, 0.5], [0.25, 0.0]], dtype=np.float32)
    names = np.array(["x", "long name"], dtype=object)
    persistence.write_state(
        tmp_path / "state.clew", "Name", {"init": [[1, 2], [3, 4]]}, {"matrix_": matrix, "feature_names_in_": names}
    )
    _, params, learned = persistence.read_state(tmp_path / "state.clew")
    assert params["init"].tolist() == [[1, 2], [3, 4]]
    assert learned["matrix_"].dtype == np.float32
    assert np.array_equal(learned["matrix_"].toarray(), matrix.toarray())
    assert learned["feature_names_in_"].dtype == object
    assert learned["feature_names_in_"].tolist() == ["x", "long name"]


def test_numpy_scalars_become_plain_values(tmp_path):
    persistence.write_state(tmp_path / "state.clew", "Name", {"tol": np.float64(0.5), "k": np.int64(3)}, {})
    _, params, _ = persistence.read_state(tmp_path / "state.clew")
    assert (params["tol"], type(params["tol"])) == (0.5, float)
    assert (params["k"], type(params["k"])) == (3, int)


@pytest.mark.parametrize("generator", [np.random.default_rng(0), np.random.RandomState(0)])
def test_generators_stay_in_their_process(tmp_path, generator):
    persistence.write_state(tmp_path / "state.clew", "Name", {"random_state": generator}, {})
    assert persistence.read_state(tmp_path / "state.clew")[1] == {"random_state": None}


def test_what_would_need_pickle_is_refused_and_nothing_is_left(tmp_path):
    with pytest.raises(FileError, match=r"^params\.init holds function, which cannot be saved without pickle"):
        persistence.write_state(tmp_path / "state.clew", "Name", {"init": lambda: None}, {})
    assert os.listdir(tmp_path) == []


def test_the_document_says_what_wrote_it(tmp_path):
    persistence.write_state(tmp_path / "state.clew", "Name", {"k": 3}, {})
    with zipfile.ZipFile(tmp_path / "state.clew") as archive:
        document = json.loads(archive.read("estimator.json"))
    assert document["clew"] == clew.__version__
    assert (document["format"], document["estimator"], document["params"]) == (1, "Name", {"k": 3})


def test_unwritable_places_leave_nothing_behind(tmp_path):
    with pytest.raises(FileError, match=r"^Cannot write .*nowhere/state\.clew: the directory .*nowhere does not exist"):
        persistence.write_state(tmp_path / "nowhere" / "state.clew", "Name", {}, {})
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match=r"^Cannot write .*folder: it is a directory"):
        persistence.write_state(tmp_path / "folder", "Name", {}, {})
    assert os.listdir(tmp_path) == ["folder"]


def test_a_failed_write_keeps_the_old_file(tmp_path):
    persistence.write_state(tmp_path / "state.clew", "Old", {}, {})
    with pytest.raises(FileError, match="without pickle"):
        persistence.write_state(tmp_path / "state.clew", "New", {"init": object()}, {})
    assert persistence.read_state(tmp_path / "state.clew")[0] == "Old"
    assert os.listdir(tmp_path) == ["state.clew"]


def archive_of(path, **entries):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name.replace("__", "."), content)


def document(**changes):
    return json.dumps({"format": 1, "clew": "9.9", "estimator": "Name", "params": {}, "learned": {}, **changes})


def test_newer_files_say_so(tmp_path):
    archive_of(tmp_path / "state.clew", estimator__json=document(format=2))
    with pytest.raises(FileError, match=r"state\.clew was written by clew 9\.9, which is newer\. Update clew\."):
        persistence.read_state(tmp_path / "state.clew")


def pickled_array():
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


DAMAGED = {
    "text": b"hello",
    "pickle": pickle.dumps({"format": 1}),
    "empty": b"",
}
FOREIGN = {
    "no-document": {"other__json": "{}"},
    "not-json": {"estimator__json": "{"},
    "a-list": {"estimator__json": "[]"},
    "no-params": {"estimator__json": '{"format": 1, "estimator": "Name", "learned": {}}'},
    "params-a-list": {"estimator__json": document(params=[1])},
    "array-missing": {"estimator__json": document(learned={"labels_": {"array": "learned.labels_"}})},
    "unknown-kind": {"estimator__json": document(learned={"labels_": {"code": "print(1)"}})},
    "array-damaged": {"estimator__json": document(), "x__npy": b"\x93NUMPY"},
    "array-pickled": {"estimator__json": document(), "x__npy": pickled_array()},
    "format-a-word": {"estimator__json": document(format="one")},
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_files_that_are_no_archive(tmp_path, content):
    (tmp_path / "state.clew").write_bytes(content)
    with pytest.raises(FileError, match=r"state\.clew is damaged, or is not an estimator saved by clew"):
        persistence.read_state(tmp_path / "state.clew")


@pytest.mark.parametrize("entries", FOREIGN.values(), ids=FOREIGN)
def test_archives_that_hold_something_else(tmp_path, entries):
    archive_of(tmp_path / "state.clew", **entries)
    with pytest.raises(FileError, match=r"state\.clew is damaged, or is not an estimator saved by clew"):
        persistence.read_state(tmp_path / "state.clew")


def test_a_file_cut_short(tmp_path):
    persistence.write_state(tmp_path / "state.clew", "Name", {}, {"labels_": np.arange(10_000)})
    content = (tmp_path / "state.clew").read_bytes()
    for size in (1, len(content) // 2, len(content) - 1):
        (tmp_path / "cut.clew").write_bytes(content[:size])
        with pytest.raises(FileError, match=r"cut\.clew is damaged, .* Check the path, or save the estimator again"):
            persistence.read_state(tmp_path / "cut.clew")


def test_missing_file(tmp_path):
    with pytest.raises(FileError, match=r"nowhere\.clew: No such file or directory\. Check the path"):
        persistence.read_state(tmp_path / "nowhere.clew")


def test_unknown_estimators_and_parameters(tmp_path):
    persistence.write_state(tmp_path / "state.clew", "FutureKMeans", {}, {})
    with pytest.raises(FileError, match=r"holds a 'FutureKMeans', which this version of clew does not have"):
        clew.load(tmp_path / "state.clew")
    persistence.write_state(tmp_path / "state.clew", "PCKMeans", {"future": 1}, {})
    with pytest.raises(FileError, match=r"holds parameters that PCKMeans does not have"):
        clew.load(tmp_path / "state.clew")
