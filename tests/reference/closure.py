"""Closure by flooding: from each row, follow must-links until nothing new is reached."""

from __future__ import annotations


def partners(row, pairs):
    return {b for a, b in pairs if a == row} | {a for a, b in pairs if b == row}


def levels(start, must_link):
    """Rows by their distance from `start`: itself, its partners, their partners, …"""
    found, reached = [{start}], {start}
    while found[-1]:
        found.append({other for row in found[-1] for other in partners(row, must_link)} - reached)
        reached |= found[-1]
    return found[:-1]


def component_of(n, must_link):
    """Component of each row, numbered in the order of their first rows."""
    components = [-1] * n
    for row in range(n):
        if components[row] < 0:
            number = max(components) + 1
            for reached in set().union(*levels(row, must_link)):
                components[reached] = number
    return components


def distance(first, second, must_link):
    """Links on the shortest chain between two rows that are joined."""
    return next(steps for steps, rows in enumerate(levels(first, must_link)) if second in rows)


def together(n, must_link):
    """Ordered pairs of rows in one component, each row with itself included."""
    components = component_of(n, must_link)
    return {(i, j) for i in range(n) for j in range(n) if components[i] == components[j]}


def apart(n, must_link, cannot_link):
    """Ordered pairs of rows kept apart, directly or through rows joined to them; (i, i) shows a contradiction."""
    joined = together(n, must_link)
    return {
        (i, j)
        for a, b in [*cannot_link, *(pair[::-1] for pair in cannot_link)]
        for i in range(n)
        for j in range(n)
        if (i, a) in joined and (b, j) in joined
    }
