"""Laws that every alternative clusterer keeps on every scenario."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import clew
from clew import Constraints
from clew._registry import all_estimators
from clew.evaluation import normalized_mutual_info_score, same_partition, variation_of_information
from clew.exceptions import ConstraintError, DataError, FewerClustersWarning, UnusedKnowledgeWarning
from tests.conformance.scenarios import SCENARIOS, build
from tests.conformance.test_laws import assert_same_params, assert_same_state, learned

EXAMPLES = [
    pytest.param(example, id=f"{cls.__name__}{number}")
    for cls in all_estimators("alternative clusterer")
    for number, example in enumerate(cls._examples())
]
_LAWS = []


def law(check):
    _LAWS.append(check)
    return check


def given_of(case):
    """Known clusters that have nothing to do with the hidden ones; the last row is noise."""
    given = np.arange(len(case.X)) // 2 % 2
    given[-1] = -1 if len(given) > 4 else given[-1]
    return given


def fit(estimator, case, **others):
    options = {"given": given_of(case), "constraints": case.constraints, **others}
    return clone(estimator).fit(case.X, **options)


@law
def labels_are_one_cluster_per_row(estimator, case, tmp_path):
    model = fit(estimator, case)
    assert model.labels_.shape == (len(case.X),)
    assert (model.labels_ >= 0).all()
    assert model.cluster_sizes_.tolist() == [(model.labels_ == label).sum() for label in model.cluster_labels_]
    assert model.cluster_sizes_.sum() == len(case.X)
    for found, expected in zip(
        (model.violated_must_link_, model.violated_cannot_link_),
        case.constraints.violations(model.labels_),
        strict=True,
    ):
        assert found.tolist() == expected.tolist()


@law
def inputs_are_untouched_and_the_same_seed_gives_the_same_clusters(estimator, case, tmp_path):
    X, given = case.X.copy(), given_of(case)
    X.flags.writeable = given.flags.writeable = False
    options = {"given": given, "constraints": case.constraints}
    assert_same_state(clone(estimator).fit(X, **options), clone(estimator).fit(X, **options))
    assert (X == case.X).all()
    assert (clone(estimator).fit_predict(X, **options) == fit(estimator, case).labels_).all()


@law
def names_of_the_given_clusters_do_not_matter(estimator, case, tmp_path):
    expected, given = fit(estimator, case), given_of(case)
    for other in (np.where(given < 0, given, 9 - given), given.astype(float), given.tolist(), pd.Series(given)):
        assert_same_state(expected, fit(estimator, case, given=other))
    if (given >= 0).all():
        assert_same_state(expected, fit(estimator, case, given=np.array(["right", "left"])[given]))


@law
def the_difference_to_the_given_clusters_is_reported(estimator, case, tmp_path):
    model, given = fit(estimator, case), given_of(case)
    known = given >= 0
    numbers = np.unique(model.labels_, return_inverse=True)[1]
    for score, found in (
        (variation_of_information, model.variation_of_information_),
        (normalized_mutual_info_score, model.normalized_mutual_info_),
    ):
        assert found == pytest.approx(score(given[known], numbers[known]), abs=1e-12)


@law
def an_estimator_is_copied_saved_and_loaded(estimator, case, tmp_path):
    model = fit(estimator, case)
    model.save(tmp_path / "other.clew")
    for twin in (clew.load(tmp_path / "other.clew"), pickle.loads(pickle.dumps(model))):
        assert_same_params(model, twin)
        assert_same_state(model, twin)
    assert learned(clone(model)) == {}


@law
def frames_lists_and_sparse_rows_are_like_arrays(estimator, case, tmp_path):
    expected = fit(estimator, case).labels_
    frame = pd.DataFrame(case.X, columns=[f"column {place}" for place in range(case.X.shape[1])])
    options = {"given": given_of(case), "constraints": case.constraints}
    for X in (frame, case.X.tolist(), np.asfortranarray(case.X)):
        assert (clone(estimator).fit(X, **options).labels_ == expected).all()
    if estimator.capabilities.sparse and case.generic:
        found = clone(estimator).fit(sparse.csr_array(case.X), **options).labels_
        assert same_partition(found, expected)


@law
def the_objective_never_rises(estimator, case, tmp_path):
    history = getattr(fit(estimator, case), "objective_history_", np.zeros(1))
    assert (np.diff(history) <= 1e-9).all()


@law
def fewer_clusters_than_asked_for_are_explained(estimator, case, tmp_path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = fit(estimator, case, constraints=None)
    n_found = len(np.unique(model.labels_))
    assert [one.category for one in said] == [FewerClustersWarning] * (n_found < model.n_clusters)


CASES = [
    pytest.param(check, example.values[0], scenario, id=f"{example.id}-{check.__name__}-{'-'.join(scenario)}")
    for example in EXAMPLES
    for check in _LAWS
    for scenario in SCENARIOS
]


@pytest.mark.sampled(58, slow=29)
@pytest.mark.filterwarnings("ignore::clew.exceptions.UnusedKnowledgeWarning")
@pytest.mark.parametrize(("check", "example", "scenario"), CASES)
def test_law(check, example, scenario, seed, tmp_path):
    case = build(scenario, example, seed)
    try:
        fit(example, case)
    except DataError as error:
        reasons = ("given has one cluster", "All rows of each given cluster are equal", "Every count in X is 0")
        assert str(error).startswith(reasons), str(error)  # noqa: PT017 too little data for two groupings
        assert scenario[0] in ("as_many_rows_as_clusters", "equal_rows", "duplicates"), str(error)  # noqa: PT017
    else:
        check(clone(example), case, tmp_path)


def two_groupings(n_each=8):
    """Rows in four corners, whose two groupings are the columns."""
    rng = np.random.default_rng(0)
    first, second = np.repeat([0, 0, 1, 1], n_each), np.repeat([0, 1, 0, 1], n_each)
    return np.column_stack([9 * first, 6 * second]) + rng.uniform(0, 1, size=(len(first), 2)) + 1, first, second


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_order_of_rows_does_not_matter(example, seed):
    X, first, second = two_groupings()
    if example.capabilities.counts:
        X = np.column_stack([X, X.max(axis=0) + 1 - X]).round()
    order = np.random.default_rng(seed).permutation(len(X))
    # With these, the second grouping is the best answer and not one of several.
    wanted = {"n_clusters": 2, "n_local_clusters": 2, "coordination": 0.2, "min_information": 0.0}
    model = clone(example)
    model.set_params(**{name: value for name, value in wanted.items() if name in model.get_params()})
    here = clone(model).fit(X, given=first).labels_
    there = clone(model).fit(X[order], given=first[order]).labels_
    assert same_partition(here[order], there)
    assert same_partition(here, second)


@pytest.mark.parametrize("example", EXAMPLES)
def test_bad_input_is_refused_with_its_reason(example):
    X, first, _ = two_groupings()
    for wrong, message in (
        (first[:-1], r"given has shape \(31,\), but X has 32 rows\. Give one label per row"),
        (first[:, None], r"given has shape \(32, 1\), but X has 32 rows"),
        (np.full(32, "all"), r"given has one cluster \(all\): expected two or more"),
        (np.where(first == 0, 4, -1), r"given has one cluster \(4\): expected two or more"),
        (np.full(32, -1), r"given has noise only \(-1\): expected two or more"),
        (np.where(first == 0, np.nan, 1.0), r"given\[0\] is nan\. Give every row a label"),
        ([None, *first[1:].tolist()], "expected one label per row, all numbers or all text"),
    ):
        with pytest.raises(DataError, match=message):
            clone(example).fit(X, given=wrong)
    with pytest.raises(DataError, match=r"n_clusters=40, but X has n_samples=32 rows"):
        clone(example).set_params(n_clusters=40).fit(X, given=first)
    for y in ({"must_link": [(0, 1)]}, Constraints([(0, 1)], n_samples=32)):
        with pytest.raises(ConstraintError, match="ignores y"):
            clone(example).fit(X, y, given=first)
    can = example.capabilities
    for kind in ("must_link", "cannot_link"):
        if getattr(can, kind) == "ignored":
            with pytest.warns(UnusedKnowledgeWarning, match=f"ignores the {kind} in constraints. Use CondEns"):
                clone(example).fit(X, given=first, constraints={kind: [(0, 1)]})
