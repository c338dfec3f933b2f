"""Multinomial EM and the gradient of feedback in plain loops (survey, Algorithm 16 and Eq. 57 to 68, with errata)."""

from __future__ import annotations

from math import exp, log


def maximise(X, shares, smoothing):
    """Eq. 62 and 63: p(c) and p(w given c)."""
    k, n_words = len(shares[0]), len(X[0])
    weights = [sum(row[c] for row in shares) / len(X) for c in range(k)]
    word_probabilities = []
    for c in range(k):
        counts = [smoothing + sum(X[i][w] * shares[i][c] for i in range(len(X))) for w in range(n_words)]
        word_probabilities.append([count / sum(counts) for count in counts])
    return weights, word_probabilities


def expect(X, weights, word_probabilities, word_weights):
    """Eq. 61 and 68: p(c given x), and the log-likelihood."""
    shares, total = [], 0.0
    for row in X:
        joint = [
            weight * exp(sum(g * n * log(p) for g, n, p in zip(word_weights, row, words, strict=True)))
            for weight, words in zip(weights, word_probabilities, strict=True)
        ]
        shares.append([value / sum(joint) for value in joint])
        total += log(sum(joint))
    return shares, total


def em(X, shares, word_weights, smoothing, n_rounds):
    """Rounds of M-step and E-step: p(c), p(w given c), p(c given x), and minus the penalised log-likelihood."""
    history = []
    for _ in range(n_rounds):
        weights, word_probabilities = maximise(X, shares, smoothing)
        shares, total = expect(X, weights, word_probabilities, word_weights)
        history.append(-total - smoothing * sum(log(p) for words in word_probabilities for p in words))
    return weights, word_probabilities, shares, history


def divergence(first, second, word_weights):
    """Eq. 64 to 66: the weighted divergence of two documents from their mean, which is weighted by length."""
    lengths = sum(first), sum(second)
    total = 0.0
    for weight, one, two in zip(word_weights, first, second, strict=True):
        mean = (one + two) / sum(lengths)
        for count, length in zip((one, two), lengths, strict=True):
            if count:
                total += weight * length * (count / length) * log(count / length / mean)
    return total
