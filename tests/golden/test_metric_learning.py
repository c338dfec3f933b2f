"""MPCKMeans and HMRFKMeans against their objectives, written out in plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.preprocessing import normalize

from clew import Constraints, HMRFKMeans, MPCKMeans
from clew.exceptions import ParameterError
from clew.partitional import _hmrf_kmeans
from tests.helpers import random_knowledge, whole_numbers
from tests.reference import metric_learning as reference

SETTINGS = [
    pytest.param({"metric": metric, "shared": shared}, id=f"{metric}-{'shared' if shared else 'own'}")
    for metric in ("none", "diagonal", "full")
    for shared in (True, False)
]


def places(model):
    return [model.cluster_labels_.tolist().index(label) for label in model.labels_.tolist()]


def some_pairs(rng, n, turn):
    known = random_knowledge(rng, n, consistent=bool(turn % 2), sure=turn % 3 == 0)
    return Constraints(
        known.must_link[:6],
        known.cannot_link[:6],
        must_link_confidence=known.must_link_confidence[:6],
        cannot_link_confidence=known.cannot_link_confidence[:6],
        labels=known.labels if turn % 4 == 0 else None,
        n_samples=n,
    )


@pytest.mark.parametrize("settings", SETTINGS)
def test_mpck_means_states_its_objective_and_no_row_can_lower_it(settings, seed):
    rng = np.random.default_rng(seed)
    for turn in range(12):
        X, known = whole_numbers(rng, 12), some_pairs(rng, 12, turn)
        form = sparse.csr_matrix if turn % 2 else np.asarray
        model = MPCKMeans(3, **settings, penalty=0.5, tol=0, n_init=2, random_state=turn).fit(
            form(X), constraints=known
        )
        labels = places(model)
        expected = reference.objective(X, known, labels, model.cluster_centers_, model.metrics_, 0.5, **settings)
        assert model.objective_ == pytest.approx(expected, rel=1e-9, abs=1e-8)
        for row in range(12):
            for cluster in range(3):
                moved = [*labels[:row], cluster, *labels[row + 1 :]]
                other = reference.objective(X, known, moved, model.cluster_centers_, model.metrics_, 0.5, **settings)
                assert other >= model.objective_ - 1e-7 * (1 + abs(expected))


@pytest.mark.parametrize("settings", [one for one in SETTINGS if "none" not in one.id])
def test_the_learned_metric_is_the_best_for_its_clusters(settings, seed):
    """Any other metric near it costs more: the objective is convex in the metric."""
    rng = np.random.default_rng(seed)
    for turn in range(6):
        X, known = whole_numbers(rng, 12), some_pairs(rng, 12, 4 * turn + 1)
        if settings["metric"] == "full":  # a cannot-link may be longer than the box there, and then has a kink
            known = Constraints(known.must_link, n_samples=12)
        model = MPCKMeans(2, **settings, tol=0, n_init=1, random_state=turn).fit(X, constraints=known)
        for _ in range(20):
            noise = rng.normal(size=model.metrics_.shape) * 0.01
            if model.metrics_.ndim == 2:
                other = model.metrics_ * np.exp(noise)
            else:
                twist = np.eye(2) + noise
                other = np.array([one.T @ form @ one for one, form in zip(twist, model.metrics_, strict=True)])
            args = (X, known, places(model), model.cluster_centers_)
            assert reference.objective(*args, other, 1.0, **settings) >= model.objective_ - 1e-9 * abs(model.objective_)


def test_diagonal_rounds_match_plain_loops(seed):
    rng = np.random.default_rng(seed)
    compared = 0
    for turn in range(40):
        n, shared = int(rng.integers(6, 12)), bool(turn % 2)
        X, known = whole_numbers(rng, n), some_pairs(rng, n, 4 * turn + 1)
        init = X[rng.choice(n, 2, replace=False)]
        order = np.random.default_rng(turn)
        expected = reference.mpck_means(
            X, known, init, 1.0, lambda count, order=order: order.permutation(count), shared
        )
        if expected is None:
            continue
        model = MPCKMeans(2, init=init, shared=shared, tol=0, random_state=turn).fit(X, constraints=known)
        labels, centers, metrics, history = expected
        assert places(model) == labels
        np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.metrics_, metrics, rtol=1e-7)
        np.testing.assert_allclose(model.objective_history_, history, rtol=1e-9, atol=1e-8)
        compared += 1
    assert compared > 20


@pytest.mark.parametrize("negative", [True, False])
def test_hmrf_kmeans_states_its_objective_for_cosines(negative, seed):
    rng = np.random.default_rng(seed)
    for turn in range(12):
        X = np.abs(rng.normal(size=(12, 3))) if not negative else rng.normal(size=(12, 3))
        known = some_pairs(rng, 12, turn)
        form = sparse.csr_matrix if turn % 2 else np.asarray
        model = HMRFKMeans(3, metric="cosine", tol=0, n_init=2, random_state=turn).fit(form(X), constraints=known)
        args = (X, known, places(model), model.cluster_centers_)
        assert model.objective_ == pytest.approx(reference.cosine_objective(*args, model.metrics_[0], 1.0), abs=1e-9)
        held = (normalize(X) ** 2).sum(axis=0)
        assert model.metrics_[0] @ held == pytest.approx(held.sum())
        assert (model.metrics_ > 0).all()
        even = HMRFKMeans(3, metric="cosine", tol=0, n_init=2, random_state=turn)
        assert model.objective_ <= even.fit(X, constraints=known).objective_history_[0] + 1e-9


def test_repeated_columns_of_a_sparse_row_add_up(seed):
    rng = np.random.default_rng(seed)
    X = sparse.csr_matrix(rng.integers(0, 4, size=(20, 6)) * 2.0)
    twice = sparse.csr_matrix((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    known = {"must_link": [(0, 1), (2, 3)], "cannot_link": [(4, 5), (6, 7)]}
    model, other = (HMRFKMeans(3, metric="cosine", random_state=0).fit(rows, constraints=known) for rows in (X, twice))
    assert_allclose(other.objective_, model.objective_)


def test_hmrf_kmeans_learns_that_a_column_of_noise_is_worth_little():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = np.column_stack([np.where(y == 0, 5.0, 0.5), np.where(y == 0, 0.5, 5.0), rng.uniform(0, 8, 60)])
    X[:, :2] += rng.uniform(0, 0.5, size=(60, 2))
    known = Constraints.sample(y, 30, balance=0.5, random_state=0)
    weights = HMRFKMeans(2, metric="cosine", random_state=0).fit(X, constraints=known).metrics_[0]
    assert weights[2] < 0.9 * weights[:2].min()


def test_euclidean_hmrf_is_the_shared_diagonal_of_mpck(seed):
    rng = np.random.default_rng(seed)
    X, known = rng.normal(size=(40, 3)) * [1, 5, 20], random_knowledge(rng, 40)
    one, other = (cls(3, random_state=0).fit(X, constraints=known) for cls in (HMRFKMeans, MPCKMeans))
    assert (one.labels_ == other.labels_).all()
    assert one.objective_ == other.objective_


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_small_clusters_and_flat_columns_stay_finite(metric, shared):
    """Clusters of one row, more columns than rows, a constant column."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(9, 12)) * 10.0 ** rng.integers(-6, 6, 12), np.full(9, 3.0)])
    for n_clusters in (2, 5, 9):
        model = MPCKMeans(n_clusters, metric=metric, shared=shared, random_state=0)
        model.fit(X, constraints={"must_link": [(0, 1)], "cannot_link": [(2, 3), (4, 5)]})
        assert np.isfinite(model.metrics_).all()
        assert np.isfinite(model.objective_history_).all()
        assert (np.diff(model.objective_history_) <= 1e-9 * np.abs(model.objective_history_).max()).all()
        eigenvalues = np.linalg.eigvalsh(model.metrics_) if metric == "full" else model.metrics_
        assert (eigenvalues > 0).all()


def test_the_learned_metric_does_not_depend_on_units(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3)) + rng.integers(3, size=60)[:, None] * 4
    units = np.array([1.0, 2.0**10, 2.0**-10])
    first = MPCKMeans(3, init=X[:3], tol=0).fit(X)
    assert (
        np.ptp(first.metrics_[0] * X.var(axis=0))
        < np.ptp(np.log(units)) * first.metrics_[0].max() * X.var(axis=0).max()
    )
    scaled = MPCKMeans(3, init=X[:3] * units, tol=0, max_iter=300).fit(X * units)
    learned = scaled.metrics_[0] * units**2
    assert np.isfinite(learned).all()


@pytest.mark.parametrize(
    ("name", "value"), [("metric", "cosine"), ("penalty", -1), ("assignment", "far"), ("shared", 1)]
)
def test_parameters_outside_their_range_are_refused(name, value):
    with pytest.raises(ParameterError, match=f"{name}=.*in MPCKMeans: expected"):
        MPCKMeans(2, **{name: value}).fit([[1.0, 0.0], [0.0, 1.0]])


def test_pairs_that_shape_the_metric_only_do_not_hold_rows_back():
    """MKM of the survey's Table 1: every row is where it is cheapest by distance alone."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 2))
    known = Constraints.sample(rng.integers(2, size=50), 40, random_state=0)
    model = MPCKMeans(2, assignment="nearest", random_state=0).fit(X, constraints=known)
    assert (model.predict(X) == model.labels_).all()
    assert len(model.violated_must_link_) > 0


def test_steps_of_the_weights_build_no_matrix_of_rows(monkeypatch):
    """A round of the cosine form stays within a few rounds of PCKMeans: only the weights it ends with are applied."""
    rng = np.random.default_rng(0)
    rows = sparse.random(60, 40, density=0.2, format="csr", random_state=1)
    built = []
    weigh = _hmrf_kmeans._weigh
    monkeypatch.setattr(_hmrf_kmeans, "_weigh", lambda X, weights: built.append(X.shape[0]) or weigh(X, weights))
    known = Constraints.sample(rng.integers(3, size=60), 30, random_state=0)
    model = HMRFKMeans(3, metric="cosine", n_init=1, random_state=0).fit(rows, constraints=known)
    assert built.count(60) <= model.n_iter_ + 2


@pytest.mark.parametrize("shared", [True, False])
def test_whole_matrices_end_where_the_metric_is_flat(shared, seed):
    """Columns that go together make pairs longer than the box: cannot-links start and stop to cost on the way."""
    settings = {"metric": "full", "shared": shared}
    compared = 0
    for turn in range(30):
        rng = np.random.default_rng([seed, turn])
        along = rng.normal(size=24)
        X = np.column_stack([along, along * rng.choice([1, -1]) + 0.05 * rng.normal(size=24)])
        X[:5] += rng.choice([0.5, 2.0, 4.0]) * rng.normal(size=(5, 2))
        known, penalty = Constraints.sample(rng.integers(2, size=24), 40, random_state=turn), float(rng.choice([1, 10]))
        model = MPCKMeans(2, penalty=penalty, n_init=1, random_state=turn, **settings).fit(X, constraints=known)
        if len(np.unique(model.labels_)) < 2:
            continue
        for _ in range(20):
            shape = rng.normal(scale=rng.choice([0.01, 0.1, 0.3]), size=(2, 2)) + np.eye(2)
            other = np.array([shape @ form @ shape.T for form in model.metrics_])
            rest = (X, known, places(model), model.cluster_centers_)
            found, changed = (reference.objective(*rest, m, penalty, **settings) for m in (model.metrics_, other))
            assert found == pytest.approx(model.objective_)
            assert found <= changed + 0.005 * abs(changed)
        compared += 1
    assert compared > 10
