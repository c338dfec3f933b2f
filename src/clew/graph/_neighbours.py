"""The weighted graph of nearest neighbours."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from clew._neighbours import nearest_neighbours

FloatArray = npt.NDArray[np.float64]


def neighbour_graph(X: FloatArray, n_neighbors: int) -> sparse.csr_array:
    r"""Build a symmetric matrix of neighbour weights, near 1 for the closest pairs.

    If row i is a nearest neighbour of row j, or the reverse, their weight is
    :math:`\exp(-d_{ij}^2 / (s_i s_j))` with :math:`s_i` the distance of row i to its farthest neighbour.
    """
    n_rows = X.shape[0]
    n_neighbors = min(n_neighbors, n_rows - 1)
    if n_neighbors == 0:
        return sparse.csr_array((n_rows, n_rows))
    distances, others = nearest_neighbours(X, n_neighbors)
    # The tiny number makes the weights 1 if all neighbours of a row are equal to it.
    scale = distances[:, -1] + np.finfo(np.float64).tiny ** 0.25
    weights = np.exp(-(distances**2) / (scale[:, None] * scale[others]))
    rows = np.repeat(np.arange(n_rows), n_neighbors)
    graph = sparse.csr_array((weights.ravel(), (rows, others.ravel())), shape=(n_rows, n_rows))
    return sparse.csr_array(graph.maximum(graph.T))
