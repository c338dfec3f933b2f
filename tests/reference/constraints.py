"""What constraints state and entail, pair by pair."""

from __future__ import annotations

from itertools import combinations


def columns_of(groups):
    if groups is None:
        return []
    return [groups.tolist()] if groups.ndim == 1 else groups.T.tolist()


def sharing(column):
    return [(i, j) for i, j in combinations(range(len(column)), 2) if column[i] == column[j] != -1]


def stated_must_link(constraints):
    """Every stated pair of rows that belong together with its confidence; groups and classes are certain."""
    given = zip(map(tuple, constraints.must_link.tolist()), constraints.must_link_confidence.tolist(), strict=True)
    grouped = [*columns_of(constraints.must_groups), *columns_of(constraints.labels)]
    return [*given, *((pair, 1.0) for column in grouped for pair in sharing(column))]


def given_cannot_link(constraints):
    return zip(map(tuple, constraints.cannot_link.tolist()), constraints.cannot_link_confidence.tolist(), strict=True)


def stated_cannot_link(constraints):
    """Every stated pair of rows that never belong together with its confidence; groups and classes are certain."""
    grouped = [pair for column in columns_of(constraints.cannot_groups) for pair in sharing(column)]
    classes = [
        (i, j)
        for column in columns_of(constraints.labels)
        for i, j in combinations(range(len(column)), 2)
        if -1 != column[i] != column[j] != -1
    ]
    return [*given_cannot_link(constraints), *((pair, 1.0) for pair in [*grouped, *classes])]


def together(constraints):
    """How sure each pair of rows (i, j) is to belong together: as the weakest link of the surest chain."""
    rows = range(constraints.n_rows)
    sure = {(i, j): float(i == j) for i in rows for j in rows}
    for (i, j), confidence in stated_must_link(constraints):
        sure[i, j] = sure[j, i] = max(sure[i, j], confidence)
    for via in rows:
        for i in rows:
            for j in rows:
                sure[i, j] = max(sure[i, j], min(sure[i, via], sure[via, j]))
    return sure


def apart(constraints, stated=stated_cannot_link, joined=None):
    """How sure each pair of rows (i, j) is to be apart: a stated separation reached by a chain at either end."""
    rows = range(constraints.n_rows)
    joined = joined or together(constraints)
    sure = dict.fromkeys(joined, 0.0)
    for (a, b), confidence in stated(constraints):
        for i in rows:
            for j in rows:
                reached = min(confidence, joined[i, a], joined[b, j])
                sure[i, j] = sure[j, i] = max(sure[i, j], sure[j, i], reached)
    return sure


def entailed(constraints):
    """Pairs of rows entailed to be together and to be apart, whatever the confidence; (i, i) apart: contradictory."""
    return tuple({pair for pair, sure in kind(constraints).items() if sure} for kind in (together, apart))


def is_satisfied(labels, constraints):
    return all(labels[i] == labels[j] for (i, j), _ in stated_must_link(constraints)) and all(
        labels[i] != labels[j] for (i, j), _ in stated_cannot_link(constraints)
    )


def is_kept(constraints, rows, restricted):
    """Whether `restricted`, about `rows` in their order, entails among them what `constraints` do.

    The same pairs, certain where they were certain, and never surer. Two separations may go: those that need an
    uncertain link to a class or a cannot-group, and, where constraints contradict one another, those within a component
    (a row that would have to differ from itself, which no pair can say).
    """
    joined = together(constraints)
    separated = apart(constraints, joined=joined)
    by_pairs = apart(constraints, given_cannot_link, joined)
    still_joined, still_separated = together(restricted), apart(restricted)
    kept = restricted.n_rows == len(rows)
    for i, j in combinations(range(len(rows)), 2):
        old, new = (rows[i], rows[j]), (i, j)
        kept &= bool(joined[old]) == bool(still_joined[new]) and (joined[old] == 1) == (still_joined[new] == 1)
        kept &= still_joined[new] <= joined[old] and still_separated[new] <= separated[old]
        kept &= joined[old] == 1 or separated[old] < 1 or still_separated[new] == 1
        kept &= joined[old] > 0 or not by_pairs[old] or still_separated[new] > 0
    return kept
