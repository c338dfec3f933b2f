"""Prices and assignment by loops over pairs that are all written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise, product

FREE = -1


def columns_of(groups):
    if groups is None:
        return []
    rows = [list(row) if hasattr(row, "__len__") else [row] for row in groups]
    return [list(column) for column in zip(*rows, strict=True)]


def sharing(column):
    return {(i, j) for i, j in combinations(range(len(column)), 2) if column[i] == column[j] != FREE}


def differing(column):
    return {
        (i, j)
        for i, j in combinations(range(len(column)), 2)
        if FREE not in (column[i], column[j]) and column[i] != column[j]
    }


def surest(pairs, confidences):
    found = {}
    for (i, j), sure in zip(pairs, confidences, strict=True):
        pair = (min(i, j), max(i, j))
        found[pair] = max(found.get(pair, Fraction(0)), Fraction(float(sure)))
    return found


def given_pairs(constraints):
    """Every stated must-link and cannot-link once, at its highest confidence: pairs, groups and classes."""
    must = surest(constraints.must_link.tolist(), constraints.must_link_confidence)
    cannot = surest(constraints.cannot_link.tolist(), constraints.cannot_link_confidence)
    labels = [] if constraints.labels is None else constraints.labels.tolist()
    for column in [*columns_of(as_list(constraints.must_groups)), labels]:
        must |= dict.fromkeys(sharing(column), Fraction(1))
    for column in columns_of(as_list(constraints.cannot_groups)):
        cannot |= dict.fromkeys(sharing(column), Fraction(1))
    cannot |= dict.fromkeys(differing(labels), Fraction(1))
    return must, cannot


def as_list(array):
    return None if array is None else array.tolist()


def components(n, must):
    """Component of each row, by repeated relabelling."""
    component = list(range(n))
    changed = True
    while changed:
        changed = False
        for i, j in must:
            low = min(component[i], component[j])
            for row in (i, j):
                if component[row] != low:
                    component[row], changed = low, True
    return component


def statements(constraints):
    """What groups and classes say, each column and the classes on their own: lists of sets of pairs."""
    labels = [] if constraints.labels is None else constraints.labels.tolist()
    must = [sharing(column) for column in [*columns_of(as_list(constraints.must_groups)), labels]]
    cannot = [sharing(column) for column in columns_of(as_list(constraints.cannot_groups))]
    return must, [*cannot, differing(labels)]


def priced_pairs(constraints, n, *, entailed):
    """All pairs that have a price: {(i, j): weight} for must-links and for cannot-links.

    A given pair counts once, at its highest confidence, and not at all where a group or the classes say it already.
    Two group columns, or a column and the classes, that say the same are two statements.
    """
    if entailed:
        return entailed_pairs(constraints, n)
    priced = []
    given = (
        surest(constraints.must_link.tolist(), constraints.must_link_confidence),
        surest(constraints.cannot_link.tolist(), constraints.cannot_link_confidence),
    )
    for pairs, stated in zip(given, statements(constraints), strict=True):
        weights = {pair: sure for pair, sure in pairs.items() if not any(pair in said for said in stated)}
        for said in stated:
            add(weights, said)
        priced.append(weights)
    return priced


def entailed_pairs(constraints, n):
    """What follows from certain pairs costs like them; a pair that is less sure counts alone, where they do not say it.

    A cannot-link against the must-links is priced beside them: a given pair as it is, of a group or of classes one pair
    per row, each with the next.
    """
    must, _ = given_pairs(constraints)
    component = components(n, [pair for pair, sure in must.items() if sure == 1])
    must |= {(i, j): Fraction(1) for i, j in combinations(range(n), 2) if component[i] == component[j]}

    pairs = surest(constraints.cannot_link.tolist(), constraints.cannot_link_confidence)
    columns = columns_of(as_list(constraints.cannot_groups))
    labels = [] if constraints.labels is None else constraints.labels.tolist()
    groups = [[i for i in range(n) if column[i] == group] for column in columns for group in set(column) - {FREE}]
    groups.append([i for i, label in enumerate(labels) if label != FREE])
    cliques = [{component[i] for i in group} for group in groups]
    edges = {frozenset((component[i], component[j])) for (i, j), sure in pairs.items() if sure == 1}
    weights = {}
    for i, j in combinations(range(n), 2):
        a, b = component[i], component[j]
        times = sum(a in clique and b in clique for clique in cliques) if a != b else 0
        if times:
            weights[i, j] = Fraction(times)
        elif a != b and frozenset((a, b)) in edges:
            weights[i, j] = Fraction(1)
        elif (i, j) in pairs:
            weights[i, j] = pairs[i, j]
    for group in groups[:-1]:
        for c in set(component):
            add(weights, in_turn([i for i in group if component[i] == c]))
    for c in set(component):
        turn = in_turn([i for i in groups[-1] if component[i] == c])
        add(weights, [(i, j) for i, j in turn if labels[i] != labels[j]])
    return must, weights


def in_turn(rows):
    return list(pairwise(rows))


def add(weights, pairs):
    for pair in pairs:
        weights[pair] = weights.get(pair, Fraction(0)) + 1


def broken(must, cannot, labels):
    """Weights of the broken pairs, added up."""
    total = sum((sure for (i, j), sure in must.items() if labels[i] != labels[j]), Fraction(0))
    return total + sum((sure for (i, j), sure in cannot.items() if labels[i] == labels[j]), Fraction(0))


def broken_among(rows, must, cannot, labels):
    """The same, where only `rows` have labels; no pair names another row."""
    assert {row for pair in (*must, *cannot) for row in pair} <= set(rows)
    return broken(must, cannot, labels)


def price_of(row, cluster, must, cannot, labels, penalty):
    """What `row` pays in `cluster`; rows without a cluster yet (-1) do not count."""
    total = Fraction(0)
    for pairs, pays in ((must, lambda other: other != cluster), (cannot, lambda other: other == cluster)):
        for pair, sure in pairs.items():
            if row in pair:
                other = labels[pair[0] + pair[1] - row]
                if other != FREE and pays(other):
                    total += penalty * sure
    return total


def cheapest_staying(costs, now):
    """The lowest cost; ties go to the present cluster, then to the lowest number."""
    return min(range(len(costs)), key=lambda cluster: (costs[cluster], cluster != now, cluster))


def sweep(order, costs, must, cannot, labels, penalty):
    """Basu 2004, Figure 1, step 2a: rows move one at a time to where cost plus price is lowest."""
    labels = list(labels)
    for row in order:
        totals = [
            costs[row][cluster] + price_of(row, cluster, must, cannot, labels, penalty)
            for cluster in range(len(costs[row]))
        ]
        labels[row] = cheapest_staying(totals, labels[row])
    return labels


def move_blocks(order, blocks, costs, must, cannot, labels, penalty):
    """Blocks that are together move whole to where the sum of their rows' costs plus all prices is lowest."""
    labels = list(labels)
    for block in order:
        rows = blocks[block]
        now = labels[rows[0]]
        if any(labels[row] != now for row in rows):
            continue
        totals = []
        for cluster in range(len(costs[rows[0]])):
            moved = [cluster if row in rows else label for row, label in enumerate(labels)]
            totals.append(sum(costs[row][cluster] for row in rows) + penalty * broken(must, cannot, moved))
        best = cheapest_staying(totals, now)
        for row in rows:
            labels[row] = best
    return labels


def greedy(order, costs, apart, pinned, labels=None):
    """Survey Algorithm 7 over blocks: the cheapest cluster that holds no block it must differ from.

    `apart` holds frozensets of two blocks. Returns the labels, or None at a dead end.
    """
    labels = [FREE] * len(pinned) if labels is None else list(labels)
    for block in order:
        if pinned[block] != FREE:
            labels[block] = pinned[block]
            continue
        now, labels[block] = labels[block], FREE
        open_clusters = [
            cluster
            for cluster in range(len(costs[block]))
            if not any(labels[other] == cluster and frozenset((block, other)) in apart for other in range(len(labels)))
        ]
        if not open_clusters:
            return None
        labels[block] = min(open_clusters, key=lambda cluster: (costs[block][cluster], cluster != now, cluster))
    return labels


def labellings(n, n_clusters):
    return product(range(n_clusters), repeat=n)
