"""MahalanobisLearner against its objective in plain loops, and against a general solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import Constraints, MahalanobisLearner
from clew.metric import _pairs
from clew.metric._mahalanobis_learner import _with_trace_one
from clew.metric._pairs import learning_pairs
from tests.helpers import random_knowledge
from tests.reference import mahalanobis_learner as reference


def some_rows(seed, n_columns=2, n=14):
    """Rows, pairs of both kinds, and their confidences."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns)) * rng.uniform(0.2, 5, n_columns)
    y = rng.integers(3, size=n)
    y[:4] = [0, 0, 1, 1]
    drawn = Constraints.sample(y, 20, balance=0.5, random_state=int(seed))
    return X, drawn, rng.choice([0.5, 1.0], len(drawn.must_link)), rng.choice([0.5, 1.0], len(drawn.cannot_link))


def fitted(settings, X, drawn, sure, sure_apart):
    known = Constraints(
        drawn.must_link, drawn.cannot_link, must_link_confidence=sure, cannot_link_confidence=sure_apart
    )
    return MahalanobisLearner(tol=1e-7, max_iter=5000, **settings).fit(X, constraints=known)


@pytest.mark.parametrize("metric", ["full", "diagonal"])
@pytest.mark.parametrize("regularization", [0.0, 0.3])
@pytest.mark.parametrize("draw", range(4))
def test_no_general_solver_finds_a_better_metric(metric, regularization, draw, seed):
    X, drawn, sure, sure_apart = some_rows(100 * seed + draw)
    model = fitted({"metric": metric, "regularization": regularization}, X, drawn, sure, sure_apart)
    parts = (X.tolist(), drawn.must_link, sure, drawn.cannot_link, sure_apart, regularization)
    stated = reference.objective(model.metric_matrix_.tolist(), *parts)
    # SciPy stops within about 1e-7 of the lowest value, ours within tol
    assert stated == pytest.approx(model.objective_, abs=1e-9)
    assert stated == pytest.approx(reference.solved(*parts, diagonal=metric == "diagonal"), abs=2e-6)


@pytest.mark.parametrize("metric", ["full", "diagonal"])
def test_no_small_change_of_the_metric_lowers_the_objective(metric, seed):
    X, drawn, sure, sure_apart = some_rows(seed, n_columns=4, n=20)
    model = fitted({"metric": metric}, X, drawn, sure, sure_apart)
    parts = (X.tolist(), drawn.must_link, sure, drawn.cannot_link, sure_apart, model.regularization)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        change = rng.normal(size=(4, 4)) if metric == "full" else np.diag(rng.normal(size=4))
        changed = model.metric_matrix_ + 1e-3 * np.abs(model.metric_matrix_).max() * change @ change.T
        assert reference.objective(changed.tolist(), *parts) >= model.objective_ - 1e-6
    assert np.allclose(model.components_ @ model.components_, model.metric_matrix_)
    assert (np.diff(model.objective_history_) <= 1e-12).all()
    if metric == "diagonal":
        assert (model.metric_matrix_ == np.diag(np.diag(model.metric_matrix_))).all()


@given(st.lists(st.floats(-3, 3), min_size=9, max_size=9))
def test_projection_is_the_nearest_matrix_of_trace_one(entries):
    """The nearest point of a convex set is the one that makes no acute angle with any other point of the set."""
    matrix = np.array(entries).reshape(3, 3)
    matrix = matrix + matrix.T
    nearest = _with_trace_one(matrix)
    assert np.trace(nearest) == pytest.approx(1)
    assert np.linalg.eigvalsh(nearest)[0] >= -1e-12
    for vector in np.vstack([np.eye(3), np.ones(3) / np.sqrt(3), np.linalg.eigh(matrix - nearest)[1].T]):
        assert np.vdot(matrix - nearest, np.outer(vector, vector) - nearest) <= 1e-9


@given(seed=st.integers(0, 2**16), scale=st.floats(0.01, 100), metric=st.sampled_from(["full", "diagonal"]))
def test_units_of_columns_do_not_matter(seed, scale, metric):
    X, drawn, sure, sure_apart = some_rows(seed)
    one, other = (fitted({"metric": metric}, rows, drawn, sure, sure_apart) for rows in (X, X * [1.0, scale]))
    rows, others = one.transform(X), other.transform(X * [1.0, scale])
    distances, other_distances = (np.linalg.norm(Z[:, None] - Z[None], axis=-1) for Z in (rows, others))
    np.testing.assert_allclose(
        distances / distances.max(), other_distances / other_distances.max(), atol=2e-2
    )  # both are within tol of the lowest objective, which is flat
    assert one.objective_ == pytest.approx(other.objective_, abs=1e-6)


def test_pairs_of_all_kinds_of_constraints(seed):
    rng = np.random.default_rng(seed)
    for turn in range(20):
        known = random_knowledge(rng, 9, sure=turn % 2 == 0) | Constraints(triplets=[(0, 1, 2)], n_samples=9)
        found = learning_pairs(known, rng, triplets=True)
        near, far = {(0, 1): 1.0}, {(0, 2): 1.0}
        for pairs, links, sure in (
            (near, known.must_link, known.must_link_confidence), (far, known.cannot_link, known.cannot_link_confidence)
        ):  # fmt: skip
            for (i, j), confidence in zip(np.sort(links, axis=1).tolist(), sure, strict=True):
                pairs[i, j] = max(confidence, pairs.get((i, j), 0.0))
        for i in range(9):
            for j in range(i + 1, 9):
                for pairs, columns in ((near, known.must_groups), (far, known.cannot_groups)):
                    for column in [] if columns is None else np.atleast_2d(columns.T):
                        if column[i] == column[j] >= 0:
                            pairs[i, j] = 1.0
                if known.labels is not None and min(known.labels[i], known.labels[j]) >= 0:
                    (near if known.labels[i] == known.labels[j] else far)[i, j] = 1.0
        for got, expected in zip(found, (near, far), strict=True):
            assert dict(zip(map(tuple, got.pairs.tolist()), got.weights.tolist(), strict=True)) == expected


def test_very_many_pairs_are_sampled(monkeypatch):
    monkeypatch.setattr(_pairs, "_MOST_PAIRS", 40)
    y = np.arange(60) % 3
    found = learning_pairs(Constraints(labels=y), np.random.default_rng(0))
    for pairs, same in ((found.near.pairs, True), (found.far.pairs, False)):
        assert 20 < len(pairs) <= 40
        assert ((y[pairs[:, 0]] == y[pairs[:, 1]]) == same).all()
