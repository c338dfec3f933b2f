"""Rows in Dask collections give the clusters that the same rows give in memory."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from sklearn.base import clone

import clew
from clew import (
    CVQE,
    LCVQE,
    ConstrainedKMeans,
    Constraints,
    COPKMeans,
    GraphPropagation,
    IGKMeans,
    PCKMeans,
    SampledBalancedKMeans,
    SeededKMeans,
)
from clew._base import all_estimators
from clew.exceptions import ClewError, DataError, DataTypeError, TooLargeError
from tests.conformance.scenarios import SCENARIOS, build

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")

METHODS = [SeededKMeans, ConstrainedKMeans, COPKMeans, PCKMeans, CVQE, LCVQE]


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows_and_classes(n_rows=240, dtype="float64"):
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 3, n_rows)
    return (rng.normal(size=(n_rows, 4)) * 2 + classes[:, None] * 3 + 50).astype(dtype), classes


def knowledge(classes):
    pairs = Constraints.sample(classes, 40, balance=0.5, random_state=0)
    some = np.where(np.arange(len(classes)) < 12, classes, -1)
    return {"nothing": None, "pairs": pairs, "labels": some, "both": pairs | Constraints(labels=some)}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_dask_arrays_give_the_labels_of_the_rows_in_memory(method, metric):
    X, classes = rows_and_classes(dtype="float32" if metric == "cosine" else "float64")
    lazy = da.from_array(X, chunks=(100, 3))
    for name, known in list(knowledge(classes).items())[1 if metric == "cosine" else 3 :][:1]:
        model = method(3, metric=metric, n_init=1, random_state=0)
        expected = model.fit(X, constraints=known).labels_
        centers, sizes, objective = model.cluster_centers_, model.cluster_sizes_, model.objective_
        found = method(3, metric=metric, n_init=1, random_state=0).fit(lazy, constraints=known)
        assert isinstance(found.labels_, da.Array)
        assert (found.labels_.compute() == expected).all(), name
        np.testing.assert_allclose(found.cluster_centers_, centers, rtol=1e-6)
        assert (found.cluster_sizes_ == sizes).all()
        assert found.objective_ == pytest.approx(objective, rel=1e-6)
        assert (found.predict(lazy).compute() == model.predict(X)).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("known", ["nothing", "pairs", "both"])
def test_balanced_clusters_of_dask_arrays_are_those_of_the_rows_in_memory(metric, known):
    """With a sample smaller than the rows, and a larger one; with limits, and without."""
    X, classes = rows_and_classes()
    known, lazy = knowledge(classes)[known], da.from_array(X, chunks=(70, 3))
    for limits in ({"tolerance": 0}, {"size_min": 60, "size_max": 100, "sample_size": 50}, {"sample_size": 50}):
        model = SampledBalancedKMeans(3, metric=metric, n_init=1, random_state=0, **limits)
        expected = model.fit(X, constraints=known)
        found = clone(model).fit(lazy, constraints=known)
        assert isinstance(found.labels_, da.Array) and found.labels_.chunks == ((70, 70, 70, 30),)
        assert (found.labels_.compute() == expected.labels_).all()
        assert found.cluster_sizes_.tolist() == expected.cluster_sizes_.tolist()
        assert found.violated_must_link_.tolist() == expected.violated_must_link_.tolist() == []
        np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-6)
        assert (found.predict(lazy).compute() == expected.predict(X)).all()


def test_balanced_clusters_count_the_weights_of_dask_rows():
    X, _ = rows_and_classes()
    weights = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    model = SampledBalancedKMeans(3, tolerance=0.1, size_unit="weight", sample_size=60, n_init=1, random_state=0)
    expected = model.fit(X, sample_weight=weights)
    found = clone(model).fit(da.from_array(X, chunks=(100, 4)), sample_weight=weights)
    assert (found.labels_.compute() == expected.labels_).all()


def test_frames_weights_and_names_of_classes():
    X, classes = rows_and_classes()
    named = np.where(np.arange(len(X)) < 12, np.array(["x", "y", "z"])[classes], "")
    weights = np.random.default_rng(1).uniform(0, 2, len(X))
    frame = pd.DataFrame(X, columns=list("abcd"))
    expected = PCKMeans(4, random_state=0).fit(frame, constraints=named, sample_weight=weights)
    found = PCKMeans(4, random_state=0).fit(
        dd.from_pandas(frame, npartitions=3), constraints=named, sample_weight=weights
    )
    assert (found.labels_.compute() == expected.labels_).all()
    assert found.feature_names_in_.tolist() == list("abcd")
    assert (found.predict(dd.from_pandas(frame, npartitions=2)).compute() == expected.predict(frame)).all()


def test_an_empty_cluster_restarts_as_in_memory():
    X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [30.0]])
    init = np.array([[0.0], [9.0], [500.0]])
    expected = SeededKMeans(3, init=init).fit(X)
    found = SeededKMeans(3, init=init).fit(da.from_array(X, chunks=(2, 1)))
    assert (found.labels_.compute() == expected.labels_).all()


def test_graph_propagation_predicts_blocks_where_they_are(tmp_path):
    X, classes = rows_and_classes(60)
    model = GraphPropagation(3, random_state=0).fit(X, constraints=np.where(np.arange(60) < 9, classes, -1))
    found = model.predict(da.from_array(X, chunks=(25, 4)))
    assert isinstance(found, da.Array)
    assert (found.compute() == model.predict(X)).all()
    frame = model.predict(dd.from_pandas(pd.DataFrame(X), npartitions=3))
    assert isinstance(frame, da.Array)
    assert (frame.compute() == model.predict(X)).all()
    np.save(tmp_path / "rows.npy", X)
    assert (model.predict(tmp_path / "rows.npy") == model.predict(X)).all()


@pytest.mark.parametrize("kind", all_estimators(), ids=lambda kind: kind.__name__)
def test_all_methods_that_need_all_rows_refuse_dask_and_paths(kind):
    """No method loads a Dask array without being asked, and none takes a path for text."""
    X, classes = rows_and_classes()
    given = {"given": classes} if kind._role == "alternative clusterer" else {}
    for model in kind._examples():
        if model.capabilities.out_of_core:
            continue
        for rows, what in (
            (da.from_array(X, chunks=(100, 4)), r"a Dask Array. Load X \(X.compute\(\)\)"),
            ("rows.npy", r"the path 'rows.npy'. Load X \(clew.datasets.read_table\)"),
        ):
            with pytest.raises(DataTypeError, match=f"^{kind.__name__}.* needs all rows in memory, and X is {what}"):
                model.fit(rows, **given)


def test_bad_values_and_methods_are_named():
    X, _ = rows_and_classes()
    X[239, 1] = np.nan
    with pytest.raises(DataError, match="NaN at row 239, column 1"):
        SeededKMeans(3).fit(da.from_array(X, chunks=(100, 4)))
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    with pytest.raises(DataError, match="Column 'b' of X has type"):
        SeededKMeans(2).fit(dd.from_pandas(frame, npartitions=1))
    with pytest.raises(DataTypeError, match="MPCKMeans needs all rows in memory"):
        clew.MPCKMeans(3).fit(da.from_array(X, chunks=(100, 4)))
    with pytest.raises(DataTypeError, match="expected rows of numbers"):
        SeededKMeans(3).fit(da.from_array(X[:, 0], chunks=100))


def test_a_worker_out_of_memory_is_explained(monkeypatch):
    X, _ = rows_and_classes()
    lazy = da.from_array(X, chunks=(100, 4))
    monkeypatch.setattr(dask, "compute", _dying)
    with pytest.raises(TooLargeError, match="Workers died several times over the same block"):
        SeededKMeans(3).fit(lazy)


@pytest.mark.filterwarnings("ignore")  # the port of the dashboard may be in use
def test_a_fit_that_fails_leaves_no_blocks_on_the_cluster(monkeypatch):
    X, _ = rows_and_classes()
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, memory_limit=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(dask, "compute", _dying)
            with dask.config.set(scheduler=None), pytest.raises(TooLargeError) as caught:
                SeededKMeans(3).fit(da.from_array(X, chunks=(100, 4)))
        for _ in range(200):
            if not cluster.scheduler.tasks:
                break
            time.sleep(0.05)
        assert not cluster.scheduler.tasks
        assert caught.value is not None  # the error and its frames are still alive here, as in a notebook


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_next_fit_works_after_blocks_have_killed_workers():
    X, _ = rows_and_classes()
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1, "scheduler": None}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        deadly = da.from_array(X, chunks=(10, 4)).map_blocks(_end_process, dtype=X.dtype)
        with pytest.raises(TooLargeError, match="Workers died several times over the same block") as caught:
            SeededKMeans(3).fit(deadly)
        found = SeededKMeans(3, random_state=0).fit(da.from_array(X, chunks=(100, 4)))
        assert (found.labels_.compute() == SeededKMeans(3, random_state=0).fit(X).labels_).all()
        assert caught.value is not None


def _dying(*tasks):
    raise distributed.scheduler.KilledWorker("block", None, 3)


def _end_process(block):
    if len(block):  # Dask calls it with no rows in this process, to learn the type
        os._exit(1)
    return block


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_worker_processes_give_the_labels_of_the_rows_in_memory(client):
    X, classes = rows_and_classes()
    known, lazy = knowledge(classes)["both"], da.from_array(X, chunks=(100, 4))
    with dask.config.set(scheduler=None):
        for place, method in enumerate(METHODS):
            settings = {"metric": ("euclidean", "cosine")[place % 2], "n_init": 1, "max_iter": 8, "random_state": 0}
            expected = method(3, **settings).fit(X, constraints=known)
            found = method(3, **settings).fit(lazy, constraints=known)
            assert (found.labels_.compute() == expected.labels_).all(), method
        for limits in ({"tolerance": 0}, {"size_max": 90, "sample_size": 60}):
            balanced = SampledBalancedKMeans(3, n_init=1, random_state=0, **limits)
            expected = balanced.fit(X, constraints=known).labels_
            assert (clone(balanced).fit(lazy, constraints=known).labels_.compute() == expected).all(), limits


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scenario", SCENARIOS, ids="-".join)
def test_two_worker_processes_give_the_partition_in_memory_on_every_scenario(client, scenario, seed):
    """Where costs tie, the last bit of a sum decides where a row goes, and blocks are added up in another order.

    Distances tie in some scenarios. In CVQE and LCVQE, the two ways to give up a pair may cost the same. There, the
    objectives are equal.
    """
    with dask.config.set(scheduler=None):
        for kind in (*METHODS, IGKMeans, SampledBalancedKMeans):
            model = kind(3, n_init=1, max_iter=10, random_state=0)
            case = build(scenario, model, seed)
            lazy = da.from_array(case.X, chunks=(max(len(case.X) // 3, 1), -1))
            try:
                expected = model.fit(case.X, constraints=case.constraints)
            except ClewError as error:
                with pytest.raises(type(error)):
                    clone(model).fit(lazy, constraints=case.constraints)
                continue
            found = clone(model).fit(lazy, constraints=case.constraints)
            assert isinstance(found.labels_, da.Array)
            if case.generic and kind not in (CVQE, LCVQE):
                assert (found.labels_.compute() == expected.labels_).all(), kind
            assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6, abs=1e-9), kind


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_fit_goes_on_when_a_worker_dies(client, monkeypatch):
    from clew.distributed import _rows

    X, classes = rows_and_classes(2000)
    known = knowledge(classes)["pairs"]
    expected = PCKMeans(3, tol=0, n_init=1, random_state=0).fit(X, constraints=known)
    assign, rounds = _rows.DaskRowLabels.assign, []

    def killing(self, *arguments):
        rounds.append(1)
        if len(rounds) == 3:
            victim = sorted(client.scheduler_info()["workers"])[0]
            process = next(iter(client.run(lambda: __import__("os").getpid(), workers=[victim]).values()))
            __import__("os").kill(process, 9)
        return assign(self, *arguments)

    monkeypatch.setattr(_rows.DaskRowLabels, "assign", killing)
    with dask.config.set(scheduler=None):
        found = PCKMeans(3, tol=0, n_init=1, random_state=0).fit(da.from_array(X, chunks=(300, 4)), constraints=known)
        assert (found.labels_.compute() == expected.labels_).all()
    assert len(rounds) > 3
