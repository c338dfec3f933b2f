"""DeepConstrainedClustering: learning, stopping, errors, and use without torch."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import clew
from clew import Constraints, DeepConstrainedClustering
from clew.deep._network import soft_assignment
from clew.evaluation import adjusted_rand_score
from clew.exceptions import DataError, FileError, MissingExtraError, ParameterError
from tests.conformance.test_laws import assert_same_state

SMALL = {"layers": 8, "n_components": 2, "pretrain_epochs": 3, "max_iter": 4, "batch_size": 16, "random_state": 0}


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def blobs(seed, n=60, k=3):
    hidden = np.resize(np.arange(k), n)
    return 4 * np.eye(k)[hidden] + np.random.default_rng(seed).normal(size=(n, k)), hidden


# Without torch


def run(script):
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_neither_clew_nor_the_family_loads_torch():
    run(
        "import sys, clew, clew.deep\n"
        "clew.DeepConstrainedClustering(3)\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'torch']"
    )


def test_without_torch_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in ("clew.deep._training", "clew.deep._knowledge", "clew.deep._rounds"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert DeepConstrainedClustering._examples() == []
    with pytest.raises(MissingExtraError) as told:
        DeepConstrainedClustering(2).fit(np.eye(4))
    assert str(told.value) == "DeepConstrainedClustering needs torch: pip install 'clew[deep]'."
    assert "deep-constrained-clustering" in clew._registry.by_method_name()


def test_a_saved_model_predicts_and_transforms_without_torch(torch, tmp_path, seed):
    X, _ = blobs(seed)
    model = DeepConstrainedClustering(3, **SMALL).fit(X)
    model.save(tmp_path / "model.clew")
    np.save(tmp_path / "X.npy", X)
    told = run(
        "import sys, json, numpy as np, clew\n"
        f"model, X = clew.load({str(tmp_path / 'model.clew')!r}), np.load({str(tmp_path / 'X.npy')!r})\n"
        "print(json.dumps([model.predict(X).tolist(), model.transform(X).tolist()]))\n"
        "assert 'torch' not in sys.modules"
    )
    labels, embedding = json.loads(told)
    assert labels == model.labels_.tolist()
    np.testing.assert_allclose(embedding, model.transform(X), rtol=1e-6)


# What it learns


def two_ways(seed):
    """Four groups at the corners of a rectangle; the classes are its upper and lower half, which are closer."""
    corner = np.resize(np.arange(4), 120)
    noise = np.random.default_rng(seed).normal(scale=0.5, size=(120, 2))
    X = np.column_stack([4.0 * (corner % 2), 3.0 * (corner // 2)]) + noise
    options = SMALL | {"layers": 32, "pretrain_epochs": 10, "max_iter": 30, "tol": 0, "learning_rate": 0.01}
    return X, corner // 2, options


def test_pairs_change_clusters_as_they_say(torch, seed):
    X, hidden, options = two_ways(seed)
    known = Constraints.sample(hidden, 100, random_state=seed)
    without = DeepConstrainedClustering(2, **options).fit(X)
    told = DeepConstrainedClustering(2, penalty=10.0, **options).fit(X, constraints=known)
    assert adjusted_rand_score(hidden, without.labels_) < 0.1
    assert adjusted_rand_score(hidden, told.labels_) > 0.9
    assert len(told.violated_must_link_) + len(told.violated_cannot_link_) <= 3


def test_triplets_bring_the_near_row_closer(torch, seed):
    X, hidden, options = two_ways(seed)
    rng = np.random.default_rng(seed)
    lower, upper = (rng.permutation(np.flatnonzero(hidden == half)) for half in (0, 1))
    triplets = np.concatenate([np.column_stack([lower[:30], lower[30:], upper[:30]]),
                               np.column_stack([upper[:30], upper[30:], lower[:30]])])  # fmt: skip
    told = DeepConstrainedClustering(2, penalty=10.0, **options).fit(X, constraints=Constraints(triplets=triplets))
    assert adjusted_rand_score(hidden, told.labels_) > 0.9


def test_known_classes_keep_their_numbers(torch, seed):
    X, hidden = blobs(seed)
    known = np.where(np.arange(60) < 15, 10 + hidden, -1)
    model = DeepConstrainedClustering(3, **SMALL | {"pretrain_epochs": 30, "learning_rate": 0.01}).fit(
        X, constraints=known
    )
    assert sorted(model.cluster_labels_) == [10, 11, 12]
    assert (model.labels_ == 10 + hidden).mean() > 0.9


def test_size_limits_even_out_clusters(torch, seed):
    """Limits bind the sums of the shares, which are soft sizes; labels follow in part."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(80, 2)), 5 + rng.normal(size=(20, 2))])
    options = SMALL | {"layers": 32, "max_iter": 15, "tol": 0, "learning_rate": 0.01, "size_penalty": 100.0}

    def mean_shares(model):
        return soft_assignment(model.transform(X), model.embedding_centers_).mean(axis=0)

    free = DeepConstrainedClustering(2, **options).fit(X)
    even = DeepConstrainedClustering(2, size_min=45, size_max=55, **options).fit(X)
    assert mean_shares(free).min() < 0.3
    assert mean_shares(even).min() > 0.42
    assert even.cluster_sizes_.min() > free.cluster_sizes_.min()
    # An array has one limit for each cluster, in the order of cluster_labels_.
    first, other = (DeepConstrainedClustering(2, size_min=each, **options).fit(X) for each in ([50, 0], [0, 50]))
    assert mean_shares(first)[0] > 0.42 and mean_shares(other)[1] > 0.42


def test_digits_are_clustered_better_than_by_k_means_on_pixels(torch):
    """Six classes and 500 right pairs."""
    X, y = load_digits(n_class=6, return_X_y=True)
    known = Constraints.sample(y, 500, random_state=0)
    model = DeepConstrainedClustering(
        6, layers=(64, 64), pretrain_epochs=25, max_iter=25, batch_size=64, penalty=10.0, random_state=0
    ).fit(X, constraints=known)
    pixels = KMeans(6, n_init=3, random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, model.labels_) > max(0.85, 0.05 + adjusted_rand_score(y, pixels))
    assert model.pretraining_history_[-1] < 0.5 * model.pretraining_history_[0]


# The filter


def test_filter_by_kmeans_uses_only_pairs_with_impact(torch, seed):
    X, hidden = blobs(seed)
    known = Constraints.sample(hidden, 30, noise=0.3, random_state=seed)
    options = SMALL | {"pretrain_epochs": 20, "filter_rule": "kmeans", "n_neighbors": 0}
    everything = DeepConstrainedClustering(3, **options).fit(X, constraints=known)
    some = DeepConstrainedClustering(3, filter_fraction=0.0, **options).fit(X, constraints=known)
    fewer = DeepConstrainedClustering(3, filter_fraction=0.9, **options).fit(X, constraints=known)

    def n_used(model):
        return len(model.used_must_link_) + len(model.used_cannot_link_)

    assert n_used(everything) == 30 > n_used(some) > n_used(fewer)


def test_filter_begins_when_training_on_all_pairs_has_ended(torch, seed):
    X, hidden = blobs(seed)
    known = Constraints.sample(hidden, 60, noise=0.3, random_state=seed)
    options = SMALL | {"pretrain_epochs": 20}
    seen = []

    def note(now):
        seen.append((now.stage, now.n_iter, now.max_iter))

    plain = DeepConstrainedClustering(3, **options).fit(X, constraints=known)
    model = DeepConstrainedClustering(3, filter_fraction=0.9, callback=note, **options).fit(X, constraints=known)
    n_first = plain.n_iter_
    assert model.objective_history_[: n_first + 1].tolist() == plain.objective_history_.tolist()
    assert seen[20 : 20 + n_first] == [("clustering", place + 1, 4) for place in range(n_first)]
    assert seen[20 + n_first :] == [("filtering", place + 1, 4) for place in range(model.n_iter_ - n_first)]
    assert model.n_iter_ > n_first
    for stated, used in (
        (known.must_link, model.used_must_link_),
        (known.cannot_link, model.used_cannot_link_),
    ):
        assert {*map(tuple, used.tolist())} < {*map(tuple, np.sort(stated, axis=1).tolist())}


def test_filter_drops_mostly_wrong_pairs(torch, seed):
    """Well separated classes and one wrong answer of five."""
    X, hidden = blobs(seed, 240)
    known = Constraints.sample(hidden, 80, noise=0.2, random_state=seed)
    options = SMALL | {"layers": 32, "pretrain_epochs": 30, "max_iter": 20, "penalty": 3.0}
    model = DeepConstrainedClustering(3, filter_fraction=0.8, **options).fit(2 * X, constraints=known)

    def n_wrong(must, cannot):
        return (hidden[must[:, 0]] != hidden[must[:, 1]]).sum() + (hidden[cannot[:, 0]] == hidden[cannot[:, 1]]).sum()

    n_used = len(model.used_must_link_) + len(model.used_cannot_link_)
    n_all = n_wrong(known.must_link, known.cannot_link)
    n_dropped = n_all - n_wrong(model.used_must_link_, model.used_cannot_link_)
    assert n_dropped >= max(0.4 * n_all, 0.8 * (80 - n_used))


def test_a_filter_of_nothing_is_no_filter(torch, seed):
    X, hidden = blobs(seed)
    known = Constraints.sample(hidden, 30, random_state=seed)
    plain = DeepConstrainedClustering(3, **SMALL).fit(X, constraints=known)
    assert_same_state(plain, DeepConstrainedClustering(3, filter_fraction=0, **SMALL).fit(X, constraints=known))


def test_filter_without_pairs_is_no_filter(torch, seed):
    X, _ = blobs(seed)
    plain = DeepConstrainedClustering(3, **SMALL).fit(X)
    assert_same_state(plain, DeepConstrainedClustering(3, filter_fraction=0.7, **SMALL).fit(X))


# Rounds


def test_stops_when_fewer_than_one_in_a_thousand_rows_change(torch, seed):
    X, _ = blobs(seed, 300)
    model = DeepConstrainedClustering(3, **SMALL | {"pretrain_epochs": 10, "max_iter": 200}).fit(X)
    assert model.n_iter_ < 200
    assert model.changed_history_[-1] < 0.001 <= model.changed_history_[:-1].min(initial=1)
    assert len(model.objective_history_) == model.n_iter_ + 1
    assert model.objective_ == model.objective_history_[-1]


def test_few_rows_go_on_until_eight_steps_change_nothing(torch, seed):
    """A round of 60 rows is one step, which often changes no cluster, although pairs are broken."""
    X, hidden, options = two_ways(seed)
    X, hidden = X[:60], hidden[:60]
    known = Constraints.sample(hidden, 60, random_state=seed)
    model = DeepConstrainedClustering(2, **options | {"batch_size": 64, "max_iter": 100, "tol": 0.001})
    model.fit(X, constraints=known)
    assert adjusted_rand_score(hidden, model.labels_) > 0.9
    assert 8 < model.n_iter_ < 100
    assert model.changed_history_[-8:].max() < 0.001 <= model.changed_history_[-9]


def test_progress_has_a_time_estimate_and_can_stop_a_stage(torch, seed):
    X, _ = blobs(seed)
    seen = []
    model = DeepConstrainedClustering(3, callback=seen.append, **SMALL | {"tol": 0}).fit(X)
    assert [(each.stage, each.n_iter, each.max_iter) for each in seen] == [
        *(("pre-training", place, 3) for place in (1, 2, 3)), *(("clustering", place, 4) for place in (1, 2, 3, 4)),
    ]  # fmt: skip
    assert all(each.seconds > 0 and each.seconds_left >= 0 for each in seen)
    assert seen[2].seconds_left == seen[-1].seconds_left == 0
    assert [each.changed for each in seen[3:]] == model.changed_history_.tolist()
    short = DeepConstrainedClustering(3, callback=lambda now: now.n_iter < 2, **SMALL | {"tol": 0}).fit(X)
    assert (len(short.pretraining_history_), short.n_iter_) == (2, 2)


def test_a_model_with_a_callback_can_be_saved(torch, tmp_path, seed):
    X, _ = blobs(seed)
    model = DeepConstrainedClustering(3, callback=lambda now: None, **SMALL).fit(X)
    model.save(tmp_path / "model.clew")
    again = clew.load(tmp_path / "model.clew")
    assert model.callback is not None and again.callback is None
    assert (again.predict(X) == model.labels_).all()


def test_automatic_layers_grow_with_the_rows(torch, tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 2))
    options = {"n_components": 2, "pretrain_epochs": 0, "max_iter": 0, "random_state": 0}
    for n_rows, hidden in ((1999, (64, 64)), (2000, (256, 256, 512))):
        model = DeepConstrainedClustering(2, **options).fit(X[:n_rows])
        same = DeepConstrainedClustering(2, layers=hidden, **options).fit(X[:n_rows])
        assert_same_state(model, same)
        model.save(tmp_path / "model.clew")
        assert (clew.load(tmp_path / "model.clew").predict(X[:9]) == model.labels_[:9]).all()


def test_automatic_batches_are_small_for_few_rows(torch):
    X = np.random.default_rng(0).normal(size=(2000, 2))
    options = SMALL | {"pretrain_epochs": 1, "max_iter": 1, "n_neighbors": 0}
    del options["batch_size"]
    for n_rows, size in ((1999, 64), (2000, 256)):
        model = DeepConstrainedClustering(2, **options).fit(X[:n_rows])
        assert_same_state(model, DeepConstrainedClustering(2, batch_size=size, **options).fit(X[:n_rows]))


def test_small_networks_use_one_thread_and_give_the_others_back(torch, seed):
    X, _ = blobs(seed)
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        DeepConstrainedClustering(3, callback=lambda _: seen.append(torch.get_num_threads()), **SMALL).fit(X)
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_one_pre_training_serves_many_fits(torch, seed):
    X, _ = blobs(seed)
    base = DeepConstrainedClustering(3, **SMALL | {"max_iter": 0}).fit(X)
    model = DeepConstrainedClustering(3, pretrained=base.network_, **SMALL).fit(X)
    assert model.pretraining_history_.size == 0
    assert model.n_iter_ > 0
    assert (base.network_ != model.network_).any()


def test_memory_of_sparse_rows_is_that_of_a_batch(torch):
    """20,000 columns, dense in batches of 16 rows only: 320,000 numbers, not 4,000,000."""
    import tracemalloc

    X = sparse.random_array((200, 20_000), density=1e-3, rng=np.random.default_rng(0), format="csr")
    from clew.deep._network import Rows

    rows = Rows.standardized(X[:16])
    tracemalloc.start()
    rows.take(np.arange(16))
    assert tracemalloc.get_traced_memory()[1] < 4 * 16 * 20_000 * 8
    tracemalloc.stop()
    model = DeepConstrainedClustering(2, **SMALL | {"max_iter": 1, "pretrain_epochs": 1}).fit(X)
    assert model.transform(X[:5]).shape == (5, 2)


# Bad input


def test_fewer_rows_than_clusters_and_missing_values_are_refused(torch):
    with pytest.raises(DataError, match="n_clusters=5, but X has n_samples=4 rows"):
        DeepConstrainedClustering(5).fit(np.eye(4))
    with pytest.raises(DataError, match="NaN at row 1"):
        DeepConstrainedClustering(2).fit([[0.0, 1.0], [np.nan, 1.0], [2.0, 2.0]])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            {"layers": 0},
            "layers=0 in DeepConstrainedClustering: expected 'auto' or an integer >= 1 or a list of integers >= 1",
        ),
        ({"layers": [8, 2.5]}, r"layers=\[8, 2.5\]"),
        ({"layers": [[8, 4], 2]}, r"layers=\[\[8, 4\], 2\] .* expected 'auto' or"),
        ({"filter_fraction": 1.5}, "filter_fraction=1.5 .* a number from 0 to 1 or None"),
        ({"filter_rule": "hard"}, "filter_rule='hard' .* 'soft' or 'kmeans'"),
        ({"learning_rate": 0}, "learning_rate=0 .* expected a finite number > 0"),
        ({"size_min": 5, "size_max": 2}, "size_min=5 is above size_max=2"),
        (
            {"pretrained": np.zeros(7)},
            r"shape \(7,\), but 4 columns, layers \(8,\) and n_components=2 need 118 weights",
        ),
        (
            {"pretrained": [[1.0], [1.0, 2.0]]},
            "pretrained in DeepConstrainedClustering cannot be used: .*inhomogeneous",
        ),
        ({"pretrained": np.full(118, np.nan)}, "pretrained contains NaN"),
    ],
)
def test_wrong_parameters_are_named(torch, wrong, sentence):
    with pytest.raises(ParameterError, match=sentence):
        DeepConstrainedClustering(2, **SMALL | wrong).fit(np.eye(4))


def test_training_that_diverges_is_refused(torch, seed):
    X, _ = blobs(seed)
    for options in ({"pretrain_epochs": 3}, {"pretrain_epochs": 0}):
        model = DeepConstrainedClustering(3, **SMALL | {"learning_rate": 1e30} | options)
        with pytest.raises(
            ParameterError, match=r"diverged in round \d with learning_rate=1e\+30\. Lower learning_rate"
        ):
            model.fit(X)
        assert not hasattr(model, "labels_")


def test_batches_without_a_constraint_learn_from_rows(torch, seed):
    """One pair in eight batches: seven have none."""
    X, _ = blobs(seed, 128)
    model = DeepConstrainedClustering(3, **SMALL).fit(X, constraints={"must_link": [(0, 3)]})
    assert np.isfinite(model.objective_history_).all() and np.isfinite(model.network_).all()
    assert model.used_must_link_.tolist() == [[0, 3]]


def test_contradictory_pairs_are_priced_and_stay_finite(torch, seed):
    X, _ = blobs(seed)
    known = {"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 1), (0, 2)]}
    for fraction in (None, 0.0):
        model = DeepConstrainedClustering(3, penalty=100.0, filter_fraction=fraction, **SMALL).fit(X, constraints=known)
        assert np.isfinite(model.network_).all()
        assert len(model.violated_must_link_) + len(model.violated_cannot_link_) >= 1


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("learned.network_", np.zeros(9, dtype=np.float32)),
        ("learned.embedding_centers_", np.zeros((3, 5))),
        ("learned.shift_", np.zeros(9)),
    ],
)
def test_a_file_of_another_shape_is_refused(torch, tmp_path, name, array, seed):
    path, other = tmp_path / "model.clew", tmp_path / "other.clew"
    X, _ = blobs(seed)
    DeepConstrainedClustering(3, **SMALL).fit(X).save(path)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for entry in source.namelist():
            if entry == f"{name}.npy":
                with target.open(entry, "w") as file:
                    np.save(file, array)
            else:
                target.writestr(entry, source.read(entry))
    with pytest.raises(FileError, match=r"other\.clew cannot be used: .*(weights|shape).* Save the estimator again"):
        clew.load(other)


def test_only_seeds_decide_and_torch_keeps_its_own_random_state(torch, seed):
    X, _ = blobs(seed)
    before = torch.random.get_rng_state()
    first = DeepConstrainedClustering(3, **SMALL).fit(X)
    torch.manual_seed(99)
    assert_same_state(first, DeepConstrainedClustering(3, **SMALL).fit(X))
    torch.random.set_rng_state(before)
    DeepConstrainedClustering(3, **SMALL).fit(X)
    assert (torch.random.get_rng_state() == before).all()
    assert (DeepConstrainedClustering(3, **SMALL | {"random_state": 1}).fit(X).network_ != first.network_).any()
