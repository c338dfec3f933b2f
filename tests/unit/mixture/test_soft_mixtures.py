"""Mixtures with uncertain constraints: bad input, and the effect of doubtful pairs."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints, PenalizedGaussianMixture, SoftGroupMixture
from clew.exceptions import ConstraintError, ContradictoryConstraintsError, ParameterError, UnusedKnowledgeWarning


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[1.2], [0]], r"soft_groups\[0, 0\] is 1.2: a strength lies in \[0, 1\]"),
        ([[-0.1], [0]], r"soft_groups\[0, 0\] is -0.1"),
        ([[0, 0], [0.7, 0.6]], r"strengths of row 1 sum to 1.3; they may sum to at most 1"),
    ],
)
def test_strengths_out_of_range_are_refused(groups, message):
    with pytest.raises(ConstraintError, match=message):
        SoftGroupMixture(1).fit([[0.0], [1.0]], constraints={"soft_groups": groups})


@pytest.mark.parametrize("weight", [0, -1, np.inf])
def test_a_weight_of_knowledge_that_is_none_is_refused(weight):
    with pytest.raises(ParameterError, match="knowledge_weight"):
        SoftGroupMixture(1, knowledge_weight=weight).fit([[0.0], [1.0]])


def test_contradictory_certain_pairs_are_refused_and_doubtful_ones_are_weighed(seed):
    X = np.random.default_rng(seed).normal(size=(8, 1))
    both = {"must_link": [(0, 1)], "cannot_link": [(0, 1)]}
    with pytest.raises(ContradictoryConstraintsError, match="separates rows 0 and 1"):
        PenalizedGaussianMixture(2).fit(X, constraints=both)
    even = Constraints(**both, must_link_confidence=0.8, cannot_link_confidence=0.8, n_samples=8)
    model = PenalizedGaussianMixture(2, init=X[[0, 7]], reg_covar=0.1).fit(X, constraints=even)
    assert model.must_link_posterior_ == pytest.approx(model.cannot_link_posterior_)


def test_a_wrong_pair_is_overruled_where_the_rows_are_clear(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 9])
    known = {"must_link": [(0, 1), (0, 59)], "must_link_confidence": [0.8, 0.8]}
    model = PenalizedGaussianMixture(2, random_state=seed).fit(X, constraints=known)
    assert model.must_link_posterior_[0] > 0.99
    assert model.must_link_posterior_[1] < 0.01
    assert model.violated_must_link_.tolist() == [[0, 59]]
    assert SoftGroupMixture(2, random_state=seed).fit(X, constraints=known).violated_must_link_.tolist() == [[0, 59]]


def test_cannot_links_that_are_not_used_are_named():
    with pytest.warns(
        UnusedKnowledgeWarning,
        match=r"cannot_link in constraints\. Use ConstrainedGaussianMixture or PenalizedGaussianMixture\.$",
    ):
        SoftGroupMixture(2, random_state=0).fit([[0.0], [1.0], [8.0], [9.0]], constraints={"cannot_link": [(0, 3)]})
