"""`n_clusters="auto"`: the number of groups where it is plain, knowledge that changes it, and where it is refused."""

from __future__ import annotations

import numpy as np
import pytest

import clew
from clew import COPKMeans, MPCKMeans, PCKMeans
from clew.evaluation import same_partition
from clew.exceptions import ParameterError


def blobs(rng, k, n=40, spread=1.0):
    centers = 12.0 * np.array([[i % 3, i // 3] for i in range(k)])
    y = np.repeat(np.arange(k), n)
    return centers[y] + spread * rng.normal(size=(len(y), 2)), y


@pytest.mark.parametrize("cls", [PCKMeans, MPCKMeans])
@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_plain_groups_are_counted(cls, k, seed):
    X, y = blobs(np.random.default_rng(seed), k)
    model = cls("auto", n_init=3, random_state=0).fit(X)
    assert model.n_clusters_ == k
    assert same_partition(model.labels_, y)
    assert len(model.cluster_centers_) == len(model.cluster_sizes_) == k


def test_groups_of_different_spread_need_metrics_of_their_own(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(60, 2)) * [0.3, 6], [20, 0] + rng.normal(size=(60, 2)) * [6, 0.3]])
    assert MPCKMeans("auto", shared=False, n_init=3, random_state=0).fit(X).n_clusters_ == 2
    assert PCKMeans("auto", n_init=3, random_state=0).fit(X).n_clusters_ > 2


def test_cannot_links_raise_the_number_and_must_links_lower_it(seed):
    X, y = blobs(np.random.default_rng(seed), 2)
    assert PCKMeans("auto", n_init=3, random_state=0).fit(X).n_clusters_ == 2
    inner = np.flatnonzero(y == 0)
    parts = X[inner, 0] > np.median(X[inner, 0])
    apart = [(int(i), int(j)) for i in inner[parts][:15] for j in inner[~parts][:15]]
    split = PCKMeans("auto", n_init=3, random_state=0).fit(X, constraints={"cannot_link": apart})
    assert split.n_clusters_ == 3
    joined = [(0, int(j)) for j in range(1, len(X))]
    whole = PCKMeans("auto", penalty=1e4, n_init=3, random_state=0).fit(X, constraints={"must_link": joined})
    assert whole.n_clusters_ == 1


def test_known_classes_are_the_least(seed):
    X, _ = blobs(np.random.default_rng(seed), 1)
    model = PCKMeans("auto", n_init=2, random_state=0).fit(
        X, constraints=np.where(np.arange(40) < 3, [4, 5, 6] + [0] * 37, -1)
    )
    assert model.n_clusters_ >= 3
    assert set(model.cluster_labels_.tolist()) >= {4, 5, 6}


def test_equal_rows_are_one_cluster_and_a_perfect_fit_ends_the_search():
    assert PCKMeans("auto").fit(np.full((9, 2), 3.0)).n_clusters_ == 1
    assert PCKMeans("auto", random_state=0).fit(np.repeat([[0.0], [5.0]], 8, axis=0)).n_clusters_ == 2


def test_saved_and_predicted_like_any_other(tmp_path, seed):
    X, _ = blobs(np.random.default_rng(seed), 3)
    model = PCKMeans("auto", n_init=2, random_state=0).fit(X)
    model.save(tmp_path / "auto")
    twin = clew.load(tmp_path / "auto")
    assert twin.n_clusters == "auto"
    assert (twin.predict(X) == model.labels_).all()


def test_where_there_is_no_such_likelihood_it_is_refused():
    X = np.eye(4)
    with pytest.raises(ParameterError, match=r"n_clusters='auto' in PCKMeans needs metric='euclidean'.*Give a number"):
        PCKMeans("auto", metric="cosine").fit(X)
    with pytest.raises(ParameterError, match="init is an array"):
        PCKMeans("auto", init=X[:2]).fit(X)
    with pytest.raises(ParameterError, match=r"n_clusters='auto' in COPKMeans: expected an integer >= 1"):
        COPKMeans("auto").fit(X)


@pytest.mark.parametrize("model", [PCKMeans("auto", n_init=3), MPCKMeans("auto", metric="none", n_init=3)])
def test_weights_may_be_counts_or_shares(model, seed):
    X, _ = blobs(np.random.default_rng(seed), 3)
    for weight in (1e-3, 1 / len(X), 2.0):  # with shares, the logarithm of their sum would reward every cluster
        assert model.set_params(random_state=0).fit(X, sample_weight=np.full(len(X), weight)).n_clusters_ == 3
