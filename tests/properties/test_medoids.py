"""Laws of ConstrainedKMedoids on any small matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from clew import ConstrainedKMedoids
from clew.exceptions import ConstraintError
from tests.helpers import examples
from tests.reference import kmedoids as reference

pytestmark = pytest.mark.filterwarnings("ignore::clew.exceptions.FewerClustersWarning")


@st.composite
def problems(draw):
    """An asymmetric matrix of whole numbers, a number of clusters, must-links and cannot-links that may contradict."""
    n = draw(st.integers(2, 6))
    matrix = draw(arrays.arrays(np.float64, (n, n), elements=st.integers(0, 9).map(float)))
    rows = st.integers(0, n - 1)
    pairs = st.lists(st.tuples(rows, rows).filter(lambda pair: pair[0] != pair[1]), max_size=4)
    return matrix, draw(st.integers(1, min(n, 3))), draw(pairs), draw(pairs)


def fitted(matrix, n_clusters, must, cannot, **params):
    model = ConstrainedKMedoids(n_clusters, metric="precomputed", max_iter=10, random_state=0, **params)
    return model.fit(matrix, constraints={"must_link": must, "cannot_link": cannot})


@given(problem=problems(), solver=st.sampled_from(["vns", "exact"]))
@examples(60)
def test_a_fit_keeps_all_constraints_at_its_cost_or_there_is_no_labelling(problem, solver):
    matrix, n_clusters, must, cannot = problem
    if not any(reference.labellings(len(matrix), n_clusters, must, cannot)):
        with pytest.raises(ConstraintError):
            fitted(*problem, solver=solver)
        return
    model = fitted(*problem, solver=solver)
    labels, lowest = model.labels_, reference.lowest_cost(*problem)
    assert all(labels[i] == labels[j] for i, j in must)
    assert all(labels[i] != labels[j] for i, j in cannot)
    medoid_of = model.medoid_indices_[np.searchsorted(model.cluster_labels_, labels)]
    assert model.inertia_ == matrix[np.arange(len(matrix)), medoid_of].sum()
    assert model.inertia_ == lowest if solver == "exact" else model.inertia_ >= lowest


@given(problem=problems(), data=st.data())
@examples(30)
def test_the_optimum_knows_no_order_of_rows_and_grows_with_the_constraints(problem, data):
    matrix, n_clusters, must, cannot = problem
    if not any(reference.labellings(len(matrix), n_clusters, must, cannot)):
        return
    lowest = fitted(*problem, solver="exact").inertia_
    order = np.array(data.draw(st.permutations(range(len(matrix)))))
    place = np.argsort(order)
    moved = ([(place[i], place[j]) for i, j in pairs] for pairs in (must, cannot))
    assert fitted(matrix[np.ix_(order, order)], n_clusters, *moved, solver="exact").inertia_ == lowest
    assert fitted(matrix, n_clusters, must[1:], cannot[1:], solver="exact").inertia_ <= lowest
