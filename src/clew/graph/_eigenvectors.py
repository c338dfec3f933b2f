"""The leading eigenvectors of a normalised graph, found in blocks.

Chebyshev-filtered subspace iteration (Zhou et al. 2006, `zhou2006`): unlike a Lanczos run that starts from one vector,
a block finds all leading eigenvectors of a graph with several connected components, whose largest eigenvalue is
repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import qr

FloatArray = npt.NDArray[np.float64]

# Up to this many rows, a dense solver computes all eigenvectors.
_DENSE_ROWS = 1_000
# Extra eigenvectors in the block, which speed up the convergence of the wanted ones.
_SPARE = 10
# Degrees of the successive filters, and the first guess of the smallest wanted eigenvalue.
_DEGREES, _FIRST_CUT = (16, 16), 0.5
# Degrees of further filters, if the residuals are to be small.
_MORE_DEGREES = (32, 64, 128, 256)


def leading_eigenvectors(graph: Any, n_vectors: int, *, residual: float = np.inf) -> tuple[FloatArray, FloatArray]:
    """The largest eigenvalues, in descending order, and their eigenvectors; all of them for a small graph.

    `graph` is a symmetric matrix with eigenvalues in [-1, 1]: it has `shape`, `@`, `astype` and `toarray`.
    Further filters follow while the residual of a wanted eigenvector is larger than `residual`.
    """
    n_rows = graph.shape[0]
    if n_rows <= max(_DENSE_ROWS, 2 * (n_vectors + _SPARE)):
        values, vectors = np.linalg.eigh(graph.toarray())
    else:
        values, vectors = filtered_eigenvectors(graph, n_vectors + _SPARE, residual)
    values, vectors = values[::-1][:n_vectors], vectors[:, ::-1][:, :n_vectors]
    # Solvers leave the sign of an eigenvector open; make it repeatable.
    return np.minimum(values, 1.0), vectors * np.where(vectors.sum(axis=0) < 0, -1, 1)


def filtered_eigenvectors(graph: Any, n_vectors: int, residual: float = np.inf) -> tuple[FloatArray, FloatArray]:
    """Leading eigenvalues, in ascending order, and eigenvectors, by filtered subspace iteration in float32."""
    single = graph.astype(np.float32)
    block = np.random.default_rng(0).standard_normal((graph.shape[0], n_vectors), dtype=np.float32)
    cut, n_wanted = _FIRST_CUT, n_vectors - _SPARE
    for number, degree in enumerate((*_DEGREES, *_MORE_DEGREES), start=1):
        block = qr(_filtered(single, block, degree, cut), mode="economic", overwrite_a=True, check_finite=False)[0]
        image = single @ block
        values, turn = np.linalg.eigh((block.T @ image).astype(np.float64))
        cut = float(values[_SPARE // 2])
        if number < len(_DEGREES):
            continue
        wanted = turn[:, -n_wanted:]
        if residual == np.inf or _largest(image @ wanted - (block @ wanted) * values[-n_wanted:]) <= residual:
            break
    return values, block.astype(np.float64) @ turn


def _largest(columns: FloatArray) -> float:
    """Length of the longest column."""
    return float(np.linalg.norm(columns, axis=0).max())


def _filtered(graph: Any, block: npt.NDArray[np.float32], degree: int, cut: float) -> npt.NDArray[np.float32]:
    """Apply a Chebyshev polynomial that is small on eigenvalues in [-1, cut] and equals 1 at eigenvalue 1."""
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
