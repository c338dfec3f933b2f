"""Laws of the density methods, on data drawn by Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.cluster import DBSCAN

from clew import ConstrainedDBSCAN, Constraints
from clew.evaluation import same_partition
from tests.reference.assign import broken, given_pairs


@st.composite
def problems(draw):
    """Rows at whole numbers, constraints that a hidden labelling satisfies, and the parameters of DBSCAN."""
    n = draw(st.integers(1, 12))
    X = draw(arrays.arrays(np.float64, (n, draw(st.integers(1, 2))), elements=st.integers(0, 9).map(float)))
    hidden = draw(arrays.arrays(np.int64, n, elements=st.integers(0, 2)))
    rows = st.integers(0, n - 1)
    asked = [(i, j) for i, j in draw(st.lists(st.tuples(rows, rows), max_size=8)) if i != j]
    labelled = draw(st.none() | arrays.arrays(bool, n))
    known = Constraints(
        [pair for pair in asked if hidden[pair[0]] == hidden[pair[1]]],
        [pair for pair in asked if hidden[pair[0]] != hidden[pair[1]]],
        labels=None if labelled is None else np.where(labelled, hidden, -1),
        n_samples=n,
    )
    model = ConstrainedDBSCAN(draw(st.sampled_from([0.5, 1.0, 1.5, 2.5])), min_samples=draw(st.integers(1, min(n, 4))))
    return X, known, model


@given(problems())
def test_nothing_is_violated_and_every_core_row_has_a_cluster(problem):
    X, known, model = problem
    model.fit(X, constraints=known)
    alone = np.where(model.labels_ < 0, 100 + np.arange(len(X)), model.labels_)
    assert broken(*given_pairs(known), alone.tolist()) == 0
    assert (model.labels_[model.core_sample_indices_] >= 0).all()


@given(problems())
def test_noise_is_free_and_has_no_core_row_of_a_cluster_that_it_could_join(problem):
    X, known, model = problem
    plain = DBSCAN(eps=model.eps, min_samples=model.min_samples).fit(X)
    model.fit(X, constraints=known)
    assert model.core_sample_indices_.tolist() == plain.core_sample_indices_.tolist()
    closed = known.closure()
    for row in np.flatnonzero(model.labels_ < 0):
        component = int(closed.component_of[row])
        assert closed.sizes[component] == 1
        if not closed.tied[component]:
            assert plain.labels_[row] == -1


@given(problems())
def test_constraints_that_dbscan_satisfies_leave_its_clusters(problem):
    X, _, model = problem
    plain = model.fit(X).labels_
    n = len(X)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    must = [(i, j) for i, j in pairs if plain[i] == plain[j] != -1]
    cannot = [(i, j) for i, j in pairs if plain[i] != plain[j] and -1 not in (plain[i], plain[j])]
    model.fit(X, constraints=Constraints(must, cannot, n_samples=n))
    assert same_partition(model.labels_, plain)


@given(problems(), st.floats(0.25, 4))
def test_units_of_the_data_do_not_matter(problem, factor):
    X, known, model = problem
    expected = model.fit(X, constraints=known).labels_
    scaled = ConstrainedDBSCAN(model.eps * factor * (1 + 1e-9), min_samples=model.min_samples)
    assert (scaled.fit(X * factor, constraints=known).labels_ == expected).all()
