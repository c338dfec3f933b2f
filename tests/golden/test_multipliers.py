"""Multipliers, charges and steps equal the loops of the reference; numbers are small integers, so sums are exact."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from clew.kernels.edit_distance import edit_distances
from clew.kernels.multipliers import assign_charged, charge_rows, step_multipliers
from clew.solvers.coloring import compress
from tests.reference import lagrangian as reference


def draw(rng):
    n_rows, k = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    pairs = np.array([rng.choice(n_rows, 2, replace=False) for _ in range(rng.integers(0, 5))], dtype=np.int64)
    sets = [rng.choice(n_rows, rng.integers(2, n_rows + 1), replace=False) for _ in range(rng.integers(0, 4))]
    set_of = np.repeat(np.arange(len(sets)), [len(members) for members in sets])
    members = np.concatenate([np.empty(0, dtype=np.int64), *sets]).astype(np.int64)
    ptr, members = compress(set_of.astype(np.int64), members, len(sets))
    return n_rows, k, pairs.reshape(-1, 2), [members[a:b] for a, b in itertools.pairwise(ptr)], ptr, members


@pytest.mark.parametrize("case", range(60))
def test_a_round_of_the_kernels_is_a_round_of_the_reference(case, seed):
    rng = np.random.default_rng([seed, case])
    n_rows, k, pairs, sets, ptr, members = draw(rng)
    pulls = rng.integers(-4, 5, (len(pairs), k)).astype(float)
    prices = rng.integers(0, 5, (len(sets), k)).astype(float)
    charges = np.empty((n_rows, k))
    charge_rows(pairs, pulls, ptr, members, prices, charges)
    assert charges.tolist() == reference.charge_rows(n_rows, k, pairs, pulls, sets, prices)

    costs = rng.integers(0, 9, (n_rows, k)).astype(float)
    labels = np.empty(n_rows, dtype=np.int32)
    total = assign_charged(costs, charges, labels)
    assert (labels.tolist(), total) == reference.assign_charged(costs.tolist(), charges.tolist())

    steps = rng.integers(1, 4, len(pairs)).astype(float), rng.integers(1, 4, len(sets)).astype(float)
    most = rng.choice([2.0, np.inf], len(pairs)), rng.choice([2.0, np.inf], len(sets))
    expected = reference.step_multipliers(
        pairs, pulls, steps[0], most[0], sets, prices, steps[1], most[1], labels, 0.5, 0.75
    ) if len(pairs) + len(sets) else ([], [])  # fmt: skip
    step_multipliers(pairs, steps[0], most[0], ptr, members, steps[1], most[1], labels, 0.5, 0.75, pulls, prices)
    assert (pulls.tolist(), prices.tolist()) == expected


def test_edit_distances_equal_the_recursive_definition(seed):
    rng = np.random.default_rng(seed)
    sequences = [rng.integers(0, 4, rng.integers(0, 8)) for _ in range(30)]
    pointers = np.concatenate([[0], np.cumsum([len(s) for s in sequences])]).astype(np.int64)
    symbols = np.concatenate(sequences).astype(np.int64)
    first, second = np.triu_indices(len(sequences))
    found = np.empty(len(first))
    edit_distances(
        pointers, symbols, first.astype(np.int64), second.astype(np.int64),
        np.zeros((9, 9), dtype=np.int64), np.zeros(4, dtype=np.int64), found,
    )  # fmt: skip
    expected = [
        reference.edit_distance(sequences[i].tolist(), sequences[j].tolist())
        for i, j in zip(first, second, strict=True)
    ]
    assert found.tolist() == expected


def test_a_swap_may_have_insertions_in_between():
    # CA -> ABC is 2 (swap, insert); without that freedom it would be 3.
    assert reference.edit_distance("CA", "ABC") == 2
