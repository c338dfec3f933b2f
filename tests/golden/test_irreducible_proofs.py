"""The rows that prove constraints infeasible are irreducible, by trying every labelling."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from clew import Constraints
from tests.reference.constraints import entailed, stated_cannot_link, stated_must_link


def can_hold(pairs_together, pairs_apart, rows, n_clusters):
    """Whether some labelling of `rows` keeps the pairs among them."""
    together = [pair for pair in pairs_together if set(pair) <= set(rows)]
    apart = [pair for pair in pairs_apart if set(pair) <= set(rows)]
    for choice in product(range(n_clusters), repeat=len(rows)):
        label = dict(zip(rows, choice, strict=True))
        if all(label[i] == label[j] for i, j in together) and all(label[i] != label[j] for i, j in apart):
            return True
    return False


@pytest.mark.parametrize("turn", range(4))
def test_dropping_any_row_of_a_proof_makes_the_rest_feasible(turn, seed):
    rng = np.random.default_rng([seed, turn])
    n_infeasible = 0
    for _ in range(60):
        n_rows, n_clusters = int(rng.integers(3, 9)), int(rng.integers(1, 4))
        pairs = np.array([rng.choice(n_rows, 2, replace=False) for _ in range(int(rng.integers(2, 16)))])
        same = rng.random(len(pairs)) < 0.25
        groups = {"labels": rng.integers(-1, 3, n_rows), "cannot_groups": rng.integers(-1, 3, n_rows)}
        chosen = {name: value for name, value in groups.items() if rng.random() < 0.3}
        constraints = Constraints(pairs[same], pairs[~same], n_samples=n_rows, **chosen)
        found = constraints.check(n_clusters)
        if found:
            continue
        n_infeasible += 1
        assert found.irreducible
        # A contradiction is a chain of stated pairs; a proof by colouring names one row for each component.
        if found.contradictory:
            n_clusters = max(n_clusters, 2)
            told = [[pair for pair, _ in kind(constraints)] for kind in (stated_must_link, stated_cannot_link)]
        else:
            told = entailed(constraints)
        rows = found.rows.tolist()
        assert not can_hold(*told, rows, n_clusters)
        for row in rows:
            assert can_hold(*told, [other for other in rows if other != row], n_clusters)
    assert n_infeasible > 10
