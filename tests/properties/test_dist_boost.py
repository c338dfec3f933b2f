"""Laws of DistBoost on any small table and any pairs, contradictory ones too."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.spatial.distance import cdist

from clew import Constraints, DistBoost
from tests.helpers import examples


@st.composite
def problems(draw):
    """Rows of whole numbers, a number of clusters, pairs that may contradict, and triplets."""
    n = draw(st.integers(4, 9))
    X = draw(arrays.arrays(np.float64, (n, 2), elements=st.integers(-9, 9).map(float)))
    rows = st.integers(0, n - 1)
    pairs = st.lists(st.tuples(rows, rows).filter(lambda pair: pair[0] != pair[1]), max_size=4)
    triplets = st.lists(st.permutations(range(n)).map(lambda order: tuple(order[:3])), max_size=2)
    known = Constraints(draw(pairs), draw(pairs), triplets=draw(triplets) or None, n_samples=n)
    return X, draw(st.integers(1, 3)), known


@given(problem=problems(), share=st.sampled_from([0.0, 0.8, "uniform"]), kind=st.sampled_from(["full", "spherical"]))
@examples(15)
def test_each_round_lowers_the_objective_by_the_bound(problem, share, kind):
    X, k, known = problem
    model = DistBoost(k, unlabelled_share=share, covariance_type=kind, max_iter=4, random_state=0)
    model.fit(X, constraints=known)
    assert (model.round_weights_ > 0).all()
    if len(model.objective_history_) > 1:  # else no round had r > 0
        bound = np.log1p(-(np.tanh(model.round_weights_) ** 2)) / 2
        assert (np.diff(model.objective_history_) <= bound + 1e-9).all()  # rounding


@given(problem=problems(), scale=st.sampled_from([2.0**-10, 2.0, 2.0**14]))
@examples(15)
def test_distances_are_symmetric_bounded_and_free_of_units(problem, scale):
    X, k, known = problem
    model = DistBoost(k, max_iter=3, random_state=0).fit(X, constraints=known)
    distances = model.pairwise(X)
    assert (distances == distances.T).all()
    assert (np.diag(distances) == 0).all()
    assert ((distances >= 0) & (distances <= 1)).all()
    rows = model.transform(X)
    squares = cdist(rows, rows, "sqeuclidean")
    assert (squares <= distances + 1e-9).all()
    # A row that is certain of its component everywhere has the same distances there.
    certain = 2 * (rows**2).sum(axis=1) > 1 - 1e-9
    np.testing.assert_allclose(squares[np.ix_(certain, certain)], distances[np.ix_(certain, certain)], atol=1e-6)
    between = model.pairwise(X, X[:2])
    np.testing.assert_allclose(between[2:], distances[2:, :2], atol=1e-12)
    moved = X * [scale, 1.0]  # by powers of two, so that no digit changes
    again = DistBoost(k, max_iter=3, random_state=0).fit(moved, constraints=known)
    assert (again.pairwise(moved) == distances).all()
