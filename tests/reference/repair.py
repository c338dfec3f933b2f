"""The cheapest repair by trying every set of statements to drop."""

from __future__ import annotations

from itertools import product

from tests.reference.constraints import columns_of, is_satisfied


def statements_of(constraints):
    """Every statement as (kind, index, column), in the order in which `repair` reports them."""
    found = [("must_link", place, 0) for place in range(len(constraints.must_link))]
    found += [("cannot_link", place, 0) for place in range(len(constraints.cannot_link))]
    for kind, groups in (
        ("label", constraints.labels),
        ("must_group", constraints.must_groups),
        ("cannot_group", constraints.cannot_groups),
    ):
        columns = columns_of(groups)
        n_rows = len(columns[0]) if columns else 0
        found += [
            (kind, row, number) for row in range(n_rows) for number, column in enumerate(columns) if column[row] >= 0
        ]
    return found


def without(constraints, dropped):
    """The constraints without the statements in `dropped`."""
    state = {
        name: getattr(constraints, name) for name in ("labels", "must_groups", "cannot_groups", "n_samples", "classes")
    }
    for name in ("labels", "must_groups", "cannot_groups"):
        state[name] = None if state[name] is None else state[name].copy()
    for kind, index, column in dropped:
        if kind in ("label", "must_group", "cannot_group"):
            values = state[f"{kind}s"]
            values[(index,) if values.ndim == 1 else (index, column)] = -1
    for kind in ("must_link", "cannot_link"):
        gone = {index for other, index, _ in dropped if other == kind}
        state[kind] = [pair for place, pair in enumerate(getattr(constraints, kind).tolist()) if place not in gone]
    return type(constraints)(**state)


def can_hold(constraints, n_clusters):
    return any(is_satisfied(labels, constraints) for labels in product(range(n_clusters), repeat=constraints.n_rows))


def cheapest_cost(constraints, n_clusters, prices):
    """The cost of the cheapest repair: for each labelling, what has to go. Prices in the order of `statements_of`."""
    statements = statements_of(constraints)
    best = float("inf")
    for keep in product([True, False], repeat=len(statements)):
        cost = sum(price for price, kept in zip(prices, keep, strict=True) if not kept)
        if cost < best:
            dropped = [one for one, kept in zip(statements, keep, strict=True) if not kept]
            if can_hold(without(constraints, dropped), n_clusters):
                best = cost
    return best
