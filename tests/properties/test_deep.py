"""Laws of the knowledge that a network learns from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="needs the extra deep")
from clew.deep._knowledge import DeepKnowledge, Pairs, mean_by_place
from clew.deep._network import Rows, soft_assignment, target_distribution

numbers = st.integers(0, 2**32 - 1)


def some_pairs(rng, n_rows, n_pairs):
    rows = np.array([rng.choice(n_rows, 2, replace=False) for _ in range(n_pairs)], dtype=np.int64)
    rows = rows.reshape(-1, 2)
    return Pairs.distinct(rows, rng.uniform(0.1, 1, len(rows)))


def knowledge(must, cannot, n_rows):
    return DeepKnowledge(must, cannot, [], [], np.empty((0, 3), dtype=np.int64), np.full(n_rows, -1))


def alone(n_rows):
    """Every row is alike only to itself."""
    return np.arange(n_rows)[:, None]


@given(seed=numbers, n_rows=st.integers(3, 40), n_pairs=st.integers(0, 30), batch=st.integers(1, 50))
def test_a_round_sees_every_row_and_every_pair_once_with_its_confidence(seed, n_rows, n_pairs, batch):
    rng = np.random.default_rng(seed)
    X = np.arange(n_rows, dtype=np.float64)[:, None]  # a row is its own number
    must, cannot = (some_pairs(rng, n_rows, n_pairs) for _ in range(2))
    shares = soft_assignment(rng.normal(size=(n_rows, 2)), rng.normal(size=(3, 2)))
    targets = target_distribution(shares)
    known = knowledge(must, cannot, n_rows)
    steps = list(known.steps(Rows(X, np.zeros(1), 1.0), shares, targets, batch, rng, alone(n_rows)))
    batches = [step.rows[: step.n_batch, 0].astype(int) for step in steps]
    assert sorted(np.concatenate(batches)) == list(range(n_rows))
    assert max(map(len, batches)) <= batch
    assert all((step.targets == targets[rows]).all() for step, rows in zip(steps, batches, strict=True))
    for kind, given_pairs in (("must_link", must), ("cannot_link", cannot)):
        seen = np.concatenate([step.rows[getattr(step, kind)][..., 0] for step in steps]).astype(int)
        weights = np.concatenate([getattr(step, f"{kind}_weight") for step in steps])
        order = np.lexsort(seen.T[::-1])
        assert max(len(getattr(step, kind)) for step in steps) <= batch or len(steps) == n_rows
        assert seen[order].tolist() == given_pairs.rows.tolist()
        np.testing.assert_allclose(weights[order], given_pairs.confidence)


fractions = st.sampled_from([0.0, 0.3, 0.8, 0.95, 1.0])


@given(seed=numbers, fraction=fractions)
def test_a_filter_drops_a_fraction_of_the_costly_pairs_the_lowest_scores_first(seed, fraction):
    rng = np.random.default_rng(seed)
    pairs = some_pairs(rng, 25, 30)
    scores = np.minimum(rng.integers(-5, 6, len(pairs)), 0).astype(float)
    kept = pairs.without_lowest(scores, -0.5, fraction)
    places = {tuple(pair): place for place, pair in enumerate(pairs.rows.tolist())}
    used = np.array([places[tuple(pair)] for pair in kept.rows.tolist()], dtype=np.int64)
    assert (np.diff(used) > 0).all() and kept.confidence.tolist() == pairs.confidence[used].tolist()
    costly, is_left = scores < 0, np.isin(np.arange(len(pairs)), used)
    assert is_left[~costly].all()
    assert (costly & is_left).sum() == costly.sum() - int(fraction * costly.sum())
    assert scores[costly & is_left].min(initial=0.0) >= scores[costly & ~is_left].max(initial=-5.0)


@given(seed=numbers, n_places=st.integers(1, 9), n_scores=st.integers(0, 30))
def test_mean_by_place_is_the_mean_of_each_place(seed, n_places, n_scores):
    rng = np.random.default_rng(seed)
    scores, place = rng.integers(-9, 1, n_scores).astype(float), rng.integers(n_places, size=n_scores)
    expected = [scores[place == one].mean() if (place == one).any() else 0.0 for one in range(n_places)]
    np.testing.assert_allclose(mean_by_place(scores, place, n_places), expected)


@given(seed=numbers, fraction=fractions, n_neighbors=st.integers(0, 3))
def test_a_filter_uses_representatives_of_given_pairs(seed, fraction, n_neighbors):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 0.3), size=25)
    alike = (np.arange(25)[:, None] + np.arange(n_neighbors + 1)) % 25
    known = knowledge(some_pairs(rng, 25, 8), some_pairs(rng, 25, 8), 25)
    found = known.filtered(shares, alike, fraction, rng)
    for kind in ("must_link", "cannot_link"):
        given_pairs, kept = getattr(known, kind), getattr(found, kind)
        assert {*map(tuple, kept.given.tolist())} <= {*map(tuple, given_pairs.rows.tolist())}
        assert all(row in alike[first] for row, first in zip(kept.rows.ravel(), kept.given.ravel(), strict=True))
        assert (kept.rows[:, 0] != kept.rows[:, 1]).all()


@given(seed=numbers, n_rows=st.integers(6, 40))
def test_pairs_stand_for_their_neighbours(seed, n_rows):
    """Each row's neighbours are the two after it; over 300 draws of a pair, every combination appears."""
    rng = np.random.default_rng(seed)
    must = some_pairs(rng, n_rows, 1)
    alike = (np.arange(n_rows)[:, None] + [0, 1, 2]) % n_rows
    rows, place = must.draws(alike, rng, 300)
    assert (place == 0).all()
    offsets = (rows - must.rows[0]) % n_rows
    first, second = must.rows[0]
    possible = {(a, b) for a in range(3) for b in range(3) if (first + a - second - b) % n_rows != 0}
    assert {tuple(pair) for pair in offsets.tolist()} == possible


@given(seed=numbers, batch=st.integers(1, 50))
def test_triplets_and_groups_stand_for_their_neighbours(seed, batch):
    rng = np.random.default_rng(seed)
    n_rows, none = 12, Pairs.distinct(np.empty((0, 2), dtype=np.int64), np.empty(0))
    group = np.where(np.arange(n_rows) == 0, 0, -1)
    group[6] = 0
    known = DeepKnowledge(none, none, [group], [], np.array([[0, 4, 8]]), np.full(n_rows, -1))
    alike, shares = (np.arange(n_rows)[:, None] + [0, 1]) % n_rows, np.full((n_rows, 2), 0.5)
    X = np.arange(n_rows, dtype=np.float64)[:, None]
    seen = {"must_link": set(), "triplets": set()}
    for _ in range(150):
        for step in known.steps(Rows(X, np.zeros(1), 1.0), shares, shares, batch, rng, alike):
            for kind, found in seen.items():
                found |= {tuple(sorted(one)) for one in step.rows[getattr(step, kind)][..., 0].astype(int).tolist()}
    assert seen["must_link"] == {(a, b) for a in (0, 1) for b in (6, 7)}
    assert seen["triplets"] == {(a, b, c) for a in (0, 1) for b in (4, 5) for c in (8, 9)}


@given(seed=numbers)
def test_fraction_zero_drops_no_pair(seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 0.1), size=40)
    known = knowledge(some_pairs(rng, 40, 20), some_pairs(rng, 40, 20), 40)
    found = known.filtered(shares, alone(40), 0.0, rng)
    assert found.must_link.rows.tolist() == known.must_link.rows.tolist()
    assert found.cannot_link.rows.tolist() == known.cannot_link.rows.tolist()
