"""Uncertain groups as a prior over the components of a mixture (`law2004`).

A row in a group copies the group's label with a probability, the strength of the row in the group. Otherwise its label
is drawn from the mixing weights, as for any other row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from clew.constraints import Closure, Constraints
from clew.mixture._em import Expectation, FloatArray, IntArray, log_sum, normalise_rows
from clew.mixture._pairs import MixtureUnits
from clew.solvers.inference import Factors, Inference

# A row in groups of strength s counts 1 - 3 s (1 - s) times. Rows in doubtful pairs are not a random sample: people ask
# about rows between clusters, which would pull the components towards each other (docs/decisions.md).
_DOUBT = 3.0


class Sources(NamedTuple):
    """Which units may copy which labels.

    `odds` is a sparse matrix of shape (units, labels): the odds that a unit copies a label rather than draws its own.
    `own` is the index of the label that a unit draws if it copies none, -1 if no other unit can copy that label.

    Example: unit 0 is an anchor, and a must-link of confidence 0.8 ties unit 1 to it. Label 0 belongs to unit 0::

        odds = [[0], [4]]   own = [0, -1]
    """

    odds: sparse.csr_array
    own: IntArray


class GroupKnowledge:
    r"""Soft groups as a prior: :math:`P(z_u = j) = \gamma_{u0} \pi_j + \sum_l \gamma_{ul} [w_l = j]`.

    Parameters
    ----------
    units : MixtureUnits
        Components that copy a label, whose label is copied, which have several rows, or which have a known class.
    sources : Sources
    weight : float or None
        Weight of the rows of units that copy a label or whose label is copied; other rows have weight 1. None: the
        mean of :math:`1 - 3 \gamma (1 - \gamma)`, which is 1 for strengths 0 and 1, and 1/4 for strength 1/2.
    """

    def __init__(
        self, units: MixtureUnits, sources: Sources, weight: float | None, n_states: int, exact_limit: int
    ) -> None:
        self.units, self._own = units, sources.own
        odds = sources.odds
        n_sources = np.diff(odds.indptr)
        self._anchors = np.flatnonzero(sources.own >= 0)
        # A unit that is copied but copies nothing needs no factor: its label is a variable with its own potential.
        self._mixed = np.flatnonzero(n_sources > 0)
        # Units without a source are certain and independent of all others.
        self._is_doubtful = (n_sources > 0) | (sources.own >= 0)
        self._single = np.flatnonzero(~self._is_doubtful)
        odds, own = sparse.csr_array(odds[self._mixed]), sources.own[self._mixed]
        total = 1 + np.asarray(odds.sum(axis=1)).ravel()
        self._log_free = -np.log(total)
        ends = np.cumsum(np.diff(odds.indptr))
        child = own >= 0
        labels = np.insert(odds.indices.astype(np.int64), ends[child], own[child])
        shares = odds.data / np.repeat(total, np.diff(odds.indptr))
        if weight is None:
            weight = float(np.mean(1 - _DOUBT * shares * (1 - shares))) if len(shares) else 1.0
        self._weight = weight
        strengths = np.insert(shares, ends[child], 1.0)
        ptr = np.append(0, ends + np.cumsum(child)).astype(np.int64)
        self._n_labels = sources.odds.shape[1]
        # The labels of groups, and of anchors that copy nothing, are drawn from the mixing weights.
        self._is_drawn = np.ones(self._n_labels, dtype=bool)
        self._is_drawn[own[child]] = False
        self._graph = Inference(self._n_labels, n_states, Factors.mixtures(ptr, labels, strengths, child), exact_limit)
        self.n_exact, self.n_loopy = self._graph.n_exact, self._graph.n_loopy

    def expect(self, log_densities: FloatArray, log_weights: FloatArray) -> Expectation:
        """The E-step (Eq. 7 to 9): in closed form for free rows, else by inference on the graph of units and labels."""
        units = self.units
        if not len(units.rows):
            total = normalise_rows(log_densities, log_weights)
            return Expectation(log_densities, total, log_densities.sum(axis=0), log_densities)
        scores = units.log_densities(log_densities)
        largest = scores.max(axis=1, keepdims=True)
        scores -= largest
        potentials = np.where(self._is_drawn[:, None], log_weights, 0.0)
        potentials[self._own[self._anchors]] += scores[self._anchors]
        found = self._graph.run(potentials, scores[self._mixed], log_weights + self._log_free[:, None])
        log_densities[units.rows] = 0
        total = normalise_rows(log_densities, log_weights) - len(units.rows) * log_sum(log_weights)
        doubtful = found.log_partition + float(largest[self._is_doubtful].sum())
        single = scores[self._single]
        total += normalise_rows(single, log_weights) + float(largest[self._single].sum())
        total += self._weight * doubtful
        log_densities[units.rows] = 0
        drawn = found.marginals[self._is_drawn].sum(axis=0) + found.drawn.sum(axis=0)
        counts = log_densities.sum(axis=0) + single.sum(axis=0) + self._weight * drawn
        posteriors = np.empty(scores.shape)
        posteriors[self._single] = single
        posteriors[self._mixed] = found.joint
        posteriors[self._anchors] = found.marginals[self._own[self._anchors]]
        log_densities[units.rows] = posteriors[units.unit_of]
        weighted = log_densities
        if self._weight != 1:
            weighted = log_densities.copy()
            weighted[units.rows[self._is_doubtful[units.unit_of]]] *= self._weight
        return Expectation(log_densities, total, counts, weighted)

    def log_weights(self, counts: FloatArray, before: FloatArray) -> FloatArray:
        """The M-step of the mixing weights, Eq. 7."""
        counts = np.maximum(counts, np.finfo(np.float64).tiny)
        return np.asarray(np.log(counts / counts.sum()))


def certain(constraints: Constraints) -> Constraints:
    """Keep only certain constraints: pairs of confidence 1, classes, and rows in a soft group with strength 1."""
    known = constraints.at_least(1.0)._replace(
        cannot_link=np.empty((0, 2), dtype=np.int64), cannot_link_confidence=np.empty(0), cannot_groups=None
    )
    groups = constraints.soft_groups
    if groups is None:
        return known
    sure = sparse.coo_array(groups)
    rows, its_group = sure.coords[0][sure.data == 1], sure.coords[1][sure.data == 1]
    column = np.full(constraints.n_rows, -1)
    column[rows] = its_group
    return known._replace(soft_groups=None) | Constraints(must_groups=column)


def read_sources(constraints: Constraints, closed: Closure) -> tuple[IntArray, Sources]:
    """Find the components that copy a label or whose label is copied, and the sources of all components.

    A soft group has its own label, or the label of the component whose rows are in it with strength 1. In a pair, the
    row with more pairs is the anchor, and the other row copies the anchor's label. The odds of several sources add up,
    because at most one of them is right.
    """
    n_components = closed.n_components
    doubtful = constraints.must_link_confidence < 1
    pairs = closed.component_of[constraints.must_link[doubtful]]
    odds = constraints.must_link_confidence[doubtful] / (1 - constraints.must_link_confidence[doubtful])
    degree = np.bincount(pairs.ravel(), minlength=n_components)
    turned = (degree[pairs[:, 1]] > degree[pairs[:, 0]]) | (
        (degree[pairs[:, 1]] == degree[pairs[:, 0]]) & (pairs[:, 1] < pairs[:, 0])
    )
    pairs = np.where(turned[:, None], pairs[:, ::-1], pairs)
    apart = pairs[:, 0] != pairs[:, 1]
    # A repeated pair counts once, with its highest confidence.
    order = np.lexsort((-odds[apart], pairs[apart, 1], pairs[apart, 0]))
    stated, given_odds = pairs[apart][order], odds[apart][order]
    first = np.ones(len(stated), dtype=bool)
    first[1:] = (stated[1:] != stated[:-1]).any(axis=1)
    stated, given_odds = stated[first], given_odds[first]
    copied, copying, values = [stated[:, 0]], [stated[:, 1]], [given_odds]
    if constraints.soft_groups is not None:
        groups = sparse.csr_array(constraints.soft_groups)
        rows = np.repeat(np.arange(groups.shape[0]), np.diff(groups.indptr))
        components, its_group, strength = closed.component_of[rows], groups.indices, groups.data
        label = n_components + np.arange(groups.shape[1])
        sure = strength == 1
        label[its_group[sure]] = components[sure]
        left = 1 - np.asarray(groups.sum(axis=1)).ravel()[rows]
        with np.errstate(divide="ignore"):
            its_odds = strength / np.maximum(left, np.finfo(np.float64).eps)
        doubted = ~sure & (label[its_group] != components)
        copied.append(label[its_group[doubted]])
        copying.append(components[doubted])
        values.append(its_odds[doubted])
    labels, place = np.unique(np.concatenate(copied), return_inverse=True)
    anchors = labels[labels < n_components]
    involved = np.union1d(anchors, np.concatenate(copying)).astype(np.int64)
    matrix = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(copying), place)), shape=(n_components, len(labels))
    )
    own = np.full(n_components, -1)
    own[anchors] = np.arange(len(anchors))
    return involved, Sources(matrix, own)
