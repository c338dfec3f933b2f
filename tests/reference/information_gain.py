"""Gains of rows (survey Eq. 77 to 87) in plain loops; cosines are clipped to [0, 1]."""

from __future__ import annotations

import math

from tests.reference.ig_kmeans import cosine, direction


def similarity(a, b):
    """Eq. 81."""
    return min(max(cosine(a, b), 0.0), 1.0)


def centers(X, labels):
    return [
        direction([row for row, label in zip(X, labels, strict=True) if label == c]) for c in range(max(labels) + 1)
    ]


def own_and_next(X, labels, row):
    """The own cluster and the one with the next nearest centre (None: there is none)."""
    every = [similarity(X[row], center) for center in centers(X, labels)]
    others = [cluster for cluster in range(len(every)) if cluster != labels[row]]
    return labels[row], max(others, key=every.__getitem__, default=None)


def must_probability(own, other):
    """Eq. 79 and 84."""
    return own / (own + other) if own + other > 0 else 0.5


def entropy(p):
    """Eq. 78 and 83."""
    return -sum(q * math.log(q) for q in (p, 1 - p) if q > 0)


def independent_probability(X, labels, row):
    means = centers(X, labels)
    own, other = own_and_next(X, labels, row)
    return must_probability(similarity(X[row], means[own]), 0.0 if other is None else similarity(X[row], means[other]))


def independent_gain(X, labels, row):
    return entropy(independent_probability(X, labels, row))


def dependent_gain(X, labels, row, selected, epsilon, budget):
    """Eq. 82 to 87; "high" is above one half."""
    means = centers(X, labels)
    weight = min(epsilon * budget / len(X), 1.0)
    found = []
    for cluster in own_and_next(X, labels, row):
        if cluster is None:
            found.append(0.0)
            continue
        likely = [
            one for one in selected
            if one != row and labels[one] == cluster and independent_probability(X, labels, one) > 0.5
        ]  # fmt: skip
        plain = similarity(X[row], means[cluster])
        nearest = max((similarity(X[row], X[one]) for one in likely), default=None)
        found.append(plain if nearest is None else (1 - weight) * plain + weight * nearest)
    return entropy(must_probability(*found))
