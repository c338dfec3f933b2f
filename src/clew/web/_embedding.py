"""Where rows are on the map: principal components at once, and a map of neighbours that takes its time."""

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

# Columns that neighbours are found by; more are projected on their main directions.
_MOST_COLUMNS = 50
_PERPLEXITY = 30
# Rows that are embedded: all up to this many, else a sample, with openTSNE and without.
_MOST_ROWS, _MOST_ROWS_PLAIN = 50_000, 5_000
# Other rows are put among this many nearest ones of the sample.
_PLACED_BY = 3


def flat(X: Any, random_state: int = 0) -> Points:
    """Rows in two dimensions by principal components, from -1 to 1 and with the same unit on both axes.

    A plane is drawn as it is. Sparse rows are projected before they are centred, so that they stay sparse.
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
    """Rows in two dimensions such that near rows stay near, by t-SNE; `run` takes seconds to minutes."""

    X: FloatArray
    random_state: int

    @classmethod
    def of(cls, X: Any, random_state: int) -> NeighbourMap:
        """The plan for rows of any kind."""
        if min(X.shape) > _MOST_COLUMNS:
            X = TruncatedSVD(_MOST_COLUMNS, random_state=random_state).fit_transform(X)
        elif sparse.issparse(X):
            X = X.toarray()
        return cls(np.ascontiguousarray(X, dtype=np.float64), random_state)

    def run(self) -> Points:
        """The points, from -1 to 1."""
        n = len(self.X)
        if n < 4 or self.X.shape[1] <= 2:  # a plane keeps its own neighbours best
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
    """Principal components, small and a little shaken: rows that are equal could never part."""
    noise = np.random.default_rng(random_state).normal(scale=0.01, size=(len(X), 2))
    return np.asarray(1e-4 * (flat(X, random_state) + noise), dtype=np.float32)


def _placed(rows: FloatArray, known: FloatArray, points: FloatArray) -> FloatArray:
    """Rows between the nearest ones that have a point, the nearer the more."""
    far, near = NearestNeighbors(n_neighbors=_PLACED_BY).fit(known).kneighbors(rows)
    weights = 1 / np.maximum(far, np.finfo(float).tiny ** 0.5)
    return np.asarray((weights[:, :, None] * points[near]).sum(axis=1) / weights.sum(axis=1, keepdims=True))
