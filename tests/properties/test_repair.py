"""Laws of `Constraints.repair`."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clew import Constraints
from tests.reference.repair import without

pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] != pair[1]), max_size=14)
classes = st.none() | st.lists(st.integers(-1, 3), min_size=10, max_size=10)
groups = st.none() | st.lists(st.integers(-1, 2), min_size=10, max_size=10)


@given(
    must=pairs, cannot=pairs, labels=classes, together=groups, apart=groups, k=st.integers(1, 4), seed=st.integers(0, 9)
)
def test_what_is_left_holds_and_nothing_is_dropped_in_vain(must, cannot, labels, together, apart, k, seed):
    rng = np.random.default_rng(seed)
    known = Constraints(
        must, cannot, labels=labels, must_groups=together, cannot_groups=apart, n_samples=10,
        must_link_confidence=rng.uniform(0.1, 1, len(must)), cannot_link_confidence=rng.uniform(0.1, 1, len(cannot)),
    )  # fmt: skip
    found = known.repair(k)
    assert found.constraints.check(k)
    assert found.cost == sum(one.price for one in found.dropped)
    assert found.lower_bound <= found.cost + 1e-9
    assert found.exact == (abs(found.lower_bound - found.cost) < 1e-6)
    if known.check(k):
        assert found.dropped == ()
        assert found.constraints is known
    for one in found.dropped:
        others = [(other.kind, other.index, other.column) for other in found.dropped if other is not one]
        assert not without(known, others).check(k)
    assert found.constraints.repair(k).dropped == ()


@given(must=pairs, cannot=pairs, k=st.integers(1, 4))
def test_the_price_scales(must, cannot, k):
    known = Constraints(must, cannot, n_samples=10)
    prices = np.full(len(must) + len(cannot), 3.0)
    assert known.repair(k, prices).cost == 3 * known.repair(k).cost
