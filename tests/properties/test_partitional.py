"""Laws of the k-means relatives, on data drawn by Hypothesis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import clew.partitional
from clew import ConstrainedKMeans, Constraints, COPKMeans, PCKMeans, SeededKMeans
from clew.exceptions import ConstraintError, ContradictoryConstraintsError, InfeasibleConstraintsError
from tests.helpers import examples
from tests.reference.assign import broken, components, given_pairs, priced_pairs

FAMILY = [getattr(clew.partitional, name) for name in clew.partitional.__all__]
every_class = pytest.mark.parametrize("cls", FAMILY)

# Whole numbers, so that equal rows, equal distances and empty clusters are common.
values = st.integers(-4, 4).map(float)
seeds = st.integers(0, 2**31 - 1)


@st.composite
def problems(draw, consistent=False):
    """Rows, a number of clusters, and anything anybody might say about the rows."""
    n = draw(st.integers(2, 10))
    X = draw(arrays.arrays(np.float64, (n, draw(st.integers(1, 3))), elements=values))
    n_clusters = draw(st.integers(1, min(n, 4)))
    hidden = draw(arrays.arrays(np.int64, n, elements=st.integers(0, n_clusters - 1)))
    rows = st.integers(0, n - 1)
    pairs = st.lists(st.tuples(rows, rows).filter(lambda pair: pair[0] != pair[1]), max_size=8)
    asked = draw(pairs)
    if consistent:
        must = [pair for pair in asked if hidden[pair[0]] == hidden[pair[1]]]
        cannot = [pair for pair in asked if hidden[pair[0]] != hidden[pair[1]]]
        labels = draw(st.none() | arrays.arrays(bool, n))
        labels = None if labels is None else np.where(labels, hidden, -1)
        groups = None
    else:
        must, cannot = asked, draw(pairs)
        labels = draw(st.none() | arrays.arrays(np.int64, n, elements=st.integers(-1, n_clusters - 1)))
        groups = draw(st.none() | arrays.arrays(np.int64, n, elements=st.integers(-1, 2)))
    confidence = st.sampled_from([0.25, 0.5, 1.0])
    known = Constraints(
        must,
        cannot,
        must_link_confidence=draw(st.lists(confidence, min_size=len(must), max_size=len(must))),
        cannot_link_confidence=draw(st.lists(confidence, min_size=len(cannot), max_size=len(cannot))),
        labels=labels,
        cannot_groups=groups,
        n_samples=n,
    )
    return X, n_clusters, known, hidden


def certain(known):
    """The same statements, each with confidence 1."""
    return Constraints(
        known.must_link,
        known.cannot_link,
        labels=known.labels,
        cannot_groups=known.cannot_groups,
        n_samples=known.n_samples,
    )


def outcome(model, X, known):
    """The fitted model, or the error."""
    try:
        return model.fit(X, constraints=known)
    except ConstraintError as error:
        return error


@every_class
@given(problem=problems(), seed=seeds, metric=st.sampled_from(["euclidean", "cosine"]))
@examples(60)
def test_a_fit_ends_well_or_says_why_not(cls, problem, seed, metric):
    X, n_clusters, known, _ = problem
    options = {"metric": metric} if "metric" in cls._parameters and cls._parameters["metric"].accepts(metric) else {}
    found = outcome(cls(n_clusters, n_init=2, random_state=seed, **options), X, known)
    if isinstance(found, ContradictoryConstraintsError):
        assert cls._capabilities.must_link == "hard"
        assert known.closure().contradictory
        assert found.conflicts
    elif isinstance(found, InfeasibleConstraintsError):
        assert cls._capabilities.cannot_link == "hard"
        # Hard methods take every pair as certain; an uncertain must-link does not hand on the groups of dropped rows.
        assert not certain(known).restrict(found.rows).check(n_clusters)
    else:
        assert found.cluster_sizes_.sum() == len(X)
        assert np.isfinite(found.cluster_centers_).all()
        assert np.isfinite(found.objective_history_).all()
        if cls._capabilities.monotone:
            history = found.objective_history_
            assert (np.diff(history) <= 1e-9 * (1 + (X**2).sum() + np.abs(history).max())).all()
        assert found.inertia_ >= 0
        assert 1 <= found.n_iter_ <= 300


@given(problem=problems(consistent=True), seed=seeds)
@examples(100)
def test_cop_kmeans_breaks_nothing_and_solves_everything_that_can_be_solved(problem, seed):
    X, n_clusters, known, _ = problem
    labels = COPKMeans(n_clusters, n_init=1, random_state=seed).fit(X, constraints=known).labels_
    assert broken(*given_pairs(known), labels.tolist()) == 0
    if known.labels is not None:
        assert (labels[known.labels >= 0] == known.labels[known.labels >= 0]).all()


@given(problem=problems(consistent=True), seed=seeds)
@examples(60)
def test_constrained_kmeans_keeps_labels_and_blocks(problem, seed):
    X, n_clusters, known, _ = problem
    labels = ConstrainedKMeans(n_clusters, n_init=1, random_state=seed).fit(X, constraints=known).labels_
    must, _ = given_pairs(known)
    component = components(len(X), must)
    assert all(labels[i] == labels[j] for i in range(len(X)) for j in range(i) if component[i] == component[j])
    if known.labels is not None:
        assert (labels[known.labels >= 0] == known.labels[known.labels >= 0]).all()


@given(problem=problems(), seed=seeds, penalty=st.sampled_from([0.0, 0.5, 4.0, 1000.0]), entailed=st.booleans())
@examples(150)
def test_pck_means_reports_what_it_broke_at_the_price_it_says(problem, seed, penalty, entailed):
    X, n_clusters, known, _ = problem
    model = PCKMeans(n_clusters, penalty=penalty, entailed=entailed, n_init=1, random_state=seed)
    model.fit(X, constraints=known)
    price = penalty * float(broken(*priced_pairs(known, len(X), entailed=entailed), model.labels_.tolist()))
    # The price is what the rounds added up, less their sum of squares.
    assert model.objective_ - model.inertia_ == pytest.approx(price, abs=1e-9 * (1 + price + (X**2).sum()))


@given(problem=problems(consistent=True), seed=seeds)
@examples(60)
def test_pck_means_at_a_huge_price_breaks_no_certain_pair_when_it_can_be_avoided(problem, seed):
    X, n_clusters, known, _ = problem
    certain = known.at_least(1.0)
    model = PCKMeans(n_clusters, penalty=1e6, n_init=1, random_state=seed).fit(X, constraints=certain)
    assert broken(*given_pairs(certain), model.labels_.tolist()) == 0


@every_class
@given(problem=problems(consistent=True), seed=seeds, data=st.data())
@examples(40)
def test_order_direction_and_repeats_of_pairs_do_not_matter(cls, problem, seed, data):
    X, n_clusters, known, _ = problem
    turned = {}
    for name in ("must_link", "cannot_link"):
        order = data.draw(st.permutations(range(len(getattr(known, name)))))
        repeated = [*order, *order[: len(order) // 2]]
        turned[name] = getattr(known, name)[repeated, ::-1] if repeated else []
        turned[f"{name}_confidence"] = getattr(known, f"{name}_confidence")[repeated] if repeated else None
    other = Constraints(**turned, labels=known.labels, n_samples=len(X))
    model = cls(n_clusters, n_init=1, random_state=seed)
    expected = model.fit(X, constraints=known).labels_.copy()
    assert (model.fit(X, constraints=other).labels_ == expected).all()


@every_class
@given(problem=problems(consistent=True), seed=seeds, scale=st.sampled_from([2.0**-20, 2.0**20]))
@examples(40)
def test_the_unit_of_the_data_does_not_matter(cls, problem, seed, scale):
    """Powers of two scale without rounding; the default price follows the data."""
    X, n_clusters, known, _ = problem
    model = cls(n_clusters, n_init=1, random_state=seed)
    expected = model.fit(X, constraints=known)
    labels, objective = expected.labels_.copy(), expected.objective_
    scaled = model.fit(X * scale, constraints=known)
    assert (scaled.labels_ == labels).all()
    if model._learns_metric:
        return  # the objective follows by determinants
    unit = scale**2 if model._geometry == "euclidean" else 1.0
    assert scaled.objective_ == pytest.approx(objective * unit, abs=1e-12 * unit)


@given(problem=problems(), seed=seeds)
@examples(60)
def test_weights_only_count_as_far_as_they_differ(problem, seed):
    X, n_clusters, known, _ = problem
    weights = np.random.default_rng(seed).integers(1, 4, size=len(X)).astype(float)
    for cls in (SeededKMeans, COPKMeans):
        model = cls(n_clusters, n_init=1, random_state=seed)
        try:
            first = model.fit(X, constraints=known, sample_weight=weights).labels_.copy()
        except (ContradictoryConstraintsError, InfeasibleConstraintsError):
            continue
        assert (model.fit(X, constraints=known, sample_weight=4 * weights).labels_ == first).all()


@examples(60)
@given(problem=problems(consistent=True), seed=seeds)
def test_a_hard_method_leaves_no_cluster_empty_that_blocks_of_rows_could_fill(problem, seed):
    X, n_clusters, known, _ = problem
    known = Constraints(known.must_link, known.cannot_link, n_samples=len(X))
    component_of = known.closure().component_of
    blocks = {tuple(X[component_of == one].mean(axis=0).round(9)) for one in np.unique(component_of)}
    labels = COPKMeans(n_clusters, random_state=seed).fit(X, constraints=known).labels_
    assert len(np.unique(labels)) >= min(n_clusters, len(blocks))
