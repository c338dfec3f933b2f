"""Deep constrained clustering against plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clew import Constraints, DeepConstrainedClustering
from clew.audit._impact import FREE, impact_of
from clew.audit._models import fixed_model, squared_model
from clew.deep._network import NetworkShape, Rows, soft_assignment, target_distribution
from tests.reference import deep_clustering as reference

SHAPE = NetworkShape((3, 4, 2))
ALONE = np.arange(12)[:, None]  # every row is alike only to itself


def small(seed, n=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return rng, Rows(X, np.zeros(3), 1.0), SHAPE.draw(rng), rng.normal(size=(3, 2)).astype(np.float32)


def test_encoding_shares_and_targets(seed):
    _, rows, weights, centers = small(seed)
    layers = [(matrix.tolist(), biases.tolist()) for matrix, biases in SHAPE.layers(weights)[:2]]
    embedding = SHAPE.encode(weights, rows)
    expected = [reference.encoded(row, layers) for row in rows.X.tolist()]
    np.testing.assert_allclose(embedding, expected, rtol=1e-4, atol=1e-5)  # single precision
    q = soft_assignment(embedding, centers)
    np.testing.assert_allclose(q, reference.shares(embedding.tolist(), centers.tolist()), rtol=1e-9)
    np.testing.assert_allclose(target_distribution(q), reference.targets(q.tolist()), rtol=1e-9)


def test_neighbours_attract_and_others_repel(seed):
    torch = pytest.importorskip("torch")
    from clew.deep._training import neighbor_loss

    embedding = np.random.default_rng(seed).normal(size=(8, 2))
    found = neighbor_loss(torch.from_numpy(embedding)).item()
    assert found == pytest.approx(reference.neighbor_loss(embedding.tolist()), rel=1e-9)


def test_scaled_weights_multiply_the_embedding_and_restore_the_same_rows(seed):
    torch = pytest.importorskip("torch")
    from clew.deep._training import Training

    _, rows, weights, _ = small(seed)
    scaled = SHAPE.scaled(weights, 3.0)
    np.testing.assert_allclose(SHAPE.encode(scaled, rows), 3 * SHAPE.encode(weights, rows), rtol=1e-5, atol=1e-6)
    values = torch.from_numpy(rows.take(np.arange(12)))
    before, after = (
        one._decode(one._encode(values)) for one in (Training(SHAPE, weights, 1), Training(SHAPE, scaled, 1))
    )
    np.testing.assert_allclose(after.detach(), before.detach(), rtol=1e-4, atol=1e-5)  # single precision


def test_weights_are_laid_out_as_documented():
    shape = NetworkShape((4, 3, 2))
    sizes = [part.size for layer in shape.layers(np.zeros(shape.n_weights, dtype=np.float32)) for part in layer]
    assert sizes == [12, 3, 6, 2, 6, 3, 12, 4]
    assert shape.n_weights == sum(sizes)


@pytest.mark.parametrize("limits", [None, ([0.5, 0.0, 0.0], [1.0, 0.2, 1.0])])
def test_loss_of_a_batch_of_all_rows_and_the_objective(seed, limits):
    pytest.importorskip("torch")
    from clew.deep._knowledge import DeepKnowledge
    from clew.deep._rounds import objective
    from clew.deep._training import LossWeights, Training

    rng, rows, weights, centers = small(seed)
    known = Constraints(
        [(0, 1), (2, 3)], [(0, 4), (5, 6), (6, 7)],
        must_link_confidence=[1.0, 0.5], cannot_link_confidence=[1.0, 0.25, 1.0],
        labels=np.array([-1] * 8 + [0, 2, -1, 1]), triplets=[(0, 8, 9), (3, 2, 1)],
    )  # fmt: skip
    knowledge = DeepKnowledge.of(known, np.arange(3), 12)
    bounds = (None, None) if limits is None else map(np.array, limits)
    losses = LossWeights(0.0, 2.0, 3.0, 0.5, *bounds)
    training = Training(SHAPE, weights, 1e-3, centers)
    q = soft_assignment(SHAPE.encode(weights, rows), centers)
    p = target_distribution(q)
    expected = reference.objective(
        q.tolist(), p.tolist(), must=[(0, 1, 1.0), (2, 3, 0.5)],
        cannot=[(0, 4, 1.0), (5, 6, 0.25), (6, 7, 1.0)], known=[(8, 0), (9, 2), (11, 1)],
        triplets=[(0, 8, 9), (3, 2, 1)], penalty=2.0, sizes=limits, size_penalty=3.0,
    )  # fmt: skip
    assert objective(q, knowledge, losses) == pytest.approx(expected, rel=1e-9)
    (step,) = knowledge.steps(rows, q, p, 12, rng, ALONE)
    assert training.loss(step, losses).item() == pytest.approx(expected, rel=1e-4)  # single precision
    # Two batches estimate the same sum: each has its own rows, and every pair is in one of them.
    steps = list(knowledge.steps(rows, q, p, 6, rng, ALONE))
    mean = np.mean([training.loss(step, losses).item() for step in steps])
    assert mean == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("n_neighbors", [0, 4])
def test_filter_drops_given_pairs_with_the_lowest_mean_impact(seed, fraction, n_neighbors):
    pytest.importorskip("torch")
    from clew.deep._knowledge import DUAL_ROUNDS, N_SCORED, DeepKnowledge

    hidden = np.resize(np.arange(3), 60)
    shares = 0.9 * np.eye(3)[hidden] + 0.1 / 3
    alike = np.column_stack([np.arange(60), (np.arange(60)[:, None] + 3 * np.arange(1, n_neighbors + 1)) % 60])
    known = Constraints.sample(hidden, 40, noise=0.3, random_state=seed)
    knowledge = DeepKnowledge.of(known, np.arange(3), 60)
    found = knowledge.filtered(shares, alike, fraction, np.random.default_rng(seed))
    # The same draws: first the representatives that are scored, then those that are learned.
    again, n_draws = np.random.default_rng(seed), N_SCORED if n_neighbors else 1
    kinds = knowledge.must_link, knowledge.cannot_link
    drawn = [one.draws(alike, again, n_draws) for one in kinds]
    prices = impact_of(
        fixed_model("network", -np.log(shares)),
        Constraints(drawn[0][0], drawn[1][0], n_samples=60),
        max_iter=DUAL_ROUNDS,
    )
    assert found.cluster_of is knowledge.cluster_of
    for used, each, (_, places), scores in zip(
        (found.must_link, found.cannot_link),
        kinds,
        drawn,
        (prices.must_link_score, prices.cannot_link_score),
        strict=True,
    ):
        means = reference.mean_scores(scores.tolist(), places.tolist(), len(each))
        kept = reference.kept(means, fraction, -FREE * prices.unit)
        rows, origin = replace(each, rows=each.rows[kept]).draws(alike, again, 1)
        assert used.rows.tolist() == rows.tolist()
        assert used.given.tolist() == each.given[np.array(kept, dtype=int)[origin]].tolist()
    # Pairs that hold have no impact, and most broken pairs have one.
    pairs = np.concatenate([rows for rows, _ in drawn])
    broken = hidden[pairs[:, 0]] == hidden[pairs[:, 1]]
    broken[: len(drawn[0][0])] ^= True
    negative = np.concatenate([prices.must_link_score, prices.cannot_link_score]) < -FREE * prices.unit
    assert negative[broken].mean() > 0.6 and negative[~broken].mean() < 0.4


@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.9])
def test_filter_by_kmeans_without_neighbours_is_algorithm_9(seed, fraction):
    pytest.importorskip("torch")
    from clew.deep._knowledge import DUAL_ROUNDS

    rng = np.random.default_rng(seed)
    hidden = np.resize(np.arange(3), 60)
    X = 4 * np.eye(3)[hidden] + rng.normal(size=(60, 3))
    known = Constraints.sample(hidden, 40, noise=0.3, random_state=seed)
    options = {"layers": 4, "n_components": 2, "n_neighbors": 0, "pretrain_epochs": 5, "random_state": seed}
    start = DeepConstrainedClustering(3, max_iter=0, **options).fit(X, constraints=known)
    model = DeepConstrainedClustering(3, max_iter=1, filter_fraction=fraction, filter_rule="kmeans", **options)
    model.fit(X, constraints=known)
    # The first round starts from the embedding and the centres of a fit without rounds.
    embedding = start.transform(X)
    mean = embedding.mean(axis=0)
    kmeans = squared_model(embedding - mean, 3, start.embedding_centers_ - mean, np.random.default_rng(0))
    pairs = np.unique(np.sort(known.must_link, axis=1), axis=0), np.unique(np.sort(known.cannot_link, axis=1), axis=0)
    prices = impact_of(kmeans, Constraints(*pairs, n_samples=60), max_iter=DUAL_ROUNDS)
    scores = [*prices.must_link_score.tolist(), *prices.cannot_link_score.tolist()]
    kept = reference.filtered(scores, fraction, -FREE * prices.unit)
    n_must = len(pairs[0])
    assert model.used_must_link_.tolist() == [pairs[0][place].tolist() for place in kept if place < n_must]
    assert model.used_cannot_link_.tolist() == [pairs[1][place - n_must].tolist() for place in kept if place >= n_must]


def test_each_group_is_a_cycle_in_a_random_order(seed):
    pytest.importorskip("torch")
    from clew.deep._knowledge import Pairs

    groups = np.array([0, 1, 0, 2, 2, 0, -1, 0])  # sizes 4, 1, 2
    none = Pairs.distinct(np.empty((0, 2), dtype=np.int64), np.empty(0))
    alone = np.arange(len(groups))[:, None]
    drawn = [none.with_cycles([groups], alone, np.random.default_rng([seed, turn])) for turn in range(40)]
    for pairs in drawn:
        assert (groups[pairs.rows[:, 0]] == groups[pairs.rows[:, 1]]).all()
        assert (pairs.rows[:, 0] != pairs.rows[:, 1]).all()
        rows, counts = np.unique(pairs.rows, return_counts=True)
        assert dict(zip(rows.tolist(), counts.tolist(), strict=True)) == {0: 2, 2: 2, 5: 2, 7: 2, 3: 1, 4: 1}
        assert pairs.weight.tolist() == [1.0] * 5
    seen = {tuple(sorted(pair)) for pairs in drawn for pair in pairs.rows.tolist()}
    assert seen == {(0, 2), (0, 5), (0, 7), (2, 5), (2, 7), (5, 7), (3, 4)}


def test_a_fit_without_rounds_is_k_means_in_the_first_embedding(seed):
    pytest.importorskip("torch")
    X = np.random.default_rng(seed).normal(size=(30, 3))
    model = DeepConstrainedClustering(3, layers=4, n_components=2, pretrain_epochs=2, max_iter=0, random_state=seed)
    model.fit(X)
    q = soft_assignment(model.transform(X).astype(np.float32), model.embedding_centers_.astype(np.float32))
    assert (model.labels_ == q.argmax(axis=1)).all()
    assert model.n_iter_ == 0 and len(model.objective_history_) == 1 and len(model.changed_history_) == 0
