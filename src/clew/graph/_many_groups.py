"""Class probabilities for very many groups, in time and memory that do not grow with rows times groups.

A row can only belong to few of the groups: those of its base clusters, and those of the rows around it. The base
partitions, with one class per cluster, are mixed into a sparse matrix of probabilities, labelled rows get their class,
and a random walk of two steps averages over neighbours. This is the prior mean of `clew.graph._partition_prior`
without the Gaussian process, whose time and memory grow with rows times groups.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.metrics import pairwise_distances_argmin

from clew.constraints import Closure
from clew.graph._gaussian_process import LabelledRows
from clew.graph._kernels import KernelSum

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Pseudo-counts of a base cluster's own class.
_OWN_CLASS = 10.0
# Factor on the prior probability of the partition that is the result without answers.
_RESULT_WITHOUT_ANSWERS = 15.0
# Number of steps of a lazy random walk. Smaller probabilities than the second value are dropped after each step, unless
# they are the largest of their row.
_STEPS, _LEAST = 2, 0.01


def sparse_probabilities(kernels: KernelSum, labelled: LabelledRows, n_classes: int) -> sparse.csr_array:
    """Probabilities of classes 0 to `n_classes` - 1 for all rows. Labelled rows belong to their class.

    Classes without labelled rows belong to base clusters without them, the largest first.
    """
    reference = kernels.partitions[kernels.unconstrained]
    class_of = _cluster_classes(kernels, reference, labelled, n_classes)[reference]
    weights = kernels.prior[3:].copy()
    weights[kernels.unconstrained] *= _RESULT_WITHOUT_ANSWERS
    weights /= weights.sum()
    values = sparse.csr_array((kernels.n_rows, n_classes))
    for place, (weight, labels) in enumerate(zip(weights, kernels.partitions, strict=True)):
        n_clusters = int(labels.max()) + 1
        overlap = _crosstab(labels, class_of, (n_clusters, n_classes))
        own = class_of if place == kernels.unconstrained else np.asarray(overlap.argmax(axis=1)).ravel()[labels]
        first = np.unique(labels, return_index=True)[1]
        table = _indicators(own[first], n_classes) * _OWN_CLASS
        table = table + _crosstab(labels[labelled.rows], labelled.classes, table.shape)
        values = values + weight * _normalized(sparse.csr_array(table))[labels]
    values = _with_labels(values, labelled)
    for _ in range(_STEPS):
        values = _pruned(sparse.csr_array(values + kernels.walk @ values))
    return _with_labels(_normalized(values), labelled)


def best_two(probabilities: sparse.csr_array) -> tuple[IntArray, FloatArray, FloatArray]:
    """The best class of each row, its probability, and that of the second best class (0 if there is none)."""
    n_rows = probabilities.shape[0]
    sizes = np.diff(probabilities.indptr)
    rows = np.repeat(np.arange(n_rows), sizes)
    order = np.lexsort((probabilities.indices, -probabilities.data, rows))
    first = probabilities.indptr[:-1]
    second = np.zeros(n_rows)
    several = sizes > 1
    second[several] = probabilities.data[order[first[several] + 1]]
    return probabilities.indices[order[first]].astype(np.int64), probabilities.data[order[first]], second


def component_scores(closed: Closure, blocks: IntArray, probabilities: sparse.csr_array) -> FloatArray:
    """Sum of the log-probabilities of each component's rows for each class, of shape (n_blocks, n_classes)."""
    tiny = np.log(np.finfo(np.float64).tiny)
    place = np.full(closed.n_components, -1)
    place[blocks] = np.arange(len(blocks))
    of_row = place[closed.component_of]
    rows = np.flatnonzero(of_row >= 0)
    member = sparse.csr_array((np.ones(len(rows)), (of_row[rows], np.arange(len(rows)))), (len(blocks), len(rows)))
    logs = probabilities[rows]
    logs.data = np.log(np.maximum(logs.data, np.finfo(np.float64).tiny)) - tiny
    scores = np.asarray((member @ logs).toarray(), dtype=np.float64)
    return scores + tiny * np.bincount(of_row[rows], minlength=len(blocks))[:, None]


def _cluster_classes(kernels: KernelSum, reference: IntArray, labelled: LabelledRows, n_classes: int) -> IntArray:
    """The class of each cluster of the reference partition.

    Pairs of a cluster and a class with the most labelled rows come first, one to one. Clusters that are left get the
    classes without labelled rows, the largest first, and then the class of the nearest cluster.
    """
    sizes = np.bincount(reference)
    found = np.full(len(sizes), -1)
    counts = _crosstab(reference[labelled.rows], labelled.classes, (len(sizes), n_classes)).tocoo()
    is_used = np.zeros(n_classes, dtype=bool)
    for place in np.argsort(-counts.data, kind="stable").tolist():
        cluster, one = counts.row[place], counts.col[place]
        if found[cluster] < 0 and not is_used[one]:
            found[cluster], is_used[one] = one, True
    is_used[labelled.classes] = True
    left = np.flatnonzero(found < 0)
    left = left[np.argsort(-sizes[left], kind="stable")]
    free = np.flatnonzero(~is_used)[: len(left)]
    found[left[: len(free)]] = free
    if (found < 0).any():
        prototypes = kernels.columns[kernels.prototypes(kernels.unconstrained)]
        known = np.flatnonzero(found >= 0)
        others = np.flatnonzero(found < 0)
        found[others] = found[known[pairwise_distances_argmin(prototypes[others], prototypes[known])]]
    return found


def _crosstab(one: IntArray, two: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    """Number of rows of each pair of labels."""
    return sparse.csr_array((np.ones(len(one)), (one, two)), shape=shape)


def _indicators(classes: IntArray, n_classes: int) -> sparse.csr_array:
    n = len(classes)
    return sparse.csr_array((np.ones(n), classes, np.arange(n + 1)), shape=(n, n_classes))


def _normalized(values: sparse.csr_array) -> sparse.csr_array:
    return sparse.csr_array(sparse.diags_array(1 / np.asarray(values.sum(axis=1)).ravel()) @ values)


def _with_labels(values: sparse.csr_array, labelled: LabelledRows) -> sparse.csr_array:
    """Replace the probabilities of labelled rows by their class."""
    free = np.ones(values.shape[0])
    free[labelled.rows] = 0
    own = sparse.csr_array((np.ones(len(labelled.rows)), (labelled.rows, labelled.classes)), shape=values.shape)
    found = sparse.csr_array(sparse.diags_array(free) @ values + own)
    found.eliminate_zeros()
    return found


def _pruned(values: sparse.csr_array) -> sparse.csr_array:
    """Drop small shares of each row, but not its largest value."""
    sizes = np.diff(values.indptr)
    largest = np.repeat(np.maximum.reduceat(values.data, values.indptr[:-1]), sizes)
    total = np.repeat(np.add.reduceat(values.data, values.indptr[:-1]), sizes)
    values.data[(values.data < _LEAST * total) & (values.data < largest)] = 0
    values.eliminate_zeros()
    return values
