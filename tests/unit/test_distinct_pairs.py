"""Distinct pairs, regardless of direction: the only place that drops repeated pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.constraints._arrays import distinct_pairs

statements = st.lists(
    st.tuples(st.integers(0, 4), st.integers(5, 8), st.booleans(), st.sampled_from([0.5, 0.9, 1.0])), max_size=12
)


@given(statements)
def test_every_pair_is_there_once_with_its_most_confident_statement(stated):
    pairs = np.array([(b, a) if turned else (a, b) for a, b, turned, _ in stated], dtype=np.int64).reshape(-1, 2)
    confidence = np.array([one[3] for one in stated])
    found = distinct_pairs(pairs, confidence)
    keys = [tuple(sorted(pair)) for pair in pairs.tolist()]
    assert found.pairs.tolist() == [list(key) for key in sorted(set(keys))]
    assert [tuple(found.pairs[place].tolist()) for place in found.pair_of] == keys
    for pair, best in zip(found.pairs.tolist(), found.best.tolist(), strict=True):
        same = [place for place, key in enumerate(keys) if key == tuple(pair)]
        assert best == max(same, key=lambda place: (confidence[place], -place))


@pytest.mark.parametrize("confidence", [None, np.empty(0)])
def test_no_pairs_are_no_pairs(confidence):
    found = distinct_pairs(np.empty((0, 2), dtype=np.int64), confidence)
    assert [len(part) for part in found] == [0, 0, 0]
