"""DistBoost in plain loops: Hertz, Bar-Hillel and Weinshall 2004; Truong and Battiti 2013, Algorithm 11 with errata."""

from __future__ import annotations

import math


def density(x, mean, variances):
    exponent = sum((a - b) ** 2 / v for a, b, v in zip(x, mean, variances, strict=True))
    return math.exp(-exponent / 2) / math.sqrt(math.prod(2 * math.pi * v for v in variances))


def posteriors(x, mixture):
    """Probability of each component of a mixture of (weight, mean, variances)."""
    terms = [weight * density(x, mean, variances) for weight, mean, variances in mixture]
    return [term / sum(terms) for term in terms]


def weak_hypothesis(x, y, mixture):
    p, q = posteriors(x, mixture), posteriors(y, mixture)
    sign = 1 if p.index(max(p)) == q.index(max(q)) else -1
    return sign * max(p) * max(q)


def initial_weights(n, labelled, triplets, share):
    """Weights of all ordered pairs and of the triplets; they sum to 1. `labelled` has (y, confidence) by (i, j)."""
    pairs = {(i, j): labelled.get((i, j), (0, 1.0))[1] for i in range(n) for j in range(n)}
    known = [pair for pair in pairs if pair in labelled]
    others = [pair for pair in pairs if pair not in labelled]
    # A triplet counts as much as one pair in both directions.
    total_known = sum(pairs[pair] for pair in known) + 2 * len(triplets)
    if share == "uniform":
        share = len(others) / (len(others) + total_known)
    weights = {pair: share / len(others) for pair in others}
    weights.update({pair: (1 - share) * pairs[pair] / total_known for pair in known})
    return weights, [(1 - share) * 2 / total_known for _ in triplets]


def dist_boost(X, labelled, triplets, share, mixtures, n_rounds):
    """Round weights, row weights that each round sees, ln of the product of all Z, and the distances of all rows."""
    n = len(X)
    w, u = initial_weights(n, labelled, triplets, share)
    alphas, seen, history, used = [], [], [0.0], []
    refused = 0
    for mixture in mixtures:
        of_rows = [sum(w[i, j] for j in range(n)) for i in range(n)]
        for (a, b, c), weight in zip(triplets, u, strict=True):
            for i, j in ((a, b), (a, c)):  # half of the weight is on each pair, half of that on each direction
                of_rows[i] += weight / 4
                of_rows[j] += weight / 4
        seen.append([n * weight for weight in of_rows])
        h = [[weak_hypothesis(x, y, mixture) for y in X] for x in X]
        r = sum(w[i, j] * y * h[i][j] for (i, j), (y, _) in labelled.items())
        r += sum(weight * (h[a][b] - h[a][c]) / 2 for (a, b, c), weight in zip(triplets, u, strict=True))
        if r <= 0:
            refused += 1
            if alphas or refused == 10:
                break
            continue
        alpha = math.log((1 + r) / (1 - r)) / 2
        for i, j in w:
            w[i, j] *= math.exp(-alpha * (labelled[i, j][0] * h[i][j] if (i, j) in labelled else 1))
        u = [q * math.exp(-alpha * (h[a][b] - h[a][c]) / 2) for (a, b, c), q in zip(triplets, u, strict=True)]
        total = sum(w.values()) + sum(u)
        w, u = {pair: weight / total for pair, weight in w.items()}, [weight / total for weight in u]
        alphas.append(alpha)
        used.append(h)
        history.append(history[-1] + math.log(total))
        if len(alphas) == n_rounds:
            break
    distances = [
        [sum(a * (1 - h[i][j]) / 2 for a, h in zip(alphas, used, strict=True)) / sum(alphas or [1]) for j in range(n)]
        for i in range(n)
    ]
    return alphas, seen, history, distances
