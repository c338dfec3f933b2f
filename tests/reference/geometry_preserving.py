"""Moves of rows until k-means satisfies the pairs, in plain loops over exact fractions: thesis Algorithms 7 and 8.

The departures that the docstring of `GeometryPreservingLearner` names are here, too.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from tests.reference.kmeans import TieError, exact, lloyd, means_by_cluster, squared_distance

BEYOND_BORDER, LEAST_BEYOND, MOST_MOVES = Fraction(0.01), Fraction(1e-4), 10
FORBIDDEN = None


def change(row, label, cluster, labels, centers):
    """What the sum of squares gains if a row leaves its cluster for another."""
    if cluster == label:
        return Fraction(0)
    n_new, n_old = labels.count(cluster), labels.count(label)
    joined = Fraction(n_new, n_new + 1) * squared_distance(row, centers[cluster])
    left = Fraction(n_old, n_old - 1) * squared_distance(row, centers[label]) if n_old > 1 else Fraction(0)
    return joined - left


def cheapest(options):
    """The option with the lowest cost, of (cost, what); None if all are forbidden."""
    allowed = sorted((option for option in options if option[0] is not FORBIDDEN), key=lambda option: option[0])
    if len(allowed) > 1 and allowed[0][0] == allowed[1][0]:
        raise TieError
    return allowed[0][1] if allowed else None


def joint_clusters(must_link, cannot_link, n_clusters, cost):
    """Clusters of the rows in pairs that satisfy all pairs at the lowest cost: row -> cluster; None if there are none.

    A cannot-link between must-linked rows does not count. Clusters with the fewest forbidden moves come first.
    """
    group = {row: {row} for pair in must_link + cannot_link for row in pair}
    for i, j in must_link:
        joined = group[i] | group[j]
        for row in joined:
            group[row] = joined
    groups = sorted({tuple(sorted(members)) for members in group.values()})
    number = {row: place for place, members in enumerate(groups) for row in members}
    apart = [(number[i], number[j]) for i, j in cannot_link if number[i] != number[j]]
    prices = [[[cost(row, c) for row in members] for c in range(n_clusters)] for members in groups]
    options = []
    for clusters in product(range(n_clusters), repeat=len(groups)):
        if all(clusters[a] != clusters[b] for a, b in apart):
            paid = [price for place, c in enumerate(clusters) for price in prices[place][c]]
            total = (paid.count(FORBIDDEN), sum(price for price in paid if price is not FORBIDDEN))
            options.append((total, {row: clusters[place] for row, place in number.items()}))
    return cheapest(options)


def moves_for(pair, labels, n_clusters, cost, goals):
    """The moves towards the goals if they are allowed, else any: (row, cluster) of each; None if none is allowed."""
    if goals is not None:
        found = moves(pair, labels, n_clusters, lambda row, c: cost(row, c) if goals[row] == c else FORBIDDEN)
        if found is not None:
            return found
    return moves(pair, labels, n_clusters, cost)


def moves(pair, labels, n_clusters, cost):
    """Algorithm 8: (row, cluster) of each move for a violated pair; None if no move is allowed."""
    i, j = pair
    if labels[i] == labels[j]:
        one = cheapest((cost(row, c), (row, c)) for row in pair for c in range(n_clusters) if c != labels[i])
        return None if one is None else [one]
    options = []
    for c in range(n_clusters):
        costs = [cost(i, c), cost(j, c)]
        options.append((FORBIDDEN if FORBIDDEN in costs else sum(costs), c))
    target = cheapest(options)
    return None if target is None else [(row, target) for row in pair if labels[row] != target]


def way(row, origin, target, factor):
    """From a row to just beyond the border between two centres, parallel to the line between them."""
    line = [b - a for a, b in zip(origin, target, strict=True)]
    length = sum(x * x for x in line)
    if not length:
        raise TieError("two centres are the same point")
    share = sum(((a + b) / 2 - x) * d for x, a, b, d in zip(row, origin, target, line, strict=True)) / length
    return [(share + factor * max(BEYOND_BORDER * share, LEAST_BEYOND)) * d for d in line]


def preserve_geometry(X, labels, n_clusters, must_link, cannot_link, max_iter, choose, charge=None):
    """Rows, squared lengths of all moves as (row, squared length), labels, and the number of steps.

    `choose(rows, centers, pairs)` says which of the violated pairs is next: (kind, pair). If `charge` is given, rows
    move towards clusters that satisfy all pairs together. If there are none, `charge(rows, centers)` gives what the
    constraints charge a row in a cluster, (row, cluster) -> number.
    """
    rows, labels = exact(X), list(labels)
    centers = means_by_cluster(rows, labels, range(n_clusters))
    left, n_moves, done = set(), {}, []
    for step in range(max_iter + 1):
        charges = goals = None

        def cost(row, cluster, labels=labels, centers=centers):
            if (row, cluster) in left or n_moves.get((row, cluster)) == MOST_MOVES:
                return FORBIDDEN
            price = change(rows[row], labels[row], cluster, labels, centers)
            if charges is not None:  # noqa: B023
                price += Fraction(charges[row, cluster]) - Fraction(charges[row, labels[row]])  # noqa: B023
            return price

        if charge is not None:
            found = charge(rows, centers)
            goals = joint_clusters(must_link, cannot_link, n_clusters, cost)
            charges = found if goals is None else None
        violated = [("must_link", pair) for pair in must_link if labels[pair[0]] != labels[pair[1]]]
        violated += [("cannot_link", pair) for pair in cannot_link if labels[pair[0]] == labels[pair[1]]]
        open_pairs = [one for one in violated if moves(one[1], labels, n_clusters, cost) is not None]
        if not open_pairs or step == max_iter:
            return rows, done, labels, step
        _, pair = choose(rows, centers, open_pairs)
        for row, target in moves_for(pair, labels, n_clusters, cost, goals):
            origin = labels[row]
            path = way(rows[row], centers[origin], centers[target], 2 ** n_moves.get((row, target), 0))
            rows[row] = [x + d for x, d in zip(rows[row], path, strict=True)]
            done.append((row, sum(d * d for d in path)))
            left.add((row, origin))
            n_moves[row, target] = n_moves.get((row, target), 0) + 1
        labels, centers, _ = lloyd(rows, centers)
