"""The scores of Xiong et al. 2014 in plain loops."""

from __future__ import annotations

import math


def proximity(one, two):
    """The share of trees in which two rows meet in a leaf."""
    return sum(a == b for a, b in zip(one, two, strict=True)) / len(one)


def probabilities(leaves, neighbourhood_leaves):
    found = []
    for row in leaves:
        mean = [sum(proximity(row, other) for other in members) / len(members) for members in neighbourhood_leaves]
        total = sum(mean)
        found.append([one / total if total else 1 / len(mean) for one in mean])
    return found


def entropy(chances):
    return -sum(p * math.log2(p) for p in chances if p > 0)


def expected_questions(chances, all_found):
    """Neighbourhoods are tried likeliest first; with every cluster found, the last one is implied."""
    total = 0.0
    for number, p in enumerate(sorted(chances, reverse=True), start=1):
        last = number == len(chances)
        total += p * (max(number - 1, 1) if all_found and last else number)
    return total


def uncertainty(chances, all_found):
    return [entropy(row) / expected_questions(row, all_found) for row in chances]
