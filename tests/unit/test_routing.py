"""`constraints` through pipelines, cross-validation and grid search."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from clew import Constraints, COPKMeans, PCKMeans
from clew._registry import all_estimators
from clew.exceptions import ConstraintError
from tests.helpers import OF_ROWS, made

every_class = pytest.mark.parametrize("cls", [cls for cls in OF_ROWS if cls._capabilities.predicts])


@pytest.fixture
def data(seed):
    rng = np.random.default_rng(seed)
    y = np.resize([0, 1, 2], 60)
    X = np.array([[9, 0], [0, 9], [-7, -7]])[y] + rng.normal(size=(60, 2))
    return X, y, Constraints.sample(y, 40, balance=0.5, random_state=seed)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def seen(monkeypatch):
    """(rows, constraints) of every fit that follows."""
    calls, outer = [], []
    for cls in all_estimators("clusterer"):

        def fit(self, X, y=None, *, _fit=cls.fit, **known):
            if "constraints" in known and not outer:  # not a fit within a fit
                calls.append((np.asarray(X), known["constraints"]))
            outer.append(self)
            try:
                return _fit(self, X, y, **known)
            finally:
                outer.pop()

        monkeypatch.setattr(cls, "fit", fit)
    return calls


def assert_sliced(calls, X, y, known):
    """Every fit saw the constraints of its own rows, true ones only, and as many as those rows allow."""
    row_of = {tuple(row): place for place, row in enumerate(X.tolist())}
    for rows, part in calls:
        places = np.array([row_of[tuple(row)] for row in rows.tolist()])
        assert len(part) == len(rows)
        assert part == known[places]
        assert (y[places][part.must_link[:, 0]] == y[places][part.must_link[:, 1]]).all()
        assert (y[places][part.cannot_link[:, 0]] != y[places][part.cannot_link[:, 1]]).all()


@every_class
def test_pipelines_pass_constraints_by_the_name_of_the_step(cls, data):
    X, _, known = data
    pipe = Pipeline([("scale", StandardScaler()), ("cluster", made(cls, 3, random_state=0))])
    pipe.fit(X, cluster__constraints=known)
    alone = made(cls, 3, random_state=0).fit(StandardScaler().fit_transform(X), constraints=known)
    assert (pipe[-1].labels_ == alone.labels_).all()
    assert (pipe.predict(X) == alone.predict(StandardScaler().fit_transform(X))).all()
    if hasattr(cls, "transform"):
        assert pipe.transform(X).shape == (60, 2 if cls._capabilities.embeds else 3)
    assert (pipe.fit_predict(X, cluster__constraints=known) == alone.labels_).all()


@every_class
def test_routed_pipelines_pass_constraints_and_weights(cls, data, routing):
    X, _, known = data
    given = {"constraints": known}
    if cls._capabilities.sample_weight:
        given["sample_weight"] = np.linspace(1, 2, 60)
    step = made(cls, 3, random_state=0).set_fit_request(**dict.fromkeys(given, True))
    scale = StandardScaler().set_fit_request(sample_weight=False)
    pipe = make_pipeline(scale, step).fit(X, **given)
    alone = made(cls, 3, random_state=0).fit(StandardScaler().fit_transform(X), **given)
    assert (pipe[-1].labels_ == alone.labels_).all()


@every_class
def test_cross_validation_slices_constraints(cls, data, routing, seen):
    X, y, known = data
    model = made(cls, 3, random_state=0).set_fit_request(constraints=True)
    folds = KFold(4, shuffle=True, random_state=0)
    result = cross_validate(model, X, y, cv=folds, params={"constraints": known}, scoring="adjusted_rand_score")
    assert result["test_score"].shape == (4,)
    assert [len(rows) for rows, _ in seen] == [45] * 4
    assert_sliced(seen, X, y, known)
    assert sum(len(part.must_link) + len(part.cannot_link) for _, part in seen) > 40


def test_grid_search_slices_constraints(data, routing, seen):
    X, y, known = data
    model = PCKMeans(3, random_state=0).set_fit_request(constraints=True)
    grid = GridSearchCV(model, {"penalty": [0, 1.0]}, scoring="adjusted_rand_score", cv=3).fit(X, y, constraints=known)
    assert len(seen) == 2 * 3 + 1
    assert_sliced(seen, X, y, known)
    assert seen[-1][1] == known
    assert grid.best_estimator_.labels_.shape == (60,)


def test_grid_search_over_a_pipeline(data, routing, seen):
    X, y, known = data
    pipe = make_pipeline(StandardScaler(), COPKMeans(3, random_state=0).set_fit_request(constraints=True))
    grid = GridSearchCV(pipe, {"copkmeans__n_init": [1, 2]}, scoring="adjusted_rand_score", cv=3)
    grid.fit(X, y, constraints=known)
    assert sorted(len(part) for _, part in seen) == [40] * 6 + [60]
    assert grid.best_score_ > 0.5


def test_what_a_fold_leaves_out_still_proves_what_it_proved(data, routing, seen):
    """Rows 0 and 6 are joined through row 3 only; the folds without row 3 keep that."""
    X, y, _ = data
    known = Constraints(must_link=[(0, 3), (3, 6)], cannot_link=[(3, 1)], n_samples=60)
    model = COPKMeans(3, random_state=0).set_fit_request(constraints=True)
    folds = [(np.delete(np.arange(60), [3, 59]), [3, 59])]
    cross_validate(model, X, y, cv=folds, params={"constraints": known}, scoring="adjusted_rand_score")
    [(_, part)] = seen
    closed = part.closure()
    assert closed.component_of[0] == closed.component_of[5]
    assert closed.component_of[1] in closed.graph.neighbours(int(closed.component_of[0]))


@every_class
def test_constraints_that_do_not_know_their_rows_cannot_be_sliced(cls, data, routing):
    X, y, _ = data
    model = made(cls, 3, random_state=0).set_fit_request(constraints=True)
    known = Constraints(must_link=[(0, 3)])
    with pytest.raises(
        ConstraintError, match=r"The number of rows of these constraints is unknown.* Pass n_samples=len\(X\)"
    ):
        cross_validate(model, X, y, params={"constraints": known}, scoring="adjusted_rand_score", error_score="raise")


@every_class
def test_labels_with_unknowns_are_sliced_too(cls, data, routing, seen):
    X, y, _ = data
    known = np.where(np.arange(60) % 4 == 0, y, -1)
    model = made(cls, 3, random_state=0).set_fit_request(constraints=True)
    scores = cross_val_score(model, X, y, cv=4, params={"constraints": known}, scoring="accuracy")
    assert [len(part) for _, part in seen] == [45] * 4
    # Class numbers are kept, so plain accuracy means something. Three large classes are no task for record matching.
    assert scores.min() > (0.4 if model.capabilities.tables else 0.5)


@every_class
def test_requests_survive_clone(cls, routing):
    model = clone(cls().set_fit_request(constraints=True))
    assert model.get_metadata_routing().fit.requests["constraints"] is True
