"""Laws that every registered estimator keeps on every scenario; which ones apply is read from its capabilities."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import clew
from clew import Constraints
from clew._registry import all_estimators
from clew.evaluation import constraint_satisfaction, evaluate, same_partition
from clew.exceptions import ConstraintError, DataError, FewerClustersWarning, UnusedKnowledgeWarning
from tests.conformance.scenarios import SCENARIOS, build, n_clusters_of
from tests.conformance.toys import ToyMedoids
from tests.reference.assign import broken, given_pairs

_LAWS = []


def law(applies=lambda capabilities: True):
    """Register a check for the estimators whose capabilities `applies` accepts."""

    def register(check):
        _LAWS.append((check, applies))
        return check

    return register


def checks_for(capabilities):
    return [check for check, applies in _LAWS if applies(capabilities)]


def fit(estimator, case, **params):
    return clone(estimator).set_params(**params).fit(case.X, constraints=case.constraints)


def learned(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def assert_same_state(first, second):
    assert learned(first).keys() == learned(second).keys()
    for name, value in learned(first).items():
        if sparse.issparse(value):
            np.testing.assert_array_equal(value.toarray(), learned(second)[name].toarray(), err_msg=name)
            continue
        np.testing.assert_array_equal(value, learned(second)[name], err_msg=name, strict=True)


def assert_same_params(first, second):
    mine, theirs = first.get_params(), second.get_params()
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)


def one_start(estimator):
    """Several starts that end alike differ by rounding, and which of them is kept may differ between forms of data."""
    if "n_init" in estimator.get_params():
        estimator.set_params(n_init=1)


def together(labels, i, j):
    """Whether two rows are in one cluster; noise is together with nobody."""
    return labels[i] == labels[j] != -1


def alone(labels):
    """The labels with a number of its own for each noise row."""
    return np.where(labels < 0, labels.max() + 1 + np.arange(len(labels)), labels)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@law()
def inputs_are_left_alone(estimator, case, tmp_path):
    X, known = read_only(case.X), case.constraints[:]
    weights = read_only(np.linspace(1, 2, len(X)))
    params = clone(estimator).get_params()
    before = np.random.get_state()[1].copy()  # noqa: NPY002 the global state is what must not change
    options = {"sample_weight": weights} if estimator.capabilities.sample_weight else {}
    estimator.fit(X, constraints=case.constraints, **options)
    assert (X == case.X).all()
    assert case.constraints[:] == known
    assert (weights == np.linspace(1, 2, len(X))).all()
    assert estimator.get_params() == params
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@law()
def same_seed_same_result(estimator, case, tmp_path):
    first = fit(estimator, case)
    assert_same_state(first, fit(estimator, case))
    assert_same_state(first, clone(first).fit(case.X, None, constraints=case.constraints))
    if "random_state" not in estimator.get_params():
        return
    generators = [np.random.default_rng(5), np.random.default_rng(5)]
    assert_same_state(*(fit(estimator, case, random_state=generator) for generator in generators))
    states = [np.random.RandomState(5), np.random.RandomState(5)]
    assert_same_state(*(fit(estimator, case, random_state=state) for state in states))


@law()
def threads_do_not_change_the_result(estimator, case, tmp_path):
    if "n_jobs" in estimator.get_params():
        assert_same_state(fit(estimator, case), fit(estimator, case, n_jobs=2))


@law()
def labels_in_the_place_of_y_are_ignored(estimator, case, tmp_path):
    expected = fit(estimator, case)
    labels = case.hidden[::-1]
    for y in (labels, labels.tolist(), pd.Series(labels), labels[:, None], labels.astype(str)):
        assert_same_state(expected, clone(estimator).fit(case.X, y, constraints=case.constraints))


@law()
def fewer_clusters_than_asked_for_are_explained_once(estimator, case, tmp_path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", UnusedKnowledgeWarning)  # another law is about knowledge without use
        warnings.filterwarnings("ignore", "cannot_groups has only one value")  # a test of MatchClustering
        model = fit(estimator, case)
    n_found = len(np.unique(model.labels_[model.labels_ >= 0]))
    assert np.count_nonzero(model.cluster_sizes_) == n_found
    if not model.capabilities.needs_n_clusters or n_found == model.n_clusters:
        assert said == []
        return
    (warning,) = said
    assert warning.category is FewerClustersWarning
    assert f"{type(model).__name__} found {n_found} of {model.n_clusters} clusters: " in str(warning.message)
    assert Path(warning.filename) == Path(__file__)


@law()
def labels_are_one_cluster_per_row(estimator, case, tmp_path):
    model = fit(estimator, case)
    assert model.labels_.shape == (len(case.X),)
    assert np.issubdtype(model.labels_.dtype, np.integer)
    assert (model.labels_ >= (-1 if model.capabilities.noise else 0)).all()
    assert model.n_features_in_ == case.X.shape[1]
    assert (clone(estimator).fit_predict(case.X, constraints=case.constraints) == model.labels_).all()
    if hasattr(model, "cluster_sizes_"):
        assert model.cluster_sizes_.sum() == (model.labels_ >= 0).sum()
        assert model.cluster_sizes_.tolist() == [(model.labels_ == label).sum() for label in model.cluster_labels_]


@law()
def capabilities_are_what_an_instance_can_do(estimator, case, tmp_path):
    can = estimator.capabilities
    assert can.predicts == hasattr(estimator, "predict")
    assert can.streams == hasattr(estimator, "partial_fit")
    assert can.sample_weight == ("sample_weight" in inspect.signature(estimator.fit).parameters)
    tags = get_tags(estimator).input_tags
    assert (tags.sparse, tags.pairwise) == (can.sparse, can.pairwise is not None)
    assert can.needs_n_clusters == ("n_clusters" in estimator.get_params())
    if can.needs_n_clusters and estimator._parameters["n_clusters"].accepts("auto"):
        assert not clone(estimator).set_params(n_clusters="auto").capabilities.needs_n_clusters


@law()
def scores_and_violations_agree_about_noise(estimator, case, tmp_path):
    model = fit(estimator, case)
    split = alone(model.labels_)
    assert same_partition(model.labels_, split)
    assert evaluate(case.hidden, model.labels_) == evaluate(case.hidden, split)
    for labels in (model.labels_, split):
        must, cannot = case.constraints.violations(labels)
        assert (must.tolist(), cannot.tolist()) == (
            model.violated_must_link_.tolist(), model.violated_cannot_link_.tolist(),
        )  # fmt: skip
    assert constraint_satisfaction(model.labels_, case.constraints) == constraint_satisfaction(split, case.constraints)


@law(lambda can: can.pairwise is not None)
def matrices_that_are_none_are_refused(estimator, case, tmp_path):
    wrong = case.X.copy()
    wrong[0, 1] += 1
    refused = [(case.X[:, 1:], "expected a square matrix")]
    if not estimator.capabilities.asymmetric:
        refused.append((wrong, "rows 0 and 1 is .* one way and .* the other"))
    if estimator.capabilities.pairwise not in ("signed graph", "kernel"):
        refused.append((case.X - 99, "between rows 0 and 0 is -.*expected a finite number >= 0"))
    for X, message in refused:
        with pytest.raises(DataError, match=message):
            clone(estimator).fit(X)


@law(lambda can: can.counts)
def negative_counts_are_refused(estimator, case, tmp_path):
    wrong = case.X.copy()
    wrong[1, 0] = -2
    for X in (wrong, sparse.csr_array(wrong)):
        with pytest.raises(DataError, match=r"X\[1, 0\] is -2\. It takes counts"):
            clone(estimator).fit(X)


@law()
def violated_pairs_are_the_broken_ones(estimator, case, tmp_path):
    model = fit(estimator, case)
    stated = given_pairs(case.constraints)
    given = case.constraints.must_link, case.constraints.cannot_link
    listed = model.violated_must_link_, model.violated_cannot_link_
    for kind in range(2):
        breaks = [True, False][kind]
        pairs = [tuple(sorted(pair)) for pair in listed[kind].tolist()]
        truth = {(i, j) for i, j in stated[kind] if together(model.labels_, i, j) != breaks}
        assert set(pairs) <= truth
        assert {tuple(sorted(pair)) for pair in given[kind].tolist()} & truth <= set(pairs)
        assert bool(pairs) == bool(truth)


@law()
def copies_agree(estimator, case, tmp_path):
    model = fit(estimator, case)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_same_params(model, twin)
        assert_same_state(model, twin)
    assert learned(clone(model)) == {}
    assert_same_params(model, clone(model))


@law()
def a_saved_estimator_comes_back(estimator, case, tmp_path):
    path = tmp_path / "model.clew"
    model = fit(estimator, case)
    model.save(path)
    twin = clew.load(path)
    assert type(twin) is type(model)
    assert_same_params(model, twin)
    assert_same_state(model, twin)
    if model.capabilities.predicts:
        assert (twin.predict(case.X) == model.predict(case.X)).all()
    assert_same_state(model, twin.fit(case.X, constraints=case.constraints))
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.clew"]


@law()
def frames_and_lists_are_like_arrays(estimator, case, tmp_path):
    expected = fit(estimator, case)
    names = [f"column {place}" for place in range(case.X.shape[1])]
    for X in (pd.DataFrame(case.X, columns=names), pl.DataFrame(case.X, schema=names)):
        model = clone(estimator).fit(X, constraints=case.constraints)
        assert model.feature_names_in_.tolist() == names
        assert (model.labels_ == expected.labels_).all()
    for X in (case.X.tolist(), np.asfortranarray(case.X), np.repeat(case.X, 2, axis=0)[::2]):
        assert_same_state(expected, clone(estimator).fit(X, constraints=case.constraints))


@law()
def every_form_of_constraints_says_the_same(estimator, case, tmp_path):
    known = case.constraints
    fields = ("labels", "must_groups", "cannot_groups")
    form = {name: getattr(known, name) for name in fields if getattr(known, name) is not None}
    for name in ("must_link", "cannot_link"):
        form[name] = [tuple(pair) for pair in getattr(known, name).tolist()]
        form[f"{name}_confidence"] = getattr(known, f"{name}_confidence").tolist()
    path = tmp_path / "known.jsonl"
    known.to_file(path)
    forms = [form, Constraints(**form), path]
    if known.labels is not None and len(form) == 5 and not form["must_link"] and not form["cannot_link"]:
        forms += [known.labels.tolist(), known.labels, pd.Series(known.labels), read_only(known.labels)]
    expected = fit(estimator, case)
    for one in forms:
        assert_same_state(expected, clone(estimator).fit(case.X, constraints=one))


@law()
def order_direction_and_repeats_of_pairs_do_not_matter(estimator, case, tmp_path):
    known = case.constraints
    turned = {"must_link": known.must_link[::-1, ::-1], "cannot_link": known.cannot_link[::-1, ::-1]}
    sure = {f"{name}_confidence": getattr(known, f"{name}_confidence")[::-1] for name in turned}
    again = known | Constraints(**turned, **sure, n_samples=len(case.X))
    expected = fit(estimator, case)
    for other in (again, Constraints(**turned, **sure, n_samples=len(case.X)) | known):
        model = clone(estimator).fit(case.X, constraints=other)
        assert (model.labels_ == expected.labels_).all()


def held(estimator, case):
    """What a hard method keeps: everything, or everything certain."""
    return case.constraints.at_least(1.0) if estimator.capabilities.prices_doubt else case.constraints


@law(lambda can: can.must_link == "hard")
def must_links_hold(estimator, case, tmp_path):
    must, _ = given_pairs(held(estimator, case))
    model = fit(estimator, case)
    assert broken(must, {}, alone(model.labels_).tolist()) == 0
    if not estimator.capabilities.prices_doubt:
        assert model.violated_must_link_.shape == (0, 2)


@law(lambda can: can.cannot_link == "hard")
def cannot_links_hold(estimator, case, tmp_path):
    _, cannot = given_pairs(held(estimator, case))
    model = fit(estimator, case)
    assert broken({}, cannot, alone(model.labels_).tolist()) == 0
    if not estimator.capabilities.prices_doubt:
        assert model.violated_cannot_link_.shape == (0, 2)


@law(lambda can: can.labels == "hard")
def known_classes_are_kept(estimator, case, tmp_path):
    known = case.constraints.labels
    if known is None:
        known = case.hidden
    places = np.arange(n_clusters_of(estimator))
    for numbers in (places, places[::-1], 7 + 2 * places, 2**40 - 3 * places):
        classes = np.where(known >= 0, numbers[known], -1)
        labels = clone(estimator).fit(case.X, constraints=classes).labels_
        assert (labels[known >= 0] == classes[known >= 0]).all()
        if estimator.capabilities.needs_n_clusters:
            assert len(np.unique(labels)) <= estimator.n_clusters


@law(lambda can: can.must_link == "hard")
def entailed_pairs_change_nothing(estimator, case, tmp_path):
    closed = held(estimator, case).closure()
    component, graph = closed.component_of, closed.graph
    must, cannot = [], []
    for i, j in combinations(range(len(case.X)), 2):
        if component[i] == component[j]:
            must.append((i, j))
        elif component[j] in graph.neighbours(int(component[i])):
            cannot.append((i, j))
    more = case.constraints | Constraints(must, cannot, n_samples=len(case.X))
    model = clone(estimator).fit(case.X, constraints=more)
    assert (model.labels_ == fit(estimator, case).labels_).all()


@law(lambda can: can.must_link == "hard" and can.cannot_link == "hard")
def all_pairs_of_a_labelling_give_it_back(estimator, case, tmp_path):
    pairs = list(combinations(range(len(case.X)), 2))
    same = [case.hidden[i] == case.hidden[j] for i, j in pairs]
    known = Constraints(np.array(pairs)[same], np.array(pairs)[~np.array(same)], n_samples=len(case.X))
    assert same_partition(clone(estimator).fit(case.X, constraints=known).labels_, case.hidden)
    groups = Constraints(must_groups=case.hidden) | Constraints(labels=np.full(len(case.X), -1))
    apart = Constraints(cannot_link=known.cannot_link, n_samples=len(case.X))
    assert same_partition(clone(estimator).fit(case.X, constraints=groups | apart).labels_, case.hidden)


@law(lambda can: can.monotone)
def the_objective_never_rises(estimator, case, tmp_path):
    model = fit(estimator, case)
    history = model.objective_history_
    # Rounds add up expanded squares, so entries carry rounding of the size of the largest sum of squares.
    scale = float((case.X**2).sum()) + abs(history[0])
    assert (np.diff(history) <= 1e-12 * scale).all()
    assert history[-1] == model.objective_
    assert np.isfinite(history).all()


@law(lambda can: can.sparse)
def csr_is_like_dense(estimator, case, tmp_path):
    one_start(estimator)
    dense = fit(estimator, case)
    forms = (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix)
    models = [clone(estimator).fit(form(case.X), constraints=case.constraints) for form in forms]
    for model in models:
        assert_same_state(model, models[0])
    assert models[0].labels_.shape == dense.labels_.shape
    if case.generic:
        assert same_partition(models[0].labels_, dense.labels_)
        if hasattr(dense, "objective_"):
            assert models[0].objective_ == pytest.approx(dense.objective_)


@law(lambda can: can.sample_weight)
def weights_of_one_are_no_weights(estimator, case, tmp_path):
    model = clone(estimator).fit(case.X, constraints=case.constraints, sample_weight=np.ones(len(case.X)))
    assert_same_state(fit(estimator, case), model)


@law(lambda can: can.predicts)
def prediction_repeats_the_labels_of_free_rows(estimator, case, tmp_path):
    model = fit(estimator, case)
    found = model.predict(case.X)
    assert found.shape == model.labels_.shape
    assert found.dtype == model.labels_.dtype
    assert set(found.tolist()) <= {*model.cluster_labels_.tolist(), *([-1] if model.capabilities.noise else [])}
    if case.generic:
        free = case.free | (model.capabilities.labels == "seeds")
        assert (found[free] == model.labels_[free]).all()
        assert (model.predict(case.X[::-2]) == found[::-2]).all()
        assert (model.predict(read_only(case.X[:1])) == found[:1]).all()


@law(lambda can: can.predicts and not can.embeds)
def distances_to_centres_have_a_column_each(estimator, case, tmp_path):
    model = fit(estimator, case)
    if not hasattr(model, "transform"):
        return
    distances = model.transform(case.X)
    assert distances.shape == (len(case.X), len(model.cluster_labels_))
    assert (distances >= 0).all()
    names = model.get_feature_names_out()
    assert names.tolist() == [f"{type(model).__name__.lower()}{place}" for place in range(distances.shape[1])]
    together = clone(estimator).fit_transform(case.X, constraints=case.constraints)
    np.testing.assert_array_equal(together, distances)
    framed = clone(model).set_output(transform="pandas").fit(case.X, constraints=case.constraints).transform(case.X)
    assert framed.columns.tolist() == names.tolist()
    if case.generic and not getattr(model, "_learns_metric", False):  # there, a row also weighs the determinants
        assert (model.cluster_labels_[distances.argmin(axis=1)] == model.predict(case.X)).all()


@law(lambda can: can.embeds)
def embeddings_have_a_column_for_each_dimension(estimator, case, tmp_path):
    model = fit(estimator, case)
    embedded = model.transform(case.X)
    assert embedded.shape == (len(case.X), estimator.n_components)
    assert np.isfinite(embedded).all()
    names = model.get_feature_names_out()
    assert names.tolist() == [f"{type(model).__name__.lower()}{place}" for place in range(embedded.shape[1])]
    together = clone(estimator).fit_transform(case.X, constraints=case.constraints)
    np.testing.assert_array_equal(together, embedded)
    distances = ((embedded[:, None] - model.embedding_centers_[None]) ** 2).sum(axis=2)
    if case.generic:
        assert (model.cluster_labels_[distances.argmin(axis=1)] == model.predict(case.X)).all()


@law()
def float32_stays_float32(estimator, case, tmp_path):
    one_start(estimator)
    X = case.X.astype(np.float32)
    model = clone(estimator).fit(X, constraints=case.constraints)
    same = clone(estimator).fit(X.astype(np.float64), constraints=case.constraints)
    if hasattr(model, "cluster_centers_"):
        assert model.cluster_centers_.dtype == np.float32
        assert same.cluster_centers_.dtype == np.float64
    if case.generic and hasattr(model, "objective_"):
        # Local optima differ by far more than single precision.
        assert model.objective_ == pytest.approx(same.objective_, rel=1e-4, abs=1e-4)


CLUSTERERS = [*all_estimators("clusterer"), ToyMedoids]
CASES = [
    pytest.param(check, example, scenario, id=f"{cls.__name__}{number}-{check.__name__}-{'-'.join(scenario)}")
    for cls in CLUSTERERS
    for number, example in enumerate(cls._examples())
    for check in checks_for(example.capabilities)
    for scenario in SCENARIOS
]


@pytest.mark.sampled(46, slow=23)
@pytest.mark.parametrize(("check", "example", "scenario"), CASES)
def test_law(check, example, scenario, seed, tmp_path, toys):
    estimator = clone(example)
    if "n_init" in estimator.get_params():
        estimator.set_params(n_init=2)  # as good a test of further starts as ten, and five times faster
    check(estimator, build(scenario, estimator, seed), tmp_path)


def test_every_law_applies_to_some_estimator():
    capabilities = [example.capabilities for cls in CLUSTERERS for example in cls._examples()]
    capabilities += [cls._capabilities for cls in CLUSTERERS if cls._capabilities.extra]  # it may be missing here
    assert {check for can in capabilities for check in checks_for(can)} == {law for law, _ in _LAWS}


@pytest.mark.parametrize("cls", all_estimators("clusterer"))
def test_unfitted_estimators_say_so(cls):
    for example in cls._examples():
        if example.capabilities.predicts:
            with pytest.raises(NotFittedError, match=f"{cls.__name__} instance is not fitted"):
                example.predict([[0.0]])
        assert isinstance(example, cls)


EXAMPLES = [
    pytest.param(example, id=f"{cls.__name__}{number}")
    for cls in all_estimators("clusterer")
    for number, example in enumerate(cls._examples())
]


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("example", EXAMPLES)
def test_constraints_in_the_place_of_y_are_refused(example, seed, tmp_path):
    case = build(("blobs", "pairs"), example, seed)
    path = tmp_path / "known.csv"
    case.constraints.to_file(path)
    pairs = [(0, 1), (1, 2)]
    answers = {"id_1": [0], "id_2": [1], "answer": ["same"]}
    forms = [case.constraints, {"must_link": pairs}, {}, path, str(path), sparse.csr_array((30, 30)), pairs]
    forms += [np.array(pairs), (pairs, [1, -1]), pd.DataFrame(answers), pl.DataFrame(answers)]
    some = ["a", "b", *[None] * 28]
    forms += [some, np.array([0, 1, *[np.nan] * 28]), pd.Series(some), pl.Series(some)]
    for name in ("fit", "fit_predict", "fit_transform", "partial_fit"):
        for y in forms if hasattr(example, name) else ():
            with pytest.raises(
                ConstraintError, match=r"ignores y\. Pass constraints by name: fit\(X, constraints=\.{3}"
            ):
                getattr(clone(example), name)(case.X, y)
    if hasattr(example, "partial_fit"):
        with pytest.raises(ConstraintError, match="ignores y"):
            fit(example, case).partial_fit(case.X, case.constraints)


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("example", EXAMPLES)
def test_labels_of_some_rows_in_the_place_of_y_are_named(example, seed):
    case = build(("blobs", "none"), example, seed)
    with pytest.warns(UnusedKnowledgeWarning, match=r"ignores y\. If -1 in y .* fit\(X, constraints=y\)"):
        clone(example).fit(case.X, np.array([0, 1, *[-1] * 28]))
    clone(example).fit(case.X, np.tile([-1, 1], 15))  # two classes


@pytest.mark.sampled(4, slow=1)
@pytest.mark.parametrize("kind", ["triplets", "soft_groups"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_knowledge_without_use_is_named(example, kind, seed):
    if getattr(example.capabilities, kind) != "ignored":
        return
    case = build(("blobs", "mixed"), example, seed)
    value = {"triplets": [(0, 1, 2)], "soft_groups": np.full((30, 1), 0.5)}[kind]
    users = [cls.__name__ for cls in all_estimators("clusterer") if getattr(cls._capabilities, kind) != "ignored"]
    advice = " or ".join(users) if users else "No method of this version uses them"
    with pytest.warns(UnusedKnowledgeWarning, match=rf"{type(example).__name__} ignores the {kind} .*{advice}"):
        model = clone(example).fit(case.X, constraints=case.constraints | Constraints(**{kind: value}, n_samples=30))
    assert_same_state(model, fit(example, case))
