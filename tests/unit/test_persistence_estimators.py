"""Saved estimators: everything comes back, nothing is executed, damage is named."""

from __future__ import annotations

import json
import pickle
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import clew
from clew import COPKMeans, PCKMeans, SeededKMeans
from clew.exceptions import FileError

X = np.random.default_rng(0).normal(size=(30, 2))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.clew"
    COPKMeans(3, random_state=0).fit(X, constraints={"cannot_link": [(0, 1)]}).save(path)
    return path


def rewritten(path, change):
    """The same file with its JSON changed."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(entries["estimator.json"])
    change(document)
    entries["estimator.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def test_a_file_is_a_zip_of_json_and_arrays_without_pickles(saved):
    with zipfile.ZipFile(saved) as archive:
        names = archive.namelist()
        document = json.loads(archive.read("estimator.json"))
        for name in names:
            if name.endswith(".npy"):
                with archive.open(name) as entry:
                    assert np.load(entry, allow_pickle=False).dtype != object
    assert {name.rpartition(".")[2] for name in names} == {"json", "npy"}
    assert document["estimator"] == "COPKMeans"
    assert document["clew"] == clew.__version__


def test_an_unfitted_estimator_can_be_saved(tmp_path):
    PCKMeans(4, penalty=0.5, entailed=False, n_jobs=2).save(tmp_path / "plain")
    twin = clew.load(tmp_path / "plain")
    assert twin.get_params() == PCKMeans(4, penalty=0.5, entailed=False, n_jobs=2).get_params()
    assert not hasattr(twin, "labels_")


def test_parameters_that_are_arrays_and_names_of_columns_come_back(tmp_path):
    frame = pd.DataFrame(X.astype(np.float32), columns=["länge", "b"])
    model = SeededKMeans(2, init=X[:2]).fit(frame)
    model.save(tmp_path / "model")
    twin = clew.load(str(tmp_path / "model"))
    assert (twin.init == X[:2]).all()
    assert twin.feature_names_in_.tolist() == ["länge", "b"]
    assert twin.cluster_centers_.dtype == np.float32
    assert (twin.predict(frame) == model.predict(frame)).all()
    assert twin.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_a_generator_in_mid_stream_is_not_saved(tmp_path):
    SeededKMeans(2, random_state=np.random.default_rng(0)).save(tmp_path / "model")
    assert clew.load(tmp_path / "model").random_state is None


def test_a_model_of_sparse_rows_comes_back(tmp_path):
    rows = sparse.random(40, 8, density=0.3, random_state=0, format="csr")
    model = PCKMeans(3, metric="cosine", random_state=0).fit(rows)
    model.save(tmp_path / "model")
    assert (clew.load(tmp_path / "model").predict(rows) == model.labels_).all()


def test_saving_replaces_a_file_whole(saved):
    SeededKMeans(5).save(saved)
    assert isinstance(clew.load(saved), SeededKMeans)
    assert [entry.name for entry in saved.parent.iterdir()] == ["model.clew"]


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(FileError, match=re.escape(str(tmp_path / "none" / "model"))):
        SeededKMeans().save(tmp_path / "none" / "model")
    with pytest.raises(FileError, match=re.escape(str(tmp_path))):
        SeededKMeans().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_parameter_that_needs_pickle_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"params.init .* cannot be saved without pickle"):
        SeededKMeans(init=[object()]).save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file(tmp_path):
    with pytest.raises(FileError, match=r"nowhere.clew: No such file or directory"):
        clew.load(tmp_path / "nowhere.clew")


def test_every_damaged_byte_is_noticed_or_harmless(saved):
    """Flip one byte in two, each on its own: the file loads as before, or the error names it."""
    data, expected = saved.read_bytes(), clew.load(saved)
    complaints = []
    for place in range(0, len(data), 2):
        saved.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            model = clew.load(saved)
        except FileError as error:
            complaints.append(str(error))
        else:
            assert (model.labels_ == expected.labels_).all()
    assert len(complaints) > len(data) / 4
    assert all("model.clew" in complaint for complaint in complaints)


def test_a_file_cut_short_is_noticed(saved):
    data = saved.read_bytes()
    for length in range(0, len(data), 11):
        saved.write_bytes(data[:length])
        with pytest.raises(FileError, match=r"model\.clew"):
            clew.load(saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("params"),
        lambda document: document.pop("learned"),
        lambda document: document.pop("estimator"),
        lambda document: document.pop("format"),
        lambda document: document.update(format="one"),
        lambda document: document.update(params=[1, 2]),
        lambda document: document["learned"].update(labels_={"array": "../../etc/passwd"}),
        lambda document: document["learned"].update(labels_={"unknown": 1}),
        lambda document: document["params"].update(n_cluster=3),
    ],
)
def test_a_document_that_clew_did_not_write(saved, change):
    with pytest.raises(FileError, match=r"model\.clew"):
        clew.load(rewritten(saved, change))


def test_files_of_other_programs(tmp_path):
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FileError, match=r"other\.zip"):
        clew.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("estimator.json", "[1, 2]")
    with pytest.raises(FileError, match=r"other\.zip"):
        clew.load(path)
    path.write_text("id_1,id_2,answer\n")
    with pytest.raises(FileError, match=r"other\.zip"):
        clew.load(path)


def test_versions_and_estimators_of_the_future(saved):
    def newer(document):
        document.update(format=99, clew="9.9")

    with pytest.raises(FileError, match=r"written by clew 9\.9, which is newer\. Update clew"):
        clew.load(rewritten(saved, newer))

    def unknown(document):
        document.update(format=1, estimator="TetherKMeans")

    with pytest.raises(FileError, match="holds a 'TetherKMeans', which this version of clew does not have"):
        clew.load(rewritten(saved, unknown))


def test_a_pickle_inside_is_not_executed(saved, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("learned.extra_.npy", np.lib.format.magic(1, 0) + pickle.dumps(Bomb()))
    with pytest.raises(FileError, match=r"model\.clew"):
        clew.load(saved)
    assert not (tmp_path / "exploded").exists()
