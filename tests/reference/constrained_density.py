"""The join and split of ConstrainedDensity, by its definition, in plain loops over sets."""

from __future__ import annotations

from math import inf

from tests.reference.assign import components, given_pairs


def regions(base, constraints):
    """Sets of rows: clusters joined while a component spans two of them, and components of noise."""
    n = len(base)
    must, _ = given_pairs(constraints)
    component = components(n, must)
    closures = [frozenset(j for j in range(n) if component[j] == component[i]) for i in range(n)]
    known = [False] * n if constraints.labels is None else (constraints.labels >= 0).tolist()
    found = [{i for i in range(n) if base[i] == label} for label in sorted(set(base) - {-1})]
    found += [set(rows) for rows in set(closures) if len(rows) > 1 or any(known[i] for i in rows)]
    changed = True
    while changed:
        changed = False
        for one in found:
            for other in found:
                if one is not other and one & other:
                    one |= other
                    found.remove(other)
                    changed = True
                    break
            if changed:
                break
    return found, closures


def paths(rows, source, cost):
    """Lengths of the shortest paths from a set of rows, by repeated relaxation."""
    length = {row: 0.0 if row in source else inf for row in rows}
    for _ in rows:
        for (i, j), step in cost.items():
            length[j] = min(length[j], length[i] + step)
            length[i] = min(length[i], length[j] + step)
    return length


def split(X, base, constraints, n_neighbors):
    """Sets of rows, the clusters after both steps; all graphs must be connected."""
    _, cannot = given_pairs(constraints)
    found, closures = regions(base, constraints)
    result = []
    for rows in found:
        apart = {frozenset((closures[i], closures[j])) for i, j in cannot if i in rows and j in rows}
        sources = sorted({closure for pair in apart for closure in pair}, key=min)
        if not sources:
            result.append(rows)
            continue
        cost = {}
        for i in rows:
            for j in sorted(rows - {i}, key=lambda j: abs(X[i] - X[j]))[:n_neighbors]:
                cost[min(i, j), max(i, j)] = (X[i] - X[j]) ** 2
            for j in closures[i] - {i}:
                cost[min(i, j), max(i, j)] = 0.0
        lengths = {source: paths(rows, source, cost) for source in sources}
        cells = {source: set() for source in sources}
        for i in rows:
            cells[min(sources, key=lambda source: lengths[source][i])].add(i)
        between = {}
        for one in sources:
            for other in sources:
                if min(one) < min(other):
                    routes = [
                        lengths[one][i] + step + lengths[other][j]
                        for (a, b), step in cost.items()
                        for i, j in ((a, b), (b, a))
                        if i in cells[one] and j in cells[other]
                    ]
                    if routes:
                        between[one, other] = min(routes)
        groups = [{source} for source in sources]
        for one, other in sorted(between, key=between.get):
            mine, theirs = (next(group for group in groups if source in group) for source in (one, other))
            if mine is not theirs and not any(frozenset((a, b)) in apart for a in mine for b in theirs):
                mine |= theirs
                groups.remove(theirs)
        result += [set().union(*(cells[source] for source in group)) for group in groups]
    return result
