"""Laws of the agglomerative methods on anything Hypothesis draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.cluster.hierarchy import cophenet, dendrogram, is_valid_linkage, linkage

import clew.hierarchical
from clew import ConstrainedAgglomerative, Constraints
from clew.hierarchical._agglomeration import LINKAGES
from tests.helpers import made, random_knowledge
from tests.reference.assign import broken, given_pairs

FAMILY = [getattr(clew.hierarchical, name) for name in clew.hierarchical.__all__]
every_class = pytest.mark.parametrize("cls", FAMILY)
# Whole numbers, so that equal rows and equal distances are common.
values = st.integers(-4, 4).map(float)


@st.composite
def problems(draw):
    n = draw(st.integers(1, 12))
    X = draw(arrays.arrays(np.float64, (n, draw(st.integers(1, 3))), elements=values))
    rng = np.random.default_rng(draw(st.integers(0, 2**31 - 1)))
    return X, random_knowledge(rng, n) if n > 1 else Constraints(n_samples=1)


@every_class
@given(problem=problems(), linkage=st.sampled_from(LINKAGES))
def test_every_level_satisfies_every_constraint(cls, problem, linkage):
    X, known = problem
    model = made(cls, None, linkage=linkage).fit(X, constraints=known)
    must, cannot = given_pairs(known)
    for n_clusters in range(model.k_min_, model.k_max_ + 1):
        labels = model.cut(n_clusters).tolist()
        assert broken(must, cannot, labels) == 0
        assert len(set(labels)) == n_clusters
    assert (model.labels_[:, None] == model.labels_).tolist() == (
        model.cut(model.k_min_)[:, None] == model.cut(model.k_min_)
    ).tolist()


@every_class
@given(problem=problems(), linkage=st.sampled_from(LINKAGES[:4]))
def test_merges_of_reducible_linkages_never_get_lower(cls, problem, linkage):
    X, known = problem
    model = made(cls, None, linkage=linkage).fit(X, constraints=known)
    assert (np.diff(model.linkage_[:, 2]) >= 0).all()


@every_class
@given(problem=problems(), linkage=st.sampled_from(LINKAGES))
def test_scipy_takes_the_tree(cls, problem, linkage):
    X, known = problem
    model = made(cls, None, linkage=linkage).fit(X, constraints=known)
    assert model.linkage_.shape == (len(X) - 1, 4)
    assert np.isfinite(model.linkage_).all()
    if len(X) > 1:
        assert is_valid_linkage(model.linkage_, throw=True)
        assert sorted(dendrogram(model.linkage_, no_plot=True)["leaves"]) == list(range(len(X)))
        n_must = len(X) - model.k_max_
        assert (model.linkage_[:n_must, 2] == 0).all()
        assert (
            model.linkage_[len(X) - model.k_min_ :, 2] > model.linkage_[: len(X) - model.k_min_, 2].max(initial=0)
        ).all()


@given(seed=st.integers(0, 2**31 - 1), kind=st.sampled_from(LINKAGES), n=st.integers(2, 40))
def test_without_constraints_the_tree_is_scipys(seed, kind, n):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    expected = linkage(X, kind)
    found = ConstrainedAgglomerative(linkage=kind).fit(X).linkage_
    np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=1e-9)
    np.testing.assert_allclose(cophenet(found), cophenet(expected), rtol=1e-9)


@given(problem=problems(), linkage=st.sampled_from(LINKAGES), n_clusters=st.integers(1, 4))
def test_with_colouring_the_number_of_clusters_is_reached_where_it_can_be(problem, linkage, n_clusters):
    X, known = problem
    model = ConstrainedAgglomerative(min(n_clusters, len(X)), linkage=linkage, on_dead_end="color")
    if not known.check(model.n_clusters):
        with pytest.raises(clew.exceptions.InfeasibleConstraintsError):
            model.fit(X, constraints=known)
        return
    model.fit(X, constraints=known)
    assert len(np.unique(model.labels_)) == min(model.n_clusters, model.k_max_)
    assert broken(*given_pairs(known), model.labels_.tolist()) == 0
