"""Distances to the k-th nearest row, and the radius that they suggest.

Ester et al. 1996 (`ester1996`), section 4.2, choose `eps` by eye from the sorted distances. `automatic_eps` is clew's
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

FloatArray = npt.NDArray[np.float64]

# With the automatic radius, a row is a core row if its density is at least the median divided by this factor. Of 3, 4
# and 5, the factor 3 had the smallest worst-case loss against the best radius over 34 tables (docs/decisions.md).
_LESS_DENSE = 3.0
# Dimension that is assumed if a neighbour graph has too few neighbours to estimate it.
_ASSUMED_DIMENSION = 2.0


def k_distances(X: Any, numbers: Sequence[int], metric: str) -> FloatArray:
    """Distance of each row to its k-th nearest row, counting the row itself; one column for each k in `numbers`.

    In a neighbour graph, a row with fewer than k neighbours gets an infinite distance. A row is a core row if and only
    if its distance for k = `min_samples` is at most `eps`.
    """
    places = np.array(numbers) - 1
    if metric != "precomputed":
        found = NearestNeighbors(n_neighbors=max(numbers), metric=metric).fit(X).kneighbors(X)[0]
        return np.asarray(found[:, places], dtype=np.float64)
    if not sparse.issparse(X):
        return np.asarray(np.partition(X, places, axis=1)[:, places], dtype=np.float64)
    n_rows = X.shape[0]
    rows = np.repeat(np.arange(n_rows), np.diff(X.indptr))
    other = rows != X.indices
    # Each row is its own first neighbour, at distance 0, whether the graph stores the diagonal or not.
    rows = np.concatenate([np.arange(n_rows), rows[other]])
    values = np.concatenate([np.zeros(n_rows), X.data[other]])
    values = values[np.lexsort((values, rows))]
    counts = np.bincount(rows, minlength=n_rows)
    first = np.cumsum(counts) - counts
    far = np.full((n_rows, len(places)), np.inf)
    for column, place in enumerate(places):
        enough = counts > place
        far[enough, column] = values[first[enough] + place]
    return far


def automatic_eps(X: Any, min_samples: int, metric: str) -> float:
    r"""The radius at which rows with a third of the median density are core rows; infinite if no row has neighbours.

    With :math:`r_k` the median distance to the k-th nearest row, the number of rows within a radius grows like
    :math:`r^d` for :math:`d = \log((2k - 1) / (k - 1)) / \log(r_{2k} / r_k)`, and the radius is :math:`3^{1/d} r_k`.
    """
    near = max(min_samples, 2)
    far = min(2 * near, X.shape[0])
    near = min(near, far)
    distances = k_distances(X, [near, far], metric)
    reached = distances[np.isfinite(distances[:, 0])]
    if not len(reached):
        return np.inf
    radius, wider = np.median(reached, axis=0)
    if radius == 0 or wider == radius:
        return float(radius)
    dimension = _ASSUMED_DIMENSION
    if np.isfinite(wider):
        dimension = np.log((far - 1) / (near - 1)) / np.log(wider / radius)
    return float(radius * _LESS_DENSE ** (1 / dimension))
