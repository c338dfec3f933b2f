"""Clusters that people have corrected: a fit changes them only where answers say so.

The corrected clusters are the prior mean of a Gaussian process over the rows (`clew.graph`). A row that answers put
into another cluster differs from that mean, and the difference spreads to similar rows. Rows that answers leave in
their cluster limit this spread. The more rows answers find in a wrong cluster, the less weight the prior mean has. If
answers find no such row, no row moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from clew.active._distances import mean_row, squared_distances
from clew.constraints import Closure, Constraints
from clew.graph._gaussian_process import LabelledRows, concatenated, fit_weights
from clew.graph._graph_propagation import mean_field, soft_pair_potentials
from clew.graph._kernels import KernelSum

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Largest numbers of rows that are used: of rows that answers move, and of all rows that answers place. More add little.
_MOST_DIFFERING, _MOST_LABELLED = 400, 600
# Prior of the share of rows in the right cluster: as if this many more rows had been placed, all rightly.
_RIGHT_BEFORE = 10
# Cost of a violated answer that is less than certain, in units of log-probability.
_PENALTY = 3.0
# Probability of every cluster but its own, for a row that no answer names.
_FLOOR = 0.01
# Added to diagonals, so that matrices can be factorised.
_JITTER = 1e-6


@dataclass(frozen=True)
class Kept:
    """Inputs of a fit that keeps clusters that people have corrected.

    Attributes
    ----------
    base : ndarray of shape (n_rows,)
        The clusters after the last correction.
    constraints : Constraints
        The constraints that hold from now on.
    asked : ndarray of bools
        Rows that are named in answers.
    put : ndarray of bools
        Rows that corrections have moved to their cluster.
    kernels : callable
        Returns the kernels between rows; only called if answers move a row.
    small : bool
        Whether groups have few rows. Then nothing spreads, and a row that leaves its group starts a new one.
    """

    base: IntArray
    constraints: Constraints
    asked: BoolArray
    put: BoolArray
    kernels: Callable[[], KernelSum]
    small: bool = False


def revised(X: Any, kept: Kept, room: float) -> IntArray:
    """The corrected clusters, changed where answers say so.

    All certain constraints hold. `room` is the number of new clusters that may be opened although no constraint needs
    them.
    """
    closed = kept.constraints.at_least(1.0).closure()
    target = upheld(X, kept.base, closed, room, small=kept.small)
    labels = target if kept.small else _spread(kept, target, closed)
    return _with_preferences(labels, kept.constraints, closed)


def _spread(kept: Kept, target: IntArray, closed: Closure) -> IntArray:
    """Move rows that are similar to moved rows to the same cluster, unless a certain constraint forbids it.

    If a row is only known not to belong to its cluster, rows that are similar to it are not moved.
    """
    together = closed.sizes[closed.component_of] > 1
    agrees = target == kept.base
    differing = np.flatnonzero(~agrees & (together | ~np.isin(target, kept.base)))
    if not len(differing):
        return target
    first = _labelled(differing, target).subsample(_MOST_DIFFERING)
    agreeing = _labelled(np.flatnonzero(agrees & kept.asked), target)
    labelled = concatenated(first, agreeing.subsample(_MOST_LABELLED - len(first.rows)))
    classes = np.unique(np.concatenate([labelled.classes, kept.base[differing]]))
    belief = _belief(agrees[kept.asked & together])
    scores = _scores(kept, labelled, classes, belief, target)
    own = target[:, None] == classes
    stays = np.where(own.any(axis=1), (scores * own).sum(axis=1), belief)
    free = ~(together | kept.put | kept.asked)
    follows = free & (scores.max(axis=1) > stays)
    return _without_clashes(np.where(follows, classes[scores.argmax(axis=1)], target), target, closed)


def _belief(agrees: BoolArray) -> float:
    """Estimated share of rows that are in the right cluster, from the rows that answers place."""
    return float((agrees.sum() + _RIGHT_BEFORE) / (len(agrees) + _RIGHT_BEFORE))


def _scores(kept: Kept, labelled: LabelledRows, classes: IntArray, belief: float, labels: IntArray) -> FloatArray:
    """The posterior mean of each class for every row, with the clusters as the prior mean."""
    kernels = kept.kernels()
    weights = fit_weights(kernels, labelled)

    def prior_mean(clusters: IntArray) -> FloatArray:
        return belief * (clusters[:, None] == classes) + (1 - belief) / len(classes)

    covariance = kernels.gram(weights.values, labelled.rows)
    covariance += (weights.noise + _JITTER) * np.eye(len(labelled.rows))
    differences = (labelled.classes[:, None] == classes) - prior_mean(kept.base[labelled.rows])
    dual = cho_solve(cho_factor(covariance, lower=True), differences)
    return prior_mean(labels) + kernels.product(weights.values, labelled.rows, dual)


def _labelled(rows: IntArray, labels: IntArray) -> LabelledRows:
    return LabelledRows(rows, labels[rows], np.ones(len(rows)))


def _without_clashes(labels: IntArray, target: IntArray, closed: Closure) -> IntArray:
    """Return rows that violate a certain constraint to their cluster in `target`."""
    chosen, safe = labels[closed.first_row], target[closed.first_row]
    while len(clashing := _clashing(chosen, closed)):
        moved = clashing[chosen[clashing] != safe[clashing]]
        chosen[moved] = safe[moved]
    return chosen[closed.component_of]


def _with_preferences(labels: IntArray, constraints: Constraints, closed: Closure) -> IntArray:
    """Move rows to satisfy answers that are less than certain, as far as certain constraints allow."""
    soft = soft_pair_potentials(constraints, closed, _PENALTY)
    if soft is None:
        return labels
    rows, potentials = soft
    clusters, place = np.unique(labels, return_inverse=True)
    probabilities = np.full((len(rows), len(clusters)), _FLOOR)
    probabilities[np.arange(len(rows)), place[rows]] = 1.0
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    wished = labels.copy()
    wished[rows] = clusters[mean_field(probabilities, np.arange(len(rows)), potentials).argmax(axis=1)]
    alone = closed.sizes[closed.component_of] == 1
    return _without_clashes(np.where(alone, wished, labels), labels, closed)


# -- certain constraints hold ------------------------------------------------------------------------------------------


def upheld(X: Any, labels: IntArray, closed: Closure, room: float = np.inf, *, small: bool = False) -> IntArray:
    """Change as few labels as needed for all certain constraints to hold. Clusters are opened if they are needed.

    Each component goes to the cluster with most of its rows, and on a tie to the nearest of these clusters. If
    components of a cluster must differ, the component leaves that is cannot-linked to most rows there, divided by its
    own size. On a tie the component farthest from the centre leaves. It goes to the cluster with most of its other rows
    that holds no component it must differ from. If there is none, it becomes a new cluster if it has more than one row
    (or if groups are `small`) and `room` allows. Otherwise it goes to the nearest cluster that it may join.
    """
    clusters, place = np.unique(labels, return_inverse=True)
    chosen, mixed = _commonest(place, closed)
    if not len(mixed) and not len(_clashing(chosen, closed)):
        return labels
    centers = np.array([mean_row(X, np.flatnonzero(place == one)) for one in range(len(clusters))])
    wishes = {component: _wishes(X, component, place, centers, closed) for component in mixed.tolist()}
    for component, wish in wishes.items():
        chosen[component] = wish[0]
    n_open = len(clusters)
    for component in _leaving(X, chosen, centers, closed):
        taken = set(chosen[closed.graph.neighbours(component)].tolist())
        wished = next((one for one in wishes.get(component, ()) if one not in taken), None)
        open_ones = [one for one in range(len(clusters)) if one not in taken]
        if wished is not None:
            chosen[component] = wished
        elif not open_ones or ((small or closed.sizes[component] > 1) and n_open - len(clusters) < room):
            chosen[component], n_open = n_open, n_open + 1
        else:
            nearest = _distances(X, component, centers[open_ones], closed).argmin()
            chosen[component] = open_ones[int(nearest)]
    names = np.concatenate([clusters, int(labels.max()) + 1 + np.arange(n_open - len(clusters))])
    return names[chosen][closed.component_of]


def _leaving(X: Any, chosen: IntArray, centers: FloatArray, closed: Closure) -> Iterator[int]:
    """Components that must leave their cluster, one at a time. The caller assigns each to a cluster it may join."""
    clashing = _clashing(chosen, closed)
    far = {one: float(_distances(X, one, centers, closed)[chosen[one]]) for one in clashing.tolist()}
    against = {
        one: [other for other in closed.graph.neighbours(one).tolist() if chosen[other] == chosen[one]] for one in far
    }
    weight = {one: sum(int(closed.sizes[other]) for other in others) for one, others in against.items()}
    while any(weight.values()):
        leaves = max(weight, key=lambda one: (weight[one] / int(closed.sizes[one]), far[one], one))
        yield leaves
        for other in against[leaves]:
            if other in weight:
                weight[other] -= int(closed.sizes[leaves])
        del weight[leaves]


def _commonest(place: IntArray, closed: Closure) -> tuple[IntArray, IntArray]:
    """The most common label of each component, and the components whose rows have several labels."""
    chosen = place[closed.first_row]
    return chosen, np.unique(closed.component_of[place != chosen[closed.component_of]])


def _wishes(X: Any, component: int, place: IntArray, centers: FloatArray, closed: Closure) -> list[int]:
    """The labels of the rows of a component, most common first; ties go to the nearest cluster."""
    pointers, rows = closed.rows
    found, counts = np.unique(place[rows[pointers[component] : pointers[component + 1]]], return_counts=True)
    far = _distances(X, component, centers[found], closed)
    return found[np.lexsort((found, far, -counts))].tolist()


def _distances(X: Any, component: int, centers: FloatArray, closed: Closure) -> FloatArray:
    """Squared distances of a component's rows to centres, summed."""
    pointers, rows = closed.rows
    return squared_distances(X, rows[pointers[component] : pointers[component + 1]], centers).sum(axis=0)


def _clashing(chosen: IntArray, closed: Closure) -> IntArray:
    """Components that share a label with a component they must differ from."""
    graph = closed.graph
    ends = np.repeat(np.arange(closed.n_components), np.diff(graph.edge_ptr))
    same = chosen[ends] == chosen[graph.edges]
    found = [ends[same]]
    member_of = np.repeat(np.arange(len(graph.member_ptr) - 1), np.diff(graph.member_ptr))
    keys = member_of * (int(chosen.max(initial=0)) + 1) + chosen[graph.members]
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    found.append(graph.members[counts[place] > 1])
    return np.unique(np.concatenate(found))
