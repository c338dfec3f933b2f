"""Label propagation from constrained rows over a graph of neighbours and an ensemble of base partitions.

Label propagation on graphs: Zhou et al. 2004 (`zhou2004`). The combination with base partitions is clew's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from clew._base import Capabilities, ConstrainedClusterer
from clew._persistence import Learned
from clew._validation import RANDOM_STATE, Allowed, integer, number
from clew.constraints import Closure, Constraints, require_coloring
from clew.constraints._arrays import distinct_pairs
from clew.datasets._stored import is_remote
from clew.graph._gaussian_process import (
    MOST_LABELLED,
    ClassRegression,
    LabelledRows,
    concatenated,
    fit_classes,
    fit_weights,
    normalized,
    prior_weights,
)
from clew.graph._kernels import KernelSum, RowFeatures, build_kernels, build_neighbor_graph
from clew.graph._many_groups import best_two, component_scores, sparse_probabilities
from clew.graph._partition_prior import Propagation, around_mean, partition_mean, propagate
from clew.partitional._remote import predicted
from clew.partitional._seeding import cluster_labels
from clew.solvers.coloring import WORK_LIMIT

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
# Pairs, whether each is together, and confidences; see `known_pairs`.
KnownPairs = tuple[IntArray, npt.NDArray[np.bool_], FloatArray]

# Largest number of rounds in which components are assigned to clusters and become labelled rows. Little changes after
# the second round.
_MOST_ROUNDS = 4
# Propagation is compared with the adjusted base partitions if there are this many pairs, a quarter of which is left out
# at a time. Propagation must win by this many standard errors.
_LEAST_PAIRS, _N_FOLDS, _STANDARD_ERRORS = 8, 4, 2.0
# Number of times that components are assigned to clusters and the base partitions are adjusted to them.
_ADJUSTMENTS = 2
# Rounds in which clashing components move, and after how many of them the price of a clash doubles.
_REPAIR_STEPS, _REPAIR_DOUBLING = 60, 6
# Number of rows whose kernels are averaged to find the least represented row.
_MOST_COMPARED = 400
# Number of mean-field updates for pairs with a confidence below 1.
_MEAN_FIELD_UPDATES = 40


class GraphPropagation(ConstrainedClusterer):
    r"""Label propagation from a few constrained rows over a graph of neighbours.

    Rows of known classes and components of must-linked rows are the labelled rows. All other rows get class
    probabilities from their similarity to labelled rows. Similarity is a weighted sum of kernels: diffusion on the
    graph of nearest neighbours, distance, the columns, and co-membership in base partitions (k-means, spectral, Ward,
    two mixtures). The weights of the kernels are learned from the labelled rows. Clusters may have any shape, and a
    handful of labelled rows per cluster is enough. Without constraints the result is the base partition that agrees
    best with the others.

    Parameters
    ----------
    n_clusters : int, default=8
        Upper bound on the number of clusters.
    n_neighbors : int, default=10
        Number of neighbours of each row in the graph.
    penalty : float, default=3.0
        A violated pair with a confidence c below 1 costs ``penalty * c``, in units of log-probability.
    work_limit : int
        Largest number of steps of the search for a labelling that satisfies all constraints. It counts work, not
        seconds.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    probabilities_ : ndarray of shape (n_samples, n_clusters)
        Probability of each cluster for each row, before hard constraints are enforced.
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label of each column of `probabilities_`.
    cluster_sizes_ : ndarray of shape (n_clusters,)
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the diffusion, Gaussian and linear kernels, and of each base partition.
    fit_rows_ : array or CSR matrix of shape (n_samples, n_features)
        The training rows, in which `predict` finds the nearest row.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        Only pairs with a confidence below 1 can be among them.

    Notes
    -----
    Constraints: labels, groups and pairs with confidence 1 are hard, entailed ones included. Pairs with a lower
    confidence are soft. With labelled rows s of class :math:`z_s`, the weighted kernel :math:`K = \sum_w \lambda_w
    K_w` and noise :math:`\sigma^2`,

    .. math:: P(z_i = c) \propto \Big[ \tfrac1C + K_{i s} (K_{s s} + \sigma^2 I)^{-1} (Y_s - \tfrac1C) \Big]_+,

    where :math:`\lambda` and :math:`\sigma^2` maximise the marginal likelihood under a log-normal prior. From eight
    known pairs on, this propagation has to show that it pays: it must predict left-out pairs better, by two standard
    errors, than the base partitions adjusted to the constraints. Otherwise the adjusted partitions are the result: the
    prior mean is then not :math:`1/C`, but each base cluster is mapped to one class, and labels in it are Dirichlet
    counts around this class. With fewer pairs and no known classes, the adjusted partitions are the result, too.
    The diffusion kernel is :math:`(I - 0.99 S)^{-1}` for the normalised graph S, from its 100 leading eigenvectors (50
    beyond 5,000 rows), with rows scaled to norm 1. The prior weight of a base partition grows with its agreement with
    the other partitions and with the known pairs. A cluster without labelled rows is represented by the medoid of a
    base cluster that contains no labelled row. Time O(n m (d + 100)) for m ≤ 600 labelled rows, in addition to the
    neighbour search, the eigenvectors and the base partitions; memory O(n (d + 100)). Beyond 20,000 rows the neighbour
    search is approximate. Beyond 2,000 rows base partitions are fitted on a sample.

    References
    ----------
    .. [1] D. Zhou, O. Bousquet, T. N. Lal, J. Weston, B. Schölkopf (2004). "Learning with local and global
       consistency." NIPS.

    Examples
    --------
    >>> from clew import GraphPropagation
    >>> model = GraphPropagation(n_clusters=2, random_state=0)
    >>> model.fit([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]], constraints={"cannot_link": [(0, 5)]}).labels_
    array([0, 0, 0, 1, 1, 1])
    """

    _capabilities = Capabilities(
        labels="hard",
        must_link="hard",
        cannot_link="hard",
        sparse=True,
        any_shape=True,
        predicts=True,
        prices_doubt=True,
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "n_neighbors": integer(1),
        "penalty": number(0),
        "work_limit": integer(0),
        "random_state": RANDOM_STATE,
    }

    n_clusters: int
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **ConstrainedClusterer._learned_attributes,
        "probabilities_": Learned("real", (("rows", "clusters"),), low=0),
        "kernel_weights_": Learned("real", ((None,),), low=0),
        "fit_rows_": Learned("real", (("rows", "columns"),), sparse=True),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 10,
        penalty: float = 3.0,
        work_limit: int = WORK_LIMIT,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.penalty = penalty
        self.work_limit = work_limit
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[GraphPropagation]:
        return [cls(n_clusters=3, n_neighbors=5, random_state=0)]

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        clusters = cluster_labels(constraints.at_least(1.0).closure(), self.n_clusters)
        seed = int(rng.integers(2**31))
        kernels = build_kernels(build_neighbor_graph(X, self.n_neighbors, seed), self.n_clusters, seed)
        pairs = known_pairs(constraints)
        kernels = kernels.with_pair_evidence(*pairs)

        def fitted(method: Callable[..., PropagatedLabels], known: Constraints) -> PropagatedLabels:
            return method(kernels, known, clusters, penalty=self.penalty, work_limit=self.work_limit)

        methods = graph_propagation, adjusted_partition
        fits = tuple(lambda known, method=method: fitted(method, known).labels for method in methods)
        is_propagated = _propagation_leads(constraints, pairs, fits)
        found = fitted(graph_propagation if is_propagated else adjusted_partition, constraints)
        self.probabilities_, self.kernel_weights_ = found.probabilities, found.kernel_weights
        self.cluster_labels_ = clusters
        self.cluster_sizes_ = np.bincount(found.labels, minlength=self.n_clusters)
        self.fit_rows_ = X
        return clusters[found.labels]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of the nearest fitted row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Also a path, a dataset, batches, or a Dask array or frame, which gives a Dask array.
        """
        if is_remote(X):
            return predicted(self, X)
        rows = self._check_new_rows(X)
        nearest = NearestNeighbors(n_neighbors=1).fit(self.fit_rows_).kneighbors(rows, return_distance=False)
        return self.labels_[nearest[:, 0]]


class PropagatedLabels(NamedTuple):
    """Result of `graph_propagation`: cluster positions, class probabilities and kernel weights.

    The last field predicts clusters of further rows, without constraints about them. Adjusted partitions have none.
    """

    labels: IntArray
    probabilities: FloatArray
    kernel_weights: FloatArray
    labels_at: Callable[[RowFeatures], IntArray] | None = None


def graph_propagation(
    kernels: KernelSum,
    constraints: Constraints,
    clusters: IntArray,
    *,
    penalty: float,
    work_limit: int = WORK_LIMIT,
    is_averaged: bool = False,
) -> PropagatedLabels:
    """Alternate between class probabilities and the clusters of components, which then become labelled rows.

    If `is_averaged` and clusters are round, the probabilities are averaged with those of a model that starts from the
    base partitions. If clusters are not round, the base partitions are poor, and a few rows that are hard to predict
    cannot show it.
    """
    certain = constraints.at_least(1.0)
    closed = certain.closure()
    known = component_clusters(closed, clusters)
    blocks = np.flatnonzero((closed.sizes > 1) | closed.tied | (known >= 0))
    potentials = soft_pair_potentials(constraints, closed, penalty)
    if not len(blocks) and potentials is None:
        return _unconstrained(kernels, len(clusters))
    weights = prior_weights(kernels)
    given = _labelled_rows(closed, known)
    if (known >= 0).any():
        weights = fit_weights(kernels, given)
    medoids = unlabelled_medoids(kernels, given, weights.partition, len(clusters))
    fixed = known[blocks].astype(np.int32)
    placed = known
    for _ in range(_MOST_ROUNDS):
        members = _labelled_rows(closed, placed)
        weights = fit_weights(kernels, members)
        model: Propagation | ClassRegression
        if is_averaged and kernels.is_round:
            model = propagate(kernels, members, medoids, weights, len(clusters))
        else:
            model = fit_classes(kernels, concatenated(members, medoids), weights, len(clusters))
        probabilities = model.probabilities()
        if potentials is not None:
            probabilities = mean_field(probabilities, *potentials)
        found = hard_assignment(certain, closed, blocks, fixed, probabilities, work_limit)
        before, placed = placed, known.copy()
        groups = closed.sizes[blocks] > 1
        placed[blocks[groups]] = found[groups]
        if (before == placed).all():
            break
    labels = probabilities.argmax(axis=1)
    of_component = np.full(closed.n_components, -1)
    of_component[blocks] = found
    decided = of_component[closed.component_of]
    labels = np.where(decided >= 0, decided, labels)
    return PropagatedLabels(
        labels, probabilities, weights.values, lambda rows: model.probabilities(rows).argmax(axis=1)
    )


def many_groups_labels(
    kernels: KernelSum, constraints: Constraints, clusters: IntArray, *, penalty: float, work_limit: int = WORK_LIMIT
) -> IntArray:
    """Cluster positions by `sparse_probabilities`, for more groups than `graph_propagation` has room for."""
    certain = constraints.at_least(1.0)
    closed = certain.closure()
    known = component_clusters(closed, clusters)
    blocks = np.flatnonzero((closed.sizes > 1) | closed.tied | (known >= 0))
    potentials = soft_pair_potentials(constraints, closed, penalty)
    if not len(blocks) and potentials is None:
        return kernels.partitions[kernels.unconstrained]
    probabilities = sparse_probabilities(kernels, _labelled_rows(closed, known), len(clusters))
    labels = best_two(probabilities)[0]
    if potentials is not None:
        rows, between = potentials
        dense = np.maximum(probabilities[rows].toarray(), np.finfo(np.float64).tiny)
        labels[rows] = mean_field(dense, np.arange(len(rows)), between).argmax(axis=1)
    scores = component_scores(closed, blocks, probabilities)
    found = assigned(certain, closed, blocks, known[blocks].astype(np.int32), scores, work_limit)
    of_component = np.full(closed.n_components, -1)
    of_component[blocks] = found
    decided = of_component[closed.component_of]
    return np.where(decided >= 0, decided, labels)


def _unconstrained(kernels: KernelSum, n_clusters: int) -> PropagatedLabels:
    """The base partition that agrees best with the others."""
    labels = kernels.partitions[kernels.unconstrained]
    return PropagatedLabels(
        labels, np.eye(n_clusters)[labels], kernels.prior, lambda rows: rows.partitions[kernels.unconstrained]
    )


def _propagation_leads(
    constraints: Constraints, pairs: KnownPairs, fits: tuple[Callable[[Constraints], IntArray], ...]
) -> bool:
    """Whether propagation predicts pairs that are left out of it clearly better than the adjusted partition does.

    Only pairs that exactly one of the two predicts are evidence: propagation must win by a number of standard errors.
    """
    rows, together, _ = pairs
    if len(rows) < _LEAST_PAIRS:
        return constraints.labels is not None
    part = np.random.default_rng(0).permutation(len(rows)) % _N_FOLDS
    is_right = np.empty((2, len(rows)), dtype=bool)
    for fold in range(_N_FOLDS):
        left_out = part == fold
        known = _without(constraints, pairs, left_out)
        one, two = rows[left_out].T
        for place, fit in enumerate(fits):
            labels = fit(known)
            is_right[place, left_out] = (labels[one] == labels[two]) == together[left_out]
    weight = np.maximum(2 * pairs[2] - 1, 0)
    wins, losses = weight[is_right[0] & ~is_right[1]].sum(), weight[is_right[1] & ~is_right[0]].sum()
    return bool(wins - losses > _STANDARD_ERRORS * np.sqrt(wins + losses))


def _without(constraints: Constraints, pairs: KnownPairs, left_out: npt.NDArray[np.bool_]) -> Constraints:
    """The known pairs and classes, without some of the pairs and without the classes of their second rows."""
    rows, together, confidence = pairs
    must, cannot = ~left_out & together, ~left_out & ~together
    labels = constraints.labels
    if labels is not None:
        labels = labels.copy()
        labels[rows[left_out, 1]] = -1
    return Constraints(labels=labels, n_samples=constraints.n_rows) | Constraints(
        rows[must],
        rows[cannot],
        must_link_confidence=confidence[must],
        cannot_link_confidence=confidence[cannot],
        n_samples=constraints.n_rows,
    )


def adjusted_partition(
    kernels: KernelSum, constraints: Constraints, clusters: IntArray, *, penalty: float, work_limit: int = WORK_LIMIT
) -> PropagatedLabels:
    """The base partitions, changed as far as the constraints require, and around the changed rows.

    Rows at the border of a base cluster, and rows about which the partitions disagree, change first.
    """
    certain = constraints.at_least(1.0)
    closed = certain.closure()
    known = class_clusters(closed, clusters)
    blocks = np.flatnonzero((closed.sizes > 1) | closed.tied | (known >= 0))
    fixed = known[blocks].astype(np.int32)
    potentials = soft_pair_potentials(constraints, closed, penalty)
    if not len(blocks) and potentials is None:
        return _unconstrained(kernels, len(clusters))
    mean = partition_mean(kernels, _labelled_rows(closed, known).subsample(MOST_LABELLED), len(clusters))
    probabilities = normalized(mean.values)
    if potentials is not None:
        probabilities = mean_field(probabilities, *potentials)
    of_component = np.full(closed.n_components, -1)
    for _ in range(_ADJUSTMENTS):
        of_component[blocks] = hard_assignment(certain, closed, blocks, fixed, probabilities, work_limit)
        labelled = _labelled_rows(closed, of_component).subsample(MOST_LABELLED)
        if not len(labelled.rows):
            break
        mean = partition_mean(kernels, labelled, len(clusters))
        probabilities = around_mean(kernels, labelled, mean, len(clusters)).probabilities()
        if potentials is not None:
            probabilities = mean_field(probabilities, *potentials)
    decided = of_component[closed.component_of]
    labels = np.where(decided >= 0, decided, probabilities.argmax(axis=1))
    return PropagatedLabels(labels, probabilities, kernels.prior)


def known_pairs(constraints: Constraints) -> KnownPairs:
    """Minimal set of pairs that entails all given ones: the pairs, whether they are together, and confidences.

    A certain component gives the pairs of its first row with each other row. A certain cannot-link gives the pair of
    the first rows of two components.
    """
    closed = constraints.at_least(1.0).closure()
    first = closed.first_row[closed.component_of]
    later = np.flatnonzero(first < np.arange(len(first)))
    one = np.repeat(np.arange(closed.n_components), np.diff(closed.graph.edge_ptr))
    once = one < closed.graph.edges
    apart = closed.first_row[np.column_stack([one[once], closed.graph.edges[once]])]
    doubtful, together, confidence = _doubtful_pairs(constraints, closed)
    return (
        np.concatenate([np.column_stack([first[later], later]), apart, doubtful]),
        np.concatenate([np.repeat([True, False], [len(later), len(apart)]), together]),
        np.concatenate([np.ones(len(later) + len(apart)), confidence]),
    )


def class_clusters(closed: Closure, clusters: IntArray) -> IntArray:
    """Cluster of each component of a known class, -1 for all others."""
    found = np.full(closed.n_components, -1)
    named = np.flatnonzero(closed.labels >= 0)
    places = np.argsort(clusters, kind="stable")
    found[named] = places[np.searchsorted(clusters, closed.labels[named], sorter=places)]
    return found


def component_clusters(closed: Closure, clusters: IntArray) -> IntArray:
    """Cluster of each component that seeds one, -1 for all others.

    Components of known classes seed the clusters of these classes. As long as clusters are left, the largest component
    that is cannot-linked to all seeding components seeds the next one.
    """
    found = class_clusters(closed, clusters)
    named = np.flatnonzero(closed.labels >= 0)
    left = np.setdiff1d(np.arange(len(clusters)), found[named]).tolist()
    apart = (closed.sizes > 1) | closed.tied
    for component in named:
        apart &= np.isin(np.arange(closed.n_components), closed.graph.neighbours(int(component)))
    apart[named] = False
    while left and apart.any():
        chosen = int(np.where(apart, closed.sizes, 0).argmax())
        found[chosen] = left.pop(0)
        apart &= np.isin(np.arange(closed.n_components), closed.graph.neighbours(chosen))
    return found


def _labelled_rows(closed: Closure, cluster_of: IntArray) -> LabelledRows:
    classes = cluster_of[closed.component_of]
    rows = np.flatnonzero(classes >= 0)
    return LabelledRows(rows, classes[rows], np.ones(len(rows)))


def unlabelled_medoids(kernels: KernelSum, given: LabelledRows, partition: int, n_clusters: int) -> LabelledRows:
    """Label the medoids of base clusters without labelled rows, largest first, with the classes that have none.

    If every base cluster has labelled rows, and all of these have one class, the least represented row stands for
    another class. Otherwise all rows would join the only class.
    """
    labels = kernels.partitions[partition]
    sizes = np.bincount(labels)
    sizes[labels[given.rows]] = 0
    left = np.setdiff1d(np.arange(n_clusters), given.classes)
    chosen = np.argsort(-sizes, kind="stable")[: len(left)]
    chosen = chosen[sizes[chosen] > 0]
    rows = kernels.prototypes(partition)[chosen]
    if len(left) and not len(rows) and len(np.unique(given.classes)) == 1:
        rows = _least_represented(kernels, np.unique(given.rows))
    return LabelledRows(rows, left[: len(rows)], np.ones(len(rows)))


def _least_represented(kernels: KernelSum, labelled: IntArray) -> IntArray:
    """The row whose mean kernel with all rows most exceeds that with labelled rows; none if all rows are labelled.

    This is the maximum of the witness function of the maximum mean discrepancy: a region with many rows and few labels.
    """
    if len(labelled) == kernels.n_rows:
        return np.empty(0, dtype=np.int64)
    scores = np.zeros(kernels.n_rows)
    for rows, sign in ((np.arange(kernels.n_rows), 1.0), (labelled, -1.0)):
        some = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _MOST_COMPARED)).astype(np.int64))]
        scores += kernels.product(kernels.prior, some, np.full((len(some), 1), sign / len(some)))[:, 0]
    scores[labelled] = -np.inf
    return np.array([scores.argmax()])


def _doubtful_pairs(constraints: Constraints, closed: Closure) -> tuple[IntArray, npt.NDArray[np.bool_], FloatArray]:
    """Distinct doubtful pairs that no certain pair decides, whether each is a must-link, and the confidences."""
    found, sure = [], []
    for pairs, confidence in (
        (constraints.must_link, constraints.must_link_confidence),
        (constraints.cannot_link, constraints.cannot_link_confidence),
    ):
        doubtful = confidence < 1
        stated = distinct_pairs(pairs[doubtful], confidence[doubtful])
        undecided = ~_decided(closed, *closed.component_of[stated.pairs].T)
        found.append(stated.pairs[undecided])
        sure.append(confidence[doubtful][stated.best[undecided]])
    return np.concatenate(found), np.repeat([True, False], [len(some) for some in found]), np.concatenate(sure)


def soft_pair_potentials(constraints: Constraints, closed: Closure, penalty: float) -> tuple[IntArray, Any] | None:
    """Rows in pairs of confidence below 1, and pair potentials: positive for must-links, negative for cannot-links."""
    ends, together, confidence = _doubtful_pairs(constraints, closed)
    if not len(ends):
        return None
    prices = np.where(together, penalty, -penalty) * confidence
    rows, places = np.unique(ends, return_inverse=True)
    one, two = places.reshape(-1, 2).T
    potentials = sparse.csr_array((prices, (one, two)), shape=(len(rows), len(rows)))
    return rows, potentials + potentials.T


def _decided(closed: Closure, one: IntArray, two: IntArray) -> npt.NDArray[np.bool_]:
    """Whether components are known to be the same, or to differ."""
    graph, n = closed.graph, closed.n_components
    edges = np.repeat(np.arange(n), np.diff(graph.edge_ptr)) * n + graph.edges
    return (one == two) | np.isin(one * n + two, edges) | graph.share_a_clique(one, two)


def mean_field(probabilities: FloatArray, rows: IntArray, potentials: Any) -> FloatArray:
    """Mean-field probabilities of a Markov random field with pair potentials, starting from the unary probabilities.

    A random half of the rows is updated at a time, because simultaneous updates of a pair can oscillate.
    """
    unary = np.log(probabilities[rows])
    now = probabilities[rows]
    halves = np.random.default_rng(0)
    for _ in range(_MEAN_FIELD_UPDATES):
        moving = halves.random(len(rows)) < 0.5
        scores = (unary + potentials @ now)[moving]
        scores -= scores.max(axis=1, keepdims=True)
        now[moving] = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    out = probabilities.copy()
    out[rows] = now
    return out


def hard_assignment(
    constraints: Constraints,
    closed: Closure,
    blocks: IntArray,
    fixed: npt.NDArray[np.int32],
    probabilities: FloatArray,
    work_limit: int,
) -> IntArray:
    """The most probable cluster of each component, or a labelling without violations if that violates a cannot-link."""
    place = np.full(closed.n_components, -1)
    place[blocks] = np.arange(len(blocks))
    of_row = place[closed.component_of]
    rows = np.flatnonzero(of_row >= 0)
    member = sparse.csr_array((np.ones(len(rows)), (of_row[rows], rows)), shape=(len(blocks), len(probabilities)))
    scores = np.asarray(member @ np.log(np.maximum(probabilities, np.finfo(np.float64).tiny)))
    return assigned(constraints, closed, blocks, fixed, scores, work_limit)


def assigned(
    constraints: Constraints,
    closed: Closure,
    blocks: IntArray,
    fixed: npt.NDArray[np.int32],
    scores: FloatArray,
    work_limit: int,
) -> IntArray:
    """The cluster with the best score for each component, or a labelling without violations."""
    best = np.where(fixed >= 0, fixed, scores.argmax(axis=1))
    graph = closed.graph.part(blocks)
    if not _clashes(graph, best):
        return best
    moved = repaired(graph, best, fixed, scores)
    if not _clashes(graph, moved):
        return moved
    wishes = np.argsort(-scores, axis=1, kind="stable").astype(np.int32)
    found = require_coloring(
        constraints, closed, blocks, scores.shape[1], fixed=fixed, preference=wishes, work_limit=work_limit
    )
    return found.astype(np.int64)


def repaired(graph: Any, labels: IntArray, fixed: npt.NDArray[np.int32], scores: FloatArray) -> IntArray:
    """Move components that clash to other clusters at the lowest loss of score, with a growing price of a clash.

    A random half of them moves at a time, because two components that clash would move together otherwise. Clashes may
    be left.
    """
    n = graph.n_vertices
    source = np.repeat(np.arange(n), np.diff(graph.edge_ptr))
    apart = sparse.csr_array((np.ones(len(source)), (source, graph.edges)), shape=(n, n))
    n_cliques = len(graph.member_ptr) - 1
    clique_of = np.repeat(np.arange(n_cliques), np.diff(graph.member_ptr))
    member = sparse.csr_array((np.ones(len(clique_of)), (clique_of, graph.members)), shape=(n_cliques, n))
    n_memberships = np.bincount(graph.members, minlength=n)[:, None]
    labels, halves, each = labels.copy(), np.random.default_rng(0), np.arange(n)
    for step in range(_REPAIR_STEPS):
        placed = np.eye(scores.shape[1])[labels]
        clashes = apart @ placed + member.T @ (member @ placed) - n_memberships * placed
        movable = (clashes[each, labels] > 0) & (fixed < 0)
        if not movable.any():
            break
        wanted = (scores - 2.0 ** (step // _REPAIR_DOUBLING) * clashes).argmax(axis=1)
        moving = movable & (halves.random(n) < 0.5)
        labels[moving] = wanted[moving]
    return labels


def _clashes(graph: Any, labels: IntArray) -> bool:
    """Whether two vertices that must differ share a label."""
    source = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
    if (labels[source] == labels[graph.edges]).any():
        return True
    clique_of = np.repeat(np.arange(len(graph.member_ptr) - 1), np.diff(graph.member_ptr))
    keys = clique_of * (labels.max(initial=0) + 1) + labels[graph.members]
    return len(np.unique(keys)) < len(keys)
