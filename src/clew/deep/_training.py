"""Gradient steps of the autoencoder and of deep constrained clustering, in torch on the CPU.

Losses as in Zhang, Basu and Davidson 2019 (`zhang2019`) and section 6.6 of the thesis. Tensors have the names of the
arrays in `_network.py`: `shares` is q and `targets` is p.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from clew.deep._network import SMALLEST, FloatArray, IntArray, NetworkShape, SingleArray
from clew.exceptions import MissingExtraError

try:
    import torch
except ImportError as error:
    raise MissingExtraError("DeepConstrainedClustering needs torch: pip install 'clew[deep]'.") from error

# Decay of the two moments, and the number that keeps the divisor above 0 (Kingma and Ba 2015).
_DECAY, _DECAY_OF_SQUARES, _EPSILON = 0.9, 0.999, 1e-8


# Networks with fewer weights are trained by one thread: the threads of torch would wait for each other for most of the
# time. Digits of 8 x 8 pixels with layers (64, 64) take 0.6 s of processor time with one thread, and 8 s with two.
_SMALL = 200_000


@contextmanager
def threads_for(shape: NetworkShape) -> Iterator[None]:
    """Limit torch to one thread while a small network is trained."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if shape.n_weights < _SMALL else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Step:
    """One mini-batch. Positions in the other fields refer to `rows`: first the batch, then the rows of pairs.

    With a batch of 3 rows and one must-link of rows 7 and 9, `rows` has 5 rows and `must_link` is [[3, 4]].

    Attributes
    ----------
    rows : ndarray of shape (n_batch + n_others, n_columns)
    n_batch : int
    targets : ndarray of shape (n_batch, n_clusters)
    known : ndarray of shape (n_known, 2)
        Position of a row of the batch, and the cluster of its known class.
    must_link, cannot_link : ndarray of shape (n_pairs, 2)
    must_link_weight, cannot_link_weight : ndarray of shape (n_pairs,)
    triplets : ndarray of shape (n_triplets, 3)
    offset : ndarray of shape (n_clusters,)
        Mean shares of all rows minus the mean shares of this batch, at the start of the round. Added to the shares of
        the batch, they estimate the sizes of the clusters with little noise.
    """

    rows: SingleArray
    n_batch: int
    targets: FloatArray
    known: IntArray
    must_link: IntArray
    must_link_weight: FloatArray
    cannot_link: IntArray
    cannot_link_weight: FloatArray
    triplets: IntArray
    offset: FloatArray


@dataclass(frozen=True)
class LossWeights:
    """Weights of all losses except clustering, and the limits on the share of all rows in each cluster."""

    reconstruction: float
    penalty: float
    size_penalty: float
    margin: float
    least_share: FloatArray | None = None
    most_share: FloatArray | None = None


class Training:
    """Weights as tensors, and the steps that change them. Without centres, there are only steps of pre-training."""

    def __init__(
        self, shape: NetworkShape, weights: SingleArray, learning_rate: float, centers: FloatArray | None = None
    ) -> None:
        self._layers = [
            tuple(torch.tensor(part, requires_grad=True) for part in layer) for layer in shape.layers(weights)
        ]
        self._n_encoder_layers = shape.n_encoder_layers
        parts = [part for layer in self._layers for part in layer]
        if centers is not None:
            self._centers = torch.tensor(centers.astype(np.float32), requires_grad=True)
            parts.append(self._centers)
        self._adam = _Adam(parts, learning_rate)

    @property
    def weights(self) -> SingleArray:
        """All weights as one vector."""
        parts = [part.detach().numpy().ravel() for layer in self._layers for part in layer]
        return np.concatenate(parts).astype(np.float32)

    @property
    def centers(self) -> SingleArray:
        """The centres in the embedding."""
        return self._centers.detach().numpy().copy()

    def pretrain(self, rows: SingleArray, n_batch: int) -> float:
        """Learn to restore a batch, and to place it near its neighbours. Returns the mean squared error.

        `rows` are first the batch, then one neighbour for each row of the batch, or no more rows.
        """
        values = torch.from_numpy(rows)
        embedded = self._encode(values)
        error = _mean_square(self._decode(embedded[:n_batch]), values[:n_batch])
        self._adam.step(error if len(rows) == n_batch else error + neighbor_loss(embedded))
        return error.item()

    def cluster(self, step: Step, weights: LossWeights) -> float:
        """Learn from a mini-batch. Returns its loss."""
        loss = self.loss(step, weights)
        self._adam.step(loss)
        return loss.item()

    def loss(self, step: Step, weights: LossWeights) -> Any:
        """The loss of a mini-batch: estimates the objective of all rows, divided by their number."""
        rows = torch.from_numpy(step.rows)
        embedded = self._encode(rows)
        shares = soft_shares(embedded, self._centers)
        own = shares[: step.n_batch]
        total = divergence(torch.from_numpy(step.targets.astype(np.float32)), own)
        if weights.reconstruction > 0:
            restored = self._decode(embedded[: step.n_batch])
            total = total + weights.reconstruction * _mean_square(restored, rows[: step.n_batch])
        priced = (
            must_link_loss(shares, step.must_link, step.must_link_weight)
            + cannot_link_loss(shares, step.cannot_link, step.cannot_link_weight)
            + known_class_loss(shares, step.known)
            + triplet_loss(shares, step.triplets, weights.margin)
        )
        total = total + weights.penalty * priced / step.n_batch
        if weights.least_share is not None and weights.most_share is not None:
            sizes = own.mean(dim=0) + torch.from_numpy(step.offset.astype(np.float32))
            total = total + weights.size_penalty * size_loss(sizes, weights.least_share, weights.most_share)
        return total

    def _encode(self, values: Any) -> Any:
        return self._through(values, self._layers[: self._n_encoder_layers])

    def _decode(self, values: Any) -> Any:
        return self._through(values, self._layers[self._n_encoder_layers :])

    @staticmethod
    def _through(values: Any, layers: list[Any]) -> Any:
        for place, (matrix, biases) in enumerate(layers):
            values = torch.addmm(biases, values, matrix)
            if place < len(layers) - 1:
                values = torch.relu(values)
        return values


def soft_shares(embedding: Any, centers: Any) -> Any:
    """`soft_assignment` for tensors."""
    squares = ((embedding[:, None, :] - centers[None]) ** 2).sum(dim=2)
    kernel = 1 / (1 + squares)
    return kernel / kernel.sum(dim=1, keepdim=True)


def neighbor_loss(embedding: Any) -> Any:
    """Mean negative log-probability that a row of the first half picks its neighbour, row by row in the second half.

    A row picks each other row with a probability proportional to the kernel 1 / (1 + squared distance), as in the
    embeddings of Damrich et al. 2023 (`damrich2023`). A row of the second half picks its row of the first half in
    the same way.
    """
    n_rows = len(embedding)
    squares = (embedding**2).sum(dim=1)
    kernel = 1 / (1 + (squares[:, None] + squares - 2 * embedding @ embedding.T).clamp_min(0))
    others = kernel.sum(dim=1) - kernel.diagonal()
    chosen = kernel[torch.arange(n_rows), torch.arange(n_rows).roll(n_rows // 2)]
    return (torch.log(others) - torch.log(chosen)).mean()


def divergence(targets: Any, shares: Any) -> Any:
    """Mean Kullback-Leibler divergence of the shares from their targets."""
    logs = torch.log(targets.clamp_min(SMALLEST)) - torch.log(shares.clamp_min(SMALLEST))
    return (targets * logs).sum(dim=1).mean()


def must_link_loss(shares: Any, pairs: IntArray, confidence: FloatArray) -> Any:
    """Sum of the negative log-probabilities that both rows share a cluster."""
    return -(_weights(confidence) * torch.log(_together(shares, pairs).clamp_min(SMALLEST))).sum()


def cannot_link_loss(shares: Any, pairs: IntArray, confidence: FloatArray) -> Any:
    """Sum of the negative log-probabilities that the rows are in different clusters."""
    return -(_weights(confidence) * torch.log((1 - _together(shares, pairs)).clamp_min(SMALLEST))).sum()


def known_class_loss(shares: Any, known: IntArray) -> Any:
    """Sum of the negative log-shares of rows in the clusters of their classes."""
    return -torch.log(shares[known[:, 0], known[:, 1]].clamp_min(SMALLEST)).sum()


def triplet_loss(shares: Any, triplets: IntArray, margin: float) -> Any:
    """Sum of the hinge losses of triplets: the second row should be closer to the first than the third, by a margin."""
    near, far = _together(shares, triplets[:, :2]), _together(shares, triplets[:, ::2])
    return (far - near + margin).clamp_min(0).sum()


def size_loss(sizes: Any, least: FloatArray, most: FloatArray) -> Any:
    """Mean squared excess of the clusters over their limits, in units of the size of an average cluster."""
    low, high = torch.from_numpy(least.astype(np.float32)), torch.from_numpy(most.astype(np.float32))
    excess = (low - sizes).clamp_min(0) + (sizes - high).clamp_min(0)
    return ((excess * len(sizes)) ** 2).mean()


def _together(shares: Any, pairs: IntArray) -> Any:
    return (shares[pairs[:, 0]] * shares[pairs[:, 1]]).sum(dim=1)


def _weights(confidence: FloatArray) -> Any:
    return torch.from_numpy(confidence.astype(np.float32))


def _mean_square(first: Any, second: Any) -> Any:
    return ((first - second) ** 2).mean()


class _Adam:
    """Adam (Kingma and Ba 2015). The one in `torch.optim` takes two seconds to load its compiler at the first step."""

    def __init__(self, tensors: list[Any], learning_rate: float) -> None:
        self._tensors, self._rate, self._n_steps = tensors, learning_rate, 0
        self._means = [torch.zeros_like(one) for one in tensors]
        self._squares = [torch.zeros_like(one) for one in tensors]

    def step(self, loss: Any) -> None:
        """Move against the gradient of a loss."""
        gradients = torch.autograd.grad(loss, self._tensors, allow_unused=True)
        self._n_steps += 1
        rate = self._rate / (1 - _DECAY**self._n_steps)
        unbiased = np.sqrt(1 - _DECAY_OF_SQUARES**self._n_steps)
        with torch.no_grad():
            for one, gradient, mean, square in zip(self._tensors, gradients, self._means, self._squares, strict=True):
                if gradient is None:  # the decoder, where reconstruction has no weight
                    continue
                mean.mul_(_DECAY).add_(gradient, alpha=1 - _DECAY)
                square.mul_(_DECAY_OF_SQUARES).addcmul_(gradient, gradient, value=1 - _DECAY_OF_SQUARES)
                one.addcdiv_(mean, (square.sqrt() / unbiased).add_(_EPSILON), value=-rate)
