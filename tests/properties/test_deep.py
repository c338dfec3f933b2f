"""Laws of the knowledge that a network learns from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="needs the extra deep")
from clew.deep._knowledge import DeepKnowledge, Pairs
from clew.deep._network import Rows, soft_assignment, target_distribution

numbers = st.integers(0, 2**32 - 1)


def some_pairs(rng, n_rows, n_pairs):
    rows = np.array([rng.choice(n_rows, 2, replace=False) for _ in range(n_pairs)], dtype=np.int64)
    rows = rows.reshape(-1, 2)
    return Pairs.distinct(rows, rng.uniform(0.1, 1, len(rows)))


@given(seed=numbers, n_rows=st.integers(3, 40), n_pairs=st.integers(0, 30), batch=st.integers(1, 50))
def test_a_round_sees_every_row_once_and_every_pair_as_often_as_it_weighs(seed, n_rows, n_pairs, batch):
    rng = np.random.default_rng(seed)
    factor = float(rng.choice([1.0, 1.5, 7.0]))
    X = np.arange(n_rows, dtype=np.float64)[:, None]  # a row is its own number
    must, cannot = some_pairs(rng, n_rows, n_pairs), some_pairs(rng, n_rows, n_pairs)
    known = DeepKnowledge(must, cannot, [], [], np.empty((0, 3), dtype=np.int64), np.full(n_rows, -1), factor)
    shares = soft_assignment(rng.normal(size=(n_rows, 2)), rng.normal(size=(3, 2)))
    targets = target_distribution(shares)
    steps = list(
        known.steps(Rows(X, np.zeros(1), 1.0), shares, targets, batch, rng, np.empty((n_rows, 0), dtype=np.int64))
    )
    batches = [step.rows[: step.n_batch, 0].astype(int) for step in steps]
    assert sorted(np.concatenate(batches)) == list(range(n_rows))
    assert max(map(len, batches)) <= batch
    assert all((step.targets == targets[rows]).all() for step, rows in zip(steps, batches, strict=True))
    for kind, given_pairs in (("must_link", must), ("cannot_link", cannot)):
        seen = np.concatenate([step.rows[getattr(step, kind)][..., 0] for step in steps]).astype(int)
        counts = [int((seen == pair).all(axis=1).sum()) for pair in given_pairs.rows]
        assert sum(counts) == len(seen) == round(factor * len(given_pairs.rows))
        assert not counts or max(counts) - min(counts) <= 1


@given(seed=numbers, fraction=st.sampled_from([0.0, 0.3, 0.95, 1.0]))
def test_filtered_pairs_are_given_ones_and_fewer_with_a_larger_fraction(seed, fraction):
    rng = np.random.default_rng(seed)
    embedding = rng.normal(size=(25, 2)).astype(np.float32)
    known = DeepKnowledge(
        some_pairs(rng, 25, 8), some_pairs(rng, 25, 8), [], [], np.empty((0, 3), dtype=np.int64), np.full(25, -1)
    )
    none, some = (known.filtered(embedding, embedding[:3], share) for share in (0.0, fraction))

    def n_pairs(one):
        return len(one.must_link.rows) + len(one.cannot_link.rows)

    assert n_pairs(some) == n_pairs(none) - int(fraction * n_pairs(none))
    for kind in ("must_link", "cannot_link"):
        rows = {tuple(pair) for pair in getattr(some, kind).rows.tolist()}
        assert rows <= {tuple(pair) for pair in getattr(none, kind).rows.tolist()}
        assert rows <= {tuple(pair) for pair in getattr(known, kind).rows.tolist()}
    if n_pairs(some):
        assert some.pair_weight * n_pairs(some) == pytest.approx(n_pairs(none))


@given(seed=numbers, n_rows=st.integers(4, 40), batch=st.integers(1, 50))
def test_rows_of_pairs_stand_for_their_neighbours(seed, n_rows, batch):
    """Each row's neighbours are the two after it; over 200 uses of a pair, every combination appears."""
    rng = np.random.default_rng(seed)
    must, cannot = some_pairs(rng, n_rows, 1), some_pairs(rng, n_rows, 0)
    known = DeepKnowledge(must, cannot, [], [], np.empty((0, 3), dtype=np.int64), np.full(n_rows, -1), 200.0)
    shares = np.full((n_rows, 2), 0.5)
    neighbors = (np.arange(n_rows)[:, None] + [1, 2]) % n_rows
    X = np.arange(n_rows, dtype=np.float64)[:, None]
    steps = list(known.steps(Rows(X, np.zeros(1), 1.0), shares, shares, batch, rng, neighbors))
    seen = np.concatenate([step.rows[step.must_link][..., 0] for step in steps]).astype(int)
    offsets = (seen - must.rows[0]) % n_rows
    assert {tuple(pair) for pair in offsets.tolist()} == {(a, b) for a in range(3) for b in range(3)}
