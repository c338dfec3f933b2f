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
    ClassRegression,
    KernelWeights,
    LabelledRows,
    concatenated,
    covariance,
    fit_classes,
    fit_weights_to,
    leave_one_out,
    normalized,
)
from clew.graph._kernels import KernelSum, RowFeatures

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Pseudo-counts of a base cluster's own class, and of all classes together.
_OWN_CLASS, _ANY_CLASS = 10.0, 1.0
# Factor on the prior probability of the partition that is the result without answers. With five equal partitions, its
# probability is 0.79. Another partition takes its place if it has about five labelled rows more on its side.
_RESULT_WITHOUT_ANSWERS = 15.0
# Weight of labels as evidence about partitions. It is below 1 because labels of neighbours are not independent.
_LABEL_EVIDENCE = 0.16
# Log-odds that a base cluster has the class of the reference cluster that contains all of its rows.
_ALIGNMENT = 8.0
# Number of steps of a lazy random walk that smooths the prior mean along the borders of base clusters.
_STEPS = 2
# Factor on the prior weights of the co-membership kernels, whose role the prior mean takes, and the prior noise.
_CO_MEMBERSHIP, _NOISE = 0.1, 0.5
# Added to the squared norm in the regression that scales the Gaussian process, so that few labels count little.
_SHRINKAGE = 2.0
# The partitions alone decide if they predict labelled rows better by this many nats per row. Questions are about rows
# that are hard to predict from labelled rows, so a smaller lead is averaged. While some classes have no labels, the
# labelled rows have to lead by the second value, and to predict as many labelled rows more as the third value.
_CLEAR_LEAD, _CLEAR_LEAD_OF_ROWS, _MORE_HITS = 0.25, 0.35, 4
# With fewer labelled rows than this, one model is used alone: an average of two rough models is worse than either.
_FEW_ROWS = 20
# Grid for the share of labelled rows that follow the partitions.
_SHARES = np.linspace(0.005, 0.995, 100)
# Lower bound on a leave-one-out count.
_TINY = 1e-9


class PriorMean(NamedTuple):
    """The prior mean of the Gaussian process: for all rows, and for each labelled row without its own label."""

    values: FloatArray
    leave_one_out: FloatArray
    tables: list[FloatArray]  # weighted class probabilities of the clusters of each partition
    unsmoothed: list[FloatArray]  # the values before each step of the random walk

    def at(self, rows: RowFeatures) -> FloatArray:
        """The mean of further rows."""
        values = np.zeros((len(rows.columns), self.values.shape[1]))
        for table, labels in zip(self.tables, rows.partitions, strict=True):
            values += table[labels]
        for before in self.unsmoothed:
            values = (values + rows.walk @ before) / 2
        return values


class CorrectedMean(NamedTuple):
    """A prior mean plus a Gaussian process on the differences between labels and mean."""

    kernels: KernelSum
    rows: IntArray  # labelled rows
    mean: PriorMean
    weights: KernelWeights
    scale: float  # factor on the Gaussian process
    dual: FloatArray

    def probabilities(self, at: RowFeatures | None = None) -> FloatArray:
        """Class probabilities of all rows, or of further rows."""
        mean = self.mean.values if at is None else self.mean.at(at)
        return normalized(mean + self.scale * self.kernels.product(self.weights.values, self.rows, self.dual, at))


class Propagation(NamedTuple):
    """The average of two fitted models. A model without weight is None."""

    share: float  # weight of the first model
    by_partitions: CorrectedMean | None
    by_rows: ClassRegression | None

    def probabilities(self, at: RowFeatures | None = None) -> FloatArray:
        """Class probabilities of all rows, or of further rows."""
        if self.by_rows is None:
            assert self.by_partitions is not None
            return self.by_partitions.probabilities(at)
        by_rows = self.by_rows.probabilities(at)
        if self.by_partitions is None:
            return by_rows
        return self.share * self.by_partitions.probabilities(at) + (1 - self.share) * by_rows


def propagate(
    kernels: KernelSum,
    labelled: LabelledRows,
    medoids: LabelledRows,
    weights: KernelWeights,
    n_classes: int,
    departure: float = np.inf,
) -> Propagation:
    """Fit two models, whose class probabilities are averaged by how well they predict left-out labelled rows.

    One model starts from the base partitions. The other is the Gaussian process without a mean (`fit_classes`).
    """
    sample = labelled.subsample(MOST_LABELLED)
    share, by_partitions = 0.0, None
    if len(sample.rows):
        mean = partition_mean(kernels, sample, n_classes, departure)
        kept, some = sample.places(MOST_EVIDENCE), sample.subsample(MOST_EVIDENCE)
        left_out = leave_one_out(kernels.gram(weights.values, some.rows), some, weights.noise, n_classes)
        share = partition_share(normalized(mean.leave_one_out[kept]), left_out, some.classes)
        if share > 0:
            by_partitions = around_mean(kernels, sample, mean, n_classes)
        if share == 1:
            return Propagation(share, by_partitions, None)
    return Propagation(share, by_partitions, fit_classes(kernels, concatenated(labelled, medoids), weights, n_classes))


def partition_share(by_partitions: FloatArray, by_rows: FloatArray, classes: IntArray) -> float:
    """Weight of the model that starts from the base partitions, in the average of the two models.

    Both predictions are class probabilities of each labelled row, made without its own label. The weight is 1 if the
    partitions lead clearly, and else 0 as long as there are few labelled rows. With more of them it is the posterior
    mean of the share under a uniform prior, where a labelled row follows the partitions with a probability equal to
    that share. While some classes have no labels, labelled rows cannot predict these, and the two models may number
    them differently: the weight is 1 unless the rows lead clearly. A row that is alone in its class is no hit then: it
    is predicted by the partitions only because its own label decides which base cluster has its class.
    """
    each, counts = np.arange(len(classes)), np.bincount(classes, minlength=by_rows.shape[1])
    one, two = by_partitions[each, classes], by_rows[each, classes]
    lead = np.log(one / two).mean()
    if not counts.all():
        shared = counts[classes] > 1
        hits, hits_of_rows = (((p.argmax(axis=1) == classes) & shared).sum() for p in (by_partitions, by_rows))
        return float(lead > -_CLEAR_LEAD_OF_ROWS or hits_of_rows - hits < _MORE_HITS)
    if lead > _CLEAR_LEAD or len(classes) < _FEW_ROWS:
        return float(lead > _CLEAR_LEAD)
    logs = np.log(_SHARES[:, None] * one + (1 - _SHARES[:, None]) * two).sum(axis=1)
    return float(np.average(_SHARES, weights=np.exp(logs - logs.max())))


def around_mean(kernels: KernelSum, labelled: LabelledRows, mean: PriorMean, n_classes: int) -> CorrectedMean:
    """The prior mean plus a Gaussian process on the differences, scaled by its accuracy on left-out differences."""
    differences = np.eye(n_classes)[labelled.classes] - mean.leave_one_out
    prior = kernels.prior * np.append(np.ones(3), np.full(len(kernels.partitions), _CO_MEMBERSHIP))
    kept, some = labelled.places(MOST_EVIDENCE), labelled.subsample(MOST_EVIDENCE)
    weights = fit_weights_to(kernels, some, differences[kept], KernelWeights(prior, _NOISE))
    inverse = np.linalg.inv(covariance(kernels.gram(weights.values, labelled.rows), labelled.noise, weights.noise))
    dual = inverse @ differences
    foretold = differences - dual / np.diag(inverse)[:, None]  # leave-one-out, `rasmussen2006`, Eq. 5.12
    scale = (differences * foretold).sum() / ((foretold**2).sum() + _SHRINKAGE)
    return CorrectedMean(kernels, labelled.rows, mean, weights, float(np.clip(scale, 0, 1)), dual)


def partition_mean(kernels: KernelSum, labelled: LabelledRows, n_classes: int, departure: float = np.inf) -> PriorMean:
    """Class probabilities from the base partitions and the labels in their clusters, smoothed over the graph.

    A base cluster leaves the one-to-one mapping if its labels are evidence for another class by more than `departure`,
    in nats.
    """
    counts = [_label_counts(one, labelled, n_classes) for one in kernels.partitions]
    evidence = [_class_evidence(one) for one in counts]
    prior = kernels.prior[3:].copy()
    prior[kernels.unconstrained] *= _RESULT_WITHOUT_ANSWERS
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
    tables, unsmoothed = [], []
    for weight, labels, counts in zip(weights, kernels.partitions, dirichlet, strict=True):
        tables.append(weight * (counts / counts.sum(axis=1, keepdims=True)))
        values += tables[-1][labels]
        others = np.maximum(counts[labels[labelled.rows]] - indicators, _TINY)
        left_out += weight * others / others.sum(axis=1, keepdims=True)
    before = values[labelled.rows]
    for _ in range(_STEPS):
        unsmoothed.append(values)
        values = (values + kernels.walk @ values) / 2
    return PriorMean(values, left_out + values[labelled.rows] - before, tables, unsmoothed)
