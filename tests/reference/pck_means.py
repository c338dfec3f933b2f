"""PCKMeans (Basu 2004, Figure 1) over all given and entailed pairs, in plain loops over exact fractions."""

from __future__ import annotations

from tests.reference import assign, kmeans
from tests.reference.seeded_kmeans import neighbourhoods


class BetterStartError(Exception):
    """The first pass broke a pair: the estimator then also tries a labelling that breaks none."""


def pck_means(X, constraints, centers, penalty, permutation, *, entailed):
    """`permutation(n)` gives the order of each pass: first over the rows that pairs name, then over the blocks.

    The price of a pair is `penalty` times its confidence and distances are not halved: twice Eq. 2.1. Take a penalty
    that is no simple fraction, so that prices and differences of distances never add up to a tie.
    """
    must, cannot = assign.priced_pairs(constraints, len(X), entailed=entailed)
    named = sorted({row for pair in (*must, *cannot) for row in pair})
    blocks = [block for block in neighbourhoods(constraints, len(X))[0] if len(block) > 1]

    def one_round(now, before):
        costs = [[kmeans.squared_distance(row, center) for center in now] for row in X]
        found = [-1] * len(X) if before is None else list(before)
        for row in range(len(X)):
            if row not in named:
                found[row] = kmeans.cheapest(costs[row])
        for rows in [*([row] for row in named), *blocks]:
            kmeans.refuse_ties([sum(costs[row][cluster] for row in rows) for cluster in range(len(now))])
        found = assign.sweep([named[place] for place in permutation(len(named))], costs, must, cannot, found, penalty)
        found = assign.move_blocks(permutation(len(blocks)), blocks, costs, must, cannot, found, penalty)
        if before is None and assign.broken(must, cannot, found):
            raise BetterStartError
        return found

    return kmeans.rounds(X, centers, one_round, lambda labels: penalty * assign.broken(must, cannot, labels))
