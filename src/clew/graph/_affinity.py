"""Affinity graphs: change affinities by constraints, and normalise the graph without expanding cliques.

Example: four rows have the affinities 0.5 between 0 and 1, and 0.2 between 2 and 3. With the must-link 0-2 and the
cannot-link 2-3, `edited` returns the affinity 0.5 between 0 and 1, the clique {0, 2}, and the affinity of pairs in
cliques, 0.5, which is the largest of the graph. Rows 2 and 3 have no affinity any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew.constraints import Constraints
from clew.graph._eigenvectors import solver_with_factor
from clew.partitional._ties import are_apart, lone_pairs

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Affinity = Any  # a CSR array or an ndarray: symmetric, with an empty diagonal


def as_affinity(X: Any) -> Affinity:
    """Copy a checked affinity matrix, make it exactly symmetric, and clear its diagonal."""
    if not sparse.issparse(X):
        graph = (X + X.T) / 2
        np.fill_diagonal(graph, 0)
        return graph
    graph = sparse.csr_array((X + X.T) / 2)
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


def edited(graph: Affinity, constraints: Constraints) -> tuple[Affinity, sparse.csr_array, float]:
    """Change affinities by constraints: return the other affinities, the cliques of must-linked rows, and their weight.

    The cliques are a sparse matrix of shape (rows, cliques). The affinity of two rows is the sum of both parts: the
    largest affinity of the graph for must-linked rows, and 0 for cannot-linked rows. A pair with confidence c below 1
    moves the affinity towards this value by the share c of the difference.
    """
    certain = constraints.at_least(1.0)
    closed = certain.closure()
    component_of = closed.component_of
    is_named = (closed.sizes > 1) | closed.tied
    n_rows = graph.shape[0]
    top = float(graph.max()) if min(graph.shape) else 0.0
    joined = closed.sizes > 1
    inside = np.flatnonzero(joined[component_of])
    numbers = (np.cumsum(joined) - 1)[component_of[inside]]
    cliques = sparse.csr_array((np.ones(len(inside)), (inside, numbers)), shape=(n_rows, int(joined.sum())))

    rows, columns = _entries(graph, is_named[component_of])
    one, two = component_of[rows], component_of[columns]
    decided = (one == two) | are_apart(closed, one, two)
    left = _without(graph, rows[decided], columns[decided])
    pairs, prices = lone_pairs(constraints, closed)
    if len(pairs):
        first, second = pairs.T
        now = np.asarray(left[first, second]).ravel() + top * (component_of[first] == component_of[second])
        change = np.where(prices < 0, prices * (now - top), -prices * now)
        # A pair may be both must-linked and cannot-linked. Affinities are never negative.
        keys, place = np.unique(np.sort(pairs, axis=1) @ [n_rows, 1], return_inverse=True)
        at = np.zeros(len(keys))
        at[place] = now
        change = np.maximum(np.bincount(place, change), -at)
        first, second = np.divmod(keys, n_rows)
        half = sparse.csr_array((change, (first, second)), shape=graph.shape)
        left = left + (half + half.T)
        left = left if sparse.issparse(left) else np.asarray(left)
    return left, cliques, top


def _entries(graph: Affinity, is_named: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Rows and columns of the entries between rows that constraints name."""
    if sparse.issparse(graph):
        rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
        chosen = is_named[rows] & is_named[graph.indices]
        return rows[chosen], graph.indices[chosen].astype(np.int64)
    named = np.flatnonzero(is_named)
    return np.repeat(named, len(named)), np.tile(named, len(named))


def _without(graph: Affinity, rows: IntArray, columns: IntArray) -> Affinity:
    """A copy of the graph without these entries."""
    if not sparse.issparse(graph):
        left = np.array(graph)
        left[rows, columns] = 0
        return left
    keys = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr)) * graph.shape[0] + graph.indices
    data = np.where(np.isin(keys, rows * graph.shape[0] + columns), 0, graph.data)
    left = sparse.csr_array((data, graph.indices, graph.indptr), shape=graph.shape, copy=True)
    left.eliminate_zeros()
    return left


@dataclass(frozen=True)
class NormalisedGraph:
    """The matrix D^-1/2 A D^-1/2, as a stored part plus F F^T, where F has a column for each clique.

    Attributes
    ----------
    stored : sparse matrix or ndarray of shape (n_rows, n_rows)
    factor : sparse matrix of shape (n_rows, n_cliques)
    inverse_roots : ndarray of shape (n_rows,)
        Entries of D^-1/2; 1 for a row without affinities.
    volume : float
        Sum of all affinities.
    """

    stored: Any
    factor: sparse.csr_array
    inverse_roots: FloatArray
    volume: float

    @classmethod
    def of(cls, graph: Affinity, cliques: sparse.csr_array | None = None, weight: float = 0.0) -> NormalisedGraph:
        """Normalise a graph, after adding `weight` to all pairs within each clique."""
        n_rows = graph.shape[0]
        cliques = sparse.csr_array((n_rows, 0)) if cliques is None else cliques
        others = np.asarray(cliques @ (np.asarray(cliques.sum(axis=0)).ravel() - 1)).ravel()
        degree = np.asarray(graph.sum(axis=1), dtype=np.float64).ravel() + weight * others
        inverse_roots = 1 / np.sqrt(np.where(degree > 0, degree, 1))
        is_member = np.asarray(cliques.sum(axis=1)).ravel()
        scale = sparse.diags_array(inverse_roots)
        diagonal = weight * is_member * inverse_roots**2
        if sparse.issparse(graph):
            stored = sparse.csr_array(scale @ graph @ scale - sparse.diags_array(diagonal))
        else:
            stored = graph * (inverse_roots[:, None] * inverse_roots)
            stored[np.arange(n_rows), np.arange(n_rows)] -= diagonal
        return cls(stored, sparse.csr_array(np.sqrt(weight) * (scale @ cliques)), inverse_roots, float(degree.sum()))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return self.stored.shape

    @property
    def trivial(self) -> FloatArray:
        """The unit eigenvector for eigenvalue 1 that becomes constant when divided by D^1/2."""
        roots = 1 / self.inverse_roots
        return roots / np.linalg.norm(roots)

    def __matmul__(self, block: npt.NDArray[Any]) -> npt.NDArray[Any]:
        found = self.stored @ block
        if self.factor.shape[1]:
            found += self.factor @ (self.factor.T @ block)
        return found

    def astype(self, dtype: Any) -> NormalisedGraph:
        """Convert the matrix to another precision."""
        return NormalisedGraph(self.stored.astype(dtype), self.factor.astype(dtype), self.inverse_roots, self.volume)

    def factored(self, shift: float) -> Callable[[FloatArray], FloatArray]:
        """Return a function that solves linear systems with this matrix minus `shift` times the identity."""
        return solver_with_factor(sparse.csr_array(self.stored), self.factor, shift)

    def toarray(self) -> FloatArray:
        """The full matrix as a dense array."""
        stored = self.stored.toarray() if sparse.issparse(self.stored) else self.stored
        return np.asarray(stored + (self.factor @ self.factor.T).toarray(), dtype=np.float64)
