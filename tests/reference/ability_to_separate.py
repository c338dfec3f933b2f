"""Vu, Labroche and Bouchon-Meunier (2012), Algorithm 1, by the definitions: sets, loops, strong paths by search."""

from __future__ import annotations

from itertools import combinations


def neighbour_sets(X, k):
    """NN(u) of every row; distances must not tie."""
    n = len(X)

    def squared(u, v):
        return sum((a - b) ** 2 for a, b in zip(X[u], X[v], strict=True))

    return [set(sorted((v for v in range(n) if v != u), key=lambda v: squared(u, v))[:k]) for u in range(n)]


def omega(near, u, v):
    return len(near[u] & near[v])


def local_density(near, k, u):
    return sum(omega(near, u, q) for q in near[u]) / k


def edges(near):
    return [(u, v) for u, v in combinations(range(len(near)), 2) if v in near[u] and u in near[v]]


def utility(near, k, u, v, score):
    light = k - omega(near, u, v)
    sparse = 1 + min(local_density(near, k, u), local_density(near, k, v))
    return {"sum": light + 1 / sparse, "product": light / sparse, "omega": light, "lds": 1 / sparse}[score]


def part(near, theta, must_link, start):
    """All rows that strong paths lead to."""
    links = [pair for pair in edges(near) if omega(near, *pair) >= theta] + must_link
    reached, grew = {start}, True
    while grew:
        more = {row for pair in links if set(pair) & reached for row in pair}
        grew = not more <= reached
        reached |= more
    return reached


def active_selection(X, k, theta, score, same):
    """Questions in order, and what propagates to candidates in the end: pair -> whether it is the same.

    `same(u, v)` answers, None for "I don't know".
    """
    near = neighbour_sets(X, k)

    def joined(u, v, answers):
        return v in part(near, theta, [pair for pair, answer in answers.items() if answer], u)

    candidates = [pair for pair in edges(near) if omega(near, *pair) < theta and not joined(*pair, {})]
    asked, answers = [], {}
    while True:
        labels = {pair: _propagated(*pair, answers, joined) for pair in candidates}
        left = [pair for pair in candidates if pair not in asked and not labels[pair] and not joined(*pair, answers)]
        if not left:
            guesses = {pair: found.pop() for pair, found in labels.items() if len(found) == 1 and pair not in answers}
            return asked, guesses
        best = max(left, key=lambda pair: (utility(near, k, *pair, score), -pair[0], -pair[1]))
        asked.append(best)
        if same(*best) is not None:
            answers[best] = same(*best)


def _propagated(t, s, answers, joined):
    """The labels that the first rule of section 3.4.1 gives a candidate."""
    return {
        answer
        for (u, v), answer in answers.items()
        if (joined(u, t, answers) and joined(v, s, answers)) or (joined(u, s, answers) and joined(v, t, answers))
    }
