"""The leading eigenvectors of a normalised graph, found in blocks.

Chebyshev-filtered subspace iteration (Zhou et al. 2006, `zhou2006`): unlike a Lanczos run that starts from one vector,
a block finds all leading eigenvectors of a graph with several connected components, whose largest eigenvalue is
repeated. If many eigenvalues are close to 1, convergence is slow. Such graphs have small separators, so a sparse
factorisation is cheap, and inverse iteration takes over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import qr
from scipy.sparse.linalg import splu

FloatArray = npt.NDArray[np.float64]

# Up to this many rows, a dense solver computes all eigenvectors.
_DENSE_ROWS = 1_000
# Number of extra eigenvectors in the block, which speed up the convergence of the wanted ones.
_SPARE = 10
# Degrees of the successive filters, and the initial guess of the smallest wanted eigenvalue.
_DEGREES, _FIRST_CUT = (16, 16), 0.5
# Degrees of further filters, if accurate eigenvectors are wanted.
_MORE_DEGREES = (32, 64)
# Eigenvectors are accurate if their residuals are at most this share of 1 - v, where v is the middle spare eigenvalue.
_ACCURATE = 0.02
# Largest number of inverse iterations, and the distance of their shift from the largest eigenvalue, 1.
_INVERSE_ITERATIONS, _SHIFT = 10, 1e-5


def leading_eigenvectors(graph: Any, n_vectors: int, *, accurate: bool = False) -> tuple[FloatArray, FloatArray]:
    """Compute the largest eigenvalues, in descending order, and their eigenvectors; all of them for a small graph.

    `graph` is a symmetric matrix with eigenvalues in [-1, 1] that supports `shape`, `@`, `astype` and `toarray`. With
    `accurate`, it must also have `factored`, and the space of the eigenvectors is accurate to two digits.
    """
    n_rows = graph.shape[0]
    if n_rows <= max(_DENSE_ROWS, 2 * (n_vectors + _SPARE)):
        values, vectors = np.linalg.eigh(graph.toarray())
    else:
        values, vectors = filtered_eigenvectors(graph, n_vectors + _SPARE, accurate=accurate)
    values, vectors = values[::-1][:n_vectors], vectors[:, ::-1][:, :n_vectors]
    # The sign of an eigenvector is arbitrary; make it reproducible.
    return np.minimum(values, 1.0), vectors * np.where(vectors.sum(axis=0) < 0, -1, 1)


def filtered_eigenvectors(graph: Any, n_vectors: int, *, accurate: bool = False) -> tuple[FloatArray, FloatArray]:
    """Compute leading eigenvalues (ascending) and eigenvectors by filtered subspace iteration in float32."""
    single = graph.astype(np.float32)
    block = np.random.default_rng(0).standard_normal((graph.shape[0], n_vectors), dtype=np.float32)
    cut = _FIRST_CUT
    for number, degree in enumerate((*_DEGREES, *_MORE_DEGREES), start=1):
        block = qr(_filtered(single, block, degree, cut), mode="economic", overwrite_a=True, check_finite=False)[0]
        image = single @ block
        values, turn = np.linalg.eigh((block.T @ image).astype(np.float64))
        cut = float(values[_SPARE // 2])
        if number >= len(_DEGREES) and (not accurate or _converged(values, block @ turn, image @ turn)):
            return values, block.astype(np.float64) @ turn
    return _inverse_iterated(graph, block.astype(np.float64))


def _inverse_iterated(graph: Any, block: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Improve a block by inverse iteration with a shift, until the residuals of the wanted eigenvectors are small."""
    solve = graph.factored(1 + _SHIFT)
    for _ in range(_INVERSE_ITERATIONS):
        block = qr(solve(block), mode="economic", overwrite_a=True, check_finite=False)[0]
        image = graph @ block
        values, turn = np.linalg.eigh(block.T @ image)
        block, image = block @ turn, image @ turn
        if _converged(values, block, image):
            break
    return values, block


def _converged(values: FloatArray, vectors: npt.NDArray[Any], images: npt.NDArray[Any]) -> bool:
    """Whether the residuals are small; all but the first `_SPARE` vectors are wanted."""
    residuals = images[:, _SPARE:] - vectors[:, _SPARE:] * values[_SPARE:]
    return float(np.linalg.norm(residuals, axis=0).max()) <= _ACCURATE * (1 - float(values[_SPARE // 2]))


def solver_with_factor(stored: Any, factor: Any, shift: float) -> Any:
    """Return a function that solves (stored + factor factor^T - shift I) x = b.

    An extra variable for each column of the factor keeps the system sparse.
    """
    n_rows, n_columns = factor.shape
    system = sparse.block_array(
        [[stored - shift * sparse.eye_array(n_rows), factor], [factor.T, -sparse.eye_array(n_columns)]], format="csc"
    )
    factored = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return lambda block: factored.solve(np.concatenate([block, np.zeros((n_columns, block.shape[1]))]))[:n_rows]


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
