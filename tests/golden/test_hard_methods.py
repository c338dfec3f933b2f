"""Random small instances: hard methods violate no pair, and every refusal is confirmed by trying every labelling.

10,000 instances with `--thorough`, a few hundred without.
"""

from __future__ import annotations

import inspect
import warnings
from itertools import product

import numpy as np
import pytest

from clew import Constraints
from clew._registry import all_estimators
from clew.exceptions import ContradictoryConstraintsError, InfeasibleConstraintsError
from tests.reference.constraints import is_satisfied

N_TURNS, N_INSTANCES = 100, 100


def hard_methods():
    """Methods with a number of clusters that promise to satisfy both kinds of pairs."""
    return [
        cls
        for cls in all_estimators()
        if getattr(cls, "_capabilities", None) is not None
        and (getattr(cls._capabilities, "must_link", None), getattr(cls._capabilities, "cannot_link", None))
        == ("hard", "hard")
        and "n_clusters" in inspect.signature(cls.__init__).parameters
    ]


def can_hold(constraints, n_clusters):
    """Whether some labelling of the rows satisfies everything, by trying all of them."""
    return any(is_satisfied(labels, constraints) for labels in product(range(n_clusters), repeat=constraints.n_rows))


@pytest.mark.sampled(50, slow=25)
@pytest.mark.parametrize("turn", range(N_TURNS))
def test_hard_methods_violate_nothing_and_refuse_only_the_impossible(turn, seed):
    rng = np.random.default_rng([seed, turn])
    methods = hard_methods()
    assert len(methods) >= 2
    for _ in range(N_INSTANCES):
        n_rows, k = int(rng.integers(3, 8)), int(rng.integers(1, 4))
        X = rng.normal(size=(n_rows, 2))
        pairs = [rng.choice(n_rows, 2, replace=False).tolist() for _ in range(int(rng.integers(1, 9)))]
        same = rng.random(len(pairs)) < rng.choice([0.2, 0.5])
        known = Constraints(
            [pair for pair, is_same in zip(pairs, same, strict=True) if is_same],
            [pair for pair, is_same in zip(pairs, same, strict=True) if not is_same],
            n_samples=n_rows,
        )
        method = methods[int(rng.integers(len(methods)))](n_clusters=k)
        # An agglomeration stops at a dead end unless it is told to search on.
        options = {"random_state": 0, "on_dead_end": "color"}
        method.set_params(**{name: value for name, value in options.items() if name in method.get_params()})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                labels = method.fit(X, constraints=known).labels_
            except (ContradictoryConstraintsError, InfeasibleConstraintsError):
                assert not can_hold(known, k), (method, pairs, same, k)
                continue
        assert is_satisfied(labels, known), (method, pairs, same, k)
        assert len(set(labels.tolist()) - {-1}) <= k, (method, pairs, same, k)
