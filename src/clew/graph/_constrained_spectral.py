"""Spectral clustering under constraints, which change the affinities or the normalised cut and act in k-means.

Kamvar et al. 2003 (`kamvar2003`) change the affinities. Wang and Davidson 2010 (`wang2010`) constrain the cut. The
embedded rows are clustered by the solver of `COPKMeans` or of `PCKMeans`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import eigh

from clew._base import Capabilities, ConstrainedClusterer, quietly
from clew._persistence import Learned
from clew._validation import NONE, RANDOM_STATE, Allowed, integer, number, words
from clew.constraints import Constraints
from clew.exceptions import DataError
from clew.graph._affinity import Affinity, NormalisedGraph, as_affinity, edited
from clew.graph._eigenvectors import leading_eigenvectors
from clew.graph._kernels import unit_rows
from clew.graph._neighbours import neighbour_graph
from clew.partitional import COPKMeans, PCKMeans, SeededKMeans
from clew.partitional._ties import Ties, priced_ties

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Largest number of eigenvectors that the constrained cut combines: this many, or twice the number of clusters if that
# is more. The paper combines all. With hundreds of rows and few pairs, that finds cuts that isolate just the rows of
# the pairs.
_SMOOTH = 20
# Number of starts of k-means, and the largest number of rows without pairs, when embeddings are compared.
_COMPARED_STARTS, _COMPARED_ROWS = 3, 2_000
# Added to the eigenvalues of the Laplacian. Cuts of much less than this, such as those between connected components,
# then count as equal, and the satisfaction of the pairs decides between them.
_RIDGE = 1e-3
# An eigenvector whose cosine with the constant vector is at least this is the trivial one.
_TRIVIAL = 1 - 1e-6
# Eigenvalues below this share of the largest one are rounding errors of 0: pairs of few rows have a matrix of low rank.
_ZERO = 1e-9


class ConstrainedSpectral(ConstrainedClusterer):
    r"""Spectral clustering with constraints on the affinity graph, or on the normalised cut.

    Rows are embedded by eigenvectors of an affinity graph, and k-means clusters the embedded rows. Constraints act
    twice: on the embedding, which passes them on to nearby rows, and in k-means, where they are hard or soft. Clusters
    may have any shape. Use it when clusters are connected regions, and answers should move whole regions.

    Parameters
    ----------
    n_clusters : int, default=8
    affinity : {"nearest_neighbors", "precomputed"}, default="nearest_neighbors"
        "nearest_neighbors" builds the graph from the nearest neighbours of each row. With "precomputed", X is a
        symmetric matrix of affinities >= 0, dense or sparse. A missing entry of a sparse matrix is an affinity of 0.
    n_neighbors : int, default=10
        Number of neighbours of each row in the graph of nearest neighbours.
    embedding : {"affinity", "cut"}, default="affinity"
        How constraints act on the embedding. "affinity" [1]_ gives must-linked rows the largest affinity of the graph
        and cannot-linked rows none. "cut" [2]_ looks for cuts of the unchanged graph that satisfy a share of the pairs.
    n_components : int or "auto", default="auto"
        Number of eigenvectors. For "affinity" they are the embedding, and "auto" is `n_clusters`. For "cut" the
        embedding is a combination of them, and "auto" chooses their number (see Notes). With as many eigenvectors as
        rows, "cut" solves the same problem as the paper.
    threshold : float, default=0.3
        For "cut": how well a cut must satisfy the pairs, as a share of the largest possible satisfaction.
    penalty : float, "auto" or None, default=None
        None: every constraint holds, or `fit` raises an error. A number: constraints are soft, and a violated pair
        costs ``penalty * confidence`` in squared units of the embedding. "auto" is the mean squared distance of the
        embedded rows from their mean.
    n_init : int or "auto", default="auto"
        Number of starts of k-means, as in `PCKMeans`.
    min_confidence : float, default=0
        Pairs with a lower confidence are ignored.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; known classes keep their numbers.
    embedding_ : ndarray of shape (n_samples, n_dimensions)
        The embedded rows, which k-means clusters.
    inertia_ : float
        Sum of the squared distances of the embedded rows to the centres of their clusters.
    cluster_labels_, cluster_sizes_ : ndarray of shape (n_clusters,)
    violated_must_link_, violated_cannot_link_ : ndarray of shape (n_violated, 2)
        Always empty if `penalty` is None.

    Notes
    -----
    Constraints: hard if `penalty` is None, else soft. Entailed pairs are treated like given ones. With the affinities
    A, their row sums D, and :math:`\bar A = D^{-1/2} A D^{-1/2}`,

    - "affinity" sets :math:`A_{ij}` to the largest affinity for must-linked rows and to 0 for cannot-linked rows. A
      soft pair moves it by its confidence times the difference. The embedding consists of the leading eigenvectors
      of :math:`\bar A`, with rows scaled to length 1.
    - "cut" solves :math:`(L + \epsilon I) v = \lambda (\bar Q - \beta I) v` with :math:`L = I - \bar A` and
      :math:`\epsilon = 0.001`. Q is the confidence of a must-link, minus that of a cannot-link, and 0 elsewhere;
      :math:`\bar Q = D^{-1/2} Q D^{-1/2}`; and :math:`\beta` is `threshold` times the (k - 1)-th largest eigenvalue of
      :math:`\bar Q`. The k - 1 solutions with the smallest :math:`\lambda > 0` have the smallest cuts
      :math:`v^T (L + \epsilon I) v` relative to their satisfaction in excess of :math:`\beta`. They are the embedding
      :math:`D^{-1/2} v`, each times one minus its cut. v is a combination of the leading eigenvectors of
      :math:`\bar A`. More eigenvectors satisfy more pairs, but with few pairs they fit them by chance. "auto" compares
      the embedding without pairs, and cuts of k, 2 k, 4 k and at most 20 (or 2 k) eigenvectors. It takes the first one
      whose k-means clusters violate no more pairs than those of the best one plus one standard error.

    Without constraints, both are the spectral clustering of [3]_. Departs from [1]_: the graph is normalised as in
    [3]_, and k-means also uses the constraints. Departs from [2]_, which takes the solutions with the smallest cuts:
    here, cuts are small relative to their satisfaction, they are combinations of few eigenvectors, and the embedded
    rows are clustered by constrained k-means. Beyond 1,000 rows, eigenvectors are found by Chebyshev-filtered subspace
    iteration, followed by inverse iteration if many eigenvalues are close to each other. Time O(t (e + n m) m) for t
    products of e entries with m vectors, in addition to the neighbour search and k-means; memory O(e + n m). Cliques of
    must-linked rows are never expanded.

    References
    ----------
    .. [1] S. D. Kamvar, D. Klein, C. D. Manning (2003). "Spectral learning." IJCAI.
    .. [2] X. Wang, I. Davidson (2010). "Flexible constrained spectral clustering." KDD. Algorithms 1 and 2.
    .. [3] A. Ng, M. Jordan, Y. Weiss (2001). "On spectral clustering: analysis and an algorithm." NIPS.

    Examples
    --------
    >>> from clew import ConstrainedSpectral
    >>> model = ConstrainedSpectral(n_clusters=2, n_neighbors=2, random_state=0)
    >>> X = [[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]]
    >>> model.fit(X, constraints={"must_link": [(2, 3)], "cannot_link": [(0, 2)]}).labels_
    array([1, 1, 0, 0, 0, 0], dtype=int32)
    """

    _capabilities = Capabilities(labels="hard", must_link="hard", cannot_link="hard", sparse=True, any_shape=True)
    _parameters: ClassVar[dict[str, Allowed]] = {
        "n_clusters": integer(1),
        "affinity": words("nearest_neighbors", "precomputed"),
        "n_neighbors": integer(1),
        "embedding": words("affinity", "cut"),
        "n_components": words("auto") | integer(1),
        "threshold": number(0, 1),
        "penalty": NONE | words("auto") | number(0),
        "n_init": words("auto") | integer(1),
        "min_confidence": number(0, 1),
        "random_state": RANDOM_STATE,
    }
    _learned_attributes: ClassVar[dict[str, Learned]] = {
        **ConstrainedClusterer._learned_attributes,
        "embedding_": Learned("real", (("rows", None),)),
        "inertia_": Learned("real", low=0),
    }
    n_clusters: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: str = "nearest_neighbors",
        n_neighbors: int = 10,
        embedding: str = "affinity",
        n_components: int | str = "auto",
        threshold: float = 0.3,
        penalty: float | str | None = None,
        n_init: int | str = "auto",
        min_confidence: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.embedding = embedding
        self.n_components = n_components
        self.threshold = threshold
        self.penalty = penalty
        self.n_init = n_init
        self.min_confidence = min_confidence
        self.random_state = random_state

    @classmethod
    def _examples(cls) -> list[ConstrainedSpectral]:
        return [
            cls(n_clusters=3, n_neighbors=5, random_state=0),
            cls(n_clusters=3, embedding="cut", n_neighbors=5, penalty="auto", random_state=0),
            cls(n_clusters=3, affinity="precomputed", random_state=0),
        ]

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of this instance, which depend on its parameters."""
        is_matrix = self.affinity == "precomputed"
        found = replace(super().capabilities, pairwise="affinity" if is_matrix else None)
        return found if self.penalty is None else replace(found, labels="soft", must_link="soft", cannot_link="soft")

    def _fit(self, X: Any, constraints: Constraints, weights: FloatArray, rng: np.random.Generator) -> npt.NDArray[Any]:
        if self.penalty is None:
            constraints = _certain(constraints)
        graph = self._graph(X)
        if self.embedding == "cut":
            rows = cut_embedding(graph, constraints, self.n_clusters, self.n_components, self.threshold)
        else:
            rows = affinity_embedding(graph, constraints, self._n_vectors(self.n_clusters))
        model = (
            COPKMeans(self.n_clusters, n_init=self.n_init)
            if self.penalty is None
            else PCKMeans(self.n_clusters, penalty=self.penalty, n_init=self.n_init)
        )
        labels = model._fit(rows, constraints, weights, rng)
        self.embedding_, self.inertia_ = rows, model.inertia_
        self.cluster_labels_, self.cluster_sizes_ = model.cluster_labels_, model.cluster_sizes_
        return labels

    def _n_vectors(self, usual: int) -> int:
        return usual if isinstance(self.n_components, str) else self.n_components

    def _graph(self, X: Any) -> Affinity:
        if self.affinity == "nearest_neighbors":
            return neighbour_graph(X, self.n_neighbors)
        graph = as_affinity(X)
        if X.shape[0] > 1 and not (graph.data if sparse.issparse(graph) else graph).any():
            raise DataError(
                "The affinities have no edge: every entry off the diagonal is 0, so no rows are similar. Check how the "
                "matrix was made; a radius or a bandwidth may be too small."
            )
        return graph


def _certain(constraints: Constraints) -> Constraints:
    """Set all confidences to 1, as hard methods do."""
    sure = {f"{kind}_confidence": np.ones(len(getattr(constraints, kind))) for kind in ("must_link", "cannot_link")}
    return constraints._replace(**sure)


def affinity_embedding(graph: Affinity, constraints: Constraints, n_vectors: int) -> FloatArray:
    """Leading eigenvectors of the graph with changed affinities, with rows scaled to length 1."""
    normalised = NormalisedGraph.of(*edited(graph, constraints))
    return unit_rows(leading_eigenvectors(normalised, min(n_vectors, graph.shape[0]), accurate=True)[1])


def cut_embedding(
    graph: Affinity, constraints: Constraints, n_clusters: int, n_components: int | str, threshold: float
) -> FloatArray:
    """The smallest cuts that satisfy the pairs, as columns; the usual spectral embedding if there are no pairs."""
    linked, ties = priced_ties(constraints, 1.0, entailed=True)
    if not len(linked):
        return affinity_embedding(graph, constraints, n_clusters)
    most = max(_SMOOTH, 2 * n_clusters) if isinstance(n_components, str) else max(n_components, n_clusters)
    normalised = NormalisedGraph.of(graph)
    values, vectors = leading_eigenvectors(normalised, min(most, graph.shape[0]), accurate=True)
    scaled, trivial = vectors * normalised.inverse_roots[:, None], vectors.T @ normalised.trivial
    some = scaled[linked]
    satisfaction = -(some.T @ ties.product(some))

    def cuts_of(n: int) -> FloatArray:
        cuts, mixing = constrained_cuts(
            1 - values[:n], satisfaction[:n, :n], trivial[:n], max(n_clusters - 1, 1), threshold
        )
        return np.asarray(scaled[:, :n] @ (mixing * (1 - cuts)) * np.sqrt(normalised.volume))

    if not isinstance(n_components, str):
        return cuts_of(len(values))
    numbers = [n for n in (n_clusters, 2 * n_clusters, 4 * n_clusters) if n < len(values)]
    embeddings = [unit_rows(vectors[:, :n_clusters]), *(cuts_of(n) for n in (*numbers, len(values)))]
    return embeddings[simplest(embeddings, linked, ties, n_clusters)]


def simplest(embeddings: list[FloatArray], linked: IntArray, ties: Ties, n_clusters: int) -> int:
    """Position of the first embedding whose clusters satisfy the pairs about as well as those of any other.

    The clusters are those of k-means without constraints, and the tolerance is one standard error of the share of
    violated pairs, with as many independent pairs as `linked` rows can form. A sample represents the other rows.
    """
    n_rows = len(embeddings[0])
    others = np.linspace(0, n_rows - 1, min(n_rows, _COMPARED_ROWS)).astype(np.int64)
    compared = np.union1d(linked, others)
    places = np.searchsorted(compared, linked)
    everyone = np.ones((len(linked), 1))
    # Together, all rows violate the cannot-links and gain the must-links, whose number is the constant.
    total = 2 * ties.constant + float((everyone.T @ ties.product(everyone)).item()) / 2
    violated = []
    for rows in embeddings:
        with quietly():
            model = SeededKMeans(min(n_clusters, len(compared)), n_init=_COMPARED_STARTS, random_state=0)
            labels = model.fit(rows[compared]).labels_[places]
        together = (labels[:, None] == np.arange(n_clusters)).astype(np.float64)
        violated.append(ties.constant + float((together * ties.product(together)).sum()) / 2)
    shares, n_pairs = np.array(violated) / max(total, 1e-12), len(linked) / 2
    smoothed = (shares * n_pairs + 1) / (n_pairs + 2)
    return int(np.argmax(shares - shares.min() <= np.sqrt(smoothed * (1 - smoothed) / n_pairs)))


def constrained_cuts(
    losses: FloatArray, satisfaction: FloatArray, trivial: FloatArray, n_cuts: int, threshold: float
) -> tuple[FloatArray, FloatArray]:
    """Values and unit vectors of the best feasible cuts, in a basis of eigenvectors with eigenvalues `losses`.

    Solves diag(losses) v = lambda (satisfaction - beta I) v, and takes the smallest lambda > 0. If fewer than `n_cuts`
    solutions are feasible, basis vectors follow in order. `trivial` is the constant vector in this basis, which cuts
    nothing.
    """
    largest = np.linalg.eigvalsh(satisfaction)[::-1]
    attainable = float(largest[min(n_cuts, len(largest)) - 1])
    is_positive = attainable > _ZERO * np.abs(largest).max()
    beta = threshold * attainable if is_positive else attainable / max(threshold, 0.5)
    losses = np.maximum(losses, 0) + _RIDGE
    identity = np.eye(len(losses))
    # The inverse problem, (satisfaction - beta I) v = (1 / lambda) diag(losses) v, has a definite right-hand side.
    inverse, solutions = eigh(satisfaction - beta * identity, np.diag(losses))
    feasible = solutions[:, inverse > _ZERO * np.abs(inverse).max()][:, ::-1]
    found = np.column_stack([feasible / np.linalg.norm(feasible, axis=0), identity])
    found = found[:, np.abs(trivial @ found) < _TRIVIAL * np.linalg.norm(trivial)][:, :n_cuts]
    return np.einsum("ij,i,ij->j", found, losses, found), found
