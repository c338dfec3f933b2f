"""What each method adds to the laws: its own parameters, its log, its place in the registry."""

from __future__ import annotations

import doctest
import importlib
import inspect
import logging
import pydoc
from itertools import permutations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import clew.testing
from clew import ConstrainedKMeans, Constraints, COPKMeans, PCKMeans, SampledBalancedKMeans, SeededKMeans
from clew._registry import all_estimators, by_method_name, find_method, method_name
from clew.evaluation import same_partition
from clew.exceptions import ContradictoryConstraintsError, ParameterError
from clew.partitional import _pck_means
from clew.partitional._family import COMMON_PARAMETERS, KMeansFamily
from tests.helpers import installed, made
from tests.reference.assign import priced_pairs

LINE = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
every_class = pytest.mark.parametrize("cls", installed())
kmeans_class = pytest.mark.parametrize("cls", [cls for cls in all_estimators() if issubclass(cls, KMeansFamily)])
spherical_class = pytest.mark.parametrize(
    "cls", [cls for cls in all_estimators() if cls._parameters.get("metric") is COMMON_PARAMETERS["metric"]]
)


def test_shell_names_are_the_names_of_the_files():
    found = {name: cls.__name__ for name, cls in by_method_name().items()}
    assert {
        "pck-means": "PCKMeans",
        "cop-kmeans": "COPKMeans",
        "seeded-kmeans": "SeededKMeans",
    }.items() <= found.items()
    assert len(found) == len(all_estimators())
    assert all(method_name(cls) == name for name, cls in by_method_name().items())


@pytest.mark.parametrize("written", ["copk-means", "COPKMeans", "cop_kmeans", "cop-kmeans"])
def test_methods_are_found_however_they_are_written(written):
    assert find_method(written) == "cop-kmeans"


def test_a_method_that_does_not_exist_is_refused_with_the_nearest_name():
    with pytest.raises(ParameterError, match=r'There is no method "cop-means". Did you mean cop-kmeans\? There are '):
        find_method("cop-means")


@every_class
def test_examples_are_fresh_instances_with_allowed_parameters(cls):
    first, second = cls._examples(), cls._examples()
    assert first
    assert all(a is not b for a, b in zip(first, second, strict=True))
    for example in first:
        for name, allowed in cls._parameters.items():
            assert allowed.accepts(getattr(example, name))
        assert set(cls._parameters) == set(example.get_params())


@every_class
def test_constructors_only_assign(cls):
    defaults = {name: p.default for name, p in inspect.signature(cls.__init__).parameters.items() if name != "self"}
    assert vars(cls()) == defaults


@every_class
def test_the_docstring_names_every_parameter_and_learned_attribute(cls):
    model = made(cls, 2, random_state=0)
    options = {"given": [0, 1, 0, 1, 0, 1]} if model._role == "alternative clusterer" else {}
    model.fit(LINE if model.capabilities.pairwise is None else LINE @ LINE.T, **options)
    for name in model.get_params():
        assert f"\n    {name} :" in cls.__doc__, name
    for name in set(vars(model)) - set(model.get_params()) - {"n_features_in_"}:
        assert name in cls.__doc__, name


@kmeans_class
def test_help_shows_the_entries_that_k_means_relatives_share(cls):
    shown = pydoc.render_doc(cls, renderer=pydoc.plaintext).partition("Method resolution order")[0]
    assert "As in `KMeansFamily`" not in shown
    assert "init : {" in shown and "Initial centres." in shown and "labels_ : ndarray" in shown


@pytest.mark.parametrize("module", [*(cls.__module__ for cls in installed()), "clew.testing"])
def test_examples_in_docstrings_run(module):
    failures, tried = doctest.testmod(importlib.import_module(module))
    assert failures == 0
    assert tried >= 3


@kmeans_class
def test_a_fit_logs_one_line_and_each_round_one_more(cls, caplog, capsys):
    with caplog.at_level(logging.DEBUG, logger="clew"):
        model = cls(2, n_init=1, max_iter=50, random_state=0).fit(LINE, constraints={"must_link": [(0, 5)]})
    rounds = [record for record in caplog.records if record.levelno == logging.DEBUG]
    assert [record.round for record in rounds] == list(range(1, len(model.objective_history_) + 1))
    assert all(record.max_iter == 50 for record in rounds)
    assert [record.objective for record in rounds] == pytest.approx(model.objective_history_)
    [summary] = [record for record in caplog.records if record.levelno == logging.INFO]
    assert summary.getMessage() == (
        f"{cls.__name__}: 6 rows, {len(model.violated_must_link_)} must-links and 0 cannot-links violated"
    )
    assert all(record.name.startswith("clew.") for record in caplog.records)
    assert capsys.readouterr() == ("", "")


# The starts of SampledBalancedKMeans are those of its sample.
@pytest.mark.parametrize(
    "cls", [cls for cls in all_estimators() if issubclass(cls, KMeansFamily) and cls is not SampledBalancedKMeans]
)
def test_several_starts_are_the_default_on_small_data_only(cls, caplog):
    def starts(X):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, logger="clew"):
            cls(2, init="k-means++", max_iter=30, tol=0.1, random_state=0).fit(X)
        return sum(getattr(record, "round", None) == 1 for record in caplog.records)

    rng = np.random.default_rng(0)
    assert starts(rng.normal(size=(100, 1))) == 10
    assert starts(rng.normal(size=(30_000, 1))) == 3
    assert starts(rng.normal(size=(100_000, 1))) == 1


def test_seeds_for_every_cluster_need_one_start_only(caplog):
    with caplog.at_level(logging.DEBUG, logger="clew"):
        SeededKMeans(2, n_init=5).fit(LINE, constraints=[0, -1, -1, -1, -1, 1])
    assert sum(getattr(record, "round", None) == 1 for record in caplog.records) == 1


def test_seeds_may_be_left_but_not_by_constrained_kmeans():
    wrong = [0, -1, 1, 1, -1, 1]  # row 2 is labelled with the other side
    assert SeededKMeans(2).fit(LINE, constraints=wrong).labels_.tolist() == [0, 0, 0, 1, 1, 1]
    assert ConstrainedKMeans(2).fit(LINE, constraints=wrong).labels_.tolist() == [0, 0, 1, 1, 1, 1]


def test_seeds_for_some_clusters_are_enough():
    X = np.concatenate([LINE, LINE + 100])
    known = np.full(12, -1)
    known[3] = 2
    for cls in (SeededKMeans, ConstrainedKMeans, COPKMeans, PCKMeans):
        labels = cls(4, random_state=0).fit(X, constraints=known).labels_
        assert same_partition(labels, np.repeat([0, 1, 2, 3], 3))
        assert labels[3] == 2


def test_constrained_kmeans_moves_must_linked_rows_as_one_block():
    known = Constraints(must_link=[(0, 3), (3, 4)], labels=[-1, 0, -1, -1, -1, 1])
    model = ConstrainedKMeans(2).fit(LINE, constraints=known)
    assert model.labels_.tolist() == [1, 0, 0, 1, 1, 1]
    assert model.violated_must_link_.shape == (0, 2)


@pytest.mark.parametrize("cls", [COPKMeans, ConstrainedKMeans])
def test_pairs_below_min_confidence_are_left_out(cls):
    known = Constraints([(0, 5)], [(0, 1)], must_link_confidence=0.4, cannot_link_confidence=0.4, n_samples=6)
    loose = cls(2, min_confidence=0.5, random_state=0).fit(LINE, constraints=known)
    assert loose.labels_[0] == loose.labels_[1] != loose.labels_[5]
    assert loose.violated_must_link_.shape == (0, 2)  # what is left out is not violated
    strict = cls(2, min_confidence=0.4, random_state=0).fit(LINE, constraints=known)
    assert strict.labels_[0] == strict.labels_[5]


@pytest.mark.parametrize("cls", [COPKMeans, ConstrainedKMeans])
def test_min_confidence_can_settle_a_contradiction(cls):
    known = Constraints([(0, 1)], [(0, 1)], cannot_link_confidence=0.4, n_samples=6)
    with pytest.raises(ContradictoryConstraintsError):
        cls(2, random_state=0).fit(LINE, constraints=known)
    assert cls(2, min_confidence=0.5, random_state=0).fit(LINE, constraints=known).labels_.shape == (6,)


def test_cop_kmeans_keeps_what_follows_from_constraints():
    known = Constraints(must_link=[(0, 3), (5, 2)], cannot_link=[(3, 2)], n_samples=6)
    labels = COPKMeans(2, random_state=0).fit(LINE, constraints=known).labels_
    assert labels[0] == labels[3] != labels[5] == labels[2]


def test_cop_kmeans_is_undaunted_by_many_dead_ends(seed):
    """Cannot-links of a hidden 3-colouring, so dense that a greedy pass gets stuck almost surely."""
    rng = np.random.default_rng(seed)
    X, hidden = rng.normal(size=(60, 2)), np.resize([0, 1, 2], 60)
    pairs = np.column_stack(np.triu_indices(60, 1))
    apart = pairs[(hidden[pairs[:, 0]] != hidden[pairs[:, 1]]) & (rng.random(len(pairs)) < 0.3)]
    model = COPKMeans(3, random_state=seed).fit(X, constraints={"cannot_link": apart})
    assert model.violated_cannot_link_.shape == (0, 2)


def test_the_price_is_the_mean_cost_of_a_row_by_default():
    X = np.array([[0.0, 1.0], [2.0, 5.0], [4.0, 6.0]])
    assert PCKMeans(2).fit(X).penalty_ == pytest.approx(((X - X.mean(axis=0)) ** 2).sum() / 3)
    weights = np.array([1.0, 2.0, 5.0])
    mean = np.average(X, axis=0, weights=weights)
    expected = np.average(((X - mean) ** 2).sum(axis=1), weights=weights)
    assert PCKMeans(2).fit(X, sample_weight=weights).penalty_ == pytest.approx(expected)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    center = unit.mean(axis=0) / np.linalg.norm(unit.mean(axis=0))
    for rows in (X, sparse.csr_matrix(X)):
        cosine = PCKMeans(2, metric="cosine").fit(rows)
        assert cosine.penalty_ == pytest.approx((1 - unit @ center).mean())
    assert PCKMeans(2, penalty=0.25).fit(X).penalty_ == 0.25


def test_a_row_goes_where_it_pays_least():
    known = {"must_link": [(0, 5)]}  # 12 apart: keeping them together costs 72 at the least
    start = {"init": [[1.0], [11.0]], "n_clusters": 2}
    cheap = PCKMeans(penalty=1.0, **start).fit(LINE, constraints=known)
    assert cheap.violated_must_link_.tolist() == [[0, 5]]
    assert cheap.objective_ == pytest.approx(cheap.inertia_ + 1.0)
    dear = PCKMeans(penalty=1e6, **start).fit(LINE, constraints=known)
    assert dear.violated_must_link_.shape == (0, 2)
    assert dear.objective_ == pytest.approx(dear.inertia_)


def test_no_labelling_is_searched_for_when_the_first_pass_breaks_nothing(monkeypatch, seed):
    """Prices that cancel leave rounding behind, which is no price."""
    rng = np.random.default_rng(seed)
    X = np.repeat([[0.0, 0.0], [50.0, 0.0]], 20, axis=0) + rng.normal(size=(40, 2))
    known = Constraints(must_groups=2 * np.repeat([0, 1], 20) + rng.integers(2, size=40))
    searches = []
    monkeypatch.setattr(_pck_means, "hard_policy", lambda *given: searches.append(given))
    for penalty in rng.uniform(0, 9000, size=30):
        model = PCKMeans(2, penalty=penalty, n_init=1, random_state=seed).fit(X, constraints=known)
        assert same_partition(model.labels_, np.repeat([0, 1], 20))
    assert searches == []


def test_confidence_scales_the_price():
    start = {"init": [[1.0], [11.0]], "n_clusters": 2, "penalty": 150.0}
    for confidence, kept in ((1.0, True), (0.1, False)):
        known = Constraints([(0, 5)], must_link_confidence=confidence, n_samples=6)
        model = PCKMeans(**start).fit(LINE, constraints=known)
        assert (model.labels_[0] == model.labels_[5]) == kept
        assert model.objective_ - model.inertia_ == pytest.approx(0 if kept else 15)


def test_entailed_pairs_are_priced_only_on_request():
    X = np.zeros((6, 1))
    known = Constraints(must_link=[(0, 1), (1, 2), (3, 4)], cannot_link=[(2, 3)], n_samples=6)
    prices = [PCKMeans(1, penalty=1.0, entailed=e).fit(X, constraints=known).objective_ for e in (True, False)]
    assert prices == [6.0, 1.0]  # three rows against two, or the one given pair


def test_stating_what_is_entailed_changes_nothing_where_it_is_priced_anyway(seed):
    rng = np.random.default_rng(seed)
    for turn in range(20):
        X, y = rng.normal(size=(25, 2)), rng.integers(3, size=25)
        known = Constraints.sample(y, 20, random_state=turn)
        must, cannot = (list(pairs) for pairs in priced_pairs(known, 25, entailed=True))
        model = PCKMeans(3, penalty=1.5, random_state=turn)
        first, second = (clone(model).fit(X, constraints=c) for c in (known, Constraints(must, cannot, n_samples=25)))
        assert (first.labels_ == second.labels_).all()
        assert first.objective_ == second.objective_


def test_soft_classes_name_the_clusters_that_hold_most_of_their_rows(seed):
    rng = np.random.default_rng(seed)
    for turn in range(20):
        X, y = rng.normal(size=(40, 2)), rng.integers(3, size=40)
        known = np.where(rng.random(40) < 0.4, 5 + 2 * y, -1)
        known[:3] = [5, 7, 9]
        model = PCKMeans(4, penalty=float(rng.choice([0.01, 1.0, 100.0])), random_state=turn).fit(X, constraints=known)
        shared = {(c, k): ((known == c) & (model.labels_ == k)).sum() for c in (5, 7, 9) for k in model.cluster_labels_}
        best = max(
            sum(shared[c, k] for c, k in zip((5, 7, 9), p, strict=True)) for p in permutations(model.cluster_labels_, 3)
        )
        assert sum(shared[c, c] for c in (5, 7, 9)) == best
        assert (model.cluster_labels_[model.transform(X).argmin(axis=1)] == model.predict(X)).all()


def test_contradictions_have_a_price_too():
    known = Constraints(must_link=[(0, 1)], cannot_link=[(0, 1)], n_samples=6)
    for entailed in (True, False):
        model = PCKMeans(2, penalty=3.0, entailed=entailed, init=[[1.0], [11.0]]).fit(LINE, constraints=known)
        assert model.objective_ - model.inertia_ == pytest.approx(3.0)
        assert len(model.violated_must_link_) + len(model.violated_cannot_link_) == 1


def test_groups_are_never_expanded_to_pairs():
    """A must-group of 3,000 rows stands for 4.5 million pairs, two cannot-linked ones for 9 million more."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, size=(3000, 2)), rng.normal(9, 1, size=(3000, 2))])
    known = Constraints([(0, 1)], [(0, 5999)], must_groups=np.repeat([0, 1], 3000), n_samples=6000)
    model = PCKMeans(2, penalty=1.0, n_init=1, random_state=0).fit(X, constraints=known)
    assert same_partition(model.labels_, np.repeat([0, 1], 3000))
    assert model.objective_ == pytest.approx(model.inertia_)


@spherical_class
def test_spherical_kmeans_ignores_the_length_of_rows(cls, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    lengths = rng.uniform(0.1, 10, size=(30, 1))
    short, long = (cls(3, metric="cosine", init=X[:3]).fit(rows) for rows in (X, X * lengths))
    assert (short.labels_ == long.labels_).all()
    np.testing.assert_allclose(np.linalg.norm(short.cluster_centers_, axis=1), 1)
    assert (short.predict(X * lengths) == short.labels_).all()


@spherical_class
def test_a_row_of_zeros_has_no_direction_and_still_gets_a_cluster(cls):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    for rows in (X, sparse.csr_matrix(X)):
        model = cls(2, metric="cosine", random_state=0).fit(rows)
        assert model.labels_[1] != model.labels_[2]
        assert model.inertia_ == pytest.approx(1.0)
        assert np.isfinite(model.transform(rows)).all()


def test_classes_beyond_32_bits_are_kept():
    model = ConstrainedKMeans(2).fit(LINE, constraints=[2**40, -1, -1, -1, -1, 3])
    assert model.labels_.tolist() == [2**40] * 3 + [3] * 3
    assert model.predict([[0.0], [12.0]]).tolist() == [2**40, 3]


def test_every_public_name_of_the_testing_module_is_documented():
    assert clew.testing.__doc__
    assert clew.testing.expected_failed_checks.__doc__
