"""CVQE and LCVQE (survey Eq. 4 to 14 with the errata) in plain loops over exact fractions.

Every pair is visited with the whole objective written out, rows without a cluster (-1) left out of it.
"""

from __future__ import annotations

from fractions import Fraction

from tests.reference.assign import given_pairs
from tests.reference.kmeans import TieError, cheapest, squared_distance


def stated(constraints):
    """[(i, j, is a must-link, confidence)], must-links first, each kind in order."""
    must, cannot = given_pairs(constraints)
    return [(i, j, kind, pairs[i, j]) for pairs, kind in ((must, True), (cannot, False)) for i, j in sorted(pairs)]


def nearest_other(point, own, centers):
    """The nearest centre that is not `own`; with one centre there is none."""
    others = [cluster for cluster in range(len(centers)) if cluster != own]
    return others[cheapest([squared_distance(point, centers[c]) for c in others])] if others else own


def farther(X, pair, labels, centers):
    """Of two rows in one cluster, the one farther from its centre; of two equally far, the second."""
    i, j = pair
    to_center = [squared_distance(X[row], centers[labels[i]]) for row in (i, j)]
    return i if to_center[0] > to_center[1] else j


def price_by_centers(X, pair, labels, centers):
    """Eq. 4: what a broken pair costs in CVQE."""
    here, there = (labels[row] for row in pair)
    if here == there:
        there = nearest_other(centers[here], here, centers)
    return squared_distance(centers[here], centers[there])


def price_by_rows(X, pair, labels, centers):
    """Eq. 9, a broken must-link from both sides: what a broken pair costs in LCVQE."""
    i, j = pair
    if labels[i] != labels[j]:
        return (squared_distance(X[i], centers[labels[j]]) + squared_distance(X[j], centers[labels[i]])) / 2
    if len(centers) == 1:
        return Fraction(0)
    far = farther(X, pair, labels, centers)
    return squared_distance(X[far], centers[nearest_other(X[far], labels[far], centers)])


def broken(pairs, labels):
    return [
        (i, j, must, sure)
        for i, j, must, sure in pairs
        if -1 not in (labels[i], labels[j]) and must == (labels[i] != labels[j])
    ]


def objective(X, pairs, labels, centers, price):
    within = sum((squared_distance(X[row], centers[c]) for row, c in enumerate(labels) if c != -1), Fraction(0))
    return within + sum(sure * price(X, (i, j), labels, centers) for i, j, _, sure in broken(pairs, labels))


def all_candidates(X, pair, must, labels, centers, named_often):
    return [(i, j) for i in range(len(centers)) for j in range(len(centers))]


def few_candidates(X, pair, must, labels, centers, named_often):
    """Eq. 12 and 13."""
    first, second = (cheapest([squared_distance(X[row], center) for center in centers]) for row in pair)
    found = [(first, second)]
    if must:
        found += [(first, first), (second, second)]
    elif first == second and len(centers) > 1:
        placed = dict.fromkeys(pair, first)
        far = farther(X, pair, placed, centers)
        other = nearest_other(X[far], first, centers)
        found.append((other, second) if far == pair[0] else (first, other))
    now = tuple(labels[row] for row in pair)
    return found + ([now] if named_often and -1 not in now else [])


def visit(X, pairs, place, labels, centers, price, candidates):
    i, j, must, _ = pairs[place]
    named_often = any((row in (i, j)) != (other in (i, j)) for row, other, _, _ in pairs)
    totals = {}
    for here, there in candidates(X, (i, j), must, labels, centers, named_often):
        moved = [here if row == i else there if row == j else label for row, label in enumerate(labels)]
        totals[here, there] = objective(X, pairs, moved, centers, price)
    best = min(totals, key=totals.__getitem__)
    if list(totals.values()).count(totals[best]) > 1:
        raise TieError
    labels[i], labels[j] = best


def pulled_to_centers(X, pairs, labels, centers):
    """Eq. 8: {cluster: [(point, weight)]}, what broken pairs add to the rows of each cluster."""
    pulls = {cluster: [] for cluster in range(len(centers))}
    for i, j, must, sure in broken(pairs, labels):
        if must:
            pulls[labels[i]].append((centers[labels[j]], sure))
            pulls[labels[j]].append((centers[labels[i]], sure))
        elif len(centers) > 1:
            pulls[labels[i]].append((centers[nearest_other(centers[labels[i]], labels[i], centers)], sure))
    return pulls


def pulled_to_rows(X, pairs, labels, centers):
    """Eq. 14 with the halves of Eq. 12."""
    pulls = {cluster: [] for cluster in range(len(centers))}
    for i, j, must, sure in broken(pairs, labels):
        if must:
            pulls[labels[i]].append((X[j], sure / 2))
            pulls[labels[j]].append((X[i], sure / 2))
        elif len(centers) > 1:
            far = farther(X, (i, j), labels, centers)
            pulls[nearest_other(X[far], labels[far], centers)].append((X[far], sure))
    return pulls


def rounds(X, constraints, centers, permutation, max_iter, price, candidates, pulled):
    """Labels, centres and the objective after each assignment; `permutation(n)` orders the pairs of a round.

    Ends when neither labels nor centres change, or after `max_iter` new centres: rounds may go round in circles.
    """
    pairs = stated(constraints)
    free = set(range(len(X))) - {row for i, j, _, _ in pairs for row in (i, j)}
    labels, history = [-1] * len(X), []
    before = None
    for n_iter in range(max_iter + 1):
        for row in free:
            labels[row] = cheapest([squared_distance(X[row], center) for center in centers])
        for place in permutation(len(pairs)) if pairs else []:
            visit(X, pairs, place, labels, centers, price, candidates)
        history.append(objective(X, pairs, labels, centers, price))
        if n_iter == max_iter or (labels, centers) == before or (not pairs and before and labels == before[0]):
            break
        before = (list(labels), centers)
        pulls, new = pulled(X, pairs, labels, centers), []
        for cluster in range(len(centers)):
            points = [(X[row], Fraction(1)) for row in range(len(X)) if labels[row] == cluster] + pulls[cluster]
            if not points:
                raise TieError("an empty cluster restarts at a row that rounding may choose")
            mass = sum(weight for _, weight in points)
            new.append([sum(w * point[c] for point, w in points) / mass for c in range(len(X[0]))])
        centers = new
    return labels, centers, history


def cvqe(X, constraints, centers, permutation, max_iter):
    return rounds(X, constraints, centers, permutation, max_iter, price_by_centers, all_candidates, pulled_to_centers)


def lcvqe(X, constraints, centers, permutation, max_iter):
    return rounds(X, constraints, centers, permutation, max_iter, price_by_rows, few_candidates, pulled_to_rows)
