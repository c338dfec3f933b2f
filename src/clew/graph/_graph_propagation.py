"""What is known about a few rows spreads over a graph of neighbours and an ensemble of base partitions.

Spreading over graphs: Zhou et al. 2004 (`zhou2004`). The blend with base partitions is clew's own.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from clew._base import Capabilities, ConstrainedClusterer
from clew._validation import RANDOM_STATE, Allowed, check_rows, integer, number
from clew.constraints import Closure, Constraints
from clew.constraints._feasibility import proof_sentence, unknown_sentence
from clew.exceptions import InfeasibleConstraintsError, WorkLimitError
from clew.graph._landscape import Landscape, ground, survey
from clew.graph._spreading import Sources, initial_trust, joined, learned_trust, spread
from clew.partitional._seeding import cluster_labels
from clew.solvers.coloring import WORK_LIMIT, color

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Rounds in which groups of rows find their clusters and teach the others; few change after the second.
_MOST_ROUNDS = 4
# Rounds in which doubtful pairs pull at each other.
_PULLS = 40


class GraphPropagation(ConstrainedClusterer):
    r"""Spread what is known about a few rows over a graph of neighbours.

    Groups of must-linked rows and rows of known classes are sources; all other rows get probabilities from how alike
    they are to sources: connected in the graph of nearest neighbours, near, alike in their columns, or together in
    base partitions (k-means, spectral, Ward, two mixtures). How much each of these counts is learnt from the sources
    themselves. Clusters may have any shape; a handful of known rows per cluster is enough. Without knowledge the result
    is the base partition that agrees best with the others.

    Parameters
    ----------
    n_clusters : int, default=8
        At most so many clusters.
    n_neighbors : int, default=10
        Neighbours of a row in the graph.
    penalty : float, default=3.0
        Price of a broken pair with a confidence c below 1 is ``penalty * c``, in units of log-probability.
    work_limit : int
        Most steps of the search for a labelling that satisfies everything; it counts work, not seconds.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    probabilities_ : ndarray of shape (n_samples, n_clusters)
        How likely each row belongs to each cluster, before hard constraints decide.
    cluster_labels_ : ndarray of shape (n_clusters,)
        The label that stands for each column of `probabilities_`.
    cluster_sizes_ : ndarray of shape (n_clusters,)
    trust_ : ndarray of shape (n_ways,)
        Weights of the graph, of distance, of the columns, and of each base partition.
    fit_rows_ : array or CSR matrix of shape (n_samples, n_features)
        The rows that were fitted; `predict` looks up the nearest.
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        Only pairs with a confidence below 1 can be among them.

    Notes
    -----
    Constraints: labels, groups and pairs with confidence 1 are hard, entailed ones included; pairs below are priced.
    With sources s of class :math:`z_s`, :math:`K = \sum_w \lambda_w K_w` over the ways in which rows are alike and
    noise :math:`\sigma^2`,

    .. math:: P(z_i = c) \propto \Big[ \tfrac1C + K_{i s} (K_{s s} + \sigma^2 I)^{-1} (Y_s - \tfrac1C) \Big]_+,

    where :math:`\lambda` and :math:`\sigma^2` maximise the evidence under a log-normal prior. The kernel of the graph
    is :math:`(I - 0.99 S)^{-1}`, S the normalised graph, by its 100 leading directions (50 beyond 5,000 rows), rows
    brought to norm 1. Base partitions are trusted beforehand as they agree with each other and foresee what is known.
    A cluster nobody knows anything about is stood for by the prototype of a base cluster without a
    source. Time O(n m (d + 100)) for m ≤ 600 sources, beside the neighbour search, the eigenvectors and the base
    partitions; memory O(n (d + 100)). Beyond 20,000 rows neighbours are searched in nearby cells only, beyond 2,000
    rows base partitions are learnt from a sample.

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
        labels="hard", must_link="hard", cannot_link="hard", sparse=True, predicts=True, prices_doubt=True
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "n_neighbors": integer(1),
        "penalty": number(0),
        "work_limit": integer(0),
        "random_state": RANDOM_STATE,
    }

    n_clusters: int

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
        landscape = survey(ground(X, self.n_neighbors, seed), self.n_clusters, seed)
        landscape = landscape.judged(*_known_pairs(constraints))
        found = graph_propagation(landscape, constraints, clusters, penalty=self.penalty, work_limit=self.work_limit)
        self.probabilities_, self.trust_ = found.probabilities, found.trust
        self.cluster_labels_ = clusters
        self.cluster_sizes_ = np.bincount(found.labels, minlength=self.n_clusters)
        self.fit_rows_ = X
        return clusters[found.labels]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The label of the nearest row that was fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False, accept_sparse=True)
        nearest = NearestNeighbors(n_neighbors=1).fit(self.fit_rows_).kneighbors(rows, return_distance=False)
        return self.labels_[nearest[:, 0]]


class Spread(NamedTuple):
    """What `graph_propagation` finds: clusters by number, probabilities, and weights of the ways of being alike."""

    labels: IntArray
    probabilities: FloatArray
    trust: FloatArray


def graph_propagation(
    landscape: Landscape, constraints: Constraints, clusters: IntArray, *, penalty: float, work_limit: int = WORK_LIMIT
) -> Spread:
    """Spread from what is known, round by round: groups without a cluster find one and become sources themselves."""
    certain = constraints.at_least(1.0)
    closed = certain.closure()
    known = anchors(closed, clusters)
    blocks = np.flatnonzero((closed.sizes > 1) | closed.tied | (known >= 0))
    pull = doubtful_pull(constraints, closed, penalty)
    trust = initial_trust(landscape)
    if not len(blocks) and pull is None:
        labels = landscape.partitions[trust.partition]
        return Spread(labels, np.eye(len(clusters))[labels], trust.weights)
    given = _members(closed, known)
    if (known >= 0).any():
        trust = learned_trust(landscape, given)
    waiting = unseen(landscape, given, trust.partition, len(clusters))
    fixed = known[blocks].astype(np.int32)
    placed = known
    for _ in range(_MOST_ROUNDS):
        members = _members(closed, placed)
        trust = learned_trust(landscape, members)
        chances = spread(landscape, joined(members, waiting), trust, len(clusters))
        if pull is not None:
            chances = pulled(chances, *pull)
        found = assigned(certain, closed, blocks, fixed, chances, work_limit)
        before, placed = placed, known.copy()
        groups = closed.sizes[blocks] > 1
        placed[blocks[groups]] = found[groups]
        if (before == placed).all():
            break
    labels = chances.argmax(axis=1)
    of_component = np.full(closed.n_components, -1)
    of_component[blocks] = found
    decided = of_component[closed.component_of]
    return Spread(np.where(decided >= 0, decided, labels), chances, trust.weights)


def _known_pairs(constraints: Constraints) -> tuple[IntArray, npt.NDArray[np.bool_], FloatArray]:
    """Pairs, which of them are together, and with what confidence: as few as say all, so that repeats do not count.

    Certain ones tie the rows of a component to its first, and hold the first rows of two components apart.
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


def anchors(closed: Closure, clusters: IntArray) -> IntArray:
    """The cluster of components that define one, -1 for the others: known classes, then those that differ from all.

    The largest component comes first; as long as there are clusters left, the largest that is known to differ from all
    that were chosen is next.
    """
    found = np.full(closed.n_components, -1)
    named = np.flatnonzero(closed.labels >= 0)
    places = np.argsort(clusters, kind="stable")
    found[named] = places[np.searchsorted(clusters, closed.labels[named], sorter=places)]
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


def _members(closed: Closure, cluster_of: IntArray) -> Sources:
    classes = cluster_of[closed.component_of]
    rows = np.flatnonzero(classes >= 0)
    return Sources(rows, classes[rows], np.ones(len(rows)))


def unseen(landscape: Landscape, given: Sources, partition: int, n_clusters: int) -> Sources:
    """Prototypes of base clusters in which nothing is known, largest first, for the classes that have no source."""
    labels = landscape.partitions[partition]
    sizes = np.bincount(labels)
    sizes[labels[given.rows]] = 0
    left = np.setdiff1d(np.arange(n_clusters), given.classes)
    chosen = np.argsort(-sizes, kind="stable")[: len(left)]
    chosen = chosen[sizes[chosen] > 0]
    return Sources(landscape.prototypes(partition)[chosen], left[: len(chosen)], np.ones(len(chosen)))


def _doubtful_pairs(constraints: Constraints, closed: Closure) -> tuple[IntArray, npt.NDArray[np.bool_], FloatArray]:
    """Pairs that are not certain and not decided by what is: each once, whether together, at its highest confidence."""
    found, sure = [], []
    for pairs, confidence in (
        (constraints.must_link, constraints.must_link_confidence),
        (constraints.cannot_link, constraints.cannot_link_confidence),
    ):
        doubtful = confidence < 1
        ends = np.sort(pairs[doubtful], axis=1)
        order = np.lexsort((-confidence[doubtful], ends[:, 1], ends[:, 0]))  # the surest of repeated pairs comes first
        ends, first = np.unique(ends[order], axis=0, return_index=True)
        undecided = ~_decided(closed, *closed.component_of[ends].T)
        found.append(ends[undecided])
        sure.append(confidence[doubtful][order][first][undecided])
    return np.concatenate(found), np.repeat([True, False], [len(some) for some in found]), np.concatenate(sure)


def doubtful_pull(constraints: Constraints, closed: Closure, penalty: float) -> tuple[IntArray, Any] | None:
    """Rows of pairs that are not certain, and the price of each pair: positive together, negative apart."""
    ends, together, confidence = _doubtful_pairs(constraints, closed)
    if not len(ends):
        return None
    prices = np.where(together, penalty, -penalty) * confidence
    rows, places = np.unique(ends, return_inverse=True)
    one, two = places.reshape(-1, 2).T
    pull = sparse.csr_array((prices, (one, two)), shape=(len(rows), len(rows)))
    return rows, pull + pull.T


def _decided(closed: Closure, one: IntArray, two: IntArray) -> npt.NDArray[np.bool_]:
    """Whether components are known to be the same, or to differ."""
    graph, n = closed.graph, closed.n_components
    edges = np.repeat(np.arange(n), np.diff(graph.edge_ptr)) * n + graph.edges
    return (one == two) | np.isin(one * n + two, edges) | graph.share_a_clique(one, two)


def pulled(chances: FloatArray, rows: IntArray, pull: Any) -> FloatArray:
    """Probabilities after pairs have pulled at each other: a mean field, started from the probabilities.

    A random half of the rows moves at a time: two rows that moved at once would swap places for ever.
    """
    alone = np.log(chances[rows])
    now = chances[rows]
    halves = np.random.default_rng(0)
    for _ in range(_PULLS):
        moving = halves.random(len(rows)) < 0.5
        scores = (alone + pull @ now)[moving]
        scores -= scores.max(axis=1, keepdims=True)
        now[moving] = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    out = chances.copy()
    out[rows] = now
    return out


def assigned(
    constraints: Constraints,
    closed: Closure,
    blocks: IntArray,
    fixed: npt.NDArray[np.int32],
    chances: FloatArray,
    work_limit: int,
) -> IntArray:
    """The likeliest cluster of each block; where that breaks a cannot-link, a labelling that breaks none."""
    n_clusters = chances.shape[1]
    place = np.full(closed.n_components, -1)
    place[blocks] = np.arange(len(blocks))
    of_row = place[closed.component_of]
    rows = np.flatnonzero(of_row >= 0)
    member = sparse.csr_array((np.ones(len(rows)), (of_row[rows], rows)), shape=(len(blocks), len(chances)))
    scores = np.asarray(member @ np.log(np.maximum(chances, np.finfo(np.float64).tiny)))
    best = np.where(fixed >= 0, fixed, scores.argmax(axis=1))
    graph = closed.graph.part(blocks)
    if not _clashes(graph, best):
        return best
    wishes = np.argsort(-scores, axis=1, kind="stable").astype(np.int32)
    found = color(graph, n_clusters, fixed=fixed, preference=wishes, work_limit=work_limit)
    if found.colors is not None:
        return found.colors.astype(np.int64)
    if found.proof is None:
        raise WorkLimitError(unknown_sentence(n_clusters, work_limit))
    found = found._replace(proof=blocks[found.proof])
    message = proof_sentence(constraints, closed, found, n_clusters)
    raise InfeasibleConstraintsError(message, np.sort(closed.first_row[found.proof]))


def _clashes(graph: Any, labels: IntArray) -> bool:
    """Whether two vertices that must differ share a label."""
    source = np.repeat(np.arange(graph.n_vertices), np.diff(graph.edge_ptr))
    if (labels[source] == labels[graph.edges]).any():
        return True
    clique_of = np.repeat(np.arange(len(graph.member_ptr) - 1), np.diff(graph.member_ptr))
    keys = clique_of * (labels.max(initial=0) + 1) + labels[graph.members]
    return len(np.unique(keys)) < len(keys)
