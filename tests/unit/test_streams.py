"""`PCKMeans.partial_fit`: batches add up, clusters keep their numbers, a failed batch changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import clew
from clew import Constraints, PCKMeans
from clew.evaluation import adjusted_rand_score
from clew.exceptions import ConstraintError, DataError, UnusedKnowledgeWarning

CENTERS = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])


def batch(rng, n=60):
    y = rng.integers(3, size=n)
    return CENTERS[y] + rng.normal(size=(n, 2)), y


def learned(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def test_the_first_batch_is_a_fit(seed):
    X, _ = batch(np.random.default_rng(seed))
    one, other = PCKMeans(3, random_state=0).partial_fit(X), PCKMeans(3, random_state=0).fit(X)
    for name, value in learned(other).items():
        np.testing.assert_array_equal(learned(one)[name], value)


def test_history_and_warnings_of_a_later_batch_are_those_of_a_fit(seed):
    rng = np.random.default_rng(seed)
    model = PCKMeans(3, random_state=0).partial_fit(batch(rng)[0])
    before, weight = model.cluster_centers_, model.cluster_weights_
    X = batch(rng)[0] + 1
    model.partial_fit(X)
    moved = float((((model.cluster_centers_ - before) ** 2).sum(axis=1) * weight).sum())
    own = float(((X - model.cluster_centers_[model.labels_]) ** 2).sum())
    assert model.objective_ == model.objective_history_[-1] == model.inertia_ == pytest.approx(own + moved)
    assert (np.diff(model.objective_history_) <= 1e-9).all()
    for max_iter, rows, category in (
        (1, 3 * batch(rng)[0], ConvergenceWarning),
        (300, CENTERS, UnusedKnowledgeWarning),
    ):
        known = Constraints(triplets=[(0, 1, 2)], n_samples=len(rows)) if max_iter == 300 else None
        with pytest.warns(category) as said:
            model.set_params(max_iter=max_iter).partial_fit(rows, constraints=known)
        assert [Path(warning.filename) for warning in said] == [Path(__file__)]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_centres_are_the_means_of_all_rows_so_far(form, metric, seed):
    rng = np.random.default_rng(seed)
    model, X, labels, weights = PCKMeans(3, metric=metric, tol=0, random_state=0), [], [], []
    for _ in range(5):
        rows, _ = batch(rng)
        X.append(rows + 3)
        weights.append(rng.uniform(0.5, 2, size=60))
        model.partial_fit(form(X[-1]), sample_weight=weights[-1])
        labels.append(model.labels_)
    rows, found, weight = np.concatenate(X), np.concatenate(labels), np.concatenate(weights)
    assert model.cluster_weights_ == pytest.approx([weight[found == label].sum() for label in model.cluster_labels_])
    assert model.cluster_sizes_.sum() == 60
    if metric == "euclidean":
        means = [np.average(rows[found == one], axis=0, weights=weight[found == one]) for one in model.cluster_labels_]
        np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-9)
    else:
        np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)


def test_a_stream_finds_what_one_fit_finds(seed):
    rng = np.random.default_rng(seed)
    model = PCKMeans(3, random_state=0)
    batches = [batch(rng) for _ in range(8)]
    for X, y in batches:
        model.partial_fit(X, constraints=Constraints.sample(y, 20, random_state=seed))
        assert len(model.violated_must_link_) + len(model.violated_cannot_link_) == 0
    X, y = np.concatenate([X for X, _ in batches]), np.concatenate([y for _, y in batches])
    assert adjusted_rand_score(y, model.predict(X)) > 0.99
    whole = PCKMeans(3, random_state=0).fit(X)
    order = [int(np.argmin(((whole.cluster_centers_ - center) ** 2).sum(axis=1))) for center in model.cluster_centers_]
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_[order], atol=0.1)


@pytest.mark.parametrize("entailed", [True, False])
def test_a_label_ties_a_row_to_the_cluster_of_that_number(entailed):
    rng = np.random.default_rng(0)
    X, y = batch(rng)
    model = PCKMeans(3, penalty=1e4, entailed=entailed, random_state=0).fit(X, constraints=np.where(y < 2, y + 5, -1))
    assert sorted(model.cluster_labels_.tolist()) == [0, 5, 6]
    later, z = batch(rng, 30)
    wrong = np.full(30, -1)
    wrong[:3] = 11 - np.array([5 + min(label, 1) for label in z[:3]])  # the other class
    model.partial_fit(later, constraints=wrong)
    assert model.labels_[:3].tolist() == wrong[:3].tolist()
    assert adjusted_rand_score(z[3:], model.labels_[3:]) > 0.9


def test_pairs_within_a_batch_are_priced():
    X, _ = batch(np.random.default_rng(0))
    model = PCKMeans(3, random_state=0).fit(X)
    near = model.cluster_centers_[[0, 1]]
    free = model.predict(near)
    known = {"must_link": [(0, 1)]}
    for penalty, holds in ((1e-6, False), (1e6, True)):
        one = PCKMeans(3, penalty=penalty, random_state=0).fit(X)
        one.partial_fit(near, constraints=known)
        assert (one.labels_[0] == one.labels_[1]) == holds
        assert (len(one.violated_must_link_) == 0) == holds
        assert one.objective_ - one.inertia_ == pytest.approx(0 if holds else penalty)
    assert free[0] != free[1]


def test_a_saved_stream_goes_on(tmp_path, seed):
    rng = np.random.default_rng(seed)
    first, second = batch(rng)[0], batch(rng)[0]
    model = PCKMeans(3, random_state=0).partial_fit(first)
    model.save(tmp_path / "stream")
    twin = clew.load(tmp_path / "stream").partial_fit(second)
    model.partial_fit(second)
    for name, value in learned(model).items():
        np.testing.assert_array_equal(learned(twin)[name], value)


def test_a_batch_may_be_smaller_than_the_number_of_clusters():
    model = PCKMeans(3, random_state=0).fit(batch(np.random.default_rng(0))[0])
    before = model.cluster_weights_.sum()
    assert model.partial_fit(CENTERS[:1]).labels_.shape == (1,)
    assert model.cluster_weights_.sum() == before + 1


def test_a_failed_batch_leaves_everything_as_it_was():
    X, _ = batch(np.random.default_rng(0))
    model = PCKMeans(3, random_state=0).fit(X)
    before = {name: np.copy(value) for name, value in learned(model).items()}
    with pytest.raises(ConstraintError, match=r"labels\[1\] is 7, but the clusters so far are 0, 1 and 2"):
        model.partial_fit(X[:3], constraints=[-1, 7, -1])
    with pytest.raises(DataError, match="3 features"):
        model.partial_fit(np.ones((4, 3)))
    for name, value in learned(model).items():
        np.testing.assert_array_equal(before[name], value)
