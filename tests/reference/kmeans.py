"""K-means in plain loops over exact fractions: no rounding, and a tie between clusters is an error, not a coin toss."""

from __future__ import annotations

from fractions import Fraction


class TieError(Exception):
    """Two clusters cost exactly the same: rounding decides which one a float computation takes."""


def exact(rows):
    return [[Fraction(float(value)) for value in row] for row in rows]


def squared_distance(a, b):
    return sum(((x - y) ** 2 for x, y in zip(a, b, strict=True)), Fraction(0))


def mean(rows, weights=None):
    weights = [Fraction(1)] * len(rows) if weights is None else weights
    total = sum(weights, Fraction(0))
    return [
        sum((w * row[c] for w, row in zip(weights, rows, strict=True)), Fraction(0)) / total
        for c in range(len(rows[0]))
    ]


def refuse_ties(costs):
    if len(set(costs)) < len(costs):
        raise TieError


def cheapest(costs):
    best = min(range(len(costs)), key=costs.__getitem__)
    if costs.count(costs[best]) > 1:
        raise TieError
    return best


def nearest(row, centers):
    return cheapest([squared_distance(row, center) for center in centers])


def means_by_cluster(X, labels, centers, weights=None):
    """A cluster without rows is an error: restarts are tested on their own."""
    new = []
    for cluster in range(len(centers)):
        members = [i for i, label in enumerate(labels) if label == cluster]
        if not members:
            raise TieError("an empty cluster restarts at a row that rounding may choose")
        new.append(mean([X[i] for i in members], None if weights is None else [weights[i] for i in members]))
    return new


def inertia(X, labels, centers, weights=None):
    weights = [Fraction(1)] * len(X) if weights is None else weights
    return sum(
        (w * squared_distance(row, centers[label]) for row, label, w in zip(X, labels, weights, strict=True)),
        Fraction(0),
    )


def rounds(X, centers, assign, price=lambda labels: Fraction(0), weights=None):
    """Assign, re-centre, repeat until no label changes; `assign(centers, labels before)` gives the new labels.

    Returns labels, centres and the objective after each assignment.
    """
    labels, history = None, []
    while True:
        new = assign(centers, labels)
        history.append(inertia(X, new, centers, weights) + price(new))
        if new == labels:
            return labels, centers, history
        labels = new
        centers = means_by_cluster(X, labels, centers, weights)


def lloyd(X, centers, weights=None):
    return rounds(X, centers, lambda now, _: [nearest(row, now) for row in X], weights=weights)
