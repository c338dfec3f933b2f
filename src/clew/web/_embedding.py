"""Positions of rows on the map: by principal components, which is fast, or by t-SNE, which takes longer."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import randomized_svd

FloatArray = npt.NDArray[np.float64]
Points = npt.NDArray[np.float32]

# Columns used for the neighbour search. Wider data is projected on its principal components.
_MOST_COLUMNS = 50
_PERPLEXITY = 30
# Largest number of rows that t-SNE embeds, with openTSNE and without it. For more rows, it embeds a sample.
_MOST_ROWS, _MOST_ROWS_PLAIN = 50_000, 5_000
# All other rows are placed between this many nearest rows of the sample.
_PLACED_BY = 3


def flat(X: Any, random_state: int = 0) -> Points:
    """Project rows on two principal components, scaled to -1 to 1 with the same unit on both axes.

    Data with two columns is not projected. Sparse rows are projected before they are centred, so that they stay sparse.
    """
    points = np.zeros((X.shape[0], 2))
    if min(X.shape) <= 2:
        found = X.toarray() if sparse.issparse(X) else np.asarray(X)
    else:
        rows = X if sparse.issparse(X) else X - X.mean(axis=0)
        left, sizes, _ = randomized_svd(rows, 2, random_state=random_state)
        found = left * sizes
    points[:, : min(found.shape[1], 2)] = found[:, :2]
    return _framed(points)


def _framed(points: FloatArray) -> Points:
    centred = points - points.mean(axis=0)
    largest = np.abs(centred).max(initial=0.0)
    return np.ascontiguousarray(centred / largest if largest > 0 else centred, dtype="<f4")


@dataclass(frozen=True)
class NeighbourMap:
    """Embed rows in two dimensions by t-SNE, which keeps near rows near. `run` takes seconds to minutes."""

    X: FloatArray
    random_state: int

    @classmethod
    def of(cls, X: Any, random_state: int) -> NeighbourMap:
        """Plan the map for dense or sparse rows."""
        if min(X.shape) > _MOST_COLUMNS:
            X = TruncatedSVD(_MOST_COLUMNS, random_state=random_state).fit_transform(X)
        elif sparse.issparse(X):
            X = X.toarray()
        return cls(np.ascontiguousarray(X, dtype=np.float64), random_state)

    def run(self) -> Points:
        """Compute the points, with coordinates from -1 to 1."""
        n = len(self.X)
        if n < 4 or self.X.shape[1] <= 2:  # two columns need no embedding
            return flat(self.X, self.random_state)
        embed, most = (_by_open_tsne, _MOST_ROWS) if find_spec("openTSNE") else (_by_sklearn, _MOST_ROWS_PLAIN)
        if n <= most:
            return _framed(embed(self.X, self.random_state))
        rng = np.random.default_rng(self.random_state)
        some = np.sort(rng.choice(n, most, replace=False))
        points = np.empty((n, 2))
        points[some] = embed(self.X[some], self.random_state)
        others = np.setdiff1d(np.arange(n), some)
        points[others] = _placed(self.X[others], self.X[some], points[some])
        return _framed(points)


def _by_open_tsne(X: FloatArray, random_state: int) -> FloatArray:
    from openTSNE import TSNE as OpenTSNE  # noqa: N811

    start = _start(X, random_state)
    model = OpenTSNE(perplexity=_perplexity(X), initialization=start, n_jobs=1, random_state=random_state)
    return np.asarray(model.fit(X), dtype=np.float64)


def _by_sklearn(X: FloatArray, random_state: int) -> FloatArray:
    model = TSNE(perplexity=_perplexity(X), init=_start(X, random_state), random_state=random_state)
    return np.asarray(model.fit_transform(X), dtype=np.float64)


def _perplexity(X: FloatArray) -> float:
    return min(_PERPLEXITY, (len(X) - 1) / 3)


def _start(X: FloatArray, random_state: int) -> Points:
    """Initial positions: small principal components, with noise so that equal rows can separate."""
    noise = np.random.default_rng(random_state).normal(scale=0.01, size=(len(X), 2))
    return np.asarray(1e-4 * (flat(X, random_state) + noise), dtype=np.float32)


def _placed(rows: FloatArray, known: FloatArray, points: FloatArray) -> FloatArray:
    """Place rows at the weighted mean of their nearest embedded rows; nearer rows have larger weights."""
    far, near = NearestNeighbors(n_neighbors=_PLACED_BY).fit(known).kneighbors(rows)
    weights = 1 / np.maximum(far, np.finfo(float).tiny ** 0.5)
    return np.asarray((weights[:, :, None] * points[near]).sum(axis=1) / weights.sum(axis=1, keepdims=True))
