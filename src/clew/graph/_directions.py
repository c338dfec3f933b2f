"""The slowest directions of a graph: its leading eigenvectors, found in blocks.

Chebyshev-filtered subspace iteration (Zhou et al. 2006, `zhou2006`): unlike a Lanczos run that starts from one vector,
a block finds all directions of a graph in several pieces, where the largest eigenvalue is repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import qr

FloatArray = npt.NDArray[np.float64]

# Up to this many rows, all directions are computed at once.
_DENSE_ROWS = 1_000
# Directions beside those wanted, which take in what is close to them.
_SPARE = 10
# Degrees of the filters, one after the other, and the first guess of the eigenvalue above which all are wanted.
_DEGREES, _FIRST_CUT = (16, 16), 0.5


def leading_directions(graph: sparse.csr_array, n_directions: int) -> tuple[FloatArray, FloatArray]:
    """Largest eigenvalues of a normalised graph, largest first, and their vectors; all of a graph with fewer rows."""
    n_rows = graph.shape[0]
    if n_rows <= max(_DENSE_ROWS, 2 * (n_directions + _SPARE)):
        values, vectors = np.linalg.eigh(graph.toarray())
    else:
        values, vectors = filtered_directions(graph, n_directions + _SPARE)
    values, vectors = values[::-1][:n_directions], vectors[:, ::-1][:, :n_directions]
    # The sign of a vector is the solver's whim.
    return np.minimum(values, 1.0), vectors * np.where(vectors.sum(axis=0) < 0, -1, 1)


def filtered_directions(graph: sparse.csr_array, n_directions: int) -> tuple[FloatArray, FloatArray]:
    """Leading eigenvalues, smallest first, and vectors; in single precision, which is more than a few filters reach."""
    single = graph.astype(np.float32)
    block = np.random.default_rng(0).standard_normal((graph.shape[0], n_directions), dtype=np.float32)
    cut = _FIRST_CUT
    for degree in _DEGREES:
        block = qr(_filtered(single, block, degree, cut), mode="economic", overwrite_a=True, check_finite=False)[0]
        values, turn = np.linalg.eigh((block.T @ (single @ block)).astype(np.float64))
        cut = float(values[_SPARE // 2])
    return values, block.astype(np.float64) @ turn


def _filtered(graph: Any, block: npt.NDArray[np.float32], degree: int, cut: float) -> npt.NDArray[np.float32]:
    """A Chebyshev polynomial of the graph that is small on eigenvalues from -1 to the cut, and 1 at eigenvalue 1."""
    center, half = np.float32((cut - 1) / 2), np.float32((cut + 1) / 2)
    ratio = first = half / (1 - center)
    before, now = block, (graph @ block - center * block) * (ratio / half)
    for _ in range(degree - 1):
        ratio, last = 1 / (2 / first - ratio), ratio
        after = graph @ now
        after -= center * now
        after *= 2 * ratio / half
        after -= last * ratio * before
        before, now = now, after
    return now
