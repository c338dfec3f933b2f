"""Correlation clustering: minimise the disagreements with signed weights of pairs, under hard constraints.

Bansal et al. 2004 (`bansal2004`); Law et al. 2004 (`law2004`), section 1, names it among the uses of pairwise
constraints.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from clew._base import Capabilities, ConstrainedClusterer
from clew._persistence import Learned
from clew._validation import RANDOM_STATE, Allowed, at_most, integer, number, words
from clew.constraints import Constraints, label_clusters
from clew.graph._signed_graph import (
    SignedGraph,
    cost_of_parts,
    descended,
    restricted,
    signed_graph,
    triangle_bounds,
)
from clew.solvers.correlation import correlate

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# A start from the best clustering so far first takes this share of the units out of their clusters.
_KICK = 0.3
# One in this many further starts begins with single units. The others begin from the best clustering so far.
_FRESH = 4
# n_init="auto" makes starts until they have visited this many entries (a few seconds), but at least 5 and at most 100.
_SEARCH_WORK, _FEWEST_STARTS, _MOST_STARTS = 3_000_000, 5, 100
# HiGHS solves or bounds at most this many parts, in a few seconds. Parts with the largest gap come first.
_MOST_PROGRAMS = 200
# Parts of up to this many units are bounded by the linear relaxation.
_LINEAR_SIZE = 30


class CorrelationClustering(ConstrainedClusterer):
    r"""Finds the clusters that disagree least with signed weights of pairs, under hard constraints.

    A positive weight says that two rows belong together, and a negative one that they do not. Its absolute value says
    how sure that is. A clustering pays for each positive pair that it separates and each negative pair that it keeps
    together. The number of clusters follows from the weights. Use it for scored pairs, as in entity resolution. If they
    are in a table, use `cluster_edges`.

    Parameters
    ----------
    missing_weight : float, default=0.0
        Weight of pairs without an entry, or with an entry of 0. A negative value keeps a chain of pairs from joining
        many rows whose other pairs have no weight.
    n_init : int or "auto", default="auto"
        Number of starts of the local search in each part that the lower bound does not prove optimal. "auto" is 100 for
        small graphs, and fewer, down to 5, for larger ones.
    exact_size : int, default=12
        Parts of up to this many units are solved exactly by HiGHS, unless the lower bound already proves the local
        search optimal. With 0, the exact solver is not used.
    min_confidence : float, default=0
        Constraints with a lower confidence are left out. All others are hard.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    n_clusters_ : int
    objective_ : float
        The disagreements J below.
    lower_bound_ : float
        No clustering that satisfies the constraints has a smaller J. If it equals `objective_`, the clustering is
        optimal.
    cluster_labels_, cluster_sizes_ : ndarray of shape (n_clusters_,)
    violated_must_link_, violated_cannot_link_ : ndarray of shape (0, 2)
        Always empty.

    Notes
    -----
    Constraints: all hard, entailed ones included. With weights :math:`w_{ij}` of all pairs i < j,

    .. math:: J = \sum_{w_{ij} > 0,\, z_i \neq z_j} w_{ij} - \sum_{w_{ij} < 0,\, z_i = z_j} w_{ij}.

    Must-linked rows form one unit. Units that are not connected by positive weights are never together, so each
    connected part is solved separately. The local search moves a unit to another cluster or to a new one, and merges
    clusters, until nothing lowers J. Further starts begin with single units, or from the best clustering with some
    units taken out. Each part keeps its best clustering. The lower bound comes from a packing of bad triangles, which
    have two positive pairs and a third pair that is negative or cannot-linked. Parts of up to 30 units get the bound of
    the linear relaxation if it is needed. HiGHS solves or bounds at most 200 parts, those with the largest gap first.

    Time O(t (m + n)) for t passes over m weights; memory O(m + n), including cannot-groups. The diagonal of X is
    ignored.

    References
    ----------
    .. [1] N. Bansal, A. Blum, S. Chawla (2004). "Correlation clustering." Machine Learning 56.
    .. [2] M. H. Law, A. Topchy, A. K. Jain (2004). "Clustering with soft and group constraints." Section 1.

    Examples
    --------
    >>> import numpy as np
    >>> from clew import CorrelationClustering
    >>> X = np.array([[0, 3, -1, 0], [3, 0, 3, 0], [-1, 3, 0, 1], [0, 0, 1, 0]])
    >>> model = CorrelationClustering(random_state=0).fit(X)
    >>> model.labels_, model.objective_
    (array([0, 0, 0, 0]), 1.0)
    >>> model.fit(X, constraints={"cannot_link": [(0, 3)]}).labels_
    array([0, 0, 0, 1])
    """

    _capabilities = Capabilities(
        labels="hard",
        must_link="hard",
        cannot_link="hard",
        sparse=True,
        pairwise="signed graph",
        any_shape=True,
        needs_n_clusters=False,
    )
    _parameters: ClassVar[dict[str, Allowed]] = {
        "missing_weight": at_most(0),
        "n_init": words("auto") | integer(1),
        "exact_size": integer(0),
        "min_confidence": number(0, 1),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        "n_clusters_": Learned("integer", low=1, counts="clusters"),
        **ConstrainedClusterer._learned_attributes,
        "labels_": Learned("label", (("columns",),), low=0),
        "objective_": Learned("real", low=0),
        "lower_bound_": Learned("real", low=0),
    }

    def __init__(
        self,
        missing_weight: float = 0.0,
        *,
        n_init: int | str = "auto",
        exact_size: int = 12,
        min_confidence: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.missing_weight = missing_weight
        self.n_init = n_init
        self.exact_size = exact_size
        self.min_confidence = min_confidence
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[CorrelationClustering]:
        return [cls(random_state=0), cls(-2.0, exact_size=0, random_state=0)]

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        closed = constraints.closure()
        graph = signed_graph(X, closed, -float(self.missing_weight))
        found = correlation_clustering(graph, self.n_init, self.exact_size, rng)
        clusters = np.unique(found.labels, return_inverse=True)[1]
        self.n_clusters_ = int(clusters.max()) + 1
        self.objective_, self.lower_bound_ = found.cost, found.bound
        self.cluster_labels_ = label_clusters(clusters, closed, self.n_clusters_)
        self.cluster_sizes_ = np.bincount(clusters[closed.component_of])
        return self.cluster_labels_[clusters[closed.component_of]]


class SignedClusters(NamedTuple):
    """Result of `correlation_clustering`: the first unit of each unit's cluster, the cost, and a lower bound on it."""

    labels: IntArray
    cost: float
    bound: float


def correlation_clustering(
    graph: SignedGraph, n_init: int | str, exact_size: int, rng: np.random.Generator
) -> SignedClusters:
    """Search each part of the graph from several starts, until a lower bound proves its clustering optimal."""
    every = np.arange(graph.n_units)
    graph = restricted(graph, every)
    labels = _named_by_first(descended(graph, every, every))
    costs = cost_of_parts(graph, labels)
    bounds = np.minimum(triangle_bounds(graph), costs)
    for start in range(1, _n_starts(graph, _is_open(graph, costs, bounds), n_init)):
        units = np.flatnonzero(_is_open(graph, costs, bounds)[graph.part_of])
        if not len(units):
            break
        rest = restricted(graph, units)
        begin = np.arange(len(units)) if start % _FRESH == 1 else _kicked(labels[units], rng)
        found = descended(rest, begin, rng.permutation(len(units)))
        parts = np.unique(graph.part_of[units])
        found_costs = cost_of_parts(rest, found)
        better = found_costs < costs[parts] - graph.tolerance
        changed = better[rest.part_of]
        labels[units[changed]] = units[_named_by_first(found)][changed]
        costs[parts[better]] = found_costs[better]
    _prove(graph, exact_size, labels, costs, bounds)
    costs = np.where(_is_open(graph, costs, bounds), costs, bounds)  # costs of proven parts differ only by rounding
    cost = float(costs.sum()) + graph.constant
    return SignedClusters(labels, max(cost, 0.0), max(min(float(bounds.sum()) + graph.constant, cost), 0.0))


def _n_starts(graph: SignedGraph, is_open: npt.NDArray[np.bool_], n_init: int | str) -> int:
    if isinstance(n_init, int | np.integer):
        return int(n_init)
    n_entries = int(np.count_nonzero(is_open[graph.part_of[graph.source]]))
    return int(np.clip(_SEARCH_WORK // max(n_entries, 1), _FEWEST_STARTS, _MOST_STARTS))


def _named_by_first(clusters: IntArray) -> IntArray:
    """The first unit of each unit's cluster."""
    _, first, place = np.unique(clusters, return_index=True, return_inverse=True)
    return first[place].astype(np.int64)


def _is_open(graph: SignedGraph, costs: FloatArray, bounds: FloatArray) -> npt.NDArray[np.bool_]:
    """Which parts may have a better clustering than the one found."""
    return np.asarray(costs - bounds > graph.tolerance * np.bincount(graph.part_of, minlength=len(costs)))


def _kicked(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Take a random share of the units out of their clusters."""
    out = rng.random(len(labels)) < _KICK
    names = np.where(out, labels.max() + 1 + np.arange(len(labels)), labels)
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def _prove(graph: SignedGraph, exact_size: int, labels: IntArray, costs: FloatArray, bounds: FloatArray) -> None:
    """Solve small open parts exactly, and bound larger ones by the linear relaxation; updates the last three arrays."""
    sizes = np.bincount(graph.part_of, minlength=len(costs))
    is_small = sizes <= (max(exact_size, _LINEAR_SIZE) if exact_size else 0)
    open_parts = np.flatnonzero(_is_open(graph, costs, bounds) & is_small)
    chosen = open_parts[np.argsort(bounds[open_parts] - costs[open_parts], kind="stable")][:_MOST_PROGRAMS]
    every = np.flatnonzero(np.isin(graph.part_of, chosen))
    rest = restricted(graph, every)
    for place, part in enumerate(np.sort(chosen).tolist()):
        inside = np.flatnonzero(rest.part_of == place)
        problem, units = restricted(rest, inside), every[inside]
        solved = correlate(*_dense(problem), exact=sizes[part] <= exact_size)
        bounds[part] = max(bounds[part], min(solved.bound, costs[part]))
        if solved.labels is not None:
            labels[units] = units[solved.labels]
            costs[part] = bounds[part] = cost_of_parts(problem, solved.labels)[0]


def _dense(graph: SignedGraph) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The net weights of all pairs, and which pairs a cannot-link separates."""
    net = -graph.gap * np.outer(graph.rows, graph.rows)
    net[graph.source, graph.others] += graph.weights
    apart = np.zeros(net.shape, dtype=bool)
    for unit in range(graph.n_units):
        apart[unit, graph.apart.neighbours(unit)] = True
    return net, apart
