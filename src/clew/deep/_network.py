"""The autoencoder as one vector of weights, and the parts of deep embedded clustering without gradients.

Xie, Girshick and Farhadi 2016 (`xie2016`). Everything here is NumPy: a fitted model transforms and predicts without
torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

FloatArray = npt.NDArray[np.float64]
SingleArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
Layer = tuple[SingleArray, SingleArray]

# Number of rows that are encoded at a time, which bounds the memory of the widest layer (2,000 units: 16 MB).
_BLOCK = 2048
# Blocks are filled up to a multiple of this.
_ROWS_OF_A_KERNEL = 64
# The smallest argument of a logarithm: single precision has no smaller difference from 1.
SMALLEST = 1e-7


@dataclass(frozen=True)
class NetworkShape:
    """Sizes of the layers of an autoencoder: the encoder from the columns to the embedding, the decoder back.

    With 4 columns, one hidden layer of 3 units and 2 dimensions, the layers of the encoder have the sizes (4, 3, 2),
    and the layers of the decoder (2, 3, 4). The weights are 12 + 3, 6 + 2, 6 + 3 and 12 + 4 numbers, in this order: the
    matrix of a layer row by row, then its biases.
    """

    sizes: tuple[int, ...]

    @property
    def n_encoder_layers(self) -> int:
        """Number of layers with weights in the encoder; the decoder has as many."""
        return len(self.sizes) - 1

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        there_and_back = [*self.sizes, *self.sizes[-2::-1]]
        return list(pairwise(there_and_back))

    @property
    def n_weights(self) -> int:
        """Length of the vector of all weights."""
        return sum(n_in * n_out + n_out for n_in, n_out in self._pairs)

    def layers(self, weights: SingleArray) -> list[Layer]:
        """Matrix and biases of each layer, as views of the vector of all weights."""
        found, start = [], 0
        for n_in, n_out in self._pairs:
            middle, end = start + n_in * n_out, start + n_in * n_out + n_out
            found.append((weights[start:middle].reshape(n_in, n_out), weights[middle:end]))
            start = end
        return found

    def draw(self, rng: np.random.Generator) -> SingleArray:
        """Initial weights: uniform in ±1 / sqrt(inputs) of a layer; biases are 0.

        Larger weights, such as those of He et al. 2015, nearly keep the distances of the rows, and so the clusters of
        k-means on the rows.
        """
        weights = np.zeros(self.n_weights, dtype=np.float32)
        for matrix, _ in self.layers(weights):
            matrix[:] = rng.uniform(-1, 1, size=matrix.shape) / np.sqrt(len(matrix))
        return weights

    def scaled(self, weights: SingleArray, factor: float) -> SingleArray:
        """Weights that multiply the embedding by a factor and reconstruct the same rows."""
        found = weights.copy()
        layers = self.layers(found)
        for part in layers[self.n_encoder_layers - 1]:
            part *= factor
        layers[self.n_encoder_layers][0][:] /= factor
        return found

    def encode(self, weights: SingleArray, rows: Rows) -> SingleArray:
        """The rows in the embedding."""
        layers = self.layers(weights)[: self.n_encoder_layers]
        found = np.empty((rows.n_rows, self.sizes[-1]), dtype=np.float32)
        for block in rows.blocks():
            n_rows = block.stop - block.start
            # With other numbers of rows, BLAS takes other kernels, and a row would depend on its block.
            values = np.pad(rows.take(block), ((0, -n_rows % _ROWS_OF_A_KERNEL), (0, 0)))
            for place, (matrix, biases) in enumerate(layers):
                values = values @ matrix + biases
                if place < len(layers) - 1:
                    np.maximum(values, 0, out=values)
            found[block] = values[:n_rows]
        return found


@dataclass(frozen=True)
class Rows:
    """Rows of X, shifted to mean 0 and divided by one number, made dense and single precision a batch at a time."""

    X: Any
    shift: FloatArray
    scale: float

    @classmethod
    def standardized(cls, X: Any) -> Rows:
        """Rows with mean 0 in each column, and variance 1 on average over the columns.

        All columns have the same divisor, so distances only change by a factor.
        """
        raw = cls(X, np.zeros(X.shape[1]), 1.0)
        shift = sum(raw._dense(block).sum(axis=0) for block in raw.blocks()) / X.shape[0]
        squares = sum(float(((raw._dense(block) - shift) ** 2).sum()) for block in raw.blocks())
        return cls(X, shift, float(np.sqrt(squares / (X.shape[0] * X.shape[1]))) or 1.0)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    def blocks(self) -> Iterator[slice]:
        """Slices that cover all rows."""
        return (slice(start, min(start + _BLOCK, self.n_rows)) for start in range(0, self.n_rows, _BLOCK))

    def take(self, rows: slice | IntArray) -> SingleArray:
        """Some rows in the form that the network takes."""
        return np.asarray((self._dense(rows) - self.shift) / self.scale, dtype=np.float32)

    def _dense(self, rows: slice | IntArray) -> FloatArray:
        chosen = self.X[rows]
        return np.asarray(chosen.toarray() if sparse.issparse(chosen) else chosen, dtype=np.float64)


def soft_assignment(embedding: SingleArray, centers: SingleArray) -> FloatArray:
    """Share of each row in each cluster: a Student t kernel with one degree of freedom, normalised over the clusters.

    Row i and cluster c have q = (1 + ||z_i - m_c||²)⁻¹, divided by the sum over the clusters.
    """
    rows, means = embedding.astype(np.float64), centers.astype(np.float64)
    squares = np.einsum("ij,ij->i", rows, rows)[:, None] - 2 * rows @ means.T + np.einsum("ij,ij->i", means, means)
    kernel = 1 / (1 + np.maximum(squares, 0))
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def target_distribution(shares: FloatArray) -> FloatArray:
    """Sharpened shares p = q² / f, normalised over the clusters; f is the sum of q over the rows of a cluster."""
    sharp = shares**2 / np.maximum(shares.sum(axis=0), np.finfo(np.float64).tiny)
    return np.asarray(sharp / sharp.sum(axis=1, keepdims=True))
