"""Objectives of MPCKMeans and HMRFKMeans in plain loops, and the rounds of the former for column weights."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.assign import given_pairs


def matrix(form):
    return np.diag(form) if form.ndim == 1 else form


def length(difference, form):
    return float(difference @ matrix(form) @ difference)


def spread(X):
    """Variances of the columns; a column without one gets their mean."""
    found = X.var(axis=0)
    typical = found.mean() or 1.0
    return np.array([value if value > 1e-12 * typical else typical for value in found])


def sides(X):
    return np.array([(max(column) - min(column)) ** 2 for column in X.T])


def price(X, pairs, labels, forms, penalty):
    """What broken pairs cost; rows without a cluster (-1) break nothing."""
    total, box = 0.0, sides(X)
    must, cannot = pairs
    for (i, j), sure in must.items():
        if -1 not in (labels[i], labels[j]) and labels[i] != labels[j]:
            total += float(sure) * sum(length(X[i] - X[j], forms[labels[end]]) for end in (i, j)) / 2
    for (i, j), sure in cannot.items():
        if labels[i] == labels[j] != -1:
            form = forms[labels[i]]
            total += float(sure) * max(float(np.diag(matrix(form)) @ box) - length(X[i] - X[j], form), 0.0)
    return penalty * total


def objective(X, constraints, labels, centers, metrics, penalty, *, metric, shared):
    forms = [metrics[0]] * len(centers) if len(metrics) == 1 else list(metrics)
    log_det = [float(np.linalg.slogdet(matrix(form))[1]) for form in forms]
    total = price(X, given_pairs(constraints), labels, forms, penalty)
    for row, label in zip(X, labels, strict=True):
        total += length(row - centers[label], forms[label]) - log_det[label]
    if metric != "none":
        for form in metrics:
            unseen = X.shape[1]
            total += unseen * (float(np.diag(matrix(form)) @ spread(X)) - float(np.linalg.slogdet(matrix(form))[1]))
    return total


def mpck_means(X, constraints, centers, penalty, permutation, shared):
    """Rounds with column weights; None at a tie, and where a cluster runs empty: restarts are tested on their own."""
    pairs = given_pairs(constraints)
    named = sorted({row for kind in pairs for pair in kind for row in pair})
    settings = {"metric": "diagonal", "shared": shared}
    metrics = np.ones((1 if shared else len(centers), X.shape[1]))
    labels, history = [-1] * len(X), []
    while True:
        before = list(labels)
        forms = [metrics[0 if shared else cluster] for cluster in range(len(centers))]
        for row in [
            *(set(range(len(X))) - set(named)),
            *(named[place] for place in (permutation(len(named)) if named else [])),
        ]:
            totals = []
            for cluster, center in enumerate(centers):
                moved = [*labels[:row], cluster, *labels[row + 1 :]]
                near = {pair: sure for pair, sure in pairs[0].items() if row in pair}
                far = {pair: sure for pair, sure in pairs[1].items() if row in pair}
                cost = length(X[row] - center, forms[cluster]) - float(np.log(forms[cluster]).sum())
                totals.append(cost + price(X, (near, far), moved, forms, penalty))
            lowest, next_one = sorted(totals)[:2]
            if next_one - lowest < 1e-9 * abs(lowest):
                return None  # rounding decides
            labels[row] = totals.index(lowest)
        history.append(objective(X, constraints, labels, centers, metrics, penalty, **settings))
        if labels == before:
            return labels, centers, metrics, history
        if len(set(labels)) < len(centers):
            return None
        centers = np.array([X[np.array(labels) == cluster].mean(axis=0) for cluster in range(len(centers))])
        metrics = best_weights(X, pairs, labels, centers, penalty, shared)


def best_weights(X, pairs, labels, centers, penalty, shared):
    asked, sizes = np.zeros(centers.shape), np.zeros(len(centers))
    for row, label in zip(X, labels, strict=True):
        asked[label] += (row - centers[label]) ** 2
        sizes[label] += 1
    for (i, j), sure in pairs[0].items():
        if labels[i] != labels[j]:
            for end in (i, j):
                asked[labels[end]] += penalty * float(sure) * (X[i] - X[j]) ** 2 / 2
    for (i, j), sure in pairs[1].items():
        if labels[i] == labels[j]:
            asked[labels[i]] += penalty * float(sure) * (sides(X) - (X[i] - X[j]) ** 2)
    unseen = X.shape[1]
    if shared:
        asked, sizes = asked.sum(axis=0, keepdims=True), sizes.sum(keepdims=True)
    return (sizes + unseen)[:, None] / (asked + unseen * spread(X))


def cosine(x, y, weights):
    lengths = math.sqrt(length(x, weights)) * math.sqrt(length(y, weights))
    return float((x * weights) @ y) / lengths if lengths > 0 else 0.0


def cosine_objective(X, constraints, labels, centers, weights, penalty):
    longest = 1.0 if X.min() >= 0 else 2.0
    must, cannot = given_pairs(constraints)
    total = sum(1 - cosine(row, centers[label], weights) for row, label in zip(X, labels, strict=True))
    for (i, j), sure in must.items():
        if labels[i] != labels[j]:
            total += penalty * float(sure) * (1 - cosine(X[i], X[j], weights))
    for (i, j), sure in cannot.items():
        if labels[i] == labels[j]:
            total += penalty * float(sure) * (longest - 1 + cosine(X[i], X[j], weights))
    even = np.ones(X.shape[1])
    units = np.array([row / math.sqrt(length(row, even)) for row in X])
    at_the_mean = sum(1 - cosine(row, units.mean(axis=0), even) for row in X)
    return total - at_the_mean / len(X) * float((units**2).sum(axis=0) @ np.log(weights))
