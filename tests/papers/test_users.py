"""Cases that break other packages, and checks that users would recognise; one test each."""

from __future__ import annotations

import logging
import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from clew import CVQE, LCVQE, Constraints, COPKMeans, PCKMeans
from clew._registry import all_estimators
from clew.exceptions import (
    ConstraintError,
    ContradictoryConstraintsError,
    DataError,
    InfeasibleConstraintsError,
    ParameterError,
)
from clew.partitional import _hmrf_kmeans, _learned_metric, _pairs, _ties
from clew.partitional._family import KMeansFamily
from tests.helpers import COUNTING, OF_ROWS, made

MUST_HOLD = [cls for cls in OF_ROWS if cls._capabilities.must_link == "hard"]
ALL_HOLD = [cls for cls in MUST_HOLD if cls._capabilities.cannot_link == "hard"]
COUNTING_HOLD = [cls for cls in ALL_HOLD if cls in COUNTING]
every_class = pytest.mark.parametrize("cls", OF_ROWS)
# A million rows, and memory of a few megabytes, are promises of the k-means relatives.
every_kmeans = pytest.mark.parametrize(
    "cls", [cls for cls in all_estimators("clusterer") if issubclass(cls, KMeansFamily)]
)


def one_start(cls, n_clusters, seed):
    return made(cls, n_clusters, random_state=seed, n_init=1)


def slow_for(name, classes):
    """The classes; the named one takes half a minute for so many rows, and only --thorough waits for it."""
    return [pytest.param(cls, marks=pytest.mark.slow) if cls.__name__ == name else cls for cls in classes]


three_points = {"cannot_link": [(0, 2), (1, 2)]}


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("cls", MUST_HOLD)
def test_hard_must_links_20_seeds_30_pairs_200_rows_4_clusters(cls):
    broken = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 2))
        pairs = np.array([rng.choice(200, 2, replace=False) for _ in range(30)])
        labels = one_start(cls, 4, seed).fit(X, constraints={"must_link": pairs}).labels_
        broken += (labels[pairs[:, 0]] != labels[pairs[:, 1]]).sum()
    assert broken == 0


@pytest.mark.parametrize("cls", COUNTING_HOLD)
def test_a_cannot_link_clique_of_4_with_3_clusters(cls):
    clique = [(3, 5), (3, 8), (3, 9), (5, 8), (5, 9), (8, 9)]
    X = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.raises(InfeasibleConstraintsError, match=r"Rows 3, 5, 8 and 9 .* need 4 clusters, but n_clusters=3"):
        made(cls, 3).fit(X, constraints={"cannot_link": clique})
    labels = made(cls, 4).fit(X, constraints={"cannot_link": clique}).labels_
    assert len(set(labels[[3, 5, 8, 9]].tolist())) == 4


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("cls", COUNTING_HOLD)
def test_three_points_2_clusters_two_cannot_links(cls):
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(3, 1))
        labels = made(cls, 2, random_state=seed).fit(X, constraints=three_points).labels_
        assert labels[0] == labels[1] != labels[2]


@pytest.mark.parametrize("cls", COUNTING_HOLD)
def test_three_points_1_cluster_is_refused_with_the_reason_and_the_pair(cls):
    with pytest.raises(InfeasibleConstraintsError, match=r"Rows \d and 2 are .* need 2 clusters, but n_clusters=1"):
        made(cls, 1).fit([[0.0], [1.0], [2.0]], constraints=three_points)


@pytest.mark.parametrize("cls", [cls for cls in MUST_HOLD if cls._capabilities.cannot_link != "ignored"])
def test_a_contradiction_through_a_chain(cls):
    ids = ["ann", "bea", "cat", "dan", "eve"]
    known = Constraints([(0, 1), (1, 2), (2, 3)], [(0, 3)], ids=ids)
    with pytest.raises(
        ContradictoryConstraintsError, match=r"ann and dan; must_link joins them \(ann-bea-cat-dan\)"
    ) as caught:
        made(cls, 2).fit(np.arange(5.0)[:, None], constraints=known)
    assert caught.value.conflicts[0].chain == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [((0, 5), "names row 5, but X has 5 rows"), ((-1, 0), "names row -1"), ((2, 2), "names row 2 twice")],
)
@every_class
def test_index_out_of_range_negative_or_a_pair_of_a_row_with_itself(cls, pair, sentence):
    for kind in ("must_link", "cannot_link"):
        with pytest.raises(ConstraintError, match=sentence):
            made(cls, 2).fit(np.arange(5.0)[:, None], constraints={kind: [(0, 1), pair]})


@every_class
def test_nan_in_the_data(cls):
    with pytest.raises(DataError, match="NaN at row 1, column 0"):
        made(cls, 2).fit([[0.0, 1.0], [np.nan, 1.0], [2.0, 2.0]])


@pytest.mark.sampled(6, slow=1)
@pytest.mark.parametrize("cls", COUNTING)
def test_csr_frames_read_only_arrays_and_lists_of_tuples(cls):
    X = np.array([[9.0, 0.0], [8.0, 1.0], [0.0, 9.0], [1.0, 8.0]])
    frozen = X.copy()
    frozen.flags.writeable = False
    pairs = np.array([(0, 1), (2, 3)])
    pairs.flags.writeable = False
    forms = [
        frozen,
        X.tolist(),
        [tuple(row) for row in X.tolist()],
        sparse.csr_matrix(X),
        sparse.csr_array(X),
        pd.DataFrame(X, columns=["a", "b"]),
        pl.DataFrame(X, schema=["a", "b"]),
        X.astype(np.float32),
        X.astype(int),
    ]
    for rows in forms:
        if sparse.issparse(rows) and not cls._capabilities.sparse:
            continue
        for known in ({"must_link": pairs}, {"must_link": [(0, 1), (2, 3)]}, {"ml": [[0, 1]], "cl": [(0, 2)]}):
            labels = made(cls, 2, random_state=0).fit(rows, constraints=known).labels_
            assert labels[0] == labels[1] != labels[2] == labels[3]


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("cls", COUNTING)
def test_all_points_equal_more_clusters_than_rows_empty_constraints(cls):
    equal = np.ones((6, 2))
    assert set(made(cls, 2, random_state=0).fit(equal).labels_.tolist()) <= {0, 1}
    with pytest.raises(DataError, match="n_clusters=7, but X has n_samples=6 rows"):
        made(cls, 7).fit(equal)
    X = np.random.default_rng(0).integers(9, size=(20, 2))
    expected = made(cls, 3, random_state=0).fit(X).labels_
    for nothing in (None, {}, {"must_link": [], "cannot_link": []}, Constraints(), np.full(20, -1)):
        assert (made(cls, 3, random_state=0).fit(X, constraints=nothing).labels_ == expected).all()


@pytest.mark.sampled(7, slow=1)
@pytest.mark.parametrize("n, options", [(3000, {}), (1_000_000, {"n_init": 1})])
@every_kmeans
def test_a_must_link_chain_of_3000_and_of_a_million(cls, n, options):
    X = np.tile([1.0, 0.0], (n + 2, 1))
    X[-2:] = [0.0, 50.0]
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    model = cls(2, random_state=0, **options).fit(X, constraints={"must_link": chain})
    assert len(set(model.labels_[:n].tolist())) == 1
    assert sorted(model.cluster_sizes_.tolist()) == [2, n]


@every_kmeans
def test_4000_pairs_in_two_stars_need_megabytes(cls):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)) + np.repeat([[9, 0], [0, 9]], 2000, axis=0)
    stars = [(0, row) for row in range(1, 2000)] + [(2000, row) for row in range(2001, 4000)]
    known = Constraints(stars, [(0, 2000)], n_samples=4000)
    model = cls(2, n_init=1, random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, constraints=known)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000
    assert sorted(model.cluster_sizes_.tolist()) == [2000, 2000]


def run_script(script):
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_importing_the_package_has_no_side_effects():
    run_script(
        """
import logging, random, sys, warnings
import numpy as np

def state():
    return np.geterr(), np.random.get_state()[1].tolist(), random.getstate(), logging.getLogger().handlers[:]

before = state(), warnings.filters[:]
import clew
assert (state(), warnings.filters) == before
assert not {"sklearn", "pandas", "polars", "matplotlib", "typer", "rich", "clew.cli"} & set(sys.modules)
"""
    )


def test_fitting_has_no_side_effects():
    def state():
        legacy = np.random.get_state()[1].tolist()  # noqa: NPY002 the global state is what must not change
        return np.geterr(), legacy, random.getstate(), logging.getLogger().handlers[:]

    X = np.arange(40.0).reshape(20, 2)
    for cls in all_estimators("clusterer"):
        for example in cls._examples()[:1]:  # none if its extra is missing
            before = state()
            example.fit(X if cls._capabilities.pairwise is None else X @ X.T, constraints={"must_link": [(0, 1)]})
            assert state() == before, cls.__name__


def test_a_budget_larger_than_all_pairs():
    with pytest.raises(ParameterError, match="needs 7 pairs, but there are only 6"):
        Constraints.sample([0, 0, 1, 1], 7, random_state=0)
    everything = Constraints.sample([0, 0, 1, 1], 6, random_state=0)
    assert len(everything.must_link) + len(everything.cannot_link) == 6


@pytest.mark.parametrize(
    "cls",
    [
        cls
        for cls in all_estimators("clusterer")
        # Methods with a matrix of all pairs of rows put the constraints into it, and networks learn from pairs of rows.
        for can in [cls._capabilities]
        if can.vectors and can.must_link == "soft" and not can.quadratic and not can.embeds
    ],
)
def test_constraints_at_1000_rows_cost_one_visit_per_row_and_round(cls, monkeypatch):
    """K-means speed, counted rather than timed: a round looks at each constrained row once, or each pair once where
    methods place pairs; free rows go by BLAS."""
    visits = []

    def count(module, name, at):
        kernel = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *arrays: visits.append(len(arrays[at])) or kernel(*arrays))

    count(_ties, "assign_tied", 0)
    count(_learned_metric, "assign_rows", 0)
    count(_hmrf_kmeans, "assign_rows", 0)
    count(_pairs, "assign_pairs", 1)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 4)), rng.integers(5, size=1000)
    known = Constraints.sample(y, 300, random_state=0)
    model = cls(5, n_init=1, random_state=0).fit(X, constraints=known)
    pairs = np.concatenate([known.must_link, known.cannot_link])
    per_round = len(pairs) if cls in (CVQE, LCVQE) else len(np.unique(pairs))
    n_rounds = len(model.objective_history_)
    # The search for a first labelling that breaks nothing adds a few passes over the components, once.
    assert n_rounds * per_round <= sum(visits) <= (n_rounds + 6) * per_round


@pytest.mark.sampled(9, slow=1)
@pytest.mark.parametrize(
    "cls",
    slow_for("ConstrainedKMedoids", [cls for cls in COUNTING if cls in OF_ROWS and cls._capabilities.labels == "hard"]),
)
@pytest.mark.parametrize("n_clusters", [10, 13])
def test_400_of_7000_texts_labelled_in_ten_classes_keep_their_class(cls, n_clusters):
    """The others join one of the ten, or open new clusters when more are asked for."""
    rng = np.random.default_rng(0)
    topics = rng.normal(size=(13, 20)) * 3
    y = rng.integers(n_clusters, size=7000)
    X = topics[y] + rng.normal(size=(7000, 20))
    known = np.full(7000, -1)
    some = rng.choice(np.flatnonzero(y < 10), 400, replace=False)
    known[some] = 100 + y[some]
    model = one_start(cls, n_clusters, 0).fit(X, constraints=known)
    assert (model.labels_[some] == known[some]).all()
    assert len(np.unique(model.labels_)) == n_clusters
    assert set(range(100, 110)) <= set(model.labels_.tolist())
    assert (model.labels_[y < 10] == 100 + y[y < 10]).mean() > 0.95


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("cls", slow_for("ConstrainedKMedoids", ALL_HOLD))
def test_two_faces_of_one_photo_are_never_one_person_given_the_photo_column_alone(cls, seed):
    rng = np.random.default_rng(seed)
    person = rng.integers(8, size=600)
    faces = rng.normal(size=(8, 16))[person] + 0.8 * rng.normal(size=(600, 16))
    photo = np.repeat(np.arange(200), 3)
    model = one_start(cls, 8, seed).fit(faces, constraints=Constraints(cannot_groups=photo))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        one, other = model.labels_[first::3], model.labels_[second::3]
        assert ((one != other) | (one < 0)).all()


@pytest.mark.sampled(3, slow=1)
@pytest.mark.parametrize("cls", slow_for("ConstrainedKMedoids", COUNTING_HOLD))
def test_two_records_of_one_source_never_match(cls):
    """Two deduplicated tables: records match across them, one to one."""
    rng = np.random.default_rng(0)
    records = rng.normal(size=(30, 5)) * 4
    X = np.concatenate([records, records + 0.01 * rng.normal(size=(30, 5))])
    known = Constraints(cannot_groups=np.repeat([0, 1], 30))
    # With ten neighbours each, a graph says little about groups of two.
    model = made(cls, 30, random_state=0, n_neighbors=5).fit(X, constraints=known)
    assert (model.cluster_sizes_ == 2).all()
    assert (model.labels_[:30] == model.labels_[30:]).mean() > 0.9


def test_soft_knowledge_is_reported_with_its_price():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    model = PCKMeans(2, penalty=1.0, random_state=0).fit(X, constraints={"must_link": [(0, 3)]})
    assert model.violated_must_link_.tolist() == [[0, 3]]
    assert model.objective_ == pytest.approx(model.inertia_ + 1.0)
    hard = COPKMeans(2, random_state=0).fit(X, constraints={"must_link": [(0, 3)]})
    assert hard.labels_[0] == hard.labels_[3]
