"""Deep constrained clustering in plain loops: shares, targets, the objective, and the filter of Algorithm 9."""

from __future__ import annotations

from math import floor, log

SMALLEST = 1e-7


def encoded(row, layers):
    """A row in the embedding; `layers` are pairs of a matrix (inputs x outputs) and biases."""
    values = list(row)
    for place, (matrix, biases) in enumerate(layers):
        values = [sum(value * matrix[i][j] for i, value in enumerate(values)) + biases[j] for j in range(len(biases))]
        if place < len(layers) - 1:
            values = [max(value, 0.0) for value in values]
    return values


def neighbor_loss(embedding):
    """Rows i and i + n are neighbours: the mean -log probability that a row picks its neighbour among all others."""
    n = len(embedding) // 2

    def kernel(i, j):
        return 1 / (1 + sum((a - b) ** 2 for a, b in zip(embedding[i], embedding[j], strict=True)))

    total = 0.0
    for i in range(2 * n):
        others = sum(kernel(i, j) for j in range(2 * n) if j != i)
        total -= log(kernel(i, (i + n) % (2 * n)) / others)
    return total / (2 * n)


def shares(embedding, centers):
    found = []
    for row in embedding:
        kernel = [1 / (1 + sum((a - b) ** 2 for a, b in zip(row, center, strict=True))) for center in centers]
        found.append([value / sum(kernel) for value in kernel])
    return found


def targets(q):
    mass = [sum(row[c] for row in q) for c in range(len(q[0]))]
    found = []
    for row in q:
        sharp = [value**2 / mass[c] for c, value in enumerate(row)]
        found.append([value / sum(sharp) for value in sharp])
    return found


def logarithm(value):
    return log(max(value, SMALLEST))


def objective(
    q, p, *, must=(), cannot=(), known=(), triplets=(), penalty=1.0, margin=0.5, sizes=None, size_penalty=1.0
):
    """The mean loss of a row. Pairs are (i, j, confidence), known classes (i, cluster), sizes (least, most) shares."""

    def together(i, j):
        return sum(a * b for a, b in zip(q[i], q[j], strict=True))

    total = sum(p[i][c] * (logarithm(p[i][c]) - logarithm(q[i][c])) for i in range(len(q)) for c in range(len(q[0])))
    total -= penalty * sum(sure * logarithm(together(i, j)) for i, j, sure in must)
    total -= penalty * sum(sure * logarithm(1 - together(i, j)) for i, j, sure in cannot)
    total -= penalty * sum(logarithm(q[i][c]) for i, c in known)
    total += penalty * sum(max(0.0, together(i, far) - together(i, near) + margin) for i, near, far in triplets)
    total /= len(q)
    if sizes is not None:
        k = len(q[0])
        for c in range(k):
            share = sum(row[c] for row in q) / len(q)
            excess = max(0.0, sizes[0][c] - share) + max(0.0, share - sizes[1][c])
            total += size_penalty * (k * excess) ** 2 / k
    return total


def filtered(scores, fraction, free):
    """Positions of the pairs that Algorithm 9 keeps: a score below `free` (nearly 0), without the lowest of them."""
    negative = sorted((score, place) for place, score in enumerate(scores) if score < free)
    return sorted(place for _, place in negative[floor(fraction * len(negative)) :])


def kept(scores, fraction, free):
    """Positions of the pairs that a second stage keeps: those of Algorithm 9, and all pairs that hold."""
    left = filtered(scores, fraction, free)
    return [place for place, score in enumerate(scores) if score >= free or place in left]


def mean_scores(scores, places, n_pairs):
    """Mean score of the representatives of each pair, 0 for a pair without any."""
    each = [[score for score, place in zip(scores, places, strict=True) if place == pair] for pair in range(n_pairs)]
    return [sum(one) / len(one) if one else 0.0 for one in each]
