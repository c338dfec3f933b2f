"""Laws of GeometryPreservingLearner on any small table and any pairs, contradictory ones too."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from clew import Constraints, GeometryPreservingLearner
from clew.metric._geometry_preserving_learner import preserve_geometry
from tests.helpers import examples

# Steps that no problem of this size needs: each ends with a move, and moves are limited by row and cluster.
ENOUGH = 400


@st.composite
def problems(draw):
    """Rows of whole numbers, a number of clusters, must-links and cannot-links that may contradict."""
    n = draw(st.integers(3, 9))
    X = draw(arrays.arrays(np.float64, (n, 2), elements=st.integers(-9, 9).map(float)))
    rows = st.integers(0, n - 1)
    pairs = st.lists(st.tuples(rows, rows).filter(lambda pair: pair[0] != pair[1]), max_size=3)
    return X, draw(st.integers(1, 3)), Constraints(draw(pairs), draw(pairs), n_samples=n)


@given(problem=problems(), by_impact=st.booleans(), seed=st.integers(0, 99))
@examples(12)
def test_each_distance_is_the_sum_of_the_moves_and_other_rows_stay(problem, by_impact, seed):
    X, k, known = problem
    course = [(X, np.zeros(len(X)))]
    found = preserve_geometry(
        X, known, k, ENOUGH, np.random.default_rng(seed), n_init=1, by_impact=by_impact,
        watch=lambda now: course.append((now.rows.copy(), now.distances.copy())),
    )  # fmt: skip
    steps = [np.linalg.norm(after[0] - before[0], axis=1) for before, after in pairwise(course)]
    # Rounding: distances are lengths of the moves, and the moves here are differences of places.
    np.testing.assert_allclose(found.distances, sum(steps, np.zeros(len(X))), rtol=1e-9, atol=1e-9)
    assert len(steps) == found.n_iter and not found.stopped
    assert all(1 <= np.count_nonzero(step) <= 2 for step in steps)  # of the pair that is treated
    still = found.distances == 0
    assert (found.rows[still] == X[still]).all()
    assert not found.distances[
        np.setdiff1d(np.arange(len(X)), np.concatenate([known.must_link, known.cannot_link]))
    ].any()


@given(problem=problems(), order=st.sampled_from(["impact", "random"]))
@examples(12)
def test_pairs_hold_or_are_reported_as_violated(problem, order):
    X, k, known = problem
    model = GeometryPreservingLearner(k, order=order, n_init=1, random_state=0).fit(X, constraints=known)
    broken = [pair for pair in known.must_link.tolist() if len(set(model.labels_[pair])) == 2]
    assert model.violated_must_link_.tolist() == broken
    broken = [pair for pair in known.cannot_link.tolist() if len(set(model.labels_[pair])) == 1]
    assert model.violated_cannot_link_.tolist() == broken
    again = GeometryPreservingLearner(k, n_init=1, random_state=0)
    satisfied = Constraints.from_labels(again.fit(X).labels_)
    assert (again.fit_transform(X, constraints=satisfied) == X).all() and again.n_iter_ == 0
