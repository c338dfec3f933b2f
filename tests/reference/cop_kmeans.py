"""COP-KMeans (survey Algorithm 7) over must-link blocks, in plain loops over exact fractions."""

from __future__ import annotations

from fractions import Fraction

from tests.reference import kmeans
from tests.reference.assign import FREE, greedy
from tests.reference.seeded_kmeans import blocks_apart, neighbourhoods


class DeadEndError(Exception):
    """The greedy pass found no open cluster for a block."""


def block_costs(X, blocks, centers):
    return [
        [sum((kmeans.squared_distance(X[i], center) for i in block), Fraction(0)) for center in centers]
        for block in blocks
    ]


def cop_kmeans(X, constraints, centers, tied_order):
    """Blocks that constraints name are visited in `tied_order` (positions among them), the others are free rows.

    A round's greedy pass starts from nothing. It counts only if it costs no more than the labelling before it; else
    blocks move one at a time from that labelling.
    """
    blocks, classes = neighbourhoods(constraints, len(X))
    apart = blocks_apart(constraints, blocks)
    pinned = [label if label >= 0 else FREE for label in classes]
    tied = [
        b for b in range(len(blocks)) if len(blocks[b]) > 1 or pinned[b] != FREE or any(b in pair for pair in apart)
    ]
    order = [tied[place] for place in tied_order(len(tied))]
    order.sort(key=lambda block: pinned[block] == FREE)
    free = [b for b in range(len(blocks)) if b not in tied]

    def assign(now, before):
        costs = block_costs(X, blocks, now)
        for block in tied:
            kmeans.refuse_ties(costs[block])
        found = greedy(order, costs, apart, pinned)
        if before is None:
            if found is None:
                raise DeadEndError
        else:
            old = [before[block[0]] for block in blocks]
            if found is None or total(costs, found, tied) > total(costs, old, tied):
                found = greedy(order, costs, apart, pinned, [old[b] if b in tied else FREE for b in range(len(blocks))])
        for block in free:
            found[block] = kmeans.cheapest(costs[block])
        of_row = {row: found[b] for b, block in enumerate(blocks) for row in block}
        return [of_row[row] for row in range(len(X))]

    return kmeans.rounds(X, centers, assign)


def total(costs, labels, blocks):
    return sum(costs[block][labels[block]] for block in blocks)
