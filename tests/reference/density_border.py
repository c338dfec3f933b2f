"""Truong and Battiti (2013), Algorithm 19, by the definitions, with the two nearest border rows."""

from __future__ import annotations

from math import dist


def core_and_border(X, eps, min_samples):
    rows = range(len(X))
    around = {u: {v for v in rows if dist(X[u], X[v]) <= eps} for u in rows}
    core = [u for u in rows if len(around[u]) >= min_samples]
    border = [u for u in rows if u not in core and around[u] & set(core)]
    return core, border


def questions(X, eps, min_samples, first):
    """All pairs in the order of the algorithm, none left out, when the first core row is given."""
    core, border = core_and_border(X, eps, min_samples)
    selected, asked = [], []
    while len(selected) < len(core):
        row = first
        if selected:
            free = [u for u in core if u not in selected]
            row = max(free, key=lambda u: (min(dist(X[u], X[v]) for v in selected), -u))
        asked += [(row, other) for other in sorted(selected, key=lambda v: dist(X[row], X[v]))]
        selected.append(row)
        asked += [(row, other) for other in sorted(border, key=lambda v: dist(X[row], X[v]))[:2]]
    return asked
