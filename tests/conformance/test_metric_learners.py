"""Laws that every metric learner keeps on every scenario."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import clew
from clew import Constraints
from clew._registry import all_estimators
from clew.exceptions import ConstraintError, DataError, UnusedKnowledgeWarning
from clew.metric._pairs import learning_pairs
from tests.conformance.scenarios import SCENARIOS, build
from tests.conformance.test_laws import assert_same_params, assert_same_state, learned
from tests.conformance.toys import ToyScaling

LEARNERS = [*all_estimators("metric learner"), ToyScaling]
EXAMPLES = [
    pytest.param(example, id=f"{cls.__name__}{number}")
    for cls in LEARNERS
    for number, example in enumerate(cls._examples())
]
_LAWS = []


def law(check):
    _LAWS.append(check)
    return check


def fit(estimator, case):
    return clone(estimator).fit(case.X, constraints=case.constraints)


def mapped(model, X):
    """The fitted rows in the learned space."""
    return model.transform(X) if model.capabilities.predicts else model.embedding_


@law
def rows_are_mapped_one_by_one(estimator, case, tmp_path):
    model = fit(estimator, case)
    rows = mapped(model, case.X)
    assert rows.shape == (len(case.X), len(model.get_feature_names_out()))
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(
        clone(estimator).fit_transform(case.X, constraints=case.constraints), rows, strict=True
    )
    if model.capabilities.predicts:
        np.testing.assert_allclose(model.transform(case.X[::2]), rows[::2], rtol=1e-9, atol=1e-9)


@law
def inputs_are_untouched_and_the_same_seed_gives_the_same_metric(estimator, case, tmp_path):
    before = case.X.copy()
    assert_same_state(fit(estimator, case), fit(estimator, case))
    np.testing.assert_array_equal(case.X, before)


@law
def order_direction_and_repeats_of_pairs_do_not_matter(estimator, case, tmp_path):
    known = case.constraints
    turned = {"must_link": known.must_link[::-1, ::-1], "cannot_link": known.cannot_link[::-1, ::-1]}
    sure = {f"{name}_confidence": getattr(known, f"{name}_confidence")[::-1] for name in turned}
    again = known | Constraints(**turned, **sure, n_samples=len(case.X))
    other = clone(estimator).fit(case.X, constraints=again)
    scale = np.abs(case.X).max()
    if estimator.__class__ is not ToyScaling:  # which counts every statement
        np.testing.assert_allclose(mapped(other, case.X), mapped(fit(estimator, case), case.X), atol=1e-6 * scale)


@law
def a_learner_is_copied_saved_and_loaded(estimator, case, tmp_path):
    model = fit(estimator, case)
    model.save(tmp_path / "metric.clew")
    for twin in (clew.load(tmp_path / "metric.clew"), pickle.loads(pickle.dumps(model))):
        assert_same_params(model, twin)
        assert_same_state(model, twin)
        np.testing.assert_array_equal(mapped(twin, case.X), mapped(model, case.X))
    assert learned(clone(model)) == {}


@law
def frames_lists_and_single_precision_are_like_arrays(estimator, case, tmp_path):
    rows = mapped(fit(estimator, case), case.X)
    frame = pd.DataFrame(case.X, columns=[f"column {place}" for place in range(case.X.shape[1])])
    for X in (frame, case.X.tolist(), np.asfortranarray(case.X)):
        np.testing.assert_array_equal(mapped(clone(estimator).fit(X, constraints=case.constraints), X), rows)
    single = clone(estimator).fit(case.X.astype(np.float32), constraints=case.constraints)
    assert mapped(single, case.X.astype(np.float32)).dtype == np.float32


CASES = [
    pytest.param(check, example.values[0], scenario, id=f"{example.id}-{check.__name__}-{'-'.join(scenario)}")
    for example in EXAMPLES
    for check in _LAWS
    for scenario in SCENARIOS
]


def can_learn(case):
    """Whether there are pairs of both kinds, or none at all, and cannot-linked rows that differ."""
    pairs = learning_pairs(case.constraints, np.random.default_rng(0))
    if not len(pairs.near.pairs) or not len(pairs.far.pairs):
        return not len(pairs.near.pairs) and not len(pairs.far.pairs)
    return bool(pairs.far.differences(case.X).any())


@pytest.mark.sampled(16, slow=8)
@pytest.mark.parametrize(("check", "example", "scenario"), CASES)
def test_law(check, example, scenario, seed, tmp_path, toys):
    case = build(scenario, example, seed)
    if example.capabilities.needs_both_kinds and not can_learn(case):
        with pytest.raises((ConstraintError, DataError), match=r"learns from both|are equal in X"):
            fit(example, case)
    else:
        check(clone(example), case, tmp_path)


@pytest.mark.parametrize("example", EXAMPLES)
def test_capabilities_say_whether_new_rows_are_mapped(example):
    assert example.capabilities.predicts == hasattr(example, "transform")
    assert get_tags(example).input_tags.sparse == example.capabilities.sparse
    with pytest.raises(NotFittedError, match=f"{type(example).__name__} instance is not fitted"):
        example.get_feature_names_out()


@pytest.mark.parametrize("example", EXAMPLES)
def test_wrong_input_is_refused_and_knowledge_without_use_is_named(example, seed):
    case = build(("blobs", "pairs"), example, seed)
    for y in (case.constraints, {"must_link": [(0, 1)]}):
        with pytest.raises(ConstraintError, match="ignores y"):
            clone(example).fit(case.X, y)
    with pytest.raises(DataError, match="NaN"):
        clone(example).fit(np.full((5, 2), np.nan))
    if example.capabilities.triplets == "ignored":
        with pytest.warns(UnusedKnowledgeWarning, match="ignores the triplets"):
            clone(example).fit(case.X, constraints=case.constraints | Constraints(triplets=[(0, 1, 2)], n_samples=30))
