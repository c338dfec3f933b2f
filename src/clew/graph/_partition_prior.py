"""Class probabilities that start from the base partitions and depart from them only as far as the labels require.

Each base cluster is mapped to one class, one to one, so that a wrong mapping only renames clusters. The labels of a
cluster's rows are Dirichlet-multinomial counts around its class. The mixture of all partitions is the prior mean of a
Gaussian process whose targets are the differences between the labels and this mean (Rasmussen and Williams 2006,
`rasmussen2006`, section 2.7).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from clew.graph._gaussian_process import (
    MOST_EVIDENCE,
    MOST_LABELLED,
    KernelWeights,
    LabelledRows,
    class_probabilities,
    concatenated,
    covariance,
    fit_weights_to,
    leave_one_out,
    normalized,
)
from clew.graph._kernels import KernelSum

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Pseudo-counts of a base cluster's own class, and of all classes together.
_OWN_CLASS, _ANY_CLASS = 10.0, 1.0
# Extra prior probability of the partition that is the result without answers; all partitions share the remainder.
_RESULT_WITHOUT_ANSWERS = 0.5
# Weight of labels as evidence about partitions. It is below 1 because labels of neighbours are not independent.
_LABEL_EVIDENCE = 0.2
# Log-odds that a base cluster has the class of the reference cluster that contains all of its rows.
_ALIGNMENT = 3.0
# Number of steps of a lazy random walk that smooths the prior mean along the borders of base clusters.
_STEPS = 2
# Factor on the prior weights of the co-membership kernels, whose role the prior mean takes, and the prior noise.
_CO_MEMBERSHIP, _NOISE = 0.1, 0.5
# Added to the squared norm in the regression that scales the Gaussian process, so that few labels count little.
_SHRINKAGE = 2.0
# The partitions must predict better than the labelled rows by at least this many nats per labelled row, because
# questions are about rows that are hard to predict from labelled rows. While some classes have no labels, labelled rows
# cannot predict them, and the bound is the second value times one minus the agreement of the partitions.
_LEAD, _LEAD_WHILE_MISSING = 0.5, 0.5
# Lower bound on a leave-one-out count.
_TINY = 1e-9


class PriorMean(NamedTuple):
    """The prior mean of the Gaussian process: for all rows, and for each labelled row without its own label."""

    values: FloatArray
    leave_one_out: FloatArray


def propagate(
    kernels: KernelSum, labelled: LabelledRows, medoids: LabelledRows, weights: KernelWeights, n_classes: int
) -> FloatArray:
    """Class probabilities of all rows, from the one of two models that predicts left-out labelled rows better.

    One model is the Gaussian process without a mean (`class_probabilities`). The other starts from the base partitions.
    """
    sample = labelled.subsample(MOST_LABELLED)
    if len(sample.rows):
        mean = partition_mean(kernels, sample, n_classes)
        if _partitions_lead(kernels, sample, weights, mean, n_classes):
            return around_mean(kernels, sample, mean, n_classes)
    return class_probabilities(kernels, concatenated(labelled, medoids), weights, n_classes)


def _partitions_lead(
    kernels: KernelSum, labelled: LabelledRows, weights: KernelWeights, mean: PriorMean, n_classes: int
) -> bool:
    """Whether the base partitions predict the labelled rows clearly better than the other labelled rows do."""
    kept = labelled.places(MOST_EVIDENCE)
    some = labelled.subsample(MOST_EVIDENCE)
    each = np.arange(len(kept))
    by_rows = leave_one_out(kernels.gram(weights.values, some.rows), some, weights.noise, n_classes)
    by_partitions = normalized(mean.leave_one_out[kept])
    lead = np.log(by_partitions[each, some.classes]) - np.log(by_rows[each, some.classes])
    agreement = kernels.agreement[kernels.prior[3:].argmax()]
    is_complete = len(np.unique(labelled.classes)) == n_classes
    return bool(lead.mean() > (_LEAD if is_complete else _LEAD_WHILE_MISSING * (1 - agreement)))


def around_mean(kernels: KernelSum, labelled: LabelledRows, mean: PriorMean, n_classes: int) -> FloatArray:
    """The prior mean plus a Gaussian process on the differences, scaled by its accuracy on left-out differences."""
    differences = np.eye(n_classes)[labelled.classes] - mean.leave_one_out
    prior = kernels.prior * np.append(np.ones(3), np.full(len(kernels.partitions), _CO_MEMBERSHIP))
    kept, some = labelled.places(MOST_EVIDENCE), labelled.subsample(MOST_EVIDENCE)
    weights = fit_weights_to(kernels, some, differences[kept], KernelWeights(prior, _NOISE))
    inverse = np.linalg.inv(covariance(kernels.gram(weights.values, labelled.rows), labelled.noise, weights.noise))
    dual = inverse @ differences
    foretold = differences - dual / np.diag(inverse)[:, None]  # leave-one-out, `rasmussen2006`, Eq. 5.12
    scale = (differences * foretold).sum() / ((foretold**2).sum() + _SHRINKAGE)
    scores = mean.values + np.clip(scale, 0, 1) * kernels.product(weights.values, labelled.rows, dual)
    return normalized(scores)


def partition_mean(kernels: KernelSum, labelled: LabelledRows, n_classes: int, departure: float = np.inf) -> PriorMean:
    """Class probabilities from the base partitions and the labels in their clusters, smoothed over the graph.

    A base cluster leaves the one-to-one mapping if its labels are evidence for another class by more than `departure`,
    in nats.
    """
    counts = [_label_counts(one, labelled, n_classes) for one in kernels.partitions]
    evidence = [_class_evidence(one) for one in counts]
    prior = kernels.prior[3:] * (1 - _RESULT_WITHOUT_ANSWERS) / kernels.prior[3:].sum()
    prior[prior.argmax()] += _RESULT_WITHOUT_ANSWERS
    posterior = np.log(prior) + _LABEL_EVIDENCE * np.array([_best(one, one)[1] for one in evidence])
    chosen = int(posterior.argmax())
    reference = _best(evidence[chosen], evidence[chosen])[0][kernels.partitions[chosen]]
    dirichlet = []
    for place, (labels, scores) in enumerate(zip(kernels.partitions, evidence, strict=True)):
        overlap = _overlap(labels, reference, n_classes)
        class_of, total = _best(scores, scores + _ALIGNMENT * overlap)
        assigned = np.where(class_of >= 0, scores[np.arange(len(scores)), class_of], scores.min(axis=1))
        class_of = np.where(scores.max(axis=1) - assigned > departure, scores.argmax(axis=1), class_of)
        own = np.where(class_of[:, None] >= 0, class_of[:, None] == np.arange(n_classes), overlap)
        dirichlet.append(counts[place] + _OWN_CLASS * own + _ANY_CLASS / n_classes)
        posterior[place] = np.log(prior[place]) + _LABEL_EVIDENCE * total
    weights = np.exp(posterior - posterior.max())
    weights /= weights.sum()
    return _smoothed(kernels, labelled, weights, dirichlet)


def _label_counts(labels: IntArray, labelled: LabelledRows, n_classes: int) -> FloatArray:
    """Number of labelled rows of each class in each cluster."""
    counts = np.zeros((int(labels.max()) + 1, n_classes))
    np.add.at(counts, (labels[labelled.rows], labelled.classes), 1.0)
    return counts


def _class_evidence(counts: FloatArray) -> FloatArray:
    """Log-evidence of each cluster's labels if the cluster belongs to each class (Dirichlet-multinomial)."""
    base = _ANY_CLASS / counts.shape[1]
    total = _OWN_CLASS + _ANY_CLASS
    as_other = gammaln(base + counts) - gammaln(base)
    as_own = gammaln(_OWN_CLASS + base + counts) - gammaln(_OWN_CLASS + base)
    all_counts = counts.sum(axis=1, keepdims=True)
    return as_other.sum(axis=1, keepdims=True) - as_other + as_own + gammaln(total) - gammaln(total + all_counts)


def _best(evidence: FloatArray, scores: FloatArray) -> tuple[IntArray, float]:
    """Find the one-to-one mapping from clusters to classes with the highest scores (-1: no class), and its evidence."""
    clusters, classes = linear_sum_assignment(scores, maximize=True)
    class_of = np.full(len(scores), -1)
    class_of[clusters] = classes
    return class_of, float(evidence[clusters, classes].sum())


def _overlap(labels: IntArray, reference: IntArray, n_classes: int) -> FloatArray:
    """Share of each cluster's rows in each class of the reference."""
    overlap = np.zeros((int(labels.max()) + 1, n_classes))
    known = reference >= 0
    np.add.at(overlap, (labels[known], reference[known]), 1.0)
    return overlap / np.bincount(labels)[:, None]


def _smoothed(
    kernels: KernelSum, labelled: LabelledRows, weights: FloatArray, dirichlet: list[FloatArray]
) -> PriorMean:
    """Mix the partitions, and average over neighbours."""
    n_classes = dirichlet[0].shape[1]
    values = np.zeros((kernels.n_rows, n_classes))
    left_out = np.zeros((len(labelled.rows), n_classes))
    indicators = np.eye(n_classes)[labelled.classes]
    for weight, labels, counts in zip(weights, kernels.partitions, dirichlet, strict=True):
        values += weight * (counts / counts.sum(axis=1, keepdims=True))[labels]
        others = np.maximum(counts[labels[labelled.rows]] - indicators, _TINY)
        left_out += weight * others / others.sum(axis=1, keepdims=True)
    before = values[labelled.rows]
    for _ in range(_STEPS):
        values = (values + kernels.walk @ values) / 2
    return PriorMean(values, left_out + values[labelled.rows] - before)
