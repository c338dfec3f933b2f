"""`repair` equals an exhaustive search over all sets of statements."""

from __future__ import annotations

import numpy as np
import pytest

from clew import Constraints
from tests.reference.repair import can_hold, cheapest_cost, statements_of, without


def random_constraints(rng, n_rows, n_pairs, **options):
    pairs = [rng.choice(n_rows, 2, replace=False).tolist() for _ in range(n_pairs)]
    same = rng.random(n_pairs) < options.get("same", 0.5)
    more = {}
    if rng.random() < 0.4:
        more["labels"] = np.where(rng.random(n_rows) < 0.5, rng.integers(0, 3, n_rows), -1)
    if rng.random() < 0.3:
        more["must_groups"] = np.where(rng.random(n_rows) < 0.4, rng.integers(0, 2, n_rows), -1)
    if rng.random() < 0.3:
        more["cannot_groups"] = np.where(rng.random(n_rows) < 0.5, rng.integers(0, 2, n_rows), -1)
    return Constraints(
        [pair for pair, is_same in zip(pairs, same, strict=True) if is_same],
        [pair for pair, is_same in zip(pairs, same, strict=True) if not is_same],
        n_samples=n_rows,
        **more,
    )


@pytest.mark.parametrize("turn", range(5))
def test_repair_is_as_cheap_as_the_best_of_all(turn, seed):
    rng = np.random.default_rng([seed, turn])
    n_dropped = 0
    for _ in range(8):
        known = random_constraints(rng, n_rows=int(rng.integers(3, 6)), n_pairs=int(rng.integers(2, 7)))
        statements = statements_of(known)
        if len(statements) > 11:
            continue
        n_clusters = int(rng.integers(1, 4))
        prices = rng.integers(0, 5, len(statements)).astype(float)
        price_of = dict(zip(statements, prices, strict=True))
        found = known.repair(n_clusters, lambda one, of=price_of: of[one.kind, one.index, one.column])
        assert found.exact
        assert found.cost == pytest.approx(cheapest_cost(known, n_clusters, prices))
        assert found.lower_bound == found.cost == sum(one.price for one in found.dropped)
        gone = [(one.kind, one.index, one.column) for one in found.dropped]
        assert found.constraints == without(known, gone)
        assert can_hold(found.constraints, n_clusters)
        for one in gone:
            assert not can_hold(without(known, [other for other in gone if other != one]), n_clusters)
        n_dropped += len(gone)
    assert n_dropped
