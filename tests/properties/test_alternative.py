"""Laws of alternative clusterings on random data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew import CondEns, CoordinatedConditionalIB
from clew._validation import check_given
from clew.alternative._coordinated_conditional_ib import Masses, feature_table, mutual_information
from tests.helpers import examples


def drawn(seed, n_rows=14):
    rng = np.random.default_rng(seed)
    known = np.concatenate([[0, 0, 1, 1], rng.integers(-1, 3, size=n_rows - 4)])
    return rng.normal(size=(n_rows, 3)).round(2), rng.permutation(known), rng


@examples(15)
@given(seed=st.integers(0, 2**16), coordination=st.sampled_from([0.0, 0.3, 1.0]))
def test_information_obeys_its_bounds_and_the_objective_falls(seed, coordination):
    X, known, _ = drawn(seed)
    model = CoordinatedConditionalIB(3, coordination=coordination, n_bins=5, n_init=2, random_state=seed)
    model.fit(X, given=known)
    sizes = model.cluster_sizes_[model.cluster_sizes_ > 0] / len(X)
    entropy = -(sizes * np.log(sizes)).sum()
    for information in (model.information_, model.conditional_information_):
        assert -1e-12 <= information <= entropy + 1e-9
    assert (np.diff(model.objective_history_) <= 1e-9).all()
    assert model.objective_ >= -1e-12


@given(seed=st.integers(0, 2**16))
def test_the_chain_rule_of_information_holds(seed):
    """I(C; Y | Z) + I(Z; Y) = I(C, Z; Y)."""
    X, known, rng = drawn(seed)
    table = feature_table(X, known, 6)
    masses = Masses.of(table, rng.integers(3, size=len(X)), 3)
    both = masses.joint.reshape(-1, masses.joint.shape[2])
    by_side = masses.joint.sum(axis=0)
    assert masses.conditional_information() + mutual_information(by_side) == pytest.approx(mutual_information(both))
    assert masses.marginal[:, -1].sum() == pytest.approx(1)


@given(seed=st.integers(0, 2**16), scale=st.sampled_from([1e-6, 3.0, 1e9]), shift=st.integers(-50, 50))
def test_units_of_columns_do_not_matter_to_bins(seed, scale, shift):
    X, known, _ = drawn(seed)
    one, other = feature_table(X, known, 6), feature_table(scale * (X + shift), known, 6)
    np.testing.assert_allclose(one.rows.toarray(), other.rows.toarray(), atol=1e-7)


@examples(15)
@given(seed=st.integers(0, 2**16), shift=st.integers(-1000, 1000))
def test_a_shift_of_all_rows_changes_nothing_for_cond_ens(seed, shift):
    X, known, _ = drawn(seed)
    whole = (100 * X).round()
    here, there = (CondEns(2, random_state=0).fit(rows, given=known) for rows in (whole, whole + shift))
    assert here.inertia_ == pytest.approx(there.inertia_, rel=1e-6)
    assert here.labels_.tolist() == there.labels_.tolist()


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=4, max_size=9))
def test_given_clusters_are_numbered_as_they_appear(names):
    known = ["x", "y", *names]
    numbers = check_given(known, len(known))
    assert numbers.tolist() == [list(dict.fromkeys(known)).index(name) for name in known]
