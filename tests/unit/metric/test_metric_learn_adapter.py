"""Learners with the interface of metric-learn get constraints in the form that they take."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline

from clew import Constraints, MetricLearnAdapter
from clew.exceptions import ConstraintError, DataTypeError, FileError, ParameterError

X = np.arange(12.0).reshape(6, 2) ** 2
KNOWN = Constraints(
    [(0, 1), (1, 2)], [(0, 3), (2, 4), (1, 5)], triplets=[(5, 4, 0)], n_samples=6, cannot_link_confidence=[1, 1, 0.4]
)


class Double(BaseEstimator):
    """What all learners share: a linear map."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def keep(self, *given):
        self.given_, self.components_ = given, np.array([[2.0, 0.0]])
        return self

    def transform(self, X):
        return X @ self.components_.T


class Pairs(Double):
    def fit(self, pairs, y):
        return self.keep(pairs, y)


class Triplets(Double):
    def fit(self, triplets):
        return self.keep(triplets)


class Quadruplets(Double):
    def fit(self, quadruplets, weights=None):
        return self.keep(quadruplets)


class Chunks(Double):
    def fit(self, X, chunks):
        return self.keep(X, chunks)


class Labels(Double):
    def fit(self, X, y):
        return self.keep(X, y)


class Outdated(Double):
    def fit(self, pairs, y):
        raise TypeError("check_array() got an unexpected keyword argument 'force_all_finite'")


def given_to(learner, known, **options):
    return MetricLearnAdapter(learner, random_state=0, **options).fit(X, constraints=known).learner_.given_


def test_each_kind_of_learner_gets_its_own_form():
    pairs, y = given_to(Pairs(), KNOWN)
    assert (pairs == X[[(0, 1), (1, 2), (0, 3), (1, 5), (2, 4)]]).all()
    assert y.tolist() == [1, 1, -1, -1, -1]
    assert len(given_to(Pairs(), KNOWN, min_confidence=0.5)[0]) == 4
    assert (given_to(Triplets(), KNOWN)[0] == X[[(5, 4, 0)]]).all()
    expected = [(5, 4, 5, 0), (0, 1, 0, 3), (1, 2, 1, 5), (0, 1, 2, 4)]
    assert (given_to(Quadruplets(), KNOWN)[0] == X[expected]).all()
    assert given_to(Chunks(), KNOWN)[1].tolist() == [0, 0, 0, -1, -1, -1]
    rows, labels = given_to(Labels(), Constraints(labels=[1, -1, 0, -1, -1, 0]))
    assert (rows == X[[0, 2, 5]]).all()
    assert labels.tolist() == [1, 0, 0]


def test_it_maps_rows_in_a_pipeline_and_leaves_the_learner_alone():
    learner = Pairs()
    model = MetricLearnAdapter(learner, random_state=3).fit(X.astype(np.float32), constraints=KNOWN)
    assert not hasattr(learner, "components_")
    assert model.learner_.random_state is not None
    assert model.transform(X).tolist() == (2 * X[:, :1]).tolist()
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.get_feature_names_out().tolist() == ["metriclearnadapter0"]
    assert isinstance(clone(model).learner, Pairs)
    with sklearn.config_context(enable_metadata_routing=True):
        adapter = MetricLearnAdapter(Pairs()).set_fit_request(constraints=True)
        chain = make_pipeline(adapter, KMeans(2, n_init=1, random_state=0)).fit(X, constraints=KNOWN)
    assert len(chain.predict(X)) == 6


def test_wrong_input_is_refused(tmp_path):
    for learner, known, message in (
        (Pairs(), None, "Pairs learns from pairs, and constraints hold none. Add must-links and cannot-links"),
        (Triplets(), {"must_link": [(0, 1)]}, "Triplets learns from triplets, and constraints hold none"),
        (Quadruplets(), {"must_link": [(0, 1)]}, "Quadruplets learns from quadruplets, .* Add pairs of both kinds"),
        (Chunks(), {"cannot_link": [(0, 1)]}, "Chunks learns from chunks of must-linked rows, .* Add must-links"),
        (Labels(), {"must_link": [(0, 1)]}, "Labels learns from labels of two classes or more, .* Add labels"),
    ):
        with pytest.raises(ConstraintError, match=message):
            MetricLearnAdapter(learner).fit(X, constraints=known)
    with pytest.raises(ParameterError, match="learner=3 in MetricLearnAdapter: expected a learner of metric-learn"):
        MetricLearnAdapter(3).fit(X)
    with pytest.raises(DataTypeError, match=r"Outdated failed: .*force_all_finite.* needs scikit-learn below 1\.8"):
        MetricLearnAdapter(Outdated()).fit(X, constraints=KNOWN)
    with pytest.raises(FileError, match="cannot be saved without pickle"):
        MetricLearnAdapter(Pairs()).fit(X, constraints=KNOWN).save(tmp_path / "metric.clew")


@pytest.mark.skipif(
    importlib.util.find_spec("metric_learn") is None or tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8),
    reason="metric-learn and scikit-learn below 1.8, which metric-learn 0.7 needs, are not installed",
)
@pytest.mark.filterwarnings("ignore")  # of the package
def test_learners_of_the_package_itself():
    import metric_learn

    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    rows = rng.normal(size=(60, 3)) + 4 * np.eye(3)[y]
    known = Constraints.sample(y, 40, balance=0.5, random_state=0) | Constraints(
        labels=np.where(np.arange(60) < 20, y, -1), triplets=[(a, a + 3, a + 4) for a in range(40)]
    )
    for name in ("ITML", "MMC", "SCML", "LSML", "RCA", "NCA", "LMNN", "ITML_Supervised"):
        model = MetricLearnAdapter(getattr(metric_learn, name)(), random_state=0).fit(rows, constraints=known)
        np.testing.assert_allclose(model.transform(rows), model.learner_.transform(rows))
