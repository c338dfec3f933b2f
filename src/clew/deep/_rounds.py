"""Pre-training and clustering, round by round: thesis Algorithm 9 (`randel2021b`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from clew.deep._knowledge import DeepKnowledge
from clew.deep._network import (
    SMALLEST,
    FloatArray,
    IntArray,
    NetworkShape,
    Rows,
    SingleArray,
    soft_assignment,
    target_distribution,
)
from clew.deep._progress import DeepProgress, Reporter
from clew.deep._training import LossWeights, Training
from clew.exceptions import ParameterError

# A stage does not end before this many steps without a change. A round of 100 rows has two steps, and in two steps
# often no row changes its cluster, although the pairs do not hold yet.
CALM_STEPS = 8


class DeepClusters(NamedTuple):
    """The result of `deep_clustering`; labels are positions of centres."""

    network: SingleArray
    centers: SingleArray
    labels: IntArray
    used: DeepKnowledge
    history: list[float]
    changed: list[float]


def pretrain(
    rows: Rows,
    shape: NetworkShape,
    neighbors: IntArray,
    rng: np.random.Generator,
    *,
    n_epochs: int,
    batch_size: int,
    learning_rate: float,
    callback: Callable[[DeepProgress], Any] | None = None,
) -> tuple[SingleArray, FloatArray]:
    """Train an autoencoder that places neighbours together. Returns its weights and the error of each epoch."""
    n_neighbors = neighbors.shape[1]
    training, history = Training(shape, shape.draw(rng), learning_rate), list[float]()
    report = Reporter("pre-training", n_epochs, callback)
    for _ in range(n_epochs):
        batches = np.array_split(rng.permutation(rows.n_rows), -(-rows.n_rows // batch_size))
        errors = []
        for batch in batches:
            near = neighbors[batch, rng.integers(n_neighbors, size=len(batch))] if n_neighbors > 0 else batch[:0]
            values = rows.take(np.append(batch, near))
            errors.append(training.pretrain(values, len(batch)) * len(batch))
        history.append(sum(errors) / rows.n_rows)
        _refuse_divergence("pre-training", len(history), history[-1], learning_rate)
        if report(len(history), history[-1], 0.0) is False:
            break
    return training.weights, np.array(history)


def deep_clustering(
    rows: Rows,
    shape: NetworkShape,
    network: SingleArray,
    knowledge: DeepKnowledge,
    centers: FloatArray,
    alike: IntArray,
    weights: LossWeights,
    rng: np.random.Generator,
    *,
    filter_fraction: float | None,
    filter_rule: str = "soft",
    batch_size: int,
    learning_rate: float,
    max_iter: int,
    tol: float,
    callback: Callable[[DeepProgress], Any] | None = None,
) -> DeepClusters:
    """Train encoder and centres on rows and constraints, from a pre-trained network.

    The filter of Algorithm 9 judges pairs by clusters. With the rule "soft", it begins when training on all pairs has
    ended, because clusters that have not learned from pairs would call right pairs wrong.
    """
    training = Training(shape, network, learning_rate, centers)
    now = _assigned(rows, shape, training)
    used, history, changed = knowledge, [objective(now.shares, knowledge, weights)], list[float]()

    def choose(stage: str) -> DeepKnowledge:
        if filter_fraction is not None and filter_rule == "kmeans":
            kept = knowledge.filtered_by_kmeans(now.embedding, training.centers, filter_fraction)
            return kept.represented(alike, rng)
        if filter_fraction is not None and stage == "filtering":
            return knowledge.filtered(now.shares, alike, filter_fraction, rng)
        return knowledge.represented(alike, rng)

    n_calm = -(-CALM_STEPS // -(-rows.n_rows // batch_size))  # rounds
    has_filter = filter_rule == "soft" and bool(filter_fraction) and knowledge.n_pairs > 0
    for stage in ("clustering", "filtering") if has_filter else ("clustering",):
        report = Reporter(stage, max_iter, callback)
        for n_iter in range(1, max_iter + 1):
            used = choose(stage)
            targets = target_distribution(now.shares)
            for step in used.steps(rows, now.shares, targets, batch_size, rng, alike):
                training.cluster(step, weights)
            before, now = now.labels, _assigned(rows, shape, training)
            changed.append(float((now.labels != before).mean()))
            history.append(objective(now.shares, knowledge, weights))
            _refuse_divergence(stage, n_iter, history[-1], learning_rate)
            is_calm = n_iter >= n_calm and max(changed[-n_calm:]) < tol
            if report(n_iter, history[-1], changed[-1]) is False or is_calm:
                break
    return DeepClusters(training.weights, training.centers, now.labels, used, history, changed)


def _refuse_divergence(stage: str, n_iter: int, objective: float, learning_rate: float) -> None:
    if not np.isfinite(objective):
        raise ParameterError(
            f"{stage} of DeepConstrainedClustering diverged in round {n_iter} with learning_rate={learning_rate:g}. "
            "Lower learning_rate."
        )


class _Assigned(NamedTuple):
    """The embedding, the shares of all rows in the clusters, and the clusters with the largest shares."""

    embedding: SingleArray
    shares: FloatArray
    labels: IntArray


def _assigned(rows: Rows, shape: NetworkShape, training: Training) -> _Assigned:
    embedding = shape.encode(training.weights, rows)
    shares = soft_assignment(embedding, training.centers)
    return _Assigned(embedding, shares, shares.argmax(axis=1))


def objective(shares: FloatArray, knowledge: DeepKnowledge, weights: LossWeights) -> float:
    """J of all rows: divergence, given pairs, known classes, triplets and sizes; without reconstruction and groups."""
    targets = target_distribution(shares)
    total = float((targets * (_log(targets) - _log(shares))).sum())
    for pairs, is_must in ((knowledge.must_link, True), (knowledge.cannot_link, False)):
        chance = (shares[pairs.rows[:, 0]] * shares[pairs.rows[:, 1]]).sum(axis=1)
        total -= weights.penalty * float(pairs.confidence @ _log(chance if is_must else 1 - chance))
    named = np.flatnonzero(knowledge.cluster_of >= 0)
    total -= weights.penalty * float(_log(shares[named, knowledge.cluster_of[named]]).sum())
    first, near, far = (shares[rows] for rows in knowledge.triplets.T)
    excess = (first * far).sum(axis=1) - (first * near).sum(axis=1) + weights.margin
    total += weights.penalty * float(np.maximum(excess, 0).sum())
    total /= len(shares)
    if weights.least_share is not None and weights.most_share is not None:
        sizes = shares.mean(axis=0)
        over = np.maximum(weights.least_share - sizes, 0) + np.maximum(sizes - weights.most_share, 0)
        total += weights.size_penalty * float(((over * len(sizes)) ** 2).mean())
    return total


def _log(values: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(values, SMALLEST)))
